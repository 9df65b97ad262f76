"""The layout `masks`: the leaves that a row can still reach, as bits, of all trees at once (QuickScorer).

Lucchese et al., "QuickScorer: a fast algorithm to rank documents with additive ensembles of regression trees", 2015.
Each tree has a mask with a bit for each of its leaves, from left to right. A condition that does not hold clears the
bits of the leaves to the left of its nodes; the lowest bit left is the leaf that the row reaches. Conditions are
sorted by slot and threshold: those of a slot that do not hold come first, and no condition is evaluated twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import ALWAYS, NEVER, Slots, slots_of

# (mask * multiplier mod 2 ** width) >> shift is another number for each mask of one bit (de Bruijn sequences)
HASHES = {4: (0x3, 2), 8: (0x17, 5), 16: (0x09AF, 12), 32: (0x077CB531, 27)}
MOST_LEAVES = max(HASHES)


@dataclass(frozen=True)
class Masks:
    """A forest as tables.

    slots: what the conditions compare. leaves: what the leaves' numbers stand for. width: bits of a mask, 4, 8, 16 or
    32. thresholds: of the conditions, by slot and ascending. ends: (slots,) where each slot's conditions end. firsts:
    (slots,) the first entry of each slot's conditions. trees, kept: of an entry the place of its tree among those of
    `leaves`, and the mask that stays. last: whether an entry is the last one of its condition. reached: (trees, width)
    the number of the leaf for each bit, in the order of `hashed`.
    """

    slots: Slots
    leaves: Leaves
    width: int
    thresholds: NDArray[np.int64]
    ends: NDArray[np.int64]
    firsts: NDArray[np.int64]
    trees: NDArray[np.int64]
    kept: NDArray[np.int64]
    last: NDArray[np.bool_]
    reached: NDArray[np.int64]

    @property
    def splits(self) -> bool:
        """Whether there are any."""
        return len(self.trees) > 0


def hashed(bit: int, width: int) -> int:
    """A number below the width, another one for each mask of one bit."""
    multiplier, shift = HASHES[width]
    return (bit * multiplier & ((1 << width) - 1)) >> shift


def masks_of(forest: Forest, *, float_bytes: int = 0) -> Masks:
    """The tables of a forest whose trees are added. float_bytes: of raw floats, which are compared by their ranks; 0
    for words, which are not.

    Raises OptionError for a tree of more than 32 leaves. Time and memory O(nodes * depth).
    """
    slots, leaves = slots_of(forest, ranked=float_bytes > 0, float_bytes=float_bytes), leaves_of(forest)
    read = [_read(forest.trees[index], forest.conditions.places[index].tolist(), slots) for index in leaves.trees]
    most = max((len(nodes) for nodes, _ in read), default=0)
    width = next((width for width in HASHES if most <= width), None)
    if width is None:
        index = next(index for index, (nodes, _) in zip(leaves.trees, read, strict=True) if len(nodes) == most)
        where, do = f"tree {index}", "use --c-layout nodes or branches, or train trees of fewer leaves"
        raise OptionError(f"--c-layout masks is for trees of up to 32 leaves, not {most}", where=where, do=do)
    reached = np.zeros((len(read), width), dtype=np.int64)
    entries: dict[tuple[int, int], dict[int, int]] = {}
    for place, (nodes, cleared) in enumerate(read):
        number = leaves.number[leaves.trees[place]]
        for bit, leaf in enumerate(nodes):
            reached[place, hashed(1 << bit, width)] = number[leaf]
        for condition, bits in cleared:
            kept = entries.setdefault((int(slots.slot[condition]), int(slots.threshold[condition])), {})
            kept[place] = kept.get(place, (1 << width) - 1) & ~bits
    order = sorted(entries)
    flat = [
        (tree, kept, k == len(entries[key]) - 1)
        for key in order
        for k, (tree, kept) in enumerate(sorted(entries[key].items()))
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


def _read(tree: Tree, places: list[int], slots: Slots) -> tuple[list[int], list[tuple[int, int]]]:
    """The nodes of a tree's leaves from left to right, and the bits that each condition clears if it does not hold.
    Sides that no row takes are left out."""
    left, right, leaves = tree.left.tolist(), tree.right.tolist(), list[int]()
    cleared: list[tuple[int, int]] = []
    stack = [(0, -1)]  # a node; or, after its left side, where that began
    while stack:
        node, began = stack.pop()
        if began >= 0:
            if len(leaves) <= MOST_LEAVES:  # else the tree is refused, and its bits would take much memory
                cleared.append((places[node], (1 << len(leaves)) - (1 << began)))
        elif left[node] == LEAF:
            leaves.append(node)
        elif (slot := int(slots.slot[places[node]])) in (ALWAYS, NEVER):
            stack.append((left[node] if slot == ALWAYS else right[node], -1))
        else:
            stack += [(right[node], -1), (node, len(leaves)), (left[node], -1)]
    return leaves, cleared
