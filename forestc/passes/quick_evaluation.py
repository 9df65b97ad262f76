"""Evaluates forests quickly: in compiled code if there are many rows. The results equal those of `evaluate_words` bit
for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.walk import TreeArrays, leaves_reached
from forestc.forest.conditions import NO_SET
from forestc.forest.evaluate import Evaluation, encode_numbers, evaluate_nodes, leaf_nodes, missing_words
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import Category
from forestc.rows.accuracy import answers_of

FEW = 1_000_000  # conditions to evaluate up to which NumPy is faster than compiled code


def evaluate_quickly(forest: Forest, words: NDArray[Any], trees: TreeArrays | None = None) -> Evaluation:
    """Evaluates the forest on encoded rows (rows, features), as `evaluate_words` does. trees: result of
    `concatenated_trees`, if already computed."""
    return evaluate_nodes(forest, list(nodes_reached(forest, words, trees).T), len(words))


def _few(forest: Forest, words: NDArray[Any]) -> bool:
    return len(words) * sum(max(1, tree.depth) for tree in forest.trees) < FEW


def nodes_reached(forest: Forest, words: NDArray[Any], trees: TreeArrays | None = None) -> NDArray[np.int64]:
    """Returns an array (rows, trees): the leaf node that each row reaches in each tree. trees: result of
    `concatenated_trees`, if already computed."""
    if _few(forest, words):
        missing = missing_words(forest)
        nodes = [leaf_nodes(forest, tree, words, missing) for tree in forest.trees]
        return np.stack(nodes, axis=1) if nodes else np.empty((len(words), 0), dtype=np.int64)
    return leaves_reached(trees or concatenated_trees(forest), words)


def other_paths(before: Forest, after: Forest, X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns which rows reach another leaf in at least one tree, (rows,). X: (rows, features)."""
    words = encode_numbers(before, X)
    return np.asarray((nodes_reached(before, words) != nodes_reached(after, words)).any(axis=1))


def evaluate_rows(forest: Forest, X: NDArray[np.float64]) -> Evaluation:
    """Evaluates the forest on raw rows (rows, columns), as numbers."""
    return evaluate_quickly(forest, encode_numbers(forest, X))


def answers_to(forest: Forest, X: NDArray[np.float64]) -> NDArray[Any]:
    """Returns the forest's answers to raw rows (rows, columns): class indices, or the values of a regression."""
    return answers_of(forest, evaluate_rows(forest, X))


def concatenated_trees(forest: Forest) -> TreeArrays:
    """Returns all trees of a forest as flat arrays, for compiled code."""
    dtype = np.int64 if forest.on_words else np.float64
    sizes = np.array([tree.size for tree in forest.trees])
    sets = [members for tree in forest.trees for members in tree.sets]
    ends = np.concatenate([[0], np.cumsum([len(members) for members in sets])]).astype(np.int64)
    before = np.cumsum([0, *(len(tree.sets) for tree in forest.trees)])[:-1]
    chosen = np.concatenate([tree.set_index for tree in forest.trees])
    has_set = chosen != NO_SET
    set_number = np.where(has_set, chosen + np.repeat(before, sizes), 0)
    features = np.concatenate([tree.feature for tree in forest.trees]).astype(np.int64)
    codes = np.array([isinstance(feature.number, Category) for feature in forest.features] + [False])
    takes_missing, missing_word = missing_words(forest)
    left, right = (
        np.concatenate([getattr(tree, side) for tree in forest.trees]).astype(np.int64) for side in ("left", "right")
    )
    root, node = np.repeat(np.cumsum(sizes) - sizes, sizes), np.arange(len(left))
    children = np.stack([np.where(left == LEAF, node, root + child) for child in (right, left)], axis=1).astype(
        np.int32
    )
    return TreeArrays(
        roots=np.cumsum(sizes) - sizes,
        feature=features,
        threshold=np.concatenate([tree.threshold for tree in forest.trees]).astype(dtype),
        left=left,
        right=right,
        children=children.astype(np.int32),
        missing_left=np.concatenate([tree.missing_left for tree in forest.trees]),
        set_start=np.where(has_set, ends[set_number], NO_SET),
        set_end=np.where(has_set, ends[np.minimum(set_number + 1, len(sets))], NO_SET),
        odd=has_set & ~codes[features],
        members=np.array([member for members in sets for member in members], dtype=dtype),
        takes_missing=takes_missing & forest.on_words,  # a float forest marks missing values by NaN alone
        missing_word=missing_word,
    )
