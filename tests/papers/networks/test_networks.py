"""Tests the methods of the networks' paper that its tables compare with our search: sampled k-trees, and the
program."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from papers.bounded_treewidth.k_tree_sampling import best_within, make_best, orders_of
from papers.bounded_treewidth.k_trees import decode, edges
from papers.bounded_treewidth.methods import learn_by
from papers.bounded_treewidth.program import solve
from small_networks import (
    acyclic,
    assert_network,
    best_of_width,
    every_network,
    moral_edges,
    rows_of,
    scored,
    small_problem,
    width,
)

from forestc.errors import OptionError
from forestc.papers.networks.bounded_treewidth import NetworkSearch, learn
from forestc.papers.networks.random_words import seeded

pytestmark = pytest.mark.long  # No command calls these methods, and they take long to compile.


@pytest.mark.parametrize(("seed", "states", "most"), [(0, 2, 3), (2, 3, 2), (1, 2, 2), (3, 2, 2), (4, 3, 1)])
def test_the_program_finds_the_best_of_all_networks(seed, states, most):
    table, scorer, networks, empty = small_problem(seed, states, most)
    for k in range(1, table.shape[1]):
        solved = solve(scorer, k, min(most, k), empty, end=1e12)
        assert solved.found.score == pytest.approx(best_of_width(networks, k))
        assert solved.bound == pytest.approx(best_of_width(networks, k))
        assert width(solved.found.order, moral_edges(solved.found.parents)) <= k


@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 2), (2, 3)])
def test_version_1_finds_the_best_network_within_each_k_tree(seed, k):
    most, n = 2, 5
    table = rows_of(seed)
    scorer, families = scored(table, 2, most)
    networks = [(score, parents, moral_edges(parents)) for score, parents in every_network(families)]
    pairs = [(0, 0), *product(range(1, n - k + 1), range(k))]
    codes = [(chosen, rest) for chosen in combinations(range(n), k) for rest in product(pairs, repeat=n - k - 2)]
    for code in codes[:: max(1, len(codes) // 40)]:
        bags, above = decode(code, n)
        near = edges(bags)
        best = make_best(n, most, seeded(0))
        top = best_within(scorer, bags, above, most, best, orders_of(k + 1))
        expected = next(score for score, _, moral in networks if all(v in near[u] for u, v in moral))
        assert top == pytest.approx(expected)
        found = [tuple(sorted(row[:size])) for row, size in zip(best.parents.tolist(), best.sizes, strict=True)]
        assert acyclic(found)
        assert sum(each[some] for each, some in zip(families, found, strict=True)) == pytest.approx(expected)
        assert all(v in near[u] for u, v in moral_edges(found))


@pytest.mark.parametrize("method", ["version-1", "version-2", "program"])
@pytest.mark.parametrize(("n", "k", "states"), [(12, 1, 2), (9, 2, 3), (70, 4, 2)])
def test_networks_keep_the_treewidth_and_show_an_order(method, n, k, states):
    n = min(n, 22) if method == "program" else n
    table = rows_of(n + k, n, states, 150)
    options = NetworkSearch(treewidth=k, time_limit=1, seed=1)
    assert_network(learn_by(method, table, options, [states] * n), table, states, k)


@pytest.mark.parametrize("method", ["version-1", "version-2"])
def test_samples_depend_on_the_seed_alone(method, monkeypatch):
    table = rows_of(7, 14)

    def run(seed, **more):
        return learn_by(method, table, NetworkSearch(treewidth=2, samples=200, seed=seed, **more), None)

    first = run(5)
    again = run(5, time_limit=0.01)
    monkeypatch.setattr("numba.get_num_threads", lambda: 1)
    for other in (again, run(5)):
        assert (other.parents, other.score, other.order) == (first.parents, first.score, first.order)
    assert any(run(seed).parents != first.parents for seed in range(3))


def test_the_search_beats_both_samplers():
    table = rows_of(3, 30, 2, 300)
    best = learn(table, NetworkSearch(method="search", treewidth=3, samples=1)).score
    for method, samples in (("version-1", 500), ("version-2", 5000)):
        assert best > learn_by(method, table, NetworkSearch(treewidth=3, samples=samples), None).score


def test_methods_of_the_paper_refuse_what_they_can_not_do():
    table = np.eye(60, dtype=np.uint8)
    with pytest.raises(OptionError, match="version-1 for treewidth 8"):
        learn_by("version-1", table, NetworkSearch(treewidth=8))
    with pytest.raises(OptionError, match="the program for 60 columns"):
        learn_by("program", table, NetworkSearch(treewidth=2))
