"""What regrow-trees grows from, coded rows and candidate conditions with their prices, and the forest that it makes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.boosting.boost import Boosted, Charges, Loss, boost, whole_bias
from forestc.algorithms.boosting.cuts import MOST_CUTS, Cuts, cuts_at, quantile_cuts
from forestc.algorithms.boosting.trees import GrownTree, Growth
from forestc.costs.prices import Prices
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.conditions import NO_SET, Below, Condition, members_of
from forestc.forest.evaluate import missing_words
from forestc.forest.ir import LEAF, Aggregate, Decision, Forest, Link, Tree
from forestc.forest.numbers import Category, word_range
from forestc.passes.tree_costs import charges_of, comparator_cost

OWN_CUTS = 60  # the forest's own thresholds of a feature that are candidates, most frequent first
NEW_CUTS = 60  # candidates between the quantiles of the rows: each the one that is cheapest to compare with
CANDIDATE = 30  # steps for each, as it is weighed in a node
OTHERS = 200  # candidates that are no thresholds, such as sets of categories: the forest's own, most frequent first


@dataclass(frozen=True)
class Material:
    """Rows, and the conditions that trees may have.

    conditions: for each column of `cuts`, those of its thresholds. label: (samples,) class indices, or values.
    """

    forest: Forest
    conditions: tuple[tuple[Condition, ...], ...]
    cuts: Cuts
    label: NDArray[np.float64]
    prices: Prices

    @classmethod
    def of(cls, forest: Forest, words: NDArray[np.int64], label: NDArray[np.float64], prices: Prices) -> Material:
        """words: (samples, features) encoded rows."""
        taken, missing = missing_words(forest)
        absent = taken & (words == missing)
        uses = _uses(forest)
        columns: list[tuple[tuple[Condition, ...], NDArray[np.float64]]] = []
        for feature in range(len(forest.features)):
            values = np.where(absent[:, feature], np.nan, words[:, feature])
            if thresholds := _thresholds(forest, feature, values, uses):
                columns.append((tuple(Condition(feature, Below(threshold)) for threshold in thresholds), values))
        others = [condition for condition, _ in uses.most_common() if not isinstance(condition.test, Below)]
        for condition in others[:OTHERS]:  # a column of its own: 0 where it holds, and a threshold between 0 and 1
            left = condition.sends_left(words[:, condition.feature], absent[:, condition.feature])
            columns.append(((condition,), 1.0 - left.astype(np.float64)))
        cuts = cuts_at(
            np.stack([values for _, values in columns], axis=1) if columns else np.empty((len(words), 0)),
            [np.array([_cut(condition) for condition in conditions]) for conditions, _ in columns],
        )
        return cls(forest, tuple(conditions for conditions, _ in columns), cuts, label, prices)

    @cached_property
    def compared(self) -> tuple[NDArray[np.float64], ...]:
        """The prices of all candidates."""
        return tuple(
            np.array([comparator_cost(self.forest, condition, self.prices) for condition in conditions])
            for conditions in self.conditions
        )

    @property
    def outputs(self) -> int:
        """Number of scores."""
        return len(self.forest.classes) if len(self.forest.classes) > 2 else 1

    def work(self, growth: Growth) -> float:
        """About how many steps growing all trees takes: each level of a tree looks at all rows in each column, and at
        each candidate in all nodes."""
        candidates = sum(map(len, self.conditions))
        level = self.cuts.codes.size + CANDIDATE * candidates * (1 << growth.depth) / growth.depth
        return growth.sampled * growth.depth * level * growth.rounds * self.outputs * (1 + growth.sweeps)

    def grown(self, growth: Growth) -> Boosted:
        """The trees of one size and price."""
        loss: Loss = "squared" if not self.forest.decides else "softmax" if self.outputs > 1 else "logistic"
        charges: Charges = charges_of(self.prices, growth, self.compared)
        return boost(self.cuts, self.label, loss, self.outputs, charges, growth)

    def rebuilt(self, grown: Boosted, growth: Growth) -> Forest:
        """The integer forest of the grown trees, over the features of the old one; a score of 1 stands for `unit`."""
        bias = whole_bias(grown, growth)
        trees = [self._tree(tree, growth, index) for index, tree in enumerate(grown.trees)]
        outputs, decides = len(bias), self.forest.decides
        if not trees:
            trees = [_constant()]
        return make_forest(
            name=self.forest.name,
            features=self.forest.features,
            columns=self.forest.columns,
            trees=trees,
            n_outputs=outputs,
            bias=bias,
            aggregate=Aggregate(),
            link=Link("softmax" if outputs > 1 else "sigmoid" if decides else "identity"),
            decision=Decision("argmax" if outputs > 1 else "threshold" if decides else "none"),
            classes=self.forest.classes,
            scale=growth.unit,
            provenance=self.forest.provenance,
        )

    def _tree(self, grown: GrownTree, growth: Growth, index: int) -> Tree:
        size = len(grown.left)
        feature, sets = np.full(size, LEAF), np.full(size, NO_SET)
        threshold, missing_left = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
        members: dict[tuple[int | float, ...], int] = {}
        for node in np.flatnonzero(grown.left != LEAF).tolist():
            condition = self.conditions[grown.column[node]][grown.cut[node]]
            feature[node] = condition.feature
            missing_left[node] = condition.missing_left or grown.missing_left[node]
            if isinstance(condition.test, Below):
                threshold[node] = condition.test.threshold
            else:
                sets[node] = members.setdefault(members_of(condition.test), len(members))
        levels = np.rint(grown.value / growth.unit + ((1 << growth.leaf_bits) - 1) / 2).astype(np.int64)
        return make_tree(
            where=f"tree {index}", feature=feature, threshold=threshold, left=grown.left, right=grown.right,
            values=levels[grown.left == LEAF][:, None], outputs=(grown.output,), missing_left=missing_left,
            set_index=sets, sets=tuple(members), cover=grown.cover, quantised=True,
        )  # fmt: skip


def _uses(forest: Forest) -> Counter[Condition]:
    """How often the trees have each condition."""
    table = forest.conditions
    places = np.concatenate([at[tree.inner] for tree, at in zip(forest.trees, table.places, strict=True)])
    counts = np.bincount(places.astype(np.int64), minlength=1)
    return Counter({table[place]: int(counts[place]) for place in np.flatnonzero(counts).tolist()})


def _thresholds(forest: Forest, feature: int, values: NDArray[np.float64], uses: Counter[Condition]) -> list[int]:
    """Candidates on a feature, ascending: the forest's own and cheap ones. values: its words, NaN where missing."""
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


def _constant() -> Tree:
    return make_tree(
        where="tree 0", feature=[LEAF], threshold=[0], left=[LEAF], right=[LEAF], values=[[0]], outputs=(0,),
        quantised=True,
    )  # fmt: skip
