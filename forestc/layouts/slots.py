"""Slots: the small integers that a table of nodes compares, made of a forest's features once for each row.

With one comparison `slot < threshold` for every node, a node needs no more than a slot, a threshold and a place:

| slot of           | its value                                        | thresholds           |
|-------------------|--------------------------------------------------|----------------------|
| a feature, plain  | its word                                         | those of its nodes   |
| a feature, ranked | how many of its nodes' thresholds are not above  | 1, 2, ...            |
| one condition     | 0 where the condition holds, else 1              | 1                    |

A missing value's word is the highest, as nodes that send it right need; a feature has a further slot, in which a
missing value is the lowest, for nodes that send it left. Of a ranked feature that is the slot after its other one, and
both are of one rank: the word that means missing is then one of the cuts, the last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Set
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.forest.conditions import Below
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_range

ALWAYS, NEVER = -1, -2  # places of conditions that hold on every row, and on none
APART = -3  # of those that have no slot


_Key: TypeAlias = tuple[int, bool, int]  # feature, missing_low, condition or -1


@dataclass(frozen=True)
class FeatureSlot:
    """feature: index into Forest.features. missing_low: whether a missing value is the lowest here. condition: of one
    that has the slot for itself, such as a set, its place among the forest's, else None. cuts: of others the thresholds
    of its nodes, ascending."""

    feature: int
    missing_low: bool
    condition: int | None
    cuts: tuple[int, ...]


@dataclass(frozen=True)
class Slots:
    """slots: of a forest. slot: (conditions,) the slot of each, or ALWAYS, NEVER or APART. threshold: (conditions,) it
    holds where the slot's value is below this. ranked: whether slots of features hold ranks. cut_bytes: of a cut, among
    which a rank is counted, in a table."""

    slots: tuple[FeatureSlot, ...]
    slot: NDArray[np.int64]
    threshold: NDArray[np.int64]
    ranked: bool
    cut_bytes: int

    @property
    def rank_bytes(self) -> int:
        """The size of the tables that ranks need: cuts, and of each feature where it is and how many it has."""
        return sum(3 + self.cut_bytes * len(slot.cuts) for _, slot in self.ranks)

    @property
    def ranks(self) -> list[tuple[int, FeatureSlot]]:
        """Features that are ranked, each by its first slot and the place of that; those with a second come first."""
        return [
            (place, slot)
            for place, slot in enumerate(self.slots)
            if self.ranked and slot.condition is None and not slot.missing_low
        ]

    @property
    def twins(self) -> int:
        """How many features that are ranked have two slots."""
        return sum(slot.missing_low for slot in self.slots if slot.condition is None) if self.ranked else 0

    @property
    def plain(self) -> bool:
        """Whether each slot is the word of a feature, as it is."""
        return not self.ranked and all(slot.condition is None and not slot.missing_low for slot in self.slots)


def slots_of(forest: Forest, *, ranked: bool, float_bytes: int = 0, only: Set[int] | None = None) -> Slots:
    """The slots of a quantized forest's conditions: of features in their order, then of single conditions. Plain slots
    are all features, whether they are compared or not. float_bytes: of the floats that are ranked; 0 for words. only:
    the features that have slots, while single conditions have none; None for all, and for single conditions too."""
    many = len(forest.conditions)
    slot, threshold = np.full(many, NEVER, dtype=np.int64), np.zeros(many, dtype=np.int64)
    cuts: dict[_Key, set[int]] = {}
    keys: dict[int, _Key] = {}
    used = set(np.concatenate([place[place >= 0] for place in forest.conditions.places]).tolist()) if many else set()
    for place in used:
        key, cut = _key_of(forest, place)
        threshold[place] = cut
        if isinstance(key, int):
            slot[place] = key
        elif only is not None and (key[2] >= 0 or key[0] not in only):
            slot[place] = APART
        else:
            keys[place] = key
            if key[2] < 0:
                cuts.setdefault(key, set()).add(cut)
    wanted = set(keys.values())
    if not ranked and all(not low and place < 0 for _, low, place in wanted):  # slots are features then
        wanted |= {(index, False, -1) for index in range(len(forest.features))}
    twins = _joined(forest, cuts) if ranked else set()
    wanted |= set(cuts)
    order = sorted(wanted, key=lambda key: (key[2] >= 0, key[0] not in twins, *key))
    slots = tuple(
        FeatureSlot(feature, low, None if place < 0 else place, tuple(sorted(cuts.get((feature, low, place), ()))))
        for feature, low, place in order
    )
    number = {key: place for place, key in enumerate(order)}
    for place, key in keys.items():
        slot[place] = number[key]
        if ranked and key[2] < 0:
            threshold[place] = bisect_left(slots[slot[place]].cuts, int(threshold[place])) + 1
    cut_bytes = float_bytes or width_of(np.array([cut for entry in slots for cut in entry.cuts], dtype=np.int64))
    return Slots(slots, slot, threshold, ranked, cut_bytes)


def _key_of(forest: Forest, place: int) -> tuple[_Key | int, int]:
    """The slot that a condition needs, or ALWAYS or NEVER; and the threshold of the slot's value."""
    condition = forest.conditions[place]
    feature = forest.features[condition.feature]
    missing_low = condition.missing_left and feature.missing
    span = word_range(feature.number, feature.missing)
    cut = min(int(condition.test.threshold), span.top + 1) if isinstance(condition.test, Below) else span.low
    if not isinstance(condition.test, Below) or (missing_low and cut <= span.low):
        return (condition.feature, missing_low, place), 1  # by itself
    if cut > span.high and (missing_low or not feature.missing):
        return ALWAYS, 0
    return ((condition.feature, missing_low, -1), min(cut, span.top)) if cut > span.low else (NEVER, 0)


def _joined(forest: Forest, cuts: dict[_Key, set[int]]) -> set[int]:
    """Makes one set of the cuts of a feature with a slot where missing is lowest, for both its slots, with the word
    that means missing. Returns these features."""
    twins = {feature for feature, low, _ in cuts if low}
    for feature in twins:
        missing = word_range(forest.features[feature].number, True).missing
        assert missing is not None
        both = cuts[feature, True, -1] | cuts.get((feature, False, -1), set()) | {missing}
        cuts[feature, False, -1] = cuts[feature, True, -1] = both
    return twins


def byte_width(largest: int) -> int:
    """Bytes of an unsigned integer that holds 0 .. largest: 1, 2, 4 or 8."""
    return next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))


def width_of(values: NDArray[np.int64]) -> int:
    """Bytes of an integer, signed where one of the values is negative."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return byte_width(high if low >= 0 else 2 * max(high, -low - 1) + 1)
