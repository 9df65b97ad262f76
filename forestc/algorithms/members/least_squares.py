"""Selects trees of a regression by least squares, each choice with its best scale and offset.

Sums of products over the rows are computed once, so a move costs no pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Floats, Int32s, Ints

SWEEPS = 4  # sweeps of `refit` over all trees


@dataclass(frozen=True)
class Squares:
    """An `Objective` for a regression: the members' values are added up, scaled, and offset. Its value is the number of
    rows times R squared, for the best scale and offset. products: (members, members) sums over the rows of products of
    two members' values, each less its mean. targets: (members,) the same of a member and the labels. total: sum of the
    squared labels, less their mean."""

    products: Floats
    targets: Floats
    total: float
    rows: int

    @staticmethod
    def of(values: Floats, label: Floats) -> Squares:
        """Returns the objective for values (members, rows) and labels (rows,)."""
        centered, target = values - values.mean(axis=1, keepdims=True), label - label.mean()
        return Squares(centered @ centered.T, centered @ target, float(target @ target), len(label))

    @property
    def members(self) -> int:
        return len(self.targets)

    def sums(self, times: Ints) -> NDArray[Any]:
        return np.concatenate([self.products @ times, [self.targets @ times, times @ self.products @ times]])

    def moved(self, sums: NDArray[Any], member: int, step: int) -> NDArray[Any]:
        with_all = sums[:-2]
        square = step * (2 * with_all[member] + step * self.products[member, member])
        return np.concatenate(
            [with_all + step * self.products[member], [sums[-2] + step * self.targets[member], sums[-1] + square]]
        )

    def value(self, sums: NDArray[Any]) -> tuple[float, int]:
        return float(self._explained(sums[-2], sums[-1])), 0

    def values_after(self, sums: NDArray[Any], steps: Ints, smooth: float) -> Floats:
        squares = steps * (2 * sums[:-2] + steps * np.diag(self.products))
        values = self._explained(sums[-2] + steps * self.targets, sums[-1] + squares)
        return np.asarray(np.where(steps == 0, -np.inf, values))

    def scale(self, times: Ints) -> float:
        """Returns the best factor for the sum of a choice, at least 0; 0 if no factor beats the mean label."""
        target, square = float(self.targets @ times), float(times @ self.products @ times)
        return max(0.0, target) / square if square > 0 else 0.0

    def _explained(self, target: Floats, square: Floats) -> Any:
        """Returns rows times R squared: the best scale >= 0 lowers the squared error by target^2 / square."""
        won = np.divide(np.maximum(target, 0.0) ** 2, square, out=np.zeros_like(square * 1.0), where=square > 1e-12)
        return self.rows * won / self.total if self.total > 0 else won * 0.0


def refit(leaf: Int32s, values: list[Ints], bias: float, target: Floats) -> list[Ints]:
    """Returns new leaf values of trees that are added up, by least squares, one tree after the other. leaf: (trees,
    rows) the leaf that each row reaches. values: for each tree, (leaves,) integers. New values are integers between the
    smallest and the largest of all. bias: added to the sums. target: (rows,) in units of the leaves. Takes O(SWEEPS *
    trees * rows) time."""
    values = [leaves.copy() for leaves in values]
    low, high = min(int(leaves.min()) for leaves in values), max(int(leaves.max()) for leaves in values)
    total = bias + sum(leaves[at] for leaves, at in zip(values, leaf, strict=True))
    for _ in range(SWEEPS):
        for leaves, at in zip(values, leaf, strict=True):
            rows = np.bincount(at, minlength=len(leaves))
            missing = np.bincount(at, target - total, minlength=len(leaves))
            # Counts a row without error for each leaf, so that leaves with few rows move less.
            new = np.clip(np.rint(leaves + missing / (rows + 1)), low, high).astype(np.int64)
            total = total + (new - leaves)[at]
            leaves[:] = new
    return values
