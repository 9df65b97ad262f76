"""Arguments of the compiled functions that prune and rewire splits: the original trees and their present state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats, Int32s, Ints
from forestc.algorithms.splits.leaf_fitting import Sorted
from forestc.system.compiled import compiled


class Shape(NamedTuple):
    """The original trees. slots: (trees + 1,) where each tree's leaves begin among all leaves. start: (trees + 1,)
    where their values begin. outputs: (trees, 2) the first output that a tree feeds, and one past the last.
    `pruning.Splits` describes the other fields."""

    tree: Ints
    first: Ints
    middle: Ints
    last: Ints
    size: Ints
    cost: Floats
    node: float
    sum: float
    slots: Ints
    start: Ints
    outputs: Ints


class State(NamedTuple):
    """The present trees. leaf: (trees, rows) the leaf of each row; of merged leaves, the first. value: of every leaf
    and output. group: for each leaf, the first leaf merged with it. alive, condition, flipped: whether each split still
    exists, its condition, and whether its sides are swapped. uses: number of splits that use each condition."""

    leaf: Int32s
    value: Ints
    group: Ints
    alive: Bits
    condition: Ints
    flipped: Bits
    uses: Ints


class Outcomes(NamedTuple):
    """The outcome of each condition on each row: True if the row's code in the condition's column is below its cut.
    Thresholds on one feature share a column. code: (rows, columns). column, cut: of each condition. begins: (columns +
    1,) where each column's codes begin if those of all columns are concatenated. pool: any split may choose among the
    first `pool` conditions."""

    code: NDArray[Any]
    column: Ints
    cut: Ints
    begins: Ints
    pool: int


@compiled()
def left_of(shape: Shape, split: int) -> Any:
    """Returns the left child of a split; -1 if it is a leaf."""
    if shape.middle[split] - shape.first[split] == 1:
        return -1
    return split - 1 - (shape.size[split - 1] if shape.last[split] - shape.middle[split] > 1 else 0)


@compiled()
def right_of(shape: Shape, split: int) -> Any:
    """Returns the right child of a split; -1 if it is a leaf."""
    return split - 1 if shape.last[split] - shape.middle[split] > 1 else -1


@compiled()
def tree_of(shape: Shape, split: int) -> Any:
    """Returns the tree of a split, where the tree's leaf values begin, and the first and the number of its outputs."""
    tree = shape.tree[split]
    output = shape.outputs[tree, 0]
    return tree, shape.start[tree], output, shape.outputs[tree, 1] - output


@compiled()
def rows_of(rows: Sorted, tree: int, slot: int) -> Any:
    """Returns the rows that reach leaf number `slot` of a tree."""
    return rows.order[tree, rows.begins[tree, slot] : rows.begins[tree, slot + 1]]


@compiled()
def mean_leaf(shape: Shape, state: State, rows: Sorted, split: int) -> Any:
    """Returns the mean leaf value of a subtree over its rows, rounded, for each output of the tree."""
    tree, base, _, width = tree_of(shape, split)
    total, count, mean = np.zeros(width), 0, np.empty(width, np.int64)
    for slot in range(shape.first[split], shape.last[split]):
        reached = len(rows_of(rows, tree, slot))
        for k in range(width):
            total[k] += reached * state.value[base + slot * width + k]
        count += reached
    for k in range(width):
        mean[k] = int(np.floor(total[k] / max(count, 1) + 0.5))
    return mean


@compiled()
def saved_by(shape: Shape, state: State, split: int) -> Any:
    """Returns the cost saved if a subtree becomes a leaf: its splits, with their shares of comparators, and, for a
    whole tree, its operand in the sums."""
    tree, _, _, width = tree_of(shape, split)
    saved = 0.0
    for inner in range(split - shape.size[split] + 1, split + 1):
        if state.alive[inner]:
            condition = state.condition[inner]
            saved += shape.node * width + shape.cost[condition] / state.uses[condition]
    if shape.last[split] - shape.first[split] == shape.slots[tree + 1] - shape.slots[tree]:
        saved += shape.sum * width
    return saved


@compiled()
def merge(shape: Shape, state: State, split: int, value: Ints) -> Any:
    """Makes a subtree one leaf, in place: its leaves are one group and hold `value`, and its splits are gone. Returns
    how many were removed. The caller updates the rows' scores."""
    tree, base, _, width = tree_of(shape, split)
    first, leaf = shape.slots[tree], shape.first[split]
    for slot in range(leaf, shape.last[split]):
        state.group[first + slot] = leaf
        for k in range(width):
            state.value[base + slot * width + k] = value[k]
    removed = 0
    for inner in range(split - shape.size[split] + 1, split + 1):
        if state.alive[inner]:
            state.alive[inner] = False
            state.uses[state.condition[inner]] -= 1
            removed += 1
    return removed
