"""Tests the value type of Bayesian networks: checks, probabilities, counts of rows, elimination orders, and the text
form."""

from __future__ import annotations

import itertools
from math import inf, nan

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import enumerated, random_network, random_tree_network

from forestc.errors import ForestcError, ModelError, OptionError, RowsError
from forestc.papers.networks.bayesian_network import BayesianNetwork, counted
from forestc.papers.networks.elimination_order import min_fill_order, moral_graph, separators
from forestc.papers.networks.text import parsed, printed

ONE, TWO = np.array([[3, 1]]), np.array([[1, 2], [0, 4]])
FIELDS = {"states": (2, 2), "parents": ((), (0,)), "tables": (ONE, TWO)}


def network(**changes):
    return BayesianNetwork(**(FIELDS | changes))


def test_probabilities_are_posterior_means():
    found = network(ess=2.0)
    assert np.array_equal(found.probabilities(0), [[4 / 6, 2 / 6]])
    assert np.array_equal(found.probabilities(1), [[1.5 / 4, 2.5 / 4], [0.5 / 5, 4.5 / 5]])


def test_tables_are_copied_and_read_only():
    mine = ONE.copy()
    found = network(tables=(mine, TWO))
    mine[0, 0] = 7
    assert found.tables[0][0, 0] == 3
    with pytest.raises(ValueError, match="read-only"):
        found.tables[0][0, 0] = 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"states": (), "parents": (), "tables": ()}, "states: a network needs at least one variable"),
        ({"parents": ((),)}, "parents: 1 for 2 variables"),
        ({"states": (2, 257)}, "variable 1: 257 states, possible are 1 to 256"),
        ({"parents": ((), (1,))}, "variable 1: parents [1] are not other variables of the network"),
        ({"parents": ((), (2,))}, "variable 1: parents [2] are not other variables of the network"),
        ({"parents": ((), (0, 0))}, "variable 1: parents [0, 0] are not increasing"),
        ({"parents": ((1,), (0,))}, "variable 0: the parents make a cycle: 0 -> 1 -> 0"),
        ({"tables": (ONE,)}, "tables: 1 for 2 variables"),
        ({"tables": (ONE, ONE)}, "variable 1: the table has shape (1, 2) instead of (2, 2)"),
        ({"tables": (-ONE, TWO)}, "variable 0: the table has cells that are not counts (0 to 2^53)"),
        ({"tables": (ONE / 2, TWO)}, "variable 0: the table has cells that are not counts (0 to 2^53)"),
        ({"tables": (ONE * 2**60, TWO)}, "variable 0: the table has cells that are not counts (0 to 2^53)"),
        ({"ess": 0.0}, "ess: 0.0 is not a positive number"),
        ({"ess": nan}, "ess: nan is not a positive number"),
        (
            {"order": (0, 0)},
            "order: it does not name every variable once",
        ),
    ],
)
def test_what_is_not_a_network_is_refused(changes, text):
    with pytest.raises(ModelError) as error:
        network(**changes)
    assert str(error.value).startswith(text)


def test_a_long_cycle_is_named_by_its_edges():
    parents = ((), (0, 3), (1,), (2,), (3,))
    with pytest.raises(ModelError, match=r"variable 1: the parents make a cycle: 1 -> 2 -> 3 -> 1"):
        counted(np.zeros((1, 5), dtype=np.uint8), parents, [2] * 5)


def test_networks_too_large_are_refused():
    with pytest.raises(ModelError) as error:
        counted(np.zeros((1, 24), dtype=np.uint8), [()] * 23 + [range(23)], [2] * 24)
    assert str(error.value) == "variable 23: the tables have more than 4194304 cells; allow fewer parents"
    with pytest.raises(ModelError) as error:  # Each table has half of the most cells, and a few more.
        counted(np.zeros((1, 23), dtype=np.uint8), [()] * 20 + [range(20)] * 3, [2] * 23)
    assert str(error.value) == "variable 21: the tables have more than 4194304 cells; allow fewer parents"
    grid = [tuple(v for v in (i - 1 if i % 25 else -1, i - 25) if v >= 0) for i in range(625)]
    with pytest.raises(ModelError) as error:
        counted(np.zeros((1, 625), dtype=np.uint8), grid, [2] * 625, order=range(625))
    assert str(error.value).startswith("order: ") and "width 21" in str(error.value)


def treewidth(neighbors):
    """Returns the least width of any elimination order."""
    n = len(neighbors)
    return min(max(map(len, separators(neighbors, order))) for order in itertools.permutations(range(n)))


def by_simulation(neighbors, order):
    """Finds the separators by joining neighbors in the graph itself."""
    graph, found = [set(those) for those in neighbors], []
    for v in order:
        found.append(tuple(sorted(order.index(u) for u in graph[v])))
        for u in graph[v]:
            graph[u] = (graph[u] | graph[v]) - {u, v}
    return tuple(found)


@pytest.mark.parametrize("seed", range(examples(40)))
def test_elimination_on_small_graphs(seed):
    neighbors = moral_graph(random_network(seed, 6).parents)
    for child, those in enumerate(random_network(seed, 6).parents):
        assert all(b in neighbors[a] for a, b in itertools.permutations((*those, child), 2))
    order = min_fill_order(neighbors)
    found = separators(neighbors, order)
    assert found == by_simulation(neighbors, order)
    assert treewidth(neighbors) <= max(map(len, found)) <= treewidth(neighbors) + 1


@pytest.mark.parametrize("seed", range(examples(20)))
def test_each_variable_eliminated_joins_the_fewest_pairs(seed):
    random = np.random.default_rng(seed)
    graph = [set() for _ in range(25)]
    for a, b in random.integers(0, 25, (45, 2)).tolist():
        if a != b:
            graph[a].add(b)
            graph[b].add(a)
    left = set(range(25))
    for v in min_fill_order(graph):
        pairs = {u: sum(b not in graph[a] for a, b in itertools.combinations(graph[u], 2)) for u in left}
        assert (pairs[v], len(graph[v])) == min((pairs[u], len(graph[u])) for u in left)
        for u in graph[v]:
            graph[u] = (graph[u] | graph[v]) - {u, v}
        left.remove(v)


def test_min_fill_finds_the_width_of_a_k_tree_and_of_a_star():
    assert random_tree_network(1, 200, 4).treewidth == 4
    star = BayesianNetwork((2,) * 3001, ((), *[(0,)] * 3000), (ONE, *[TWO] * 3000))
    assert star.treewidth == 1


@pytest.mark.parametrize("seed", range(examples(20)))
def test_counts_and_log_likelihood_of_rows(seed):
    source = random_network(seed)
    random = np.random.default_rng(seed)
    rows = np.array([random.integers(0, source.states) for _ in range(50)], dtype=np.uint8)
    found = counted(rows, source.parents, source.states, ess=0.5, order=source.order)
    assert found.order == source.order
    for i, parents in enumerate(source.parents):
        expected = np.zeros([source.states[v] for v in (*parents, i)], dtype=int)
        for row in rows:
            expected[tuple(row[[*parents, i]])] += 1
        assert np.array_equal(found.tables[i], expected.reshape(found.tables[i].shape))
    joint = enumerated(found)
    assert np.allclose(found.log_likelihood(rows), [np.log(joint[tuple(row)]) for row in rows], rtol=1e-12)


def test_counted_takes_parents_in_any_order_and_many_rows():
    rows = np.random.default_rng(0).integers(0, 2, (20_000, 3), dtype=np.uint8)
    found = counted(rows, [(), (), (1, 0)], [2, 2, 2])
    assert found.parents[2] == (0, 1)
    assert found.tables[2][2, 1] == np.sum((rows[:, 0] == 1) & (rows[:, 1] == 0) & (rows[:, 2] == 1))
    whole, parts = found.log_likelihood(rows), [found.log_likelihood(part) for part in np.array_split(rows, 7)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert len(found.log_likelihood(rows[:0])) == 0


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (np.zeros((4, 3), dtype=np.uint8), "rows: they have shape (4, 3), and the network has 2 variables"),
        (np.zeros(2, dtype=np.uint8), "rows: they have shape (2,), and the network has 2 variables"),
        (np.full((4, 2), 0.5), "rows: states of type float64 are no whole numbers"),
        (np.array([[0, 0], [1, 2]], dtype=np.uint8), "row 1, variable 1: state 2 of 2"),
        (np.array([[0, 0], [1, 1], [-1, 0]]), "row 2, variable 0: state -1 of 2"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, text):
    for ask in (network().log_likelihood, lambda rows: counted(rows, FIELDS["parents"], FIELDS["states"])):
        with pytest.raises(RowsError) as error:
            ask(rows)
        assert str(error.value).startswith(text)


def test_small_counts_are_withheld():
    found = network(score=-7.0, order=(1, 0)).with_least_count(3)
    assert [table.tolist() for table in found.tables] == [[[3, 0]], [[0, 0], [0, 4]]]
    assert np.array_equal(found.probabilities(1)[0], [0.5, 0.5])
    assert (found.score, found.order) == (-7.0, (1, 0))
    with pytest.raises(OptionError) as error:
        network().with_least_count(-1)
    assert str(error.value).startswith("least_count: ")


TEXT = """\
bayesian-network 1
ess 1.0
score -5231.25
bound inf
optimal no
order 2 0 1
0 states 2 parents: 812 88
1 states 2 parents 0: 812 -2 88
2 states 3 parents 0 1: -6 700 12
"""


def test_the_text_form():
    found = parsed(TEXT)
    assert printed(found) == TEXT
    assert found.states == (2, 2, 3) and found.parents == ((), (0,), (0, 1)) and found.order == (2, 0, 1)
    assert found.tables[2].tolist() == [[0, 0, 0], [0, 0, 0], [700, 12, 0], [0, 0, 0]]
    assert (found.ess, found.score, found.bound, found.optimal) == (1.0, -5231.25, inf, False)


def same(a, b):
    return (
        (a.states, a.parents, a.order, a.optimal) == (b.states, b.parents, b.order, b.optimal)
        and np.array_equal([a.ess, a.score, a.bound], [b.ess, b.score, b.bound], equal_nan=True)
        and all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(a.tables, b.tables, strict=True))
    )


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 10**6),
    st.floats(1e-30, 1e30),
    st.floats(),
    st.floats(),
    st.booleans(),
    st.sampled_from([0, 1, 5, 2**53]),
)
def test_round_trip(seed, ess, score, bound, optimal, scale):
    made = random_network(seed)
    tables = tuple(np.minimum(table * scale, 2**53) if scale < 2**53 else (table > 0) * scale for table in made.tables)
    made = BayesianNetwork(made.states, made.parents, tables, ess, score, bound, optimal, made.order)
    assert same(parsed(printed(made)), made)
    assert printed(parsed(printed(made))) == printed(made)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            "bayesian-network 1",
            "bayesian-network 2",
            "line 1: the text does not start with 'bayesian-network 1'; "
            "give the text of a Bayesian network, written by this version of forestc",
        ),
        ("ess 1.0", "ess one", "line 2: expected ess, found 'ess one'"),
        ("ess 1.0", "ess 1e-e", "line 2: '1e-e' is not a number"),
        ("ess 1.0", "ess 0.0", "ess: 0.0 is not a positive number"),
        ("bound inf\n", "", "line 4: expected bound, found 'optimal no'"),
        ("optimal no", "optimal maybe", "line 5: expected optimal, found 'optimal maybe'"),
        ("order 2 0 1", "order 2 0 1 3", "line 6: 3 variables instead of the 4 of the order"),
        (
            "order 2 0 1",
            "order 2 0 2",
            "order: it does not name every variable once",
        ),
        ("1 states 2", "5 states 2", "line 8: expected variable 1, found '5 states 2 parents 0: 812 -2 88'"),
        ("812 88", "812 x", "line 7: expected variable 0, found '0 states 2 parents: 812 x'"),
        ("812 88", "812 0", "line 7: expected variable 0, found '0 states 2 parents: 812 0'"),
        ("812 88", "812 \u0663", "line 7: expected variable 0, found '0 states 2 parents: 812 \u0663'"),
        ("812 88", "812 88 1", "line 7: more counts than the 2 cells of the table"),
        ("812 -2 88", "812 -4 88", "line 8: more counts than the 4 cells of the table"),
        ("812 -2 88", "-999999999999999 1", "line 8: more counts than the 4 cells of the table"),
        ("812 88", "9007199254740993", "line 7: the count 9007199254740993 is above 2^53"),
        ("parents 0 1:", "parents 0 2:", "variable 2: parents [0, 2] are not other variables of the network"),
        ("2 states 3", "2 states 999", "variable 2: 999 states, possible are 1 to 256"),
    ],
)  # fmt: skip
def test_other_texts_are_refused(old, new, text):
    assert old in TEXT
    with pytest.raises(ModelError) as error:
        parsed(TEXT.replace(old, new, 1))
    assert str(error.value).startswith(text)


def test_a_short_text_takes_little_memory():
    lines = [f"{i} states 256 parents:" for i in range(20)] + [
        f"20 states 256 parents {' '.join(map(str, range(20)))}:"
    ]
    header = f"bayesian-network 1\ness 1.0\nscore nan\nbound inf\noptimal no\norder {' '.join(map(str, range(21)))}\n"
    with pytest.raises(ModelError) as error:
        parsed(header + "\n".join(lines))
    assert str(error.value) == "variable 20: the tables have more than 4194304 cells; allow fewer parents"


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_damaged_texts_are_parsed_or_refused(data):
    text = TEXT
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 4))
        text = text[:at] + data.draw(st.text(alphabet="0123456789 -:.\nnaief\u0663", max_size=4)) + text[at + cut :]
    try:
        found = parsed(text)
    except ForestcError:
        return
    assert same(parsed(printed(found)), found)
