"""Slots: integers, computed once for each row, that the nodes of tables compare with thresholds. A feature's slot holds
its word or rank; a single condition's slot is 0 if the condition holds."""

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

ALWAYS, NEVER = -1, -2  # entries of `Slots.slot` for conditions that hold for every row, and for none
APART = -3  # marks conditions without a slot


_Key: TypeAlias = tuple[int, bool, int]  # (feature, missing_low, condition or -1)


@dataclass(frozen=True)
class FeatureSlot:
    """A slot: an integer, computed for each row, that conditions compare with thresholds."""

    feature: int  # index into Forest.features
    missing_low: bool  # True if a missing value is the lowest here
    condition: int | None  # the only condition on this slot; None for a feature's slot
    cuts: tuple[int, ...]  # thresholds of a feature's slot, ascending


@dataclass(frozen=True)
class Slots:
    """The slots of a forest, and the slot and threshold of each condition."""

    slots: tuple[FeatureSlot, ...]
    slot: NDArray[np.int64]  # (conditions,), index of the slot, or ALWAYS, NEVER or APART
    threshold: NDArray[np.int64]  # (conditions,); a condition holds if its slot is below
    ranked: bool  # True if slots of features hold ranks
    cut_bytes: int  # bytes of a cut in a table

    @property
    def rank_bytes(self) -> int:
        """Number of bytes of the tables from which ranks are computed."""
        return sum(3 + self.cut_bytes * len(slot.cuts) for _, slot in self.ranks)

    @property
    def ranks(self) -> list[tuple[int, FeatureSlot]]:
        """Pairs (slot's index, slot), one for each ranked feature. Features with two slots come first, with the slot in
        which missing values rank highest."""
        return [
            (index, slot)
            for index, slot in enumerate(self.slots)
            if self.ranked and slot.condition is None and not slot.missing_low
        ]

    @property
    def twins(self) -> int:
        """Number of ranked features with a second slot, in which missing values rank lowest."""
        return sum(slot.missing_low for slot in self.slots if slot.condition is None) if self.ranked else 0

    @property
    def plain(self) -> bool:
        """True if each slot is the unchanged word of a feature."""
        return not self.ranked and all(slot.condition is None and not slot.missing_low for slot in self.slots)


def slots_of(forest: Forest, *, ranked: bool, float_bytes: int = 0, only: Set[int] | None = None) -> Slots:
    """Returns the slots of a quantized forest; the slots of features come first.
    float_bytes: bytes of a raw float input; 0 for integer words.
    only: gives slots to these features alone; None for all features and conditions."""
    many = len(forest.conditions)
    slot, threshold = np.full(many, NEVER, dtype=np.int64), np.zeros(many, dtype=np.int64)
    cuts: dict[_Key, set[int]] = {}
    keys: dict[int, _Key] = {}
    used = (
        set(np.concatenate([numbers[numbers >= 0] for numbers in forest.conditions.node_conditions]).tolist())
        if many
        else set()
    )
    for condition in used:
        key, cut = _key_of(forest, condition)
        threshold[condition] = cut
        if isinstance(key, int):
            slot[condition] = key
        elif only is not None and (key[2] >= 0 or key[0] not in only):
            slot[condition] = APART
        else:
            keys[condition] = key
            if key[2] < 0:
                cuts.setdefault(key, set()).add(cut)
    required = set(keys.values())
    if not ranked and all(not low and condition < 0 for _, low, condition in required):  # all slots are features then
        required |= {(index, False, -1) for index in range(len(forest.features))}
    twins = _joined(forest, cuts) if ranked else set()
    required |= set(cuts)
    order = sorted(required, key=lambda key: (key[2] >= 0, key[0] not in twins, *key))
    slots = tuple(
        FeatureSlot(
            feature, low, None if condition < 0 else condition, tuple(sorted(cuts.get((feature, low, condition), ())))
        )
        for feature, low, condition in order
    )
    number = {key: index for index, key in enumerate(order)}
    for condition, key in keys.items():
        slot[condition] = number[key]
        if ranked and key[2] < 0:
            threshold[condition] = bisect_left(slots[slot[condition]].cuts, int(threshold[condition])) + 1
    cut_bytes = float_bytes or width_of(np.array([cut for entry in slots for cut in entry.cuts], dtype=np.int64))
    return Slots(slots, slot, threshold, ranked, cut_bytes)


def _key_of(forest: Forest, index: int) -> tuple[_Key | int, int]:
    """Returns a condition's (key of its slot, threshold); the key is ALWAYS or NEVER for a constant condition."""
    condition = forest.conditions[index]
    feature = forest.features[condition.feature]
    missing_low = condition.missing_left and feature.missing
    span = word_range(feature.number, feature.missing)
    cut = min(int(condition.test.threshold), span.top + 1) if isinstance(condition.test, Below) else span.low
    if not isinstance(condition.test, Below) or (missing_low and cut <= span.low):
        return (condition.feature, missing_low, index), 1  # a condition with a slot of its own
    if cut > span.high and (missing_low or not feature.missing):
        return ALWAYS, 0
    return ((condition.feature, missing_low, -1), min(cut, span.top)) if cut > span.low else (NEVER, 0)


def _joined(forest: Forest, cuts: dict[_Key, set[int]]) -> set[int]:
    """Gives both slots of a feature (missing values lowest, or highest) the same cuts, in place. Returns the set of
    features with two slots."""
    twins = {feature for feature, low, _ in cuts if low}
    for feature in twins:
        missing = word_range(forest.features[feature].number, True).missing
        assert missing is not None
        both = cuts[feature, True, -1] | cuts.get((feature, False, -1), set()) | {missing}
        cuts[feature, False, -1] = cuts[feature, True, -1] = both
    return twins


def byte_width(largest: int) -> int:
    """Returns how many bytes (1, 2, 4 or 8) an unsigned integer needs to hold 0 to `largest`."""
    return next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))


def width_of(values: NDArray[np.int64]) -> int:
    """Returns how many bytes (1, 2, 4 or 8) an integer needs to hold every value; it is signed if any value is."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return byte_width(high if low >= 0 else 2 * max(high, -low - 1) + 1)
