"""Turns the choice of trees of a quantized forest into a selection problem, and a selection into a forest.

| the forest                | a selection is scored by            | chosen along with the trees            |
|---------------------------|-------------------------------------|----------------------------------------|
| decides on two classes    | the score, or the two's difference  | the threshold of this number           |
| decides on more classes   | the scores                          | what the dropped trees add on average  |
| a regression              | the score                           | scale and offset, by least squares     |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Ints
from forestc.algorithms.members.least_squares import Squares
from forestc.algorithms.members.vote_patterns import Classes, Objective, Patterns
from forestc.algorithms.walk import leaves_reached
from forestc.forest.builder import changed, changed_tree
from forestc.forest.ir import Forest, Tree
from forestc.passes.fit_leaves.fit_leaves import zero_of
from forestc.passes.mixed_rows import RowsToFit
from forestc.passes.quick_evaluation import concatenated_trees

MOST_SUM = 1 << 12  # limits the sums among which a threshold is searched


def leaf_rows(forest: Forest, words: NDArray[Any]) -> NDArray[np.int32]:
    """Returns an array (trees, samples): the row of `Tree.values` that each sample reaches in each tree."""
    nodes = leaves_reached(concatenated_trees(forest), words)
    columns = [tree.leaf[nodes[:, index]] for index, tree in enumerate(forest.trees)]
    return np.ascontiguousarray(np.stack(columns), dtype=np.int32)


@dataclass(frozen=True)
class Selectable:
    """A problem of selecting some trees of a forest."""

    forest: Forest
    task: Objective  # the selection problem, without the forest
    leaf: NDArray[np.int32]  # (trees, samples) reached leaf, as an index of `Tree.values`
    sample: RowsToFit

    def rebuilt(self, times: Ints) -> Forest:
        """Returns the forest of the selected trees. times: (trees,) factors of the trees' leaves; 0 drops a tree."""
        before, total = self.forest, int(times.sum())
        trees = tuple(
            tree if count == 1 else changed_tree(tree, values=tree.values * count)
            for tree, count in zip(before.trees, times.tolist(), strict=True)
            if count
        )
        bias, scale, aggregate = before.bias.astype(np.float64), before.scale, before.aggregate
        if isinstance(self.task, Squares):
            return self._regression(times, trees)
        assert scale is not None
        if aggregate.divisor != 1.0:  # The mean is now taken over fewer trees.
            share = total / len(before.trees)
            aggregate, scale, bias = replace(aggregate, divisor=aggregate.divisor * share), scale / share, bias * share
        else:
            bias = bias + (1 - times) @ _means(self.forest, self.leaf)
        after = replace(before, trees=trees, aggregate=aggregate, scale=scale, bias=np.rint(bias).astype(np.int64))
        if isinstance(self.task, Patterns):
            after.bias[-1] += _threshold(after) - self._best_threshold(times, _threshold(after))
        return changed(after, bias=after.bias)

    def _best_threshold(self, times: Ints, natural: int) -> int:
        """Returns the threshold with the best decisions on the samples; among equally good ones, the nearest to
        `natural`."""
        assert isinstance(self.task, Patterns)
        sums = times @ differences(self.forest, self.leaf)
        values, inverse = np.unique(sums, return_inverse=True)
        gained = np.bincount(inverse.ravel(), self.task.gain, minlength=len(values))
        # above[k] is the gain if values from the k-th on decide for class 1.
        above = np.concatenate([np.cumsum(gained[::-1])[::-1], [0.0]])
        first = np.concatenate([[min(int(values[0]) - 1, natural)], values])
        last = np.concatenate([values - 1, [max(int(values[-1]), natural)]])
        best = np.flatnonzero(above >= above.max() - 1e-9 * float(np.abs(self.task.gain).sum()))
        nearest = np.clip(natural, first[best], last[best])
        chosen = int(np.argmin(np.abs(nearest - natural)))
        if nearest[chosen] == natural:
            return natural
        return int(first[best][chosen] + last[best][chosen]) // 2

    def _regression(self, times: Ints, trees: tuple[Tree, ...]) -> Forest:
        values = differences(self.forest, self.leaf)
        sums = times @ values
        scale = Squares.of(values.astype(np.float64), self.sample.label.ravel().astype(np.float64)).scale(times)
        scale = scale if scale > 0 else float(self.forest.scale or 1.0)
        offset = float(self.sample.label.mean()) - scale * float(sums.mean())
        share = max(1, int(times.sum())) / len(self.forest.trees)
        divisor = self.forest.aggregate.divisor
        aggregate = replace(self.forest.aggregate, divisor=divisor * share if divisor != 1.0 else 1.0)
        bias = np.array([round(offset / scale)], dtype=np.int64)
        return changed(self.forest, trees=trees, aggregate=aggregate, scale=scale, bias=bias)


def _means(forest: Forest, leaf: NDArray[np.int32]) -> NDArray[np.float64]:
    """Returns an array (trees, outputs): the mean of each tree's values over the samples."""
    means = np.zeros((len(leaf), forest.n_outputs))
    for index, tree in enumerate(forest.trees):
        means[index, list(tree.outputs)] = tree.values[leaf[index]].mean(axis=0)
    return means


def _threshold(forest: Forest) -> int:
    """Returns the largest sum of the trees' `differences` with which the forest decides for the first class."""
    bias, decision = forest.bias, forest.decision
    if decision.kind == "threshold":
        return zero_of(decision) - int(bias[0]) - 1
    return int(bias[0] - bias[1]) - (decision.ties == "last")


def differences(forest: Forest, leaf: NDArray[np.int32]) -> NDArray[np.int64]:
    """Returns an array (trees, samples): what each tree adds to the only score, or to the second class's score minus
    the first's."""
    result = np.zeros(leaf.shape, dtype=np.int64)
    for index, tree in enumerate(forest.trees):
        sign = np.array([1 if output == forest.n_outputs - 1 else -1 for output in tree.outputs])
        result[index] = (tree.values @ sign)[leaf[index]]
    return result


def two_classes(forest: Forest) -> bool:
    """Returns True if a single score, or the difference of two scores, decides."""
    return forest.decides and (forest.decision.kind == "threshold" or forest.n_outputs == 2)


def selectable(
    forest: Forest,
    sample: RowsToFit,
    weight: NDArray[np.float64],
    trained: NDArray[np.bool_] | None = None,
    most_times: int = 1,
) -> Selectable:
    """Returns the problem of selecting some of the forest's trees.
    weight: (samples,) gain of a right decision; negative if the first of two classes is right.
    trained: (trees, samples) True if the sample trained the tree."""
    leaf = leaf_rows(forest, sample.words)
    task: Objective
    seen = np.zeros((1, 1), dtype=bool) if trained is None else trained
    if two_classes(forest):
        task = Patterns(_searched(np.where(seen, _neutral(forest), differences(forest, leaf))), weight, most_times)
    elif forest.decides:
        # Samples on which a tree was trained get an additional leaf without effect.
        tables = [np.concatenate([tree.values, np.zeros_like(tree.values[:1])]) for tree in forest.trees]
        last_leaf = np.array([[len(table) - 1] for table in tables])
        sizes = [table.size for table in tables]
        score = np.concatenate([table.ravel() for table in tables]).astype(np.float64)
        fed = np.array([(tree.outputs[0], tree.outputs[-1] + 1) for tree in forest.trees], dtype=np.int64)
        start, last = forest.bias.astype(np.float64), forest.decision.ties == "last"
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if forest.aggregate.divisor == 1.0:  # the mean value of a dropped tree stays
            means = _means(forest, leaf)
            score = score - np.concatenate(
                [np.tile(means[k, list(tree.outputs)], len(tables[k])) for k, tree in enumerate(forest.trees)]
            )
            start = start + means.sum(axis=0)
        reached = np.where(seen, last_leaf, leaf).astype(np.int32)
        task = Classes(reached, begin, score, fed, start, sample.label.astype(np.int64), weight, last)
    else:
        values = differences(forest, leaf).astype(np.float64)
        values = np.where(seen, values.mean(axis=1, keepdims=True), values)
        task = Squares.of(values, sample.label.ravel().astype(np.float64))
    return Selectable(forest, task, leaf, sample)


def _neutral(forest: Forest) -> NDArray[np.int64]:
    """Returns an array (trees, 1): each tree's equal part of the decision's threshold."""
    return np.full((len(forest.trees), 1), round((_threshold(forest) + 0.5) / len(forest.trees)))


def _searched(values: NDArray[np.int64]) -> NDArray[np.int32]:
    """Returns the differences (trees, samples) minus each tree's smallest. They are scaled down if a sum may exceed
    MOST_SUM."""
    votes = values - values.min(axis=1, keepdims=True)
    total = int(votes.max(axis=1).sum())
    if total > MOST_SUM:
        votes = np.rint(votes * (MOST_SUM / total)).astype(np.int64)
    return np.ascontiguousarray(votes, dtype=np.int32)
