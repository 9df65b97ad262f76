"""Splits the maximum (or minimum) of the trees' values into a start and steps away from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import LEAF, Forest, Tree


def start_and_steps(forest: Forest, output: int) -> tuple[int, dict[int, NDArray[np.int64]]]:
    """Returns the start of an output's score, without bias, and the steps of each tree, by the tree's index. The start
    is the least extreme value that the score can take. A tree's steps are an array with one entry for each row of
    `Tree.values`: how far that value leads away from the start, up for a maximum and down for a minimum, otherwise 0.
    Trees that lead nowhere are left out."""
    sign = 1 if forest.aggregate.kind == "max" else -1
    leaves = {index: _used(tree, output, sign) for index, tree in enumerate(forest.trees) if output in tree.outputs}
    start = max(int(used.min()) for _, used in leaves.values())
    steps = {index: np.maximum(values - start, 0) for index, (values, used) in leaves.items() if used.max() > start}
    return sign * start, steps


def _used(tree: Tree, output: int, sign: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns `sign` times the output's leaf values: of all rows of `tree.values`, and of the rows in use by a leaf."""
    values = sign * tree.values[:, tree.outputs.index(output)]
    return values, values[tree.leaf[tree.left == LEAF]]
