"""Reads the trees of YDF's models from their nodes in preorder: a condition, its negative branch, its positive one.

The negative branch of a threshold, and the positive branch of a set of categories, become the Forest's left branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CUT, ModelError
from forestc.forest.builder import MAX_DEPTH, make_tree
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Tree
from forestc.frontends.ydf.columns import Column
from forestc.frontends.ydf.wire import Message

Leaf: TypeAlias = Callable[[Message, int], Sequence[float]]
"""Returns the numbers of a leaf at a depth."""


@dataclass
class Nodes:
    """The nodes of a tree as lists, in preorder."""

    feature: list[int] = field(default_factory=list)  # column of the rows; LEAF at a leaf
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    set_index: list[int] = field(default_factory=list)
    sets: list[tuple[int, ...]] = field(default_factory=list)
    leaves: list[Sequence[float]] = field(default_factory=list)  # numbers of each leaf, in order
    imputes: bool = True  # True if all missing values take the branch of the column's mean or most frequent value
    detects: bool = False  # True if a condition asks whether a value is missing

    def tree(self, values: NDArray[Any], outputs: Sequence[int], where: str) -> Tree:
        """Returns the Tree. values: (leaves, outputs)."""
        ids, is_leaf = np.arange(len(self.left)), np.array(self.left) == LEAF
        ids[is_leaf] = np.arange(len(self.leaves))  # YDF numbers the leaves alone.
        return make_tree(
            where=where,
            feature=self.feature,
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            values=values,
            outputs=outputs,
            missing_left=self.missing_left,
            set_index=self.set_index,
            sets=self.sets,
            ids=ids,
        )


@dataclass(frozen=True)
class TreeReader:
    """Reads trees. columns: the data's columns. positions: column -> its place in the rows."""

    columns: Sequence[Column]
    positions: dict[int, int]
    leaf: Leaf

    def read(self, nodes: Iterator[Message], where: str) -> Nodes:
        """Reads the next tree."""
        tree = Nodes()
        waiting: list[tuple[list[int], int, int]] = [([], 0, 0)]  # children's list, parent and depth of nodes to come
        while waiting:
            side, parent, depth = waiting.pop()
            node = next(nodes, None)
            if node is None:
                raise ModelError("ends within a tree", where=where, do=CUT)
            here = len(tree.left)
            if here:
                side[parent] = here
            tree.left.append(LEAF)
            tree.right.append(LEAF)
            if not node.has(3):
                self._add(tree, LEAF, 0.0, False)
                tree.leaves.append(self.leaf(node, depth))
                continue
            if depth == MAX_DEPTH:
                raise node.fail(f"is deeper than {MAX_DEPTH} conditions", "train with a max_depth")
            negative, positive = self._condition(tree, node)
            waiting += [(positive, here, depth + 1), (negative, here, depth + 1)]
        return tree

    def _condition(self, tree: Nodes, node: Message) -> tuple[list[int], list[int]]:
        """Adds a condition. Returns the lists of the children on its negative and positive side."""
        condition = node.message(3)
        index = condition.integer(2)
        if index not in self.positions:
            raise node.fail(f"a condition reads column {index}, which is no input of the model")
        branch = self.columns[index].branch(condition)
        tree.imputes &= branch.imputes
        tree.detects |= branch.detects
        if branch.codes is None:
            self._add(tree, self.positions[index], branch.threshold, not branch.missing_positive)
            return tree.left, tree.right
        self._add(tree, self.positions[index], 0.0, branch.missing_positive, branch.codes)
        return tree.right, tree.left

    def _add(
        self, tree: Nodes, feature: int, threshold: float, missing_left: bool, codes: tuple[int, ...] | None = None
    ) -> None:
        tree.feature.append(feature)
        tree.threshold.append(threshold)
        tree.missing_left.append(missing_left)
        tree.set_index.append(NO_SET if codes is None else len(tree.sets))
        if codes is not None:
            tree.sets.append(codes)
