"""Turns conditions of a forest into the literals of rules: each condition and its negation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.forest.conditions import Below, Condition
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import LEAF, Forest, Tree


@dataclass(frozen=True)
class Literals:
    """The literals of rules: literal 2k is condition k, literal 2k + 1 its negation."""

    conditions: tuple[Condition, ...]

    def bits(self, forest: Forest, words: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns an array (rows, literals): True where a literal holds. words: (rows, features) encoded rows."""
        takes_missing, missing_word = missing_words(forest)
        result = np.empty((len(words), 2 * len(self.conditions)), dtype=bool)
        for index, condition in enumerate(self.conditions):
            x, feature = words[:, condition.feature], condition.feature
            left = condition.sends_left(x, takes_missing[feature] & (x == missing_word[feature]))
            result[:, 2 * index], result[:, 2 * index + 1] = left, ~left
        return result

    @property
    def signed(self) -> list[tuple[Condition, bool]]:
        """Pairs (condition, False if the literal negates it), one for each literal."""
        return [(condition, positive) for condition in self.conditions for positive in (True, False)]

    @property
    def groups(self) -> NDArray[np.int64]:
        """Array (literals,) with the group number of each literal. All thresholds of a feature that send missing values
        to the same side form a group."""
        names = [
            (condition.feature, condition.missing_left) if isinstance(condition.test, Below) else index
            for index, condition in enumerate(self.conditions)
        ]
        number = {name: at for at, name in enumerate(dict.fromkeys(names))}
        return np.repeat(np.array([number[name] for name in names], dtype=np.int64), 2)


def literals_for(forest: Forest, words: NDArray[np.int64], label: NDArray[np.int64], most: int) -> Literals:
    """Returns the literals of the conditions with the largest decrease of Gini impurity over all nodes. most: number of
    conditions, at most."""
    gain = np.zeros(len(forest.conditions))
    classes = int(label.max(initial=0)) + 1
    missing = missing_words(forest)
    for tree, condition_of in zip(forest.trees, forest.conditions.node_conditions, strict=True):
        reached = leaf_nodes(forest, tree, words, missing)
        count = np.bincount(reached * classes + label, minlength=tree.size * classes)
        np.add.at(gain, condition_of[tree.inner], _gains(tree, count.reshape(tree.size, classes).astype(np.float64)))
    best = np.sort(np.argsort(-gain, kind="stable")[:most])
    return Literals(tuple(forest.conditions[int(index)] for index in best))


def _gains(tree: Tree, count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the decrease of Gini impurity at each inner node. count: (nodes, classes) rows; inner nodes are filled
    in."""
    for level in reversed(tree.levels):
        inner = level[tree.left[level] != LEAF]
        count[inner] = count[tree.left[inner]] + count[tree.right[inner]]
    total = count.sum(axis=1)
    impurity = total - (count**2).sum(axis=1) / np.maximum(total, 1.0)
    inner = tree.inner
    return np.asarray(impurity[inner] - impurity[tree.left[inner]] - impurity[tree.right[inner]])
