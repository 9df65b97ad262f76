"""Finds the leaf that each row reaches in each tree, in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats, Int32s, Ints
from forestc.system.compiled import compiled, share_out


class TreeArrays(NamedTuple):
    """The nodes of all trees of a forest, concatenated; arrays are (nodes,) unless noted."""

    roots: Ints  # (trees,) index of each tree's root
    feature: Ints
    threshold: NDArray[Any]
    left: Ints  # left child, counted from the tree's root; -1 at a leaf
    right: Ints  # right child, counted from the tree's root; -1 at a leaf
    children: Int32s  # (nodes, 2) indices of right and left child among all nodes; own index at leaves
    missing_left: Bits
    set_start: Ints  # start of a node's set in `members`; -1 without a set
    set_end: Ints  # end of the set
    odd: Bits  # True: left if an odd number of members is <= the word
    members: NDArray[Any]  # values of all sets; without `odd`, these values go left
    takes_missing: Bits  # (features,) True if a word besides NaN means missing
    missing_word: Ints  # (features,) word that means missing


def leaves_reached(trees: TreeArrays, words: NDArray[Any]) -> Ints:
    """Returns the leaf that each row reaches, (rows, trees), as a node index counted from the tree's root. words:
    (rows, features), int64 for a quantized forest, otherwise float64."""
    # Stored by tree, because callers read one tree after the other.
    leaves = np.zeros((len(trees.roots), len(words)), dtype=np.int64)
    if words.shape[1]:  # otherwise all trees are leaves
        arguments = (trees, np.ascontiguousarray(words), leaves)
        share_out(len(words), lambda first, last: _walk(*arguments, first, last))
    return leaves.T


@compiled(inline="always")
def _child(trees: TreeArrays, words: Floats | Ints, row: int, node: int) -> Any:
    """Returns the child that a row goes to; at a leaf, the node itself."""
    feature = trees.feature[node]
    word = words[row, feature]
    if trees.set_start[node] < 0:
        left = word < trees.threshold[node]
    else:
        left = False
        for index in range(trees.set_start[node], trees.set_end[node]):
            if trees.odd[node]:
                left ^= trees.members[index] <= word
            else:
                left |= trees.members[index] == word
    absent = (word != word) | (trees.takes_missing[feature] & (word == trees.missing_word[feature]))
    return trees.children[node, np.int64((absent & trees.missing_left[node]) | (left & (not absent)))]


@compiled()
def _walk(trees: TreeArrays, words: Floats | Ints, leaves: Ints, first: int, last: int) -> None:
    for row in range(first, last, 4):  # follows four rows at once, as each waits for memory
        row1, row2, row3 = min(row + 1, last - 1), min(row + 2, last - 1), min(row + 3, last - 1)
        for tree in range(len(trees.roots)):
            root = trees.roots[tree]
            at = at1 = at2 = at3 = root
            walking = True
            while walking:
                to, to1 = _child(trees, words, row, at), _child(trees, words, row1, at1)
                to2, to3 = _child(trees, words, row2, at2), _child(trees, words, row3, at3)
                walking = to != at or to1 != at1 or to2 != at2 or to3 != at3
                at, at1, at2, at3 = to, to1, to2, to3
            leaves[tree, row], leaves[tree, row1] = at - root, at1 - root
            leaves[tree, row2], leaves[tree, row3] = at2 - root, at3 - root
