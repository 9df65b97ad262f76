"""Computes bounds for the option path_change (Nakamura and Sakurada 2022, problem 4): most rows keep their paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.thresholds.node_bounds import BoundsUpdate, NodeBounds, Tails
from forestc.forest.numbers import FLOAT32
from forestc.passes.observation import Observe, columns_of
from forestc.rows.batches import Batch, Rows, reduce_rows


@dataclass(frozen=True)
class _DigitCounts:
    """A reduction over rows that counts digits of bounds on thresholds, for a radix selection."""

    observe: Observe
    tails: Tails

    def start(self) -> list[NDArray[np.int64]]:
        return [np.zeros(1, dtype=np.int64)]

    def update(self, state: list[NDArray[np.int64]], batch: Batch, first: int) -> None:
        task = self.observe
        columns = columns_of(task.forest, batch)
        drawn = None if task.drawn is None else task.drawn[:, first : first + len(batch.X)]
        order = BoundsUpdate(task.trees).arrange(columns, drawn)
        state[0] = state[0] + self.tails.counts(columns, task.trees, order, drawn)

    def merge(self, state: list[NDArray[np.int64]], other: list[NDArray[np.int64]]) -> None:
        state[0] = state[0] + other[0]


def widened(rows: Rows, task: Observe, seen: NodeBounds, share: float) -> NodeBounds:
    """Returns bounds on each node's threshold. Within them, a moved threshold sends at most `share` of the node's rows
    to the other side."""
    narrow = all(feature.number == FLOAT32 for feature in task.forest.features)
    tails = Tails.of(np.floor(share * seen.count).astype(np.int64), 32 if narrow else 64)
    while not tails.done:
        tails.advance(reduce_rows(rows, _DigitCounts(task, tails))[0])
    low, high = tails.bounds()
    plain = (task.trees.left >= 0) & (task.trees.set_start < 0)
    return NodeBounds(np.where(plain, low, -np.inf), np.where(plain, high, np.inf), seen.count)
