"""Makes the inputs for comparing engines, and the expected results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import Evaluation, encode_numbers, evaluate_words
from forestc.forest.ir import Forest
from forestc.forest.numbers import Fixed, Ordered, WordArray, key_value, word_range
from forestc.forest.outputs import runners_up
from forestc.netlist.ir import Netlist
from forestc.rows.batches import Rows

LEAST_BOUNDARY, MOST_BOUNDARY = 20_000, 60_000  # words on thresholds and beside them, at least and at most
COSTLY = "costly"  # names the origin of inputs that take the longest paths
BASE_ROWS = 1024  # rows from which words near thresholds start


@dataclass(frozen=True)
class Vectors:
    """Inputs of one origin."""

    words: WordArray  # (n, features) int64
    raw: NDArray[np.float64]  # (n, columns) rows that encode to these words
    origin: str  # rows, boundary, random or costly


def vectors(
    forest: Forest, rows: Rows, random_rows: int, seed: int = 0, boundary: int | None = None
) -> Iterator[Vectors]:
    """Yields all rows, then words near thresholds, then random words. boundary: approximate number near thresholds."""
    base: WordArray | None = None
    for batch in rows.batches():
        words = encode_numbers(forest, batch.X)
        if base is None:
            base = words[:BASE_ROWS]
        yield Vectors(words, batch.X, "rows")
    if base is None or not len(base):
        base = np.zeros((1, len(forest.features)), dtype=np.int64)
    if boundary is None:
        every_node = 3 * sum(len(tree.inner) for tree in forest.trees)
        boundary = min(max(LEAST_BOUNDARY, every_node), MOST_BOUNDARY)
    for words in boundary_inputs(forest, base, seed, boundary):
        yield with_raw(forest, words, "boundary")
    random = np.random.default_rng(seed)
    for start in range(0, random_rows, 8192):
        count = min(8192, random_rows - start)
        yield with_raw(forest, random_words(forest, base, count, random), "random")


def random_words(forest: Forest, base: WordArray, count: int, random: np.random.Generator) -> WordArray:
    """Returns random words (count, features): about half from each feature's range, the others from `base`."""
    words = np.empty((count, len(forest.features)), dtype=np.int64)
    for index, feature in enumerate(forest.features):
        span = word_range(feature.number, feature.missing)
        anywhere = random.integers(span.low, span.top, count, dtype=np.int64, endpoint=True)
        mixed = base[random.integers(0, len(base), count), index]
        words[:, index] = np.where(random.random(count) < 0.5, anywhere, mixed)
    return words


def with_raw(forest: Forest, words: WordArray, origin: str) -> Vectors:
    """Returns words with raw rows that encode to them. A word that no raw value encodes to is replaced by the word of a
    nearby value."""
    raw = np.zeros((len(words), forest.width))
    for index, feature in enumerate(forest.features):
        column, number = words[:, index], feature.number
        span = word_range(number, feature.missing)
        match number:
            case Fixed(_, fraction):
                with np.errstate(over="ignore"):
                    values = np.ldexp(column.astype(np.float64), -fraction)
            case Ordered(bits):
                values = key_value(column, bits)
                values = np.where(np.isnan(values), np.inf, values)
            case _:
                values = column.astype(np.float64)
        if span.missing is not None:
            values = np.where(column == span.missing, np.nan, values)
        raw[:, forest.row_columns[index]] = values
    return Vectors(encode_numbers(forest, raw), raw, origin)


def disturbed(forest: Forest, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the rows with about half of the values replaced by values that are hard to quantize."""
    random = np.random.default_rng(0)
    rows = raw.copy()
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    special = [0.0, -0.0, np.inf, -np.inf, tiny, -tiny, 1.5 * tiny, tiny / 2, 5e-324, -5e-324, 1e-40, 3.4028236e38]
    special += [1e300, -1e300, 2.0**31, -(2.0**31), 2.0**63, -0.5, 0.5, -1.0, 255.0, 256.0]
    for feature, own in zip(forest.features, forest.row_columns, strict=True):
        column = rows[:, own]
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = column.astype(np.float32)
            away = np.where(random.random(len(column)) < 0.5, -np.inf, np.inf)
            next_narrow = np.nextafter(narrow, away.astype(np.float32)).astype(np.float64)
            halfway = (narrow.astype(np.float64) + next_narrow) / 2
            choices = [
                np.nextafter(column, away), next_narrow, halfway, np.nextafter(halfway, away), -column,
                column * 2.0**20, random.choice(special, len(column)), np.where(feature.missing, np.nan, column),
            ]  # fmt: skip
        which = random.integers(0, 2 * len(choices), len(column))
        for index, values in enumerate(choices):
            column = np.where(which == index, values, column)
        if not feature.missing:
            column = np.nan_to_num(column, nan=0.0, posinf=np.inf, neginf=-np.inf)
        rows[:, own] = column
    return rows


def results(forest: Forest, netlist: Netlist, evaluation: Evaluation) -> NDArray[np.int64]:
    """Returns the evaluator's results in the order of the netlist's outputs: (rows, fields) of label, score0, ...
    forest: the quantized forest of both."""
    columns: list[NDArray[Any]] = []
    for port, _ in netlist.outputs:
        if port.kind == "label":
            columns.append(evaluation.index.reshape(len(evaluation.index), -1)[:, port.index])
        elif port.kind == "score":
            columns.append(evaluation.scores[:, port.index])
        elif port.kind in ("second", "distance"):
            columns.append(runners_up(forest, evaluation)[port.kind == "distance"][:, port.index])
    return np.stack(columns, axis=1).astype(np.int64)


def expected(forest: Forest, netlist: Netlist, words: WordArray) -> NDArray[np.int64]:
    return results(forest, netlist, evaluate_words(forest, words))


def values_of(forest: Forest, evaluation: Evaluation) -> NDArray[np.float64]:
    """Returns the evaluator's values (rows, columns). A column is a class or, for a regression, an output."""
    columns = []
    for part in forest.targets:
        values = evaluation.values[:, part.start : part.stop]
        binary = part.width == 1 and len(part.classes) == 2
        columns.append(np.concatenate([1 - values, values], axis=1) if binary else values)
    return np.asarray(np.concatenate(columns, axis=1), dtype=np.float64)
