"""Nudges against all nudges, one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from forestc.algorithms.splits import leaf_nudging
from forestc.algorithms.splits.leaf_nudging import Sums, nudges_for


def random_sums(seed):
    random = np.random.default_rng(seed)
    sums, terms, places = 8, 3, 4
    sign = random.choice([-1, 0, 1], (sums, terms)).astype(np.int8)
    integer = random.integers(0, places, (sums, terms)).astype(np.int32)
    return Sums(integer, sign, random.integers(-2, 2, sums), random.integers(1, 4, sums)), places


@pytest.mark.parametrize("seed", range(20))
def test_all_sums_are_right_if_any_nudges_do_that(seed):
    sums, places = random_sums(seed)
    possible = any(not sums.wrong(np.array(nudges)).any() for nudges in itertools.product(range(-2, 3), repeat=places))
    found, _ = nudges_for(sums, places, 2, 10**9)
    assert np.abs(found).max(initial=0) <= 2
    assert sums.wrong(found).any() == (not possible)
    before = sums.count[sums.wrong(np.zeros(places, dtype=np.int64))].sum()
    assert sums.count[sums.wrong(found)].sum() <= before


def test_right_sums_are_left_alone():
    sums, places = random_sums(0)
    right = Sums(sums.integer, sums.sign, np.abs(sums.room), sums.count)
    assert not nudges_for(right, places, 5, 10**9)[0].any()


@pytest.mark.parametrize("steps", [0, 1, 10**5])
def test_rounds_are_limited_in_steps_and_repeat(steps):
    random = np.random.default_rng(0)
    shape, places = (400, 12), 60
    sign = random.choice([-1, 1], shape).astype(np.int8)
    sums = Sums(random.integers(0, places, shape).astype(np.int32), sign, np.full(400, -2), np.ones(400, dtype=int))
    (nudges, taken), again = (nudges_for(sums, places, 1, steps) for _ in range(2))
    assert (nudges == again[0]).all() and taken == again[1]
    assert taken <= 100 * steps + 10**5
    assert sums.wrong(nudges).sum() <= 400


def test_a_program_holds_the_sums_that_count_most(monkeypatch):
    monkeypatch.setattr(leaf_nudging, "MOST_ENTRIES", 5)
    sign = np.ones((4, 2), dtype=np.int8)
    sums = Sums(np.zeros((4, 2), dtype=np.int32), sign, np.full(4, -1), np.array([3, 9, 1, 5]))
    assert leaf_nudging._most_counted(sums, np.array([True, True, True, True])).tolist() == [1, 3]
    assert leaf_nudging._most_counted(sums, np.array([True, False, True, False])).tolist() == [0, 2]
