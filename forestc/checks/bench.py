"""Vectors for the test benches of a design, and a first check of its netlist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from forestc.backends import verilog
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.checks.engines import simulated
from forestc.checks.vectors import expected, vectors
from forestc.errors import CheckError
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist
from forestc.rows.batches import ArrayRows, Rows
from hw_sim import evaluate as simulate_plainly

BENCH_ROWS, BENCH_BOUNDARY, BENCH_RANDOM, BENCH_RAW = 1000, 1000, 256, 200


def bench_vectors(forest: Forest, netlist: Netlist, rows: Rows) -> str:
    """The test bench's vectors: some rows, some boundary inputs, some random words."""
    wanted = {"rows": BENCH_ROWS, "boundary": BENCH_BOUNDARY, "random": BENCH_RANDOM}
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    text = []
    for some in vectors(forest, _First(rows, BENCH_ROWS), BENCH_RANDOM, boundary=BENCH_BOUNDARY):
        words = some.words[: wanted[some.origin]]
        wanted[some.origin] -= len(words)
        if len(words):
            results = pack(outputs, expected(forest, netlist, words))
            text.append(verilog.vector_lines(inputs, outputs, pack(inputs, words), results))
    return "".join(text)


def raw_rows(forest: Forest, netlist: Netlist) -> str:
    """Lines of raw values and y for the stream's test bench. They hold none of the given rows."""
    outputs, text = output_fields(netlist), []
    for some in vectors(forest, ArrayRows(np.empty((0, forest.columns))), BENCH_RAW, boundary=BENCH_RAW):
        results = pack(outputs, expected(forest, netlist, some.words[:BENCH_RAW]))
        for row, y in zip(some.raw.tolist(), results, strict=False):
            text.append(f"{','.join(map(repr, row))},{y:x}\n")
    return "".join(text)


def simulate_some(forest: Forest, netlist: Netlist, rows: Rows) -> None:
    """Compares the simulated netlist with the evaluator on some vectors, before anything is written; `check` uses more.

    Raises CheckError if they differ.
    """
    run = partial(simulate_plainly, netlist)
    for some in vectors(forest, _First(rows, BENCH_ROWS), BENCH_RANDOM, boundary=BENCH_BOUNDARY):
        if not np.array_equal(simulated(run, netlist, some.words), expected(forest, netlist, some.words)):
            raise CheckError("the netlist does not equal the quantised forest", do="report this bug")


@dataclass(frozen=True)
class _First:
    """The first `count` rows of the first batch."""

    rows: Rows
    count: int

    def batches(self) -> Iterator[Any]:
        for batch in islice(self.rows.batches(), 1):
            yield replace(batch, X=batch.X[: self.count], truth=None)
