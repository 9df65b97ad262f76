"""Tests the layout of ranks: which features have ranks, and the meaning of their slots."""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from forest_texts import head
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows

from forestc.backends.vectors import random_words
from forestc.forest.numbers import word_range
from forestc.forest.text import parse_forest
from forestc.layouts import ranks as ranks_module
from forestc.layouts.ranks import ranks_of
from forestc.layouts.slots import ALWAYS, APART, NEVER
from forestc.rows.encode import encode

HEAD = head("small uint8", "wide uint26", "rare uint26", name="m")


def chain(feature, thresholds):
    """Makes a tree that compares one feature with each threshold."""
    lines = ["tree outputs 0"]
    for place, threshold in enumerate(thresholds):
        lines += [
            f"{2 * place}: {feature} < {threshold} ? {2 * place + 1} : {2 * place + 2}",
            f"{2 * place + 1}: leaf 1",
        ]
    return "\n".join([*lines, f"{2 * len(thresholds)}: leaf 2\n"])


def test_features_are_ranked_where_that_is_smaller():
    many = [1000 * k + 70_000 for k in range(40)]
    forest = parse_forest(HEAD + chain(0, range(10, 50)) + chain(1, many) + chain(1, many) + chain(2, [70_000]))
    made = ranks_of(forest)
    ((place, slot),) = made.slots.ranks
    assert (place, slot.feature, slot.cuts) == (0, 1, tuple(many)) and made.slots.twins == 0
    features = [condition.feature for condition in forest.conditions]
    assert {features[k] for k in np.flatnonzero(made.slots.slot == APART)} == {0, 2}
    of_wide = [made.slots.threshold[k] for k in range(len(features)) if features[k] == 1]
    assert of_wide == list(range(1, 41))  # A rank is below 1 if the value is below the first cut.
    assert made.splits


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10**6))
def test_a_slot_is_below_its_threshold_where_the_condition_holds(seed):
    forest = random_forest(seed, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks_module, "RANKING", -(10**6))  # With a negative cost of ranking all features are ranked.
        slots = ranks_of(forest).slots
    random = np.random.default_rng(seed)
    words = random_words(forest, encode(forest, troublesome_rows(forest, seed, 60)), 60, random)
    firsts = dict(slots.ranks)
    for place, condition in enumerate(forest.conditions):
        slot, feature = int(slots.slot[place]), forest.features[condition.feature]
        own = words[:, condition.feature]
        absent = own == (
            missing if (missing := word_range(feature.number, feature.missing).missing) is not None else -1
        )
        absent &= feature.missing
        left = condition.sends_left(own, absent)
        if slot in (ALWAYS, NEVER):
            used = any((places == place).any() for places in forest.conditions.node_conditions)
            assert not used or (left == (slot == ALWAYS)).all()
        elif slot != APART:
            rank = np.searchsorted(slots.slots[slot].cuts, own, side="right")
            if slots.slots[slot].missing_low:  # Both slots of a feature hold one rank.
                assert firsts[slot - 1].cuts == slots.slots[slot].cuts and slot - 1 < 2 * slots.twins
                rank = np.where(rank == len(slots.slots[slot].cuts), 0, rank)
            assert np.array_equal(rank < slots.threshold[place], left)
