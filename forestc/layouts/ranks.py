"""The layout `ranked`: trees as nested ifs. They compare a feature's rank among its thresholds instead of its word or
float if this saves bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forestc.forest.conditions import Below
from forestc.forest.ir import LEAF, Forest
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import Slots, slots_of

# Lists (limit, bytes): comparing with a constant below the limit takes this many more bytes in Thumb-2.
LONGER = ((1 << 8, 0), (1 << 16, 4))
LONGEST = 8
MISSING = 4  # bytes of another comparison, with the word for missing, without its constant
RANKING, STEP = 25, 6  # instructions to rank a feature, and for each halving of its cuts
RECORD = 3  # bytes of a ranked feature in tables, without its cuts


@dataclass(frozen=True)
class Ranks:
    """The slots and leaves of a forest in the layout `ranked`."""

    slots: Slots  # slots of ranked features only
    leaves: Leaves  # leaves of all trees

    @property
    def splits(self) -> bool:
        return bool(self.leaves.trees)


def ranks_of(forest: Forest, *, float_bytes: int = 0) -> Ranks:
    """Returns the slots and leaves of a quantized forest that sums its trees.
    float_bytes: bytes of a raw float input; 0 for integer words."""
    return Ranks(
        slots_of(forest, ranked=True, float_bytes=float_bytes, only=_worthwhile(forest, float_bytes)), leaves_of(forest)
    )


def _worthwhile(forest: Forest, float_bytes: int) -> set[int]:
    """Returns the indices of the features for which ranks save bytes."""
    slots = slots_of(forest, ranked=True, float_bytes=float_bytes)
    saved = dict.fromkeys((slot.feature for _, slot in slots.ranks), 0)
    uses = np.zeros(len(forest.conditions), dtype=np.int64)
    for tree, conditions in zip(forest.trees, forest.conditions.node_conditions, strict=True):
        np.add.at(uses, conditions[tree.left != LEAF], 1)
    for index in np.flatnonzero((slots.slot >= 0) & (uses > 0)).tolist():
        condition, slot = forest.conditions[index], slots.slots[slots.slot[index]]
        if slot.condition is not None or not isinstance(condition.test, Below):
            continue
        threshold = int(condition.test.threshold)
        longer = next((more for below, more in LONGER if 0 <= threshold < below), LONGEST)
        saved[slot.feature] += int(uses[index]) * (longer + (MISSING + longer) * slot.missing_low)
    return {
        slot.feature
        for _, slot in slots.ranks
        if saved[slot.feature] - slots.cut_bytes * len(slot.cuts) - RECORD
        > RANKING + STEP * len(slot.cuts).bit_length()
    }
