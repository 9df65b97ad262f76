"""Makes the inputs and expected results of test benches and self-tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.options import COptions
from forestc.backends.c.selftest import Answers
from forestc.backends.hdl import vector_lines
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.running import simulated
from forestc.backends.vectors import Vectors, expected, vectors
from forestc.errors import CheckError
from forestc.forest.evaluate import encode_numbers, evaluate_words
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist
from forestc.rows.batches import ArrayRows, Rows
from hw_sim import evaluate as simulate_plainly

SELFTEST_ROWS = 32  # rows in a C self-test; more if needed for one row of each class
# Limits the vectors of each origin in a core's test bench. BENCH_RAW is the limit for the stream wrapper's test bench.
BENCH_ROWS, BENCH_BOUNDARY, BENCH_RANDOM, BENCH_RAW = 1000, 1000, 256, 200


def sample_vectors(forest: Forest, rows: Rows) -> tuple[Vectors, ...]:
    """Returns a tuple of vectors: the first rows, then inputs near thresholds, then random inputs."""
    return tuple(vectors(forest, _First(rows, BENCH_ROWS), BENCH_RANDOM, boundary=BENCH_BOUNDARY))


def bench_vectors(forest: Forest, netlist: Netlist, given: Sequence[Vectors]) -> str:
    """Returns the text of a test bench's vector file. given: made by `sample_vectors`."""
    quota = {"rows": BENCH_ROWS, "boundary": BENCH_BOUNDARY, "random": BENCH_RANDOM}
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    text = []
    for some in given:
        words = some.words[: quota[some.origin]]
        quota[some.origin] -= len(words)
        if len(words):
            results = pack(outputs, expected(forest, netlist, words))
            text.append(vector_lines(inputs, outputs, pack(inputs, words), results))
    return "".join(text)


def bench_words(given: Sequence[Vectors]) -> NDArray[np.int64]:
    """Returns feature words (rows, features) for an engine's test bench. given: made by `sample_vectors`."""
    return np.concatenate([some.words[:BENCH_RANDOM] for some in given])


def raw_rows(forest: Forest, netlist: Netlist) -> str:
    """Returns text for the stream wrapper's test bench. Each line holds a generated row's raw values in decimal, and
    the expected y in hexadecimal."""
    outputs, text = output_fields(netlist), []
    for some in vectors(forest, ArrayRows(np.empty((0, forest.width))), BENCH_RAW, boundary=BENCH_RAW):
        results = pack(outputs, expected(forest, netlist, some.words[:BENCH_RAW]))
        for row, y in zip(some.raw.tolist(), results, strict=False):
            text.append(f"{','.join(map(repr, row))},{y:x}\n")
    return "".join(text)


def selftest_answers(forest: Forest, options: COptions, rows: Rows) -> Answers:
    """Returns sample rows and their expected answers for the C header's self-test. Each class that occurs in the sample
    has at least one row."""
    some = sample_vectors(forest, rows)
    floats = np.concatenate([batch.raw for batch in some])
    words = np.concatenate([batch.words for batch in some])
    if options.raw:
        floats = inputs_of(forest, options.c_inputs, options.c_types).fitted(floats)
        words = encode_numbers(forest, floats)
    answers = evaluate_words(forest, words)
    labels = answers.index.reshape(len(words), -1) if forest.decides else np.empty((len(words), 0), dtype=np.int64)
    order = np.random.default_rng(0).permutation(len(words))
    firsts = [order[np.unique(column[order], return_index=True)[1]] for column in labels.T]
    needed = np.unique(np.concatenate([np.empty(0, np.int64), *firsts]))
    more = order[~np.isin(order, needed)][: max(0, SELFTEST_ROWS - len(needed))]
    chosen = np.concatenate([needed, more])

    def table(values: NDArray[Any]) -> tuple[tuple[Any, ...], ...]:
        return tuple(map(tuple, values[chosen].tolist()))

    return Answers(table(words), table(floats), table(labels), table(answers.scores))


def simulate_some(forest: Forest, netlist: Netlist, given: Sequence[Vectors]) -> None:
    """Compares the simulated netlist with the quantized forest. given: made by `sample_vectors`. Raises CheckError if
    they differ."""
    # One call simulates all vectors, as its time depends mostly on the cells.
    words = np.concatenate([some.words for some in given])
    if not np.array_equal(
        simulated(partial(simulate_plainly, netlist), netlist, words), expected(forest, netlist, words)
    ):
        raise CheckError(
            "the netlist does not equal the quantized forest", where="simulation of the netlist", do="report this bug"
        )


@dataclass(frozen=True)
class _First:
    rows: Rows
    count: int

    def batches(self) -> Iterator[Any]:
        for batch in islice(self.rows.batches(), 1):
            yield replace(batch, X=batch.X[: self.count], truth=None)
