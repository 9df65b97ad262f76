"""Trains a model again on folds of its training rows, to score designs on rows that the fold's model has not seen.
Such copies may replace the model if they are alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ForestcError, opt
from forestc.forest.ir import Forest
from forestc.frontends import read_estimator
from forestc.frontends.shared.iterations import parsed
from forestc.passes.quick_evaluation import answers_to
from forestc.passes.scorer import RowErrors, Scorer, row_errors
from forestc.rows.batches import ArrayRows, Rows, count_rows
from forestc.search.cross_validation import Fold, Folds
from forestc.system.deadline import look
from forestc.training.again import trained_again
from forestc.training.seeds import Estimator, seeded_numpy

MOST_ROWS = 20_000  # rows used for folds; if there are more, every n-th row is used
MOST_COLUMNS = 4096  # columns; with more, folds have only the columns that the model reads
OTHER_ROWS = f"give rows that it was not trained on: {opt.held_out:FILE}"
FOLDS = ((4000, 5), (1 << 62, 3))  # lists (limit, number of folds); the first limit above the number of rows counts
# Lists (name, largest ratio between models that count as alike).
SIZES = (("trees", 1.1), ("leaves of a tree", 1.3), ("depth of a tree", 1.3))
ERRORS = 3.0  # allows this difference in accuracy, in standard errors, beyond the effect of seeds
SEEDS = 2.0  # times the difference between two seeds that counts as alike
ANSWERS = 0.05  # allows this share of rows on which answers differ


def folds_of(
    model: object, source: Forest, rows: Rows, *, trust_pickle: bool = False, iterations: int | str | None = None
) -> Folds:
    """Returns folds of the model's training rows. model, iterations: as `load` takes them. Raises ForestcError if the
    model can't be trained again, or copies are unlike it."""
    X, y, share = _arrays(rows)
    if y is None:  # Without labels, the score is the agreement with the model.
        parts = _dealt(np.zeros(len(X), dtype=np.int64), decides=False)
        folds = [Fold(source, ArrayRows(X[fit]), Scorer(source, ArrayRows(X[on]))) for fit, on in parts]
        return Folds(tuple(folds), "agreement on rows set aside")
    estimator, rounds = read_estimator(model, trust_pickle=trust_pickle), parsed(iterations)
    if estimator is None:
        raise ForestcError(
            "a model of trees alone, or with a frozen part, can't be trained again", where="the model", do=OTHER_ROWS
        )
    trained = partial(_trained, estimator, source, rounds if isinstance(rounds, int) else None)
    if why := why_unlike(source, ArrayRows(X, y), partial(trained, X, y), fewer=share):
        raise ForestcError(why, where="the model", do=OTHER_ROWS)

    def fold(fit: NDArray[np.int64], held_out: NDArray[np.int64]) -> Fold:
        model = trained(X[fit], y[fit])
        return Fold(model, ArrayRows(X[fit], y[fit]), Scorer(model, ArrayRows(X[held_out], y[held_out])))

    def dealt(repeat: int) -> tuple[Fold, ...]:
        return tuple(fold(*split) for split in _dealt(y, source.decides, repeat))

    return Folds(dealt(0), "models trained again with the same parameters", dealt)


def _trained(
    estimator: Estimator,
    source: Forest,
    rounds: int | None,
    X: NDArray[np.float64],
    y: NDArray[Any],
    seed: int = 0,
    step: int = 1,
) -> Forest:
    """Trains a copy on every `step`-th row. Raises ForestcError if it can't be trained, or lacks classes."""
    look()
    with seeded_numpy(seed):
        model = trained_again(estimator, source, X[::step], y[::step], seed, rounds)
    if len(model.classes) != len(source.classes) or model.columns not in (source.columns, source.width):
        raise ForestcError(
            "a fold has other classes than all rows: too few rows of one class",
            where="the rows",
            do="give more rows of each class",
        )
    return replace(model, always_missing=source.always_missing)


def _arrays(rows: Rows) -> tuple[NDArray[np.float64], NDArray[Any] | None, float]:
    """Returns evenly spaced rows, their labels (None without labels), and the share of rows taken."""
    step, first = max(1, -(-count_rows(rows) // MOST_ROWS)), 0
    parts: list[NDArray[np.float64]] = []
    truths: list[NDArray[Any]] = []
    for batch in rows.batches():
        chosen = np.arange(-first % step, len(batch.X), step)
        first += len(batch.X)
        parts.append(batch.X[chosen])
        if batch.truth is not None:
            truths.append(batch.truth[chosen])
    all_columns = rows.all_columns if isinstance(rows, ArrayRows) else None
    all_columns = None if all_columns is None or all_columns.shape[1] > MOST_COLUMNS else all_columns
    X = np.concatenate(parts) if all_columns is None else all_columns[::step].astype(np.float64)
    if len(truths) < len(parts):
        return X, None, 1 / step
    y = np.concatenate(truths)
    labeled = y.reshape(len(y), -1)[:, 0] >= 0 if y.dtype.kind in "iu" else np.ones(len(y), dtype=bool)
    return X[labeled], y[labeled], 1 / step


def _dealt(y: NDArray[Any], decides: bool = True, repeat: int = 0) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Returns a list with (row numbers to fit, held-out row numbers) for each fold. Classes are spread evenly over
    folds."""
    count = next(folds for below, folds in FOLDS if len(y) < below)
    kind = y.reshape(len(y), -1)[:, 0].astype(np.int64) if decides else np.zeros(len(y), dtype=np.int64)
    turn = np.empty(len(y), dtype=np.int64)
    order = np.random.default_rng(repeat).permutation(len(y)) if repeat else np.arange(len(y))
    turn[order[np.argsort(kind[order], kind="stable")]] = np.arange(len(y)) % count
    return [(np.flatnonzero(turn != fold), np.flatnonzero(turn == fold)) for fold in range(count)]


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
