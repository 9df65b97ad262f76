"""Measures how much accuracy a forest loses on held-out rows against the model, with the standard error of the loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import answers_to
from forestc.rows.accuracy import truth_of_batch
from forestc.rows.batches import Rows

ERRORS = 1.5  # adds this many standard errors to a measured loss; more: larger designs


@dataclass(frozen=True)
class Loss:
    """The accuracy that a forest loses against the model on held-out rows."""

    accuracy: float  # share of right decisions, R squared, or agreement with the model
    lost: float  # the model's accuracy minus the forest's
    error: float  # standard error of `lost`
    rows: int
    measure: str
    wide: float = 0.0  # standard error for an interval, which is not 0 where no decision differs
    errors: float = ERRORS  # standard errors that are added to `lost` before it is compared with a tolerance

    @property
    def counted(self) -> float:
        """The loss that is compared with a tolerance."""
        return self.lost + self.errors * self.error

    def within(self, tolerance: float, errors: float | None = None) -> bool:
        """Returns True if the loss and a number of standard errors are within the tolerance."""
        return self.lost + (self.errors if errors is None else errors) * self.error <= tolerance


@dataclass(frozen=True)
class RowErrors:
    """The errors of a forest on rows, and the accuracy computed from them."""

    errors: NDArray[np.float64]  # (rows,) 1 for a wrong decision, otherwise 0; squared errors of a regression; weighted
    truth: NDArray[Any]  # labels, or the forest's own answers without labels
    decides: bool
    labeled: bool = True  # True if labels are given
    groups: NDArray[np.int64] | None = None  # (rows,) number of each row's group, if rows are drawn in groups
    weights: NDArray[np.float64] | None = None  # (rows,) weights, which are factors of `errors`

    @property
    def units(self) -> int:
        """Number of rows, or of their groups, that are drawn independently."""
        return len(self.errors) if self.groups is None else len(np.unique(self.groups))

    def by_unit(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns sums of values of rows, (rows,), over their groups; unchanged without groups."""
        if self.groups is None:
            return values
        return np.bincount(np.unique(self.groups, return_inverse=True)[1], weights=values).astype(np.float64)

    @property
    def measure(self) -> str:
        return ("accuracy" if self.decides else "R squared") if self.labeled else "agreement with the model"

    @cached_property
    def by_class(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of units, ordered by class, and the class of each; (units,) both. A group has the class of its first
        row, and a regression one class."""
        first = np.arange(len(self.errors))
        if self.groups is not None:
            first = np.unique(self.groups, return_index=True)[1]
        if not self.decides:
            return np.arange(len(first)), np.zeros(len(first), dtype=np.int64)
        classes = self.truth.reshape(len(self.truth), -1)[first, 0].astype(np.int64)
        order = np.argsort(classes, kind="stable")
        return order, classes[order]

    @cached_property
    def divisor(self) -> float:
        """The divisor of a sum of errors: the number of rows; for a regression the sum of squared deviations of the
        labels from their mean; of weighted rows, the sum with weights."""
        weights = np.ones(len(self.errors)) if self.weights is None else self.weights
        if self.decides:
            return float(weights.sum())
        labels = self.truth.reshape(len(self.truth), -1).astype(np.float64)
        mean = np.average(labels, axis=0, weights=weights).mean()
        return float((weights * ((labels - mean) ** 2).sum(axis=1)).sum()) or 1.0

    @property
    def accuracy(self) -> float:
        return self._accuracy(self.errors)

    @property
    def standard_error(self) -> float:
        """The standard error of the accuracy. For decisions, half an error is added, so that it is never 0."""
        if not self.decides:
            return self._error_of(self.errors)
        one = self.divisor / len(self.errors)
        wrong = (float(self.errors.sum()) + one / 2) / (self.divisor + one)
        return math.sqrt(wrong * (1 - wrong) / len(self.errors))

    def _accuracy(self, errors: NDArray[np.float64]) -> float:
        return (self.divisor - float(errors.sum())) / self.divisor

    def _error_of(self, errors: NDArray[np.float64]) -> float:
        """Returns the standard error of the sum of errors of a regression, in units of accuracy."""
        return float(self.error_of_sums(errors.sum(), (self.by_unit(errors) ** 2).sum()))

    def error_of_sums(self, sums: Any, squares: Any, *, wide: bool = False) -> Any:
        """Returns the standard error of a loss, in units of accuracy.
        sums, squares: sums over the units of another forest's errors minus these, and of their squares; numbers or
        arrays.
        wide: the error is for an interval: half a row is added to each of the four cells of a pair of decisions
        (Agresti and Min, 2005), so that it is not 0 where no decision differs."""
        units, more = self.units, 2 if wide and self.decides else 0
        one = self.divisor / len(self.errors)  # 1, or the mean weight
        spread = np.maximum(squares + more / 2 * one**2 - sums**2 / (units + more), 0.0)
        return np.sqrt(spread * (units + more) / max(1, units + more - 1)) / (self.divisor + more * one)

    def loss(self, errors: NDArray[np.float64]) -> Loss:
        """Returns the loss of another forest with these errors on the same rows."""
        accuracy, differences = self._accuracy(errors), self.by_unit(errors - self.errors)
        sums = differences.sum(), (differences**2).sum()
        error, wide = (float(self.error_of_sums(*sums, wide=wide)) for wide in (False, True))
        return Loss(accuracy, self.accuracy - accuracy, error, len(errors), self.measure, wide)


@dataclass(frozen=True)
class Scorer:
    """Measures the accuracy that forests lose on held-out rows. The model's answers replace missing labels."""

    model: Forest
    held_out: Rows
    groups: NDArray[np.int64] | None = None  # (held-out rows,) number of each row's group

    def of(self, forest: Forest) -> Loss:
        return self.of_all([forest])[0]

    def of_all(self, forests: Sequence[Forest]) -> list[Loss]:
        return [self.baseline.loss(errors) for errors in self.errors(forests)]

    def errors(self, forests: Sequence[Forest]) -> list[NDArray[np.float64]]:
        """Returns a list with an array (rows,) for each forest: 1 for a wrong decision and 0 for a right one; squared
        errors of a regression."""
        baseline, first = self.baseline, 0
        parts: list[list[NDArray[np.float64]]] = [[] for _ in forests]
        for batch in self.held_out.batches():
            truth = baseline.truth[first : (first := first + len(batch.X))]
            for errors, forest in zip(parts, forests, strict=True):
                errors.append(errors_of(self.model, answers_to(forest, batch.X), truth, batch.weights))
        return [np.concatenate(errors) for errors in parts]

    @property
    def accuracy(self) -> float:
        return self.baseline.accuracy

    @cached_property
    def baseline(self) -> RowErrors:
        baseline = replace(row_errors(self.model, self.held_out), groups=self.groups)
        if not baseline.decides and (baseline.truth == baseline.truth.flat[0]).all():
            raise OptionError("the held-out rows all have the same label", where=opt.held_out, do="hold out other rows")
        return baseline


def row_errors(forest: Forest, rows: Rows) -> RowErrors:
    """Returns a forest's errors on rows. The forest's own answers replace missing labels. Raises OptionError if there
    are no rows."""
    parts = []
    for batch in rows.batches():
        answers = answers_to(forest, batch.X)
        truth = truth_of_batch(batch, answers)
        errors = errors_of(forest, answers, truth, batch.weights)
        parts.append(RowErrors(errors, truth, forest.decides, batch.truth is not None, weights=batch.weights))
    if not sum(len(part.errors) for part in parts):
        raise OptionError("no rows are held out", where=opt.held_out, do=f"give more rows, or {opt.held_out:FILE}")
    return joined(parts)


def joined(parts: Sequence[RowErrors]) -> RowErrors:
    weights = [part.weights for part in parts if part.weights is not None]
    return RowErrors(
        np.concatenate([part.errors for part in parts]),
        np.concatenate([part.truth for part in parts]),
        parts[0].decides,
        any(part.labeled for part in parts),
        _joined_groups(parts),
        np.concatenate(weights) if len(weights) == len(parts) else None,
    )


def _joined_groups(parts: Sequence[RowErrors]) -> NDArray[np.int64] | None:
    groups, first = list[NDArray[np.int64]](), 0
    for part in parts:
        if part.groups is None:
            return None
        groups.append(part.groups + first)
        first += int(part.groups.max()) + 1
    return np.concatenate(groups)


def errors_of(
    forest: Forest, answers: NDArray[Any], truth: NDArray[Any], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Returns an array (rows,): 1 for a wrong decision and 0 for a right one; squared errors of a regression; times
    weights, (rows,), if there are any."""
    answers, truth = answers.reshape(len(answers), -1), truth.reshape(len(truth), -1)
    errors = (answers != truth).any(axis=1) if forest.decides else ((answers - truth) ** 2).sum(axis=1)
    return np.asarray(errors if weights is None else errors * weights, dtype=np.float64)
