"""Compares a model with copies of its estimator that are trained again on the same rows. Copies that are alike may
replace the model in folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import answers_to
from forestc.passes.scorer import RowErrors, row_errors
from forestc.rows.batches import ArrayRows

# Lists (name, largest ratio between models that count as alike).
SIZES = (("trees", 1.1), ("leaves of a tree", 1.3), ("depth of a tree", 1.3))
ERRORS = 3.0  # allows this difference in accuracy, in standard errors, beyond the effect of seeds
SEEDS = 2.0  # times the difference between two seeds that counts as alike
ANSWERS = 0.05  # allows this share of rows on which answers differ


@dataclass(frozen=True)
class _Answers:
    answers: NDArray[np.float64]
    row_errors: RowErrors

    @staticmethod
    def of(model: Forest, rows: ArrayRows) -> _Answers:
        answers = answers_to(model, rows.X).reshape(len(rows.X), -1)
        return _Answers(answers.astype(np.float64), row_errors(model, rows))

    def lost(self, other: _Answers) -> tuple[float, float]:
        loss = self.row_errors.loss(other.row_errors.errors)
        return loss.lost, loss.error

    def share(self, other: _Answers) -> float:
        """Returns the share of rows on which two models answer differently; for a regression, the mean squared
        difference over the variance."""
        if self.row_errors.decides:
            return float((self.answers != other.answers).any(axis=1).mean())
        whole = float(((self.answers - self.answers.mean(axis=0)) ** 2).sum())
        return float(((self.answers - other.answers) ** 2).sum()) / (whole or 1.0)


def why_unlike(model: Forest, rows: ArrayRows, trained: Callable[..., Forest], *, fewer: float = 1.0) -> str:
    """Returns how a model differs from copies trained again on `rows`, in words; "" if they are alike.
    trained: trains a copy from a seed; with `step=k`, on every k-th row.
    fewer: number of `rows` divided by the number of rows that trained the model."""
    first = trained(0)
    for (name, alike), own, other in zip(SIZES, _sizes(model), _sizes(first), strict=True):
        least = fewer if name != "trees" else 1.0
        if not own / alike * least <= other <= own * alike:
            return f"trained again it has {other:,.4g} {name}, and the model {own:,.4g}"
    original, copy = _Answers.of(model, rows), _Answers.of(first, rows)
    lost, error = original.lost(copy)
    share = original.share(copy)
    if abs(lost) <= ERRORS * error and share <= ANSWERS:
        return ""
    others = [_Answers.of(trained(seed), rows) for seed in (1, 2)]
    by_seed = max(abs(copy.lost(other)[0]) for other in others)
    shared = max(copy.share(other) for other in others)
    if fewer < 1:
        half, every_second = trained(0, step=2), ArrayRows(rows.X[::2], None if rows.truth is None else rows.truth[::2])
        by_seed = max(by_seed, abs(_Answers.of(half, every_second).row_errors.accuracy - copy.row_errors.accuracy))
        shared = max(shared, copy.share(_Answers.of(half, rows)))
    lost = float(np.mean([lost, *(original.lost(other)[0] for other in others)]))
    share = float(np.mean([share, *(original.share(other) for other in others)]))
    if abs(lost) > SEEDS * by_seed + ERRORS * error:
        measure, accuracy = original.row_errors.measure, original.row_errors.accuracy
        return f"trained again its {measure} on these rows is {accuracy - lost:.4f}, and the model's {accuracy:.4f}"
    if share > SEEDS * shared + ANSWERS:
        return f"trained again it answers {share:.1%} of these rows unlike the model, other seeds {shared:.1%}"
    return ""


def _sizes(forest: Forest) -> tuple[float, float, float]:
    trees = max(1, len(forest.trees))
    depth = sum(tree.depth for tree in forest.trees) / trees
    return float(len(forest.trees)), forest.n_leaves / trees, max(1.0, depth)
