"""budget and tolerance: removes thresholds, over all features, where this changes least."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.thresholds.interval_stabbing import take
from forestc.algorithms.thresholds.node_bounds import Columns, NodeBounds, reached
from forestc.algorithms.thresholds.point_removal import NodeValues, Removal, cheapest, removal, settled
from forestc.errors import OptionError
from forestc.forest.conditions import NO_SET
from forestc.forest.evaluate import add_tree, judged, start_scores
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import FloatArray
from forestc.passes.judge import Judge, Loss
from forestc.passes.observation import Observe, columns_of, finite_nodes
from forestc.rows.accuracy import answers_of
from forestc.rows.batches import Batch, Rows, reduce_rows

MOST_VALUES = 1 << 25  # values of all nodes kept in memory; beyond it, the cost of a change is measured on fewer rows
MOST_JUDGED = 1 << 20  # most rows that a candidate is judged on
STEP = 0.85  # ratio of successive numbers of comparators that are tried
GIVE_UP = 5  # successive candidates beyond the tolerance after which the search ends

Placed: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray, int], FloatArray]


@dataclass(frozen=True)
class _Sample:
    """A reduction that keeps every `stride`-th row."""

    forest: Forest
    stride: int

    def start(self) -> list[Any]:
        return []

    def update(self, state: list[Any], batch: Batch, first: int) -> None:
        chosen = np.arange(-first % self.stride, len(batch.X), self.stride)
        state.append((first, first + chosen, columns_of(self.forest, Batch(batch.X[chosen]))))

    def merge(self, state: list[Any], other: list[Any]) -> None:
        state += other


@dataclass(frozen=True)
class Search:
    """Which thresholds to keep, for every number of them.

    features: (index, plain nodes) of each feature with plain nodes. judged: the judge's rows as columns.
    """

    task: Observe
    bounds: NodeBounds
    values: NodeValues
    removal: Removal
    features: list[tuple[int, NDArray[np.int64]]]
    placed: Placed
    judge: Judge
    judged: list[Columns]

    @staticmethod
    def of(task: Observe, bounds: NodeBounds, fit: Rows, judge: Judge, placed: Placed) -> Search:
        """placed: a function from the intervals of a feature to thresholds, such as `place`."""
        forest, trees = task.forest, task.trees
        nodes = [finite_nodes(task, index) for index in range(len(forest.features))]
        features = [(index, here) for index, here in enumerate(nodes) if len(here)]
        points: list[NDArray[np.float64]] = []
        owner, node_point = [], []
        for index, here in features:
            low, high = bounds.low[here], bounds.high[here]
            distinct = placed(low, high, trees.threshold[here], index)
            node_point.append(take(low, high, distinct).point + sum(len(before) for before in points))
            points.append(distinct)
            owner.append(np.full(len(distinct), index))
        visits = int(bounds.count[trees.left != LEAF].sum())
        sample = reduce_rows(fit, _Sample(forest, max(1, -(-visits // MOST_VALUES))))
        sample.sort(key=lambda part: part[0])
        columns = np.ascontiguousarray(np.concatenate([part[2] for part in sample], axis=1))
        drawn = None if task.drawn is None else task.drawn[:, np.concatenate([part[1] for part in sample])]
        values = NodeValues.of(columns, trees, side_difference(forest, bounds.count), drawn)
        removed = removal(
            np.concatenate(points) if points else np.zeros(0),
            np.concatenate(owner) if owner else np.zeros(0, dtype=np.int64),
            np.concatenate([here for _, here in features]) if features else np.zeros(0, dtype=np.int64),
            np.concatenate(node_point) if node_point else np.zeros(0, dtype=np.int64),
            values,
        )
        judge = judge.first(MOST_JUDGED)
        judged_rows = [columns_of(forest, batch) for batch in judge.held_out.batches()]
        return Search(task, bounds, values, removed, features, placed, judge, judged_rows)

    def within(self, budget: int) -> NDArray[np.float64] | None:
        """Thresholds (nodes,) with at most `budget` comparators; None if none needs to be removed. Raises OptionError
        if there are more features (and sets of categories or intervals) than that."""
        # conditions that stay: sets, and infinite thresholds
        table = self.task.forest.conditions
        compared = table.comparators
        fixed = int(((table.set_number[compared] != NO_SET) | np.isinf(table.threshold[compared])).sum())
        least = len(self.removal.points) - len(self.removal.order) + fixed
        if budget < least:
            raise OptionError(
                f"share-thresholds: budget={budget}", do=f"use {least} or more: one for each feature and set of values"
            )
        count = budget - fixed
        return self.thresholds(count) if count < len(self.removal.points) else None

    def fewest(self, tolerance: float) -> NDArray[np.float64] | None:
        """Thresholds (nodes,) with the fewest comparators found within a tolerance on the judge's rows; None if even
        all of them lose more. Accuracy does not fall evenly, so the search goes on for some candidates beyond it."""

        def too_few(count: int) -> bool:
            return not self.loss(count).within(tolerance)

        good = count = len(self.removal.points)
        least = good - len(self.removal.order)
        if too_few(good):
            return None
        missed: list[int] = []  # counts tried since the last that is good
        while count > least and len(missed) < GIVE_UP:
            count = max(least, min(count - 1, int(count * STEP)))
            if too_few(count):
                missed.append(count)
            else:
                good, missed = count, []
        between = range(good - 1, missed[0] if missed else least - 1, -1)
        return self.thresholds(good - bisect_left(between, True, key=too_few))

    def loss(self, count: int) -> Loss:
        """The loss with `count` thresholds."""
        changed = self.thresholds(count)
        forest = self.task.forest
        return self.judge.of_answers([_answers(forest, columns, self.task, changed) for columns in self.judged])

    def thresholds(self, count: int) -> NDArray[np.float64]:
        """Thresholds (nodes,) if `count` points are kept."""
        trees, bounds = self.task.trees, self.bounds
        result = trees.threshold.copy()
        kept = self.removal.kept(count)
        for index, here in self.features:
            points = self.removal.points[kept[self.removal.feature[kept] == index]]
            low, high, present = bounds.low[here], bounds.high[here], trees.threshold[here]
            points = settled(points, here, trees, bounds, self.values)
            inside = ~take(low, high, points).missed
            # fewer intervals leave more freedom: fewer digits, and sometimes fewer points
            points = self.placed(low[inside], high[inside], present[inside], index)
            result[here] = points[cheapest(points, here, trees, bounds, self.values)]
        return result


def _answers(forest: Forest, columns: Columns, task: Observe, thresholds: NDArray[np.float64]) -> NDArray[Any]:
    """The forest's answers with other thresholds, as by the evaluator, with compiled tree walks."""
    trees = replace(task.trees, threshold=thresholds)
    leaves = reached(columns, trees)
    total = start_scores(forest, columns.shape[1])
    for tree, root, nodes in zip(forest.trees, trees.roots.tolist(), leaves, strict=True):
        add_tree(forest, total, tree, nodes - root)
    return answers_of(forest, judged(forest, np.zeros((columns.shape[1], 0), dtype=np.int32), total))


def side_difference(forest: Forest, count: NDArray[np.int64]) -> NDArray[np.float64]:
    """(nodes,) the difference between the mean values of a node's two sides, summed over the outputs: the cost of a row
    that changes sides. count: (nodes,) rows that reached each node."""
    result = []
    start = 0
    for tree in forest.trees:
        rows = count[start : start + tree.size].astype(np.float64) + 1e-9  # without rows, all leaves weigh the same
        start += tree.size
        mean = np.zeros((tree.size, len(tree.outputs)))
        leaves = np.flatnonzero(tree.left == LEAF)
        mean[leaves] = tree.values[tree.leaf[leaves]]
        apart = np.zeros(tree.size)
        for level in tree.levels[::-1]:
            inner = level[tree.left[level] != LEAF]
            left, right = tree.left[inner], tree.right[inner]
            mean[inner] = (mean[left] * rows[left, None] + mean[right] * rows[right, None]) / (
                rows[left] + rows[right]
            )[:, None]
            apart[inner] = np.abs(mean[left] - mean[right]).sum(axis=1)
        result.append(apart)
    return np.concatenate(result)
