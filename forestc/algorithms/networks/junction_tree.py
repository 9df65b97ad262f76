"""Exact answers from a Bayesian network: probabilities of events, marginals, samples, the most probable configuration.

A junction tree (Lauritzen and Spiegelhalter 1988) with a clique for each variable, in the network's elimination order.
Calibrated, it holds P(variable | separator) of each clique: a network again, in which a variable's parents are
eliminated after it. So evidence makes another such tree, samples are drawn from the root down, and an event concerns
only the subtree that its variables span. Time of each pass: linear in the cells of all cliques, at most the number of
variables times (states)^(treewidth + 1).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms import junction_kernels as kernels
from forestc.algorithms.compiled import share_out
from forestc.algorithms.networks.bayesian_network import MOST_CELLS, BayesianNetwork
from forestc.algorithms.networks.junction_kernels import Cliques, Events
from forestc.errors import ModelError, OptionError

Event: TypeAlias = Mapping[int, int | Collection[int]]  # of each variable named, its state or the states allowed

MOST_JOINT = 2**20  # cells of a joint distribution
_DRAWS = 2**22  # random numbers at a time
_FEW = 64  # rows or events that one thread answers before others have started


class JunctionTree:
    """A calibrated junction tree of a network, possibly given evidence.

    Evidence and events are conjunctions: a mapping from variables to the state, or to the set of states, that each
    takes. An unknown variable or state raises OptionError, as does evidence of probability 0. The constructor raises
    ModelError if the cliques have more than 2^22 cells.
    """

    network: BayesianNetwork
    log_evidence: float  # the logarithm of the probability of all evidence given

    def __init__(self, network: BayesianNetwork) -> None:
        self.network = network
        self._place = np.empty(len(network.order), dtype=np.int64)
        self._place[list(network.order)] = np.arange(len(network.order))
        self._cliques = _cliques(network)
        self.log_evidence = 0.0
        self._logs = self._potentials()
        kernels.normalise(self._cliques, self._logs, kernels.collect(self._cliques, self._logs, False))

    def given(self, evidence: Event) -> JunctionTree:
        """The tree of the distribution given this evidence, besides any given before."""
        if not evidence:
            return self
        logs = self._restricted(evidence)
        messages = kernels.collect(self._cliques, logs, False)
        if messages[-1] == -np.inf:
            raise _impossible()
        kernels.normalise(self._cliques, logs, messages)
        tree = copy.copy(self)
        for name in ("_conditional", "_joint"):
            tree.__dict__.pop(name, None)
        tree._logs = logs
        tree.log_evidence = self.log_evidence + float(messages[-1])
        return tree

    def probability(self, event: Event) -> float:
        """The probability of the event, given the evidence of this tree."""
        return float(self.probabilities_of([event])[0])

    def log_probability(self, event: Event) -> float:
        """The natural logarithm of `probability`, also where that underflows; -inf if the event is impossible."""
        return float(kernels.collect(self._cliques, self._restricted(event), False)[-1])

    def probabilities_of(self, events: Sequence[Event]) -> NDArray[np.float64]:
        """The probability of each event, (events,). Takes time in proportion to the cells of the cliques on the paths
        between an event's variables: for thousands of events, as of the leaves of a forest."""
        return self._answer(self._encoded(events))

    def marginals(self, evidence: Event | None = None) -> tuple[NDArray[np.float64], ...]:
        """The distribution of each variable given the evidence, (states,) each."""
        tree = self.given(evidence or {})
        tables = (tree._table(tree._joint, place) for place in self._place.tolist())
        return tuple(table.reshape(-1, table.shape[-1]).sum(axis=0) for table in tables)

    def joint(self, variables: Sequence[int], evidence: Event | None = None) -> NDArray[np.float64]:
        """The joint distribution of a few variables given the evidence, with an axis for each, in their order.

        Where no clique holds them all, each cell is answered as an event. Raises OptionError for a variable named twice
        and for more than 2^20 cells.
        """
        states = self.network.states
        for i in variables:
            if not 0 <= i < len(states):
                raise OptionError(f"there is no variable {i}")
        if len(set(variables)) < len(variables):
            raise OptionError(f"the variables {list(variables)} are not different")
        shape = tuple(states[i] for i in variables)
        if prod(shape) > MOST_JOINT:
            raise OptionError(f"a joint distribution of {prod(shape)} cells, possible are {MOST_JOINT}")
        tree, places = self.given(evidence or {}), self._place[list(variables)].tolist()
        members = self._members(min(places)) if places else []
        if set(places) <= set(members):  # in one clique
            table = tree._table(tree._joint, min(places)) if places else np.ones(())
            kept = [place for place in members if place in places]
            within: NDArray[np.float64] = table.sum(
                axis=tuple(axis for axis, place in enumerate(members) if place not in places)
            )
            return within.transpose([kept.index(place) for place in places])
        state = np.indices(shape).reshape(len(shape), -1).T.ravel()
        start = np.arange(0, len(state) + 1, len(shape))
        events = Events(start, np.tile(np.array(places), prod(shape)), state, np.eye(max(shape), dtype=np.bool_))
        return tree._answer(events).reshape(shape)

    def sample(self, count: int, rng: np.random.Generator, evidence: Event | None = None) -> NDArray[np.uint8]:
        """Independent rows given the evidence, (count, variables)."""
        tree, order = self.given(evidence or {}), list(self.network.order)
        sums = kernels.cumulated(self._cliques, tree._conditional)
        rows = np.empty((count, len(order)), dtype=np.uint8)
        size = max(1, _DRAWS // len(order))
        for begin in range(0, count, size):
            uniform = rng.random((len(order), min(size, count - begin)))
            drawn = np.empty(uniform.shape, dtype=np.uint8)
            share_out(uniform.shape[1], partial(kernels.draw, self._cliques, sums, uniform, drawn), few=_FEW)
            rows[begin : begin + size] = drawn[self._place].T
        return rows

    def most_probable(self, evidence: Event | None = None) -> tuple[NDArray[np.uint8], float]:
        """A most probable configuration of all variables that agrees with the evidence, (variables,), and the natural
        logarithm of its probability (of the configuration, not given the evidence passed here)."""
        logs, cliques = self._restricted(evidence or {}), self._cliques
        best = float(kernels.collect(cliques, logs, True)[-1])
        if best == -np.inf:
            raise _impossible()
        found = np.zeros(len(cliques.parent), dtype=np.int64)
        for place in range(len(found) - 1, -1, -1):
            found[place] = np.argmax(self._table(logs, place)[tuple(found[self._members(place)[:-1]])])
        return found[self._place].astype(np.uint8), best

    def log_likelihood(self, rows: NDArray[np.uint8]) -> NDArray[np.float64]:
        """See `BayesianNetwork.log_likelihood`: of the network, whatever the evidence."""
        return self.network.log_likelihood(rows)

    def expected_log_likelihood(self, other: BayesianNetwork | JunctionTree) -> float:
        """The expected log-likelihood, under this tree's network, of a row drawn from another network, or tree given
        evidence, over the same variables. From its own tree: minus the entropy. Fast where each family of this network
        lies in a clique of the other tree; any other family takes as many events as its table has cells. Raises
        OptionError if the variables' states differ."""
        tree = JunctionTree(other) if isinstance(other, BayesianNetwork) else other
        if tree.network.states != self.network.states:
            raise OptionError("the two networks are not over the same variables")
        families = [(*parents, i) for i, parents in enumerate(self.network.parents)]
        joints = [tree.joint(family) for family in families]
        logs = [np.log(self.network.probabilities(i)) for i in range(len(families))]
        return float(sum(np.vdot(joint.reshape(log.shape), log) for joint, log in zip(joints, logs, strict=True)))

    @cached_property
    def _conditional(self) -> NDArray[np.float64]:
        """P(variable | separator) of all cliques."""
        table: NDArray[np.float64] = np.exp(self._logs)
        return table

    @cached_property
    def _joint(self) -> NDArray[np.float64]:
        """The joint probabilities of all cliques."""
        table: NDArray[np.float64] = kernels.distribute(self._cliques, self._conditional)
        return table

    def _members(self, place: int) -> list[int]:
        """The places in a clique, by the axes of its table."""
        return [*self._cliques.member[slice(*self._cliques.scope[place : place + 2])].tolist(), place]

    def _table(self, tables: NDArray[np.float64], place: int) -> NDArray[np.float64]:
        """A view of one clique's table, with an axis for each member."""
        begin, end = self._cliques.table[place : place + 2].tolist()
        table: NDArray[np.float64] = tables[begin:end].reshape(self._cliques.states[self._members(place)])
        return table

    def _potentials(self) -> NDArray[np.float64]:
        """The logarithms of the network's tables, each added to the clique of its earliest eliminated variable."""
        network = self.network
        logs = np.zeros(self._cliques.table[-1])
        for i, parents in enumerate(network.parents):
            family = self._place[[*parents, i]].tolist()
            place = min(family)
            strides = dict(zip(family, _strides(self._cliques.states[family]), strict=True))
            cell = _projected(self._cliques.states, self._members(place), strides)
            logs[slice(*self._cliques.table[place : place + 2])] += np.log(network.probabilities(i)).ravel()[cell]
        return logs

    def _restricted(self, event: Event) -> NDArray[np.float64]:
        """The logarithms of the conditionals, -inf where the event does not allow a state."""
        logs = self._logs.copy()
        events = self._encoded([event])
        for place, allowed in zip(events.place.tolist(), events.allowed, strict=True):
            table = self._table(logs, place)
            table[..., ~allowed[: table.shape[-1]]] = -np.inf
        return logs

    def _encoded(self, events: Sequence[Event]) -> Events:
        states = self.network.states
        start = np.cumsum([0, *map(len, events)])
        variable = np.fromiter(chain.from_iterable(events), dtype=np.int64, count=int(start[-1]))
        values = chain.from_iterable(event.values() for event in events)
        options = [(v,) if isinstance(v, int | np.integer) else v for v in values]
        for k in np.flatnonzero((variable < 0) | (variable >= len(states))).tolist():
            raise OptionError(f"there is no variable {variable[k]}", where=_event(start, k))
        literal = np.repeat(np.arange(len(options)), np.fromiter(map(len, options), dtype=np.int64, count=len(options)))
        state = np.fromiter(chain.from_iterable(options), dtype=np.int64, count=len(literal))
        for k in np.flatnonzero((state < 0) | (state >= np.array(states)[variable[literal]])).tolist():
            i = variable[literal[k]]
            what = f"there is no state {state[k]} of variable {i}, which has {states[i]}"
            raise OptionError(what, where=_event(start, literal[k]))
        allowed = np.zeros((len(options), max(states)), dtype=np.bool_)
        allowed[literal, state] = True
        return Events(start, self._place[variable], np.arange(len(options)), allowed)

    def _answer(self, events: Events) -> NDArray[np.float64]:
        found = np.empty(len(events.start) - 1)
        if len(found):
            share_out(
                len(found),
                partial(kernels.event_probabilities, self._cliques, self._conditional, self._joint, events, found),
                few=_FEW,
            )
        return found


def _impossible() -> OptionError:
    return OptionError("the evidence has probability 0", do="allow more states of its variables")


def _event(start: NDArray[np.int64], literal: int) -> str:
    return f"event {np.searchsorted(start, literal, side='right') - 1}"


def _cliques(network: BayesianNetwork) -> Cliques:
    n = len(network.order)
    states = np.array([network.states[i] for i in network.order], dtype=np.int64)
    scopes = network.separators
    parent = [scope[0] if scope else n - 1 for scope in scopes]  # components hang together at the last one
    parent[-1] = -1
    sizes = [prod(states[list(scope)].tolist()) for scope in scopes]
    cells = [size * r for size, r in zip(sizes, states.tolist(), strict=True)]
    if sum(cells) + sum(cells[above] for above in parent) > MOST_CELLS:
        raise ModelError(
            f"the junction tree has more than {MOST_CELLS} cells", do="learn a network of smaller treewidth"
        )
    strides = [_strides(states[list(scope)]) for scope in scopes]
    projected = [
        _projected(states, [*scopes[above], above], dict(zip(scope, stride, strict=True)))
        for above, scope, stride in zip(parent[:-1], scopes, strides, strict=False)
    ]
    return Cliques(
        parent=np.array(parent, dtype=np.int64),
        states=states,
        table=_starts(cells),
        message=_starts(sizes),
        projection=_starts([len(one) for one in projected]),
        projected=np.concatenate([np.zeros(0, dtype=np.uint32), *projected]),
        scope=_starts([len(scope) for scope in scopes]),
        member=np.fromiter(chain.from_iterable(scopes), dtype=np.int64),
        stride=np.fromiter(chain.from_iterable(strides), dtype=np.int64),
    )


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _strides(states: NDArray[np.int64]) -> list[int]:
    """Of each axis of a table of these states, the first slowest."""
    sizes = states.tolist()
    return [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


def _projected(states: NDArray[np.int64], members: Sequence[int], strides: Mapping[int, int]) -> NDArray[np.uint32]:
    """For each cell of a clique's table, the cell of another table over some of its members, of these strides."""
    cell = np.zeros((), dtype=np.uint32)
    for member in members:
        cell = np.add.outer(cell, np.arange(states[member], dtype=np.uint32) * np.uint32(strides.get(member, 0)))
    return cell.reshape(-1)
