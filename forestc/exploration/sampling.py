"""Chooses the options of trials with Optuna's multi-objective TPE sampler. Trial n ignores the results of the last LAG
trials, so a search does not depend on the number of workers, up to LAG."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from forestc.errors import ForestcError, MissingExtraError, opt
from forestc.exploration.goals import spelled
from forestc.exploration.material import Material
from forestc.exploration.mutation import mutated
from forestc.exploration.request import masked
from forestc.exploration.space import LEVEL, SHRINK, starts
from forestc.exploration.study import Goal, Study, Trial
from forestc.fields.parameters import Choice, Parameter, Whole, used

JOURNAL = "storage.log"
NAME = "forestc"
_ADDRESS = (
    "give an address such as sqlite:///study.db or postgresql+psycopg2://user@host/name, and install its driver "
    "(psycopg2-binary)"
)
STARTUP = 10  # trials before Optuna's sampler uses results
LAG = 6  # trials before a new one whose results it ignores; more allow more workers
BESIDE = 2  # gives every n-th trial to Optuna's sampler; others change a front's trial
BESIDE_FROM = 60  # trials before one of the front is changed; earlier fronts are unreliable
UNKNOWN = 1e9  # sets the violation of a limit whose figure is unknown


def optuna() -> Any:
    """Imports Optuna and silences its messages. Raises MissingExtraError if it is not installed."""
    try:
        library: Any = importlib.import_module("optuna")
    except ImportError:
        raise MissingExtraError("optuna", "explore") from None
    library.logging.set_verbosity(library.logging.WARNING)
    warnings.filterwarnings("ignore", category=library.exceptions.ExperimentalWarning)
    return library


def sampler(seed: int, number: int) -> Any:
    """Returns an Optuna sampler, seeded by `seed` and the number of the next trial, so that a resumed study continues
    like an uninterrupted one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return optuna().samplers.TPESampler(
            seed=(seed * 1_000_003 + number) % (1 << 32), multivariate=True, group=True, n_startup_trials=STARTUP,
            constant_liar=True, warn_independent_sampling=False,
        )  # fmt: skip


def opened(folder: Path, address: str | None, goals: Sequence[Goal], seed: int, *, resume: bool) -> Any:
    """Opens or creates the Optuna study. address: a database's address; None for a journal. Raises ForestcError."""
    library = optuna()
    named = masked(str(address or folder / JOURNAL))
    try:
        if address is not None and resume:  # a new study would repeat all trials
            _need_file(address)
            return library.load_study(storage=address, study_name=name_of(folder, address), sampler=sampler(seed, 0))
        return library.create_study(
            storage=_storage(folder, address), study_name=name_of(folder, address), sampler=sampler(seed, 0),
            directions=["maximize" if goal.maximize else "minimize" for goal in goals], load_if_exists=resume,
        )  # fmt: skip
    except library.exceptions.DuplicatedStudyError:
        what = f"the storage has a study named {name_of(folder, address)}"
        raise ForestcError(
            what, where=named, do="name the folder otherwise, or resume in that study's folder"
        ) from None
    except KeyError:
        what = f"the storage has no study named {name_of(folder, address)}"
        raise ForestcError(what, where=named, do="resume in the folder that the study was begun in") from None
    except ForestcError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever databases and their drivers raise
        why = masked(str(error).splitlines()[0][:200]) if str(error) else type(error).__name__
        raise ForestcError(
            f"the storage can't be opened ({why})",
            where=named,
            do=_ADDRESS if address else f"remove it: {opt.resume} then tries the same designs again",
        ) from None


def _need_file(address: str) -> None:
    """Raises KeyError for a missing SQLite file, which Optuna would create."""
    path = address.removeprefix("sqlite:///")
    if path != address and not Path(path.partition("?")[0]).is_file():
        raise KeyError(path)


def name_of(folder: Path, address: str | None) -> str:
    """Returns the study's name in its storage: the folder's name in a database, which studies may share; otherwise a
    fixed name."""
    return NAME if address is None else folder.absolute().name


def _storage(folder: Path, address: str | None) -> Any:
    if address is not None:
        return address
    journal = optuna().storages.journal
    path = str(folder / JOURNAL)
    return optuna().storages.JournalStorage(
        journal.JournalFileBackend(path, lock_obj=journal.JournalFileOpenLock(path))
    )


def mend(folder: Path) -> None:
    """Removes the journal's lock and incomplete last line, left by a killed search. The caller must have locked the
    folder."""
    (folder / f"{JOURNAL}.lock").unlink(missing_ok=True)
    journal = folder / JOURNAL
    with suppress(OSError):
        whole = journal.read_bytes()
        if not whole.endswith(b"\n"):
            os.truncate(journal, whole.rfind(b"\n") + 1)


def trial_of(folder: str, address: str, identity: int) -> Any:
    """Opens an Optuna trial in a worker.
    address: the database's address; "" for the journal.
    identity: Optuna's id of the trial."""
    study = optuna().load_study(
        storage=_storage(Path(folder), address or None), study_name=name_of(Path(folder), address or None),
        sampler=sampler(identity, identity),
    )  # fmt: skip
    return optuna().trial.Trial(study, identity)


class Sampler:
    """Chooses trials by Optuna and reports their results to it. `identities` maps trial numbers to Optuna's ids."""

    def __init__(self, material: Material, study: Any) -> None:
        self.material, self.request, self.study = material, material.request, study
        self.starts = starts(material.space, material.training_starts)
        self.identities: dict[int, int] = {}
        self._reported: set[int] = set()
        self._next: list[Any] = []  # running trials of a killed search; they are tried again
        self._waiting = False  # True if a killed search left an enqueued trial
        self._lag = max(LAG, self.request.jobs)

    def resume(self, recorded: Mapping[int, Trial]) -> dict[int, Trial]:
        """Restores the state of an earlier search and returns its ended trials by number. recorded: the trials in the
        study's folder."""
        ended: dict[int, Trial] = {}
        for attempt in self.study.get_trials(deepcopy=False):
            if attempt.state.name == "WAITING":
                self._waiting = True
                continue
            self.identities[attempt.number] = int(attempt._trial_id)
            trial = recorded.get(attempt.number)
            if attempt.state.name in ("COMPLETE", "FAIL", "PRUNED"):
                self._reported.add(attempt.number)
                ended[attempt.number] = trial or Trial(attempt.number, "failed", reason="its folder is not there")
            elif trial is not None and trial.state != "running":
                ended[attempt.number] = trial
            elif attempt.state.name == "RUNNING":
                self._next.append(optuna().trial.Trial(self.study, attempt._trial_id))
        return ended

    @property
    def number(self) -> int:
        return self._next[0].number if self._next else len(self.identities)

    @property
    def has_next(self) -> bool:
        return bool(self._next) or self.number < self.request.trials

    def may_ask(self, ended: Mapping[int, Trial]) -> bool:
        return self.number < len(self.starts) or all(done in ended for done in range(self.number - self._lag + 1))

    def ask(self, ended: Mapping[int, Trial]) -> Trial:
        number, start = self.number, None
        if number < len(self.starts):
            start = self.starts[number]
        else:
            self.tell(ended, number - self._lag)
            if number >= BESIDE_FROM and number % BESIDE:
                start = self._beside(number, self.reported(ended))
        self.study.sampler = sampler(self.request.seed, number)
        if self._next:
            trial = self._next.pop(0)
        else:
            if start is not None and not self._waiting:
                self.study.enqueue_trial({key: value for key, value in start.items() if key != LEVEL})
            trial, self._waiting = self.study.ask(), False
        self.identities[trial.number] = int(trial._trial_id)
        return Trial(trial.number, "running", self._chosen(trial, start))

    def reported(self, ended: Mapping[int, Trial]) -> Study:
        trials = tuple(trial for number, trial in ended.items() if number in self._reported)
        return Study(self.material.folder, self.request.goals, self.request.limits, {}, trials)

    def _beside(self, number: int, study: Study) -> dict[str, Any] | None:
        """Returns options like those of a random trial on the front, but with a few changes; None if the front has no
        such trial."""
        parents = [trial for trial in study.front if LEVEL not in trial.options]
        if not parents:
            return None
        random = np.random.default_rng((self.request.seed, number))
        return mutated(self.material.space, parents[int(random.integers(len(parents)))].options, random)

    def _chosen(self, trial: object, start: Mapping[str, Any] | None) -> dict[str, Any]:
        values: dict[str, Any] = {}
        level = (start or {}).get(LEVEL)
        for parameter in self.material.space:
            if level is not None and parameter.name == SHRINK:  # The parameters of training come before it.
                break
            if used(parameter, values):
                values[parameter.name] = _suggested(trial, parameter)
        return values if level is None else {**values, LEVEL: level}

    def tell(self, ended: Mapping[int, Trial], last: int) -> None:
        for number in sorted(ended):
            if number <= last and number not in self._reported:
                self._report(ended[number])
                self._reported.add(number)

    def _report(self, trial: Trial) -> None:
        """Reports the result of a trial to Optuna. A trial without the figure of a goal is reported as failed."""
        values = [trial.figure(goal.figure) for goal in self.request.goals]
        library = optuna().trial
        if trial.state != "complete" or any(value is None for value in values):
            self.study.tell(trial.number, state=library.TrialState.FAIL, skip_if_finished=True)
            return
        attempt = library.Trial(self.study, self.identities[trial.number])
        for limit in self.request.limits:
            value = trial.figure(limit.figure)
            violation = UNKNOWN  # as a share of the limit; 0 or less if the limit holds
            if value is not None:
                over = limit.value - value if limit.at_least else value - limit.value
                violation = over / max(abs(limit.value), 1e-9)
            attempt.set_constraint(spelled(limit), violation)
        self.study.tell(trial.number, [float(value) for value in values if value is not None], skip_if_finished=True)


def _suggested(trial: Any, parameter: Parameter) -> Any:
    if isinstance(parameter, Choice):
        return trial.suggest_categorical(parameter.name, list(parameter.values))
    if isinstance(parameter, Whole):
        return trial.suggest_int(parameter.name, parameter.low, parameter.high, step=parameter.step, log=parameter.log)
    return trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log)
