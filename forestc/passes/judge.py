"""One judge of what a forest loses against the model: accuracy on held-out rows, and its standard error.

Passes that search ask it, and the pipeline asks it again: `tolerance` means the same in all of them.
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
    """What a forest loses on held-out rows.

    accuracy: its share of right decisions, R squared of a regression; without labels its agreement with the model.
    lost: the model's accuracy less that. error: the standard error of what is lost. rows: how many were judged on.
    measure: what accuracy is called.
    """

    accuracy: float
    lost: float
    error: float
    rows: int
    measure: str

    def within(self, tolerance: float) -> bool:
        """Whether no more is lost than the tolerance. One standard error counts as lost: of many forests tried, the
        best looks better on these rows than it is, and on few rows any does."""
        return self.lost + self.error <= tolerance


@dataclass(frozen=True)
class _Known:
    """Of the held-out rows: truth batch by batch, the model's errors (rows,), what a sum of errors is divided by."""

    truth: list[NDArray[Any]]
    errors: NDArray[np.float64]
    whole: float
    measure: str


@dataclass(frozen=True)
class Judge:
    """Judges forests made of a model on rows that no pass looks at otherwise. Rows without labels are judged by the
    model's own answers. Methods raise OptionError without rows, and for labels that are all the same number."""

    model: Forest
    held_out: Rows

    def first(self, count: int) -> Judge:
        """The same on the first rows alone."""
        return Judge(self.model, FirstRows(self.held_out, count))

    def of(self, forest: Forest) -> Loss:
        """What a forest loses against the model."""
        return self.of_all([forest])[0]

    def of_all(self, forests: Sequence[Forest]) -> list[Loss]:
        """The same of several, in one pass over the rows."""
        said: list[list[NDArray[Any]]] = [[] for _ in forests]
        for batch in self.held_out.batches():
            for own, forest in zip(said, forests, strict=True):
                own.append(answers_of(forest, evaluate_quickly(forest, encode(forest, batch.X))))
        return [self.of_answers(own) for own in said]

    def of_answers(self, answers: Iterable[NDArray[Any]]) -> Loss:
        """What a forest loses that answers so: class indices, or values, for each batch of the held-out rows.

        The standard error is that of a mean of differences, row by row: what the model got right and the forest wrong,
        and the other way round, or how much larger the squared error is. R squared counts the spread of the labels as
        known.
        """
        known = self._known
        errors = np.concatenate([_errors(self.model, *pair) for pair in zip(answers, known.truth, strict=True)])
        rows = len(errors)
        more = errors - known.errors
        spread = float(((more - more.mean()) ** 2).sum()) * rows / max(1, rows - 1)
        accuracy = (known.whole - float(errors.sum())) / known.whole
        return Loss(accuracy, self.accuracy - accuracy, float(np.sqrt(spread)) / known.whole, rows, known.measure)

    @cached_property
    def accuracy(self) -> float:
        """The model's own."""
        return (self._known.whole - float(self._known.errors.sum())) / self._known.whole

    @cached_property
    def _known(self) -> _Known:
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
            told = np.concatenate([truth.reshape(len(truth), -1) for truth in truths]).astype(np.float64)
            whole, measure = float(((told - told.mean()) ** 2).sum()), "R squared"
            if not whole > 0:
                raise OptionError("the held-out rows all have one label", do="hold out others")
        return _Known(truths, np.concatenate(errors), whole, measure if labelled else "agreement with the model")


def _errors(forest: Forest, answers: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
    """Of each row: 1 for a wrong decision, else 0; of a regression the squared error."""
    answers, truth = answers.reshape(len(answers), -1), truth.reshape(len(truth), -1)
    if forest.decides:
        return np.asarray((answers != truth).any(axis=1), dtype=np.float64)
    return np.asarray(((answers - truth) ** 2).sum(axis=1), dtype=np.float64)
