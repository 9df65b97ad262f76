"""The record of a study: what was asked, and every trial with its figures. Written by `explore`, read by `report`.

A study is a folder:

    study.json              what was asked: goals, limits, the model or trainer, rows, device or processor, versions
    storage.log             Optuna's journal (unless a database was named)
    trials/0012/trial.json  one trial; each is written whole, by the process that ran it
    trials/0012/design/     its compiled folder, if it has one
    front.csv  study.parquet    the front, and all trials, as tables

Figures that are not known are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from forestc.costs.devices import DEVICES
from forestc.errors import ForestcError, MissingExtraError
from forestc.notebook import notebook_html, printed
from forestc.writing import write_text, writing

FORMAT = 1  # version of study.json
LARGEST = 1e15  # a number beyond it is no figure, option or limit of a study
STUDY, TRIALS, TRIAL, DESIGN = "study.json", "trials", "trial.json", "design"
Rung = Literal["estimate", "synthesis", "placed", "measured"]
RUNGS: tuple[Rung, ...] = ("estimate", "synthesis", "placed", "measured")
State = Literal["complete", "failed", "running"]


@dataclass(frozen=True)
class Goal:
    """figure: accuracy, lut, ff, latency_cycles, fmax_mhz, flash, ram, instructions. unit: for people, as in 'MHz'."""

    figure: str
    maximize: bool
    unit: str = ""

    def cost(self, value: float | None) -> float:
        """The value of the figure as a cost, smaller is better; infinite if it is not known."""
        return math.inf if value is None else -value if self.maximize else value


@dataclass(frozen=True)
class Limit:
    """figure >= value if at_least, else figure <= value."""

    figure: str
    at_least: bool
    value: float

    def holds(self, value: float | None) -> bool:
        """Whether a figure keeps the limit; an unknown one does not."""
        return value is not None and (value >= self.value if self.at_least else value <= self.value)


@dataclass(frozen=True)
class Score:
    """Accuracy (R squared of a regression) on rows, with its standard error. lost: against the given model on the same
    rows, with its standard error; None where models are trained."""

    value: float
    standard_error: float
    rows: int
    lost: float | None = None
    lost_error: float | None = None


@dataclass(frozen=True)
class Trial:
    """One design that was tried.

    options: what was chosen, by the parameter's name. figures: by rung, then by the figure's name. corrected: the
    estimate as the higher rungs' results correct it. validation: on the rows that candidates are judged on; test: on
    the test rows, for the front alone. reason: why it failed, or which limit it breaks. command: the command line
    that compiles the same folder. seconds: by stage.
    """

    number: int
    state: State
    options: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    corrected: Mapping[str, float] = field(default_factory=dict)
    validation: Score | None = None
    test: Score | None = None
    on_front: bool = False
    reason: str = ""
    command: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    has_design: bool = False

    def figure(self, name: str) -> float | None:
        """A figure from the highest rung that has it; the corrected estimate before the estimate."""
        if name == "accuracy":
            return None if self.validation is None else self.validation.value
        rung = self.known_by(name)
        if rung is None:
            return None
        known = self.figures[rung][name]
        return self.corrected.get(name, known) if rung == "estimate" else known

    def known_by(self, name: str) -> Rung | None:
        """The highest rung that has a figure."""
        return next((rung for rung in reversed(RUNGS) if name in self.figures.get(rung, {})), None)

    def rung(self) -> Rung | None:
        """The highest rung that the trial reached."""
        return next((rung for rung in reversed(RUNGS) if rung in self.figures), None)

    def row(self) -> dict[str, Any]:
        """The trial as one flat row: figures by their best knowledge, scores, options. Empty ones are left out."""
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
    """Trials in an order. A notebook shows their table, where pandas is installed."""

    def to_pandas(self) -> Any:
        """The trials as a DataFrame: a row a trial, a column for each figure, score and option (`Trial.row`). Raises
        MissingExtraError without pandas."""
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
    """A study as read from its folder. asked: what `study.json` holds beside goals and limits: `command`, `source`
    (a model's file, or the trainer), `rows`, `validation`, `test`, `device`, `cpu`, `versions`, `seed`."""

    folder: Path
    goals: tuple[Goal, ...]
    limits: tuple[Limit, ...]
    asked: Mapping[str, Any]
    trials: tuple[Trial, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", Trials(self.trials))

    def __str__(self) -> str:
        return printed(self)

    def _repr_html_(self) -> str | None:
        return notebook_html(self)

    @property
    def complete(self) -> Trials:
        return Trials(trial for trial in self.trials if trial.state == "complete")

    def design(self, trial: Trial) -> Path:
        """The compiled folder of a trial."""
        return self.folder / TRIALS / f"{trial.number:04d}" / DESIGN

    def kept(self, trial: Trial) -> bool:
        """Whether a trial is complete and keeps every limit."""
        return trial.state == "complete" and all(limit.holds(trial.figure(limit.figure)) for limit in self.limits)

    @property
    def room(self) -> int | None:
        """The LUTs of the device; None without one, or one of any size."""
        device = DEVICES.get(str(self.asked.get("device")))
        return None if device is None else device.cells

    def fits(self, trial: Trial) -> bool:
        """Whether the device has as many LUTs as the trial takes, as far as both are known."""
        taken = trial.figure("lut")
        return self.room is None or taken is None or taken <= self.room

    @cached_property
    def front(self) -> Trials:
        """The trials that no other beats in every goal, from the best first goal to the worst; of a study that ended
        early, among those that are known better than by estimate, if there are any."""
        kept = [trial for trial in self.trials if self.kept(trial)]
        if self.asked.get("unfinished"):
            kept = [trial for trial in kept if trial.rung() != "estimate"] or kept
        costs = {trial.number: self._costs(trial) for trial in kept}
        best = [trial for trial in kept if not any(_beats(costs[other.number], costs[trial.number]) for other in kept)]
        return Trials(sorted(_without_twins(best, costs), key=lambda trial: (costs[trial.number], trial.number)))

    def _costs(self, trial: Trial) -> tuple[float, ...]:
        """One number a goal, smaller is better."""
        return tuple(goal.cost(trial.figure(goal.figure)) for goal in self.goals)


def _beats(costs: tuple[float, ...], others: tuple[float, ...]) -> bool:
    return all(a <= b for a, b in zip(costs, others, strict=True)) and costs != others


def _without_twins(trials: Sequence[Trial], costs: Mapping[int, tuple[float, ...]]) -> Iterator[Trial]:
    """The first trial of each point."""
    seen: set[tuple[float, ...]] = set()
    for trial in sorted(trials, key=lambda trial: trial.number):
        if costs[trial.number] not in seen:
            seen.add(costs[trial.number])
            yield trial


def open_study(folder: str | Path) -> Study:
    """Reads a study, also one that still runs or was killed. Raises ForestcError naming the file that is missing or
    damaged."""
    folder = Path(folder)
    asked = _read(folder / STUDY)
    try:
        if asked.pop("format") != FORMAT:
            raise ForestcError("was written by another version of forestc", where=str(folder), do="run it again")
        goals = tuple(Goal(**goal) for goal in asked.pop("goals"))
        limits = tuple(Limit(**limit) for limit in asked.pop("limits"))
        if not goals or not all(map(_is_goal, goals)) or not all(map(_is_limit, limits)):
            raise TypeError("its goals or limits are none")
        if asked.get("tolerance") is not None and not _is_number(asked["tolerance"]):
            raise TypeError("its tolerance is no number")
    except (KeyError, TypeError, AttributeError) as error:
        raise ForestcError(f"{STUDY} is damaged ({error})", where=str(folder), do="run explore again") from None
    paths = sorted((folder / TRIALS).glob(f"*/{TRIAL}"))
    return Study(folder, goals, limits, asked, tuple(sorted(map(_read_trial, paths), key=lambda trial: trial.number)))


def _is_goal(goal: Goal) -> bool:
    return _is_text(goal.figure) and isinstance(goal.maximize, bool) and (goal.unit == "" or _is_text(goal.unit))


def _is_limit(limit: Limit) -> bool:
    return _is_text(limit.figure) and isinstance(limit.at_least, bool) and _is_number(limit.value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and -LARGEST <= value <= LARGEST


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise ForestcError(
            f"has no readable {path.name}", where=str(path.parent), do="give a folder that forestc explore wrote"
        ) from None


def _read_trial(path: Path) -> Trial:
    try:
        record = _read(path)
        for name in ("validation", "test"):
            record[name] = None if record.get(name) is None else Score(**record[name])
        trial = Trial(**{field.name: record[field.name] for field in fields(Trial) if field.name in record})
        if _well_formed(trial) and path.parent.name == f"{trial.number:04d}":
            return trial
    except (ForestcError, KeyError, TypeError, AttributeError):
        pass
    raise ForestcError(f"{TRIAL} is damaged", where=str(path.parent), do="remove the trial's folder")


def _well_formed(trial: Trial) -> bool:
    """Whether the values read are of the kinds that a Trial promises, and its numbers are finite."""
    scores = [vars(score).values() for score in (trial.validation, trial.test) if score is not None]
    numbers = [*trial.corrected.values(), *trial.seconds.values()]
    numbers += [number for score in scores for number in score if number is not None]
    numbers += [number for figures in trial.figures.values() for number in figures.values()]
    texts = (trial.reason, trial.command, *trial.options)
    options = all(isinstance(value, str | int | float | None) for value in trial.options.values())
    real = [value for value in trial.options.values() if isinstance(value, int | float)]
    return (
        isinstance(trial.number, int)
        and trial.number >= 0
        and trial.state in get_args(State)
        and set(trial.figures) <= set(RUNGS)
        and all(map(_is_number, (*numbers, *real)))
        and all(isinstance(text, str) for text in texts)
        and options
    )


def write_trial(study: Path, trial: Trial) -> None:
    """Writes trial.json, whole or not at all. Raises ForestcError if the folder can't be written to."""
    write_json(study / TRIALS / f"{trial.number:04d}" / TRIAL, asdict(trial))


def write_asked(study: Path, goals: Sequence[Goal], limits: Sequence[Limit], asked: Mapping[str, Any]) -> None:
    """Writes study.json, whole or not at all. Raises ForestcError if the folder can't be written to."""
    wanted = {"goals": [asdict(goal) for goal in goals], "limits": [asdict(limit) for limit in limits]}
    write_json(study / STUDY, {"format": FORMAT, **wanted, **asked})


def write_json(path: Path, value: object) -> None:
    """Writes JSON, whole or not at all. Raises ForestcError if the folder can't be written to."""
    with writing(path, "choose another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(value, indent=1) + "\n")
