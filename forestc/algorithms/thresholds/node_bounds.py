"""Computes how far each node's threshold may move without changing any given row's path (Nakamura and Sakurada 2022,
section 3), or with at most m rows of either side changing sides (problem 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Bytes, Floats, Int32s, Ints, Words
from forestc.system.compiled import compiled, share_out

Columns: TypeAlias = NDArray[np.float32] | Floats


class FlatTrees(NamedTuple):
    """The nodes of all trees, concatenated; children are indices into all nodes, -1 at a leaf."""

    roots: Ints
    feature: Int32s
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Bits
    set_start: Ints  # start of a node's set in `members`; -1 without a set
    set_end: Ints  # end of the set
    members: Floats  # values of all sets; without `cuts`, these values go left
    cuts: Bits  # True: left if an odd number of members is <= the value
    deepest: int  # number of conditions on the longest path


_FIELDS = {  # holds the fields of a node in one cache line
    "threshold": np.float64, "low": np.float64, "high": np.float64, "count": np.int64, "left": np.int32,
    "right": np.int32, "feature": np.int32, "set_start": np.int32, "set_end": np.int32, "missing_left": np.uint8,
    "cuts": np.uint8,
}  # fmt: skip
_NODE = np.dtype([*_FIELDS.items(), ("unused", np.uint8, 10)])


class Arrangement(NamedTuple):
    """Rows sorted by leaf: node n of tree t was reached by row[t, begin[n] : end[n]]."""

    row: Int32s
    begin: Int32s
    end: Int32s


@dataclass(frozen=True)
class NodeBounds:
    """Bounds of thresholds: a node's threshold may lie in (low, high]."""

    low: Floats  # (nodes,) -inf at leaves and nodes with sets
    high: Floats  # (nodes,) inf at leaves and nodes with sets
    count: Ints  # (nodes,) number of rows, with copies, that reached the node


class BoundsUpdate:
    """Bounds of thresholds that are narrowed batch by batch."""

    def __init__(self, trees: FlatTrees) -> None:
        self._trees = trees
        self._nodes = np.zeros(len(trees.feature), dtype=_NODE).view(np.recarray)
        for name in ("threshold", "left", "right", "feature", "set_start", "set_end", "missing_left", "cuts"):
            self._nodes[name] = getattr(trees, name)
        self._nodes["low"], self._nodes["high"] = -np.inf, np.inf

    @property
    def bounds(self) -> NodeBounds:
        return NodeBounds(*(np.ascontiguousarray(self._nodes[name]) for name in ("low", "high", "count")))

    def merge(self, other: BoundsUpdate) -> None:
        mine, theirs = self._nodes, other._nodes
        mine["low"] = np.maximum(mine["low"], theirs["low"])
        mine["high"] = np.minimum(mine["high"], theirs["high"])
        mine["count"] += theirs["count"]

    def update(self, columns: Columns, drawn: Bytes | None = None) -> None:
        """Narrows the bounds by a batch of rows. columns: (features, rows), NaN if missing. drawn: (trees, rows) how
        often each tree's bootstrap sample holds a row."""
        self._pass(columns, drawn, np.zeros((2, 0), dtype=np.int32))

    def arrange(self, columns: Columns, drawn: Bytes | None = None) -> Arrangement:
        """Narrows the bounds as `update` does. Returns the rows sorted by leaf, so that the rows of each node are
        contiguous."""
        spans = np.zeros((2, len(self._nodes)), dtype=np.int32)
        return Arrangement(self._pass(columns, drawn, spans), *spans)

    def _pass(self, columns: Columns, drawn: Bytes | None, spans: Int32s) -> Int32s:
        trees = self._trees
        counts = np.zeros((0, 0), dtype=np.uint8) if drawn is None else np.ascontiguousarray(drawn)
        index = np.empty((len(trees.roots), columns.shape[1] + 1), dtype=np.int32)
        arguments = np.ascontiguousarray(columns), counts, trees, self._nodes, index, spans
        share_out(len(trees.roots), lambda first, last: _arrange(*arguments, first, last))
        return index


@compiled(lambda columns, *given: 10 * columns.shape[1] * (given[-1] - given[-2]))
def _arrange(
    columns: Columns, drawn: Bytes, trees: FlatTrees, nodes: np.recarray[Any, Any], indices: Int32s, spans: Int32s,
    first: int, last: int,
) -> None:  # fmt: skip
    roots, members, deepest, begins, ends = trees.roots, trees.members, trees.deepest, spans[0], spans[1]
    rows = columns.shape[1]
    all_once, recorded = drawn.shape[0] == 0, len(begins) > 0
    for tree in range(first, last):
        index, spare = indices[tree], np.empty(rows + 1, dtype=np.int32)
        shown = 0
        for row in range(rows):
            index[shown] = row
            shown += all_once or drawn[tree, row] > 0
        waiting = np.empty((deepest + 2, 3), dtype=np.int32)  # nodes to visit, each with where its rows begin and end
        waiting[0, 0], waiting[0, 1], waiting[0, 2] = roots[tree], 0, shown
        depth = 1
        while depth > 0:
            depth -= 1
            at_node, begin, end = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
            node = nodes[at_node]
            if end == begin + 1 and all_once:  # one row needs no partitioning
                row = index[begin]
                while node.left >= 0 and node.set_start < 0:
                    if recorded:
                        begins[at_node], ends[at_node] = begin, end
                    node.count += 1
                    value = columns[node.feature, row]
                    if value < node.threshold:
                        node.low = max(node.low, value)
                        at_node = node.left
                    elif value >= node.threshold:
                        node.high = min(node.high, value)
                        at_node = node.right
                    else:
                        at_node = node.left if node.missing_left else node.right
                    node = nodes[at_node]
            if recorded:
                begins[at_node], ends[at_node] = begin, end
            if all_once:
                node.count += end - begin
            else:
                for at in range(begin, end):
                    node.count += drawn[tree, index[at]]
            if node.left < 0:
                continue
            x, t, default = columns[node.feature], node.threshold, node.missing_left > 0
            middle, others = begin, 0
            if node.set_start >= 0:
                for at in range(begin, end):
                    row = index[at]
                    goes_left = default
                    if not np.isnan(x[row]):
                        goes_left = False
                        for member in range(node.set_start, node.set_end):
                            if node.cuts:
                                goes_left ^= members[member] <= x[row]
                            else:
                                goes_left |= members[member] == x[row]
                    index[middle] = row
                    spare[others] = row
                    middle += goes_left
                    others += not goes_left
            else:
                lowest, highest = node.low, node.high
                for at in range(begin, end):  # branch-free: the side of a row is unpredictable
                    row = index[at]
                    value = x[row]
                    less, not_less = value < t, value >= t
                    lowest = max(lowest, value if less else -np.inf)
                    highest = min(highest, value if not_less else np.inf)
                    goes_left = less | (default & (not less) & (not not_less))
                    index[middle] = row
                    spare[others] = row
                    middle += goes_left
                    others += not goes_left
                node.low, node.high = lowest, highest
            for at in range(others):
                index[middle + at] = spare[at]
            if middle < end:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = node.right, middle, end
                depth += 1
            if begin < middle:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = node.left, begin, middle
                depth += 1


DIGIT = 4  # bits of a digit in the radix selection
DIGITS = 1 << DIGIT  # equals the number of values of a digit


@dataclass
class Tails:
    """A radix selection of two row values for each node, one on either side of its threshold. Arrays are (nodes, 2),
    left side first."""

    prefix: Words  # digits found so far; keys ascend away from the threshold
    rank: Ints  # rank of the searched row among keys with this prefix; negative if none
    bits: int  # bits of a key
    found: int = 0  # bits found so far

    @staticmethod
    def of(changeable: Ints, bits: int) -> Tails:
        """Returns a new radix selection. changeable: (nodes,) number of rows that may change sides. bits: bits of a
        float."""
        rank = np.stack([changeable, changeable], axis=1)
        return Tails(np.zeros(rank.shape, dtype=np.uint64), rank, bits)

    @property
    def done(self) -> bool:
        return self.found == self.bits

    def counts(self, columns: Columns, trees: FlatTrees, order: Arrangement, drawn: Bytes | None) -> Ints:
        """Returns how often each next digit occurs among the keys of a batch of rows, (nodes, 2, DIGITS)."""
        result = np.zeros((*self.rank.shape, DIGITS), dtype=np.int64)
        times = np.zeros((0, 0), dtype=np.uint8) if drawn is None else drawn
        batch = _Batch(columns, _keys(columns, self.bits), times, order)
        sought = _Sought(self.prefix, self.rank, self.bits, self.bits - self.found)
        share_out(len(trees.roots), lambda first, last: _count(batch, trees, sought, result, first, last))
        return result

    def advance(self, counts: Ints) -> None:
        """Determines the next digit of each value. counts: results of `Tails.counts`, added up over all batches."""
        up_to = np.cumsum(counts, axis=2)
        digit = np.argmax(up_to > self.rank[:, :, np.newaxis], axis=2)
        absent = up_to[:, :, -1] <= self.rank
        before = np.take_along_axis(up_to, digit[:, :, np.newaxis], axis=2)[:, :, 0]
        before -= np.take_along_axis(counts, digit[:, :, np.newaxis], axis=2)[:, :, 0]
        self.rank = np.where(absent | (self.rank < 0), -1, self.rank - before)
        self.prefix = (self.prefix << np.uint64(DIGIT)) | digit.astype(np.uint64)
        self.found += DIGIT

    def bounds(self) -> tuple[Floats, Floats]:
        """Returns the lower and upper bounds of the nodes' thresholds, (nodes,) each. All digits must be found."""
        full = np.uint64((1 << self.bits) - 1)
        low, high = (_values(key, self.bits) for key in (full - self.prefix[:, 0], self.prefix[:, 1]))
        return np.where(self.rank[:, 0] < 0, -np.inf, low), np.where(self.rank[:, 1] < 0, np.inf, high)


def _keys(columns: Columns, bits: int) -> NDArray[Any]:
    """Returns floats as unsigned integers in the same order."""
    unsigned: Any = np.uint32 if bits == 32 else np.uint64
    words = (columns + columns.dtype.type(0)).view(unsigned)
    top = unsigned(1 << (bits - 1))
    return np.asarray(np.where(words & top, ~words, words | top))


def _values(keys: Words, bits: int) -> Floats:
    unsigned, floating = (np.uint32, np.float32) if bits == 32 else (np.uint64, np.float64)
    top = unsigned(1 << (bits - 1))
    keys = keys.astype(unsigned)
    return np.where(keys & top, keys ^ top, ~keys).astype(unsigned).view(floating).astype(np.float64)


class _Batch(NamedTuple):
    """A batch of rows for the radix selection."""

    columns: Columns  # (features, rows)
    keys: Words  # (features, rows) sort keys
    drawn: Bytes  # (trees, rows) copies of a row; empty for one copy each
    order: Arrangement


class _Sought(NamedTuple):
    """The prefixes and ranks that `Tails` searches for."""

    prefix: Words
    rank: Ints
    bits: int
    open_bits: int  # bits of a key not yet found


@compiled()
def _count(batch: _Batch, nodes: FlatTrees, sought: _Sought, counts: Ints, first: int, past: int) -> None:
    """Adds the next digits of the keys at each node to `counts`."""
    drawn, order, rank, open_bits = batch.drawn, batch.order, sought.rank, np.uint64(sought.open_bits)
    shift = open_bits - np.uint64(DIGIT)
    full = ~np.uint64(0) >> np.uint64(64 - sought.bits)
    for tree in range(first, past):
        last = nodes.roots[tree + 1] if tree + 1 < len(nodes.roots) else len(nodes.left)
        for node in range(nodes.roots[tree], last):
            if nodes.left[node] < 0 or nodes.set_start[node] >= 0:
                continue
            x, key = batch.columns[nodes.feature[node]], batch.keys[nodes.feature[node]]
            threshold, prefix = nodes.threshold[node], sought.prefix[node]
            for at in range(order.begin[node], order.end[node]):
                row = order.row[tree, at]
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
