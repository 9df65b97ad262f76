"""Cross-validation: designs are scored on rows that neither the model of their fold nor their passes have seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Forest
from forestc.passes.scorer import Loss, RowErrors, Scorer, joined
from forestc.rows.batches import Rows, count_rows


@dataclass(frozen=True)
class Fold:
    """A model, the rows that passes see, and a judge with rows that neither has seen. widened: standard error, in
    accuracy, added because the model differs from the one that it stands for."""

    model: Forest
    fit: Rows
    scorer: Scorer
    widened: float = 0.0


@dataclass(frozen=True)
class Folds:
    """folds: models with the rows that they were trained on and others to judge on. how: in words. widened: standard
    error in accuracy, added because the models differ from the given one (the folds hold it too). repeated: returns
    folds of another deal of the rows, by its number from 1 on; None if the rows are dealt once."""

    folds: tuple[Fold, ...]
    how: str
    widened: float = 0.0
    repeated: Callable[[int], tuple[Fold, ...]] | None = None


@dataclass(frozen=True)
class CrossScorer:
    """Judges what is made of the models of several folds, on the judged rows of all of them together.

    stand_ins: whether what is judged stands for another forest, made of all rows by the same passes. That one may be
    worse by chance, even if the judged rows were all rows there are. Folds share most of what they are fitted on, so
    their number does not average this out: the variance is then multiplied by 1 + judged rows / rows of a fold's fit
    (Nadeau and Bengio, "Inference for the Generalization Error", 2003, equation 5).
    """

    folds: tuple[Fold, ...]
    stand_ins: bool = False

    @cached_property
    def baseline(self) -> RowErrors:
        """The models on the judged rows."""
        return joined([fold.scorer.baseline for fold in self.folds])

    def loss(self, errors: Sequence[NDArray[np.float64]]) -> Loss:
        """The loss of forests with these errors on the judged rows of each fold."""
        loss = self.baseline.loss(np.concatenate(errors))
        if not self.stand_ins:
            return loss
        first = self.folds[0]
        chance = loss.error * math.sqrt(1 + loss.rows / count_rows(first.fit))
        return replace(loss, error=math.hypot(chance, first.widened))

    def of(self, forests: Sequence[Forest]) -> Loss:
        """The loss of forests made of each fold's model."""
        return self.loss([fold.scorer.errors([forest])[0] for fold, forest in zip(self.folds, forests, strict=True)])
