"""Exact answers from a Bayesian network: probabilities of events, and samples, given evidence or not.

A junction tree (Lauritzen and Spiegelhalter 1988) with a clique for each variable, in the network's elimination order.
Calibrated, it holds P(variable | separator) of each clique: a network again, in which a variable's parents are
eliminated after it. So evidence makes another such tree, samples are drawn from the root down, and an event concerns
only the subtree that its variables span. Time of each pass: linear in the cells of all cliques, at most the number of
variables times (states)^(treewidth + 1).

The cliques lie in flat arrays. A clique belongs to each place of an elimination order: the variable eliminated there
and its separator, the later variables joined with it. Its table has an axis for each variable of the separator, the
earliest slowest, and the eliminated variable's own axis last. A message to the parent has one entry per configuration
of the separator.
"""

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
from forestc.algorithms.networks.bayesian_network import MOST_CELLS, BayesianNetwork
from forestc.errors import ModelError, OptionError
from forestc.system.compiled import compiled, share_out


class Cliques(NamedTuple):
    """The shape of the tree; n cliques by place, parents after their children, the last one the root.

    parent: (n,) place of the parent, the root's is -1. states: (n,). table: (n + 1,) where each table begins. message:
    (n + 1,) where each message begins. projection: (n + 1,) where each projection begins in `projected`, which holds
    for each cell of the parent's table the entry of the message that belongs to it. scope: (n + 1,) where each
    separator begins in `member` (places) and `stride` (of that place's axis in the message).
    """

    parent: Ints
    states: Ints
    table: Ints
    message: Ints
    projection: Ints
    projected: NDArray[np.uint32]
    scope: Ints
    member: Ints
    stride: Ints


class Events(NamedTuple):
    """Conjunctions of literals. start: (events + 1,) where each event's literals begin. place: (literals,) of the
    variable, different ones within an event. row: (literals,) its row of `allowed`, which holds the states allowed."""

    start: Ints
    place: Ints
    row: Ints
    allowed: Bits


@compiled()
def collect(cliques: Cliques, logs: Floats) -> Any:
    """Sends messages from the leaves to the root. Adds to each table of logs those from below, in place, and returns
    the messages: the logarithm of the sum over the eliminated variable. In logs, so that nothing underflows however
    many factors meet in a clique."""
    messages = np.empty(cliques.message[-1])
    n = len(cliques.parent)
    for place in range(n):
        r, begin = cliques.states[place], cliques.message[place]
        for entry in range(cliques.message[place + 1] - begin):
            row = cliques.table[place] + entry * r
            best = logs[row]
            for k in range(1, r):
                best = max(best, logs[row + k])
            if best > -np.inf:
                total = 0.0
                for k in range(r):
                    total += np.exp(logs[row + k] - best)
                best += np.log(total)
            messages[begin + entry] = best
        if place < n - 1:
            above, project = cliques.table[cliques.parent[place]], cliques.projection[place]
            for cell in range(cliques.table[cliques.parent[place] + 1] - above):
                logs[above + cell] += messages[begin + cliques.projected[project + cell]]
    return messages


@compiled()
def normalize(cliques: Cliques, logs: Floats, messages: Floats) -> None:
    """Makes the tables after `collect` the logarithms of P(variable | separator), in place; -inf throughout where the
    states of the separator are impossible."""
    for place in range(len(cliques.parent)):
        r, begin = cliques.states[place], cliques.message[place]
        for entry in range(cliques.message[place + 1] - begin):
            row, total = cliques.table[place] + entry * r, messages[begin + entry]
            if total > -np.inf:
                for k in range(r):
                    logs[row + k] -= total


@compiled()
def distribute(cliques: Cliques, conditional: Floats) -> Any:
    """The joint probabilities of each clique, from the root to the leaves."""
    joint = np.empty(len(conditional))
    n = len(cliques.parent)
    for place in range(n - 1, -1, -1):
        weights = np.zeros(cliques.message[place + 1] - cliques.message[place])
        if place == n - 1:
            weights[0] = 1.0
        else:
            above, project = cliques.table[cliques.parent[place]], cliques.projection[place]
            for cell in range(cliques.table[cliques.parent[place] + 1] - above):
                weights[cliques.projected[project + cell]] += joint[above + cell]
        r = cliques.states[place]
        for entry in range(len(weights)):
            row = cliques.table[place] + entry * r
            for k in range(r):
                joint[row + k] = conditional[row + k] * weights[entry]
    return joint


@compiled()
def cumulated(cliques: Cliques, conditional: Floats) -> Any:
    """The sums of the conditionals up to each state; infinite from the last possible state on, so that rounding never
    draws an impossible one."""
    sums = np.empty(len(conditional))
    for place in range(len(cliques.parent)):
        r = cliques.states[place]
        for row in range(cliques.table[place], cliques.table[place + 1], r):
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
    """Draws the rows first .. past - 1, from the root to the leaves. uniform: (n, rows) in [0, 1). drawn: (n, rows)."""
    cell = np.empty(past - first, dtype=np.int64)
    for place in range(len(cliques.parent) - 1, -1, -1):
        r = cliques.states[place]
        cell[:] = cliques.table[place]
        for k in range(cliques.scope[place], cliques.scope[place + 1]):
            member, step = cliques.member[k], cliques.stride[k] * r
            for row in range(first, past):
                cell[row - first] += step * drawn[member, row]
        for row in range(first, past):
            at, u, state = cell[row - first], uniform[place, row], 0
            while u >= sums[at + state]:
                state += 1
            drawn[place, row] = state


@compiled()
def event_probabilities(
    cliques: Cliques, conditional: Floats, joint: Floats, events: Events, probability: Floats, first: int, past: int
) -> None:
    """Writes the probabilities of the events first .. past - 1 to `probability`, (events,).

    Only the smallest subtree that holds the cliques of an event's variables takes part: what hangs below it sums to 1,
    and its top starts from the joint probabilities, which account for what lies above. All factors are at most 1, so
    what underflows on the way could not have mattered.
    """
    n = len(cliques.parent)
    work = np.empty(len(conditional))  # the tables multiplied by the messages that came so far
    reached, begun, passed = np.full(n, -1), np.full(n, -1), np.full(n, -1)  # the last event for which it was so
    waiting, literal = np.zeros(n, dtype=np.int64), np.full(n, -1)
    message = np.empty(np.max(cliques.message[1:] - cliques.message[:-1]))
    for event in range(first, past):
        begin, end = events.start[event], events.start[event + 1]
        if begin == end:
            probability[event] = 1.0
            continue
        top = events.place[begin]
        for k in range(begin + 1, end):  # the lowest common ancestor; parents have later places
            other = events.place[k]
            while top != other:
                if top < other:
                    top = cliques.parent[top]
                else:
                    other = cliques.parent[other]
        reached[top] = event
        for k in range(begin, end):
            place = events.place[k]
            literal[place] = events.row[k]
            while reached[place] != event:
                reached[place] = event
                place = cliques.parent[place]
                waiting[place] += 1
        for k in range(begin, end):
            place = events.place[k]
            while waiting[place] == 0 and passed[place] != event:
                passed[place] = event
                r = cliques.states[place]
                entries = cliques.message[place + 1] - cliques.message[place]
                values = work if begun[place] == event else (joint if place == top else conditional)
                table = values[cliques.table[place] : cliques.table[place + 1]]
                allows = literal[place]
                literal[place] = -1
                message[:entries] = 0.0
                for state in range(r):
                    if allows < 0 or events.allowed[allows, state]:
                        for entry in range(entries):
                            message[entry] += table[entry * r + state]
                if place == top:
                    probability[event] = np.sum(message[:entries])
                    break
                above = cliques.parent[place]
                values = work if begun[above] == event else (joint if above == top else conditional)
                begun[above] = event
                table = values[cliques.table[above] : cliques.table[above + 1]]
                target = work[cliques.table[above] : cliques.table[above + 1]]
                project = cliques.projected[cliques.projection[place] : cliques.projection[place + 1]]
                for cell in range(len(target)):
                    target[cell] = table[cell] * message[project[cell]]
                place = above
                waiting[place] -= 1


Event: TypeAlias = Mapping[int, int | Collection[int]]  # of each variable named, its state or the states allowed

_DRAWS = 2**22  # random numbers at a time
_FEW = 64  # rows or events that one thread answers before others have started


class JunctionTree:
    """A calibrated junction tree of a network, possibly given evidence.

    Evidence and events are conjunctions: a mapping from variables to the state, or to the set of states, that each
    takes. An unknown variable or state raises OptionError, as does evidence of probability 0. The constructor raises
    ModelError if the cliques have more than 2^22 cells.
    """

    network: BayesianNetwork

    def __init__(self, network: BayesianNetwork) -> None:
        self.network = network
        self._place = np.empty(len(network.order), dtype=np.int64)
        self._place[list(network.order)] = np.arange(len(network.order))
        self._cliques = _cliques(network)
        self._logs = self._potentials()
        normalize(self._cliques, self._logs, collect(self._cliques, self._logs))

    def given(self, evidence: Event) -> JunctionTree:
        """The tree of the distribution given this evidence, besides any given before."""
        if not evidence:
            return self
        logs = self._restricted(evidence)
        messages = collect(self._cliques, logs)
        if messages[-1] == -np.inf:
            raise OptionError("the evidence has probability 0", do="allow more states of its variables")
        normalize(self._cliques, logs, messages)
        tree = copy.copy(self)
        for name in ("_conditional", "_joint"):
            tree.__dict__.pop(name, None)
        tree._logs = logs
        return tree

    def probabilities_of(self, events: Sequence[Event]) -> Floats:
        """The probability of each event, (events,). Takes time in proportion to the cells of the cliques on the paths
        between an event's variables: for thousands of events, as of the leaves of a forest."""
        encoded, probability = self._encoded(events), np.empty(len(events))
        if len(probability):
            answer = partial(event_probabilities, self._cliques, self._conditional, self._joint, encoded, probability)
            share_out(len(probability), answer, few=_FEW)
        return probability

    def sample(self, count: int, rng: np.random.Generator, evidence: Event | None = None) -> Bytes:
        """Independent rows given the evidence, (count, variables)."""
        tree, order = self.given(evidence or {}), list(self.network.order)
        sums = cumulated(self._cliques, tree._conditional)
        rows = np.empty((count, len(order)), dtype=np.uint8)
        size = max(1, _DRAWS // len(order))
        for begin in range(0, count, size):
            uniform = rng.random((len(order), min(size, count - begin)))
            drawn = np.empty(uniform.shape, dtype=np.uint8)
            share_out(uniform.shape[1], partial(draw, self._cliques, sums, uniform, drawn), few=_FEW)
            rows[begin : begin + size] = drawn[self._place].T
        return rows

    @cached_property
    def _conditional(self) -> Floats:
        """P(variable | separator) of all cliques."""
        table: Floats = np.exp(self._logs)
        return table

    @cached_property
    def _joint(self) -> Floats:
        """The joint probabilities of all cliques."""
        table: Floats = distribute(self._cliques, self._conditional)
        return table

    def _members(self, place: int) -> list[int]:
        """The places in a clique, by the axes of its table."""
        return [*self._cliques.member[slice(*self._cliques.scope[place : place + 2])].tolist(), place]

    def _table(self, tables: Floats, place: int) -> Floats:
        """A view of one clique's table, with an axis for each member."""
        begin, end = self._cliques.table[place : place + 2].tolist()
        table: Floats = tables[begin:end].reshape(self._cliques.states[self._members(place)])
        return table

    def _potentials(self) -> Floats:
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

    def _restricted(self, event: Event) -> Floats:
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


def _event(start: Ints, literal: int) -> str:
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
        projection=_starts(list(map(len, projected))),
        projected=np.concatenate([np.zeros(0, dtype=np.uint32), *projected]),
        scope=_starts([len(scope) for scope in scopes]),
        member=np.fromiter(chain.from_iterable(scopes), dtype=np.int64),
        stride=np.fromiter(chain.from_iterable(strides), dtype=np.int64),
    )


def _starts(lengths: Sequence[int]) -> Ints:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _strides(states: Ints) -> list[int]:
    """The stride of each axis of a table of these states, the first the largest."""
    sizes = states.tolist()
    return [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


def _projected(states: Ints, members: Sequence[int], strides: Mapping[int, int]) -> NDArray[np.uint32]:
    """For each cell of a clique's table, the cell of another table over some of its members, of these strides."""
    cell = np.zeros((), dtype=np.uint32)
    for member in members:
        cell = np.add.outer(cell, np.arange(states[member], dtype=np.uint32) * np.uint32(strides.get(member, 0)))
    return cell.reshape(-1)
