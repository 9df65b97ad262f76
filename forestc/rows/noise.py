"""Adds noise to rows: a value moves to another value of its column, a few ranks away in sorted order."""

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
    """Returns a copy of `values`. Each value moves by a random number of ranks in its column of `among`.
    noise: standard deviation of the move, as a share of all ranks.
    stays: True for values that do not move."""
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
