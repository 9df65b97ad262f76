"""The rows each tree of a bootstrapped forest was trained on, drawn again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.node_bounds import NodeBounds
from forestc.errors import OptionError, RowsError
from forestc.forest.ir import LEAF, Forest
from forestc.passes.share_thresholds.observation import Observe
from forestc.rows.batches import Rows, Some, count_rows, reduce_rows

MOST_TIMES = 255
TRAINING_ROWS = "give the training rows, all of them and in their order"


def drawn_rows(forest: Forest, rows: Rows) -> NDArray[np.uint8]:
    """(trees, rows) how often each tree was shown each row, from the seeds the source kept (see `Draw`).

    rows: those the model was trained on, or some of them as `Some` tells. One byte a row and tree. Raises OptionError
    where the model does not tell, RowsError for other rows than the training rows in their order.
    """
    if isinstance(rows, Some):
        return drawn_rows(forest, rows.rows)[:, rows.chosen(0, count_rows(rows.rows))]
    draws = [tree.drawn for tree in forest.trees]
    untold = next((index for index, draw in enumerate(draws) if draw is None), None)
    if untold is not None or not draws:
        raise OptionError(
            "rows=per-tree: the model does not tell which rows a tree was trained on",
            where=f"tree {untold or 0}",
            do="use it on scikit-learn's forests with bootstrap, trained without weights, or leave it out",
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
            raise OptionError(f"tree {index} was shown a row {times.max()} times", do="leave rows=per-tree out")
        result[index] = times
    _check(forest, reduce_rows(rows, Observe.of(forest, result)).nodes.bounds, result)
    return result


def _check(forest: Forest, seen: NodeBounds, drawn: NDArray[np.uint8]) -> None:
    """Raises RowsError unless as many of a tree's own rows reach each node as its cover says. Covers that are weights
    don't say; then both sides of every node must be reached, as in training."""
    ends = np.cumsum([tree.size for tree in forest.trees]).tolist()
    for index, (tree, end) in enumerate(zip(forest.trees, ends, strict=True)):
        count = seen.count[end - tree.size : end]
        wrong = np.flatnonzero(count == 0)
        if tree.cover is not None and tree.cover[0] == drawn[index].sum():
            wrong = np.flatnonzero(count != tree.cover)
        if len(wrong):
            node = int(wrong[0])
            told = "" if tree.cover is None else f", not {tree.cover[node]:g}"
            kind = "leaf" if tree.left[node] == LEAF else "node"
            raise RowsError(
                f"rows=per-tree: {count[node]} of the tree's own rows reach a {kind}{told} as in training",
                where=f"tree {index}, node {tree.ids[node]}",
                do=TRAINING_ROWS,
            )
