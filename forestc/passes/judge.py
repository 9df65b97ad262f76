"""Measures the accuracy that a forest loses against the model on held-out rows, with its standard error.

Passes that search, the pipeline and exploration all use it, so that `tolerance` means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows.accuracy import answers_of, truth_of_batch
from forestc.rows.batches import FirstRows, Rows
from forestc.rows.encode import encode


@dataclass(frozen=True)
class Loss:
    """The accuracy that a forest loses on held-out rows.

    accuracy: the forest's share of right decisions, or R squared of a regression; without labels its agreement with the
    model. lost: the model's accuracy minus the forest's. error: the standard error of lost. rows: number of held-out
    rows. measure: the name of the accuracy.
    """

    accuracy: float
    lost: float
    error: float
    rows: int
    measure: str

    def within(self, tolerance: float) -> bool:
        """Whether lost plus one standard error is within the tolerance. The standard error is added because the best
        of many forests looks better on these rows than it is, and on few rows any forest may."""
        return self.lost + self.error <= tolerance


@dataclass(frozen=True)
class _Baseline:
    """The model on the held-out rows. truth: the labels of each batch. errors: (rows,) of the model. whole: what a sum
    of errors is divided by. measure: as in Loss."""

    truth: list[NDArray[Any]]
    errors: NDArray[np.float64]
    whole: float
    measure: str


@dataclass(frozen=True)
class Judge:
    """Judges forests made from a model on held-out rows, which passes do not see. The model's own answers stand in for
    missing labels. Methods raise OptionError without rows, and for a regression whose labels are all equal."""

    model: Forest
    held_out: Rows

    def first(self, count: int) -> Judge:
        """The same judge on the first `count` rows."""
        return Judge(self.model, FirstRows(self.held_out, count))

    def of(self, forest: Forest) -> Loss:
        """The loss of a forest against the model."""
        return self.of_all([forest])[0]

    def of_all(self, forests: Sequence[Forest]) -> list[Loss]:
        """The losses of several forests, in one pass over the rows."""
        answers: list[list[NDArray[Any]]] = [[] for _ in forests]
        for batch in self.held_out.batches():
            for batches, forest in zip(answers, forests, strict=True):
                batches.append(answers_of(forest, evaluate_quickly(forest, encode(forest, batch.X))))
        return [self.of_answers(batches) for batches in answers]

    def of_answers(self, answers: Iterable[NDArray[Any]]) -> Loss:
        """The loss of a forest with these answers: class indices, or values, for each batch of the held-out rows.

        The standard error is that of the mean difference per row between the forest's and the model's error (0 or 1,
        or the squared error). For R squared the variance of the labels counts as known.
        """
        baseline = self._baseline
        errors = np.concatenate([_errors(self.model, *pair) for pair in zip(answers, baseline.truth, strict=True)])
        rows = len(errors)
        more = errors - baseline.errors
        spread = float(((more - more.mean()) ** 2).sum()) * rows / max(1, rows - 1)
        accuracy = (baseline.whole - float(errors.sum())) / baseline.whole
        return Loss(accuracy, self.accuracy - accuracy, float(np.sqrt(spread)) / baseline.whole, rows, baseline.measure)

    @cached_property
    def accuracy(self) -> float:
        """The model's accuracy."""
        return (self._baseline.whole - float(self._baseline.errors.sum())) / self._baseline.whole

    @cached_property
    def _baseline(self) -> _Baseline:
        truths, errors, labelled = [], [], False
        for batch in self.held_out.batches():
            labelled |= batch.truth is not None
            answers = answers_of(self.model, evaluate_quickly(self.model, encode(self.model, batch.X)))
            truth = truth_of_batch(batch, answers)
            truths.append(truth)
            errors.append(_errors(self.model, answers, truth))
        rows = sum(map(len, truths))
        if not rows:
            raise OptionError("no rows are held out", do="give more rows, or --held-out FILE")
        whole, measure = float(rows), "accuracy"
        if not self.model.decides:
            labels = np.concatenate([truth.reshape(len(truth), -1) for truth in truths]).astype(np.float64)
            whole, measure = float(((labels - labels.mean()) ** 2).sum()), "R squared"
            if not whole > 0:
                raise OptionError("the held-out rows all have the same label", do="hold out other rows")
        return _Baseline(truths, np.concatenate(errors), whole, measure if labelled else "agreement with the model")


def _errors(forest: Forest, answers: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
    """(rows,) 1 for a wrong decision, else 0; of a regression the squared error."""
    answers, truth = answers.reshape(len(answers), -1), truth.reshape(len(truth), -1)
    if forest.decides:
        return np.asarray((answers != truth).any(axis=1), dtype=np.float64)
    return np.asarray(((answers - truth) ** 2).sum(axis=1), dtype=np.float64)
