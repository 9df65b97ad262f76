"""Measures the accuracy that forests lose against the model on rows that chose nothing, with its standard error.

Passes that search, levels, the pipeline and exploration all use it, so that `tolerance` means the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import answers_to
from forestc.rows.accuracy import truth_of_batch
from forestc.rows.batches import Rows

ERRORS = 1.0  # standard errors that count as lost; more keep the word more often, and make designs larger


@dataclass(frozen=True)
class Loss:
    """The accuracy that a forest loses on judged rows.

    accuracy: the forest's share of right decisions, or R squared of a regression; without labels its agreement with the
    model. lost: the model's accuracy minus the forest's. error: the standard error of lost. rows: number of judged
    rows. measure: the name of the accuracy.
    """

    accuracy: float
    lost: float
    error: float
    rows: int
    measure: str

    @property
    def counted(self) -> float:
        """What counts as lost: lost plus ERRORS standard errors. They are added because the best of many forests looks
        better on these rows than it is, and on few rows any forest may."""
        return self.lost + ERRORS * self.error

    def within(self, tolerance: float) -> bool:
        """Whether what counts as lost is within the tolerance."""
        return self.counted <= tolerance


@dataclass(frozen=True)
class RowErrors:
    """A forest on judged rows. errors: (rows,) 0 or 1, or squared errors. truth: (rows,) or (rows, targets). decides:
    whether truth are classes. labeled: whether they are labels, not the forest's own answers."""

    errors: NDArray[np.float64]
    truth: NDArray[Any]
    decides: bool
    labeled: bool = True

    @property
    def measure(self) -> str:
        """As in Loss."""
        return ("accuracy" if self.decides else "R squared") if self.labeled else "agreement with the model"

    @cached_property
    def divisor(self) -> float:
        """What a sum of errors is divided by; 1 for values that are all equal."""
        if self.decides:
            return float(len(self.errors))
        labels = self.truth.reshape(len(self.truth), -1).astype(np.float64)
        return float(((labels - labels.mean()) ** 2).sum()) or 1.0

    @property
    def accuracy(self) -> float:
        return self._accuracy(self.errors)

    @property
    def standard_error(self) -> float:
        """The standard error of the accuracy. For R squared the variance of the labels counts as known. To the wrong
        decisions half a row is added, as without any the accuracy is not known to be 1."""
        if not self.decides:
            return self._error_of(self.errors)
        wrong = (float(self.errors.sum()) + 0.5) / (len(self.errors) + 1)
        return math.sqrt(wrong * (1 - wrong) / len(self.errors))

    def _accuracy(self, errors: NDArray[np.float64]) -> float:
        return (self.divisor - float(errors.sum())) / self.divisor

    def _error_of(self, errors: NDArray[np.float64]) -> float:
        """The standard error of the sum of errors, in units of accuracy."""
        rows = len(errors)
        spread = float(((errors - errors.mean()) ** 2).sum()) * rows / max(1, rows - 1)
        return float(np.sqrt(spread)) / self.divisor

    def loss(self, errors: NDArray[np.float64]) -> Loss:
        """The loss of a forest with these errors on the same rows.

        The standard error is that of the mean difference per row between the forest's and the model's error. For R
        squared the variance of the labels counts as known.
        """
        accuracy, error = self._accuracy(errors), self._error_of(errors - self.errors)
        return Loss(accuracy, self.accuracy - accuracy, error, len(errors), self.measure)


@dataclass(frozen=True)
class Scorer:
    """Judges forests made from a model on held-out rows, which passes do not see. The model's own answers stand in for
    missing labels. Methods raise OptionError without rows, and for a regression whose labels are all equal."""

    model: Forest
    held_out: Rows

    def of(self, forest: Forest) -> Loss:
        """The loss of a forest against the model."""
        return self.of_all([forest])[0]

    def of_all(self, forests: Sequence[Forest]) -> list[Loss]:
        """The losses of several forests, in one pass over the rows."""
        return [self.baseline.loss(errors) for errors in self.errors(forests)]

    def errors(self, forests: Sequence[Forest]) -> list[NDArray[np.float64]]:
        """(rows,) of each forest: 1 for a wrong decision, else 0; of a regression the squared error."""
        baseline, first = self.baseline, 0
        parts: list[list[NDArray[np.float64]]] = [[] for _ in forests]
        for batch in self.held_out.batches():
            truth = baseline.truth[first : (first := first + len(batch.X))]
            for errors, forest in zip(parts, forests, strict=True):
                errors.append(errors_of(self.model, answers_to(forest, batch.X), truth))
        return [np.concatenate(errors) for errors in parts]

    @property
    def accuracy(self) -> float:
        """The model's accuracy."""
        return self.baseline.accuracy

    @cached_property
    def baseline(self) -> RowErrors:
        """The model on the held-out rows."""
        baseline = row_errors(self.model, self.held_out)
        if not baseline.decides and (baseline.truth == baseline.truth.flat[0]).all():
            raise OptionError("the held-out rows all have the same label", do="hold out other rows")
        return baseline


def row_errors(forest: Forest, rows: Rows) -> RowErrors:
    """A forest on rows; its own answers stand in for missing labels. Raises OptionError without rows."""
    parts = []
    for batch in rows.batches():
        answers = answers_to(forest, batch.X)
        truth = truth_of_batch(batch, answers)
        parts.append(RowErrors(errors_of(forest, answers, truth), truth, forest.decides, batch.truth is not None))
    if not sum(len(part.errors) for part in parts):
        raise OptionError("no rows are held out", do="give more rows, or --held-out FILE")
    return joined(parts)


def joined(parts: Sequence[RowErrors]) -> RowErrors:
    """Several parts of the judged rows as one."""
    return RowErrors(
        np.concatenate([part.errors for part in parts]),
        np.concatenate([part.truth for part in parts]),
        parts[0].decides,
        any(part.labeled for part in parts),
    )


def errors_of(forest: Forest, answers: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
    """(rows,) 1 for a wrong decision, else 0; of a regression the squared error."""
    answers, truth = answers.reshape(len(answers), -1), truth.reshape(len(truth), -1)
    if forest.decides:
        return np.asarray((answers != truth).any(axis=1), dtype=np.float64)
    return np.asarray(((answers - truth) ** 2).sum(axis=1), dtype=np.float64)
