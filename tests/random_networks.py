"""Draws random Bayesian networks, and enumerates their joint distribution."""

from __future__ import annotations

import itertools

import numpy as np

from forestc.papers.networks.bayesian_network import BayesianNetwork


def random_network(seed: int, most: int = 8, ess: float = 1.0) -> BayesianNetwork:
    """Draws up to `most` variables of 1 to 3 states, each with up to 3 parents of any number: the numbers are no
    topological order."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, most + 1))
    states = random.choice([1, 2, 2, 3], n)
    rank = random.permutation(n)
    parents = []
    for i in range(n):
        before = np.flatnonzero(rank < rank[i])
        parents.append(tuple(sorted(random.permutation(before)[: random.integers(0, 4)].tolist())))
    return with_counts(states.tolist(), parents, random, ess)


def random_tree_network(seed: int, n: int, width: int, most_states: int = 2) -> BayesianNetwork:
    """Draws n variables on a random k-tree of that width; some edges are left out."""
    random = np.random.default_rng(seed)
    cliques, parents = [tuple(range(width))], [tuple(range(i)) for i in range(width)]
    for i in range(width, n):
        base = cliques[random.integers(len(cliques))]
        parents.append(tuple(v for v in base if random.random() < 0.9))
        cliques += [tuple(sorted(set(base) - {v} | {i})) for v in base]
    names = random.permutation(n)
    named: list[tuple[int, ...]] = [()] * n
    for i, those in enumerate(parents):
        named[names[i]] = tuple(sorted(int(names[v]) for v in those))
    return with_counts(random.integers(2, most_states + 1, n).tolist(), named, random)


def with_counts(states, parents, random, ess=1.0):
    tables = []
    for i, r in enumerate(states):
        q = int(np.prod([states[v] for v in parents[i]], dtype=int))
        shares = random.dirichlet(np.full(r, 0.5), q)
        tables.append(np.floor(shares * random.integers(0, 60, (q, 1))).astype(np.int64))
    return BayesianNetwork(tuple(states), tuple(parents), tuple(tables), ess)


def enumerated(network: BayesianNetwork) -> np.ndarray:
    """Returns P(configuration) with an axis for each variable, by the definition."""
    joint = np.zeros(network.states)
    for x in itertools.product(*map(range, network.states)):
        p = 1.0
        for i, parents in enumerate(network.parents):
            row = 0
            for parent in parents:
                row = row * network.states[parent] + x[parent]
            count, total = int(network.tables[i][row, x[i]]), int(network.tables[i][row].sum())
            q, r = network.tables[i].shape
            p *= (count + network.ess / (q * r)) / (total + network.ess / q)
        joint[x] = p
    return joint


def random_event(states, random, least=0):
    """Draws a conjunction over some variables, of single states and of sets; returns it with the mask of its
    configurations."""
    chosen = random.permutation(len(states))[: random.integers(least, len(states) + 1)]
    event, mask = {}, np.ones(states, dtype=bool)
    for i in chosen.tolist():
        allowed = random.permutation(states[i])[: random.integers(1, states[i] + 1)].tolist()
        event[i] = allowed[0] if len(allowed) == 1 else [set, list, tuple, frozenset][random.integers(4)](allowed)
        column = np.isin(np.arange(states[i]), allowed)
        mask &= column.reshape([-1 if axis == i else 1 for axis in range(len(states))])
    return event, mask
