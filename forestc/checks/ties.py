"""Words on which a changed leaf shows in the label: for each leaf, those that it alone nearly decides.

A design whose only output is the label answers as it should, whatever a leaf holds, wherever other trees decide. So for
each leaf the rows nearest to a tie, on either side of it, are sought among many that start from rows near ties and are
steered to every node.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest
from forestc.forest.numbers import WordArray
from forestc.passes.quick_evaluation import evaluate_quickly, walked_trees

ROUNDS = 4  # times that each node gets its three words: below, on and above its threshold
MOST = 240_000  # words tried in total
FAR = np.iinfo(np.int64).max  # margin of a leaf that no word has reached


def margins(forest: Forest, evaluation: Evaluation) -> NDArray[np.int64] | None:
    """(rows,) by how much a score is from changing the decision, 0 or more where the decision is the upper class; of an
    argmax the lead of the largest score. None where nothing single is decided."""
    if not forest.single:
        return None
    match forest.decision.kind:
        case "threshold":
            return np.asarray(evaluation.scores[:, -1] - int(forest.decision.threshold), dtype=np.int64)
        case "argmax" if evaluation.scores.shape[1] > 1:
            ordered = np.sort(evaluation.scores, axis=1)
            return np.asarray(ordered[:, -1] - ordered[:, -2], dtype=np.int64)
        case _:
            return None


def nearest_to_ties(forest: Forest, words: WordArray, most: int) -> WordArray:
    """At most `most` of the words: those nearest to a tie, or the first where nothing single is decided."""
    margin = margins(forest, evaluate_quickly(forest, words))
    return words[:most] if margin is None else words[np.argsort(np.abs(margin), kind="stable")[:most]]


def near_ties(forest: Forest, base: WordArray, seed: int) -> Iterator[WordArray]:
    """For each leaf up to two words (n, features), the nearest to a tie on either side. base: rows to start from."""
    walked = walked_trees(forest)
    best = [np.full((2, tree.size), FAR) for tree in forest.trees]
    words = [np.zeros((2, tree.size, len(forest.features)), dtype=np.int64) for tree in forest.trees]
    nodes = sum(len(tree.inner) for tree in forest.trees)
    for tried in boundary_inputs(forest, base, seed, min(MOST, 3 * ROUNDS * nodes)):
        evaluation = evaluate_quickly(forest, tried, walked)
        margin = margins(forest, evaluation)
        if margin is None:
            return
        for side, chosen in enumerate((np.flatnonzero(margin >= 0), np.flatnonzero(margin < 0))):
            chosen = chosen[np.argsort(-np.abs(margin[chosen]), kind="stable")]  # so that the nearest is written last
            size = np.abs(margin[chosen])
            for index, tree in enumerate(forest.trees):
                leaf = tree.leaves_numbered(evaluation.leaves[chosen, index])
                nearest = np.full(tree.size, -1)
                nearest[leaf] = np.arange(len(chosen))
                reached = np.flatnonzero(nearest >= 0)
                reached = reached[size[nearest[reached]] < best[index][side, reached]]
                best[index][side, reached] = size[nearest[reached]]
                words[index][side, reached] = tried[chosen[nearest[reached]]]
    for nearest_margin, nearest_words in zip(best, words, strict=True):
        yield nearest_words[nearest_margin < FAR]
