"""Measures accuracy batch by batch: the share of right decisions, or R squared of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.evaluate import Evaluation, score_range
from forestc.forest.ir import Forest
from forestc.rows.batches import Batch

GENERATED = "generated"  # marks generated rows, used if no rows were given
# Maps some values of `measured_on` to explanations for users.
MEASURED_ON = {
    GENERATED: "generated rows, on and beside the model's thresholds and random, as no rows were given",
    "fitted": "the rows the passes were fitted on",
    "fitted_and_held_out": "the rows the passes were fitted on, and the held-out rows",
}


@dataclass
class Accuracy:
    """The accuracy of a forest's answers, accumulated over batches."""

    decides: bool
    rows: float = 0  # number of rows, or sum of their weights
    _right: float = 0
    _error: float = 0.0
    _values: float = 0
    _sum: float = 0.0
    _squares: float = 0.0
    _origin: float = 0.0

    def add(self, answers: NDArray[Any], batch: Batch) -> None:
        """Adds a batch with labels. answers: class indices or values, (rows,) or (rows, targets)."""
        rows = len(answers)
        assert batch.truth is not None
        weights = np.ones((rows, 1)) if batch.weights is None else batch.weights[:, None]
        self.rows += float(weights.sum())
        answers, truth = answers.reshape(rows, -1), batch.truth.reshape(rows, -1)
        if self.decides:
            self._right += float((weights * (answers == truth).all(axis=1, keepdims=True)).sum())
            return
        truth = truth.astype(np.float64)
        self._error += float((weights * (answers - truth) ** 2).sum())
        if not self._values:
            # Sums of differences from the first label stay precise, even for large labels.
            self._origin = float(truth.flat[0])
        self._values += float(weights.sum()) * truth.shape[1]
        truth = truth - self._origin
        self._sum += float((weights * truth).sum())
        self._squares += float((weights * truth * truth).sum())

    @property
    def share(self) -> float | None:
        """The accuracy or R squared; None without rows, or if all labels of a regression are equal."""
        if not self.rows:
            return None
        if self.decides:
            return self._right / self.rows
        total = self._squares - self._sum**2 / self._values
        return 1 - self._error / total if total > 0 else None


def answers_of(forest: Forest, evaluation: Evaluation) -> NDArray[Any]:
    """Returns the answers to compare with labels: class indices, or values of a regression."""
    return evaluation.index if forest.decides else evaluation.values


def truth_of_batch(batch: Batch, model: NDArray[Any]) -> NDArray[Any]:
    return model if batch.truth is None else batch.truth


@dataclass
class LargestError:
    """The largest difference between the values of two forests after the link, over all batches."""

    before: Forest
    after: Forest
    error: float = 0.0
    _low: float = np.inf
    _high: float = -np.inf

    def add(self, expected: NDArray[Any], got: NDArray[Any]) -> None:
        """Adds a batch. expected, got: values of `before` and `after`, (rows, outputs)."""
        if not len(expected):
            return
        columns: list[int] = []
        for old, new in zip(self.before.targets, self.after.targets, strict=True):
            columns += range(old.start + ((old.width, new.width) == (2, 1)), old.stop)
        expected = expected[:, np.array(columns)].astype(np.float64)
        self._low, self._high = min(self._low, float(expected.min())), max(self._high, float(expected.max()))
        with np.errstate(invalid="ignore"):
            error = np.where(expected == got, 0.0, np.abs(expected - got))
        self.error = max(self.error, float(np.where(np.isnan(error), np.inf, error).max()))

    @property
    def share(self) -> float:
        """The largest error, divided by the range of the values unless these are probabilities."""
        probabilities = self.before.decides and self._low >= 0 and self._high <= 1
        return self.error if probabilities or not self.error else self.error / score_range(self._low, self._high)
