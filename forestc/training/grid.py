"""Trains on rows rounded down to a grid, so that features need few bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.boosting.cuts import grid_step
from forestc.errors import ModelError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import FLOAT64


def steps_of(X: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """Returns (columns,) powers of two: 2**bits steps of this size cover 98 % of a column's values; 1 for a constant
    column."""
    steps = np.ones(X.shape[1])
    for index in range(X.shape[1]):
        finite = X[np.isfinite(X[:, index]), index]
        steps[index] = (grid_step(finite, bits) if len(finite) else None) or 1.0
    return steps


def on_grid(forest: Forest, steps: NDArray[np.float64]) -> Forest:
    """Turns a forest trained on floor(x / step) into a forest for x. Raises ModelError for set conditions. steps:
    (columns,) powers of two."""
    of_feature = np.array([steps[feature.column] for feature in forest.features] or [1.0])
    trees = []
    for index, tree in enumerate(forest.trees):
        if (tree.set_index != NO_SET).any():
            raise ModelError(
                "has conditions that are sets, which no grid has",
                where=f"tree {index}",
                do="train on columns of numbers, without categories",
            )
        scaled = np.where(tree.left == LEAF, 0.0, np.ceil(tree.threshold) * of_feature[tree.feature])
        trees.append(changed_tree(tree, threshold=scaled))
    features = [replace(feature, number=FLOAT64, raw=FLOAT64) for feature in forest.features]
    return changed(forest, trees=tuple(trees), features=tuple(features))
