"""check: compares the files of a compiled folder with its quantized forest, and that with the model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from forestc.checks.agreement import Agreement, agreement
from forestc.checks.coverage import CoverageOfVectors
from forestc.checks.engines import Difference, Engine
from forestc.checks.proof import Proof, need_provers
from forestc.checks.proof import prove as prove_design
from forestc.checks.record import check_record, write_record
from forestc.checks.result import CheckResult, EngineResult
from forestc.checks.table import ENGINES, ROLES
from forestc.checks.vectors import Vectors, vectors
from forestc.errors import CheckError, MissingToolError, OptionError, known_names
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.inputs.model import InputModel
from forestc.inputs.stimuli import stimuli
from forestc.inputs.text import read_inputs, text_hash
from forestc.manifest.design import Design, open_design
from forestc.manifest.notebook import prints
from forestc.options.commands import CheckOptions
from forestc.options.fields import takes
from forestc.report.tables import check_text
from forestc.rows.batches import ArrayRows
from forestc.rows.files import rows_from
from forestc.rows.fingerprint import fingerprint
from forestc.rows.made_rows import made_rows
from forestc.rows.range_files import ranges_again
from forestc.rows.ranges import outside
from forestc.toolchain.run import together

CHUNK = 65536


prints(CheckResult)(check_text)


@takes(CheckOptions)
def check(options: CheckOptions) -> CheckResult:
    """Compares a compiled folder with its quantized forest, and the forest with the model.

    Engines run all given rows, rows on every threshold and one step beside it, and `random_rows` random ones. By
    default one engine runs each generated file, the simulator runs the netlist, and slow engines (Icarus, the Python
    module) run a sample. A folder that was compiled without rows needs none here: rows are generated in its ranges, as
    by `compile` (`forestc.rows.made_rows`).

    inputs: an input model, or its file: `count` rows are drawn from it, and rows for each leaf that those miss, so that
    every leaf that any row can reach is reached. seed: of these rows and of the random ones. The rows drawn say nothing
    of agreement with the model: that needs rows.

    engines: run these, on all vectors. every: run all engines of the design's files, on all vectors. require: raise
    CheckError if a tool is not installed, as for named engines; otherwise its engine is reported as not run. prove:
    also prove equality for every input (`forestc.checks.proof`), which needs no rows; native: with the yosys on the
    PATH. record: write the results, with the hashes of what was checked, to check.json in the folder;
    `Design.last_check` reads it. Raises ForestcError for rows or folders that can't be read.
    """
    design = options.design if isinstance(options.design, Design) else open_design(options.design)
    rows, inputs, engines, progress = options.rows, options.inputs, options.engines, options.progress
    for name in engines or ():
        if name not in ENGINES:
            raise OptionError(f"unknown engine {name!r}", do=known_names(name, ENGINES))
    if options.prove:
        if design.has_hardware or "engine" not in design.targets:
            _ = design.netlist  # a design without one is refused here
        need_provers(design, options.native)
    ranges = ranges_again(design.manifest.get("made", {}).get("rows", {}), design.model)
    unseen = ranges if rows is None else None
    if rows is None and unseen is None and inputs is None and not options.prove:
        raise OptionError("no rows are given to check on", do="give --rows FILE, --inputs FILE, or --prove")
    none = ArrayRows(np.empty((0, design.model.width)))
    opened = none if rows is None else rows_from(rows, design.model, options.label)
    if unseen is not None:
        rows = opened = made_rows(design.model, unseen, (design.forest,))
    coverage, drawn = CoverageOfVectors(design.forest), None
    if inputs is not None:
        progress("drawing rows")
        inputs = inputs if isinstance(inputs, InputModel) else read_inputs(inputs)
        drawn = stimuli(inputs, design.model, design.forest, options.count, options.seed)
    digests, rows_record = design.digests(), None if rows is None else fingerprint(rows, opened)
    if rows_record is not None and unseen is not None:
        rows_record |= {"made": True}
    files = design.manifest["files"]
    fitting = [name for name in ENGINES if (ROLES[name] in files if ROLES[name] else design.has_hardware)]
    wanted = list(dict.fromkeys(engines or fitting))
    all_of_it = options.every or bool(engines)
    by_engine: dict[str, EngineResult] = {name: EngineResult() for name in wanted}
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="forestc-check-") as scratch:
        build = _Build(design, Path(scratch), by_engine, strict=bool(engines) or options.require, progress=progress)
        stand_ins = (
            [] if all_of_it or options.require else [name for name in wanted if ENGINES[name].stands_in_for in wanted]
        )
        built = build.engines([name for name in wanted if name not in stand_ins])
        built |= build.engines([name for name in stand_ins if ENGINES[name].stands_in_for not in built])
        for name in stand_ins:
            if name not in built and not by_engine[name].why:
                by_engine[name].why = f"{ENGINES[name].stands_in_for} runs the same file; --all runs both"
        likely = None if drawn is None else ArrayRows(drawn.rows)
        for chunk in _chunks(vectors(design.forest, opened, options.random_rows, options.seed, inputs=likely)):
            counts[chunk.origin] = counts.get(chunk.origin, 0) + len(chunk.words)
            truth = evaluate_words(design.forest, chunk.words)
            coverage.add(chunk.origin, truth.leaves)
            progress(f"{', '.join(built)}: {sum(counts.values())} vectors")
            together(
                [
                    partial(_compare, engine, by_engine[name], chunk, truth, 0 if all_of_it else engine.sample)
                    for name, engine in built.items()
                ]
            )
    agreed = None
    if rows is not None:
        progress("agreement with the model")
        agreed = agreement(design.model, design.forest, opened)
    proof = prove_design(design, progress, native=options.native) if options.prove else None
    changed = design.changed_files()
    left_out = (
        f"{name}: left out {outcome.left_out} rows that the types of its inputs do not hold, as {outcome.unfit}"
        for name, outcome in by_engine.items()
        if outcome.left_out
    )
    beyond = "" if ranges is None or rows is None else outside(ranges, design.model, opened)
    notes = (*left_out, *(agreed.notes if agreed else ()), *filter(None, [beyond]))
    progress("coverage")
    covered = coverage.covered(drawn)
    figures = _figures(by_engine, counts, agreed, proof) | {"changed": list(changed), "notes": list(notes)}
    figures |= {"coverage": covered.by_origin, "inputs": covered.inputs}
    result = CheckResult(by_engine, counts, agreed, covered, proof, changed, figures, notes)
    if not options.record:
        return result
    asked = {"engines": list(engines or ()), "all": options.every, "random": options.random_rows}
    asked |= {"seed": options.seed, "prove": options.prove}
    if isinstance(inputs, InputModel):
        asked |= {"count": options.count}
    results = {"asked": asked, "rows": rows_record, **_recorded(result)}
    if isinstance(inputs, InputModel):
        results["inputs"] = {"sha256": text_hash(inputs), **(covered.inputs or {})}
    note = write_record(design.folder, check_record(design, digests, results))
    return replace(result, notes=(*notes, note), figures={**figures, "notes": [*notes, note]}) if note else result


def _recorded(result: CheckResult) -> dict[str, Any]:
    """The results, as check.json holds them."""
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
    """Builds the engines of a design, each in its own folder. strict: raise CheckError for a missing tool."""

    design: Design
    scratch: Path
    found: dict[str, EngineResult]
    strict: bool
    progress: Callable[[str], None]

    def engines(self, names: Sequence[str]) -> dict[str, Engine]:
        """The engines that can run; `found` gets the reason why others can't."""
        if names:
            self.progress(f"building {', '.join(names)}")
        if self.design.has_hardware:
            _ = self.design.netlist  # lowered once, before several read it
        made = together([partial(self._engine, name) for name in names])
        return {name: engine for name, engine in zip(names, made, strict=True) if engine is not None}

    def _engine(self, name: str) -> Engine | None:
        folder, result = self.scratch / name, self.found[name]
        folder.mkdir()
        start = time.perf_counter()
        try:
            engine = ENGINES[name](self.design, folder)
        except MissingToolError as error:
            if self.strict:
                raise CheckError(f"the engine {name} can't run: {error.what}", do=error.do) from None
            result.why = f"{error.what}; {error.do}"
            return None
        result.differences = 0
        result.tool = engine.tool
        result.seconds = time.perf_counter() - start
        return engine


def _compare(engine: Engine, result: EngineResult, chunk: Vectors, truth: Evaluation, sample: int) -> None:
    """Compares an engine with the evaluator on a chunk, or on about `sample` vectors spread over it."""
    start = time.perf_counter()
    step = -(-len(chunk.words) // sample) if sample else 1
    if step > 1:
        truth = truth.every(step)
        chunk = Vectors(chunk.words[::step], chunk.raw[::step], chunk.origin)
    _add(result, engine.compare(chunk, truth), chunk)
    result.seconds += time.perf_counter() - start


def _chunks(parts: Iterator[Vectors]) -> Iterator[Vectors]:
    """The vectors in larger chunks of one origin, as a program is started for each chunk."""
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


def _add(result: EngineResult, difference: Difference, chunk: Vectors) -> None:
    if difference.count and not result.differences:
        words = chunk.words[min(difference.first, len(chunk.words) - 1)].tolist()
        given = f"row {list(difference.given)}" if difference.given else f"words {words}"
        shown = f" gives {list(difference.got)}" if difference.got else ""
        result.first = (
            f"{chunk.origin} vector {difference.first}, {given}{shown}, should give {list(difference.wanted)}"
        )
    result.differences = (result.differences or 0) + difference.count
    result.vectors += len(chunk.words) - difference.left_out
    result.left_out += difference.left_out
    result.unfit = result.unfit or difference.why


def _figures(
    by_engine: dict[str, EngineResult], counts: dict[str, int], agreed: Agreement | None, proof: Proof | None
) -> dict[str, Any]:
    return {
        "rows": agreed.rows if agreed else 0,
        "vectors": counts,
        "compared": {name: result.vectors for name, result in by_engine.items()},
        "differences": {name: result.differences for name, result in by_engine.items()},
        "agreement": agreed.agreement if agreed else None,
        "accuracy": {"model": agreed.model if agreed else None, "compiled": agreed.compiled if agreed else None},
        "largest_error": agreed.largest_error if agreed else None,
        "tools": {name: result.tool or f"not run: {result.why}" for name, result in by_engine.items()},
        "seconds": {name: round(result.seconds, 3) for name, result in by_engine.items()},
        "proved": None if proof is None else proof.proved,
        "verdict": None if proof is None else proof.verdict,
        "proof": [] if proof is None else [asdict(part) for part in proof.parts],
    }
