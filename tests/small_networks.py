"""Makes small tables of dependent columns, and all networks over them."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

from forestc.papers.networks.family_scores import family_score, make_scorer
from forestc.papers.networks.runs import ScoredNetwork


def rows_of(seed, n=5, states=2, rows=80):
    """Draws columns that each depend on earlier ones, in a random order."""
    random = np.random.default_rng(seed)
    table = random.integers(0, states, (rows, n))
    for column in range(2, n):
        a, b = random.choice(column, 2, replace=False)
        copied = random.random(rows) < 0.8
        table[copied, column] = (table[copied, a] + table[copied, b]) % states
    return table[:, random.permutation(n)].astype(np.uint8)


def moral_edges(parents):
    return {
        frozenset(pair) for child, family in enumerate(parents) for pair in combinations((child, *family), 2)
    }  # fmt: skip


def width(order, pairs):
    """Returns the most later neighbors of a vertex at its elimination."""
    near = {v: {u for pair in pairs if v in pair for u in pair if u != v} for v in order}
    widest = 0
    for v in order:
        around = near.pop(v)
        widest = max(widest, len(around))
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return widest


def acyclic(parents):
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if not left & set(parents[v])}
        if not free:
            return False
        left -= free
    return True


def scored(table, states, most):
    """Returns every parent set of each variable, with its score."""
    n = table.shape[1]
    scorer = make_scorer(table, np.full(n, states), most + 1, 1.0)
    room = np.zeros(most + 1, np.int64)
    families = []
    for child in range(n):
        families.append({})
        for size in range(most + 1):
            for parents in combinations([v for v in range(n) if v != child], size):
                room[:size] = parents
                families[-1][parents] = family_score(scorer, child, room, size)
    return scorer, families


def every_network(families):
    """Yields (score, parents) of every acyclic network."""
    found = []
    for parents in product(*families):
        if acyclic(parents):
            found.append((sum(each[some] for each, some in zip(families, parents, strict=True)), parents))
    return sorted(found, reverse=True)


def small_problem(seed, states, most):
    """Returns a table, its scorer, all its networks, and the network without edges, from which proofs begin."""
    table = rows_of(seed, 5 if seed == 1 else 4, states)
    n = table.shape[1]
    scorer, families = scored(table, states, most)
    empty = ScoredNetwork(sum(family[()] for family in families), ((),) * n, tuple(range(n)))
    return table, scorer, every_network(families), empty


def best_of_width(networks, k):
    n = len(networks[0][1])
    return next(
        score for score, parents in networks if any(width(o, moral_edges(parents)) <= k for o in permutations(range(n)))
    )


def assert_network(found, table, states, k):
    """Asserts that a network is acyclic and narrow, with the score and the counts of the table."""
    n = table.shape[1]
    assert acyclic(found.parents)
    assert all(len(family) <= 3 and list(family) == sorted(set(family)) for family in found.parents)
    assert sorted(found.order) == list(range(n))
    assert width(found.order, moral_edges(found.parents)) <= k
    assert found.score <= found.bound + 1e-9
    scorer = make_scorer(table, np.full(n, states), 4, 1.0)
    total = sum(family_score(scorer, v, np.array([*family, 0]), len(family)) for v, family in enumerate(found.parents))
    assert found.score == pytest.approx(total)
    for v, (family, counts) in enumerate(zip(found.parents, found.tables, strict=True)):
        assert counts.shape == (states ** len(family), states)
        assert counts.sum(axis=0).tolist() == np.bincount(table[:, v], minlength=states).tolist()
