"""Reads the trees of YDF's models from their nodes in preorder: a condition, its negative branch, its positive one.

The negative branch of a threshold, and the positive branch of a set of categories, become the Forest's left branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

Leaf: TypeAlias = Callable[[Message, int], Sequence[float]]  # returns the numbers of a leaf at a depth


@dataclass
class Nodes:
    """A tree. `arrays` holds lists under the names of arguments of `make_tree`."""

    arrays: dict[str, Any] = field(
        default_factory=lambda: {name: [] for name in ("feature", "threshold", "missing_left", "set_index", "sets")}
    )
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    leaves: list[Sequence[float]] = field(default_factory=list)  # numbers of each leaf, in order
    imputes: bool = True  # True if all missing values take the branch of the column's mean or most frequent value
    detects: bool = False  # True if a condition asks whether a value is missing

    def add(self, column: int, threshold: float, missing_left: bool, codes: tuple[int, ...] | None = None) -> None:
        arrays, sets = self.arrays, self.arrays["sets"]
        arrays["set_index"].append(NO_SET if codes is None else len(sets))
        sets += [] if codes is None else [codes]
        for name, value in (("feature", column), ("threshold", threshold), ("missing_left", missing_left)):
            arrays[name].append(value)

    def tree(self, values: NDArray[Any], outputs: Sequence[int], where: str) -> Tree:
        """Returns the Tree. values: (leaves, outputs)."""
        ids, is_leaf = np.arange(len(self.left)), np.array(self.left) == LEAF
        ids[is_leaf] = np.arange(len(self.leaves))  # YDF numbers the leaves alone.
        arrays = self.arrays | {"left": self.left, "right": self.right, "ids": ids}
        return make_tree(where=where, values=values, outputs=outputs, **arrays)


def read_tree(nodes: Iterator[Message], inputs: Mapping[int, tuple[int, Column]], leaf: Leaf, where: str) -> Nodes:
    """Reads the next tree. inputs: maps an index of the data's columns to the place in the rows, and the column."""
    tree = Nodes()
    waiting: list[tuple[list[int], int, int]] = [([], 0, 0)]  # of nodes to come: list of children, parent, depth
    while waiting:
        side, parent, depth = waiting.pop()
        node = next(nodes, None)
        if node is None:
            raise ModelError("ends within a tree", where=where, do=CUT)
        if depth > MAX_DEPTH:
            raise node.fail(f"is deeper than {MAX_DEPTH} conditions", "train with a max_depth")
        here = len(tree.left)
        if here:
            side[parent] = here
        tree.left.append(LEAF)
        tree.right.append(LEAF)
        if not node.has(3):
            tree.add(LEAF, 0.0, False)
            tree.leaves.append(leaf(node, depth))
            continue
        condition = node.message(3)
        index = condition.integer(2)
        if index not in inputs:
            raise node.fail(f"a condition reads column {index}, which is no input of the model")
        place, column = inputs[index]
        branch = column.branch(condition)
        tree.imputes &= branch.imputes
        tree.detects |= branch.detects
        if branch.codes is None:
            tree.add(place, branch.threshold, not branch.missing_positive)
            negative, positive = tree.left, tree.right
        else:
            tree.add(place, 0.0, branch.missing_positive, branch.codes)
            negative, positive = tree.right, tree.left
        waiting += [(positive, here, depth + 1), (negative, here, depth + 1)]
    return tree
