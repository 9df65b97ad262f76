"""Slots: the small integers that a table of nodes compares, made of a forest's features once for each row.

With one comparison `slot < threshold` for every node, a node needs no more than a slot, a threshold and a place:

| slot of           | its value                                        | thresholds           |
|-------------------|--------------------------------------------------|----------------------|
| a feature, plain  | its word                                         | those of its nodes   |
| a feature, ranked | how many of its nodes' thresholds are not above  | 1, 2, ...            |
| one condition     | 0 where the condition holds, else 1              | 1                    |

A missing value's word is the highest, as nodes that send it right need; a feature has a further slot, in which a
missing value is the lowest, for nodes that send it left.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.forest.conditions import Below
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_range

ALWAYS, NEVER = -1, -2  # places of conditions that hold on every row, and on none


@dataclass(frozen=True)
class Slot:
    """feature: index into Forest.features. missing_low: whether a missing value is the lowest here. condition: of one
    that has the slot for itself, such as a set, its place among the forest's, else None. cuts: of others the thresholds
    of its nodes, ascending."""

    feature: int
    missing_low: bool
    condition: int | None
    cuts: tuple[int, ...]


@dataclass(frozen=True)
class Slots:
    """slots: of a forest. slot: (conditions,) the slot of each, or ALWAYS or NEVER. threshold: (conditions,) it holds
    where the slot's value is below this. ranked: whether slots of features hold ranks. cut_bytes: of a cut, among which
    a rank is counted, in a table."""

    slots: tuple[Slot, ...]
    slot: NDArray[np.int64]
    threshold: NDArray[np.int64]
    ranked: bool
    cut_bytes: int

    @property
    def rank_bytes(self) -> int:
        """The size of the tables that ranks need: cuts, and of each slot its feature and where its cuts end."""
        return sum(2 + self.cut_bytes * len(slot.cuts) for slot in self.slots if slot.cuts) if self.ranked else 0

    @property
    def plain(self) -> bool:
        """Whether each slot is the word of a feature, as it is."""
        return not self.ranked and all(slot.condition is None and not slot.missing_low for slot in self.slots)


def slots_of(forest: Forest, *, ranked: bool, float_bytes: int = 0) -> Slots:
    """The slots of a quantized forest's conditions: of features in their order, then of single conditions. Plain slots
    are all features, whether they are compared or not. float_bytes: of the floats that are ranked; 0 for words."""
    many = len(forest.conditions)
    slot, threshold = np.full(many, NEVER, dtype=np.int64), np.zeros(many, dtype=np.int64)
    cuts: dict[tuple[int, bool, int], set[int]] = {}
    keys: list[tuple[int, bool, int] | None] = []
    used = set(np.concatenate([place[place >= 0] for place in forest.conditions.places]).tolist()) if many else set()
    for place in range(many):
        condition = forest.conditions[place]
        feature = forest.features[condition.feature]
        keys.append(None)
        if place not in used:
            continue
        missing_low = condition.missing_left and feature.missing
        span = word_range(feature.number, feature.missing)
        cut = min(int(condition.test.threshold), span.top + 1) if isinstance(condition.test, Below) else span.low
        if not isinstance(condition.test, Below) or (missing_low and cut <= span.low):
            keys[place] = (condition.feature, missing_low, place)  # by itself
            threshold[place] = 1
        elif cut > span.high and (missing_low or not feature.missing):
            slot[place] = ALWAYS
        elif cut > span.low:
            cut = min(cut, span.top)
            keys[place] = (condition.feature, missing_low, -1)
            cuts.setdefault((condition.feature, missing_low, -1), set()).add(cut)
            threshold[place] = cut
    wanted = {key for key in keys if key is not None}
    if not ranked and all(not low and place < 0 for _, low, place in wanted):  # slots are features then
        wanted |= {(index, False, -1) for index in range(len(forest.features))}
    order = sorted(wanted, key=lambda key: (key[2] >= 0, *key))  # conditions by themselves come last
    slots = tuple(
        Slot(feature, low, None if place < 0 else place, tuple(sorted(cuts.get((feature, low, place), ()))))
        for feature, low, place in order
    )
    number = {key: place for place, key in enumerate(order)}
    for place, key in enumerate(keys):
        if key is not None:
            slot[place] = number[key]
            if ranked and key[2] < 0:
                threshold[place] = bisect_left(slots[slot[place]].cuts, int(threshold[place])) + 1
    cut_bytes = float_bytes or width_of(np.array([cut for entry in slots for cut in entry.cuts], dtype=np.int64))
    return Slots(slots, slot, threshold, ranked, cut_bytes)


def byte_width(largest: int) -> int:
    """Bytes of an unsigned integer that holds 0 .. largest: 1, 2, 4 or 8."""
    return next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))


def width_of(values: NDArray[np.int64]) -> int:
    """Bytes of an integer, signed where one of the values is negative."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return byte_width(high if low >= 0 else 2 * max(high, -low - 1) + 1)
