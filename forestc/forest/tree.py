"""Trees: their nodes as parallel arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int32]

LEAF = -1  # in place of a leaf's children and feature


@dataclass(frozen=True)
class Draw:
    """The rows a tree was trained on: `count` of `rows`, drawn with replacement by NumPy's RandomState(seed)."""

    seed: int
    count: int
    rows: int

    def indices(self) -> NDArray[np.int64]:
        """(count,) The row numbers drawn, with repetitions."""
        return np.random.RandomState(self.seed).randint(0, self.rows, self.count)


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes as parallel arrays of length n; node 0 is the root.

    feature: index into Forest.features; -1 at a leaf.
    threshold: float64, or int64 once quantized; 0 at a leaf and at a node with a set.
    set_index: index of the node's set in `sets`; NO_SET at a node with a threshold.
    sets: ascending. On a category, the codes that go left (`count` stands for all unseen codes). On any other
    number, cuts c0 < c1 < ...: left if an odd number of them is <= x, that is x in [c0, c1) or [c2, c3) ...;
    so `x == t` is the set (t, next above t), and an odd number of cuts leaves the last interval open.
    left, right: child nodes; -1 at a leaf.
    missing_left: where a missing value goes.
    leaf: row of `values`; -1 at an inner node.
    values: (leaves, len(outputs)) float64, or int64 once quantized: added to `outputs`.
    cover: training weight that reached each node, or None.
    ids: the source library's number of each node.
    drawn: the rows the tree was trained on; None if the source does not record them.
    """

    feature: IntArray
    threshold: NDArray[Any]
    set_index: IntArray
    sets: tuple[tuple[int | float, ...], ...]
    left: IntArray
    right: IntArray
    missing_left: NDArray[np.bool_]
    leaf: IntArray
    values: NDArray[Any]
    outputs: tuple[int, ...]
    cover: NDArray[np.float64] | None
    ids: IntArray
    drawn: Draw | None = None

    def __repr__(self) -> str:
        return f"<Tree: {self.size:,} nodes, depth {self.depth}>"

    @property
    def size(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.feature)

    @cached_property
    def levels(self) -> tuple[NDArray[np.int64], ...]:
        """Nodes by distance from the root: levels[0] is the root alone."""
        levels = []
        level = np.zeros(1, dtype=np.int64)
        while len(level):
            levels.append(level)
            inner = level[self.left[level] != LEAF]
            level = np.concatenate([self.left[inner], self.right[inner]]).astype(np.int64)
        return tuple(levels)

    @property
    def depth(self) -> int:
        """Conditions on the longest path from root to leaf; 0 for a single leaf."""
        return len(self.levels) - 1

    @property
    def inner(self) -> NDArray[np.int64]:
        """Indices of the nodes that hold a condition."""
        return np.flatnonzero(self.left != LEAF)

    def leaves_numbered(self, ids: IntArray) -> NDArray[np.int64]:
        """The leaves with these numbers of the source, which may number leaves and inner nodes alike."""
        nodes = np.flatnonzero(self.left == LEAF)
        order = nodes[np.argsort(self.ids[nodes], kind="stable")]
        return np.asarray(order[np.searchsorted(self.ids[order], ids)])
