"""Adds noise to rows: values move to other values of their column, a few ranks away.

Rows with noise teach that near values mean the same; few rows do not tell this by themselves. Because ranks are moved,
noise does not depend on the scale or the spread of a column, a common value stays common, and every value is one of the
column's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def with_noise(
    values: NDArray[np.generic],
    among: NDArray[np.generic],
    noise: float,
    random: np.random.Generator,
    stays: NDArray[np.bool_] | None = None,
) -> NDArray[np.generic]:
    """Returns the values, each moved by a normally distributed number of ranks. values: (rows, columns). among:
    (others, columns), the values that define the ranks. noise: standard deviation, as a share of the others. For equal
    values a rank is first drawn among their ranks. stays: (rows, columns), True for values that neither move nor are
    moved to; NaN never is. Time grows with values x log(others)."""
    moved = values.copy()
    for column in range(values.shape[1]):
        before, others = values[:, column], among[:, column]
        fixed = before != before
        if stays is not None:
            fixed = fixed | stays[:, column]
        if fixed.all():
            continue
        ranked = np.sort(others[~np.isin(others, before[fixed])] if fixed.any() else others)
        ranked = ranked[ranked == ranked]  # removes NaN
        if not len(ranked) or ranked[0] == ranked[-1]:
            continue
        first, past = (np.searchsorted(ranked, before, side=side) for side in ("left", "right"))
        rank = (
            first + random.random(len(before)) * (past - first) + random.normal(0.0, noise * len(ranked), len(before))
        )
        near = ranked[np.clip(np.floor(rank), 0, len(ranked) - 1).astype(np.int64)]
        moved[:, column] = np.where(fixed, before, near)
    return moved
