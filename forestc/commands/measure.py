"""Implements `measure`: flash, RAM, stack and instructions of a design's C header on a microcontroller."""

from __future__ import annotations

import importlib.metadata
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.base import Gives
from forestc.backends.c.choice import chosen_layout, entry_of
from forestc.backends.c.inputs import fits, inputs_of, unfit
from forestc.backends.c.types import text_bytes
from forestc.backends.names import identifier
from forestc.backends.running import Difference
from forestc.backends.table import file_of
from forestc.backends.vectors import COSTLY, Vectors, vectors, with_raw
from forestc.costs.boards import stands_for
from forestc.errors import OptionError, known_names, opt, said
from forestc.fields.options import takes
from forestc.firmware import avr
from forestc.firmware.costly import MOST_TRIED, costly_words
from forestc.firmware.emulator import Emulator, Machine, Run
from forestc.firmware.entries import Entry, entry_names, measured_entry
from forestc.firmware.layouts import ROWS, walk_bound
from forestc.firmware.workbench import Built, Workbench, need_libraries
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Forest
from forestc.manifest.design import Design, design_of
from forestc.options.commands import MeasureOptions
from forestc.report.tables import Shown, measure_tables, table
from forestc.rows.batches import ArrayRows, Rows
from forestc.rows.given import rows_from
from forestc.toolchain.compilers import version
from forestc.toolchain.firmware import COMPILERS, CPUS, OPTIMIZE, find_compiler
from forestc.toolchain.run import find, together

RANDOM_VECTORS, BOUNDARY_VECTORS = 200, 600  # vectors beside the rows, about: random ones, and on or beside thresholds


@takes(MeasureOptions)
def measure(options: MeasureOptions) -> Shown:
    """Measures the C header of a compiled design on a microcontroller: compiles it and runs it in an emulator.

    Each function is linked by itself, with the parts of the compiler's library that it calls. All answers are compared
    with the quantized forest: on the rows, on vectors on and beside its thresholds, and on random vectors.

    Returns
    -------
    dict
        The figures of `forestc measure --json`: `flash`, `ram` and `stack` in bytes; `instructions` with the `mean` and
        `max` over the rows (over the vectors if there are no rows) and `max_of_all` over both.

    Raises
    ------
    OptionError
        If a name is unknown.
    MissingToolError
        If a compiler or the emulator's library is not installed.
    CheckError
        If the firmware fails in the emulator.
    ForestcError
        If the folder can't be read or holds no C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y, targets="c")
    >>> figures = forestc.measure("iris", "cortex-m0plus", X, compiler="ziglang")
    >>> figures["flash"] < 200, figures["differences"]
    (True, 0)
    """
    options = replace(options, cpu=stands_for(options.cpu, "cpu", CPUS))
    _refuse(options)
    cpu = CPUS[options.cpu]
    tool, simavr = find_compiler(cpu, options.compiler), find("simavr")
    design = design_of(options.design)
    header = file_of(design, Gives.HEADER)
    names = options.entries or [name for name in entry_names(design.forest, design.c_options, cpu) if name != "values"]
    entries = [measured_entry(design.forest, design.c_options, header.name, cpu, name) for name in dict.fromkeys(names)]
    given = _inputs(design, options)
    with tempfile.TemporaryDirectory(prefix="forestc-measure-") as scratch:
        bench = Workbench(cpu, tool, options.optimize, Path(scratch))
        (bench.folder / header.name).write_bytes(header.read_bytes())
        options.progress(f"{tool.kind} for {options.cpu}")
        built = together([partial(bench.built, entry) for entry in entries])
        counted = sum(len(batch.words) for batch in given.inputs)
        options.progress(f"{', '.join(entry.name for entry in entries)}: {counted} inputs")
        measured = {
            entry.name: _measured(design, bench, entry, compiled, given.inputs)
            for entry, compiled in zip(entries, built, strict=True)
        }
    if cpu.machine:
        emulator = f"unicorn {importlib.metadata.version('unicorn')}"
    else:
        emulator = version(simavr) if simavr else ""
    budget, main = _budget(design, options.cpu, measured), measured[entries[0].name]
    differences = [figures["differences"] for figures in measured.values() if figures["differences"] is not None]
    over = [
        f"{name} of {entry_of(design.forest)}, {used:,} of {most:,}"
        for name, (used, most) in budget.items()
        if used > most
    ]
    figures = {
        "cpu": options.cpu,
        "entry": entries[0].name,
        **{key: main[key] for key in ("flash", "ram", "stack", "instructions", "cycles")},
        "budget": budget,
        "over_budget": ", ".join(over),
        "differences": sum(differences) if differences else None,
        "first_difference": next((figures["first"] for figures in measured.values() if figures["first"]), ""),
        "entries": measured,
        "rows": given.rows,
        "rows_given": given.total,
        "vectors": sum(len(batch.words) for batch in given.inputs if batch.origin != "rows"),
        "optimize": options.optimize,
        "tools": [tool.version, *([emulator] if emulator else [])],
    }
    notes = [*given.notes, *_notes(design, figures)]
    note = design.record("measure", figures) if options.record else ""
    made = partial(measure_tables, str(design.manifest["name"]), make_table=table)
    return Shown(figures | {"notes": notes + [note] * bool(note)}, made)


def _refuse(options: MeasureOptions) -> None:
    for what, name, names in (
        ("compiler", options.compiler, COMPILERS),
        ("optimize", options.optimize, OPTIMIZE),
    ):
        if name not in names:
            raise OptionError(f"unknown value {name!r}", where=getattr(opt, what), do=known_names(name, names))
    need_libraries(CPUS[options.cpu])


@dataclass(frozen=True)
class _Inputs:
    """The inputs that entries run on."""

    inputs: Sequence[Vectors]
    rows: int  # how many of the `total` given rows are run
    total: int
    notes: Sequence[str]  # messages for the user


def _inputs(design: Design, options: MeasureOptions) -> _Inputs:
    """Returns rows to run, and vectors made from them."""
    forest, c = design.forest, design.c_options
    types = inputs_of(forest, c.c_inputs, c.c_types).types
    sample, total, notes = np.empty((0, design.model.width)), 0, []
    if options.rows is not None:
        sample, total = spread(rows_from(options.rows, design.model, options.label), options.most)
        if types and (first := unfit(forest, sample, types, None)):
            fitting = fits(forest, types, sample).all(axis=1)
            out = (~fitting).sum()
            notes.append(f"left out {out} of {len(sample)} rows that the types of the inputs do not hold: {first}")
            sample = sample[fitting]
    return _Inputs(list(measured_inputs(forest, sample)), len(sample), total, notes)


def _notes(design: Design, figures: Mapping[str, Any]) -> Iterator[str]:
    measured, c = figures["entries"], design.c_options
    for path in design.changed_files():
        if path == str(file_of(design, Gives.HEADER).relative_to(design.folder)):
            yield f"{path} changed after forestc wrote it"
    for name, entry in measured.items():
        if entry["stack_why"]:
            seen = "not known" if entry["stack_seen"] is None else "the deepest seen in the emulator"
            yield f"{name}: the stack is {seen}, as {entry['stack_why']}"
    if figures["cpu"] == "avr" and (more := text_bytes(design.forest, pointer=2)):
        name = f"{identifier(design.forest.name)}_label"
        yield f"{name}, which no entry calls, keeps its text in RAM on AVR: up to {more:,} bytes"
    if len(figures["tools"]) == 1:
        yield f"nothing was run, as simavr is not on the PATH; {avr.INSTALL}"
    if c.limits and c.cpu == figures["cpu"] and not figures["budget"]:
        yield said(f"the budgets count {entry_of(design.forest)}, which was not measured: add it to {opt.entry}")


def _budget(design: Design, cpu: str, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Returns {figure: (measured, allowed)}; empty without a budget for this processor."""
    options, figures = design.c_options, entries.get(entry_of(design.forest))
    if options.cpu != cpu or figures is None:
        return {}
    taken = figures["cycles"] or figures["instructions"]
    used = {
        "flash": figures["flash"],
        "ram": figures["ram"] + (figures["stack"] or 0),
        "instructions": 0 if taken is None else taken["max_of_all"],
    }
    return {name: (used[name], most) for name, most in options.limits.items()}


def spread(rows: Rows, most: int) -> tuple[NDArray[np.float64], int]:
    """Returns at most `most` rows (0: all) at even distances, and the number of all rows."""
    parts: list[NDArray[np.float64]] = []
    step, total, count = 1, 0, 0
    for batch in rows.batches():
        part = batch.X[-total % step :: step]
        parts.append(part)
        total, count = total + len(batch.X), count + len(part)
        while most and count > 2 * most:
            parts, step = [np.concatenate(parts)[::2]], 2 * step
            count = len(parts[0])
    sample = np.concatenate(parts)
    indices = np.arange(len(sample)) * 1 if not most or len(sample) <= most else np.arange(most) * len(sample) // most
    return sample[indices], total


def measured_inputs(forest: Forest, sample: NDArray[np.float64]) -> Iterator[Vectors]:
    """Yields the rows, and vectors made from them: on and beside thresholds, random, and with long paths."""
    words = [np.zeros((1, len(forest.features)), dtype=np.int64)]
    for batch in vectors(forest, ArrayRows(sample), RANDOM_VECTORS, boundary=BOUNDARY_VECTORS):
        if len(batch.words):
            words.append(batch.words[:MOST_TRIED])
            yield batch
    if len(costly := costly_words(forest, np.concatenate(words))):
        yield with_raw(forest, costly, COSTLY)


def _few(batch: Vectors) -> Vectors:
    """Returns the first inputs, or all that are on long paths."""
    most = len(batch.words) if batch.origin == COSTLY else ROWS
    return replace(batch, words=batch.words[:most], raw=batch.raw[:most])


def _measured(
    design: Design, bench: Workbench, entry: Entry, built: Built, inputs: Sequence[Vectors]
) -> dict[str, Any]:
    start, forest, c = time.perf_counter(), design.forest, design.c_options
    differences, first, runs, bound = 0, "", list[Run](), None
    if (machine := bench.machine(built)) is not None:
        for batch in inputs:
            run, difference, shown = _compared(forest, entry, machine, batch)
            first = first or (f"{entry.name}: {shown}" if difference.count else "")
            differences += difference.count
            runs.append(run)
        if isinstance(machine, Emulator) and entry.name == entry_of(forest) and chosen_layout(forest, c) == "nodes":
            bound = walk_bound(forest, c, machine, entry, [entry.taken(some, forest) for some in map(_few, inputs)])
    on_rows = [run for run, batch in zip(runs, inputs, strict=False) if batch.origin == "rows"] or runs
    stacks = [run.stack for run in runs]
    depths = stacks if built.stack.size is None else [built.stack.size, *stacks]
    by = "-" if not depths else "call graph" if built.stack.size == max(depths) else "emulator"
    return {
        "flash": built.image.flash,
        "ram": built.image.ram,
        "stack": max(depths, default=None),
        "stack_by": by,
        "stack_seen": max(stacks, default=None),
        "stack_why": built.stack.why,
        "instructions": _summary([run.instructions for run in on_rows], [run.instructions for run in runs]),
        "cycles": _summary([run.cycles for run in on_rows], [run.cycles for run in runs]),
        "bound": bound,
        "differences": None if machine is None else differences,
        "first": first,
        "seconds": {"build": round(built.seconds, 3), "emulator": round(time.perf_counter() - start, 3)},
    }


def _compared(forest: Forest, entry: Entry, machine: Machine, batch: Vectors) -> tuple[Run, Difference, str]:
    """Returns a run, its difference from the evaluator, and the first wrong answer as text."""
    batch = entry.taken(batch, forest)
    run = machine.run(entry.inputs(batch, machine.aligned), entry.gives, entry.count, entry.returned)
    difference = entry.compare(run.results, evaluate_words(forest, batch.words), forest)
    if not difference.count:
        return run, difference, ""
    row = (batch.raw if entry.takes.raw else batch.words)[difference.first].tolist()
    answers = f"gives {list(difference.got)}, should give {list(difference.expected)}"
    return run, difference, f"{batch.origin} {difference.first}, {row} {answers}"


def _summary(
    on_rows: Sequence[NDArray[np.int64] | None], every: Sequence[NDArray[np.int64] | None]
) -> dict[str, Any] | None:
    """Returns the mean and the largest of the counts; None without counts for rows."""
    chosen, all_ = (
        np.concatenate([np.empty(0, np.int64), *(column for column in runs if column is not None)])
        for runs in (on_rows, every)
    )
    if not chosen.size:
        return None
    return {"mean": round(float(chosen.mean()), 1), "max": int(chosen.max()), "max_of_all": int(all_.max(initial=0))}
