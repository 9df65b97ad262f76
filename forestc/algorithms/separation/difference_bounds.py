"""Solves difference constraints: lower bounds on differences of integers. The last integer is 0, so that single
integers have bounds too."""

from __future__ import annotations

import numpy as np

from forestc.algorithms.arrays import Ints

NO_BOUND = -(1 << 40)  # stands for no bound, below all differences of 32-bit integers


def closed(bounds: Ints) -> Ints | None:
    """Returns the tightest bounds, (n, n), that follow from v[a] - v[b] >= bounds[a, b]; None if no integers exist."""
    result = bounds.copy()
    np.fill_diagonal(result, np.maximum(result.diagonal(), 0))
    for k in range(len(result)):
        result = np.maximum(result, result[:, k, np.newaxis] + result[k])
    return None if (result.diagonal() > 0).any() else np.maximum(result, NO_BOUND)


def middle(bounds: Ints) -> Ints | None:
    """Returns integers (n,) near the middle of their ranges that meet all bounds; None if there are none. Each integer
    needs a lower and an upper bound."""
    tight = closed(bounds)
    if tight is None:
        return None
    last = len(bounds) - 1
    for variable in range(last):
        least, most = int(tight[variable, last]), -int(tight[last, variable])
        value = least + (most - least) // 2
        fixed = tight.copy()
        fixed[variable, last], fixed[last, variable] = value, -value
        again = closed(fixed)
        assert again is not None
        tight = again
    return np.append(tight[:last, last], 0)
