"""Tests k-means on a line against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc.algorithms.thresholds.kmeans_line import kmeans_line


def spread(group):
    return ((group - group.mean()) ** 2).sum()


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=12), st.integers(1, 5))
def test_least_squares(values, clusters):
    values = np.array(values, dtype=float)
    centers, of = kmeans_line(values, clusters)
    distinct = np.unique(values)
    assert len(centers) == min(clusters, len(distinct)) and (np.diff(centers) > 0).all()
    best = min(
        sum(spread(values[np.isin(values, group)]) for group in np.split(distinct, cuts))
        for cuts in combinations(range(1, len(distinct)), min(clusters, len(distinct)) - 1)
    )
    assert abs(((values - centers[of]) ** 2).sum() - best) < 1e-9


def test_far_from_zero():
    centers, of = kmeans_line(np.array([1e9, 1e9 + 1, 1e9 + 10, 1e9 + 11]), 2)
    assert centers.tolist() == [1e9 + 0.5, 1e9 + 10.5] and of.tolist() == [0, 0, 1, 1]


def test_huge_values_do_not_overflow():
    centers, of = kmeans_line(np.array([1.6e308, 1.7e308, -1.7e308, 3.0]), 3)
    assert np.allclose(centers, [-1.7e308, 3.0, 1.65e308]) and of.tolist() == [2, 2, 0, 1]
