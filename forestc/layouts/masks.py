"""The layout `masks`: for each tree, a bit mask of the leaves that a row can still reach.

Lucchese et al., "QuickScorer", 2015. A failing condition clears the bits of the leaves on its left side; the lowest
remaining bit is the row's leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, opt
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import ALWAYS, NEVER, Slots, slots_of, width_of

# Maps the width of a mask to (multiplier, shift) of `hashed`; the multiplier is a De Bruijn sequence.
HASHES = {4: (0x3, 2), 8: (0x17, 5), 16: (0x09AF, 12), 32: (0x077CB531, 27)}
MOST_LEAVES = max(HASHES)


@dataclass(frozen=True)
class Masks:
    """The tables of a forest in the layout `masks`. An entry is a distinct condition in one tree."""

    slots: Slots
    leaves: Leaves
    width: int  # bits of a mask, 4, 8, 16 or 32
    thresholds: NDArray[np.int64]  # (conditions,), by slot, ascending
    ends: NDArray[np.int64]  # (slots,), index after the slot's last condition
    firsts: NDArray[np.int64]  # (slots,), index of the slot's first entry
    trees: NDArray[np.int64]  # (entries,), index into `leaves.trees`
    kept: NDArray[np.int64]  # (entries,), leaves that remain if the condition fails
    last: NDArray[np.bool_]  # (entries,), True for a condition's last entry
    reached: NDArray[np.int64]  # (trees, width), leaf number of each bit, at index `hashed`

    @property
    def splits(self) -> bool:
        return len(self.trees) > 0

    @property
    def mask_bytes(self) -> int:
        """Number of bytes of a mask."""
        return max(8, self.width) // 8

    @property
    def bytes(self) -> int:
        """Number of bytes of all tables."""
        tables = (self.thresholds, self.ends, self.firsts, self.reached.ravel())
        entry = 1 + (len(self.reached) > 128) + self.mask_bytes
        values = self.leaves.bytes + self.slots.rank_bytes
        return sum(len(table) * width_of(table) for table in tables) + len(self.trees) * entry + values


def hashed(bit: int, width: int) -> int:
    """Returns a perfect hash of `bit`, a mask with one bit set: each bit gets a different number below `width`."""
    multiplier, shift = HASHES[width]
    return (bit * multiplier & ((1 << width) - 1)) >> shift


def masks_of(forest: Forest, *, float_bytes: int = 0) -> Masks:
    """Returns the mask tables of a quantized forest that sums its trees.
    float_bytes: bytes of a raw float input; 0 for integer words.

    Raises OptionError if a tree has more than 32 reachable leaves.
    """
    slots, leaves = slots_of(forest, ranked=float_bytes > 0, float_bytes=float_bytes), leaves_of(forest)
    read = [
        _read(forest.trees[index], forest.conditions.node_conditions[index].tolist(), slots) for index in leaves.trees
    ]
    most = max((len(nodes) for nodes, _ in read), default=0)
    width = next((width for width in HASHES if most <= width), None)
    if width is None:
        index = next(index for index, (nodes, _) in zip(leaves.trees, read, strict=True) if len(nodes) == most)
        where, do = f"tree {index}", f"use {opt.c_layout:nodes} or branches, or train trees of fewer leaves"
        raise OptionError(f"{opt.c_layout:masks} is for trees of up to 32 leaves, not {most}", where=where, do=do)
    reached = np.zeros((len(read), width), dtype=np.int64)
    entries: dict[tuple[int, int], dict[int, int]] = {}
    for position, (nodes, cleared) in enumerate(read):
        number = leaves.number[leaves.trees[position]]
        for bit, leaf in enumerate(nodes):
            reached[position, hashed(1 << bit, width)] = number[leaf]
        for condition, bits in cleared:
            remaining = entries.setdefault((int(slots.slot[condition]), int(slots.threshold[condition])), {})
            remaining[position] = remaining.get(position, (1 << width) - 1) & ~bits
    order = sorted(entries)
    flat = [
        (tree, remaining, k == len(entries[key]) - 1)
        for key in order
        for k, (tree, remaining) in enumerate(sorted(entries[key].items()))
    ]
    counts = np.bincount([slot for slot, _ in order], minlength=len(slots.slots))
    sizes = np.bincount([slot for slot, _ in order], [len(entries[key]) for key in order], len(slots.slots))
    columns = np.array(flat, dtype=np.int64).reshape(-1, 3)
    return Masks(
        slots,
        leaves,
        width,
        np.array([threshold for _, threshold in order], dtype=np.int64),
        np.cumsum(counts),
        (np.cumsum(sizes) - sizes).astype(np.int64),
        columns[:, 0],
        columns[:, 1],
        columns[:, 2] == 1,
        reached,
    )


def _read(tree: Tree, conditions: list[int], slots: Slots) -> tuple[list[int], list[tuple[int, int]]]:
    """Returns the reachable leaf nodes, left to right, and pairs (condition, mask of the leaves on its left side)."""
    left, right, leaves = tree.left.tolist(), tree.right.tolist(), list[int]()
    cleared: list[tuple[int, int]] = []
    stack = [(0, -1)]  # (node, -1), or after its left side (node, leaves before that side)
    while stack:
        node, began = stack.pop()
        if began >= 0:
            if len(leaves) <= MOST_LEAVES:  # a larger tree is refused, and its bits would take much memory
                cleared.append((conditions[node], (1 << len(leaves)) - (1 << began)))
        elif left[node] == LEAF:
            leaves.append(node)
        elif (slot := int(slots.slot[conditions[node]])) in (ALWAYS, NEVER):
            stack.append((left[node] if slot == ALWAYS else right[node], -1))
        else:
            stack += [(right[node], -1), (node, len(leaves)), (left[node], -1)]
    return leaves, cleared
