"""The leaf that each row reaches in each tree, by compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats, Int32s, Ints
from forestc.system.compiled import compiled, share_out


class WalkedTrees(NamedTuple):
    """The nodes of all trees, concatenated, in arrays (nodes,) if not stated otherwise; children count from the root.

    roots: (trees,) where each tree begins. left, right: -1 at a leaf. children: (nodes, 2) right and left child,
    counted from the first tree's root; a leaf twice itself. set_start: where a node's members begin in `members`, -1
    for a node that compares with its threshold. odd: whether the members are cuts, of which an odd number lies at or
    below a word that goes left; else they are category codes. takes_missing, missing_word: (features,) whether some
    word means missing, and which; NaN always does.
    """

    roots: Ints
    feature: Ints
    threshold: NDArray[Any]
    left: Ints
    right: Ints
    children: Int32s
    missing_left: Bits
    set_start: Ints
    set_end: Ints
    odd: Bits
    members: NDArray[Any]
    takes_missing: Bits
    missing_word: Ints


def leaves_reached(trees: WalkedTrees, words: NDArray[Any]) -> Ints:
    """(rows, trees): the leaf that each row reaches, counted from the tree's root.

    words: (rows, features), int64 of a quantized forest, else float64.
    Time O(rows * trees * depth), on all cores.
    """
    leaves = np.zeros((len(trees.roots), len(words)), dtype=np.int64)  # what reads it goes from tree to tree
    if words.shape[1]:  # else all trees are leaves
        arguments = (trees, np.ascontiguousarray(words), leaves)
        share_out(len(words), lambda first, last: _walk(*arguments, first, last))
    return leaves.T


@compiled(inline="always")
def _child(trees: WalkedTrees, words: Floats | Ints, row: int, node: int) -> Any:
    """The node after a node, without a branch that the processor must guess; a leaf comes after itself."""
    feature = trees.feature[node]
    word = words[row, feature]
    if trees.set_start[node] < 0:
        left = word < trees.threshold[node]
    else:
        left = False
        for place in range(trees.set_start[node], trees.set_end[node]):
            if trees.odd[node]:
                left ^= trees.members[place] <= word
            else:
                left |= trees.members[place] == word
    absent = (word != word) | (trees.takes_missing[feature] & (word == trees.missing_word[feature]))
    return trees.children[node, np.int64((absent & trees.missing_left[node]) | (left & (not absent)))]


@compiled()
def _walk(trees: WalkedTrees, words: Floats | Ints, leaves: Ints, first: int, last: int) -> None:
    for row in range(first, last, 4):  # four rows at once, as each waits for memory
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
