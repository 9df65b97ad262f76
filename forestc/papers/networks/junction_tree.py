"""Computes exact probabilities of events in a Bayesian network, and draws samples, with or without evidence, by a
junction tree (Lauritzen and Spiegelhalter 1988). Cliques are indexed by position in the elimination order."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Bytes, Floats, Ints
from forestc.errors import ModelError, OptionError
from forestc.papers.networks.bayesian_network import MOST_CELLS, BayesianNetwork
from forestc.system.compiled import compiled, share_out


class Cliques(NamedTuple):
    """The shape of a junction tree with n cliques; children come before their parents."""

    parent: Ints  # (n,) index of the parent, -1 for the root
    states: Ints  # (n,) number of states of each variable
    table: Ints  # (n + 1,) start of each table
    message: Ints  # (n + 1,) start of each message
    projection: Ints  # (n,) start of each clique's entries in `projected`; the root has none
    projected: NDArray[np.uint32]  # entry of the message for each cell of the parent's table
    scope: Ints  # (n + 1,) start of each clique in `member` and `stride`
    member: Ints  # positions of each clique's later neighbors
    stride: Ints  # stride of each later neighbor in the message


class Events(NamedTuple):
    """Events: allowed states of some variables, as flat arrays."""

    start: Ints  # (events + 1,) start of each event's literals
    position: Ints  # (literals,) position of the variable
    row: Ints  # (literals,) row of `allowed`
    allowed: Bits  # (literals, states) True if the state is allowed


@compiled()
def collect(cliques: Cliques, logs: Floats) -> Any:
    """Adds the messages from the leaves to the root to the tables of logarithms, in place. Returns the messages."""
    messages = np.empty(cliques.message[-1])
    n = len(cliques.parent)
    for position in range(n):
        r, begin = cliques.states[position], cliques.message[position]
        for entry in range(cliques.message[position + 1] - begin):
            row = cliques.table[position] + entry * r
            best = logs[row]
            for k in range(1, r):
                best = max(best, logs[row + k])
            if best > -np.inf:
                total = 0.0
                for k in range(r):
                    total += np.exp(logs[row + k] - best)
                best += np.log(total)
            messages[begin + entry] = best
        if position < n - 1:
            above, project = cliques.table[cliques.parent[position]], cliques.projection[position]
            for cell in range(cliques.table[cliques.parent[position] + 1] - above):
                logs[above + cell] += messages[begin + cliques.projected[project + cell]]
    return messages


@compiled()
def normalize(cliques: Cliques, logs: Floats, messages: Floats) -> None:
    """Turns the tables after `collect` into logarithms of P(variable | later neighbors), in place."""
    for position in range(len(cliques.parent)):
        r, begin = cliques.states[position], cliques.message[position]
        for entry in range(cliques.message[position + 1] - begin):
            row, total = cliques.table[position] + entry * r, messages[begin + entry]
            if total > -np.inf:
                for k in range(r):
                    logs[row + k] -= total


@compiled()
def distribute(cliques: Cliques, conditional: Floats) -> Any:
    """Returns the joint probabilities of the states of each clique, concatenated."""
    joint = np.empty(len(conditional))
    n = len(cliques.parent)
    for position in range(n - 1, -1, -1):
        weights = np.zeros(cliques.message[position + 1] - cliques.message[position])
        if position == n - 1:
            weights[0] = 1.0
        else:
            above, project = cliques.table[cliques.parent[position]], cliques.projection[position]
            for cell in range(cliques.table[cliques.parent[position] + 1] - above):
                weights[cliques.projected[project + cell]] += joint[above + cell]
        r = cliques.states[position]
        for entry in range(len(weights)):
            row = cliques.table[position] + entry * r
            for k in range(r):
                joint[row + k] = conditional[row + k] * weights[entry]
    return joint


@compiled()
def cumulated(cliques: Cliques, conditional: Floats) -> Any:
    """Returns cumulative conditional probabilities over the states; inf from the last possible state on, so that
    rounding never draws an impossible state."""
    sums = np.empty(len(conditional))
    for position in range(len(cliques.parent)):
        r = cliques.states[position]
        for row in range(cliques.table[position], cliques.table[position + 1], r):
            total, last = 0.0, 0
            for k in range(r):
                total += conditional[row + k]
                sums[row + k] = total
                if conditional[row + k] > 0:
                    last = k
            sums[row + last : row + r] = np.inf
    return sums


@compiled()
def draw(cliques: Cliques, sums: Floats, uniform: Floats, drawn: Bytes, first: int, past: int) -> None:
    """Writes random states to `drawn`, (n, rows), for the rows first .. past - 1. uniform: (n, rows) random numbers in
    [0, 1)."""
    cell = np.empty(past - first, dtype=np.int64)
    for position in range(len(cliques.parent) - 1, -1, -1):
        r = cliques.states[position]
        cell[:] = cliques.table[position]
        for k in range(cliques.scope[position], cliques.scope[position + 1]):
            member, step = cliques.member[k], cliques.stride[k] * r
            for row in range(first, past):
                cell[row - first] += step * drawn[member, row]
        for row in range(first, past):
            at, u, state = cell[row - first], uniform[position, row], 0
            while u >= sums[at + state]:
                state += 1
            drawn[position, row] = state


@compiled()
def event_probabilities(
    cliques: Cliques, conditional: Floats, joint: Floats, events: Events, probability: Floats, first: int, past: int
) -> None:
    """Writes the probabilities of the events first .. past - 1 to `probability`, (events,)."""
    n = len(cliques.parent)
    work = np.empty(len(conditional))  # tables times the messages received so far
    # Three arrays hold the last event that reached, began or passed each clique.
    reached, begun, passed = np.full(n, -1), np.full(n, -1), np.full(n, -1)
    waiting, literal = np.zeros(n, dtype=np.int64), np.full(n, -1)
    message = np.empty(np.max(cliques.message[1:] - cliques.message[:-1]))
    for event in range(first, past):
        begin, end = events.start[event], events.start[event + 1]
        if begin == end:
            probability[event] = 1.0
            continue
        top = events.position[begin]
        for k in range(begin + 1, end):  # finds the lowest common ancestor; parents have later positions
            other = events.position[k]
            while top != other:
                if top < other:
                    top = cliques.parent[top]
                else:
                    other = cliques.parent[other]
        reached[top] = event
        for k in range(begin, end):
            position = events.position[k]
            literal[position] = events.row[k]
            while reached[position] != event:
                reached[position] = event
                position = cliques.parent[position]
                waiting[position] += 1
        for k in range(begin, end):
            position = events.position[k]
            while waiting[position] == 0 and passed[position] != event:
                passed[position] = event
                r = cliques.states[position]
                entries = cliques.message[position + 1] - cliques.message[position]
                values = work if begun[position] == event else (joint if position == top else conditional)
                table = values[cliques.table[position] : cliques.table[position + 1]]
                allows = literal[position]
                literal[position] = -1
                message[:entries] = 0.0
                for state in range(r):
                    if allows < 0 or events.allowed[allows, state]:
                        for entry in range(entries):
                            message[entry] += table[entry * r + state]
                if position == top:
                    probability[event] = np.sum(message[:entries])
                    break
                above = cliques.parent[position]
                values = work if begun[above] == event else (joint if above == top else conditional)
                begun[above] = event
                table = values[cliques.table[above] : cliques.table[above + 1]]
                target = work[cliques.table[above] : cliques.table[above + 1]]
                project = cliques.projected[cliques.projection[position] : cliques.projection[position + 1]]
                for cell in range(len(target)):
                    target[cell] = table[cell] * message[project[cell]]
                position = above
                waiting[position] -= 1


# Maps each variable of the event to its state or its allowed states.
Event: TypeAlias = Mapping[int, int | Collection[int]]

_DRAWS = 2**22  # draws at most this many random numbers at a time
_FEW = 64  # rows or events for which threads are not worth starting


class JunctionTree:
    """A junction tree of a network, possibly given evidence. Methods raise OptionError for unknown variables and
    states."""

    network: BayesianNetwork

    def __init__(self, network: BayesianNetwork) -> None:
        self.network = network
        self._position = np.empty(len(network.order), dtype=np.int64)
        self._position[list(network.order)] = np.arange(len(network.order))
        self._cliques = _cliques(network)
        self._logs = self._potentials()
        normalize(self._cliques, self._logs, collect(self._cliques, self._logs))

    def given(self, evidence: Event) -> JunctionTree:
        """Returns the tree given this evidence, in addition to earlier evidence. Raises OptionError if the evidence has
        probability 0."""
        if not evidence:
            return self
        logs = self._restricted(evidence)
        messages = collect(self._cliques, logs)
        if messages[-1] == -np.inf:
            raise OptionError("it has probability 0", where="evidence", do="allow more states of its variables")
        normalize(self._cliques, logs, messages)
        tree = copy.copy(self)
        for name in ("_conditional", "_joint"):
            tree.__dict__.pop(name, None)
        tree._logs = logs
        return tree

    def probabilities_of(self, events: Sequence[Event]) -> Floats:
        """Returns the probability of each event, (events,)."""
        encoded, probability = self._encoded(events), np.empty(len(events))
        if len(probability):
            answer = partial(event_probabilities, self._cliques, self._conditional, self._joint, encoded, probability)
            share_out(len(probability), answer, few=_FEW)
        return probability

    def sample(self, count: int, rng: np.random.Generator, evidence: Event | None = None) -> Bytes:
        """Returns independent random rows given the evidence, (count, variables)."""
        tree, order = self.given(evidence or {}), list(self.network.order)
        sums = cumulated(self._cliques, tree._conditional)
        rows = np.empty((count, len(order)), dtype=np.uint8)
        size = max(1, _DRAWS // len(order))
        for begin in range(0, count, size):
            uniform = rng.random((len(order), min(size, count - begin)))
            drawn = np.empty(uniform.shape, dtype=np.uint8)
            share_out(uniform.shape[1], partial(draw, self._cliques, sums, uniform, drawn), few=_FEW)
            rows[begin : begin + size] = drawn[self._position].T
        return rows

    @cached_property
    def _conditional(self) -> Floats:
        table: Floats = np.exp(self._logs)
        return table

    @cached_property
    def _joint(self) -> Floats:
        table: Floats = distribute(self._cliques, self._conditional)
        return table

    def _members(self, position: int) -> list[int]:
        return [*self._cliques.member[slice(*self._cliques.scope[position : position + 2])].tolist(), position]

    def _table(self, tables: Floats, position: int) -> Floats:
        begin, end = self._cliques.table[position : position + 2].tolist()
        table: Floats = tables[begin:end].reshape(self._cliques.states[self._members(position)])
        return table

    def _potentials(self) -> Floats:
        """Returns the logarithms of the network's tables, added up by clique."""
        network = self.network
        logs = np.zeros(self._cliques.table[-1])
        for i, parents in enumerate(network.parents):
            family = self._position[[*parents, i]].tolist()
            position = min(family)
            strides = dict(zip(family, _strides(self._cliques.states[family]), strict=True))
            cell = _projected(self._cliques.states, self._members(position), strides)
            logs[slice(*self._cliques.table[position : position + 2])] += np.log(network.probabilities(i)).ravel()[cell]
        return logs

    def _restricted(self, event: Event) -> Floats:
        """Returns the logarithms of conditional probabilities; -inf for states that the event excludes."""
        logs = self._logs.copy()
        events = self._encoded([event])
        for position, allowed in zip(events.position.tolist(), events.allowed, strict=True):
            table = self._table(logs, position)
            table[..., ~allowed[: table.shape[-1]]] = -np.inf
        return logs

    def _encoded(self, events: Sequence[Event]) -> Events:
        states = self.network.states
        start = np.cumsum([0, *map(len, events)])
        variable = np.fromiter(chain.from_iterable(events), dtype=np.int64, count=int(start[-1]))
        values = chain.from_iterable(event.values() for event in events)
        options = [(v,) if isinstance(v, int | np.integer) else v for v in values]
        for k in np.flatnonzero((variable < 0) | (variable >= len(states))).tolist():
            raise OptionError(
                f"there is no variable {variable[k]}", where=_event(start, k), do="give the index of a variable"
            )
        literal = np.repeat(np.arange(len(options)), np.fromiter(map(len, options), dtype=np.int64, count=len(options)))
        state = np.fromiter(chain.from_iterable(options), dtype=np.int64, count=len(literal))
        for k in np.flatnonzero((state < 0) | (state >= np.array(states)[variable[literal]])).tolist():
            i = variable[literal[k]]
            what = f"there is no state {state[k]} of variable {i}, which has {states[i]}"
            raise OptionError(what, where=_event(start, literal[k]), do="give a state from 0 on, below that number")
        allowed = np.zeros((len(options), max(states)), dtype=np.bool_)
        allowed[literal, state] = True
        return Events(start, self._position[variable], np.arange(len(options)), allowed)


def _event(start: Ints, literal: int) -> str:
    return f"event {np.searchsorted(start, literal, side='right') - 1}"


def _cliques(network: BayesianNetwork) -> Cliques:
    n = len(network.order)
    states = np.array([network.states[i] for i in network.order], dtype=np.int64)
    scopes = network.separators
    parent = [scope[0] if scope else n - 1 for scope in scopes]  # the last clique joins unconnected components
    parent[-1] = -1
    sizes = [prod(states[list(scope)].tolist()) for scope in scopes]
    cells = [size * r for size, r in zip(sizes, states.tolist(), strict=True)]
    if sum(cells) + sum(cells[above] for above in parent) > MOST_CELLS:
        raise ModelError(
            f"it has more than {MOST_CELLS} cells",
            where="junction tree",
            do="learn a network of smaller treewidth",
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
        projection=_starts(list(map(len, projected))),
        projected=np.concatenate([np.zeros(0, dtype=np.uint32), *projected]),
        scope=_starts([len(scope) for scope in scopes]),
        member=np.fromiter(chain.from_iterable(scopes), dtype=np.int64),
        stride=np.fromiter(chain.from_iterable(strides), dtype=np.int64),
    )


def _starts(lengths: Sequence[int]) -> Ints:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _strides(states: Ints) -> list[int]:
    sizes = states.tolist()
    return [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


def _projected(states: Ints, members: Sequence[int], strides: Mapping[int, int]) -> NDArray[np.uint32]:
    """Returns another table's cell index for each cell of a clique's table."""
    cell = np.zeros((), dtype=np.uint32)
    for member in members:
        cell = np.add.outer(cell, np.arange(states[member], dtype=np.uint32) * np.uint32(strides.get(member, 0)))
    return cell.reshape(-1)
