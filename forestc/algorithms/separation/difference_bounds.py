"""Integers whose differences have lower bounds: a system of difference constraints, solved by longest paths.

The last variable is 0, so that bounds on single integers are differences to it.
"""

from __future__ import annotations

import numpy as np

from forestc.algorithms.arrays import Ints

NO_BOUND = -(1 << 40)  # below any bound on integers of 32 bits; sums of two still fit into int64


def closed(bounds: Ints) -> Ints | None:
    """All bounds that follow (Floyd and Warshall), or None if no integers meet them.

    bounds: (n, n), v[a] - v[b] >= bounds[a, b]; NO_BOUND where there is none. Time O(n^3).
    """
    result = bounds.copy()
    np.fill_diagonal(result, np.maximum(result.diagonal(), 0))
    for k in range(len(result)):
        result = np.maximum(result, result[:, k, np.newaxis] + result[k])
    return None if (result.diagonal() > 0).any() else np.maximum(result, NO_BOUND)


def middle(bounds: Ints) -> Ints | None:
    """Integers (n,), the last of them 0, that meet all bounds, each in turn in the middle of what the others leave it;
    None if there are none. Each needs a lower and an upper bound."""
    tight = closed(bounds)
    if tight is None:
        return None
    last = len(bounds) - 1
    for place in range(last):
        least, most = int(tight[place, last]), -int(tight[last, place])
        value = least + (most - least) // 2
        fixed = tight.copy()
        fixed[place, last], fixed[last, place] = value, -value
        again = closed(fixed)
        assert again is not None
        tight = again
    return np.append(tight[:last, last], 0)
