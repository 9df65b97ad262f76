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
    """The rows that trained a tree: `count` indices below `rows`, drawn with replacement by NumPy's RandomState."""

    seed: int
    count: int
    rows: int

    def indices(self) -> NDArray[np.int64]:
        """Returns an array (count,) with the indices of the drawn rows; indices may repeat."""
        return np.random.RandomState(self.seed).randint(0, self.rows, self.count)


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree, with its nodes as parallel arrays (nodes,); node 0 is the root."""

    feature: IntArray  # index into `Forest.features`; -1 at a leaf
    threshold: NDArray[Any]  # float64, or int64 words; unused at nodes with a set
    set_index: IntArray  # index into `sets`; NO_SET at nodes with a threshold
    sets: tuple[tuple[int | float, ...], ...]  # codes that go left, or cuts (see `InSpans`)
    left: IntArray  # left child; -1 at a leaf
    right: IntArray  # right child; -1 at a leaf
    missing_left: NDArray[np.bool_]  # True if missing values go left
    leaf: IntArray  # row of `values` for each leaf; not used at inner nodes
    values: NDArray[Any]  # (leaves, outputs) float64, or int64 once quantized
    outputs: tuple[int, ...]  # output that each column of `values` feeds
    cover: NDArray[np.float64] | None  # weight of the training or counted rows at each node
    ids: IntArray  # the source library's number of each node
    drawn: Draw | None = None  # rows that the tree was trained on, if known

    def __repr__(self) -> str:
        return f"<Tree: {self.size:,} nodes, depth {self.depth}>"

    @property
    def size(self) -> int:
        return len(self.feature)

    @cached_property
    def levels(self) -> tuple[NDArray[np.int64], ...]:
        """Arrays of node indices by distance from the root: levels[0] holds the root alone."""
        levels = []
        level = np.zeros(1, dtype=np.int64)
        while len(level):
            levels.append(level)
            inner = level[self.left[level] != LEAF]
            level = np.concatenate([self.left[inner], self.right[inner]]).astype(np.int64)
        return tuple(levels)

    @property
    def depth(self) -> int:
        """The number of conditions on the longest path; 0 for a single leaf."""
        return len(self.levels) - 1

    @property
    def inner(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.left != LEAF)

    def leaves_numbered(self, ids: IntArray) -> NDArray[np.int64]:
        """Returns the node indices of leaves, given the source library's numbers `ids`; each leaf must exist. An inner
        node may have the same number."""
        nodes = np.flatnonzero(self.left == LEAF)
        order = nodes[np.argsort(self.ids[nodes], kind="stable")]
        return np.asarray(order[np.searchsorted(self.ids[order], ids)])
