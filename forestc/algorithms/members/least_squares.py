"""Selects trees of a regression by least squares; the sum of the chosen trees gets the best scale and offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Floats, Int32s, Ints

SWEEPS = 4  # sweeps of `refit` over all trees


@dataclass(frozen=True)
class Squares:
    """An objective for choosing trees of a regression: rows times R squared, after the best scale and offset."""

    products: Floats  # (members, members) products of centered values, summed over rows
    targets: Floats  # (members,) products of centered values and labels, summed over rows
    total: float  # sum of the squared centered labels
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
        """Returns the best factor for the sum of a choice, at least 0."""
        target, square = float(self.targets @ times), float(times @ self.products @ times)
        return max(0.0, target) / square if square > 0 else 0.0

    def _explained(self, target: Floats, square: Floats) -> Any:
        """Returns rows times R squared."""
        won = np.divide(np.maximum(target, 0.0) ** 2, square, out=np.zeros_like(square * 1.0), where=square > 1e-12)
        return self.rows * won / self.total if self.total > 0 else won * 0.0


def refit(leaf: Int32s, values: list[Ints], bias: float, target: Floats) -> list[Ints]:
    """Returns new integer leaf values by least squares, within the range of the old values. leaf: (trees, rows) leaf
    that each row reaches."""
    values = [leaves.copy() for leaves in values]
    low, high = min(int(leaves.min()) for leaves in values), max(int(leaves.max()) for leaves in values)
    total = bias + sum(leaves[at] for leaves, at in zip(values, leaf, strict=True))
    for _ in range(SWEEPS):
        for leaves, at in zip(values, leaf, strict=True):
            rows = np.bincount(at, minlength=len(leaves))
            missing = np.bincount(at, target - total, minlength=len(leaves))
            # Adds a row without error to each leaf, which slows leaves with few rows.
            new = np.clip(np.rint(leaves + missing / (rows + 1)), low, high).astype(np.int64)
            total = total + (new - leaves)[at]
            leaves[:] = new
    return values
