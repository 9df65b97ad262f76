"""The leaf that each row reaches in each tree, by compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled, share_out
from forestc.algorithms.node_bounds import FlatTrees


def leaves_reached(
    trees: FlatTrees, words: NDArray[Any], takes_missing: NDArray[np.bool_], missing_word: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(rows, trees): the node, counted from the tree's own root.

    words: (rows, features), int64 of a quantised forest, else float64 with NaN for a missing value. takes_missing,
    missing_word: for each feature whether a word means missing, and which.
    Time O(rows * trees * depth), on all cores.
    """
    leaves = np.empty((len(words), len(trees.roots)), dtype=np.int64)
    whole = (trees, np.ascontiguousarray(words), takes_missing, missing_word, leaves)
    share_out(len(words), lambda first, last: _walk(*whole, first, last))
    return leaves


@compiled()
def _walk(trees: Any, words: Any, takes_missing: Any, missing_word: Any, leaves: Any, first: int, last: int) -> None:
    for row in range(first, last):
        for tree in range(len(trees.roots)):
            root = trees.roots[tree]
            node = root
            while trees.left[node] >= 0:
                feature = trees.feature[node]
                word = words[row, feature]
                if word != word or (takes_missing[feature] and word == missing_word[feature]):
                    left = trees.missing_left[node]
                elif trees.set_start[node] < 0:
                    left = word < trees.threshold[node]
                else:
                    left = False
                    for place in range(trees.set_start[node], trees.set_end[node]):
                        if trees.cuts[node]:
                            left ^= trees.members[place] <= word
                        else:
                            left |= trees.members[place] == word
                node = trees.left[node] if left else trees.right[node]
            leaves[row, tree] = node - root
