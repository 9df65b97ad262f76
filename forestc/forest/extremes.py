"""The largest or smallest of the trees' values, as steps up or down from where it starts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import LEAF, Forest, Tree


def start_and_steps(forest: Forest, output: int) -> tuple[int, dict[int, NDArray[np.int64]]]:
    """Where the score of an output starts, without its bias, and by tree, how far the values of its rows of leaves lead
    away from there: up for the largest value, down for the smallest. Trees that lead nowhere are left out."""
    sign = 1 if forest.aggregate.kind == "max" else -1
    leaves = {index: _used(tree, output, sign) for index, tree in enumerate(forest.trees) if output in tree.outputs}
    start = max(int(used.min()) for _, used in leaves.values())
    steps = {index: np.maximum(values - start, 0) for index, (values, used) in leaves.items() if used.max() > start}
    return sign * start, steps


def _used(tree: Tree, output: int, sign: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values of all rows of leaves, and of those that a leaf has."""
    values = sign * tree.values[:, tree.outputs.index(output)]
    return values, values[tree.leaf[tree.left == LEAF]]
