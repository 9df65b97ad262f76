"""Builds a forest's C in several layouts for a processor, and runs its prediction alone, without comparing answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from forestc.backends.c.choice import entry_of
from forestc.backends.c.header import emit
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.options import COptions, Layout
from forestc.backends.names import identifier
from forestc.backends.vectors import COSTLY, Vectors, with_raw
from forestc.errors import OptionError, ToolError, opt
from forestc.firmware.bounds import bound_of_walks
from forestc.firmware.costly import costly_words, depths_of
from forestc.firmware.emulator import Emulator
from forestc.firmware.entries import Entry, measured_entry
from forestc.firmware.workbench import Built, Workbench
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import Forest
from forestc.layouts.nodes import nodes_of
from forestc.toolchain.firmware import Compiler, Cpu
from forestc.toolchain.run import together

ROWS = 30  # rows to run, beside inputs made for the longest paths


@dataclass(frozen=True)
class LayoutFigures:
    """The measured figures of a prediction in one layout."""

    flash: int  # bytes
    ram: int  # bytes of stack and variables
    mean: float  # instructions (cycles on AVR) of a row
    most: int  # instructions of any input that was run
    bound: int | None  # instructions of any input at all; None if not known

    def used(self, limit: str) -> int:
        """Returns the figure that the budget `limit` is held against."""
        if limit == "instructions":
            return self.most if self.bound is None else self.bound
        return self.flash if limit == "flash" else self.ram


def measured_layouts(
    forest: Forest, options: COptions, layouts: Iterable[Layout], cpu: Cpu, compiler: Compiler, given: Sequence[Vectors]
) -> dict[Layout, LayoutFigures]:
    """Returns the figures of each layout that holds the forest and builds. given: rows, and other inputs from which
    those of the longest paths start. Raises OptionError or ToolError if there is no such layout."""
    rows = [batch for batch in given if batch.origin == "rows"] or given
    words, raw = np.concatenate([batch.words for batch in rows]), np.concatenate([batch.raw for batch in rows])
    places = np.unique(np.linspace(0, len(words) - 1, ROWS).astype(np.int64))
    starts = np.concatenate([batch.words for batch in given])
    inputs = [Vectors(words[places], raw[places], "rows"), with_raw(forest, costly_words(forest, starts), COSTLY)]
    found: dict[Layout, LayoutFigures] = {}
    with tempfile.TemporaryDirectory(prefix="forestc-layouts-") as folder:
        bench, entries = Workbench(cpu, compiler, "s", Path(folder)), dict[Layout, Entry]()
        problem: OptionError | ToolError | None = None
        texts = set[str]()
        for layout in layouts:
            try:
                (text,) = emit(forest, _plain(options, layout)).values()
            except OptionError as error:
                problem = error
                continue
            if text not in texts:  # Some forests are the same in two layouts.
                texts.add(text)
                header = f"{layout}_{identifier(forest.name)}.h"
                (bench.folder / header).write_text(text, encoding="utf-8")
                entries[layout] = measured_entry(forest, options, header, cpu, entry_of(forest))
        built = together([partial(_built, bench, entry, layout) for layout, entry in entries.items()])
        for (layout, entry), one in zip(entries.items(), built, strict=True):
            try:
                if isinstance(one, ToolError):
                    raise one
                found[layout] = _figures(forest, options, bench, layout, entry, one, inputs)
            except ToolError as error:
                problem = ToolError(
                    f"no layout of C builds and runs on {cpu.name}: {error.parts[1]}",
                    where=opt.cpu,
                    do="make the forest smaller, as by -O2",
                )
    if not found and problem is not None:
        raise problem
    return found


def least_flash(forest: Forest, options: COptions, cpu: Cpu, compiler: Compiler) -> int:
    """Returns the bytes of flash of a prediction in the smallest of the layouts that are mostly tables."""
    with tempfile.TemporaryDirectory(prefix="forestc-layouts-") as folder:
        bench, sizes = Workbench(cpu, compiler, "s", Path(folder)), list[int]()
        for layout in TABLES if forest.adds else BRANCHES:
            try:
                (text,) = emit(forest, _plain(options, layout)).values()
            except OptionError:
                continue
            (bench.folder / f"{layout}.h").write_text(text, encoding="utf-8")
            entry = measured_entry(forest, options, f"{layout}.h", cpu, entry_of(forest))
            sizes.append(bench.built(entry, layout).image.flash)
    return min(sizes)


TABLES: tuple[Layout, ...] = ("nodes", "masks")
BRANCHES: tuple[Layout, ...] = ("branches",)


def _plain(options: COptions, layout: Layout) -> COptions:
    """Returns options for a header of the prediction alone."""
    return replace(options, c_layout=layout, c_quantizer="none", c_values="none")


def _built(bench: Workbench, entry: Entry, layout: Layout) -> Built | ToolError:
    try:
        return bench.built(entry, layout)
    except ToolError as error:
        return error


def _figures(
    forest: Forest,
    options: COptions,
    bench: Workbench,
    layout: Layout,
    entry: Entry,
    built: Built,
    inputs: Sequence[Vectors],
) -> LayoutFigures:
    machine = bench.machine(built)
    assert machine is not None  # `need_tools` asked for simavr
    batches = [entry.taken(batch, forest) for batch in inputs if len(batch.words)]
    runs = [
        machine.run(entry.inputs(batch, machine.aligned), entry.gives, entry.count, entry.returned) for batch in batches
    ]
    taken = [own for run in runs if (own := run.instructions if run.cycles is None else run.cycles) is not None]
    stack = max(built.stack.size or 0, *(run.stack for run in runs))
    most, bound = int(np.concatenate(taken).max()), None
    if layout == "nodes" and isinstance(machine, Emulator):
        bound = walk_bound(forest, options, machine, entry, batches)
    return LayoutFigures(
        built.image.flash,
        built.image.ram + stack,
        round(float(taken[0].mean()), 1),
        most,
        bound,
    )


def walk_bound(
    forest: Forest, options: COptions, machine: Emulator, entry: Entry, batches: Sequence[Vectors]
) -> int | None:
    """Returns the most instructions of any input of a prediction in the layout `nodes`; None if they are not known.
    batches: inputs to run, as `Entry.taken` gives them."""
    if not forest.single or not forest.adds:
        return None
    inputs = inputs_of(forest, options.c_inputs, options.c_types)
    leaves = nodes_of(inputs.forest, float_bytes=inputs.float_bytes).leaves
    trees, missing = [forest.trees[index] for index in leaves.trees], missing_words(forest)
    words = np.concatenate([batch.words for batch in batches])
    turns = [depths_of(tree)[leaf_nodes(forest, tree, words, missing)] for tree in trees]
    traces = [
        trace
        for batch in batches
        for trace in machine.traces(entry.inputs(batch), entry.gives, entry.count, entry.returned)
    ]
    most = sum(len(tree.levels) - 1 for tree in trees)
    bound = bound_of_walks(traces, np.sum(turns, axis=0), most, len(trees), leaves.most_added) if trees else None
    return None if bound is None else max(bound, *(int(trace[:, 2].sum()) for trace in traces))
