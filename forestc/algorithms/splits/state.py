"""The arguments of the kernels that prune and rewire splits: the original trees and their present state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled


class Shape(NamedTuple):
    """The trees as given. tree .. cost: see `pruning.Splits`. slots: (trees + 1,) where a tree's leaves begin
    among all leaves. start: (trees + 1,) where their values begin. outputs: (trees, 2) the first output a tree feeds
    and one past the last."""

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
    """The present trees. leaf: (trees, rows) the leaf of each row, of merged leaves the first. value: of every leaf and
    output. group: for each leaf the first of those it was merged with. alive, condition, flipped: whether each split
    still exists, its condition, and whether its sides are swapped. uses: how many splits use each condition."""

    leaf: NDArray[np.int32]
    value: NDArray[np.int64]
    group: NDArray[np.int64]
    alive: NDArray[np.bool_]
    condition: NDArray[np.int64]
    flipped: NDArray[np.bool_]
    uses: NDArray[np.int64]


class Outcomes(NamedTuple):
    """The outcome of each condition on each row: true where the row's code in the condition's column is below its cut.
    Thresholds on one feature share a column.

    code: (rows, columns). column, cut: of each condition. begins: (columns + 1,) where each column's codes begin if
    those of all columns are concatenated. pool: the first `pool` conditions may be chosen by any split.
    """

    code: NDArray[Any]
    column: NDArray[np.int64]
    cut: NDArray[np.int64]
    begins: NDArray[np.int64]
    pool: int


@compiled()
def left_of(shape: Any, split: int) -> Any:
    """The left child of a split, -1 if it is a leaf."""
    if shape.middle[split] - shape.first[split] == 1:
        return -1
    return split - 1 - (shape.size[split - 1] if shape.last[split] - shape.middle[split] > 1 else 0)


@compiled()
def right_of(shape: Any, split: int) -> Any:
    """The right child of a split, -1 if it is a leaf."""
    return split - 1 if shape.last[split] - shape.middle[split] > 1 else -1


@compiled()
def mean_leaf(shape: Any, state: Any, rows: Any, split: int) -> Any:
    """(outputs of the tree,) the mean of what the leaves of a subtree hold over its rows, rounded. rows: see
    `leaf_fitting.Sorted`."""
    tree = shape.tree[split]
    width = shape.outputs[tree, 1] - shape.outputs[tree, 0]
    total, count = np.zeros(width), 0
    for slot in range(shape.first[split], shape.last[split]):
        reached = rows.begins[tree, slot + 1] - rows.begins[tree, slot]
        at = shape.start[tree] + slot * width
        total += reached * state.value[at : at + width]
        count += reached
    return np.floor(total / max(count, 1) + 0.5).astype(np.int64)


@compiled()
def merge(shape: Any, state: Any, split: int) -> Any:
    """Makes a subtree one leaf, in place: its leaves are one group, and its splits are gone. Returns how many went. The
    values of the leaves, and the rows' scores, are the caller's."""
    first, leaf = shape.slots[shape.tree[split]], shape.first[split]
    state.group[first + leaf : first + shape.last[split]] = leaf
    removed = 0
    for inner in range(split - shape.size[split] + 1, split + 1):
        if state.alive[inner]:
            state.alive[inner] = False
            state.uses[state.condition[inner]] -= 1
            removed += 1
    return removed
