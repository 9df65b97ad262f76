"""How far each node's threshold may move without changing any given row's path.

For a node reached by some rows, `x < t` splits them alike for every t in (low, high], where low is
the largest value that went left and high the smallest that went right (Nakamura and Sakurada 2022,
section 3, with their `x <= theta` turned into our strict form). One pass over rows and trees, a
max/min reduction: batches merge by calling again with the same arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray


def update_node_bounds(
    rows: NDArray[np.float64],
    roots: NDArray[np.int64],
    feature: NDArray[np.int32],
    threshold: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    missing_left: NDArray[np.bool_],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None:
    """Widens nothing, narrows `low` and `high` (one entry a node, -inf and inf at the start) by `rows`.

    rows: (n, features), NaN is missing. The trees' nodes stand one tree after another; `left` and
    `right` are indices into the whole, -1 at a leaf. Time O(rows * trees * depth), all cores.
    """
    _update(rows, roots, feature, threshold, left, right, missing_left, low, high)


def _kernel(
    rows: Any,
    roots: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    low: Any,
    high: Any,
) -> None:
    for tree in prange(len(roots)):
        for row in range(rows.shape[0]):
            node = roots[tree]
            while left[node] >= 0:
                x = rows[row, feature[node]]
                if np.isnan(x):
                    node = left[node] if missing_left[node] else right[node]
                elif x < threshold[node]:
                    low[node] = max(low[node], x)
                    node = left[node]
                else:
                    high[node] = min(high[node], x)
                    node = right[node]


_update = njit(parallel=True, cache=True, nogil=True)(_kernel)
