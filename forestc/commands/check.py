"""Implements `check`: compares a compiled folder with its quantized forest, and this forest with the model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from forestc.backends.base import Engine, Gives
from forestc.backends.table import RUNNERS, gives, opened
from forestc.backends.vectors import Vectors, vectors
from forestc.checks.agreement import agreement
from forestc.checks.board import BOARD, BoardEngine, board_engines
from forestc.checks.coverage import CoverageOfVectors
from forestc.checks.proof import need_provers
from forestc.checks.proof import prove as prove_design
from forestc.checks.result import CheckResult, EngineResult
from forestc.errors import CheckError, MissingToolError, OptionError, known_names, opt, said
from forestc.fields.options import takes
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.forest.outputs import LABEL, OUTPUTS
from forestc.manifest.checked import write_check
from forestc.manifest.design import Design, design_of
from forestc.manifest.notebook import shows
from forestc.options.commands import CheckOptions
from forestc.report.tables import check_text
from forestc.rows.batches import ArrayRows, Rows
from forestc.rows.given import fingerprint, rows_from, unseen_notes
from forestc.rows.range_files import ranges_again
from forestc.rows.ranges import made_rows, outside
from forestc.toolchain.run import together

CHUNK = 65536


shows(CheckResult, "text")(check_text)


@takes(CheckOptions)
def check(options: CheckOptions) -> CheckResult:
    """Compares a compiled folder with its quantized forest, and the forest with the model.

    Engines run all given rows, rows on every threshold and one step beside it, and random rows. By default one engine
    runs each generated file, the simulator runs the netlist, and slow engines (Icarus, the Python module) run a sample.

    Returns
    -------
    CheckResult
        Differences of each engine, agreement with the model, and proofs.

    Raises
    ------
    OptionError
        If an engine is unknown, or nothing is given to check on.
    RowsError
        If the rows do not match the model.
    CheckError
        If the tool of a named or required engine is not installed.
    MissingToolError
        If a prover is not installed.
    BoardError
        If the board does not answer, or has another design.
    ForestcError
        If the folder can't be read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> forestc.check("iris", X, label=y, engines=["netlist"])
    <CheckResult ok: differences of netlist 0>
    """
    design = design_of(options.design)
    _refuse(design, options)
    given = _given(design, options)
    digests, changed = design.digests(), design.changed_files()
    with board_engines(design, options.port, options.baud) as boards:
        engines, counts, coverage = _run_engines(design, options, given, boards)
        on_board = {name: {"port": options.port, **board.figures()} for name, board in boards.items()}
    agreed = None
    if given.record is not None:
        options.progress("agreement with the model")
        agreed = agreement(design.model, design.forest, given.rows)
    proof = prove_design(design, options.progress, native=options.native) if options.prove else None
    options.progress("coverage")
    left_out = (
        f"{name}: left out {engine.left_out} rows that the types of its inputs do not hold, as {engine.unfit}"
        for name, engine in engines.items()
        if engine.unfit
    )
    sent = (
        f"{name}: {figures['rows_per_second']:,.0f} rows a second, {figures['resends']:,} requests sent again"
        for name, figures in on_board.items()
    )
    notes = [*left_out, *sent, *(agreed.notes + agreed.doubts(design.model) if agreed else ()), *given.notes]
    result = CheckResult(engines, counts, agreed, coverage.figures(), proof, changed, notes=tuple(notes))
    if options.record:
        results = {"rows": given.record, **_recorded(result)}
        note = write_check(design.folder, (design.manifest["hash"], digests), results)
        notes += [note] if note else []
    return replace(result, figures=_figures(result) | on_board | {"notes": notes}, notes=tuple(notes))


def _refuse(design: Design, options: CheckOptions) -> None:
    """Raises an error for unknown engines, missing provers, or nothing to prove."""
    for name in options.engines or ():
        if name == BOARD and options.port is None:
            raise OptionError("no port of a board is given", where=opt.port, do=f"add {opt.port:PORT}")
        if name not in (*RUNNERS, BOARD):
            raise OptionError(f"unknown engine {name!r}", where=opt.engines, do=known_names(name, RUNNERS))
    if options.prove:
        if design.has_hardware or not gives(design.targets, Gives.WALKERS):
            _ = design.netlist  # A design without a netlist raises here.
        need_provers(design, options.native)


@dataclass(frozen=True)
class _Given:
    rows: Rows  # rows to check on, given or generated
    record: dict[str, Any] | None = None  # describes the rows in check.json; None without rows
    notes: tuple[str, ...] = ()  # messages for the user


def _given(design: Design, options: CheckOptions) -> _Given:
    """Opens or generates the rows on which to check. Raises OptionError if neither rows nor a proof are
    requested."""
    given = _Given(ArrayRows(np.empty((0, design.model.width))))
    ranges = ranges_again(design.manifest.get("made", {}).get("rows", {}), design.model)
    words = design.manifest["options"]["outputs"]
    if options.label is not None and OUTPUTS.get(words, LABEL).read is not None:
        raise OptionError(f"no label judges the design's outputs, {words}", where=opt.label, do="remove it")
    if options.rows is not None:
        rows = rows_from(options.rows, design.model, options.label)
        given = _Given(rows, fingerprint(options.rows, rows), unseen_notes(rows, design.model, options.unseen))
    elif ranges is not None:
        rows = made_rows(design.model, ranges, (design.forest,))
        given = _Given(rows, fingerprint(rows, rows) | {"made": True})
    elif not options.prove:
        raise OptionError(
            "no rows are given to check on",
            where=opt.rows,
            do=f"give {opt.rows:FILE}, or {opt.prove}",
        )
    if ranges is not None and (beyond := outside(ranges, design.model, given.rows)):
        given = replace(given, notes=(*given.notes, beyond))
    return given


def _run_engines(
    design: Design, options: CheckOptions, given: _Given, boards: Mapping[str, BoardEngine]
) -> tuple[dict[str, EngineResult], dict[str, int], CoverageOfVectors]:
    """Returns {engine: result}, {origin: number of vectors}, and the vectors' coverage of leaves."""
    files, forest = design.manifest["files"], design.forest
    asked = [name for name, own in RUNNERS.items() if options.every or not own.asked]
    fitting = [name for name in asked if (role in files if (role := RUNNERS[name].role) else design.has_hardware)]
    results = {name: EngineResult() for name in dict.fromkeys(options.engines or fitting) if name not in boards}
    all_of_it = options.every or bool(options.engines)
    samples = {} if all_of_it else {name: runner.sample for name, runner in RUNNERS.items()}
    counts, coverage = dict[str, int](), CoverageOfVectors(forest)
    with tempfile.TemporaryDirectory(prefix="forestc-check-") as scratch:
        strict = bool(options.engines) or options.require
        build = _Build(design, Path(scratch), results, strict=strict, progress=options.progress)
        built = build.engines([*results]) if all_of_it or options.require else build.one_for_each_file()
        results |= {name: EngineResult(board.tool, differences=0) for name, board in boards.items()}
        built |= boards
        for chunk in _chunks(vectors(forest, given.rows, options.random_rows, options.seed)):
            counts[chunk.origin] = counts.get(chunk.origin, 0) + len(chunk.words)
            truth = evaluate_words(forest, chunk.words)
            coverage.add(chunk.origin, truth.leaves)
            options.progress(f"{', '.join(built)}: {sum(counts.values())} vectors")
            together(
                [
                    partial(_compare, engine, results[name], chunk, truth, samples.get(name, 0))
                    for name, engine in built.items()
                ]
            )
    return results, counts, coverage


def _recorded(result: CheckResult) -> dict[str, Any]:
    problem, proof = result.problem(), result.proof
    return {
        "result": "ok" if result.ok else "failed",
        "problem": None if problem is None else str(problem),
        "vectors": result.vectors,
        "engines": {name: asdict(engine) for name, engine in result.engines.items()},
        "proof": None if proof is None else {"verdict": proof.verdict, "parts": [asdict(part) for part in proof.parts]},
        "agreement": None if result.agreement is None else asdict(result.agreement),
        "changed": list(result.changed),
    }


@dataclass(frozen=True)
class _Build:
    """Builds the engines that run a design's files."""

    design: Design
    scratch: Path
    found: dict[str, EngineResult]  # results, which note why an engine can't run
    strict: bool  # True to raise CheckError for a missing tool
    progress: Callable[[str], None]

    def engines(self, names: Sequence[str]) -> dict[str, Engine]:
        if names:
            self.progress(f"building {', '.join(names)}")
        if self.design.has_hardware:
            _ = self.design.netlist  # lowers the netlist once, before several engines read it
        engines = together([partial(self._engine, name) for name in names])
        return {name: engine for name, engine in zip(names, engines, strict=True) if engine is not None}

    def one_for_each_file(self) -> dict[str, Engine]:
        """Returns a tool that runs the design (an engine) for each file. A stand-in is built only if the engine that it
        replaces can't run."""
        stand_ins = [name for name in self.found if RUNNERS[name].stands_in_for in self.found]
        built = self.engines([name for name in self.found if name not in stand_ins])
        built |= self.engines([name for name in stand_ins if RUNNERS[name].stands_in_for not in built])
        for name in stand_ins:
            if name not in built and not self.found[name].why:
                self.found[name].why = said(f"{RUNNERS[name].stands_in_for} runs the same file; {opt.all} runs both")
        return built

    def _engine(self, name: str) -> Engine | None:
        folder, result = self.scratch / name, self.found[name]
        folder.mkdir()
        start = time.perf_counter()
        try:
            engine = opened(name, self.design, folder)
        except MissingToolError as error:
            if self.strict:
                raise CheckError(f"the engine {name} can't run: {error.what}", where=opt.engines, do=error.do) from None
            result.why = f"{error.what}; {error.do}"
            return None
        result.differences = 0
        result.tool = engine.tool
        result.seconds = time.perf_counter() - start
        return engine


def _compare(engine: Engine, result: EngineResult, chunk: Vectors, truth: Evaluation, sample: int) -> None:
    """Compares an engine's results with the evaluator's. sample: the most vectors to compare; 0 compares all."""
    start = time.perf_counter()
    step = -(-len(chunk.words) // sample) if sample else 1
    if step > 1:
        truth = truth.every(step)
        chunk = Vectors(chunk.words[::step], chunk.raw[::step], chunk.origin)
    difference = engine.compare(chunk, truth)
    result.seconds += time.perf_counter() - start
    if difference.count and not result.differences:
        words = chunk.words[min(difference.first, len(chunk.words) - 1)].tolist()
        given = f"row {list(difference.given)}" if difference.given else f"words {words}"
        shown = f" gives {list(difference.got)}" if difference.got else ""
        result.first = (
            f"{chunk.origin} vector {difference.first}, {given}{shown}, should give {list(difference.expected)}"
        )
    result.differences = (result.differences or 0) + difference.count
    result.vectors += len(chunk.words) - difference.left_out
    result.left_out += difference.left_out
    result.unfit = result.unfit or difference.why


def _chunks(parts: Iterator[Vectors]) -> Iterator[Vectors]:
    """Joins vectors of one origin, because some engines start a program per chunk."""
    waiting: list[Vectors] = []
    for part in parts:
        if waiting and (part.origin != waiting[0].origin or sum(len(v.words) for v in waiting) >= CHUNK):
            yield _joined(waiting)
            waiting = []
        waiting.append(part)
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Vectors]) -> Vectors:
    return Vectors(np.concatenate([v.words for v in parts]), np.concatenate([v.raw for v in parts]), parts[0].origin)


def _figures(result: CheckResult) -> dict[str, Any]:
    engines, agreed, proof = result.engines, result.agreement, result.proof
    return {
        "rows": agreed.rows if agreed else 0,
        "vectors": result.vectors,
        "compared": {name: engine.vectors for name, engine in engines.items()},
        "differences": {name: engine.differences for name, engine in engines.items()},
        "agreement": agreed.agreement if agreed else None,
        "accuracy": {"model": agreed.model if agreed else None, "compiled": agreed.compiled if agreed else None},
        "rms_difference": agreed.rms_difference if agreed else None,
        "largest_difference": agreed.largest_difference if agreed else None,
        "tools": {name: engine.tool or f"not run: {engine.why}" for name, engine in engines.items()},
        "seconds": {name: round(engine.seconds, 3) for name, engine in engines.items()},
        "proved": None if proof is None else proof.proved,
        "verdict": None if proof is None else proof.verdict,
        "proof": [] if proof is None else [asdict(part) for part in proof.parts],
        "changed": list(result.changed),
        "coverage": result.coverage,
    }
