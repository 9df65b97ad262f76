"""Accuracy, batch by batch: the share of right decisions, or R squared of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest
from forestc.forest.rows import Batch


@dataclass
class Accuracy:
    """Of one forest's answers against the truth."""

    decides: bool
    rows: int = 0
    _right: int = 0
    _error: float = 0.0
    _values: int = 0
    _sum: float = 0.0
    _squares: float = 0.0
    _origin: float = 0.0

    def add(self, answers: NDArray[Any], truth: NDArray[Any]) -> None:
        """answers, truth: (rows,) or (rows, targets), class indices or values."""
        rows = len(answers)
        self.rows += rows
        answers, truth = answers.reshape(rows, -1), truth.reshape(rows, -1)
        if self.decides:
            self._right += int((answers == truth).all(axis=1).sum())
            return
        truth = truth.astype(np.float64)
        self._error += float(((answers - truth) ** 2).sum())
        if not self._values:
            self._origin = float(truth.flat[0])  # sums about it keep their digits, wherever the labels lie
        self._values += truth.size
        truth = truth - self._origin
        self._sum += float(truth.sum())
        self._squares += float((truth * truth).sum())

    @property
    def share(self) -> float | None:
        """Accuracy or R squared; None without rows, and for values that are all the same."""
        if not self.rows:
            return None
        if self.decides:
            return self._right / self.rows
        total = self._squares - self._sum**2 / self._values
        return 1 - self._error / total if total > 0 else None


def answers_of(forest: Forest, said: Evaluation) -> NDArray[Any]:
    """What is compared with the truth: class indices, or values."""
    return said.index if forest.decides else said.values


def judges(forest: Forest) -> bool:
    """Whether one column of labels can judge the forest: it answers with one class or one value."""
    return len(forest.targets) == 1 and (forest.decides or forest.n_scores == 1)


def truth_of_batch(forest: Forest, batch: Batch, model: NDArray[Any]) -> NDArray[Any]:
    """The labels; without labels (or with several outputs) what the model itself says, so that accuracy is
    agreement with the model. model: its answers."""
    return batch.truth if batch.truth is not None and judges(forest) else model
