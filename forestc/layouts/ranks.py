"""The layout `ranked`: trees as branches on ranks of one byte, for the features where that is smaller.

A split on a word or a float of 4 bytes holds a constant of as many; one on a rank holds one byte, and is the shorter by
what `LONGER` says. A feature is ranked where all its splits save more bytes than its cuts take, by one for each
instruction that it takes to rank it. The others are compared as they are, and so are sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forestc.forest.conditions import Below
from forestc.forest.ir import LEAF, Forest
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import Slots, slots_of

# bytes by which a split on a constant is longer than on a rank, by the constant below which that is so, of Thumb-2:
# movw, movt
LONGER = ((1 << 8, 0), (1 << 16, 4))
LONGEST = 8
MISSING = 4  # bytes of a further comparison with the word that means missing, without its constant
RANKING, STEP = 25, 6  # instructions that it takes to rank a feature, and for each halving of its cuts
RECORD = 3  # bytes of a ranked feature in tables, beside its cuts


@dataclass(frozen=True)
class Ranks:
    """A forest as branches on ranks. slots: of the features that are ranked. leaves: of all trees."""

    slots: Slots
    leaves: Leaves

    @property
    def splits(self) -> bool:
        """Whether there are any."""
        return bool(self.leaves.trees)


def ranks_of(forest: Forest, *, float_bytes: int = 0) -> Ranks:
    """The ranked features of a quantized forest whose trees are added. float_bytes: of raw floats; 0 for words. Time
    and memory O(nodes)."""
    return Ranks(
        slots_of(forest, ranked=True, float_bytes=float_bytes, only=_worthwhile(forest, float_bytes)), leaves_of(forest)
    )


def _worthwhile(forest: Forest, float_bytes: int) -> set[int]:
    """The features that are ranked."""
    slots = slots_of(forest, ranked=True, float_bytes=float_bytes)
    saved = dict.fromkeys((slot.feature for _, slot in slots.ranks), 0)
    uses = np.zeros(len(forest.conditions), dtype=np.int64)
    for tree, places in zip(forest.trees, forest.conditions.places, strict=True):
        np.add.at(uses, places[tree.left != LEAF], 1)
    for place in np.flatnonzero((slots.slot >= 0) & (uses > 0)).tolist():
        condition, slot = forest.conditions[place], slots.slots[slots.slot[place]]
        if slot.condition is not None or not isinstance(condition.test, Below):
            continue
        threshold = int(condition.test.threshold)
        longer = next((more for below, more in LONGER if 0 <= threshold < below), LONGEST)
        saved[slot.feature] += int(uses[place]) * (longer + (MISSING + longer) * slot.missing_low)
    return {
        slot.feature
        for _, slot in slots.ranks
        if saved[slot.feature] - slots.cut_bytes * len(slot.cuts) - RECORD
        > RANKING + STEP * len(slot.cuts).bit_length()
    }
