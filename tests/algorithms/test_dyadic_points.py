"""Points with the fewest binary digits, against brute force."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forestc.algorithms.thresholds.dyadic_points import narrow_points
from forestc.algorithms.thresholds.interval_stabbing import stab
from forestc.passes.share_thresholds.share_thresholds import fewest_thresholds


def zeros(word, width):
    return width if word == 0 else min(width, (word & -word).bit_length() - 1)


def best_by_force(low, high, count, top):
    """Fraction bits and most trailing zeros over all sets of `count` multiples."""
    for fraction in range(-top, 3):
        unit = 2.0**-fraction
        grid = range(math.floor(low.min() / unit), math.ceil(high.max() / unit) + 1)
        assume(math.comb(len(grid), count) < 20_000)
        found = [
            sum(zeros(word, max(1, top + fraction + 1)) for word in words)
            for words in combinations(grid, count)
            if all(any(a < word * unit <= b for word in words) for a, b in zip(low, high, strict=True))
        ]
        if found:
            return fraction, max(found)
    raise AssertionError


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(-48, 48), st.integers(1, 9)), min_size=1, max_size=8))
def test_the_fewest_digits(drawn):
    low = np.array([a for a, _ in drawn]) / 4
    high = low + np.array([width for _, width in drawn]) / 4
    points, fraction = narrow_points(low, high)
    assert all(((a < points) & (points <= b)).any() for a, b in zip(low, high, strict=True))
    assert len(points) == len(stab(low, high).low)
    top = math.frexp(max(np.abs([low, high]).max(), 0.25))[1]
    words = np.ldexp(points, fraction).astype(int).tolist()
    got = sum(zeros(word, max(1, top + fraction + 1)) for word in words)
    assert (fraction, got) == best_by_force(low, high, len(points), top)


def test_open_ends_and_fine_ends():
    low, high = np.array([-np.inf, 3.0, -np.inf]), np.array([0.3, np.inf, np.inf])
    points, _ = narrow_points(low, high)
    assert len(points) == 2 and points[0] <= 0.3 and points[1] > 3.0
    alone = narrow_points(np.array([1.0]), np.array([np.nextafter(1.0, 2.0)]))
    assert alone is not None and alone[0].tolist() == [np.nextafter(1.0, 2.0)]
    # a tiny one beside a huge one: 53 bits can't hold both
    assert narrow_points(np.array([1e-12, 1e9]), np.array([1.1e-12, 1e9 + 1])) is None


@pytest.mark.parametrize("seed", range(5))
def test_many_intervals(seed):
    random = np.random.default_rng(seed)
    low = random.normal(size=4000)
    high = low + random.exponential(0.02, size=4000)
    points, _ = narrow_points(low, high)
    at = np.searchsorted(points, low, side="right")
    assert (points[at] <= high).all() and len(points) == len(stab(low, high).low)


EXTREMES = [0.0, 5e-324, 1e-310, 1e-30, 1e-9, 1.0, 3.0, 1e9, 9.007e15, 1e30, 1e308, np.inf]


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.lists(st.tuples(*[st.sampled_from([*EXTREMES, *(-x for x in EXTREMES)])] * 2), min_size=1, max_size=6))
def test_no_size_of_numbers_breaks_an_interval(ends):
    pairs = [sorted(pair) for pair in ends if pair[0] != pair[1]]
    pairs = [(a, b) for a, b in pairs if a < np.inf and b > -np.inf]
    assume(pairs)
    low, high = (np.array(side) for side in zip(*pairs, strict=True))
    own = np.where(np.isfinite(high), high, np.where(np.isfinite(low), low + 1, 0.0))
    for few_bits in (True, False):
        points, taken = fewest_thresholds(low, high, own, few_bits, narrow=False)
        assert (low < points[taken]).all() and (points[taken] <= high).all()
        assert len(points) == len(stab(low, high).low)


def test_what_no_row_bounds_stays_near_the_rows():
    """A condition that all rows meet, or none, does not wander off to a rounder number."""
    low, high = np.array([-np.inf, 2.2, 5.0]), np.array([0.3, 3.7, np.inf])
    for few_bits in (True, False):
        points, _ = fewest_thresholds(low, high, np.array([0.3, 3.0, 6.0]), few_bits, narrow=True)
        assert 0 <= points[0] <= 0.3 and abs(points[1] - (3.0 if few_bits else 2.95)) < 1e-6
        assert 5.0 < points[2] <= 6.0
