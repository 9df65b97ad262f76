"""All combinations of the leaves of a forest's trees, whether an input reaches them or not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestc.forest.evaluate import Evaluation, add_tree, judged, start_scores
from forestc.forest.ir import LEAF, Forest

MOST_COMBINATIONS, MOST_LEAVES = 1 << 16, 1 << 23  # rows to evaluate, and rows times trees, for time and memory


def most_combinations(forest: Forest) -> int:
    """Combinations of paths, or of leaves, that are tried one by one: 65,536, or fewer of more than 128 trees."""
    return min(MOST_COMBINATIONS, MOST_LEAVES // len(forest.trees))


def leaf_combinations(forest: Forest) -> list[NDArray[np.int64]] | None:
    """For each tree (combinations,) leaf nodes, of several with equal values the first; None for more than
    `most_combinations`."""
    firsts = []
    for tree in forest.trees:
        nodes = np.flatnonzero(tree.left == LEAF)
        _, first = np.unique(tree.values[tree.leaf[nodes]], axis=0, return_index=True)
        firsts.append(nodes[first])
    if math.prod(map(len, firsts)) > most_combinations(forest):
        return None
    return [grid.ravel() for grid in np.meshgrid(*firsts, indexing="ij")]


def evaluate_leaves(forest: Forest, nodes: Sequence[NDArray[np.int64]]) -> Evaluation:
    """The evaluation of rows that reach these leaf nodes, (rows,) for each tree."""
    total = start_scores(forest, len(nodes[0]) if nodes else 1)
    for tree, node in zip(forest.trees, nodes, strict=True):
        add_tree(forest, total, tree, node)
    ids = np.zeros((len(total), len(nodes)), dtype=np.int32)
    for index, (tree, node) in enumerate(zip(forest.trees, nodes, strict=True)):
        ids[:, index] = tree.ids[node]
    return judged(forest, ids, total)


def constant_answer(forest: Forest) -> Evaluation | None:
    """Returns the evaluation (one row) of a forest that answers every input alike, as no tree has leaves of different
    values; None for any other."""
    if any((tree.values != tree.values[0]).any() for tree in forest.trees):
        return None
    return evaluate_leaves(forest, [np.flatnonzero(tree.left == LEAF)[:1] for tree in forest.trees])
