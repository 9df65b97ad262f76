"""Reads and writes the record of a study, which is a folder.

study.json              the options
storage.log             Optuna's journal
trials/0012/trial.json  one trial
trials/0012/design/     its compiled folder, if any
front.csv  study.parquet    the front, and all trials
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from forestc.costs.devices import DEVICES
from forestc.errors import MissingExtraError
from forestc.manifest.notebook import shown_as
from forestc.system.records import (
    COUNT,
    FIGURE,
    LARGEST,
    TEXT,
    DamagedError,
    Schema,
    inside,
    read_record,
    record_of,
    refusing,
)
from forestc.system.writing import write_text, writing

FORMAT = 1  # identifies the version of study.json
STUDY, TRIALS, TRIAL, DESIGN = "study.json", "trials", "trial.json", "design"
Rung = Literal["estimate", "synthesis", "placed", "measured"]
RUNGS: tuple[Rung, ...] = ("estimate", "synthesis", "placed", "measured")
State = Literal["complete", "failed", "running"]


@dataclass(frozen=True)
class Goal:
    """A figure to optimize."""

    figure: str  # a key of `forestc.exploration.goals.FIGURES`
    maximize: bool
    unit: str = ""  # for users, such as 'MHz'

    def cost(self, value: float | None) -> float:
        """Returns the value as a cost (smaller is better); infinity for None."""
        return math.inf if value is None else -value if self.maximize else value


@dataclass(frozen=True)
class Limit:
    """A bound of a figure: figure >= value if `at_least`, otherwise figure <= value."""

    figure: str
    at_least: bool
    value: float

    def holds(self, value: float | None) -> bool:
        """Returns True if the value is known and keeps the limit."""
        return value is not None and (value >= self.value if self.at_least else value <= self.value)


def score_shown(value: float, measure: str, digits: int = 1) -> str:
    """Returns a score as text: R squared as a plain number, all else in percent."""
    return f"{value:.{digits + 2}f}" if measure == "R squared" else f"{100 * value:.{digits}f} %"


@dataclass(frozen=True)
class Score:
    """An accuracy (for a regression, R squared) on rows."""

    value: float
    standard_error: float
    rows: int
    lost: float | None = None  # accuracy lost against the given model; None if models are trained
    lost_error: float | None = None  # standard error of `lost`
    measure: str = "accuracy"

    @property
    def shown(self) -> str:
        """The value as text."""
        return score_shown(self.value, self.measure)


@dataclass(frozen=True)
class Trial:
    """One design that was tried."""

    number: int
    state: State
    options: Mapping[str, Any] = field(default_factory=dict)  # value of each parameter
    # figures by kind of measurement (rung), then by name
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    corrected: Mapping[str, float] = field(default_factory=dict)  # estimates after correction by measured values
    validation: Score | None = None  # score on validation rows
    test: Score | None = None  # score on test rows
    on_front: bool = False
    reason: str = ""  # why the trial failed, or the limits that it breaks
    command: str = ""  # command line that compiles the design
    seconds: Mapping[str, float] = field(default_factory=dict)  # time of each stage
    has_design: bool = False

    def figure(self, name: str) -> float | None:
        """Returns a figure as measured most exactly, with estimates corrected; None if it is unknown."""
        if name == "accuracy":
            return None if self.validation is None else self.validation.value
        rung = self.known_by(name)
        if rung is None:
            return None
        value = self.figures[rung][name]
        return self.corrected.get(name, value) if rung == "estimate" else value

    def known_by(self, name: str) -> Rung | None:
        """Returns the most exact kind of measurement (rung) of a figure; None without any."""
        return next((rung for rung in reversed(RUNGS) if name in self.figures.get(rung, {})), None)

    def rung(self) -> Rung | None:
        """Returns the kind of the trial's most exact measurement (rung), such as "synthesis"; None without any."""
        return next((rung for rung in reversed(RUNGS) if rung in self.figures), None)

    def row(self) -> dict[str, Any]:
        """Returns the trial as one row of a table."""
        scores: dict[str, Any] = {}
        for name, score in (("accuracy", self.validation), ("test_accuracy", self.test)):
            scores |= {} if score is None else {name: score.value, f"{name}_se": score.standard_error}
        names = dict.fromkeys(name for figures in self.figures.values() for name in figures)
        return {
            "trial": self.number,
            "state": self.state,
            "on_front": self.on_front,
            **scores,
            **{name: self.figure(name) for name in names},
            "rung": self.rung(),
            "reason": self.reason,
            "command": self.command,
            **{f"option:{name}": value for name, value in self.options.items()},
            **{f"{rung}:{name}": value for rung, figures in self.figures.items() for name, value in figures.items()},
            "seconds": round(sum(self.seconds.values()), 3),
            "design": f"{TRIALS}/{self.number:04d}/{DESIGN}" if self.has_design else "",
        }


class Trials(tuple[Trial, ...]):
    """A sequence of trials. A notebook shows it as a table if pandas is installed."""

    def to_pandas(self) -> Any:
        """Returns a DataFrame with a row for each trial (`Trial.row`). Raises MissingExtraError without pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "explore") from None
        return pd.DataFrame([trial.row() for trial in self])

    def _repr_html_(self) -> str | None:
        try:
            html: str = self.to_pandas().to_html(max_rows=60, escape=True)
        except MissingExtraError:
            return None
        return html


@dataclass(frozen=True)
class Study:
    """Study: the trials of a search, as `explore` wrote them.

    Attributes
    ----------
    folder : Path
        The study's folder.
    goals : tuple of Goal
        Figures that the search optimizes.
    limits : tuple of Limit
        Limits that every design must keep.
    asked : dict
        The rest of study.json: `command`, `source` (the model's file, or the trainers), `rows`, `validation`, `test`,
        `device`, `cpu`, `versions`, `seed` and more.
    trials : tuple of Trial
        All trials in the order of their numbers, with `to_pandas()`.

    Examples
    --------
    After the example of `explore`:

    >>> import forestc
    >>> study = forestc.open_study("study")
    >>> all(study.design(trial).is_dir() for trial in study.front)
    True
    """

    folder: Path
    goals: tuple[Goal, ...]
    limits: tuple[Limit, ...]
    asked: Mapping[str, Any]
    trials: tuple[Trial, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", Trials(self.trials))

    def __str__(self) -> str:
        return shown_as(self, "text") or repr(self)

    def _repr_html_(self) -> str | None:
        return shown_as(self, "html")

    @property
    def complete(self) -> Trials:
        """The trials that did not fail and are not running."""
        return Trials(trial for trial in self.trials if trial.state == "complete")

    @property
    def measure(self) -> str:
        """What the trials' scores are: accuracy, R squared of a regression, or agreement with the model."""
        return next((trial.validation.measure for trial in self.trials if trial.validation is not None), "accuracy")

    def design(self, trial: Trial) -> Path:
        """Returns the compiled folder of a trial.

        Parameters
        ----------
        trial : Trial
            A trial; `has_design` says whether the folder was kept.

        Returns
        -------
        Path
            The folder.
        """
        return self.folder / TRIALS / f"{trial.number:04d}" / DESIGN

    def kept(self, trial: Trial) -> bool:
        """Returns True if a trial is complete and keeps every limit.

        Parameters
        ----------
        trial : Trial
            A trial of the study.

        Returns
        -------
        bool
            False also if a limited figure is unknown.
        """
        return trial.state == "complete" and all(limit.holds(trial.figure(limit.figure)) for limit in self.limits)

    @property
    def room(self) -> int | None:
        """The LUTs of the device; None if there is no device or its size is unlimited."""
        device = DEVICES.get(str(self.asked.get("device")))
        return None if device is None else device.cells

    def fits(self, trial: Trial) -> bool:
        """Returns True if the device has enough LUTs for a trial, or a number is unknown.

        An estimate must fit with and without correction, because corrections by small designs say little of large ones.

        Parameters
        ----------
        trial : Trial
            A trial of the study.

        Returns
        -------
        bool
            True if the device has enough LUTs.
        """
        estimates = [trial.figure("lut")]
        estimates += [trial.figures["estimate"]["lut"]] if trial.known_by("lut") == "estimate" else []
        return self.room is None or all(taken is None or taken <= self.room for taken in estimates)

    @cached_property
    def front(self) -> Trials:
        """The Pareto front of the trials that keep all limits, sorted by the goals, best first.

        No other trial is at least as good in all goals and better in one. Of equal trials the first is taken.
        """
        candidates = [trial for trial in self.trials if self.kept(trial)]
        points = {self.costs(trial): trial for trial in sorted(candidates, key=lambda trial: -trial.number)}
        best = (
            cost
            for cost in points
            if not any(all(a <= b for a, b in zip(other, cost, strict=True)) and other != cost for other in points)
        )
        return Trials(points[cost] for cost in sorted(best))

    def costs(self, trial: Trial) -> tuple[float, ...]:
        """Returns a trial's cost for each goal; smaller is better.

        Parameters
        ----------
        trial : Trial
            A trial of the study.

        Returns
        -------
        tuple of float
            Costs; infinite if a figure is unknown.
        """
        return tuple(goal.cost(trial.figure(goal.figure)) for goal in self.goals)


_NAME: Schema = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f]+$", "means": "a name"}
_OPTION: Schema = FIGURE | {"type": ["string", "number", "boolean", "null"]}
_TEXT_OR_NONE: Schema = {"type": ["string", "null"]}
_TEXTS: Schema = {"type": ["array", "null"], "items": TEXT}
_FIGURES: Schema = {"type": "object", "additionalProperties": FIGURE}
_SCORE: Schema = {"anyOf": [record_of(Score, rows=COUNT), {"type": "null"}]}
_TRIAL: Schema = record_of(
    Trial, number=COUNT, options={"type": "object", "additionalProperties": _OPTION}, validation=_SCORE, test=_SCORE,
    figures={
        "type": "object", "propertyNames": {"enum": list(RUNGS)}, "additionalProperties": _FIGURES,
    },
)  # fmt: skip
_SECONDS: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": LARGEST}
_YES_OR_NO: Schema = {"type": "boolean"}
_WHOLE: Schema = COUNT | {"type": ["integer", "null"]}
# Fields of study.json: options that a resumed study reads, and fields for pages.
_STUDY: Schema = {
    "type": "object",
    "required": ["format", "goals", "limits"],
    "properties": {
        "format": {"const": FORMAT},
        "goals": {"type": "array", "minItems": 1, "items": record_of(Goal, figure=_NAME)},
        "limits": {"type": "array", "items": record_of(Limit, figure=_NAME)},
        **dict.fromkeys(
            (
                "command", "source", "model", "rows", "validation", "validation_rows", "test", "device", "cpu",
                "scheduler", "storage", "content",
            ),
            _TEXT_OR_NONE,
        ),
        "label": {"type": ["string", "integer", "null"]},
        **dict.fromkeys(("train", "classes"), _TEXTS),
        **dict.fromkeys(("trials", "seed", "jobs", "trial_mb"), _WHOLE),
        **dict.fromkeys(("trial_seconds", "tolerance"), _SECONDS),
        **dict.fromkeys(("regression", "native", "prove", "stopped"), _YES_OR_NO),
        "top": {"enum": list(RUNGS)},
        "versions": {"type": "object", "additionalProperties": TEXT},
        **dict.fromkeys(("notes", "finish"), _TEXTS),
        "unfinished": {"type": ["object", "null"], "additionalProperties": COUNT},
        "corrections": {"type": "object"},
    },
}  # fmt: skip
_AGAIN = "run explore again"


def open_study(folder: str | Path) -> Study:
    """Reads a study, also one that still runs or was killed.

    Parameters
    ----------
    folder : str or path
        The study's folder.

    Returns
    -------
    Study
        The study with the trials so far.

    Raises
    ------
    ForestcError
        If a file is missing or damaged; names the file and the field.

    Examples
    --------
    After the example of `explore`:

    >>> import forestc
    >>> study = forestc.open_study("study")
    >>> [goal.figure for goal in study.goals]
    ['lut', 'accuracy']
    """
    folder = Path(folder)
    record = read_record(folder / STUDY, _STUDY, "give a folder that forestc explore wrote", _AGAIN)
    del record["format"]
    goals = tuple(Goal(**_fields_of(Goal, goal)) for goal in record.pop("goals"))
    limits = tuple(Limit(**_fields_of(Limit, limit)) for limit in record.pop("limits"))
    paths = sorted((folder / TRIALS).glob(f"*/{TRIAL}"))
    trials = (_read_trial(inside(folder, str(path.relative_to(folder)))) for path in paths)
    return Study(folder, goals, limits, record, tuple(sorted(trials, key=lambda trial: trial.number)))


def _fields_of(kind: type[Goal | Limit | Score | Trial], record: Mapping[str, Any]) -> dict[str, Any]:
    return {entry.name: record[entry.name] for entry in fields(kind) if entry.name in record}


def _read_trial(path: Path) -> Trial:
    remedy = "remove the trial's folder"
    record = _fields_of(Trial, read_record(path, _TRIAL, remedy, remedy))
    for name in ("validation", "test"):
        record[name] = None if record.get(name) is None else Score(**_fields_of(Score, record[name]))
    with refusing(path, remedy):
        if path.parent.name != f"{record['number']:04d}":
            raise DamagedError(f"number is {record['number']}, not that of the folder")
    return Trial(**record)


def trial_path(number: int) -> str:
    return f"{TRIALS}/{number:04d}/{TRIAL}"


def write_trial(study: Path, trial: Trial) -> None:
    write_json(study / trial_path(trial.number), asdict(trial))


def write_request(study: Path, goals: Sequence[Goal], limits: Sequence[Limit], options: Mapping[str, Any]) -> None:
    write_json(study / STUDY, request_record(goals, limits, options))


def request_record(goals: Sequence[Goal], limits: Sequence[Limit], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the content of study.json."""
    record = {"goals": [asdict(goal) for goal in goals], "limits": [asdict(limit) for limit in limits]}
    return {"format": FORMAT, **record, **options}


def write_json(path: Path, value: object) -> None:
    """Writes a JSON file in one step. Raises ForestcError if the folder can't be written to."""
    with writing(path, "choose another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json_text(value))


def json_text(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
