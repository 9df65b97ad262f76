"""Represents a quantized forest over cells: intervals of a feature between neighboring thresholds.

Categories and missing values have cells, too. Words in the same cell take the same path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.separation.oracle import Box, CellArray, TreeBoxes
from forestc.errors import ModelError
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import Category, word_range

# Maps each node that became a leaf to the leaf's values, (outputs of the tree,).
Merged: TypeAlias = Mapping[int, NDArray[np.int64]]
MOST_BOXES = 1 << 20  # boxes of a tree at most; conditions on sets may need many


@dataclass(frozen=True, eq=False)
class FeatureCells:
    """The cells of each feature: classes of words (an interval, a set of codes, or missing) that no condition tells
    apart."""

    word: tuple[NDArray[np.int64], ...]  # for each feature one word of each cell
    # Holds for each feature the first word of each interval, and the interval's cell.
    lowest: tuple[tuple[NDArray[np.int64], NDArray[np.int32]], ...]
    missing: tuple[int | None, ...]  # for each feature the word for "missing", or None
    left: tuple[NDArray[np.bool_], ...]  # for each condition (cells of its feature,) True for cells sent left

    @cached_property
    def box(self) -> Box:
        """The box that contains all cells: two arrays (features,), the lower bounds and the exclusive upper bounds."""
        size = np.array([len(word) for word in self.word], dtype=np.int32)
        return np.zeros(len(size), dtype=np.int32), size

    def of_words(self, words: NDArray[np.int64]) -> CellArray:
        """Returns for each word the number of its cell (interval between thresholds): (rows, features), as `words`."""
        cells = np.empty(words.shape, dtype=np.int32)
        for feature, (begins, cell) in enumerate(self.lowest):
            column = words[:, feature]
            at = np.searchsorted(begins, column, side="right") - 1
            cells[:, feature] = cell[np.clip(at, 0, len(cell) - 1)]
            if (absent := self.missing[feature]) is not None:
                cells[column == absent, feature] = len(self.word[feature]) - 1
        return cells

    def words_of(self, cells: CellArray) -> NDArray[np.int64]:
        columns = [word[cells[:, feature]] for feature, word in enumerate(self.word)]
        return np.stack(columns, axis=1) if columns else np.zeros(cells.shape, dtype=np.int64)


def cells_of(forest: Forest) -> FeatureCells:
    left: dict[int, NDArray[np.bool_]] = {}
    word, lowest, missing = [], [], []
    for index, feature in enumerate(forest.features):
        absent = word_range(feature.number, feature.missing).missing
        begins, cell, conditions = _begins(forest, index)
        chosen = begins[np.unique(cell, return_index=True)[1]]
        for condition_index in conditions:
            condition = forest.conditions[condition_index]
            holds = condition.test.holds(chosen)
            left[condition_index] = np.append(holds, condition.missing_left) if absent is not None else holds
        word.append(chosen if absent is None else np.append(chosen, absent))
        lowest.append((begins, cell))
        missing.append(absent)
    return FeatureCells(
        tuple(word), tuple(lowest), tuple(missing), tuple(left[condition_index] for condition_index in range(len(left)))
    )


def _begins(forest: Forest, index: int) -> tuple[NDArray[np.int64], NDArray[np.int32], list[int]]:
    """Returns three results for a feature: the first word of each interval, the interval's cell, and the indices of the
    feature's conditions."""
    conditions = forest.conditions.of(index).tolist()
    number = forest.features[index].number
    if isinstance(number, Category):
        codes = np.arange(number.count + 1, dtype=np.int64)
        sides = np.array(
            [forest.conditions.test(condition_index).holds(codes) for condition_index in conditions], dtype=bool
        )
        if not len(sides):
            return codes[:1], np.zeros(1, dtype=np.int32), conditions
        _, first, cell = np.unique(sides, axis=1, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        return codes, rank[np.ravel(cell)].astype(np.int32), conditions
    cuts, words = forest.conditions.thresholds(index), word_range(number, forest.features[index].missing)
    begins = np.unique(np.append(cuts[(cuts > words.low) & (cuts <= words.high)], words.low)).astype(np.int64)
    return begins, np.arange(len(begins), dtype=np.int32), conditions


@dataclass(frozen=True, eq=False)
class Drawn:
    """A tree as boxes. A box is a range of cells (intervals between thresholds) of each feature."""

    boxes: TreeBoxes
    regions: Mapping[int, list[Box]]  # for each reachable node the boxes of inputs that reach it


def drawn(forest: Forest, cells: FeatureCells, index: int, merged: Merged) -> Drawn:
    """Returns a tree as boxes of cells. Raises ModelError if there are more than MOST_BOXES. merged: nodes that have
    become leaves."""
    tree, conditions = forest.trees[index], forest.conditions.node_conditions[index]
    regions: dict[int, list[Box]] = {}
    lows, highs, values = [], [], []
    stack: list[tuple[int, CellArray, CellArray]] = [(0, *cells.box)]
    while stack:
        node, low, high = stack.pop()
        regions.setdefault(node, []).append((low, high))
        if not children(tree, merged, node):
            lows.append(low)
            highs.append(high)
            values.append(leaf_value(tree, merged, node))
            if len(lows) > MOST_BOXES:
                raise ModelError("conditions on sets make too many boxes", where=f"tree {index}")
            continue
        feature, left = int(tree.feature[node]), cells.left[conditions[node]]
        start, stop = int(low[feature]), int(high[feature])
        ends = [start, *(start + 1 + np.flatnonzero(np.diff(left[start:stop]))).tolist(), stop]
        for begin, end in reversed(list(pairwise(ends))):
            own_low, own_high = low, high
            if len(ends) > 2:
                own_low, own_high = low.copy(), high.copy()
                own_low[feature], own_high[feature] = begin, end
            stack.append((int(tree.left[node] if left[begin] else tree.right[node]), own_low, own_high))
    value = np.zeros((len(lows), forest.n_outputs), dtype=np.int64)
    value[:, list(tree.outputs)] = values
    return Drawn(TreeBoxes(np.array(lows), np.array(highs), value), regions)


def leaf_value(tree: Tree, merged: Merged, node: int) -> NDArray[np.int64]:
    """Returns the values (outputs of the tree,) of a leaf. merged: nodes that have become leaves."""
    return merged[node] if node in merged else np.asarray(tree.values[tree.leaf[node]])


def children(tree: Tree, merged: Merged, node: int) -> tuple[int, ...]:
    """Returns the two children of a node; an empty tuple for a leaf. merged: nodes that have become leaves."""
    if node in merged or tree.left[node] == LEAF:
        return ()
    return int(tree.left[node]), int(tree.right[node])
