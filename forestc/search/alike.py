"""Compares a model with stand-ins that were trained on all of its rows, so that folds are those of the same training.

A stand-in has the model's trees, leaves and depth, and answers like the model on its own rows. How much two seeds of
one trainer differ was measured on seven data sets, noisy and overlapping ones among them, with nine trainers that draw
rows or columns: leaves by a factor of 0.84 to 1.17, depth by at most 1.18, accuracy by up to 4 standard errors of the
difference (7.6 once), answers of 0 to 36 % of the rows. So accuracy and answers are compared with what a second seed
of the same trainer changes, where the first is not like the model at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import answers_to
from forestc.passes.scorer import RowErrors, row_errors
from forestc.rows.batches import ArrayRows

# (size, factor that counts as alike, factor beyond which stand-ins are refused)
SIZES = (("trees", 1.1, 1.1), ("leaves of a tree", 1.3, 2.0), ("depth of a tree", 1.3, 2.0))
FAR = 0.03  # refuse stand-ins with more accuracy lost than this, beside what seeds explain
ERRORS = 3.0  # standard errors of the difference by which accuracies may differ, beside what a seed changes
SEEDS = 2.0  # times the difference between two seeds that counts as alike
ANSWERS = 0.05  # share of the rows with other answers that counts as alike, for a trainer with the model's parameters
KIND_ANSWERS = 0.15  # the same, for ensembles of the model's kind


@dataclass(frozen=True)
class _Answers:
    """What a model says of its own rows."""

    answers: NDArray[np.float64]
    row_errors: RowErrors

    @staticmethod
    def of(model: Forest, rows: ArrayRows) -> _Answers:
        answers = answers_to(model, rows.X).reshape(len(rows.X), -1)
        return _Answers(answers.astype(np.float64), row_errors(model, rows))

    def lost(self, other: _Answers) -> tuple[float, float]:
        """The accuracy that the other loses against this, and the standard error of that."""
        loss = self.row_errors.loss(other.row_errors.errors)
        return loss.lost, loss.error

    def share(self, other: _Answers) -> float:
        """The share of rows that the other answers differently; of values the squared difference, as a share of their
        variance."""
        if self.row_errors.decides:
            return float((self.answers != other.answers).any(axis=1).mean())
        whole = float(((self.answers - self.answers.mean(axis=0)) ** 2).sum())
        return float(((self.answers - other.answers) ** 2).sum()) / (whole or 1.0)


@dataclass(frozen=True)
class StandInDifference:
    """How a stand-in differs from the model. why: in words, "" if they are alike. widened: the part of the loss that
    seeds do not explain, in accuracy. far: whether nothing can be judged by the stand-in."""

    why: str = ""
    widened: float = 0.0
    far: bool = False


def compared(
    model: Forest, rows: ArrayRows, trained: Callable[..., Forest], *, fewer: float = 1.0, kind: bool = False
) -> StandInDifference:
    """Returns how stand-ins differ from the model.

    rows: the model's own, with their truth. trained: returns a stand-in that was trained on these rows with a seed, 0
    to 2, and on every n-th row with `step=n`. fewer: the share of the model's own rows that these are; fully grown
    trees have as many times fewer leaves, and what every second row changes counts like what seeds change.
    kind: whether stand-ins are only of the model's kind, so that they may answer more rows unlike it.
    """
    first = trained(0)
    why, far = "", False
    for (name, alike, most), own, other in zip(SIZES, _sizes(model), _sizes(first), strict=True):
        least = fewer if name != "trees" else 1.0
        if not own / alike * least <= other <= own * alike:
            why = why or f"trained again it has {other:,.4g} {name}, and the model {own:,.4g}"
            far |= not own / most * least <= other <= own * most
    if far:
        return StandInDifference(why, far=True)
    its, mine = _Answers.of(model, rows), _Answers.of(first, rows)
    lost, error = its.lost(mine)
    share, answers = its.share(mine), KIND_ANSWERS if kind else ANSWERS
    if abs(lost) <= ERRORS * error and share <= answers:
        return StandInDifference(why)
    others = [_Answers.of(trained(seed), rows) for seed in (1, 2)]
    by_seed = max(abs(mine.lost(other)[0]) for other in others)
    shared = max(mine.share(other) for other in others)
    if fewer < 1:
        half, every_second = trained(0, step=2), ArrayRows(rows.X[::2], None if rows.truth is None else rows.truth[::2])
        by_seed = max(by_seed, abs(_Answers.of(half, every_second).row_errors.accuracy - mine.row_errors.accuracy))
        shared = max(shared, mine.share(_Answers.of(half, rows)))
    lost = float(np.mean([lost, *(its.lost(other)[0] for other in others)]))
    share = float(np.mean([share, *(its.share(other) for other in others)]))
    more, unlike = abs(lost) - SEEDS * by_seed, share - SEEDS * shared - answers
    if more > ERRORS * error:
        measure, accuracy = its.row_errors.measure, its.row_errors.accuracy
        why = f"trained again its {measure} on these rows is {accuracy - lost:.4f}, and the model's {accuracy:.4f}"
    elif unlike > 0:
        why = f"trained again it answers {share:.1%} of these rows unlike the model, other seeds {shared:.1%}"
    widened = max(0.0, more, unlike / 2)
    return StandInDifference(why, widened, far=widened > FAR) if why else StandInDifference()


def _sizes(forest: Forest) -> tuple[float, float, float]:
    trees = max(1, len(forest.trees))
    depth = sum(tree.depth for tree in forest.trees) / trees
    return float(len(forest.trees)), forest.n_leaves / trees, max(1.0, depth)
