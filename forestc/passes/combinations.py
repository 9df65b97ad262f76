"""Enumerates combinations of leaves, one leaf from each tree, whether or not an input reaches them together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestc.forest.evaluate import Evaluation, evaluate_nodes
from forestc.forest.ir import LEAF, Forest

# Limits the number of combinations, and that number times the number of trees.
MOST_COMBINATIONS, MOST_LEAVES = 1 << 16, 1 << 23


def most_combinations(forest: Forest) -> int:
    """Returns how many combinations may be evaluated: 65,536, or fewer for more than 128 trees."""
    return min(MOST_COMBINATIONS, MOST_LEAVES // len(forest.trees))


def leaf_combinations(forest: Forest) -> list[NDArray[np.int64]] | None:
    """Returns a list with an array (combinations,) of leaf nodes for each tree. Leaves of equal values count once.
    Returns None if there are more than `most_combinations`."""
    firsts = []
    for tree in forest.trees:
        nodes = np.flatnonzero(tree.left == LEAF)
        _, first = np.unique(tree.values[tree.leaf[nodes]], axis=0, return_index=True)
        firsts.append(nodes[first])
    if math.prod(map(len, firsts)) > most_combinations(forest):
        return None
    return [grid.ravel() for grid in np.meshgrid(*firsts, indexing="ij")]


def evaluate_leaves(forest: Forest, nodes: Sequence[NDArray[np.int64]]) -> Evaluation:
    """Evaluates the forest for rows that reach the given leaves. nodes: for each tree (rows,) leaf nodes."""
    return evaluate_nodes(forest, nodes, len(nodes[0]) if nodes else 1)


def constant_answer(forest: Forest) -> Evaluation | None:
    """Returns the evaluation of one row by a forest of constant trees; None if some tree is not constant."""
    if any((tree.values != tree.values[0]).any() for tree in forest.trees):
        return None
    return evaluate_leaves(forest, [np.flatnonzero(tree.left == LEAF)[:1] for tree in forest.trees])
