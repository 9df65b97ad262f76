"""Tests that networks keep the treewidth, are optimal if they say so, and are the same in every run."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from small_networks import (
    assert_network,
    best_of_width,
    moral_edges,
    rows_of,
    small_problem,
    width,
)
from thinned import thinned

from forestc.errors import OptionError, RowsError
from forestc.papers.networks import bounded_treewidth
from forestc.papers.networks.bounded_treewidth import NetworkSearch, learn
from forestc.papers.networks.elimination import eliminates, make_room, put
from forestc.papers.networks.exact import Outlook, prove
from forestc.papers.networks.search import search


def moral_graph(parents):
    """Returns the moral graph as rows of bits: a child and its parents are a clique."""
    rows = np.zeros((len(parents), -(-len(parents) // 64)), np.uint64)
    for child, family in enumerate(parents):
        for u, v in combinations((child, *family), 2):
            put(rows, u, v)
    return rows


@pytest.mark.parametrize(
    ("seed", "states", "most"),
    [(0, 2, 3), (2, 3, 2)]
    + [pytest.param(*each, marks=pytest.mark.long) for each in ((1, 2, 2), (3, 2, 2), (4, 3, 1))],
)
def test_proofs_find_the_best_of_all_networks(seed, states, most):
    table, scorer, networks, empty = small_problem(seed, states, most)
    n = table.shape[1]
    for k in range(1, n):
        best = best_of_width(networks, k)
        proved = prove(scorer, k, min(most, k), empty, end=math.inf)
        assert proved.found.score == pytest.approx(best)
        assert proved.bound == pytest.approx(best)
        assert width(proved.found.order, moral_edges(proved.found.parents)) <= k
        found = learn(
            table, NetworkSearch(treewidth=k, max_parents=most, time_limit=60, samples=1), states=[states] * n
        )
        assert found.optimal
        assert found.score == pytest.approx(best)
        assert found.bound >= best - 1e-9


def test_small_treewidths_make_a_difference_and_proofs_branch():
    table = rows_of(11, 9, 2, 400)
    scores = []
    for k in range(1, 6):
        found = learn(table, NetworkSearch(treewidth=k, time_limit=60, samples=1))
        assert found.optimal
        scores.append(found.score)
    assert scores == sorted(scores)
    assert scores[0] < scores[1] < scores[2]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["search", "exact"])
@pytest.mark.parametrize(("n", "k", "states"), [(12, 1, 2), (9, 2, 3), (70, 4, 2)])
def test_networks_keep_the_treewidth_and_show_an_order(method, n, k, states):
    n = min(n, 20) if method == "exact" else n
    table = rows_of(n + k, n, states, 150)
    options = NetworkSearch(method=method, treewidth=k, time_limit=1, seed=1)
    assert_network(learn(table, options, states=[states] * n), table, states, k)


@pytest.mark.parametrize("seed", thinned(range(3), keep=1))
def test_wide_networks_show_an_order_too(seed):
    """Checks networks for which a newly searched elimination order might be too wide."""
    random = np.random.default_rng(seed)
    slope = np.cumsum(random.normal(size=(300, 60)), axis=1)
    found = learn(slope > np.median(slope, axis=0), NetworkSearch(treewidth=10, samples=1, method="search", seed=seed))
    assert width(found.order, moral_edges(found.parents)) <= 10


def test_the_result_depends_on_seed_and_samples_alone(monkeypatch):
    table = rows_of(7, 14)

    def run(**more):
        return learn(table, NetworkSearch(method="search", treewidth=2, samples=3, seed=5, **more))

    first = run()
    again = run(time_limit=0.01)
    monkeypatch.setattr("numba.get_num_threads", lambda: 1)
    for other in (again, run()):
        assert (other.parents, other.score, other.order) == (first.parents, first.score, first.order)


def test_a_proof_is_out_of_reach_where_a_straight_line_misses_the_best_score():
    outlook = Outlook(first=1.0, end=10.0)
    assert outlook.in_reach(0.0, 100.0, 0.0)
    assert outlook.in_reach(0.9, 99.9, 0.0)  # It is too early to extrapolate the bound.
    assert outlook.in_reach(2.0, 80.0, 0.0)  # The bound falls by 10 a second, and 8 seconds are left.
    assert not outlook.in_reach(2.0, 80.5, 0.0)
    assert not outlook.in_reach(4.0, 70.0, 0.0)
    assert outlook.in_reach(4.0, 70.0, 30.0)
    slow = Outlook(first=1.0, end=10.0)
    assert slow.in_reach(2.0, 80.0, 79.0) and not slow.in_reach(2.5, 80.0, 79.0)  # The bound has not fallen at all.


def test_auto_searches_on_where_no_proof_is_in_reach(monkeypatch):
    table = rows_of(11, 9, 2, 400)
    best = learn(table, NetworkSearch(treewidth=2, samples=1))
    assert best.optimal
    seeds, judged = [], []

    def searched(*given, seed, **more):
        seeds.append(seed)
        return search(*given, seed=seed, **more | {"samples": 1})

    monkeypatch.setattr(bounded_treewidth, "search", searched)
    assert learn(table, NetworkSearch(treewidth=2)).optimal and seeds == [0]
    seeds.clear()
    monkeypatch.setattr(Outlook, "in_reach", lambda _, *figures: bool(judged.append(figures)))
    found = learn(table, NetworkSearch(treewidth=2))
    assert seeds == [0, 1] and len(judged) == 1
    assert not found.optimal and found.bound == judged[0][1] > best.score >= found.score


def test_progress_tells_each_better_score():
    lines = []
    learn(rows_of(1, 8), NetworkSearch(treewidth=2, samples=1), progress=lines.append)
    assert lines
    assert all(str(line).startswith("score -") and line.value < 0 for line in lines)


@pytest.mark.parametrize("seed", range(20))
def test_elimination_finds_the_treewidth_of_small_graphs(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 8))
    pairs = {frozenset(pair) for pair in combinations(range(n), 2) if random.random() < 0.5}
    graph = moral_graph([[u for u in range(v) if frozenset((u, v)) in pairs] for v in range(n)])
    chords = {frozenset((u, v)) for u in range(n) for v in range(n) if graph[u, 0] >> np.uint64(v) & np.uint64(1)}
    least = min(width(order, chords) for order in permutations(range(n)))
    room = make_room(n)
    for k in range(n):
        assert eliminates(graph, k, room) == (k >= least)
        if k >= least:
            assert width(room.order.tolist(), chords) <= k


def test_odd_tables_are_answered():
    constant = np.zeros((20, 3), np.uint8)
    found = learn(constant, NetworkSearch(treewidth=2, time_limit=1))
    assert found.optimal
    alone = math.lgamma(20.5) - math.lgamma(0.5) - math.lgamma(21)
    # A constant parent betters the score of a constant child a little, because it spreads out the prior.
    assert 3 * alone < found.score < 0
    assert learn(np.array([[1, 0, 1, 1]]), NetworkSearch(treewidth=2, time_limit=1)).score == pytest.approx(
        4 * math.log(0.5)
    )
    assert learn(rows_of(1, 3), NetworkSearch(treewidth=50, time_limit=1)).optimal
    single = learn(np.array([[0], [1], [1]]), NetworkSearch(treewidth=1))
    assert single.parents == ((),)
    assert single.tables[0].tolist() == [[1, 2]]
    assert learn(rows_of(1, 4), NetworkSearch(treewidth=2, max_parents=0)).parents == ((),) * 4
    assert learn(rows_of(1, 4) == 1, NetworkSearch(treewidth=2, time_limit=1)).states == (2,) * 4
    assert learn(rows_of(1, 4), NetworkSearch(treewidth=2, time_limit=1), states=[2, 3, 4, 2]).states == (2, 3, 4, 2)


BITS = np.array([[0, 1], [1, 1]], np.uint8)


@pytest.mark.parametrize(
    ("table", "options", "kind", "text"),
    [
        (np.zeros((0, 3), np.uint8), {}, RowsError, "table: it has shape "),
        (np.zeros(3, np.uint8), {}, RowsError, "table: it has shape "),
        (np.array([[0.0, np.nan], [1.0, 1.0]]), {}, RowsError, "column 1: a value is missing"),
        (np.array([[0.5, 1.0]]), {}, RowsError, "table: values of type "),
        (np.array([["a", "b"]]), {}, RowsError, "table: values of type "),
        (np.array([[-1, 1]]), {}, RowsError, "table: values from "),
        (np.array([[0, 256]]), {}, RowsError, "table: values from "),
        (np.zeros((1, 9000), np.uint8), {}, RowsError, "9,000 columns"),
        (BITS, {"treewidth": 0}, OptionError, "treewidth: 0"),
        (BITS, {"max_parents": -1}, OptionError, "max_parents: -1"),
        (BITS, {"ess": 0.0}, OptionError, "ess: 0.0"),
        (BITS, {"method": "best"}, OptionError, "method: 'best' is unknown"),
        (BITS, {"time_limit": 0}, OptionError, "time_limit: 0"),
        (BITS, {"samples": 0}, OptionError, "samples: 0"),
        (BITS, {"states": [2]}, OptionError, "states: 1 numbers for 2 columns"),
        (BITS, {"states": [2, 1]}, OptionError, "column 1: 1 states, and the column shows 1"),
        (np.eye(60, dtype=np.uint8), {"method": "exact"}, OptionError, "method: exact for 60 columns"),
        (
            np.eye(60, dtype=np.uint8),
            {"max_parents": 12, "treewidth": 12},
            OptionError,
            "max_parents: 12 for 60 columns",
        ),
    ],
)
def test_bad_input_is_refused_by_name(table, options, kind, text):
    given = {"treewidth": 2, **options}
    states = given.pop("states", None)
    with pytest.raises(kind) as error:
        learn(table, NetworkSearch(**given), states=states)
    assert text in str(error.value)
