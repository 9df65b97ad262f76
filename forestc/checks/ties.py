"""Searches inputs near a tie for each leaf: there a wrong leaf value is likely to change the label."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest
from forestc.forest.numbers import WordArray
from forestc.passes.quick_evaluation import concatenated_trees, evaluate_quickly

ROUNDS = 4  # times that each node gets its three words: below, on and above its threshold
MOST = 240_000  # limits the words tried, approximately
FAR = np.iinfo(np.int64).max  # marks a leaf without a word; larger than any margin


def margins(forest: Forest, evaluation: Evaluation) -> NDArray[np.int64] | None:
    """Returns margins (rows,): the last score minus the threshold or, for argmax, the largest score minus the second
    largest; None for other decisions and for several member models."""
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
    """Returns at most `most` of the words: those nearest to a tie or, if `margins` returns None, the first ones."""
    margin = margins(forest, evaluate_quickly(forest, words))
    return words[:most] if margin is None else words[np.argsort(np.abs(margin), kind="stable")[:most]]


def near_ties(forest: Forest, base: WordArray, seed: int) -> Iterator[WordArray]:
    """Yields an array of words (n, features) for each tree: at most two words per leaf, those nearest to a tie. Yields
    nothing if `margins` returns None."""
    walked = concatenated_trees(forest)
    best = [np.full((2, tree.size), FAR) for tree in forest.trees]
    words = [np.zeros((2, tree.size, len(forest.features)), dtype=np.int64) for tree in forest.trees]
    nodes = sum(len(tree.inner) for tree in forest.trees)
    for tried in boundary_inputs(forest, base, seed, min(MOST, 3 * ROUNDS * nodes)):
        evaluation = evaluate_quickly(forest, tried, walked)
        margin = margins(forest, evaluation)
        if margin is None:
            return
        for side, chosen in enumerate((np.flatnonzero(margin >= 0), np.flatnonzero(margin < 0))):
            # The word nearest to a tie is written last, so it overwrites the others.
            chosen = chosen[np.argsort(-np.abs(margin[chosen]), kind="stable")]
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
