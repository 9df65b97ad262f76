"""Tests scores against the definition, counted row by row, and that omitted parent sets can never pay."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from forestc.papers.networks.family_scores import (
    best_partners,
    family_score,
    make_scorer,
    set_value,
    useful_parent_sets,
)


def slow_score(rows, states, child, parents, ess):
    """Computes BDeu by its definition, from counts in a dictionary."""
    counts = {}
    for row in rows.tolist():
        config = tuple(row[parent] for parent in parents)
        counts.setdefault(config, [0] * states[child])[row[child]] += 1
    q = math.prod(states[parent] for parent in parents)
    r = states[child]
    total = 0.0
    for cells in counts.values():
        total += math.lgamma(ess / q) - math.lgamma(ess / q + sum(cells))
        total += sum(math.lgamma(ess / (q * r) + cell) - math.lgamma(ess / (q * r)) for cell in cells)
    return total


def score(scorer, child, parents):
    room = np.zeros(len(scorer.members), np.int64)
    room[: len(parents)] = parents
    return family_score(scorer, child, room, len(parents))


@pytest.mark.parametrize("states", [(2,) * 6, (2, 3, 4, 2, 5, 3)])
@pytest.mark.parametrize(("rows", "ess"), [(1, 1.0), (40, 1.0), (1500, 0.3), (700, 10.0)])
def test_scores_are_those_of_the_definition(states, rows, ess):
    random = np.random.default_rng(rows)
    table = np.column_stack([random.integers(0, r, rows) for r in states]).astype(np.uint8)
    table[:, 5] = np.where(random.random(rows) < 0.8, table[:, 0], table[:, 5])
    scorer = make_scorer(table, np.array(states), 4, ess)
    for child in range(6):
        for size in range(4):
            for parents in combinations([v for v in range(6) if v != child], size):
                expected = slow_score(table, states, child, parents, ess)
                for order in (parents, parents[::-1]):
                    assert score(scorer, child, order) == pytest.approx(expected, rel=1e-10, abs=1e-9)


def test_a_full_cache_forgets_values_but_never_mixes_them_up():
    random = np.random.default_rng(1)
    table = (random.random((90, 12)) < 0.5).astype(np.uint8)
    scorer = make_scorer(table, np.full(12, 2), 4, 1.0)
    small = scorer._replace(keys=np.full(4, 2**64 - 1, np.uint64), values=np.zeros(4))
    for members in [*combinations(range(12), 3), *combinations(range(12), 2)] * 2:
        room = np.array([*members, 0, 0])
        assert set_value(small, room, len(members)) == set_value(scorer, room, len(members))


@pytest.mark.parametrize("states", [2, 3])
def test_partners_are_the_columns_that_gain_most(states):
    random = np.random.default_rng(3)
    table = random.integers(0, states, (200, 9)).astype(np.uint8)
    table[:, 4] = table[:, 1]
    table[:, 7] = np.where(random.random(200) < 0.7, table[:, 1], table[:, 7])
    scorer = make_scorer(table, np.full(9, states), 2, 1.0)
    partners, gains = np.zeros((9, 3), np.int64), np.zeros((9, 3))
    best_partners(scorer, 0, 9, partners, gains)
    for column in range(9):
        alone = slow_score(table, (states,) * 9, column, (), 1.0)
        expected = {v: slow_score(table, (states,) * 9, column, (v,), 1.0) - alone for v in range(9) if v != column}
        assert partners[column].tolist() == sorted(expected, key=expected.get, reverse=True)[:3]
        assert gains[column] == pytest.approx(sorted(expected.values(), reverse=True)[:3])


@pytest.mark.parametrize("seed", range(6))
def test_a_parent_set_that_is_left_out_has_a_subset_as_good(seed):
    random = np.random.default_rng(seed)
    states = tuple(random.integers(2, 4, 6).tolist())
    rows = int(random.integers(5, 60))
    table = np.column_stack([random.integers(0, r, rows) for r in states]).astype(np.uint8)
    scorer = make_scorer(table, np.array(states), 4, 1.0)
    for child in range(6):
        kept = dict(useful_parent_sets(scorer, child, 3))
        assert list(kept.values()) == sorted(kept.values(), reverse=True)
        for size in range(4):
            for parents in combinations([v for v in range(6) if v != child], size):
                value = slow_score(table, states, child, parents, 1.0)
                if parents in kept:
                    assert kept[parents] == pytest.approx(value)
                best = max(each for some, each in kept.items() if set(some) <= set(parents))
                assert best >= value - 1e-8
    assert sum(len(useful_parent_sets(scorer, child, 3)) for child in range(6)) < 6 * 26  # some sets are left out
