"""Noise on rows: values move to others of their column a few ranks away.

Rows with noise teach that near values mean the same, which few rows do not tell by themselves. Ranks are moved, so that
noise does not depend on the scale or the spread of a column, a value that many rows share stays common, and every value
is one that the column has.
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
    """The values, each moved by a normal number of ranks.

    values: (rows, columns); among: (others, columns), the ranks. noise: standard deviation, as a share of the others.
    Where values are equal, a rank is drawn among theirs first. stays: (rows, columns), values that do not move, nor are
    moved to; NaN is one anyway. Time grows with values x log(others).
    """
    moved = values.copy()
    for column in range(values.shape[1]):
        before, others = values[:, column], among[:, column]
        fixed = before != before
        if stays is not None:
            fixed = fixed | stays[:, column]
        if fixed.all():
            continue
        known = np.sort(others[~np.isin(others, before[fixed])] if fixed.any() else others)
        known = known[known == known]  # without NaN
        if not len(known) or known[0] == known[-1]:
            continue
        first, past = (np.searchsorted(known, before, side=side) for side in ("left", "right"))
        rank = first + random.random(len(before)) * (past - first) + random.normal(0.0, noise * len(known), len(before))
        near = known[np.clip(np.floor(rank), 0, len(known) - 1).astype(np.int64)]
        moved[:, column] = np.where(fixed, before, near)
    return moved
