"""Holds the nodes of a tree as parallel arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int32]

LEAF = -1  # stands for the children and the feature of a leaf


@dataclass(frozen=True)
class Draw:
    """The rows that a tree was trained on: `count` of `rows`, drawn with replacement by NumPy's RandomState(seed)."""

    seed: int
    count: int
    rows: int

    def indices(self) -> NDArray[np.int64]:
        """Returns the numbers of the drawn rows, with repetitions: (count,)."""
        return np.random.RandomState(self.seed).randint(0, self.rows, self.count)


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree, with its nodes as parallel arrays of length n; node 0 is the root.

    feature: index into Forest.features; -1 at a leaf.
    threshold: float64, or int64 once quantized; 0 at a leaf and at a node with a set.
    set_index: index of the node's set in `sets`; NO_SET at a node with a threshold.
    sets: the sets of the nodes, each ascending. For a category, a set holds the codes that go left (`count` stands for
    all unseen codes). For any other number it holds cuts c0 < c1 < ...: x goes left if an odd number of them is <= x,
    so if x is in [c0, c1) or [c2, c3) ... The test `x == t` is the set (t, next above t). An odd number of cuts leaves
    the last interval open.
    left, right: child nodes; -1 at a leaf.
    missing_left: whether a missing value goes left.
    leaf: row of `values`; -1 at an inner node.
    values: (leaves, len(outputs)) float64, or int64 once quantized; column j goes to output outputs[j].
    cover: training weight that reached each node, or None.
    ids: the source library's number of each node.
    drawn: the rows that the tree was trained on; None if the source does not record them.
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
        """The number of nodes, leaves included."""
        return len(self.feature)

    @cached_property
    def levels(self) -> tuple[NDArray[np.int64], ...]:
        """The nodes by their distance from the root: levels[0] is the root alone."""
        levels = []
        level = np.zeros(1, dtype=np.int64)
        while len(level):
            levels.append(level)
            inner = level[self.left[level] != LEAF]
            level = np.concatenate([self.left[inner], self.right[inner]]).astype(np.int64)
        return tuple(levels)

    @property
    def depth(self) -> int:
        """The number of conditions on the longest path from root to leaf; 0 for a single leaf."""
        return len(self.levels) - 1

    @property
    def inner(self) -> NDArray[np.int64]:
        """The indices of the nodes that hold a condition."""
        return np.flatnonzero(self.left != LEAF)

    def leaves_numbered(self, ids: IntArray) -> NDArray[np.int64]:
        """Returns the leaves (node indices) whose source numbers are `ids`. The source may give a leaf and an inner
        node the same number."""
        nodes = np.flatnonzero(self.left == LEAF)
        order = nodes[np.argsort(self.ids[nodes], kind="stable")]
        return np.asarray(order[np.searchsorted(self.ids[order], ids)])
