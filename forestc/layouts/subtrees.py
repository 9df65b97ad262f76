"""Finds equal subtrees of a forest, so that a layout can store them once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import LEAF, Forest, Tree
from forestc.layouts.leaves import Leaves
from forestc.layouts.slots import ALWAYS, NEVER, Slots


@dataclass(frozen=True)
class Subtrees:
    """The distinct subtrees of a forest, without splits on conditions that always or never hold."""

    rows: list[tuple[int, int, int]]  # (condition, left, right); sides are earlier subtrees, or ~n for leaf n
    roots: list[int]  # each tree's subtree, or ~n for leaf number n

    @property
    def uses(self) -> NDArray[np.int64]:
        """Array (subtrees,): how often each subtree is a side of a distinct subtree, plus 1 if it is a whole tree."""
        sides = [side for _, *both in self.rows for side in both] + list(dict.fromkeys(self.roots))
        return np.bincount([side for side in sides if side >= 0], minlength=len(self.rows))

    def shared(self, head: int, jump: int, start: int) -> list[int]:
        """Returns the subtrees that take less memory if stored once and reached by jumps, most used first.
        head, jump, start: memory of a split, of a jump, and of the jump's entry in a table of targets."""
        size = [0] * len(self.rows)
        for subtree, (_, left, right) in enumerate(self.rows):
            size[subtree] = head + sum(1 if side < 0 else size[side] for side in (left, right))
        copies = [0] * len(self.rows)
        for root in dict.fromkeys(self.roots):
            if root >= 0:
                copies[root] += 1
        chosen: dict[int, int] = {}
        for subtree in range(len(self.rows) - 1, -1, -1):  # subtrees that contain it come first
            count = copies[subtree]
            if (count - 1) * size[subtree] > count * jump + start:
                chosen[subtree] = count
                count = 1
            for side in self.rows[subtree][1:]:
                if side >= 0:
                    copies[side] += count
        return sorted(chosen, key=lambda subtree: (-chosen[subtree], subtree))


def subtrees_of(forest: Forest, slots: Slots, leaves: Leaves) -> Subtrees:
    """Returns the distinct subtrees of all trees with splits, in time O(nodes)."""
    indices: dict[tuple[int, int, int], int] = {}
    slot = slots.slot.tolist()
    roots = [
        _root(
            forest.trees[index],
            forest.conditions.node_conditions[index].tolist(),
            leaves.number[index].tolist(),
            slot,
            indices,
        )
        for index in leaves.trees
    ]
    return Subtrees(list(indices), roots)


def _root(
    tree: Tree, conditions: list[int], number: list[int], slot: list[int], indices: dict[tuple[int, int, int], int]
) -> int:
    """Adds a tree's subtrees to `indices`. Returns the index of the whole tree, or ~n if it is only leaf n."""
    left, right = tree.left.tolist(), tree.right.tolist()
    subtree = [0] * tree.size
    for level in reversed(tree.levels):
        for node in level.tolist():
            if left[node] == LEAF:
                subtree[node] = ~number[node]
            elif (compared := slot[conditions[node]]) in (ALWAYS, NEVER):
                subtree[node] = subtree[left[node] if compared == ALWAYS else right[node]]
            else:
                subtree[node] = indices.setdefault(
                    (conditions[node], subtree[left[node]], subtree[right[node]]), len(indices)
                )
    return subtree[0]
