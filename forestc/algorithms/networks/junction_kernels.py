"""The compiled passes over a junction tree whose cliques lie in flat arrays.

A clique belongs to each place of an elimination order: the variable eliminated there and its separator, the later
variables joined with it. Its table has an axis for each variable of the separator, the earliest slowest, and the
eliminated variable's own axis last. A message to the parent has one entry per configuration of the separator.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled


class Cliques(NamedTuple):
    """The shape of the tree; n cliques by place, parents after their children, the last one the root.

    parent: (n,) place of the parent, the root's is -1. states: (n,). table: (n + 1,) where each table begins. message:
    (n + 1,) where each message begins. projection: (n + 1,) where each projection begins in `projected`, which holds
    for each cell of the parent's table the entry of the message that belongs to it. scope: (n + 1,) where each
    separator begins in `member` (places) and `stride` (of that place's axis in the message).
    """

    parent: NDArray[np.int64]
    states: NDArray[np.int64]
    table: NDArray[np.int64]
    message: NDArray[np.int64]
    projection: NDArray[np.int64]
    projected: NDArray[np.uint32]
    scope: NDArray[np.int64]
    member: NDArray[np.int64]
    stride: NDArray[np.int64]


class Events(NamedTuple):
    """Conjunctions of literals. start: (events + 1,) where each event's literals begin. place: (literals,) of the
    variable, different ones within an event. row: (literals,) its row of `allowed`, which holds the states allowed."""

    start: NDArray[np.int64]
    place: NDArray[np.int64]
    row: NDArray[np.int64]
    allowed: NDArray[np.bool_]


@compiled()
def collect(cliques: Any, logs: Any, largest: bool) -> Any:
    """Sends messages from the leaves to the root. Adds to each table of logs those from below, in place, and returns
    the messages: the logarithm of the sum over the eliminated variable, or the largest. In logs, so that nothing
    underflows however many factors meet in a clique."""
    messages = np.empty(cliques.message[-1])
    n = len(cliques.parent)
    for place in range(n):
        r, begin = cliques.states[place], cliques.message[place]
        for entry in range(cliques.message[place + 1] - begin):
            row = cliques.table[place] + entry * r
            best = logs[row]
            for k in range(1, r):
                best = max(best, logs[row + k])
            if not largest and best > -np.inf:
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
def normalise(cliques: Any, logs: Any, messages: Any) -> None:
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
def distribute(cliques: Any, conditional: Any) -> Any:
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
def cumulated(cliques: Any, conditional: Any) -> Any:
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
def draw(cliques: Any, sums: Any, uniform: Any, drawn: Any, first: int, past: int) -> None:
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
    cliques: Any, conditional: Any, joint: Any, events: Any, found: Any, first: int, past: int
) -> None:
    """Writes the probabilities of the events first .. past - 1 to `found`, (events,).

    Only the smallest subtree that holds the cliques of an event's variables takes part: what hangs below it sums to 1,
    and its top starts from the joint probabilities, which account for what lies above. All factors are at most 1, so
    what underflows on the way could not have mattered.
    """
    n = len(cliques.parent)
    work = np.empty(len(conditional))  # the tables multiplied by the messages that came so far
    reached, begun, done = np.full(n, -1), np.full(n, -1), np.full(n, -1)  # the last event for which it was so
    waiting, literal = np.zeros(n, dtype=np.int64), np.full(n, -1)
    message = np.empty(np.max(cliques.message[1:] - cliques.message[:-1]))
    for event in range(first, past):
        begin, end = events.start[event], events.start[event + 1]
        if begin == end:
            found[event] = 1.0
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
            while waiting[place] == 0 and done[place] != event:
                done[place] = event
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
                    found[event] = np.sum(message[:entries])
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
