"""Nudges against all nudges, one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from forestc.algorithms.splits.leaf_nudging import Sums, nudges_for


def random_sums(seed):
    random = np.random.default_rng(seed)
    sums, terms, places = 8, 3, 4
    sign = random.choice([-1, 0, 1], (sums, terms)).astype(np.int8)
    place = random.integers(0, places, (sums, terms)).astype(np.int32)
    return Sums(place, sign, random.integers(-2, 2, sums), random.integers(1, 4, sums)), places


@pytest.mark.parametrize("seed", range(20))
def test_all_sums_are_right_if_any_nudges_do_that(seed):
    sums, places = random_sums(seed)
    possible = any(not sums.wrong(np.array(nudges)).any() for nudges in itertools.product(range(-2, 3), repeat=places))
    found = nudges_for(sums, places, 2)
    assert np.abs(found).max(initial=0) <= 2
    assert sums.wrong(found).any() == (not possible)
    before = sums.count[sums.wrong(np.zeros(places, dtype=np.int64))].sum()
    assert sums.count[sums.wrong(found)].sum() <= before


def test_right_sums_are_left_alone():
    sums, places = random_sums(0)
    right = Sums(sums.place, sums.sign, np.abs(sums.room), sums.count)
    assert not nudges_for(right, places, 5).any()
