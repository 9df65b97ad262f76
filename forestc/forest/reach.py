"""Bounds the sums of a forest's trees, more closely than by each tree's largest leaf: leaves that no row reaches
together do not count together (Chen et al., Robustness verification of tree-based models, NeurIPS 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forestc.forest.ir import LEAF, Tree
from forestc.forest.numbers import FloatArray

MOST_PAIRS = 1 << 14  # limits the boxes that are intersected at once
MOST_ENDS = 1 << 22  # limits the ends of boxes in memory


@dataclass(frozen=True)
class Reach:
    """Bounds of a sum: `low` and `high`, plus one of `values` for the rows in each box.

    A box holds the rows with least <= x < limit for every feature.
    """

    low: float
    high: float
    values: FloatArray  # (boxes,)
    least: FloatArray  # (boxes, features)
    limit: FloatArray  # (boxes, features)

    @property
    def span(self) -> tuple[float, float]:
        return self.low + float(self.values.min()), self.high + float(self.values.max())

    def plus(self, other: Reach) -> Reach:
        """Returns the bounds of the sum of both."""
        low, high = self.low + other.low, self.high + other.high
        if len(self.values) * len(other.values) > MOST_PAIRS:
            return Reach(other.low + self.span[0], other.high + self.span[1], other.values, other.least, other.limit)
        least = np.maximum(self.least[:, np.newaxis], other.least)
        limit = np.minimum(self.limit[:, np.newaxis], other.limit)
        some = (least < limit).all(axis=2)
        values = np.add.outer(self.values, other.values)
        return Reach(low, high, values[some], least[some], limit[some])


def constant_reach(low: float, high: float, features: int) -> Reach:
    everywhere = np.full((1, features), np.inf)
    return Reach(float(low), float(high), np.zeros(1), -everywhere, everywhere)


def reach_of_tree(tree: Tree, features: int) -> Reach:
    """Returns the bounds of a tree of one output, with thresholds alone."""
    values = tree.values[:, 0].astype(np.float64)
    if tree.size * features > MOST_ENDS or tree.sets:
        return constant_reach(values.min(), values.max(), features)
    least, limit = np.full((tree.size, features), -np.inf), np.full((tree.size, features), np.inf)
    for level in tree.levels:
        inner = level[tree.left[level] != LEAF]
        feature, threshold = tree.feature[inner], tree.threshold[inner]
        for child in (tree.left[inner], tree.right[inner]):
            least[child], limit[child] = least[inner], limit[inner]
        limit[tree.left[inner], feature] = np.minimum(limit[inner, feature], threshold)
        least[tree.right[inner], feature] = np.maximum(least[inner, feature], threshold)
    leaves = np.flatnonzero((tree.left == LEAF) & (least < limit).all(axis=1))
    return Reach(0.0, 0.0, values[tree.leaf[leaves]], least[leaves], limit[leaves])
