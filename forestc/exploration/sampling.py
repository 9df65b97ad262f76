"""Which designs are tried: Optuna's multi-objective TPE, in the process that leads the search.

Trial n is chosen knowing the trials up to n - LAG, in their order, whatever else has ended by then; so a search
with one seed gives the same trials on one worker as on several.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from forestc.errors import ForestcError, MissingExtraError
from forestc.exploration.asked import masked
from forestc.exploration.goals import spelled
from forestc.exploration.material import Material
from forestc.exploration.mutation import mutated
from forestc.exploration.space import LEVEL, SHRINK, starts
from forestc.exploration.study import Goal, Limit, Study, Trial
from forestc.options.parameters import Choice, Parameter, Whole, used

JOURNAL = "storage.log"
NAME = "forestc"
_ADDRESS = (
    "give an address such as sqlite:///study.db or postgresql+psycopg2://user@host/name, and install its driver "
    "(psycopg2-binary)"
)
STARTUP = 10  # random trials before the sampler goes by what was found
LAG = 6  # trials under way that a choice does not know; more only where there are more workers
BESIDE = 2  # every n-th choice changes one of the front; the others are the sampler's
BESIDE_FROM = 60  # trials before; a front of few trials leads choices beside it away from better ways to shrink
UNKNOWN = 1e9  # by how much a limit is broken whose figure is not known


def optuna() -> Any:
    """The library, quiet. Raises MissingExtraError."""
    try:
        library: Any = importlib.import_module("optuna")
    except ImportError:
        raise MissingExtraError("optuna", "explore") from None
    library.logging.set_verbosity(library.logging.WARNING)
    warnings.filterwarnings("ignore", category=library.exceptions.ExperimentalWarning)
    return library


def sampler(seed: int, number: int) -> Any:
    """A sampler whose next trial depends on the seed, its number and the trials that it knows, and on nothing else;
    so a study that was interrupted goes on as it would have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return optuna().samplers.TPESampler(
            seed=(seed * 1_000_003 + number) % (1 << 32), multivariate=True, group=True, n_startup_trials=STARTUP,
            constant_liar=True, warn_independent_sampling=False,
        )  # fmt: skip


def opened(folder: Path, address: str | None, goals: Sequence[Goal], seed: int, *, resume: bool) -> Any:
    """The Optuna study. address: of a database; None for a journal in the folder. Raises ForestcError."""
    library = optuna()
    named = masked(str(address or folder / JOURNAL))
    try:
        if address is not None and resume:  # it holds what was tried; a new one would begin again
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
            do=_ADDRESS if address else "remove it: --resume then tries the same designs again",
        ) from None


def _need_file(address: str) -> None:
    """Raises KeyError, as for a study that is not there, where the file of a database is not, which would be made."""
    path = address.removeprefix("sqlite:///")
    if path != address and not Path(path.partition("?")[0]).is_file():
        raise KeyError(path)


def name_of(folder: Path, address: str | None) -> str:
    """The study's name in its storage: of the folder, where several may share a database."""
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
    """Removes the journal's lock, and the half of a line, that a killed search left; called by the one process that
    holds the folder."""
    (folder / f"{JOURNAL}.lock").unlink(missing_ok=True)
    journal = folder / JOURNAL
    with suppress(OSError):
        whole = journal.read_bytes()
        if not whole.endswith(b"\n"):
            os.truncate(journal, whole.rfind(b"\n") + 1)


def trial_of(folder: str, address: str, identity: int) -> Any:
    """The Optuna trial, in a worker."""
    study = optuna().load_study(
        storage=_storage(Path(folder), address or None), study_name=name_of(Path(folder), address or None),
        sampler=sampler(identity, identity),
    )  # fmt: skip
    return optuna().trial.Trial(study, identity)


class Sampler:
    """The Optuna study of a search, and the trials that its choices know. identities: Optuna's, by trial."""

    def __init__(self, material: Material, study: Any) -> None:
        self.material, self.asked, self.study = material, material.asked, study
        self.starts = starts(material.space, material.training_starts)
        self.identities: dict[int, int] = {}
        self._told: set[int] = set()
        self._next: list[Any] = []  # trials that a killed search left under way
        self._waiting = False  # whether it left one that was enqueued and not asked for
        self._lag = max(LAG, self.asked.jobs)

    def resume(self, kept: Mapping[int, Trial]) -> dict[int, Trial]:
        """Takes up what is in the storage, and returns the trials that have ended. kept: those of the folder."""
        ended: dict[int, Trial] = {}
        for attempt in self.study.get_trials(deepcopy=False):
            if attempt.state.name == "WAITING":
                self._waiting = True
                continue
            self.identities[attempt.number] = int(attempt._trial_id)
            trial = kept.get(attempt.number)
            if attempt.state.name in ("COMPLETE", "FAIL", "PRUNED"):
                self._told.add(attempt.number)
                ended[attempt.number] = trial or Trial(attempt.number, "failed", reason="its folder is not there")
            elif trial is not None and trial.state != "running":
                ended[attempt.number] = trial
            elif attempt.state.name == "RUNNING":
                self._next.append(optuna().trial.Trial(self.study, attempt._trial_id))
        return ended

    @property
    def number(self) -> int:
        """The number of the next trial."""
        return self._next[0].number if self._next else len(self.identities)

    @property
    def wants(self) -> bool:
        """Whether trials are left of those that were asked for."""
        return bool(self._next) or self.number < self.asked.trials

    def may_ask(self, ended: Mapping[int, Trial]) -> bool:
        """Whether all trials that the next choice is to know have ended."""
        return self.number < len(self.starts) or all(done in ended for done in range(self.number - self._lag + 1))

    def ask(self, ended: Mapping[int, Trial]) -> Trial:
        """Chooses the next trial."""
        number, start = self.number, None
        if number < len(self.starts):
            start = self.starts[number]
        else:
            self.tell(ended, number - self._lag)
            if number >= BESIDE_FROM and number % BESIDE:
                start = self._beside(number, self.known(ended))
        self.study.sampler = sampler(self.asked.seed, number)
        if self._next:
            trial = self._next.pop(0)
        else:
            if start is not None and not self._waiting:
                self.study.enqueue_trial({key: value for key, value in start.items() if key != LEVEL})
            trial, self._waiting = self.study.ask(), False
        self.identities[trial.number] = int(trial._trial_id)
        return Trial(trial.number, "running", self._chosen(trial, start))

    def known(self, ended: Mapping[int, Trial]) -> Study:
        """The study of the trials that Optuna knows."""
        trials = tuple(trial for number, trial in ended.items() if number in self._told)
        return Study(self.material.folder, self.asked.goals, self.asked.limits, {}, trials)

    def _beside(self, number: int, known: Study) -> dict[str, Any] | None:
        """A choice beside one of the front; None without one."""
        parents = [trial for trial in known.front if LEVEL not in trial.options]
        if not parents:
            return None
        random = np.random.default_rng((self.asked.seed, number))
        return mutated(self.material.space, parents[int(random.integers(len(parents)))].options, random)

    def _chosen(self, trial: object, start: Mapping[str, Any] | None) -> dict[str, Any]:
        """A value for each parameter in use, drawn by Optuna unless a start fixes it. A level has passes of its own:
        only the training is drawn."""
        values: dict[str, Any] = {}
        level = (start or {}).get(LEVEL)
        for parameter in self.material.space:
            if level is not None and parameter.name == SHRINK:  # the first parameter of the compilation
                break
            if used(parameter, values):
                values[parameter.name] = _suggested(trial, parameter)
        return values if level is None else {**values, LEVEL: level}

    def tell(self, ended: Mapping[int, Trial], last: int) -> None:
        """Tells Optuna all trials up to one, in their order."""
        for number in sorted(ended):
            if number <= last and number not in self._told:
                tell(self.study, ended[number], self.asked.goals, self.asked.limits, self.identities[number])
                self._told.add(number)


def _suggested(trial: Any, parameter: Parameter) -> Any:
    if isinstance(parameter, Choice):
        return trial.suggest_categorical(parameter.name, list(parameter.values))
    if isinstance(parameter, Whole):
        return trial.suggest_int(parameter.name, parameter.low, parameter.high, step=parameter.step, log=parameter.log)
    return trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log)


def tell(study: Any, trial: Trial, goals: Sequence[Goal], limits: Sequence[Limit], identity: int) -> None:
    """Tells the sampler what a trial gave. A trial whose goal is not known counts as failed."""
    values = [trial.figure(goal.figure) for goal in goals]
    state = optuna().trial.TrialState
    if trial.state != "complete" or any(value is None for value in values):
        study.tell(trial.number, state=state.FAIL, skip_if_finished=True)
        return
    asked = optuna().trial.Trial(study, identity)
    for limit in limits:
        value = trial.figure(limit.figure)
        lacks = UNKNOWN  # as a share of the limit; 0 or less if it is kept
        if value is not None:
            lacks = (limit.value - value if limit.at_least else value - limit.value) / max(abs(limit.value), 1e-9)
        asked.set_constraint(spelled(limit), lacks)
    study.tell(trial.number, [float(value) for value in values if value is not None], skip_if_finished=True)
