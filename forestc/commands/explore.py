"""Implements `explore`: searches designs of a model or of trainers, and writes a study of checked designs."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.commands.check import check
from forestc.commands.compile import compile
from forestc.commands.measure import measure
from forestc.commands.synth import synth
from forestc.compilation.level_search import count_shared
from forestc.compilation.record import versions
from forestc.compilation.synthesis import known_device
from forestc.costs.boards import stands_for
from forestc.costs.firmware import CPU_COSTS
from forestc.errors import ForestcError, MissingToolError, OptionError, opt
from forestc.exploration import sampling
from forestc.exploration.candidate import Bench, Commands
from forestc.exploration.front import summary as summary
from forestc.exploration.front import write_front
from forestc.exploration.goals import goals_of, limits_of, spelled
from forestc.exploration.material import Material, labeled_rows, material_of, test_rows
from forestc.exploration.pool import pool_of
from forestc.exploration.request import ExploreRequest
from forestc.exploration.search import Ended, StudySearch
from forestc.exploration.study import STUDY, TRIALS, Study, write_request
from forestc.fields.amounts import tolerance_of
from forestc.fields.options import options_of, takes
from forestc.forest.ir import Forest
from forestc.options.explore import ExploreOptions
from forestc.options.shared import quiet
from forestc.report.page.notebook import open_study
from forestc.rows.training_rows import read_columns
from forestc.search.memory import FOLDER as KEPT
from forestc.system.calls import cores, lock_file
from forestc.system.records import inside
from forestc.system.version import __version__
from forestc.system.writing import check_name, writing

# A study's command line omits options that do not change its results.
_HOW_IT_RUNS = ("out", "jobs", "scheduler", "storage", "trial_seconds", "trial_mb", "resume")
COMMANDS = Commands(compile, check, synth, measure)


@takes(ExploreOptions)
def explore(options: ExploreOptions) -> Study:
    """Searches for small designs that are accurate enough, and writes a study.

    A study is a folder with every trial and the front: the designs that no other equals or beats in all goals.
    Ctrl-C ends the search at once, with the front so far: of the synthesized designs, if there are any.

    `train` also takes a function `fit(trial) -> model` that draws its own options from its Optuna trial. Without
    `validation` every fifth row scores candidates; below 2,000 rows each fifth in turn. The last quarter of `seconds`
    compiles and checks the front; the result then depends on the speed of the machine. `take` is an option of the
    command line alone.

    Returns
    -------
    Study
        The trials, and the front.

    Raises
    ------
    OptionError
        If options are invalid, or differ from those of a resumed study.
    MissingExtraError
        If Optuna is not installed.
    RowsError
        If the rows do not match the model.
    ForestcError
        If no design keeps the limits; the trials stay in the folder. Or if the folder can't be used.

    References
    ----------
    Ozaki, Tanigaki, Watanabe, Nomura and Onishi: Multiobjective Tree-Structured Parzen Estimator. Journal of Artificial
    Intelligence Research, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> study = forestc.explore(model, X, label=y, device="lut6", trials=3, rungs="estimate", jobs=1, prove=False)
    >>> len(study.trials)
    3
    """
    start = time.monotonic()
    sampling.optuna()
    if options.take is not None:
        raise OptionError("take is an option of the command line", where="take", do="call forestc.commands.take.take")
    folder, progress, request = Path(options.out), options.progress, request_of(options)
    with _held(folder, resume=options.resume):
        content: str | None = None
        if options.resume:
            before = open_study(folder)
            request.same(before.asked, before.goals, before.limits)
            content = before.asked.get("content")
        return _search(request, folder, content, start, resume=options.resume, progress=progress)


def request_of(options: ExploreOptions) -> ExploreRequest:
    """Returns the checked options, with names in their usual form. Raises OptionError."""
    names = (options.train,) if isinstance(options.train, str) else options.train
    if names is not None and not callable(names):
        names = tuple(part.strip() for name in names for part in name.split(","))
    return ExploreRequest(
        **{
            **vars(options),
            "device": known_device(options.device) if options.device else None,
            "cpu": stands_for(options.cpu, "cpu", CPU_COSTS) if options.cpu else None,
            "train": names or (),
            "classes": tuple(options.classes),
            "tolerance": tolerance_of(options.tolerance),
            "goals": goals_of(options.goals, options.device, options.cpu),
            "limits": limits_of(options.limits, options.device, options.cpu),
            "jobs": cores() if options.jobs is None else options.jobs,
            "progress": quiet,  # `progress` can't be sent to the workers.
        }
    )


def stored_arguments(out: str | Path) -> dict[str, Any]:
    """Returns the arguments of `explore` that a study's folder stores. Raises ForestcError if some are missing, because
    they were Python objects."""
    study = open_study(out)
    record = study.asked
    unnamed = [name for name in ("rows", "model or train") if not any(record.get(key) for key in name.split(" or "))]
    if unnamed:
        where = f"{Path(out) / STUDY} names no {unnamed[0]}"
        raise ForestcError("was asked for with Python objects", where=where, do="resume it from Python")
    record = {**record, "validation": record.get("validation_rows"), "rungs": record.get("top")}
    names = [field.name for field in fields(ExploreOptions) if field.name != "trust_pickle"]
    arguments = {name: record[name] for name in names if record.get(name) not in (None, [])}
    arguments |= {"goals": [goal.figure for goal in study.goals], "limits": list(study.limits)}
    try:
        request_of(ExploreOptions(**{**arguments, "out": out, "resume": True}))
    except OptionError as error:
        what = f"{STUDY} is damaged (its goals, limits or options: {error})"
        raise ForestcError(what, where=str(out), do="run explore again") from None
    except MissingToolError:  # The error is raised when the study is resumed, perhaps with other options.
        pass
    return arguments


def _search(
    request: ExploreRequest,
    folder: Path,
    content: str | None,
    start: float,
    *,
    resume: bool,
    progress: Callable[[str], None],
) -> Study:
    """Runs the search and writes the study. start: when the time limit begins."""
    progress("reading the rows")
    material = material_of(request, folder)
    if content not in (None, material.content):
        raise OptionError(
            "the study was scored on other rows", where=opt.rows, do="resume with those, or begin another study"
        )
    notes = notes_of(material)
    for note in notes:
        progress(note)
    _ = material.space  # raises for unusable rows before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    record = _record(request, material, notes)
    pool = pool_of(Bench(material, COMMANDS))
    study = sampling.opened(folder, request.storage, request.goals, request.seed, resume=resume)
    if not resume:
        write_request(folder, request.goals, request.limits, record)
    search = StudySearch(material, sampling.Sampler(material, study), pool, progress)
    ended: Ended = "whole"
    try:
        search.begin()
        ended = search.run(start)
        if ended == "stopped":
            progress("stopped: writing the front of what was found")
    finally:
        pool.close()
    unfinished = search.end(early=ended != "whole")
    corrections = {name: asdict(line) for name, line in search.corrections.items()}
    record |= {"corrections": corrections, "stopped": ended == "stopped", "unfinished": unfinished}
    record["finish"] = _to_finish(record, unfinished, folder)
    write_request(folder, request.goals, request.limits, record)
    done = open_study(folder)
    write_front(done)
    if not done.front and ended == "whole":
        _refuse(done)
    return done


def _to_finish(record: Mapping[str, Any], unfinished: Mapping[str, int] | None, folder: Path) -> list[str]:
    """Returns two commands: the first finishes the study, the second only its front; none if it is finished."""
    if unfinished is None:
        return []
    tried = record["trials"] - unfinished["untried"]
    if record["command"] is None:
        given = f"as before, out={str(folder)!r}, resume=True"
        return [f"forestc.explore({given})", f"forestc.explore({given}, trials={tried})"]
    words = ["forestc", "explore", "--resume", "-o", str(folder)]
    return [shlex.join(words), shlex.join([*words, "--trials", str(tried)])]


def _record(request: ExploreRequest, material: Material, notes: Sequence[str]) -> dict[str, Any]:
    return {
        **request.as_dict(),
        "command": command_of(request, material.folder),
        "source": _source(request),
        "validation": _validation(material),
        "validation_rows": request.as_dict()["validation"],
        "versions": versions(material.forest) if material.forest is not None else {"forestc": __version__},
        "content": material.content,
        "notes": list(notes),
    }


def _source(request: ExploreRequest) -> str:
    if callable(request.train):
        return getattr(request.train, "__name__", type(request.train).__name__)
    if request.model is None:
        return ",".join(request.train)
    return str(request.model) if isinstance(request.model, str | Path) else type(request.model).__name__


def _validation(material: Material) -> str:
    if material.crossed:
        how = f"{len(material.X)} rows, each in turn kept from"
        if material.forest is not None:
            return f"{how} passes"
        return f"{how} training ({len(material.folds)} folds); the designs are trained on all rows"
    count = len(material.folds[0].validation)
    if same_rows(material):
        return f"{count} rows"
    return f"{count} rows that training did not see, nor passes but those that -O2 and -O3 choose on them"


def command_of(request: ExploreRequest, folder: Path) -> str | None:
    """Returns the command line of the study; None if Python objects were given."""
    files = [request.model, request.rows, request.test, request.validation]
    if callable(request.train) or not all(file is None or isinstance(file, str | Path) for file in files):
        return None
    texts = {
        "goals": (",".join(goal.figure for goal in request.goals),),
        "limits": tuple(map(spelled, request.limits)),
        "rungs": (request.top,),
    }
    words = ["forestc", "explore"]
    for option, spec in options_of(ExploreOptions):
        value, flag = getattr(request, option.name), spec.flags[:1]
        if option.name in _HOW_IT_RUNS:
            continue
        if isinstance(value, bool):
            words += flag if value != option.default else ()
        elif option.name in texts:
            words += [word for text in texts[option.name] for word in (*flag, text)]
        elif value not in (None, "", ()):
            words += [*flag, ",".join(value) if isinstance(value, tuple) else str(value)]
    return shlex.join([*words, "-o", str(folder)])


def notes_of(material: Material) -> list[str]:
    """Returns notes for the user, such as on test rows that are also among the given rows."""
    notes, same = list(material.notes), same_rows(material) if material.request.validation is not None else 0
    if same:
        count = len(material.folds[0].validation)
        notes.append(f"{same} of {count} validation rows are also among the rows given: accuracy is flattered")
    test = None if material.request.test is None else _test_inputs(material)
    if test is not None and (same := count_shared(material.X, test)):
        notes.append(f"{same} of {len(test)} test rows are also among the rows given: their accuracy says less")
    return notes


def same_rows(material: Material) -> int:
    """Returns the number of validation rows that are also rows for training and passes; 0 under cross-validation."""
    fold = material.folds[0]
    return 0 if material.crossed else count_shared(material.X[fold.fit], material.X[fold.validation])


def _test_inputs(material: Material) -> NDArray[np.float64] | None:
    """Returns the test rows with columns ordered by name as in the given rows, or unchanged if only their number
    agrees; otherwise None. For a model: as the model reads rows."""
    request, forest = material.request, material.forest or material.example
    test = test_rows(request.test, request.label, forest).X if isinstance(forest, Forest) else None
    if material.forest is not None:  # Rows of a model hold the columns that it reads, and zeros elsewhere.
        return test
    X, names = read_columns(*labeled_rows(request.test, request.label))
    if set(names) == set(material.names):
        return X[:, [names.index(name) for name in material.names]]
    return X if X.shape[1] == material.X.shape[1] else None


def _refuse(study: Study) -> None:
    where = str(study.folder)
    if not study.complete:
        first = next((trial.reason for trial in study.trials if trial.reason), "unknown")
        limits = {"MB, more than": f"raise {opt.trial_mb}", "s, more than": f"raise {opt.trial_seconds}"}
        do = next((do for text, do in limits.items() if text in first), "mend that, or give other options")
        raise ForestcError("every trial failed", where=f"{where}, the first: {first}", do=do)
    failures = [trial.reason or "unknown" for trial in study.trials if trial.state == "failed"]
    if failures:
        where += f", {len(failures)} of {len(study.trials)} trials failed, the first: {failures[0]}"
    for limit in study.limits:
        values = [value for trial in study.complete if (value := trial.figure(limit.figure)) is not None]
        if not any(map(limit.holds, values)):
            nearest = max(values, default=None) if limit.at_least else min(values, default=None)
            near = "its value is not known of any" if nearest is None else f"the nearest is {nearest:.6g}"
            raise ForestcError(
                f"no design keeps the limit {spelled(limit)}: {near}", where=where, do="loosen the limit"
            )
    raise ForestcError("no design keeps all limits together", where=where, do="loosen one of them")


@contextmanager
def _held(folder: Path, *, resume: bool) -> Iterator[None]:
    """Locks the study's folder. Raises ForestcError if it is unsuitable or in use."""
    check_name(folder, str(folder))
    if resume:
        open_study(folder)  # raises for a folder that is not a study
        there = [f"{TRIALS}/{path.name}" for path in (folder / TRIALS).glob("*")]
        for name in (sampling.JOURNAL, KEPT, TRIALS, *there):
            inside(folder, name)  # A link may lead elsewhere, and the search would write there.
    elif (folder / STUDY).exists():
        raise ForestcError("holds a study", where=str(folder), do=f"add {opt.resume}, or give another folder")
    elif folder.exists() and (not folder.is_dir() or any(path.name != ".lock" for path in folder.iterdir())):
        raise ForestcError("is a file, or holds other files", where=str(folder), do="give another folder")
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    lock = None
    try:
        with writing(folder, "give another"):
            lock = inside(folder, ".lock").open("a", encoding="ascii")
        if not lock_file(lock, wait=False):
            raise OptionError("another search holds the folder", where=str(folder), do="wait for its end")
        sampling.mend(folder)
        yield
    finally:
        if lock is not None:
            lock.close()
            if not (folder / STUDY).exists():
                with suppress(OSError):
                    for left in (".lock", sampling.JOURNAL):
                        (folder / left).unlink(missing_ok=True)
                    folder.rmdir()
