"""compile: a model and its rows to a folder of Verilog, C and HLS C++ that say the same."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from forestc.backends import axi_stream, c_types, verilog
from forestc.backends.axi_stream import StreamOptions
from forestc.backends.base import Source
from forestc.backends.c import COptions
from forestc.backends.manifest import design_hash, manifest, sealed
from forestc.backends.names import plain
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.project import ProjectOptions
from forestc.backends.table import TARGETS, written
from forestc.checks.agreement import Agreement, agreement
from forestc.checks.engines import simulated
from forestc.checks.vectors import expected, vectors
from forestc.costs.devices import DEFAULT_TARGET, target_of
from forestc.costs.estimate import estimates
from forestc.costs.fitted import fitted
from forestc.data import rows_from
from forestc.data.cluster import on_cluster
from forestc.data.fingerprint import fingerprint
from forestc.data.labels import label_columns
from forestc.data.ranges import ranges_from, ranges_told
from forestc.design import MANIFEST, MODEL, QUANTISED, REPORT, Design, check_writable, open_design, write_folder
from forestc.errors import CheckError, OptionError
from forestc.forest.columns import adopt_names, name_classes, some_names
from forestc.forest.ir import Forest
from forestc.forest.made_rows import made_rows
from forestc.forest.ranges import Ranges
from forestc.forest.rows import ArrayRows, FitAndHeldOut, Rows
from forestc.forest.summary import html_figures
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.lowering.clock import latency_for
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import Netlist
from forestc.passes import passes_from
from forestc.passes.base import Pass
from forestc.passes.formats import comparator_bits
from forestc.passes.levels import HELD_OUT, SET_ASIDE, check_tolerance, level_number, own_held_out, plan
from forestc.passes.pipeline import Step, run_passes
from forestc.record import accuracy_told, command_line, leaves_told, model_told, synthesis_told, told_options, versions
from forestc.report.markdown import compile_report
from forestc.synthesis import check_fits, known_device, need_tools, synth
from hw_sim import evaluate as simulate_plainly

DEFAULT_TARGETS = ("verilog", "c")
BENCH_ROWS, BENCH_BOUNDARY, BENCH_RANDOM, BENCH_RAW = 1000, 1000, 256, 200


@dataclass(frozen=True)
class Compiled:
    """What compile did: the design it wrote and the figures it prints (the keys of `--json` are kept)."""

    design: Design
    steps: tuple[Step, ...]
    agreement: Agreement
    figures: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"<Compiled {self.design!r}, agreement {self.agreement.agreement:.4f} on {self.agreement.rows:,} rows>"

    def _repr_html_(self) -> str:
        told = {key: value for key, value in self.figures.items() if isinstance(value, int | float | str)}
        told |= {f"accuracy, {key}": value for key, value in self.figures["accuracy"].items()}
        return html_figures(f"compiled: {self.figures['name']}", told) + self.design._repr_html_()


def quantize(
    model: Any,
    rows: Any = None,
    truth: Any = None,
    passes: str | Sequence[Pass] | None = None,
    *,
    held_out: Any = None,
    ranges: Any = None,
    level: int | str | None = None,
    tolerance: float | None = None,
) -> Forest:
    """The integer forest of a model: by the passes of a level, or those named.

    model: whatever `load` takes. rows: a path, a 2-D array or a data frame. held_out, ranges, level, tolerance: as for
    `compile`. Raises ForestcError.
    """
    number = level_number(level)
    check_tolerance(number, tolerance, passes)
    forest = load(model)
    _refuse_without_rows(rows, ranges, labels=truth, held_out=held_out)
    if own_held_out(number, passes, rows, held_out):
        held_out = HELD_OUT
    opened, forest, _ = _open_rows(rows, forest, truth, ranges)
    fit, judged_on = _split(opened, held_out, forest, truth)
    named = None if passes is None else passes_from(passes)
    return run_passes(forest, plan(named, number, forest, fit, judged_on, tolerance=tolerance).passes, fit, judged_on)[
        0
    ]


def compile(
    model: Any,
    rows: Any,
    out: str | Path,
    *,
    ranges: Any = None,
    label: Any = None,
    classes: Sequence[str] = (),
    held_out: Any = None,
    scheduler: str | None = None,
    targets: str | Sequence[str] = DEFAULT_TARGETS,
    level: int | str | None = None,
    tolerance: float | None = None,
    passes: str | Sequence[Pass] | None = None,
    scores: float | None = None,
    latency: int = 0,
    outputs: str = "auto",
    c_inputs: str = "words",
    c_quantiser: str = "auto",
    c_values: str = "q31",
    stream: StreamOptions | None = None,
    device: str | None = None,
    clock_mhz: float | None = None,
    native: bool = False,
    try_anyway: bool = False,
    trust_pickle: bool = False,
    name: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Compiled:
    """Writes a folder with the targets, their manifest and a report, all or nothing.

    model: a path or a fitted model. rows: a path, a 2-D array or a data frame: what the input formats and leaf bits are
    chosen on, and what is reported; None: formats come from the model's own thresholds, and from `ranges` (a path, or
    {name: (smallest, largest)}, see `forestc.data.ranges`), and are exact for every input in them. label: for a path or
    a data frame the column with the truth (of several targets a list of columns), else the labels themselves, (rows,)
    or (rows, targets). classes: names of the
    model's classes, in its order, for labels that have names where the model has numbers. held_out: what passes are
    judged on: rows, as a path (with the same label column), an array, a frame, or a pair (rows, labels); or a share of
    the given rows, set aside. scheduler: address of a Dask scheduler; what passes find out about rows they find out
    there. level: 0 to 3, from exact for every input to small (1 where nothing is said; see `forestc passes`): a list of
    passes, which `passes` overrides. tolerance: at level 3 the accuracy (R squared) that may be lost on held-out rows,
    a standard error counted as lost (0.01 where nothing is said); a fifth of the rows is held out where none are given.
    scores: the largest error of a probability on the rows, or of other values as a share of their range, see
    `Quantize`. latency: clock cycles, 0 for combinational logic. c_inputs, c_quantiser, c_values: what the C header
    takes and gives, see `COptions`. stream: an AXI4-Stream wrapper of the Verilog core and its cocotb test bench as
    well. device, native: synthesised for it, placed and routed as well, as `synth` does: `figures["synthesis"]`;
    try_anyway: even where the estimate says that it does not fit. clock_mhz: the clock wanted on that device;
    constraints and scripts start with it and with the device. On devices with an estimate it stands in place of a
    latency, which is then the least with which the estimate reaches it. A model without column names takes those of the
    rows, in their order: `figures["notes"]` says so, and what else is to be known of how the model was read. Raises
    ForestcError.
    """
    clock = _Clock(progress)
    number = level_number(level)
    check_tolerance(number, tolerance, passes)
    if isinstance(targets, str):
        targets = [name.strip() for name in targets.split(",") if name.strip()]
    _refuse_without_rows(rows, ranges, label=label, held_out=held_out, scheduler=scheduler)
    if not targets:
        raise OptionError("no target", do=f"known: {', '.join(TARGETS)}")
    for target in targets:
        if target not in TARGETS:
            raise OptionError(f"unknown target {target!r}", do=f"known: {', '.join(TARGETS)}")
    if "verilog" in targets:
        fitted()  # a damaged table of costs is refused here
    if stream is not None and "verilog" not in targets:
        raise OptionError("a stream wrapper needs the Verilog core", do="add the target verilog")
    if device is not None:
        known_device(device)
        need_tools(device, native)
        if "verilog" not in targets:
            raise OptionError("a device needs the Verilog core", do="add the target verilog")
    vendor = device is not None and ":" in device  # no estimate is made of its parts
    if clock_mhz is not None:
        if device is None or (latency and not vendor):
            raise OptionError("a clock is wanted of a device, instead of a latency", do="name a device, and no latency")
        if not 0 < clock_mhz < math.inf:
            raise OptionError(f"clock_mhz={clock_mhz:g}", do="give megahertz above 0")
    wanted = told_options(
        rows, ranges=ranges, label=label, classes=list(classes), held_out=held_out, targets=list(targets),
        level=number, tolerance=tolerance, passes=passes, scores=scores, latency=latency, outputs=outputs,
        c_inputs=c_inputs, c_quantiser=c_quantiser, c_values=c_values, stream=stream, device=device,
        try_anyway=try_anyway, clock=None if clock_mhz is None else float(clock_mhz), native=native, name=name,
        trust_pickle=trust_pickle,
    )  # fmt: skip
    lowering = LoweringOptions(latency, outputs, target_of(device or ""))  # type: ignore[arg-type]
    check_writable(Path(out))
    c_options = COptions(c_inputs, c_quantiser, c_values)  # type: ignore[arg-type]
    named = None if passes is None else passes_from(passes, scores)
    set_aside = own_held_out(number, passes, rows, held_out)
    held_out = HELD_OUT if set_aside else held_out
    with clock.measure("load"):
        source = load(model, trust_pickle=trust_pickle)
        source = name_classes(replace(source, name=name or source.name), classes)
        opened, source, said = _open_rows(rows, source, label, ranges)
        unseen = opened if isinstance(opened, Ranges) else None
        rows_told = fingerprint(rows, opened) if unseen is None else ranges_told(ranges, unseen, source)
        notes = (*source.provenance.notes, *said, *[SET_ASIDE] * set_aside)
        for note in notes:
            progress(note)
        if "c" in targets and c_options.raw:
            c_types.float_inputs(source)  # refuses it before the passes
    with clock.measure("passes"), on_cluster(opened, scheduler) as placed:
        fit, judged_on = _split(placed, held_out, source, label)
        planned = plan(named, number, source, fit, judged_on, tolerance=tolerance, scores=scores)
        forest, steps = run_passes(source, planned.passes, fit, judged_on, progress)
    leaves = [leaves_told(step) for step in steps if "score_bound" in step.report]
    notes = (*notes, *planned.notes, *leaves, *planned.shortfall(steps))
    if unseen is not None:
        opened = made_rows(source, unseen, (forest,))
    with clock.measure("lower"):
        if clock_mhz is not None and device is not None and not vendor:
            lowering = replace(lowering, latency=latency_for(forest, lowering, clock_mhz, device))
        netlist = lower(forest, lowering)
        if device is not None and not try_anyway:
            check_fits(netlist, device)
    with clock.measure("emit"):
        options = {
            "targets": sorted(set(targets)),
            "latency": lowering.latency,
            "outputs": outputs,
            **({} if lowering.target == DEFAULT_TARGET else {"target": lowering.target}),
            "c": asdict(c_options),
            **({} if stream is None else {"stream": asdict(stream)}),
            **({} if device is None else {"device": device}),
            **({} if clock_mhz is None else {"clock_mhz": float(clock_mhz)}),
        }
        artifacts = written(
            Source(
                forest,
                netlist,
                design_hash(forest, options),
                cache(partial(_bench_vectors, forest, netlist, opened)),
                partial(_raw_rows, forest, netlist),
                c_options,
                stream or StreamOptions(),
                ProjectOptions(device or "", clock_mhz),
            ),
            options,
        )
        roles = {one.role: one.path for one in artifacts}
        files = {one.path: one.text for one in artifacts}
        guarantees = {step.name: step.promise for step in steps}
        told = manifest(forest, netlist, roles, options, guarantees)
        if stream is not None:
            told["stream"] = axi_stream.stream_object(netlist, stream)
    with clock.measure("check"):
        agreed = agreement(source, forest, opened)
        held_told, held_agreed = _on_held_out(held_out, opened, source, forest, label)
        _simulate_some(forest, netlist, opened)
    figures = _figures(Path(out), sorted(set(targets)), source, forest, netlist, steps, agreed)
    figures["notes"] = list(notes)
    figures["level"] = planned.told()
    told["made"] = {
        "command": command_line(model, rows, wanted),
        "options": wanted,
        "level": planned.told(),
        "versions": versions(source),
        "model": model_told(model, source),
        "rows": {**rows_told, "rows": agreed.rows},
        "held_out": held_told,
        "accuracy": accuracy_told(forest, agreed, held_agreed, _share(held_out) is not None, unseen is not None),
    }
    figures["measured"] = told["made"]["accuracy"]
    if "verilog" in targets:
        with clock.measure("estimate"):
            figures["estimate"] = estimates(netlist, device)
    figures["seconds"] = clock.seconds
    files |= {MODEL: print_forest(source), QUANTISED: print_forest(forest)}

    def write() -> Design:
        """The folder, with what is told of it by now."""
        whole = {**files, REPORT: compile_report(source, forest, netlist, steps, figures, told["made"], files)}
        write_folder(Path(out), {**whole, MANIFEST: json.dumps(sealed(told, whole), indent=1) + "\n"})
        return open_design(out)

    with clock.measure("write"):
        design = write()
    if device is not None:
        figures["synthesis"] = synth(design, device, native=native, try_anyway=True, progress=progress)  # checked
        told["made"]["synthesis"] = synthesis_told(figures["synthesis"])
        design = write()
        clock.seconds |= figures["synthesis"]["seconds"]
    return Compiled(design, tuple(steps), agreed, figures)


def _refuse_without_rows(rows: Any, ranges: Any, **others: Any) -> None:
    """Raises OptionError for ranges beside rows, and without rows for what is said of them."""
    if rows is not None and ranges is not None:
        raise OptionError("both rows and ranges", do="give rows, or in their place ranges")
    for name, value in others.items():
        if rows is None and value is not None:
            raise OptionError(f"{name} is for rows, and there are none", do="give rows, or leave it out")


def _open_rows(rows: Any, forest: Forest, label: Any, ranges: Any = None) -> tuple[Rows, Forest, tuple[str, ...]]:
    """The rows (or ranges in place of rows that are None), the forest with their columns' names where it has none of
    its own, and what is to be said of that."""
    if rows is None:
        return ranges_from(ranges, forest)
    opened = rows_from(rows, forest, label)
    names: tuple[str, ...] = getattr(opened, "names", ())
    if not names:
        return opened, forest, ()
    note = f"the model has no column names: the rows' columns are taken in their order, {some_names(names)}"
    return opened, adopt_names(forest, names), (note,)


def _split(rows: Rows, held_out: Any, source: Forest, label: Any) -> tuple[Rows, Rows | None]:
    """The rows that passes look at, and those held out: a share of the rows set aside, or others; None without."""
    share = _share(held_out)
    if held_out is None:
        return rows, None
    if share is not None:
        if not 0 < share <= 0.5:
            raise OptionError(f"held_out={share:g}", do="set a share above 0 and up to 0.5 aside, or give a file")
        return FitAndHeldOut.every(rows, round(1 / share))
    if isinstance(held_out, tuple):
        if len(held_out) != 2:
            raise OptionError(f"held_out is a tuple of {len(held_out)}", do="give rows, or a pair (rows, labels)")
        return FitAndHeldOut(rows, rows_from(held_out[0], source, held_out[1]))
    column = label_columns(label, held_out)
    if label is not None and column is None and isinstance(held_out, str | Path):
        raise OptionError("held_out is a file, and label holds labels", do="name the column, or give (rows, labels)")
    return FitAndHeldOut(rows, rows_from(held_out, source, None if column is None else label))


def _share(held_out: Any) -> float | None:
    try:
        return None if isinstance(held_out, Path) else float(held_out)
    except (TypeError, ValueError):
        return None


def _on_held_out(
    held_out: Any, opened: Rows, source: Forest, forest: Forest, label: Any
) -> tuple[dict[str, Any] | None, Agreement | None]:
    """Which rows are held out, and how the forest agrees with the model on them; None where there are none."""
    rows = _split(opened, held_out, source, label)[1]
    if rows is None:
        return None, None
    agreed = agreement(source, forest, rows)
    share = _share(held_out)
    given = held_out[0] if isinstance(held_out, tuple) else held_out
    return {**({"share": share} if share is not None else fingerprint(given, rows)), "rows": agreed.rows}, agreed


def _bench_vectors(forest: Forest, netlist: Netlist, rows: Rows) -> str:
    """The test bench's vectors: some rows, some boundary inputs, some random words."""
    wanted = {"rows": BENCH_ROWS, "boundary": BENCH_BOUNDARY, "random": BENCH_RANDOM}
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    text = []
    for some in vectors(forest, _First(rows, BENCH_ROWS), BENCH_RANDOM, boundary=BENCH_BOUNDARY):
        words = some.words[: wanted[some.origin]]
        wanted[some.origin] -= len(words)
        if len(words):
            text.append(
                verilog.vector_lines(
                    inputs, outputs, pack(inputs, words), pack(outputs, expected(forest, netlist, words))
                )
            )
    return "".join(text)


def _raw_rows(forest: Forest, netlist: Netlist) -> str:
    """Lines of raw values and y for the stream's test bench, none of them from the rows given."""
    outputs, text = output_fields(netlist), []
    for some in vectors(forest, ArrayRows(np.empty((0, forest.columns))), BENCH_RAW, boundary=BENCH_RAW):
        results = pack(outputs, expected(forest, netlist, some.words[:BENCH_RAW]))
        for row, y in zip(some.raw.tolist(), results, strict=False):
            text.append(f"{','.join(map(repr, row))},{y:x}\n")
    return "".join(text)


@dataclass(frozen=True)
class _First:
    """The first batch of some rows, cut to `count`."""

    rows: Rows
    count: int

    def batches(self) -> Iterator[Any]:
        for batch in islice(self.rows.batches(), 1):
            yield replace(batch, X=batch.X[: self.count], truth=None)


def _simulate_some(forest: Forest, netlist: Netlist, rows: Rows) -> None:
    """The netlist, simulated, must equal the evaluator before anything is written. `check` does all of it."""
    run = partial(simulate_plainly, netlist)
    for some in vectors(forest, _First(rows, BENCH_ROWS), BENCH_RANDOM, boundary=BENCH_BOUNDARY):
        if not np.array_equal(simulated(run, netlist, some.words), expected(forest, netlist, some.words)):
            raise CheckError("the netlist does not equal the quantised forest", do="report this bug")


def _figures(
    out: Path,
    targets: list[str],
    source: Forest,
    forest: Forest,
    netlist: Netlist,
    steps: Sequence[Step],
    agreed: Agreement,
) -> dict[str, Any]:
    return {
        "out": str(out),
        "name": plain(forest.name),
        "targets": targets,
        "passes": [
            {"pass": step.name, "guarantee": step.promise, "change": step.change, "held_out": step.held_out}
            | step.report
            for step in steps
        ],
        "trees": len(forest.trees),
        "nodes": forest.n_nodes,
        "conditions": sum(len(tree.inner) for tree in source.trees),
        "distinct_conditions": len(forest.conditions.comparators),
        "comparator_bits": sum(
            comparator_bits(feature.number, forest.conditions.thresholds(index))
            for index, feature in enumerate(forest.features)
        ),
        "cells": len(netlist.cells),
        "latency_cycles": netlist.latency,
        "rows": agreed.rows,
        "accuracy": {"model": agreed.model, "compiled": agreed.compiled},
        "agreement": agreed.agreement,
    }


class _Clock:
    """Seconds by stage."""

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
