"""compile: turns a model and its rows into a folder of equivalent Verilog, C and HLS C++."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from forestc.backends import axi_stream
from forestc.backends.base import Artifact, Source
from forestc.backends.c import COptions, chosen_layout, layout_record
from forestc.backends.c import types as c_types
from forestc.backends.c.choice import SMALLER, budget_note
from forestc.backends.c.raw import by_position, column_types
from forestc.backends.engine import engine_of
from forestc.backends.names import identifier
from forestc.backends.table import written
from forestc.checks.agreement import Agreement, agreement
from forestc.checks.bench import bench_vectors, bench_words, few, raw_rows, selftest_answers, simulate_some
from forestc.checks.vectors import Vectors, unfit
from forestc.commands.synth import synth
from forestc.compilation.figures import CompileFigures, Figures
from forestc.compilation.level_search import Ground, ground_of
from forestc.compilation.record import (
    accuracy_record,
    command_line,
    leaves_note,
    model_record,
    set_aside,
    steps_record,
    synthesis_record,
    versions,
)
from forestc.compilation.request import Request
from forestc.costs.estimate import estimates
from forestc.engine.capacity import Capacity
from forestc.engine.image import image_of
from forestc.engine.sizing import capacity_of
from forestc.errors import RowsError
from forestc.forest.ir import Forest
from forestc.forest.summary import html_figures
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.inputs.coverage import with_visits
from forestc.inputs.model import InputModel
from forestc.inputs.text import read_inputs, text_hash
from forestc.lowering.clock import latency_for
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
    write_folder,
)
from forestc.netlist.ir import Netlist
from forestc.options.compile import CompileOptions
from forestc.options.fields import takes
from forestc.options.stream import StreamOptions
from forestc.passes import renamed_passes
from forestc.passes.base import Pass
from forestc.passes.pipeline import Step
from forestc.report.markdown import compile_report
from forestc.report.page.notebook import design_html
from forestc.report.tables import compile_tables
from forestc.report.widths import as_text
from forestc.rows.batches import Rows
from forestc.rows.cluster import on_cluster
from forestc.rows.columns import accept_missing, name_classes
from forestc.rows.fingerprint import fingerprint
from forestc.rows.given import rows_for_model, share_of, split_rows
from forestc.rows.made_rows import made_rows
from forestc.rows.range_files import ranges_record
from forestc.rows.ranges import Ranges
from forestc.synthesis import check_fits


@dataclass(frozen=True)
class Compiled:
    """What compile did: the design it wrote, and the figures of `--json`, whose keys are kept between versions. As text
    it is the tables of the command line."""

    design: Design
    steps: tuple[Step, ...]
    agreement: Agreement
    figures: CompileFigures

    def summary(self, width: int = 80) -> str:
        """The tables that the command line prints, in a width of characters."""
        return as_text(compile_tables(self.figures), width)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Compiled {self.design!r}, agreement {self.agreement.agreement:.4f} on {self.agreement.rows:,} rows>"

    def _repr_html_(self) -> str:
        shown = {key: value for key, value in self.figures.items() if isinstance(value, int | float | str)}
        shown |= {f"accuracy, {key}": value for key, value in self.figures["accuracy"].items()}
        return html_figures(f"compiled: {self.figures['name']}", shown) + design_html(self.design)


@dataclass(frozen=True)
class _Read:
    """The model and its rows as read. rows: the rows, or the ranges given instead. record: how the manifest describes
    them. notes: what users should know about how they were read. c: the options of the C header, with its types by
    position."""

    source: Forest
    rows: Rows
    record: Mapping[str, Any]
    notes: tuple[str, ...]
    c: COptions

    @property
    def unseen(self) -> bool:
        """Whether no rows were given."""
        return isinstance(self.rows, Ranges)


@dataclass(frozen=True)
class _Passed:
    """The result of the passes. rows: the rows given, or rows generated around the thresholds if there were none."""

    forest: Forest
    steps: tuple[Step, ...]
    ground: Ground
    rows: Rows
    notes: tuple[str, ...]


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
) -> Forest:
    """Runs the passes of a level, or those named, and returns the integer forest.

    model: anything `load` takes. truth: the rows' labels. The other arguments are those of `compile`. Raises
    ForestcError.
    """
    wanted = Request.of(
        CompileOptions(
            model, rows, None, ranges=ranges, label=truth, held_out=held_out, level=level, tolerance=tolerance,
            passes=passes, missing=missing,
        )
    )  # fmt: skip
    opened, source, _ = rows_for_model(rows, accept_missing(load(model), missing), truth, ranges)
    ground = ground_of(source, opened, wanted)
    return ground.run(source)[0]


@takes(CompileOptions)
def compile(options: CompileOptions) -> Compiled:
    """Writes a folder with the targets, their manifest and a report. If it fails, nothing is written; if the
    synthesis fails or is interrupted, all else is, and the error says so.

    The parameters are the fields of `forestc.options.compile.CompileOptions`. With a device the design is also
    synthesized, placed and routed for it, as `synth` does: see `figures["synthesis"]`. A model without column names
    takes those of the rows, in their order; `figures["notes"]` holds this and other remarks on how the model was read.
    Raises ForestcError.
    """
    model, progress = options.model, options.progress
    wanted, folder, clock = Request.of(options), Path(options.out), _Clock(progress)
    device = options.device
    check_writable(folder)
    with clock.measure("load"):
        read = _read(wanted)
    with clock.measure("passes"):
        passed = _run_passes(read, wanted)
        passed, inputs = _visited(read, passed, wanted)
    c, firmware = _layout(passed, read.c, wanted) if "c" in wanted.targets else (read.c, None)
    netlist, lowering = None, wanted.lowering
    if wanted.has_hardware:
        with clock.measure("lower"):
            netlist, lowering = _lower(passed.forest, wanted)
    with clock.measure("emit"):
        printed = print_forest(passed.forest)
        some = cache(partial(few, passed.forest, passed.rows))
        capacity = _capacity(passed.forest, wanted)
        artifacts, content = _emit(passed, printed, netlist, replace(wanted, c=c), lowering, capacity, some)
    with clock.measure("check"):
        agreed = agreement(read.source, passed.forest, passed.rows)
        held_out, held_agreed = _on_held_out(read, passed, wanted)
        if netlist is not None:
            simulate_some(passed.forest, netlist, some())
    shared = share_of(passed.ground.given) is not None
    measured = accuracy_record(passed.forest, agreed, held_agreed, shared, read.unseen)
    level, notes = passed.ground.plan.as_dict(), [*passed.notes, *agreed.notes]
    if shared and held_agreed is not None:
        aside = set_aside(passed.forest, agreed, held_agreed)
        passed = replace(passed, steps=tuple(replace(step, aside=aside) for step in passed.steps))
        notes.append(aside)
        level = None if level is None else level | {"keeps": f"{level['keeps']} ({aside})"}
    notes += [] if capacity is None else [_engine_note(passed.forest, capacity)]
    notes += [budget_note(passed.forest, c)] if c.limits else []
    figures = Figures.of(
        folder, wanted, read.source, passed.forest, netlist, passed.steps, agreed,
        notes=notes, level=level, measured=measured, firmware=firmware,
    )  # fmt: skip
    if netlist is not None and {"verilog", "vhdl"} & set(wanted.targets):
        with clock.measure("estimate"):
            figures = replace(figures, estimate=estimates(netlist, device))
    made: dict[str, Any] = {
        "command": command_line(wanted),
        "options": wanted.as_dict(),
        "level": level,
        "versions": versions(read.source),
        "model": model_record(model, read.source),
        "rows": {**read.record, "rows": agreed.rows},
        **({} if inputs is None else {"inputs": inputs}),
        "held_out": held_out,
        "accuracy": measured,
        "steps": steps_record(passed.steps),
    }
    files = {artifact.path: artifact.text for artifact in artifacts}
    files |= {MODEL: print_forest(read.source), QUANTIZED: printed}

    def write(figures: Figures, made: Mapping[str, Any]) -> Design:
        report = compile_report(read.source, passed.forest, passed.steps, figures.as_dict(), made, files)
        whole = {**files, REPORT: report}
        write_folder(folder, {**whole, MANIFEST: json.dumps(sealed({**content, "made": made}, whole), indent=1) + "\n"})
        return open_design(folder)

    with clock.measure("write"):
        design = write(figures, made)
    if device is not None and not options.no_synth:
        # _lower has compared it with the estimate already
        try:
            synthesis = synth(design, device, native=options.native, try_anyway=True, record=False, progress=progress)
        except BaseException as error:
            error.add_note(f"{folder} is whole but for the synthesis: forestc synth {folder} --device {device}")
            raise
        figures = replace(figures, synthesis=synthesis)
        design = write(figures, {**made, "synthesis": synthesis_record(synthesis)})
        clock.seconds |= synthesis["seconds"]
    return Compiled(design, passed.steps, agreed, CompileFigures(replace(figures, seconds=clock.seconds).as_dict()))


def _read(wanted: Request) -> _Read:
    """Reads the model and its rows. Raises ForestcError, also for what the backends would refuse after the passes."""
    options = wanted.options
    source = load(options.model, trust_pickle=options.trust_pickle, iterations=options.iterations)
    source = name_classes(replace(source, name=options.name or source.name), options.classes)
    source = accept_missing(source, options.missing)
    opened, source, row_notes = rows_for_model(options.rows, source, options.label, options.ranges)
    if isinstance(opened, Ranges):
        record = ranges_record(options.ranges, opened, source)
    else:
        record = fingerprint(options.rows, opened)
    notes = (*source.provenance.notes, *row_notes, *_renamed(source.name))
    for note in notes:
        options.progress(note)
    c = wanted.c
    if "c" in wanted.targets and c.raw:
        if c.c_inputs == "float":
            c_types.float_inputs(source)
        c = replace(c, c_types=by_position(source, c.c_types))
        _refuse_unfit(source, opened, c)
    return _Read(source, opened, record, notes, c)


def _renamed(name: str) -> tuple[str, ...]:
    """A note where files and functions can't have the model's name."""
    used = identifier(name)
    words = (
        f"files, modules and functions are named {used!r}: {name!r} has other characters, or is a word of a language"
    )
    return (words,) if used != name else ()


def _refuse_unfit(source: Forest, rows: Rows, c: COptions) -> None:
    """Raises RowsError for rows, or ends of ranges, that are no values of the C header's raw integers."""
    types, start = column_types(source, c.c_types), 0
    if c.c_inputs == "float" or not any(kind.whole for kind in types):
        return
    if isinstance(rows, Ranges):
        for feature, place in zip(source.features, source.places, strict=True):
            kind, given = types[place], rows.of(feature)
            if kind.whole and not (kind.ends[0] <= given.smallest and given.largest <= kind.ends[1] and given.whole):
                raise RowsError(
                    f"its range has other values than {kind.c}",
                    where=f"feature {feature.name!r}",
                    do="give a range of whole numbers that the type holds, or another type in --c-types",
                )
        return
    for batch in rows.batches():
        first = unfit(source, batch.X, types, start)
        if first:
            raise RowsError(first, do="give rows that fit, or another type in --c-types")
        start += len(batch.X)


def _run_passes(read: _Read, wanted: Request) -> _Passed:
    source, progress = read.source, wanted.options.progress
    with on_cluster(read.rows, wanted.options.scheduler) as placed:
        ground = ground_of(source, placed, wanted)
        forest, steps = ground.run(source, progress, wanted.options.results)
    if ground.plan.chosen is not None:  # its passes name their settings, which the judged rows chose
        steps = [step if step.held_out is None else step.with_report(chosen_on_held_out=True) for step in steps]
    leaves = [leaves_note(step) for step in steps if "score_bound" in step.report]
    noted = [step.report["note"] for step in steps if "note" in step.report]
    instead = wanted.named is not None and wanted.level is not None
    replaced = [f"the passes that were named run instead of those of -O{wanted.level}"] * instead
    notes = (*read.notes, *replaced, *renamed_passes(wanted.options.passes), *ground.plan.notes, *leaves, *noted)
    rows = made_rows(source, read.rows, (forest,)) if isinstance(read.rows, Ranges) else read.rows
    return _Passed(forest, tuple(steps), ground, rows, notes)


def _visited(read: _Read, passed: _Passed, wanted: Request) -> tuple[_Passed, dict[str, Any] | None]:
    """The forest with the visits of an input model's rows, and what the manifest records of the model; None without."""
    given = wanted.options.inputs
    if given is None:
        return passed, None
    inputs = given if isinstance(given, InputModel) else read_inputs(given)
    forest = with_visits(passed.forest, read.source, inputs)
    file = {"file": Path(given).name} if isinstance(given, str | Path) else {}
    return replace(passed, forest=forest), file | {"sha256": text_hash(inputs)}


def _layout(passed: _Passed, c: COptions, wanted: Request) -> tuple[COptions, dict[str, Any] | None]:
    """The options of the C header with the layout that `auto` chose, and what was estimated. The manifest keeps the
    choice: costs that are fitted again must not change what a design was written as."""
    chosen = replace(c, c_layout=chosen_layout(passed.forest, c, _smaller(passed, wanted)))
    return chosen, layout_record(passed.forest, chosen)


def _smaller(passed: _Passed, wanted: Request) -> str:
    """Ways to a smaller forest than this level's, and what the level had to say of itself."""
    level, named = wanted.level, wanted.named is not None
    held_out = wanted.options.held_out is not None
    larger = "a larger --tolerance" if held_out else "--held-out FILE and a larger --tolerance"
    if named or level is None or level < 2:
        ways = SMALLER
    else:
        ways = f"-O3 with {larger}" if level == 2 else larger
    notes = [note for note in passed.ground.plan.notes if " is -O" in note]  # why the level is another one
    return "; ".join((ways, *notes))


def _lower(forest: Forest, wanted: Request) -> tuple[Netlist, LoweringOptions]:
    """The netlist, and the options with the latency that the wanted clock needs. Raises OptionError if the device is
    too small."""
    options, lowering = wanted.options, wanted.lowering
    if options.clock_mhz is not None and options.device is not None and wanted.has_estimate:
        lowering = replace(
            lowering, latency=latency_for(forest, lowering, options.clock_mhz, options.device, options.progress)
        )
    netlist = lower(forest, lowering)
    if options.device is not None and not options.try_anyway:
        check_fits(netlist, options.device)
    return netlist, lowering


def _capacity(forest: Forest, wanted: Request) -> Capacity | None:
    """The capacity of the engine that is wanted: of a folder, or one for this forest."""
    if "engine" not in wanted.targets:
        return None
    given = wanted.options.engine
    if given is not None:
        return engine_of(given)
    return capacity_of(forest, wanted.options.device, f"{identifier(forest.name)}_engine")


def _engine_note(forest: Forest, capacity: Capacity) -> str:
    """What users want to know of an engine first."""
    image = image_of(forest, capacity)
    clocks = max(image.clocks, capacity.beats)
    size = f"the image {len(image.bytes):,} bytes"
    return f"the engine has {capacity.walkers} walkers; a row takes {clocks} clocks, and {size}"


def _emit(
    passed: _Passed,
    printed: str,
    netlist: Netlist | None,
    wanted: Request,
    lowering: LoweringOptions,
    capacity: Capacity | None,
    some: Callable[[], Sequence[Vectors]],
) -> tuple[tuple[Artifact, ...], dict[str, Any]]:
    """The files of the backends, and the manifest without the record of how they were made. some: returns `few`."""
    forest, options = passed.forest, wanted.of_folder(lowering, capacity)
    source = Source(
        forest,
        netlist,
        design_hash(printed, options),
        cache(lambda: bench_vectors(forest, source.netlist, some())),
        lambda: raw_rows(forest, source.netlist),
        wanted.c,
        wanted.options.stream or StreamOptions(),
        wanted.project,
        partial(selftest_answers, forest, wanted.c, passed.rows),
        capacity,
        lambda: bench_words(some()),
    )
    artifacts = written(source, options)
    roles = {artifact.role: artifact.path for artifact in artifacts}
    guarantees = {step.name: step.promise for step in passed.steps}
    content = manifest(forest, netlist, roles, options, guarantees, printed)
    if netlist is not None and wanted.options.stream is not None:
        content["stream"] = axi_stream.stream_object(netlist, wanted.options.stream)
    return artifacts, content


def _on_held_out(read: _Read, passed: _Passed, wanted: Request) -> tuple[dict[str, Any] | None, Agreement | None]:
    """A record of the held-out rows, and how far the forest agrees with the model on them; None without such rows."""
    held_out = passed.ground.given
    _, rows = split_rows(passed.rows, held_out, read.source, wanted.options.label)
    if rows is None:
        return None, None
    agreed = agreement(read.source, passed.forest, rows)
    given = held_out[0] if isinstance(held_out, tuple) else held_out
    share = share_of(held_out)
    record = fingerprint(given, rows) if share is None else {"share": share}
    return {**record, "rows": agreed.rows}, agreed


class _Clock:
    """Measures the seconds of each stage."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self.progress = progress

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        self.progress(stage)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = round(time.perf_counter() - start, 3)
