"""Tests that stabbing intervals takes the fewest points, against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc.algorithms.thresholds.interval_stabbing import stab, stab_most

ENDS = st.tuples(st.integers(0, 9), st.integers(1, 5), st.sampled_from(["", "", "", "low", "high"]))


def intervals(drawn):
    low = np.array([-np.inf if open_ == "low" else float(a) for a, _, open_ in drawn])
    high = np.array([np.inf if open_ == "high" else float(a + width) for a, width, open_ in drawn])
    return low, high


def fewest(low, high, exceptions):
    """Returns the fewest points, trying right ends alone: a point can move right, and still stabs the same intervals,
    until the first of them ends."""
    ends = np.unique(high)
    for count in range(1, len(ends) + 1):
        for points in combinations(ends, count):
            stabbed = sum(any(a < t <= b for t in points) for a, b in zip(low, high, strict=True))
            if len(low) - stabbed <= exceptions:
                return count
    raise AssertionError


def scorer(found, low, high):
    """Checks that every interval has a point. An interval that is not missed must contain all of its point's
    freedom."""
    assert (found.low < found.high).all()
    taken_low, taken_high = found.low[found.point], found.high[found.point]
    kept = ~found.missed
    assert (low[kept] <= taken_low[kept]).all() and (taken_high[kept] <= high[kept]).all()
    assert set(found.point.tolist()) == set(range(len(found.low)))


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.lists(ENDS, min_size=1, max_size=8), st.integers(0, 8))
def test_the_fewest_points(drawn, exceptions):
    low, high = intervals(drawn)
    found = stab_most(low, high, exceptions)
    scorer(found, low, high)
    assert found.missed.sum() <= exceptions
    assert len(found.low) == fewest(low, high, exceptions)
    none = stab(low, high)
    scorer(none, low, high)
    assert not none.missed.any() and len(none.low) == fewest(low, high, 0)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9])
def test_more_exceptions_never_need_more_points(share):
    random = np.random.default_rng(0)
    low = random.normal(size=3000)
    high = low + random.exponential(0.01, size=3000)
    exceptions = int(share * 3000)
    found, before = stab_most(low, high, exceptions), stab_most(low, high, max(0, exceptions - 100))
    scorer(found, low, high)
    assert found.missed.sum() <= exceptions
    assert len(found.low) <= len(before.low)


def test_a_missed_interval_takes_the_nearest_point():
    low, high = np.array([0.0, 0.0, 0.0, 10, 10, 10, 3, 7]), np.array([1.0, 1, 1, 11, 11, 11, 4, 8])
    found = stab_most(low, high, 2)
    assert found.missed.tolist() == [False] * 6 + [True, True]
    assert found.point.tolist() == [0, 0, 0, 1, 1, 1, 0, 1]


def test_no_intervals_need_no_points():
    found = stab_most(np.zeros(0), np.zeros(0), 3)
    assert len(found.low) == len(found.point) == 0


def by_recurrence(low, high, exceptions):
    """Computes D(1, c) of the paper's theorem 3 (equation 1), in our (low, high]. D(i, j) is the fewest points for the
    intervals from the i-th by ascending low on, if j may be missed. The first point lies at one of the j + 1 smallest
    ends. Intervals that end before it are missed; intervals that begin at or after it are left to the next points."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    p = len(low)
    fewest_of = np.zeros((p + 1, exceptions + 1), dtype=int)
    for i in range(p - 1, -1, -1):
        ends = np.sort(high[i:])
        for j in range(min(exceptions, p - i - 1) + 1):
            best = p
            for end in np.unique(ends[: j + 1]):
                missed = int((high[i:] < end).sum())
                after = int(np.searchsorted(low, end, side="left"))
                best = min(best, 1 + fewest_of[max(after, i), j - missed])
            fewest_of[i, j] = best
    return max(1, int(fewest_of[0, min(exceptions, p)])) if p else 0


@pytest.mark.parametrize("seed", range(examples(4)))
def test_larger_cases_against_the_paper_s_recurrence(seed):
    random = np.random.default_rng(seed)
    low = np.round(random.normal(size=80), 1 + seed % 2)
    high = low + np.round(random.exponential(0.3, size=80), 1) + 0.1
    for exceptions in (1, 7, 40):
        found = stab_most(low, high, exceptions)
        assert found.missed.sum() <= exceptions and len(found.low) == by_recurrence(low, high, exceptions)
