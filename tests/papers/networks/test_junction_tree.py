"""Tests inference against enumeration of small networks, and against pyAgrum on larger ones."""

from __future__ import annotations

import numpy as np
import pyagrum
import pytest
from example_counts import examples
from random_networks import enumerated, random_event, random_network, random_tree_network

from forestc.errors import ModelError, OptionError
from forestc.papers.networks import junction_tree
from forestc.papers.networks.bayesian_network import BayesianNetwork, counted
from forestc.papers.networks.junction_tree import JunctionTree

SMALL = range(examples(60))


def marginals(tree):
    """Returns the distribution of each variable."""
    states = tree.network.states
    return [tree.probabilities_of([{i: k} for k in range(r)]) for i, r in enumerate(states)]


def any_order(network, seed):
    """Returns the same network with a random elimination order, which must give the same answers."""
    order = tuple(np.random.default_rng(seed).permutation(len(network.states)).tolist())
    return BayesianNetwork(network.states, network.parents, network.tables, network.ess, order=order)


@pytest.mark.parametrize("seed", SMALL)
def test_events_and_marginals_given_evidence(seed):
    random = np.random.default_rng(seed)
    network = any_order(random_network(seed, ess=[1.0, 0.01][seed % 2]), seed)
    joint, tree = enumerated(network), JunctionTree(network)
    events, masks = zip(*[random_event(network.states, random) for _ in range(30)], strict=True)
    assert np.allclose(tree.probabilities_of(events), [joint[mask].sum() for mask in masks], rtol=1e-12)
    evidence, possible = random_event(network.states, random)
    posterior, given = joint * possible / joint[possible].sum(), tree.given(evidence)
    for i, found in enumerate(marginals(given)):
        others = tuple(axis for axis in range(joint.ndim) if axis != i)
        assert np.allclose(found, posterior.sum(axis=others), rtol=1e-12, atol=1e-15)
    assert np.allclose(given.probabilities_of(events), [posterior[mask].sum() for mask in masks], rtol=1e-12)


@pytest.mark.parametrize("seed", SMALL)
def test_evidence_in_steps_is_the_evidence_together(seed):
    random = np.random.default_rng(seed)
    network = random_network(seed)
    tree = JunctionTree(network)
    evidence, _ = random_event(network.states, random)
    items = list(evidence.items())
    whole = tree.given(evidence)
    steps = tree.given(dict(items[::2])).given(dict(items[1::2]))
    for a, b in zip(marginals(steps), marginals(whole), strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-15)
    for a, b in zip(marginals(tree), marginals(JunctionTree(network)), strict=True):
        assert np.array_equal(a, b)  # The tree itself is unchanged.


def chi_square_excess(observed, expected):
    """Returns by how many standard deviations the chi-square statistic exceeds its mean. Cells with fewer than 5
    expected rows are pooled."""
    few = expected < 5
    observed = np.append(observed[~few], observed[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    held = expected > 0
    degrees = max(1, held.sum() - 1)
    return (((observed[held] - expected[held]) ** 2 / expected[held]).sum() - degrees) / np.sqrt(2 * degrees)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_samples_follow_the_conditional_distribution(seed):
    random = np.random.default_rng(seed)
    network = any_order(random_network(seed, 6), seed)
    joint, (evidence, possible) = enumerated(network), random_event(network.states, random)
    rows = JunctionTree(network).sample(20_000, random, evidence)
    assert rows.shape == (20_000, len(network.states)) and rows.dtype == np.uint8
    observed = np.zeros(joint.shape)
    np.add.at(observed, tuple(rows.T), 1)
    assert not observed[~possible].any()
    assert chi_square_excess(observed.ravel(), (20_000 * joint * possible / joint[possible].sum()).ravel()) < 6


def test_samples_are_drawn_in_batches_and_repeat_with_the_seed(monkeypatch):
    tree = JunctionTree(random_tree_network(3, 30, 3))
    whole = tree.sample(4000, np.random.default_rng(7))
    assert np.array_equal(whole, tree.sample(4000, np.random.default_rng(7)))
    monkeypatch.setattr(junction_tree, "_DRAWS", 30 * 1500)
    parts = tree.sample(4000, np.random.default_rng(7))
    assert parts.shape == whole.shape
    exact = np.array([marginal[1] for marginal in marginals(tree)])
    for rows in (whole, parts):
        assert np.all(np.abs(rows.mean(axis=0) - exact) < 6 * np.sqrt(exact * (1 - exact) / 4000))
    assert tree.sample(0, np.random.default_rng(7)).shape == (0, 30)


def agrum(network):
    """Returns the network in pyAgrum, which also has a row of a table for each configuration of the parents."""
    made = pyagrum.BayesNet()
    for i, r in enumerate(network.states):
        made.add(pyagrum.LabelizedVariable(f"v{i}", "", r))
    for i, parents in enumerate(network.parents):
        for parent in parents:
            made.addArc(f"v{parent}", f"v{i}")
        for row, distribution in enumerate(network.probabilities(i)):
            at, rest = {}, row
            for parent in reversed(parents):
                rest, at[f"v{parent}"] = divmod(rest, network.states[parent])
            made.cpt(f"v{i}")[at] = distribution.tolist()
    return made


@pytest.mark.parametrize(("n", "width", "states"), [(50, 5, 2), (80, 3, 3), (100, 4, 2)])
def test_larger_networks_against_pyagrum(n, width, states):
    network = random_tree_network(n, n, width, states)
    tree, reference = JunctionTree(network), pyagrum.LazyPropagation(agrum(network))
    random = np.random.default_rng(n)
    row = tree.sample(1, random)[0]  # The evidence is possible, but rare.
    for count in (0, 1, 5, n // 2):
        chosen = random.permutation(n)[:count].tolist()
        evidence = {i: int(row[i]) for i in chosen}
        allowed = {i: sorted({0, int(row[i])}) if k % 2 else int(row[i]) for k, i in enumerate(chosen)}
        for given in (evidence, allowed):
            likely = {
                f"v{i}": [float(k in np.atleast_1d(v)) for k in range(network.states[i])] for i, v in given.items()
            }
            reference.setEvidence(likely)
            reference.makeInference()
            probability = reference.evidenceProbability()
            assert tree.probabilities_of([given])[0] == pytest.approx(probability, rel=1e-9)
            for i, found in enumerate(marginals(tree.given(given))):
                assert np.allclose(found, reference.posterior(f"v{i}").tolist(), rtol=1e-9, atol=1e-12)


def test_many_events_of_a_large_network():
    network = random_tree_network(5, 400, 4)
    tree = JunctionTree(network)
    random = np.random.default_rng(5)
    rows = tree.sample(300, random)
    events = [{int(i): int(row[i]) for i in random.permutation(400)[:20]} for row in rows]
    found = tree.probabilities_of(events)
    assert np.allclose(found, [tree.probabilities_of([event])[0] for event in events], rtol=1e-9)
    assert np.array_equal(found[::-1], tree.probabilities_of(events[::-1]))
    assert len(tree.probabilities_of([])) == 0


def test_thousands_of_variables_do_not_underflow():
    """Uses a class and 3000 features, each four times likelier to agree with the class: intermediate odds underflow."""
    n = 3000
    tables = (np.array([[50, 50]]), *[np.array([[80, 20], [20, 80]])] * n)
    tree = JunctionTree(BayesianNetwork((2,) * (n + 1), ((), *[(0,)] * n), tables, ess=1e-20))
    agreeing = {i: int(i > 1501) for i in range(1, n + 1)}  # 1501 features speak for class 0, 1499 for class 1.
    given = tree.given(agreeing)
    assert np.allclose(given.probabilities_of([{0: 0}, {0: 1}]), [16 / 17, 1 / 17], rtol=1e-9)
    assert tree.probabilities_of([agreeing])[0] == 0.0


def test_variables_that_are_not_connected():
    network = BayesianNetwork((2, 3, 1), ((), (), ()), (np.array([[3, 1]]), np.array([[1, 2, 3]]), np.array([[4]])))
    tree = JunctionTree(network)
    p, q = network.probabilities(0)[0], network.probabilities(1)[0]
    found = tree.probabilities_of([{0: 1, 1: {0, 2}, 2: 0}, {0: 0, 1: 2}])
    assert np.allclose(found, [p[1] * (q[0] + q[2]), p[0] * q[2]], rtol=1e-12)


def test_events_that_are_certain_or_impossible():
    tree = JunctionTree(random_network(4))
    assert tree.probabilities_of([{}, {0: ()}, {0: range(tree.network.states[0])}]).tolist() == pytest.approx([1, 0, 1])
    text = "evidence: it has probability 0"
    for ask in (lambda: tree.given({0: ()}), lambda: tree.sample(3, np.random.default_rng(0), {0: set()})):
        with pytest.raises(OptionError) as error:
            ask()
        assert str(error.value).startswith(text)
    pair = JunctionTree(counted(np.array([[0, 0], [1, 1]], dtype=np.uint8), [(), (0,)], [2, 2])).given({0: 1})
    assert pair.probabilities_of([{0: 0}])[0] == 0.0
    with pytest.raises(OptionError, match="evidence: it has probability 0"):
        pair.given({0: 0})


def test_a_sampled_state_is_possible_whatever_the_random_number():
    class Highest:
        def random(self, shape):
            return np.full(shape, np.nextafter(1.0, 0.0))

    network = BayesianNetwork((3, 2), ((), (0,)), (np.array([[1, 1, 9]]), np.ones((3, 2), dtype=int)))
    rows = JunctionTree(network).sample(5, Highest(), {0: {0, 1}, 1: 0})
    assert rows.tolist() == [[1, 0]] * 5


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda tree: tree.probabilities_of([{0: 1}, {0: 1, 2: 0}]), "event 1: there is no variable 2"),
        (lambda tree: tree.probabilities_of([{-1: 1}]), "event 0: there is no variable -1"),
        (lambda tree: tree.probabilities_of([{1: 3}]), "event 0: there is no state 3 of variable 1, which has 3"),
        (lambda tree: tree.given({1: {0, -1}}), "event 0: there is no state -1 of variable 1, which has 3"),
    ],
)
def test_questions_that_are_refused(ask, text):
    tree = JunctionTree(counted(np.zeros((1, 2), dtype=np.uint8), [(), (0,)], [2, 3]))
    with pytest.raises(OptionError) as error:
        ask(tree)
    assert str(error.value).startswith(text)


def test_sizes_that_are_refused():
    # Each table is small, but eliminating the one parent of all first makes one clique of them.
    wide = counted(np.zeros((1, 4), dtype=np.uint8), [(), (0,), (0,), (0,)], [256] * 4, order=(0, 1, 2, 3))
    with pytest.raises(ModelError) as error:
        JunctionTree(wide)
    assert str(error.value).startswith("junction tree: ") and "4194304 cells" in str(error.value)
