"""How far a node's threshold may move if a few of its rows may change sides (Nakamura and Sakurada 2022, problem 4).

If m rows of either side may change, low is the (m + 1)-th largest value that went left and high the (m + 1)-th
smallest that went right. A radix selection finds them digit by digit: each pass over the rows counts, for each node
and side, the next digit of the values that share the prefix found so far. A pass costs as much as computing the
bounds, memory stays O(nodes), and the counts of different batches are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled, share_out
from forestc.algorithms.thresholds.node_bounds import Arrangement, Columns, FlatTrees

DIGIT = 4  # bits
DIGITS = 1 << DIGIT


@dataclass
class Tails:
    """The radix selection of each node's two values: arrays (nodes, 2), side 0 went left, side 1 right.

    prefix: the digits found so far, of keys that ascend away from the threshold. rank: the rank of the wanted row among
    those with that prefix; negative where a side has no such row. bits: of a key. found: bits found so far.
    """

    prefix: NDArray[np.uint64]
    rank: NDArray[np.int64]
    bits: int
    found: int = 0

    @staticmethod
    def of(changeable: NDArray[np.int64], bits: int) -> Tails:
        """changeable: (nodes,) rows that may change sides. bits: 32 or 64, of the columns' floats."""
        rank = np.stack([changeable, changeable], axis=1)
        return Tails(np.zeros(rank.shape, dtype=np.uint64), rank, bits)

    @property
    def done(self) -> bool:
        return self.found == self.bits

    def counts(
        self, columns: Columns, trees: FlatTrees, order: Arrangement, drawn: NDArray[np.uint8] | None
    ) -> NDArray[np.int64]:
        """(nodes, 2, DIGITS): how often each digit comes next in the keys of a batch of rows."""
        result = np.zeros((*self.rank.shape, DIGITS), dtype=np.int64)
        times = np.zeros((0, 0), dtype=np.uint8) if drawn is None else drawn
        batch = _Batch(columns, _keys(columns, self.bits), times, order.index, order.begin, order.end)
        nodes = _Nodes(trees.roots, trees.feature, trees.threshold, trees.left, trees.set_start)
        wanted = _Wanted(self.prefix, self.rank, self.bits, self.bits - self.found)
        share_out(len(trees.roots), lambda first, last: _count(batch, nodes, wanted, result, first, last))
        return result

    def advance(self, counts: NDArray[np.int64]) -> None:
        """Takes the next digit from the counts over all rows."""
        up_to = np.cumsum(counts, axis=2)
        digit = np.argmax(up_to > self.rank[:, :, np.newaxis], axis=2)
        absent = up_to[:, :, -1] <= self.rank
        before = np.take_along_axis(up_to, digit[:, :, np.newaxis], axis=2)[:, :, 0]
        before -= np.take_along_axis(counts, digit[:, :, np.newaxis], axis=2)[:, :, 0]
        self.rank = np.where(absent | (self.rank < 0), -1, self.rank - before)
        self.prefix = (self.prefix << np.uint64(DIGIT)) | digit.astype(np.uint64)
        self.found += DIGIT

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """low and high of each node, (nodes,) each, once all digits are found."""
        full = np.uint64((1 << self.bits) - 1)
        low, high = (_values(key, self.bits) for key in (full - self.prefix[:, 0], self.prefix[:, 1]))
        return np.where(self.rank[:, 0] < 0, -np.inf, low), np.where(self.rank[:, 1] < 0, np.inf, high)


def _keys(columns: Columns, bits: int) -> NDArray[Any]:
    """Order-preserving unsigned integers of floats; -0.0 gets the key of 0.0."""
    unsigned: Any = np.uint32 if bits == 32 else np.uint64
    words = (columns + columns.dtype.type(0)).view(unsigned)
    top = unsigned(1 << (bits - 1))
    return np.asarray(np.where(words & top, ~words, words | top))


def _values(keys: NDArray[np.uint64], bits: int) -> NDArray[np.float64]:
    unsigned, floating = (np.uint32, np.float32) if bits == 32 else (np.uint64, np.float64)
    top = unsigned(1 << (bits - 1))
    keys = keys.astype(unsigned)
    return np.where(keys & top, keys ^ top, ~keys).astype(unsigned).view(floating).astype(np.float64)


class _Batch(NamedTuple):
    """A batch of rows. columns, keys: (features, rows) floats and their keys. drawn: (trees, rows) how often each tree
    drew a row, or empty. index, begin, end: the `Arrangement`."""

    columns: Any
    keys: Any
    drawn: Any
    index: Any
    begin: Any
    end: Any


class _Nodes(NamedTuple):
    """The arrays of `FlatTrees` that counting reads."""

    roots: Any
    feature: Any
    threshold: Any
    left: Any
    set_start: Any


class _Wanted(NamedTuple):
    """What `Tails` looks for. open_bits: bits of a key that are not found yet."""

    prefix: Any
    rank: Any
    bits: int
    open_bits: int


@compiled()
def _count(batch: _Batch, nodes: _Nodes, wanted: _Wanted, counts: Any, first: int, past: int) -> None:
    """Adds to counts (nodes, 2, DIGITS) the next digits of the keys at the nodes of trees first .. past - 1."""
    drawn, index, rank, open_bits = batch.drawn, batch.index, wanted.rank, np.uint64(wanted.open_bits)
    shift = open_bits - np.uint64(DIGIT)
    full = ~np.uint64(0) >> np.uint64(64 - wanted.bits)
    for tree in range(first, past):
        last = nodes.roots[tree + 1] if tree + 1 < len(nodes.roots) else len(nodes.left)
        for node in range(nodes.roots[tree], last):
            if nodes.left[node] < 0 or nodes.set_start[node] >= 0:
                continue
            x, key = batch.columns[nodes.feature[node]], batch.keys[nodes.feature[node]]
            threshold, prefix = nodes.threshold[node], wanted.prefix[node]
            for at in range(batch.begin[node], batch.end[node]):
                row = index[tree, at]
                if np.isnan(x[row]):
                    continue
                side = 0 if x[row] < threshold else 1
                if rank[node, side] < 0:
                    continue
                word = full - np.uint64(key[row]) if side == 0 else np.uint64(key[row])
                if open_bits < 64 and word >> open_bits != prefix[side]:
                    continue
                digit = (word >> shift) & np.uint64(DIGITS - 1)
                counts[node, side, digit] += 1 if drawn.shape[0] == 0 else drawn[tree, row]
