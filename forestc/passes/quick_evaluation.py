"""`evaluate_words` by compiled code: the same answers, bit for bit, for many rows and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.node_bounds import FlatTrees
from forestc.algorithms.walk import leaves_reached
from forestc.forest.evaluate import Evaluation, add_tree, evaluate_words, judged, missing_words, start_scores
from forestc.forest.ir import Forest
from forestc.passes.observation import flat_trees

FEW = 300_000  # rows times trees that the evaluator goes through in the time that code takes to compile


def evaluate_quickly(forest: Forest, words: NDArray[Any], trees: FlatTrees | None = None) -> Evaluation:
    """What `evaluate_words` says of encoded rows (rows, features), a tree at a time added up as it does.

    trees: the forest's, if they are at hand.
    """
    if len(words) * len(forest.trees) < FEW:
        return evaluate_words(forest, words)
    nodes = leaves_reached(trees or flat_trees(forest), words, *missing_words(forest))
    total = start_scores(forest, len(words))
    ids = np.empty(nodes.shape, dtype=np.int32)
    for index, tree in enumerate(forest.trees):
        ids[:, index] = tree.ids[nodes[:, index]]
        add_tree(forest, total, tree, nodes[:, index])
    return judged(forest, ids, total)
