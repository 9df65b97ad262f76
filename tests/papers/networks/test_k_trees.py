"""Tests that codes and k-trees correspond one to one, and random codes give every k-tree equally often."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from papers.bounded_treewidth.k_tree_sampling import draw_k_tree, draw_orders
from papers.bounded_treewidth.k_trees import decode, edges, encode, random_code

from forestc.papers.networks.random_words import seeded

pytestmark = pytest.mark.long  # No command draws k-trees: only the tables of the paper do.
SMALL = [(n, k) for n in range(3, 8) for k in range(1, n - 1) if (n, k) not in ((7, 1), (7, 2))] + [(8, 4), (8, 5)]


def every_code(n, k):
    pairs = [(0, 0), *product(range(1, n - k + 1), range(k))]
    return [(chosen, rest) for chosen in combinations(range(n), k) for rest in product(pairs, repeat=n - k - 2)]


def is_k_tree(near, k):
    """Removes vertices with k neighbors that are a clique, until k + 1 vertices are left."""
    left = {v: set(us) for v, us in enumerate(near)}
    while len(left) > k + 1:
        leaf = next((v for v, us in left.items() if len(us) == k and clique(left, us)), None)
        if leaf is None:
            return False
        for u in left.pop(leaf):
            left[u].discard(leaf)
    return clique(left, left)


def clique(near, members):
    return all(v in near[u] for u, v in combinations(members, 2))


def named(near):
    return tuple(tuple(sorted(us)) for us in near)


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_every_code_is_another_k_tree_and_comes_back(n, k):
    seen = set()
    for code in every_code(n, k):
        near = edges(decode(code, n)[0])
        assert is_k_tree(near, k)
        assert encode(near, k) == code
        seen.add(named(near))
    assert len(seen) == math.comb(n, k) * (k * (n - k) + 1) ** (n - k - 2)


@pytest.mark.parametrize(("n", "k"), [(40, 3), (100, 10), (12, 11), (13, 11), (2, 1)])
def test_larger_codes_come_back(n, k):
    random = np.random.default_rng(n)
    for _ in range(20):
        code = random_code(n, k, random)
        near = edges(decode(code, n)[0])
        assert is_k_tree(near, k)
        assert n == k + 1 or encode(near, k) == code


def test_the_example_of_the_paper_is_a_3_tree_over_11_vertices():
    pairs = [(0, 0), (2, 0), (8, 2), (8, 1), (1, 2), (5, 2)]  # Positions count from 0.
    code = ((1, 2, 8), tuple(pairs))  # The paper's Q = {2, 3, 9}, counted from 0.
    near = edges(decode(code, 11)[0])
    assert is_k_tree(near, 3)
    assert encode(near, 3) == code


@pytest.mark.parametrize(("bags_above", "n", "k"), [(False, 5, 2), (True, 5, 2), (True, 6, 4)])
def test_k_trees_are_drawn_uniformly(bags_above, n, k):
    draws = 14_000
    random, words = np.random.default_rng(5), seeded(5)
    bags, above = np.zeros((n - k, k + 1), np.int64), np.zeros(n - k, np.int64)
    counts = Counter()
    for _ in range(draws):
        if bags_above:
            draw_k_tree(n, k, words, bags, above)
        else:
            bags = decode(random_code(n, k, random), n)[0]
        counts[named(edges(bags))] += 1
    kinds = math.comb(n, k) * (k * (n - k) + 1) ** (n - k - 2)
    assert len(counts) == kinds
    expected = draws / kinds
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    freedom = kinds - 1
    assert abs(chi_square - freedom) < 4 * math.sqrt(2 * freedom)


def test_orders_agree_where_bags_meet_and_each_is_as_likely():
    n, k = 5, 2
    words = seeded(2)
    bags, above = decode(((0, 1), ((1, 0),)), n)
    orders = np.zeros_like(bags)
    counts = Counter()
    for _ in range(7000):
        draw_orders(k, words, bags, above, orders)
        first = {}
        for bag, order in zip(bags.tolist(), orders.tolist(), strict=True):
            assert sorted(bag) == sorted(order)
            for pair in combinations(order, 2):
                assert first.setdefault(frozenset(pair), pair) == pair
        counts[orders.tobytes()] += 1
    assert len(counts) == math.factorial(k) * (k + 1) ** (n - k)  # Theorem 5
    expected = 7000 / len(counts)
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 53 + 4 * math.sqrt(2 * 53)
