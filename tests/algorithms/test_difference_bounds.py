from __future__ import annotations

import itertools

import numpy as np

from forestc.algorithms.separation.difference_bounds import NO_BOUND, middle


def test_integers_are_found_exactly_where_there_are_some():
    found = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        n = int(random.integers(1, 4))
        bounds = np.full((n + 1, n + 1), NO_BOUND)
        bounds[:n, n], bounds[n, :n] = -3, -3  # Each variable lies between -3 and 3.
        for _ in range(int(random.integers(0, 6))):
            a, b = random.integers(0, n + 1, 2)
            bounds[a, b] = max(bounds[a, b], random.integers(-4, 3))
        fits = [
            v for v in itertools.product(range(-3, 4), repeat=n)
            if all((*v, 0)[a] - (*v, 0)[b] >= bounds[a, b] for a in range(n + 1) for b in range(n + 1))
        ]  # fmt: skip
        chosen = middle(bounds)
        assert (chosen is None) == (not fits)
        if chosen is not None:
            assert tuple(chosen[:n].tolist()) in fits and chosen[n] == 0
            found += 1
    assert 50 < found < 190


def test_the_middle_is_taken():
    bounds = np.array([[0, 2], [-9, 0]])  # The difference lies between 2 and 9.
    assert middle(bounds).tolist() == [5, 0]
