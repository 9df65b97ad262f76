"""Arguments of the compiled functions that prune and rewire splits: the original trees and their present state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats, Int32s, Ints
from forestc.algorithms.splits.leaf_fitting import Sorted
from forestc.system.compiled import compiled


class Shape(NamedTuple):
    """The original trees; `pruning.Splits` describes the first fields."""

    tree: Ints
    first: Ints
    middle: Ints
    last: Ints
    size: Ints
    cost: Floats
    node: float
    sum: float
    slots: Ints  # (trees + 1,) start of each tree's leaves
    start: Ints  # (trees + 1,) start of each tree's leaf values
    outputs: Ints  # (trees, 2) first output that a tree feeds; last plus one


class State(NamedTuple):
    """The trees after the pruning and rewiring so far."""

    leaf: Int32s  # (trees, rows) leaf of each row
    value: Ints  # value of every leaf and output
    group: Ints  # for each leaf, first leaf merged with it
    alive: Bits  # True if the split still exists
    condition: Ints  # index of each split's condition
    flipped: Bits  # True if the split's sides are swapped
    uses: Ints  # number of remaining splits that use each condition


class Outcomes(NamedTuple):
    """Rows and conditions as codes: a condition is True if the row's code is below its cut."""

    code: NDArray[Any]  # (rows, columns)
    column: Ints  # column of each condition
    cut: Ints  # cut of each condition
    begins: Ints  # (columns + 1,) start of each column's codes when concatenated
    pool: int  # number of conditions (the first ones) free to any split


@compiled()
def left_of(shape: Shape, split: int) -> Any:
    """Returns the index of a split's left child; -1 if the child is a leaf."""
    if shape.middle[split] - shape.first[split] == 1:
        return -1
    return split - 1 - (shape.size[split - 1] if shape.last[split] - shape.middle[split] > 1 else 0)


@compiled()
def right_of(shape: Shape, split: int) -> Any:
    """Returns the index of a split's right child; -1 if the child is a leaf."""
    return split - 1 if shape.last[split] - shape.middle[split] > 1 else -1


@compiled()
def tree_of(shape: Shape, split: int) -> Any:
    """Returns the index of a split's tree, the start of the tree's leaf values, its first output, and its number of
    outputs."""
    tree = shape.tree[split]
    output = shape.outputs[tree, 0]
    return tree, shape.start[tree], output, shape.outputs[tree, 1] - output


@compiled()
def rows_of(rows: Sorted, tree: int, slot: int) -> Any:
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
    """Returns the cost saved if a subtree becomes a leaf: splits, shares of comparators and, for a whole tree, an adder
    input."""
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
    """Merges the leaves of a subtree into one with values `value`, in place, without updating scores. Returns the
    number of splits removed."""
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
