"""Finds inputs for which the C of a forest is slow, because they take long paths in many trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forestc.forest.conditions import Below, InSpans, OneOf
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import Forest, Tree
from forestc.forest.numbers import WordArray, word_range

STARTS = 4  # inputs that are improved; more find longer paths but take more time
MOST_TRIED = 2000  # inputs to choose those with the longest paths from; more take memory
SWEEPS = 3  # times that all features are tried; most inputs stop improving after two
MOST_VALUES = 48  # limits the values tried for a feature; more find longer paths
# Limits rows times trees evaluated; lower finds shorter paths in large forests.
MOST_STEPS = 20_000_000


def costly_words(forest: Forest, starts: WordArray) -> WordArray:
    """Returns up to STARTS inputs with long paths, (inputs, features): rows of `starts` in which single features were
    changed."""
    trees = [tree for tree in forest.trees if len(tree.inner)]
    if not trees or not len(starts):
        return starts[:0]
    depths = [depths_of(tree) for tree in trees]
    missing = missing_words(forest)

    def lengths(index: int, words: WordArray) -> NDArray[np.int64]:
        return depths[index][leaf_nodes(forest, trees[index], words, missing)]

    starts = starts[:: -(-len(starts) // MOST_TRIED)]
    taken = np.stack([lengths(index, starts) for index in range(len(trees))])
    first = np.argsort(-taken.sum(axis=0), kind="stable")[:STARTS]
    words, steps, taken = starts[first].copy(), taken.size, taken[:, first]
    of_feature = [
        [i for i, tree in enumerate(trees) if (tree.feature[tree.inner] == f).any()]
        for f in range(len(forest.features))
    ]
    values = _values(forest)
    for _ in range(SWEEPS):
        before = taken.sum()
        for feature, tried in enumerate(values):
            steps += len(words) * len(tried) * len(of_feature[feature])
            if not of_feature[feature] or steps > MOST_STEPS:
                continue
            varied = np.repeat(words, len(tried), axis=0)
            varied[:, feature] = np.tile(tried, len(words))
            longer = np.stack([lengths(index, varied) for index in of_feature[feature]])
            total = longer.sum(axis=0).reshape(len(words), -1)
            best = total.argmax(axis=1)
            better = total.max(axis=1) > taken[of_feature[feature]].sum(axis=0)
            at = (np.arange(len(words)) * len(tried) + best)[better]
            words[better, feature] = varied[at, feature]
            taken[np.ix_(np.array(of_feature[feature]), np.flatnonzero(better))] = longer[:, at]
        if taken.sum() == before:
            break
    return words


def depths_of(tree: Tree) -> NDArray[np.int64]:
    """Returns the number of splits above each node: (nodes,)."""
    depth = np.zeros(tree.size, dtype=np.int64)
    for above, level in enumerate(tree.levels):
        depth[level] = above
    return depth


def _values(forest: Forest) -> list[NDArray[np.int64]]:
    """Returns for each feature an array of about MOST_VALUES words to try, taken from its thresholds and the ends of
    its range."""
    candidates: list[set[int]] = [set() for _ in forest.features]
    for index in range(len(forest.conditions)):
        condition = forest.conditions[index]
        match condition.test:
            case Below(threshold):
                beside = {int(threshold) - 1, int(threshold)}
            case OneOf(codes):
                beside = {int(code) for code in codes}
            case InSpans(cuts):
                beside = {int(cut) - step for cut in cuts for step in (0, 1)}
        candidates[condition.feature] |= beside
    values = []
    for feature, own in zip(forest.features, candidates, strict=True):
        span = word_range(feature.number, feature.missing)
        inside = sorted({min(max(value, span.low), span.high) for value in own} | {span.low, span.high})
        step = -(-len(inside) // MOST_VALUES)
        chosen = inside[::step] + ([] if span.missing is None else [span.missing])
        values.append(np.array(chosen, dtype=np.int64))
    return values
