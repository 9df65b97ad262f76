"""The leaf that each row reaches in each tree, by compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled, share_out


class WalkedTrees(NamedTuple):
    """The nodes of all trees, concatenated, in arrays (nodes,) if not stated otherwise; children count from the root.

    roots: (trees,) where each tree begins. left, right: -1 at a leaf. set_start: where a node's members begin in
    `members`, -1 for a node that compares with its threshold. odd: whether the members are cuts, of which an odd number
    lies at or below a word that goes left; else they are category codes. takes_missing, missing_word: (features,)
    whether some word means missing, and which; NaN always does.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[Any]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    set_start: NDArray[np.int64]
    set_end: NDArray[np.int64]
    odd: NDArray[np.bool_]
    members: NDArray[Any]
    takes_missing: NDArray[np.bool_]
    missing_word: NDArray[np.int64]


def leaves_reached(trees: WalkedTrees, words: NDArray[Any]) -> NDArray[np.int64]:
    """(rows, trees): the leaf that each row reaches, counted from the tree's root.

    words: (rows, features), int64 of a quantized forest, else float64.
    Time O(rows * trees * depth), on all cores.
    """
    leaves = np.empty((len(trees.roots), len(words)), dtype=np.int64)  # what reads it goes from tree to tree
    arguments = (trees, np.ascontiguousarray(words), leaves)
    share_out(len(words), lambda first, last: _walk(*arguments, first, last))
    return leaves.T


@compiled()
def _walk(trees: Any, words: Any, leaves: Any, first: int, last: int) -> None:
    for row in range(first, last):
        for tree in range(len(trees.roots)):
            root, at = trees.roots[tree], 0
            while trees.left[root + at] >= 0:
                node = root + at
                feature = trees.feature[node]
                word = words[row, feature]
                if word != word or (trees.takes_missing[feature] and word == trees.missing_word[feature]):
                    left = trees.missing_left[node]
                elif trees.set_start[node] < 0:
                    left = word < trees.threshold[node]
                else:
                    left = False
                    for place in range(trees.set_start[node], trees.set_end[node]):
                        if trees.odd[node]:
                            left ^= trees.members[place] <= word
                        else:
                            left |= trees.members[place] == word
                at = trees.left[node] if left else trees.right[node]
            leaves[tree, row] = at
