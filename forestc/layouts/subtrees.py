"""The distinct subtrees of a forest: equal ones once, so that a layout can store them once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import LEAF, Forest, Tree
from forestc.layouts.leaves import Leaves
from forestc.layouts.slots import ALWAYS, NEVER, Slots


@dataclass(frozen=True)
class Subtrees:
    """rows: of each subtree its condition, left and right side; sides come before what they are part of, and a leaf of
    number n is the side ~n. roots: of the trees. Splits whose condition always or never holds are left out."""

    rows: list[tuple[int, int, int]]
    roots: list[int]

    @property
    def uses(self) -> NDArray[np.int64]:
        """(subtrees,) How often each is a side of a distinct subtree, or a distinct tree."""
        sides = [side for _, *both in self.rows for side in both] + list(dict.fromkeys(self.roots))
        return np.bincount([side for side in sides if side >= 0], minlength=len(self.rows))

    def shared(self, head: int, jump: int, start: int) -> list[int]:
        """Subtrees that are smaller stored once, the most used first. head, jump, start: units of a split, of a jump,
        and of a jump's place in a table."""
        size = [0] * len(self.rows)
        for subtree, (_, left, right) in enumerate(self.rows):
            size[subtree] = head + sum(1 if side < 0 else size[side] for side in (left, right))
        copies = [0] * len(self.rows)
        for root in dict.fromkeys(self.roots):
            if root >= 0:
                copies[root] += 1
        chosen: dict[int, int] = {}
        for subtree in range(len(self.rows) - 1, -1, -1):  # what it is part of comes first
            count = copies[subtree]
            if (count - 1) * size[subtree] > count * jump + start:
                chosen[subtree] = count
                count = 1
            for side in self.rows[subtree][1:]:
                if side >= 0:
                    copies[side] += count
        return sorted(chosen, key=lambda subtree: (-chosen[subtree], subtree))


def subtrees_of(forest: Forest, slots: Slots, leaves: Leaves) -> Subtrees:
    """The distinct subtrees of the trees of `leaves`. Time O(nodes)."""
    known: dict[tuple[int, int, int], int] = {}
    slot = slots.slot.tolist()
    roots = [
        _root(forest.trees[index], forest.conditions.places[index].tolist(), leaves.number[index].tolist(), slot, known)
        for index in leaves.trees
    ]
    return Subtrees(list(known), roots)


def _root(
    tree: Tree, places: list[int], number: list[int], slot: list[int], known: dict[tuple[int, int, int], int]
) -> int:
    """The subtree that is the tree. known: subtrees so far, with their places; new ones are added."""
    left, right = tree.left.tolist(), tree.right.tolist()
    subtree = [0] * tree.size
    for level in reversed(tree.levels):
        for node in level.tolist():
            if left[node] == LEAF:
                subtree[node] = ~number[node]
            elif (compared := slot[places[node]]) in (ALWAYS, NEVER):
                subtree[node] = subtree[left[node] if compared == ALWAYS else right[node]]
            else:
                subtree[node] = known.setdefault((places[node], subtree[left[node]], subtree[right[node]]), len(known))
    return subtree[0]
