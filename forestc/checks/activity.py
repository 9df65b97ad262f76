"""Counts how often comparators hold, leaves are reached and labels are decided on rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.checks.coverage import Coverage
from forestc.errors import RowsError, opt
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Forest
from forestc.forest.numbers import FloatArray
from forestc.passes.quick_evaluation import concatenated_trees, evaluate_quickly
from forestc.rows.batches import Rows


@dataclass(frozen=True)
class ForestActivity:
    """Shares of `count` rows."""

    conditions: FloatArray  # (conditions,) share of rows that go left
    toggles: FloatArray  # (conditions,) share of rows whose result is not that of the row before
    leaves: tuple[FloatArray, ...]  # for each tree (nodes,) shares of leaves; 0 at inner nodes
    labels: FloatArray  # (classes,) shares of labels; empty for a regression or several targets
    label_errors: FloatArray  # standard errors of `labels`
    count: int  # number of rows

    def comparisons(self, forest: Forest) -> FloatArray:
        """Returns for each tree the expected number of comparisons of a row: (trees,)."""
        depths = []
        for tree, shares in zip(forest.trees, self.leaves, strict=True):
            depth = np.zeros(tree.size)
            for level, nodes in enumerate(tree.levels):
                depth[nodes] = level
            depths.append(float(depth @ shares))
        return np.array(depths)


def activity_on(forest: Forest, rows: Rows) -> ForestActivity:
    """Returns the activity of a quantized forest counted on raw rows; toggles follow the order of the rows. Raises
    RowsError if there are no rows."""
    coverage, walked, table = Coverage.of(forest), concatenated_trees(forest), tuple(forest.conditions)
    ones, changes = np.zeros(len(table), dtype=np.int64), np.zeros(len(table), dtype=np.int64)
    chosen, count = np.zeros(len(forest.classes), dtype=np.int64), 0
    last: NDArray[np.bool_] | None = None  # (distinct conditions,): whether the last row of the batch before went left
    for batch in rows.batches():
        if not len(batch.X):
            continue
        words, absent = encode_numbers(forest, batch.X), np.isnan(batch.X)
        evaluation = evaluate_quickly(forest, words, walked)
        coverage.add(evaluation.leaves)
        if forest.classes and evaluation.index.ndim == 1:
            chosen += np.bincount(evaluation.index, minlength=len(chosen))
        ends = np.zeros(len(table), dtype=bool)
        for number, condition in enumerate(table):
            f = condition.feature
            left = condition.sends_left(words[:, f], absent[:, forest.row_columns[f]])
            ones[number] += left.sum()
            changes[number] += (left[1:] != left[:-1]).sum() + (
                last is not None and bool(last[number]) != bool(left[0])
            )
            ends[number] = left[-1]
        last, count = ends, count + len(batch.X)
    if not count:
        raise RowsError("there are no rows", where=opt.rows, do="give at least one row")
    labels = chosen / count if chosen.any() else np.zeros(0)
    return ForestActivity(
        conditions=ones / count,
        toggles=changes / max(1, count - 1),
        leaves=tuple(visits / count for visits in coverage.leaf_visits),
        labels=labels,
        label_errors=np.sqrt(labels * (1 - labels) / count),
        count=count,
    )
