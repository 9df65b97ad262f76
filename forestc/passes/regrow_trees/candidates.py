"""Collects the conditions from which regrow-trees grows trees, with their prices and the coded rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.boosting.cuts import MOST_CUTS, cuts_at, quantile_cuts
from forestc.costs.prices import Prices
from forestc.forest.conditions import Below, Condition
from forestc.forest.evaluate import missing_words
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, word_range
from forestc.passes.grown_trees import Grower
from forestc.passes.tree_costs import comparator_cost

OWN_CUTS = 60  # thresholds of the forest per feature at most, the most frequent first
NEW_CUTS = 60  # thresholds that are cheap to compare, between quantiles of the rows, at most
OTHERS = 200  # conditions on sets of the forest at most, the most frequent first


def grower_of(forest: Forest, words: NDArray[np.int64], label: NDArray[np.float64], prices: Prices) -> Grower:
    """Returns a `Grower` with the coded rows and the conditions that new trees may use.
    label: (samples,) class indices, or values of a regression."""
    taken, missing = missing_words(forest)
    absent = taken & (words == missing)
    uses = _uses(forest)
    columns: list[tuple[tuple[Condition, ...], NDArray[np.float64]]] = []
    for feature in range(len(forest.features)):
        values = np.where(absent[:, feature], np.nan, words[:, feature])
        if thresholds := _thresholds(forest, feature, values, uses):
            columns.append((tuple(Condition(feature, Below(threshold)) for threshold in thresholds), values))
    others = [condition for condition, _ in uses.most_common() if not isinstance(condition.test, Below)]
    # Each condition becomes a column: 0 if it holds and 1 if not.
    for condition in others[:OTHERS]:
        left = condition.sends_left(words[:, condition.feature], absent[:, condition.feature])
        columns.append(((condition,), 1.0 - left.astype(np.float64)))
    cuts = cuts_at(
        np.stack([values for _, values in columns], axis=1) if columns else np.empty((len(words), 0)),
        [np.array([_cut(condition) for condition in conditions]) for conditions, _ in columns],
    )
    return Grower(
        conditions=tuple(conditions for conditions, _ in columns),
        cuts=cuts,
        compared=tuple(
            np.array([comparator_cost(forest, condition, prices) for condition in conditions])
            for conditions, _ in columns
        ),
        label=label,
        n_classes=len(forest.classes),
        prices=prices,
    )


def _uses(forest: Forest) -> Counter[Condition]:
    table = forest.conditions
    conditions = np.concatenate([at[tree.inner] for tree, at in zip(forest.trees, table.node_conditions, strict=True)])
    counts = np.bincount(conditions.astype(np.int64), minlength=1)
    return Counter({table[index]: int(counts[index]) for index in np.flatnonzero(counts).tolist()})


def _thresholds(forest: Forest, feature: int, values: NDArray[np.float64], uses: Counter[Condition]) -> list[int]:
    """Returns candidate thresholds of a feature, ascending. values: the feature's words, NaN if missing."""
    number, may_miss = forest.features[feature].number, forest.features[feature].missing
    if isinstance(number, Category):
        return []
    counts = Counter[int]()
    for condition, count in uses.items():
        if condition.feature == feature and isinstance(condition.test, Below):
            counts[int(condition.test.threshold)] += count
    held = word_range(number, may_miss)
    cheap = quantile_cuts(values[~np.isnan(values)], NEW_CUTS)
    new = {int(threshold) for threshold in cheap if held.low < threshold <= held.high}
    return sorted(new | {threshold for threshold, _ in counts.most_common(min(OWN_CUTS, MOST_CUTS - len(new)))})


def _cut(condition: Condition) -> float:
    return float(condition.test.threshold) if isinstance(condition.test, Below) else 0.5
