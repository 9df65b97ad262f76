"""What the kernels that prune and rewire splits are given: the trees as they were, and as they are by now."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled


class Shape(NamedTuple):
    """The trees as they were given. Of splits see `split_pruning.Splits`; slots: (trees + 1,) where a tree's leaves
    begin among all leaves; start: (trees + 1,) where what they hold begins; outputs: (trees, 2) first output a tree
    feeds and one past the last."""

    tree: NDArray[np.int64]
    first: NDArray[np.int64]
    middle: NDArray[np.int64]
    last: NDArray[np.int64]
    size: NDArray[np.int64]
    cost: NDArray[np.float64]
    slots: NDArray[np.int64]
    start: NDArray[np.int64]
    outputs: NDArray[np.int64]


class State(NamedTuple):
    """What changes. leaf: (trees, rows), of leaves that became one the first. value: of every leaf and output. group:
    of each leaf the first that became one with it. alive, condition, flipped: of each split whether it is still one,
    what it compares, and whether its rows go the other way. uses: of each condition how many splits have it."""

    leaf: NDArray[np.int32]
    value: NDArray[np.int64]
    group: NDArray[np.int64]
    alive: NDArray[np.bool_]
    condition: NDArray[np.int64]
    flipped: NDArray[np.bool_]
    uses: NDArray[np.int64]


class Outcomes(NamedTuple):
    """Which rows go left, by condition: those whose code in the condition's column is below its cut. Thresholds on one
    feature share a column.

    code: (rows, columns). column, cut: of each condition. begins: (columns + 1,) where each column's codes begin if
    those of all columns are put in a row. pool: the first so many conditions are there for any split.
    """

    code: NDArray[Any]
    column: NDArray[np.int64]
    cut: NDArray[np.int64]
    begins: NDArray[np.int64]
    pool: int


@compiled()
def left_of(shape: Any, split: int) -> Any:
    """The split on a split's left side, -1 for a leaf."""
    if shape.middle[split] - shape.first[split] == 1:
        return -1
    return split - 1 - (shape.size[split - 1] if shape.last[split] - shape.middle[split] > 1 else 0)


@compiled()
def right_of(shape: Any, split: int) -> Any:
    """The split on a split's right side, -1 for a leaf."""
    return split - 1 if shape.last[split] - shape.middle[split] > 1 else -1
