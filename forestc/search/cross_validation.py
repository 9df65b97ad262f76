"""Scores designs by cross-validation: on rows that neither the model of a fold nor its passes have seen."""

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
    """A model, the rows for passes, and a scorer with rows that neither has seen. widened: a standard error of
    accuracy, added because the model is a stand-in that differs from the given one."""

    model: Forest
    fit: Rows
    scorer: Scorer
    widened: float = 0.0


@dataclass(frozen=True)
class Folds:
    """All folds of a search. how: describes the scoring rows. widened: as in each fold. repeated: returns the folds of
    another split of the rows, numbered from 1; None if there is a single split."""

    folds: tuple[Fold, ...]
    how: str
    widened: float = 0.0
    repeated: Callable[[int], tuple[Fold, ...]] | None = None


@dataclass(frozen=True)
class CrossScorer:
    """Scores forests, one for each fold, on the held-out rows of all folds together.

    stand_ins: True if the models of the folds stand for another model, trained on all rows. Its accuracy varies by
    chance, even with all possible held-out rows. The folds share most of their training rows, so more folds do not
    average this out: the variance is multiplied by 1 + held-out rows / rows of a fold's fit (Nadeau and Bengio,
    "Inference for the Generalization Error", 2003, equation 5).
    """

    folds: tuple[Fold, ...]
    stand_ins: bool = False

    @cached_property
    def baseline(self) -> RowErrors:
        """The errors of the folds' models on the held-out rows."""
        return joined([fold.scorer.baseline for fold in self.folds])

    def loss(self, errors: Sequence[NDArray[np.float64]]) -> Loss:
        """Returns the loss of a design from its errors on the held-out rows of each fold."""
        loss = self.baseline.loss(np.concatenate(errors))
        if not self.stand_ins:
            return loss
        first = self.folds[0]
        chance = loss.error * math.sqrt(1 + loss.rows / count_rows(first.fit))
        return replace(loss, error=math.hypot(chance, first.widened))

    def of(self, forests: Sequence[Forest]) -> Loss:
        """Returns the loss of a design, given as one forest for each fold."""
        return self.loss([fold.scorer.errors([forest])[0] for fold, forest in zip(self.folds, forests, strict=True)])
