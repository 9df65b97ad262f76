"""Which designs are tried: Optuna's multi-objective TPE, in the process that leads the search."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from forestc.errors import ForestcError, MissingExtraError
from forestc.exploration.asked import masked
from forestc.exploration.space import LEVEL
from forestc.exploration.study import Goal, Limit, Trial
from forestc.parameters import Choice, Parameter, Whole, used

JOURNAL = "storage.log"
NAME = "forestc"
_ADDRESS = (
    "give an address such as sqlite:///study.db or postgresql+psycopg2://user@host/name, and install its driver "
    "(psycopg2-binary)"
)
STARTUP = 10  # random trials before the sampler goes by what was found
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


def chosen(trial: object, space: Sequence[Parameter], start: Mapping[str, Any] | None) -> dict[str, Any]:
    """A value for each parameter in use, drawn by the sampler unless a start fixes it. A level has passes of its own:
    only the training is drawn."""
    values: dict[str, Any] = {}
    level = (start or {}).get(LEVEL)
    for parameter in space:
        if level is not None and not training(parameter, space):
            break
        if used(parameter, values):
            values[parameter.name] = _suggested(trial, parameter)
    return values if level is None else {**values, LEVEL: level}


def training(parameter: Parameter, space: Sequence[Parameter]) -> bool:
    """Whether a parameter comes before those of the compilation."""
    names = [other.name for other in space]
    return names.index(parameter.name) < names.index("shrink")


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
        asked.set_constraint(
            f"{limit.figure}{'>=' if limit.at_least else '<='}{limit.value:g}", broken_by(trial, limit)
        )
    study.tell(trial.number, [float(value) for value in values if value is not None], skip_if_finished=True)


def broken_by(trial: Trial, limit: Limit) -> float:
    """How far a limit is from being kept, as a share of it; 0 or less if it is kept."""
    value = trial.figure(limit.figure)
    if value is None:
        return UNKNOWN
    return (limit.value - value if limit.at_least else value - limit.value) / max(abs(limit.value), 1e-9)
