"""How far each node's threshold may move without changing any given row's path.

For a node reached by some rows, `x < t` splits them alike for every t in (low, high], where low is
the largest value that went left and high the smallest that went right (Nakamura and Sakurada 2022,
section 3, with their `x <= theta` turned into our strict form). One pass over rows and trees, a
max/min reduction: batches merge by calling again with the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled


@dataclass(frozen=True)
class FlatTrees:
    """Trees laid one after another; children are indices into the whole, -1 at a leaf.

    A node whose `set_start` is not -1 sends a row left if its value is one of the members[set_start :
    set_end], or where `cuts` says so, if an odd number of them is not above it; any other node if its value
    is below the threshold.
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


def update_node_bounds(
    rows: NDArray[np.float64], trees: FlatTrees, low: NDArray[np.float64], high: NDArray[np.float64]
) -> None:
    """Narrows `low` and `high` (one entry a node; -inf and inf at the start) by `rows`.

    rows: (n, features), NaN is missing. Nodes of sets keep the bounds they have. Time O(rows * trees *
    depth), all cores.
    """
    _update(
        rows,
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
        low,
        high,
    )


def _kernel(
    rows: Any,
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
    low: Any,
    high: Any,
) -> None:
    for tree in prange(len(roots)):
        for row in range(rows.shape[0]):
            node = roots[tree]
            while left[node] >= 0:
                x = rows[row, feature[node]]
                if np.isnan(x):
                    goes_left = missing_left[node]
                elif set_start[node] >= 0:
                    goes_left = False
                    for place in range(set_start[node], set_end[node]):
                        if cuts[node]:
                            goes_left ^= members[place] <= x
                        else:
                            goes_left |= members[place] == x
                elif x < threshold[node]:
                    goes_left = True
                    low[node] = max(low[node], x)
                else:
                    goes_left = False
                    high[node] = min(high[node], x)
                node = left[node] if goes_left else right[node]


_update = compiled(parallel=True, nogil=True)(_kernel)
