"""Reads from the rows how far each threshold may move, and the range of values of each feature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.thresholds.node_bounds import BoundsUpdate, Columns, FlatTrees, NodeBounds
from forestc.forest.conditions import NO_SET
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import FLOAT32, Category
from forestc.rows.batches import Batch, Rows, reduce_rows


@dataclass
class Freedom:
    """Bounds between which the thresholds of one feature may move without changing any row's path."""

    thresholds: NDArray[np.float64]
    low: NDArray[np.float64]  # each threshold must stay above this bound
    high: NDArray[np.float64]  # each threshold must stay at or below this bound
    smallest: float = math.inf  # smallest value in the rows
    largest: float = -math.inf  # largest value in the rows
    whole: bool = True  # True if all values are whole numbers
    missing: bool = False  # True if values are missing or the forest always accepts missing ones


@dataclass
class ObservedColumn:
    """The values of one feature in the rows. A cut is the end of an interval in a set condition."""

    low: NDArray[np.float64]  # (cuts,) the largest value below each cut
    high: NDArray[np.float64]  # (cuts,) the smallest value not below each cut
    smallest: float = math.inf
    largest: float = -math.inf
    whole: bool = True  # True if all values are whole numbers
    missing: bool = False  # True if a value is missing

    def merge(self, other: ObservedColumn) -> None:
        np.maximum(self.low, other.low, out=self.low)
        np.minimum(self.high, other.high, out=self.high)
        self.smallest, self.largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        self.whole &= other.whole
        self.missing |= other.missing


@dataclass(frozen=True)
class Observation:
    nodes: BoundsUpdate
    columns: list[ObservedColumn]


@dataclass(frozen=True)
class Observe:
    """A reduction over rows that finds how far thresholds may move."""

    forest: Forest
    trees: FlatTrees
    drawn: NDArray[np.uint8] | None  # (trees, rows) how often each tree was trained on each row
    cuts: tuple[NDArray[np.float64], ...]  # for each feature the interval ends of set conditions, ascending
    plain: tuple[NDArray[np.int64], ...]  # for each feature the nodes that compare it with a threshold

    @staticmethod
    def of(forest: Forest, drawn: NDArray[np.uint8] | None = None) -> Observe:
        cuts = tuple(_cuts_of(forest, index) for index in range(len(forest.features)))
        trees = flat_trees(forest)
        return Observe(forest, trees, drawn, cuts, plain_nodes(forest, trees))

    def start(self) -> Observation:
        columns = [ObservedColumn(np.full(len(cuts), -np.inf), np.full(len(cuts), np.inf)) for cuts in self.cuts]
        return Observation(BoundsUpdate(self.trees), columns)

    def update(self, state: Observation, batch: Batch, first: int) -> None:
        x = columns_of(self.forest, batch)
        drawn = None if self.drawn is None else self.drawn[:, first : first + len(batch.X)]
        state.nodes.update(x, drawn)
        for index, column in enumerate(state.columns):
            present = x[index]
            smallest, largest = float(present.min()), float(present.max())
            if math.isnan(smallest):
                present = present[~np.isnan(present)]
                column.missing = True
                if not len(present):
                    continue
                smallest, largest = float(present.min()), float(present.max())
            column.smallest, column.largest = min(column.smallest, smallest), max(column.largest, largest)
            if column.whole:
                # Most columns that contain fractions have one among the first 64 values.
                column.whole = all(
                    bool((np.isfinite(some) & (some == np.floor(some))).all()) for some in (present[:64], present)
                )
            cuts = self.cuts[index]
            if len(cuts):  # A cut moves between the values of all rows, also of rows elsewhere.
                ends = np.concatenate([[-np.inf], np.sort(present.astype(np.float64)), [np.inf]])
                position = np.searchsorted(ends, cuts, side="left")
                np.maximum(column.low, ends[np.maximum(position - 1, 0)], out=column.low)
                np.minimum(column.high, ends[position], out=column.high)

    def merge(self, state: Observation, other: Observation) -> None:
        state.nodes.merge(other.nodes)
        for mine, theirs in zip(state.columns, other.columns, strict=True):
            mine.merge(theirs)


def columns_of(forest: Forest, batch: Batch) -> Columns:
    """Returns a batch's encoded rows as (features, rows): float32 if all features are float32, otherwise float64."""
    narrow = all(feature.number == FLOAT32 for feature in forest.features)
    columns = encode_numbers(forest, batch.X).T
    return np.ascontiguousarray(columns, np.float32) if narrow else np.ascontiguousarray(columns, np.float64)


def observe(forest: Forest, rows: Rows | None) -> list[Freedom]:
    """Returns a list of each feature's `Freedom`: how far its thresholds may move. Without rows they must stay."""
    if rows is None:
        return [Freedom(t, t.copy(), t.copy()) for t in map(forest.conditions.thresholds, range(len(forest.features)))]
    task = Observe.of(forest)
    seen = reduce_rows(rows, task)
    bounds = seen.nodes.bounds
    return [freedom(task, seen, index, task.trees.threshold, bounds) for index in range(len(forest.features))]


def freedom(
    task: Observe, seen: Observation, index: int, thresholds: NDArray[np.float64], bounds: NodeBounds
) -> Freedom:
    column, here, cuts = seen.columns[index], task.plain[index], task.cuts[index]
    distinct, inverse = np.unique(np.concatenate([thresholds[here], cuts]), return_inverse=True)
    low, high = np.full(len(distinct), -np.inf), np.full(len(distinct), np.inf)
    np.maximum.at(low, inverse, np.concatenate([bounds.low[here], column.low]))
    np.minimum.at(high, inverse, np.concatenate([bounds.high[here], column.high]))
    absent = column.missing or (task.forest.always_missing and task.forest.features[index].missing)
    return Freedom(distinct, low, high, column.smallest, column.largest, column.whole, absent)


def plain_nodes(forest: Forest, trees: FlatTrees) -> tuple[NDArray[np.int64], ...]:
    """Returns a tuple with an array for each feature: the nodes that compare it with a threshold, ascending, counted
    over all trees."""
    nodes = np.flatnonzero((trees.left != LEAF) & (trees.set_start == NO_SET))
    if any(isinstance(feature.number, Category) for feature in forest.features):
        ordered = np.array([not isinstance(feature.number, Category) for feature in forest.features])
        nodes = nodes[ordered[trees.feature[nodes]]]
    feature = trees.feature[nodes]
    order = np.argsort(feature.astype(np.uint16 if len(forest.features) < 1 << 16 else np.int32), kind="stable")
    return tuple(np.split(nodes[order], np.cumsum(np.bincount(feature, minlength=len(forest.features))))[:-1])


def finite_nodes(task: Observe, index: int) -> NDArray[np.int64]:
    here = task.plain[index]
    return here[np.isfinite(task.trees.threshold[here])]


def _cuts_of(forest: Forest, index: int) -> NDArray[np.float64]:
    table = forest.conditions
    if isinstance(forest.features[index].number, Category):
        return np.zeros(0)
    used = set(table.set_number[table.of(index)].tolist()) - {NO_SET}
    return np.unique([float(cut) for chosen in used for cut in table.sets[chosen]])


def flat_trees(forest: Forest) -> FlatTrees:
    """Returns all trees of a float forest as flat arrays, for compiled loops over rows."""
    sizes = [tree.size for tree in forest.trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    offset = np.repeat(roots, sizes)
    members: list[float] = []
    spans = []
    for tree in forest.trees:
        ends = len(members) + np.cumsum([0, *map(len, tree.sets)])
        members += [float(member) for chosen in tree.sets for member in chosen]
        chosen = tree.set_index
        spans.append(np.where(chosen == NO_SET, NO_SET, [ends[chosen], ends[np.minimum(chosen + 1, len(tree.sets))]]))
    set_start, set_end = np.concatenate(spans, axis=1).astype(np.int64)

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(tree, name) for tree in forest.trees])

    left, right = joined("left"), joined("right")
    ordered = np.array([not isinstance(f.number, Category) for f in forest.features] + [False])
    return FlatTrees(
        roots=roots,
        feature=joined("feature"),
        threshold=joined("threshold"),
        left=np.where(left == LEAF, LEAF, left + offset),
        right=np.where(right == LEAF, LEAF, right + offset),
        missing_left=joined("missing_left"),
        set_start=set_start,
        set_end=set_end,
        members=np.array(members, dtype=np.float64),
        cuts=(set_start != NO_SET) & ordered[joined("feature")],
        deepest=forest.depth,
    )
