"""Scores designs by cross-validation, on rows that neither the model of a fold nor its passes have seen."""

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
    """A model, the rows for passes, and a scorer with held-out rows."""

    model: Forest
    fit: Rows
    scorer: Scorer


@dataclass(frozen=True)
class Folds:
    folds: tuple[Fold, ...]
    how: str  # describes the rows that score, for users
    repeated: Callable[[int], tuple[Fold, ...]] | None = None  # returns the folds of another split, given its number
    lacking: Loss | None = None  # what the only fold's model loses, if it is a copy that replaces the user's
    share: float | None = None  # share of the given rows that scores; None if other rows do
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CrossScorer:
    """A scorer on the held-out rows of all folds. Standard errors follow Nadeau and Bengio, 2003, equation 5."""

    folds: tuple[Fold, ...]
    retrained: bool = False  # True if models of folds replace one trained on all rows
    lacking: Loss | None = None  # what the only fold's model is estimated to lose against the user's, which it replaces

    @cached_property
    def baseline(self) -> RowErrors:
        return joined([fold.scorer.baseline for fold in self.folds])

    def loss(self, errors: Sequence[NDArray[np.float64]]) -> Loss:
        """Returns the loss of a design. errors: for each fold (rows,) errors on its held-out rows."""
        loss = self.baseline.loss(np.concatenate(errors))
        if self.lacking is not None:
            error, wide = (math.hypot(own, self.lacking.error) for own in (loss.error, loss.wide))
            loss = replace(loss, lost=loss.lost + self.lacking.lost, error=error, wide=wide)
        if not self.retrained:
            return loss
        wider = math.sqrt(1 + loss.rows / count_rows(self.folds[0].fit))
        return replace(loss, error=loss.error * wider, wide=loss.wide * wider, errors=1.0)

    def errors(self, forests: Sequence[Forest]) -> list[NDArray[np.float64]]:
        """Returns the errors of a design, given as one forest for each fold; see `Scorer.errors`."""
        return [fold.scorer.errors([forest])[0] for fold, forest in zip(self.folds, forests, strict=True)]
