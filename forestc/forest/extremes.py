"""Describes the maximum (or minimum) of the trees' values as a start value and steps away from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import LEAF, Forest, Tree


def start_and_steps(forest: Forest, output: int) -> tuple[int, dict[int, NDArray[np.int64]]]:
    """Returns a start value, and {tree: steps} with a step for each row of `Tree.values`. The score without bias is the
    start plus (max) or minus (min) the largest step reached."""
    sign = 1 if forest.aggregate.kind == "max" else -1
    leaves = {index: _used(tree, output, sign) for index, tree in enumerate(forest.trees) if output in tree.outputs}
    start = max(int(used.min()) for _, used in leaves.values())
    steps = {index: np.maximum(values - start, 0) for index, (values, used) in leaves.items() if used.max() > start}
    return sign * start, steps


def _used(tree: Tree, output: int, sign: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns two arrays of an output's values times `sign`: by row of `tree.values`, and by leaf."""
    values = sign * tree.values[:, tree.outputs.index(output)]
    return values, values[tree.leaf[tree.left == LEAF]]
