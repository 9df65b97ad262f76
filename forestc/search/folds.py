"""Trains a model again on folds of its training rows, to score designs on rows that the fold's model has not seen.

Such copies may replace the model if they are alike. If a third of the rows can be spared, designs are made of one copy,
trained on the others, and scored on that third. Otherwise copies of a design are scored by cross-validation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ForestcError, opt
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.frontends import read_estimator
from forestc.frontends.shared.iterations import parsed
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.quick_evaluation import answers_to
from forestc.passes.scorer import RowErrors, Scorer, row_errors
from forestc.rows.batches import ArrayRows, Rows, count_rows
from forestc.search.cross_validation import CrossScorer, Fold, Folds
from forestc.system.deadline import look
from forestc.training.again import trained_again
from forestc.training.seeds import Estimator, seeded_numpy

MOST_ROWS = 20_000  # rows used for folds; if there are more, every n-th row is used
MOST_COLUMNS = 4096  # columns; with more, folds have only the columns that the model reads
OTHER_ROWS = f"give rows that it was not trained on: {opt.held_out:FILE}"
SPARED = 3  # one of so many rows scores, if it can be spared
SPARED_ROWS, SPARED_CELLS = 3000, 2 * 10**7  # least rows and most cells of which a third may be spared
LACKING_ROWS = 5000  # on so many rows, if there are, it is measured what a copy loses by training on fewer rows
SPARED_LOSS = 0.5  # share of the tolerance that a copy may lose, as it is trained on fewer rows
# Adding the spared rows gains as much as 0.44 times what doubled the copy's rows, if errors fall as 1 / sqrt(rows).
LATER_GAIN = (math.sqrt(3 / 2) - 1) / (math.sqrt(3) - math.sqrt(3 / 2))
FOLDS = ((2000, 5), (math.inf, 3))  # lists (limit, number of folds); the first limit above the number of rows counts
# Lists (name, largest ratio between models that count as alike).
SIZES = (("trees", 1.1), ("leaves of a tree", 1.3), ("depth of a tree", 1.3))
ERRORS = 3.0  # allows this difference in accuracy, in standard errors, beyond the effect of seeds
SEEDS = 2.0  # times the difference between two seeds that counts as alike
ANSWERS = 0.05  # allows this share of rows on which answers differ


def folds_of(
    model: object,
    source: Forest,
    rows: Rows,
    tolerance: float | None = DEFAULT_TOLERANCE,
    *,
    groups: NDArray[np.int64] | None = None,
    trust_pickle: bool = False,
    iterations: int | str | None = None,
) -> Folds:
    """Returns folds of the model's training rows: one if a third of the rows can be spared.
    tolerance: accuracy that may be lost; None: no row is spared.
    groups: (rows,) number of each row's group, whose rows stay together.
    model, iterations: as `load` takes them.

    Raises ForestcError if the model can't be trained again, or copies are unlike it."""
    step = max(1, -(-count_rows(rows) // MOST_ROWS))
    some = _Table.of(rows, groups, step)
    if some.y is None:  # Without labels, the score is the agreement with the model.
        if tolerance is None or not _can_spare(source, rows):
            folds = [some.fold(source, *split) for split in some.dealt(False, _fold_count(some.X))]
            return Folds(tuple(folds), "agreement on rows set aside")
        table = _Table.of(rows, groups)
        own = table.fold(source, *table.dealt(False, SPARED)[0])
        how = "agreement with the model on a third of the rows, which the passes have not seen"
        return Folds((own,), how, lacking=own.scorer.of(source), share=1 / SPARED)
    estimator, rounds = read_estimator(model, trust_pickle=trust_pickle), parsed(iterations)
    if estimator is None:
        raise ForestcError(
            "a model of trees alone, or with a frozen part, can't be trained again", where="the model", do=OTHER_ROWS
        )
    trained = partial(_trained, estimator, source, rounds if isinstance(rounds, int) else None)
    if why := why_unlike(source, some.rows, partial(trained, some), fewer=1 / step):
        raise ForestcError(why, where="the model", do=OTHER_ROWS)
    if tolerance is not None and _can_spare(source, rows):
        spared = _spared(source, _Table.of(rows, groups), trained, tolerance)
        if spared is not None:
            fold = spared.folds[0]
            if (copy := _as_source(fold.model, source, rows)) is not None:
                return replace(spared, folds=(replace(fold, model=copy, scorer=replace(fold.scorer, model=copy)),))

    def dealt(repeat: int) -> tuple[Fold, ...]:
        splits = some.dealt(source.decides, _fold_count(some.X), repeat)
        return tuple(some.fold(trained(some.of_rows(fit)), fit, held_out) for fit, held_out in splits)

    return Folds(dealt(0), "models trained again with the same parameters", dealt)


def _spared(source: Forest, table: _Table, trained: Callable[..., Forest], tolerance: float) -> Folds | None:
    """Returns a fold that scores on a third of the rows; None if these can't be spared."""
    if len(table.X) < SPARED_ROWS:  # Other rows have no label.
        return None
    splits = table.dealt(source.decides, SPARED)[: -(-SPARED * LACKING_ROWS // len(table.X))]
    folds, halves = list[Fold](), list[Forest]()
    try:
        for others, third in splits:
            copy, half = (trained(table.of_rows(others), step=step) for step in (1, 2))
            folds.append(table.fold(copy, others, third))
            halves.append(half)
    except ForestcError:  # A class is rare, or the estimator needs columns that the model does not read.
        return None
    scorer = CrossScorer(tuple(folds))
    gained = scorer.loss(scorer.errors(halves))
    lacking = replace(gained, lost=max(0.0, LATER_GAIN * gained.lost), error=LATER_GAIN * gained.error)
    if lacking.lost > SPARED_LOSS * tolerance:
        return None
    others, third = splits[0]
    note = (
        f"the design is made of a copy of the model that was trained on {len(others):,} of the rows, as the other "
        f"{len(third):,} score it; the copy is estimated to lose {lacking.lost:.4f} of {lacking.measure}, which counts"
    )
    how = "a third of the rows, with a copy of the model that was trained on the others"
    return Folds((folds[0],), how, lacking=lacking, share=1 / SPARED, notes=(note,))


def _can_spare(source: Forest, rows: Rows) -> bool:
    count = count_rows(rows)
    return count >= SPARED_ROWS and count * source.width <= SPARED_CELLS


def _as_source(copy: Forest, source: Forest, rows: Rows) -> Forest | None:
    """Returns a copy with the names and columns of the model; None if it reads categories that the model does not."""
    names: Sequence[str] = getattr(rows, "names", ())
    known = {feature.column: feature for feature in source.features}
    features = []
    for feature in copy.features:
        column = source.carried[feature.column] if source.carried else feature.column
        own = known.get(column)
        if own is not None:
            named = replace(feature, name=own.name, labels=own.labels, named=own.named, unknown=own.unknown)
        elif isinstance(feature.number, Category):
            return None
        else:
            named = replace(feature, name=names[column], named=True) if names else feature
        features.append(replace(named, column=column))
    return replace(
        copy, name=source.name, features=tuple(features), columns=source.columns, carried=source.carried,
        provenance=source.provenance, categories=source.categories,
    )  # fmt: skip


def _trained(
    estimator: Estimator,
    source: Forest,
    rounds: int | None,
    table: _Table,
    seed: int = 0,
    step: int = 1,
) -> Forest:
    """Trains a copy on every `step`-th row. Raises ForestcError if it can't be trained, or lacks classes."""
    look()
    rows = table.of_rows(slice(None, None, step))
    assert rows.y is not None
    with seeded_numpy(seed):
        model = trained_again(estimator, source, rows.X, rows.y, rows.weights, seed, rounds)
    if len(model.classes) != len(source.classes) or model.columns not in (source.columns, source.width):
        raise ForestcError(
            "a fold has other classes than all rows: too few rows of one class",
            where="the rows",
            do="give more rows of each class",
        )
    return replace(model, always_missing=source.always_missing)


@dataclass(frozen=True)
class _Table:
    """Rows in memory, which are dealt to folds."""

    X: NDArray[np.float64]
    y: NDArray[Any] | None  # labels of all rows, or None
    groups: NDArray[np.int64] | None  # number of each row's group
    weights: NDArray[np.float64] | None = None

    @staticmethod
    def of(rows: Rows, groups: NDArray[np.int64] | None = None, step: int | None = None) -> _Table:
        """Returns the rows that have labels; all rows if none has.
        step: takes every `step`-th row, with the columns too that the model does not read; None: all, without these.
        """
        all_columns = rows.all_columns if step is not None and isinstance(rows, ArrayRows) else None
        step, first = step or 1, 0
        parts: list[NDArray[np.float64]] = []
        truths: list[NDArray[Any]] = []
        weights: list[NDArray[np.float64]] = []
        for batch in rows.batches():
            chosen = np.arange(-first % step, len(batch.X), step)
            first += len(batch.X)
            parts.append(batch.X[chosen])
            if batch.truth is not None:
                truths.append(batch.truth[chosen])
            if batch.weights is not None:
                weights.append(batch.weights[chosen])
        all_columns = None if all_columns is None or all_columns.shape[1] > MOST_COLUMNS else all_columns
        X = np.concatenate(parts) if all_columns is None else all_columns[::step].astype(np.float64)
        groups = None if groups is None else groups[::step]
        table = _Table(X, None, groups, np.concatenate(weights) if weights else None)
        if len(truths) < len(parts):
            return table
        y = np.concatenate(truths)
        labeled = y.reshape(len(y), -1)[:, 0] >= 0 if y.dtype.kind in "iu" else np.ones(len(y), dtype=bool)
        return replace(table, y=y).of_rows(labeled)

    def of_rows(self, some: slice | NDArray[np.generic]) -> _Table:
        return _Table(*(None if each is None else each[some] for each in (self.X, self.y, self.groups, self.weights)))  # type: ignore[arg-type]

    def fold(self, model: Forest, fit: NDArray[np.int64], held_out: NDArray[np.int64]) -> Fold:
        """Returns a fold of the rows with these numbers."""
        own, other = (self.of_rows(some).rows for some in (fit, held_out))
        return Fold(model, own, Scorer(model, other, None if self.groups is None else self.groups[held_out]))

    @property
    def rows(self) -> ArrayRows:
        return ArrayRows(self.X, self.y, weights=self.weights)

    def dealt(self, decides: bool, count: int, repeat: int = 0) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Returns a list with (row numbers to fit, held-out row numbers) for each of `count` folds. Classes are
        spread evenly over folds; a group has the class of its first row."""
        _, first, unit = np.unique(
            np.arange(len(self.X)) if self.groups is None else self.groups, return_index=True, return_inverse=True
        )
        kind = np.zeros(len(first), dtype=np.int64)
        if decides and self.y is not None:
            kind = self.y.reshape(len(self.y), -1)[first, 0].astype(np.int64)
        turn = np.empty(len(first), dtype=np.int64)
        order = np.random.default_rng(repeat).permutation(len(first)) if repeat else np.arange(len(first))
        turn[order[np.argsort(kind[order], kind="stable")]] = np.arange(len(first)) % count
        return [(np.flatnonzero(turn[unit] != fold), np.flatnonzero(turn[unit] == fold)) for fold in range(count)]


def _fold_count(X: NDArray[np.float64]) -> int:
    return next(folds for below, folds in FOLDS if len(X) < below)


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
        half, every_second = (
            trained(0, step=2),
            _Table(rows.X, rows.truth, None, rows.weights).of_rows(slice(None, None, 2)).rows,
        )
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
