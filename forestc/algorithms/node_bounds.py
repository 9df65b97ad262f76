"""How far each node's threshold may move without changing any given row's path.

For a node reached by some rows, `x < t` splits them alike for every t in (low, high], where low is the largest value
that went left and high the smallest that went right (Nakamura and Sakurada 2022, section 3, with their `x <= theta`
turned into our strict form). A max/min reduction over rows: bounds are updated batch by batch, and bounds of
different rows merge.

A tree is gone through as in training: the rows of a node lie side by side and are parted by its condition, so that
the threshold and the bounds stay in registers and one column of the batch in the cache. Time O(rows * trees *
depth), all cores. The order that leaves behind, an `Arrangement`, answers whatever else is asked of a node's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numba import prange
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled

Columns: TypeAlias = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class FlatTrees:
    """Trees laid one after another; children are indices into the whole, -1 at a leaf.

    A node whose `set_start` is not -1 sends a row left if its value is one of the members[set_start :
    set_end], or where `cuts` says so, if an odd number of them is not above it; any other node if its value
    is below the threshold. deepest: conditions on the longest path.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    set_start: NDArray[np.int64]
    set_end: NDArray[np.int64]
    members: NDArray[np.float64]
    cuts: NDArray[np.bool_]
    deepest: int


@dataclass(frozen=True)
class Arrangement:
    """Rows in the order of the leaves: node n of tree t was reached by the rows index[t, begin[n] : end[n]]."""

    index: NDArray[np.int32]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]


@dataclass(frozen=True)
class NodeBounds:
    """low, high: (nodes,) the threshold may lie in (low, high]; count: rows that reached the node, as often as drawn.

    Leaves and nodes of sets keep -inf and inf.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    count: NDArray[np.int64]

    @staticmethod
    def of(nodes: int) -> NodeBounds:
        """Before any row was seen."""
        return NodeBounds(np.full(nodes, -np.inf), np.full(nodes, np.inf), np.zeros(nodes, dtype=np.int64))

    def update(self, columns: Columns, trees: FlatTrees, drawn: NDArray[np.uint8] | None = None) -> Arrangement:
        """Narrows the bounds by some rows. columns: (features, rows), float32 or float64, NaN is missing. drawn:
        (trees, rows) how often each tree was shown a row; None: all once."""
        rows, nodes = columns.shape[1], len(trees.feature)
        shown = np.zeros((0, 0), dtype=np.uint8) if drawn is None else np.ascontiguousarray(drawn)
        order = Arrangement(
            np.empty((len(trees.roots), rows + 1), dtype=np.int32),  # one more: parting writes before it knows the side
            np.zeros(nodes, dtype=np.int32),
            np.zeros(nodes, dtype=np.int32),
        )
        _arrange(
            np.ascontiguousarray(columns),
            shown,
            trees.roots,
            trees.feature,
            trees.threshold,
            trees.left,
            trees.right,
            trees.missing_left,
            trees.set_start,
            trees.set_end,
            trees.members,
            trees.cuts,
            trees.deepest,
            self.low,
            self.high,
            self.count,
            order.index,
            order.begin,
            order.end,
        )
        return order

    def merge(self, other: NodeBounds) -> None:
        """Narrows by what other rows said."""
        np.maximum(self.low, other.low, out=self.low)
        np.minimum(self.high, other.high, out=self.high)
        np.add(self.count, other.count, out=self.count)


def reached(columns: Columns, trees: FlatTrees) -> NDArray[np.int64]:
    """The leaf, an index into the whole, that each row reaches: (trees, rows)."""
    order = NodeBounds.of(len(trees.feature)).update(columns, trees)
    leaves = np.empty((len(trees.roots), columns.shape[1]), dtype=np.int64)
    _spread(trees.roots, trees.left, order.index, order.begin, order.end, leaves)
    return leaves


@compiled()
def _spread(roots: Any, left: Any, index: Any, begin: Any, end: Any, leaves: Any) -> None:
    for tree in range(len(roots)):
        last = roots[tree + 1] if tree + 1 < len(roots) else len(left)
        for node in range(roots[tree], last):
            if left[node] < 0:
                for at in range(begin[node], end[node]):
                    leaves[tree, index[tree, at]] = node


def _kernel(
    columns: Any,
    drawn: Any,
    roots: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    set_start: Any,
    set_end: Any,
    members: Any,
    cuts: Any,
    deepest: int,
    low: Any,
    high: Any,
    count: Any,
    indices: Any,
    begins: Any,
    ends: Any,
) -> None:
    rows = columns.shape[1]
    for tree in prange(len(roots)):
        index, spare = indices[tree], np.empty(rows + 1, dtype=np.int32)
        shown = 0
        for row in range(rows):
            index[shown] = row
            shown += drawn.shape[0] == 0 or drawn[tree, row] > 0
        waiting = np.empty((deepest + 2, 3), dtype=np.int64)  # nodes to visit, each with where its rows begin and end
        waiting[0, 0], waiting[0, 1], waiting[0, 2] = roots[tree], 0, shown
        depth = 1
        while depth > 0:
            depth -= 1
            node, begin, end = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
            begins[node], ends[node] = begin, end
            if drawn.shape[0] == 0:
                count[node] += end - begin
            else:
                for at in range(begin, end):
                    count[node] += drawn[tree, index[at]]
            if left[node] < 0:
                continue
            x, t, default = columns[feature[node]], threshold[node], missing_left[node]
            middle, others = begin, 0
            if set_start[node] >= 0:
                for at in range(begin, end):
                    row = index[at]
                    goes_left = default
                    if not np.isnan(x[row]):
                        goes_left = False
                        for place in range(set_start[node], set_end[node]):
                            if cuts[node]:
                                goes_left ^= members[place] <= x[row]
                            else:
                                goes_left |= members[place] == x[row]
                    index[middle] = row
                    spare[others] = row
                    middle += goes_left
                    others += not goes_left
            else:
                lowest, highest = low[node], high[node]
                for at in range(begin, end):  # without branches: which way a row goes can't be foreseen
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
                low[node], high[node] = lowest, highest
            for at in range(others):
                index[middle + at] = spare[at]
            if middle < end:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = right[node], middle, end
                depth += 1
            if begin < middle:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = left[node], begin, middle
                depth += 1


_arrange = compiled(parallel=True, nogil=True)(_kernel)
