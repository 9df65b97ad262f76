"""Implements `compile`: turns a model and its rows into a folder of equivalent Verilog, C and other files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from html import escape
from pathlib import Path
from typing import Any, Literal

from forestc.backends.base import Artifact, Gives
from forestc.backends.c import types as c_types
from forestc.backends.c.choice import budget_note, chosen_layout
from forestc.backends.c.inputs import unfit
from forestc.backends.c.options import COptions
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.raw import by_position, column_types
from forestc.backends.c.rough import rough_costs
from forestc.backends.engine.files import engine_of
from forestc.backends.names import identifier, plain
from forestc.backends.source import Source
from forestc.backends.stream import axi_stream
from forestc.backends.table import built, cores, gives, gives_only, refuse, written
from forestc.backends.vectors import Vectors
from forestc.checks.agreement import Agreement, accuracy_record, agreement, set_aside
from forestc.checks.bench import bench_vectors, bench_words, raw_rows, sample_vectors, selftest_answers, simulate_some
from forestc.compilation.clock import latency_for
from forestc.compilation.layouts import SMALLER, is_measured, measured_choice
from forestc.compilation.level_search import PlannedRun, check_rows_that_score, planned_run
from forestc.compilation.record import command_line, leaves_note, model_record, steps_record, synthesis_record, versions
from forestc.compilation.request import Request
from forestc.compilation.synthesis import CoreCircuit, check_fits, synthesis_figures
from forestc.costs.estimate import estimates
from forestc.costs.firmware import DEFAULT_CPU
from forestc.engine.capacity import Capacity
from forestc.engine.image import image_of
from forestc.engine.sizing import capacity_of
from forestc.errors import RowsError, opt, said
from forestc.exploration.curve import curve_files
from forestc.fields.options import takes
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_bits
from forestc.forest.summary import html_table
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import design_hash, manifest, sealed
from forestc.manifest.design import (
    MANIFEST,
    MODEL,
    QUANTIZED,
    REPORT,
    Design,
    check_writable,
    open_design,
    rewrite,
    write_folder,
)
from forestc.netlist.ir import Netlist
from forestc.options.commands import SynthOptions
from forestc.options.compile import CompileOptions
from forestc.passes.base import Pass
from forestc.passes.pipeline import Step
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.word_formats import comparator_bits
from forestc.report.compiled import HEADS, answers, closing, compile_tables
from forestc.report.markdown import compile_report
from forestc.report.page.notebook import design_html
from forestc.report.widths import as_text
from forestc.rows.batches import Rows
from forestc.rows.cluster import on_cluster
from forestc.rows.columns import accept_missing, name_classes, without_labels
from forestc.rows.given import fingerprint, refuse_sampled, rows_for_model, unseen_notes
from forestc.rows.groups import weighted
from forestc.rows.range_files import ranges_record
from forestc.rows.ranges import Ranges, have_rows, made_rows, ranges_of
from forestc.search.levels import LevelPlan
from forestc.toolchain.firmware import CPUS


class CompileFigures(dict[str, Any]):
    """A dictionary with the figures of `forestc compile --json` and a short repr."""

    def __repr__(self) -> str:
        head = f"{self['name']}: {self['distinct_conditions']:,} comparators, {self['comparator_bits']:,} bits"
        return f"<{head}, agreement {self['agreement']:.4f} on {self['rows']:,} rows; keys: {', '.join(self)}>"


@dataclass(frozen=True)
class Compiled:
    """Result of `compile`. As text it is the tables of the command line.

    Attributes
    ----------
    design : Design
        The written folder.
    steps : tuple of Step
        The passes that ran, each with its promises and figures.
    agreement : Agreement
        How far the compiled forest agrees with the model on the rows.
    figures : dict
        The figures of `forestc compile --json`. Their keys stay the same between versions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> compiled.agreement.agreement, compiled.figures["distinct_conditions"]
    (1.0, 3)
    """

    design: Design
    steps: tuple[Step, ...]
    agreement: Agreement
    figures: CompileFigures

    def summary(self, width: int = 80, *, verbose: bool = False) -> str:
        """Returns the tables of the command line as text.

        Parameters
        ----------
        width : int, default=80
            Width in characters.
        verbose : bool, default=False
            All tables and notes, and the seconds of each stage.

        Returns
        -------
        str
            The tables.
        """
        return as_text(compile_tables(self.figures, verbose=verbose), width)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        held_out = self.figures["measured"]["held_out"]
        agreed, kind = (Agreement(**held_out), "held-out ") if held_out else (self.agreement, "")
        return f"<Compiled {self.design!r}, {agreed} on {agreed.rows:,} {kind}rows>"

    def _repr_html_(self) -> str:
        table = html_table(f"compiled: {self.figures['name']}", HEADS, answers(self.figures))
        return f"{table}<p>{escape(closing(self.figures))}</p>{design_html(self.design)}"


@dataclass
class Compilation:
    """A compilation in progress. Each stage sets the fields below the comment with its name."""

    request: Request  # the checked options
    warnings: list[str] = field(default_factory=list)  # messages for the user
    details: list[str] = field(default_factory=list)  # messages that --verbose and report.md show
    seconds: dict[str, float] = field(default_factory=dict)  # seconds of each stage
    # Fields that `load` sets.
    source: Forest = field(init=False)
    given: Rows = field(init=False)
    observed: Rows | None = None  # the rows, if their ranges are taken
    record: dict[str, Any] = field(init=False)
    c: COptions = field(init=False)
    # Fields that `passes` sets; the rows are given, or generated in ranges.
    planned: PlannedRun = field(init=False)
    steps: tuple[Step, ...] = field(init=False)
    forest: Forest = field(init=False)
    rows: Rows = field(init=False)
    firmware: dict[str, Any] | None = None
    # The stage `lower` sets `netlist`, and may set the latency in `lowering`.
    netlist: Netlist | None = None
    lowering: LoweringOptions = field(init=False)
    # Fields that `emit` sets.
    capacity: Capacity | None = None
    artifacts: tuple[Artifact, ...] = ()
    built: dict[str, bytes] = field(default_factory=dict)  # files that tools made of others
    content: dict[str, Any] = field(init=False)
    # Fields that `check` sets.
    agreed: Agreement = field(init=False)
    held_out: Agreement | None = None
    # Fields that `estimate`, `write` and synthesis set.
    figures: dict[str, Any] = field(default_factory=dict)
    made: dict[str, Any] = field(init=False)

    @property
    def options(self) -> CompileOptions:
        return self.request.options

    @property
    def folder(self) -> Path:
        return Path(self.options.out)

    @property
    def notes(self) -> list[str]:
        return [*self.warnings, *self.details]

    @cached_property
    def printed(self) -> str:
        return print_forest(self.forest)

    @cached_property
    def curve(self) -> dict[str, str]:
        return curve_files(self.planned, self.request)

    @cached_property
    def sample_vectors(self) -> tuple[Vectors, ...]:
        return tuple(sample_vectors(self.forest, self.rows))


def quantize(
    model: object,
    rows: object = None,
    truth: object = None,
    passes: str | Sequence[Pass] | None = None,
    *,
    held_out: object = None,
    ranges: object = None,
    level: int | str | None = None,
    tolerance: float | str | None = None,
    missing: Literal["auto", "always"] = "auto",
    rows_are_sampled: bool = False,
) -> Forest:
    """Runs passes on a model and returns the integer forest.

    Parameters
    ----------
    model : str, path or fitted model
        Anything that `load` takes.
    rows : str, path, array or data frame, optional
        Rows on which input formats and leaf bits are chosen. Default: formats come from the thresholds, exact.
    truth : array-like of shape (rows,) or (rows, targets), optional
        Labels of the rows, or the names of their columns.
    passes : str or sequence of Pass, optional
        Passes to run instead of the level's.
    held_out : str, path, array, pair (rows, labels) or float, optional
        Rows that score passes, or the share of the rows to set aside.
    ranges : str, path or dict, optional
        Ranges of the features, used instead of rows.
    level : int, optional
        0 (exact) to 3 (smallest). Default: 1.
    tolerance : float or str, optional
        At levels 2 and 3: the accuracy that may be lost on held-out rows, or on folds of the rows without them.
    missing : {"auto", "always"}, default="auto"
        Accept missing values where rows have some, or wherever the model does.
    rows_are_sampled : bool, default=False
        Take files of rows that `sample_rows` invented, which are refused otherwise.

    Returns
    -------
    Forest
        The quantized forest.

    Raises
    ------
    ModelError
        If the model can't be read exactly.
    RowsError
        If the rows do not match the model.
    OptionError
        If options are invalid or contradict each other.
    CheckError
        If a pass broke its promise.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> forestc.quantize(model, X, y)
    <Forest 'forest', quantized: 1 trees, 7 nodes, 4 columns, 3 classes>
    """
    refuse_sampled(rows, held_out, allowed=rows_are_sampled)
    request = Request.of(
        CompileOptions(
            model, rows, None, ranges=ranges, label=truth, held_out=held_out, level=level, tolerance=tolerance,
            passes=passes, missing=missing,
        )
    )  # fmt: skip
    check_rows_that_score(request)
    opened, source, _ = rows_for_model(rows, accept_missing(load(model), missing), truth, ranges)
    planned = planned_run(source, opened, request)
    return planned.run(source)[0]


@takes(CompileOptions)
def compile(options: CompileOptions) -> Compiled:
    """Compiles a model: writes a folder with the targets, their manifest and a report.

    If it fails, nothing is written. If only the synthesis fails or is interrupted, the rest of the folder is written,
    and the error says so.

    Returns
    -------
    Compiled
        The design, and the figures of the command. `figures["notes"]` says how the model was read.

    Raises
    ------
    ModelError
        If the model can't be read exactly.
    RowsError
        If the rows do not match the model.
    OptionError
        If options are invalid or contradict each other.
    CheckError
        If a pass broke its promise.
    ToolError
        If a tool for synthesis is missing or fails.
    ForestcError
        If the folder can't be written, or the design does not fit the device.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> forestc.compile(model, X, "iris", label=y, c_layout="nodes").design
    <Design 'forest' in 'iris': c, verilog>
    """
    run = Compilation(Request.of(options))
    check_rows_that_score(run.request)
    check_writable(run.folder)
    for name, stage in _stages(run.request):
        options.progress(name)
        start = time.perf_counter()
        stage(run)
        run.seconds[name] = round(time.perf_counter() - start, 3)
    if options.device is not None and not options.no_synth:
        _synthesize(run)
    figures = CompileFigures({**run.figures, "seconds": run.seconds})
    return Compiled(open_design(run.folder), run.steps, run.agreed, figures)


def _stages(request: Request) -> Iterator[tuple[str, Callable[[Compilation], None]]]:
    yield "load", _load
    yield "passes", _run_passes
    if gives(request.targets, Gives.HEADER) and is_measured(request.options):
        yield "layouts of C", _measure_layouts
    if request.has_hardware:
        yield "lower", _lower
    yield "emit", _emit
    yield "check", _compare
    if cores(request.targets):
        yield "estimate", _estimate
    yield "write", _write


def _load(run: Compilation) -> None:
    options = run.options
    refuse_sampled(options.rows, options.held_out, allowed=options.rows_are_sampled)
    given = {name: getattr(options, name) for name in ("trust_pickle", "iterations", "ap_types", "sum")}
    source = load(options.model, **given)
    source = name_classes(replace(source, name=options.name or source.name), options.classes)
    source = accept_missing(source, options.missing)
    run.given, run.source, row_notes = rows_for_model(
        options.rows, source, options.label, options.ranges, (options.groups, options.weights)
    )
    if isinstance(run.given, Ranges):
        run.observed = run.given.observed
        run.record = ranges_record(options.ranges, run.given, run.source)
        run.record |= {} if run.observed is None else fingerprint(options.rows, run.observed)
    else:
        run.record = fingerprint(options.rows, run.given)
        run.given = weighted(run.given, options.weights, options.rows)
    rows = run.observed if isinstance(run.given, Ranges) else run.given
    unseen = () if rows is None else unseen_notes(rows, run.source, options.unseen)
    renamed = _renamed(run.source.name)
    asked = renamed if options.name else ()
    run.warnings = [*map(said, run.source.provenance.notes), *unseen, *asked]
    run.details = [*row_notes, *(() if asked else renamed)]
    for note in run.notes:
        options.progress(note)
    if (read := run.request.words.read) is not None:
        run.source, run.given = read(run.source), without_labels(run.given)
        run.observed = None if run.observed is None else without_labels(run.observed)
    run.c, run.lowering = options, run.request.lowering
    if gives(run.request.targets, Gives.HEADER) and run.c.raw:
        if run.c.c_inputs == "float":
            c_types.float_inputs(run.source)
        run.c = replace(run.c, c_types=by_position(run.source, run.c.c_types))
        _refuse_unfit(run.source, run.given, run.c)


def _renamed(name: str) -> tuple[str, ...]:
    used = identifier(name)
    if used == name:
        return ()
    word = f"m_{name}" == used and not name[0].isdigit()
    why = "is a word of C, C++, Verilog, VHDL or of the files" if word else "is no name there, or is too long"
    return (f"files, modules and functions are named {used!r}: {name!r} {why}",)


def _refuse_unfit(source: Forest, rows: Rows, c: COptions) -> None:
    """Raises RowsError if rows or ranges exceed the header's integer types."""
    types, start = column_types(source, c.c_types), 0
    if c.c_inputs == "float" or not any(kind.whole for kind in types):
        return
    if isinstance(rows, Ranges):
        for feature, column in zip(source.features, source.row_columns, strict=True):
            kind, given = types[column], rows.of(feature)
            if kind.whole and not (kind.ends[0] <= given.smallest and given.largest <= kind.ends[1] and given.whole):
                raise RowsError(
                    f"its range has other values than {kind.c}",
                    where=f"feature {feature.name!r}",
                    do=f"give a range of whole numbers that the type holds, or another type in {opt.c_types}",
                )
        return
    for batch in rows.batches():
        first = unfit(source, batch.X, types, start)
        if first:
            raise RowsError(first, where=opt.rows, do=f"give rows that fit, or another type in {opt.c_types}")
        start += len(batch.X)


def _run_passes(run: Compilation) -> None:
    source, request, options = run.source, run.request, run.options
    with on_cluster(run.given, options.scheduler) as placed:
        run.planned = planned = planned_run(source, placed, request)
        run.forest, steps = planned.run(source, options.progress, options.results)
    plan = planned.plan
    if plan.chosen is not None:  # Passes of a search state their settings, which held-out rows chose.
        steps = [step if step.held_out is None else step.with_report(chosen_on_held_out=True) for step in steps]
    run.steps = tuple(steps)
    if request.named is not None and request.level is not None:
        run.warnings.append(f"the passes that were named run instead of those of -O{request.level}")
    run.warnings += plan.notes
    if plan.evidence is not None and plan.chosen is not plan.trials[0]:
        run.details.append(f"-O{plan.level}, {plan.evidence.said(plan.tolerance)}")
    run.details += [leaves_note(step) for step in steps if "score_bound" in step.report]
    run.details += [step.report["note"] for step in steps if "note" in step.report]
    run.rows = run.given if run.observed is None else run.observed
    if isinstance(run.rows, Ranges):
        run.rows = made_rows(source, run.rows, (run.forest,))
    if plan.level == 0 and have_rows(run.given):
        run.details += _narrower(source, run.given, run.forest)
    if plan.size is not None and plan.size.figure == "flash" and run.c.c_layout == "auto" and not run.c.limits:
        run.c = replace(run.c, c_layout="smallest")  # what the level searched for
    if gives(request.targets, Gives.HEADER) and not is_measured(run.c):
        run.c = replace(run.c, c_layout=chosen_layout(run.forest, run.c))


def _narrower(source: Forest, rows: Rows, forest: Forest) -> list[str]:
    """Returns a note on features whose words are narrower in the ranges of the rows, if there are any.
    forest: the forest of words, made of `source`."""
    ranges = ranges_of(rows, source)
    within = {f.column: word_bits(f.number) for f in QuantizeInputs().run(source, ranges).forest.features}
    own = {f.column: word_bits(f.number) for f in forest.features if ranges.of(f).step}
    less = [column for column, bits in own.items() if within[column] < bits]
    before, after = (sum(bits[column] for column in less) for bits in (own, within))
    what = f"{len(less)} features hold whole numbers in the given rows: {opt.ranges:rows} makes their words, together "
    return [said(f"{what}{before} bits, {after}")] if less else []


def _measure_layouts(run: Compilation) -> None:
    """Measures the layouts of C and chooses one. The manifest records it, so the header is made again without a
    compiler."""
    choice = measured_choice(run.forest, run.c, run.sample_vectors, _smaller(run))
    run.c, run.firmware = replace(run.c, c_layout=choice.layout), choice.as_dict()


def _smaller(run: Compilation) -> str:
    level = run.request.level
    larger = (
        f"a larger {opt.tolerance}"
        if run.options.held_out is not None
        else f"{opt.held_out:FILE} and a larger {opt.tolerance}"
    )
    if run.request.named is not None or level is None or level < 2:
        ways = SMALLER
    else:
        ways = f"-O3 with {larger}" if level == 2 else larger
    notes = [note for note in run.planned.plan.notes if " is -O" in note]  # notes on why another level is used
    return "; ".join((ways, *notes))


def _lower(run: Compilation) -> None:
    """Makes the netlist. Raises ForestcError if it does not fit the device."""
    options = run.options
    if options.clock_mhz is not None and options.device is not None and run.request.has_estimate:
        latency = latency_for(run.forest, run.lowering, options.clock_mhz, options.device, options.progress)
        run.lowering = replace(run.lowering, latency=latency)
    run.netlist = lower(run.forest, run.lowering)
    if options.device is not None and not options.try_anyway:
        check_fits(run.netlist, options.device, anyway=True)


def _emit(run: Compilation) -> None:
    """Makes the files of the backends and most of the manifest."""
    request, forest, netlist, stream = run.request, run.forest, run.netlist, run.options.stream
    refuse(forest, request.targets)
    if gives(request.targets, Gives.WALKERS):
        given, name = run.options.engine, f"{identifier(forest.name)}_engine"
        run.capacity = capacity_of(forest, run.options.device, name) if given is None else engine_of(given)
    options = request.of_folder(run.c, run.lowering, run.capacity)
    source = Source(
        forest,
        netlist,
        options,
        design_hash(run.printed, options),
        cache(lambda: bench_vectors(forest, source.netlist, run.sample_vectors)),
        lambda: raw_rows(forest, source.netlist),
        partial(selftest_answers, forest, run.c, run.rows),
        lambda: bench_words(run.sample_vectors),
    )
    run.artifacts = written(source)
    run.built = built(request.targets, run.options, {artifact.path: artifact.text for artifact in run.artifacts})
    roles = {artifact.role: artifact.path for artifact in run.artifacts}
    guarantees = {step.name: step.promise for step in run.steps}
    run.content = manifest(forest, netlist, roles, options, guarantees, run.printed)
    if netlist is not None and stream is not None:
        run.content["stream"] = axi_stream.stream_object(netlist, stream)


def _compare(run: Compilation) -> None:
    run.agreed = agreement(run.source, run.forest, run.rows)
    if run.planned.held_out is not None:
        run.held_out = agreement(run.planned.copy or run.source, run.forest, run.planned.held_out)
    if run.netlist is not None:
        simulate_some(run.forest, run.netlist, run.sample_vectors)
    run.warnings += (*run.agreed.notes, *run.agreed.doubts(run.source))


def _estimate(run: Compilation) -> None:
    assert run.netlist is not None
    run.figures["estimate"] = estimates(run.netlist, run.options.device)
    if not run.figures["estimate"]:
        run.warnings.append(f"a netlist of {len(run.netlist.cells):,} cells gets no estimate: `forestc synth` counts")


def _write(run: Compilation) -> None:
    forest, agreed, held_out, given = run.forest, run.agreed, run.held_out, run.options.held_out
    level, share = run.planned.plan.as_dict(), run.planned.share
    held_out_record = None
    if run.planned.held_out is not None and held_out is not None:
        file = given[0] if isinstance(given, tuple) else given
        record = fingerprint(file, run.planned.held_out) if share is None else {"share": share}
        held_out_record = {**record, "rows": held_out.rows}
    if held_out is not None and share is not None:
        aside = set_aside(agreed, held_out)
        run.steps = tuple(replace(step, aside=aside) for step in run.steps)
        run.details.append(aside)
        level = None if level is None else level | {"keeps": f"{level['keeps']} ({aside})"}
    run.figures |= {} if run.capacity is None else {"engine": _engine_figures(forest, run.capacity)}
    run.warnings += [budget_note(forest, run.c)] if run.c.limits else []
    cpu = CPUS.get(run.c.cpu)
    if cpu and not cpu.doubles and run.c.quantizes and row_type(forest, run.c.c_quantizer).bits == 64:
        reads = f"{cpu.name} has no 64-bit floats, which the quantizer reads"
        run.warnings.append(f"{reads}; {opt.c_quantizer:float} makes one for 32 bits")
    generated = isinstance(run.given, Ranges) and run.observed is None
    measured = accuracy_record(forest, agreed, held_out, share is not None, generated)
    run.figures = _figures(run, level, measured) | run.figures
    run.figures |= {} if run.firmware is None else {"firmware": run.firmware}
    run.made = {
        "command": command_line(run.request),
        "options": run.request.as_dict(),
        "level": level,
        "versions": versions(run.source),
        "model": model_record(run.options.model, run.source),
        "rows": {**run.record, "rows": agreed.rows},
        "held_out": held_out_record,
        "accuracy": measured,
        "steps": steps_record(run.steps),
        **({} if run.firmware is None else {"firmware": run.firmware}),
    }
    files = _written(run)
    write_folder(run.folder, files | _described(run, files))


def _written(run: Compilation) -> dict[str, str | bytes]:
    """Returns the contents of the folder's files by path, without the report and the manifest."""
    files: dict[str, str | bytes] = {artifact.path: artifact.text for artifact in run.artifacts}
    return {**files, **run.built, **run.curve, MODEL: print_forest(run.source), QUANTIZED: run.printed}


def _described(run: Compilation, files: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
    report = {REPORT: compile_report(run.source, run.forest, run.steps, run.figures, run.made, files)}
    record = sealed({**run.content, "made": run.made}, {**files, **report})
    return {**report, MANIFEST: json.dumps(record, indent=1) + "\n"}


def _engine_figures(forest: Forest, capacity: Capacity) -> dict[str, int]:
    image = image_of(forest, capacity)
    return {
        "walkers": capacity.walkers,
        "clocks": max(image.clocks, capacity.beats),
        "bytes": len(image.bytes),
    }


def _sizes(plan: LevelPlan, *, curve: bool) -> dict[str, Any]:
    """Returns the sizes before and after a search, and the smallest design of its curve."""
    if plan.size is None or plan.chosen is None:
        return {}
    size: dict[str, Any] = {"figure": plan.size.figure, "on": plan.size.on, "unit": plan.unit}
    result = {"size": size | {"before": plan.trials[0].size, "after": plan.chosen.size}}
    if not curve:
        return result
    least = min(plan.curve, key=lambda trial: trial.size)
    return result | {
        "curve": {
            "designs": len(plan.curve),
            "smallest": least.size,
            "lost": least.loss.lost,
            "measure": least.loss.measure,
        }
    }


def _rough_flash(run: Compilation) -> dict[str, Any] | None:
    """Returns estimated bytes of flash if only C is written, and was not measured."""
    if run.firmware is not None or not gives_only(run.request.targets, Gives.HEADER):
        return None
    cpu, layout = run.c.cpu or DEFAULT_CPU, run.c.c_layout
    own = [costs.flash for name, costs in rough_costs(run.forest, cpu).items() if name == layout]
    return {"on": cpu, "layout": layout, "bytes": own[0]} if own else None


def _figures(run: Compilation, level: Mapping[str, Any] | None, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of `--json`. Their keys do not change between versions."""
    forest, netlist, agreed = run.forest, run.netlist, run.agreed
    table = forest.conditions
    numbers = (feature.number for feature in forest.features)
    takes = {feature.name for feature in run.source.features if feature.missing}
    return {
        "out": str(run.folder),
        "name": plain(forest.name),
        "targets": sorted(set(run.request.targets)),
        "passes": [step.figures() for step in run.steps],
        "trees": len(forest.trees),
        "nodes": forest.n_nodes,
        "conditions": sum(len(tree.inner) for tree in run.source.trees),
        "distinct_conditions": len(table.comparators),
        "comparator_bits": sum(comparator_bits(n, table.thresholds(index)) for index, n in enumerate(numbers)),
        "missing_dropped": sum(own.name in takes and not own.missing for own in forest.features),
        "flash": _rough_flash(run),
        "cells": None if netlist is None else len(netlist.cells),
        "latency_cycles": None if netlist is None else netlist.latency,
        "clocking": [] if netlist is None else netlist.clocking.words,
        "rows": agreed.rows,
        "accuracy": {"model": agreed.model, "compiled": agreed.compiled},
        "agreement": agreed.agreement,
        "rms_difference": agreed.rms_difference,
        "largest_difference": agreed.largest_difference,
        "notes": run.notes,
        "warnings": run.warnings,
        "files": run.content["files"],
        "level": level,
        "measured": measured,
        **_sizes(run.planned.plan, curve=bool(run.curve)),
    }


def _synthesize(run: Compilation) -> None:
    folder, device = run.folder, str(run.options.device)
    design = Design(folder, run.content, run.source, run.forest)
    synth_options = SynthOptions(folder, device, native=run.options.native, progress=run.options.progress)
    try:
        synthesis = synthesis_figures(CoreCircuit(design), synth_options)
    except BaseException as error:
        error.add_note(f"{folder} is whole but for the synthesis: forestc synth {folder} --device {device}")
        raise
    run.seconds |= synthesis["seconds"]
    run.figures["synthesis"] = synthesis
    wanted, reached = run.options.clock_mhz, synthesis.get("fmax_mhz")
    if wanted is not None and reached is not None and reached < wanted:
        do = f"ask for a little more {opt.clock}, which takes more stages"
        run.warnings.append(f"the design misses {wanted:g} MHz: routed at {reached:.1f} MHz; {do}")
    run.made["synthesis"] = synthesis_record(synthesis)
    rewrite(folder, _described(run, _written(run)))
