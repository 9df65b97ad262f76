"""Repeats the random drawing of the bootstrap rows on which each tree of a forest was trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.thresholds.node_bounds import NodeBounds
from forestc.errors import OptionError, RowsError
from forestc.forest.ir import LEAF, Forest
from forestc.passes.observation import Observe
from forestc.rows.batches import Rows, RowSelection, count_rows, reduce_rows

MOST_TIMES = 255  # draws of one row by one tree at most; a byte holds them
TRAINING_ROWS = "give the training rows, all of them and in their order"


def drawn_rows(forest: Forest, rows: Rows) -> NDArray[np.uint8]:
    """Returns an array (trees, rows): how often each tree was trained on each row. Raises OptionError for a model
    without seeds, RowsError if the rows do not fit."""
    if isinstance(rows, RowSelection):
        return drawn_rows(forest, rows.rows)[:, rows.chosen(0, count_rows(rows.rows))]
    draws = [tree.drawn for tree in forest.trees]
    unknown = next((index for index, draw in enumerate(draws) if draw is None), None)
    if unknown is not None or not draws:
        raise OptionError(
            "rows=per-tree: the model does not record which rows a tree was trained on",
            where=f"tree {unknown or 0}",
            do="use it for scikit-learn's forests with bootstrap, trained without weights, or remove it",
        )
    count = count_rows(rows)
    result = np.zeros((len(draws), count), dtype=np.uint8)
    for index, draw in enumerate(draws):
        assert draw is not None
        if draw.rows != count or draw.count > MOST_TIMES * count:
            raise RowsError(
                f"rows=per-tree: {count} rows were given, the model was trained on {draw.rows}",
                where=f"tree {index}",
                do=TRAINING_ROWS,
            )
        times = np.bincount(draw.indices(), minlength=draw.rows)
        if times.max(initial=0) > MOST_TIMES:
            raise OptionError(
                f"tree {index} was trained {times.max()} times on a row",
                where=f"tree {index}",
                do="remove rows=per-tree",
            )
        result[index] = times
    _check(forest, reduce_rows(rows, Observe.of(forest, result)).nodes.bounds, result)
    return result


def _check(forest: Forest, seen: NodeBounds, drawn: NDArray[np.uint8]) -> None:
    """Raises RowsError if other numbers of rows reach the nodes of a tree than in training."""
    ends = np.cumsum([tree.size for tree in forest.trees]).tolist()
    for index, (tree, end) in enumerate(zip(forest.trees, ends, strict=True)):
        count = seen.count[end - tree.size : end]
        wrong = np.flatnonzero(count == 0)
        if tree.cover is not None and tree.cover[0] == drawn[index].sum():
            wrong = np.flatnonzero(count != tree.cover)
        if len(wrong):
            node = int(wrong[0])
            expected = "" if tree.cover is None else f", not {tree.cover[node]:g}"
            kind = "leaf" if tree.left[node] == LEAF else "node"
            raise RowsError(
                f"rows=per-tree: {count[node]} of the tree's own rows reach a {kind}{expected} as in training",
                where=f"tree {index}, node {tree.ids[node]}",
                do=TRAINING_ROWS,
            )
