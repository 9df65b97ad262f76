"""Tests by a heuristic whether a graph has treewidth at most k. Each True comes with an elimination order; False may be
wrong.

Source of the rules: Bodlaender, Koster and van den Eijkhof 2005.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forestc.algorithms.arrays import Bits, Ints, Words
from forestc.papers.bit_words import popcount
from forestc.system.compiled import compiled

ONE = np.uint64(1)


class Room(NamedTuple):
    """Working memory for eliminating the vertices of a graph."""

    rows: Words  # (n, words) remaining graph; later neighbors of eliminated vertices
    order: Ints  # (n,) elimination order
    stack: Ints  # (n,) vertices to try next
    queued: Bits  # (n,) True if the vertex is in `stack`
    gone: Bits  # (n,) True if the vertex is eliminated
    near: Ints  # (n,) room for the neighbors of a vertex


def make_room(n: int) -> Room:
    return Room(
        np.zeros((n, -(-n // 64)), np.uint64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, bool),
        np.zeros(n, bool), np.zeros(n, np.int64),
    )  # fmt: skip


@compiled()
def _lowest(word: np.uint64) -> int:
    return int(popcount((word & (~word + ONE)) - ONE))


@compiled()
def has(rows: Words, u: int, v: int) -> bool:
    return bool((rows[u, v >> 6] >> np.uint64(v & 63)) & ONE)


@compiled()
def put(rows: Words, u: int, v: int) -> None:
    rows[u, v >> 6] |= ONE << np.uint64(v & 63)
    rows[v, u >> 6] |= ONE << np.uint64(u & 63)


@compiled()
def take(rows: Words, u: int, v: int) -> None:
    rows[u, v >> 6] &= ~(ONE << np.uint64(v & 63))
    rows[v, u >> 6] &= ~(ONE << np.uint64(u & 63))


@compiled()
def degree(rows: Words, v: int) -> int:
    total = 0
    for word in range(rows.shape[1]):
        total += int(popcount(rows[v, word]))
    return total


@compiled()
def neighbors(rows: Words, v: int, near: Ints) -> int:
    count = 0
    for word in range(rows.shape[1]):
        rest = rows[v, word]
        while rest:
            near[count] = 64 * word + _lowest(rest)
            count += 1
            rest &= rest - ONE
    return count


@compiled()
def _missing(rows: Words, near: Ints, count: int, v: int) -> tuple[int, int]:
    """Returns the number of missing edges among v's neighbors, and the most missing at one neighbor."""
    total, most = 0, 0
    for index in range(count):
        u = near[index]
        lacking = -1  # u itself
        for word in range(rows.shape[1]):
            lacking += int(popcount(rows[v, word] & ~rows[u, word]))
        total += lacking
        most = max(most, lacking)
    return total // 2, most


@compiled()
def _push(room: Room, v: int, top: int) -> int:
    if room.queued[v]:
        return top
    room.queued[v] = True
    room.stack[top] = v
    return top + 1


@compiled()
def _eliminate(room: Room, v: int, count: int, fill: int, top: int) -> int:
    """Joins v's neighbors, removes v, and queues the vertices that may come next."""
    rows, near = room.rows, room.near
    if fill:
        for first in range(count):
            for second in range(first):
                a, b = near[first], near[second]
                if not has(rows, a, b):
                    put(rows, a, b)
                    for word in range(rows.shape[1]):
                        rest = rows[a, word] & rows[b, word]
                        while rest:
                            top = _push(room, 64 * word + _lowest(rest), top)
                            rest &= rest - ONE
    for index in range(count):
        u = near[index]
        rows[u, v >> 6] &= ~(ONE << np.uint64(v & 63))
        top = _push(room, u, top)
    room.gone[v] = True
    return top


@compiled()
def eliminates(graph: Words, k: int, room: Room) -> bool:
    """Returns True if an elimination order of width at most k is found, and writes the order to `room.order`."""
    n = len(graph)
    rows, near = room.rows, room.near
    rows[:] = graph
    room.gone[:] = False
    room.queued[:] = True
    top = n
    for v in range(n):
        room.stack[v] = n - 1 - v
    eliminated = 0
    while eliminated < n:
        while top > 0:
            top -= 1
            v = room.stack[top]
            room.queued[v] = False
            if room.gone[v] or degree(rows, v) > k:
                continue
            count = neighbors(rows, v, near)
            fill, most = _missing(rows, near, count, v)
            if fill == most:  # a clique, or one but for a single vertex
                room.order[eliminated] = v
                eliminated += 1
                top = _eliminate(room, v, count, fill, top)
        if eliminated == n:
            break
        best, least = -1, n * n
        for v in range(n):
            if not room.gone[v] and degree(rows, v) <= k:
                count = neighbors(rows, v, near)
                fill, most = _missing(rows, near, count, v)
                if fill < least:
                    best, least = v, fill
        if best < 0:
            return False
        room.order[eliminated] = best
        eliminated += 1
        count = neighbors(rows, best, near)
        top = _eliminate(room, best, count, least, top)
    return True


@compiled()
def complete(room: Room, chordal: Words) -> None:
    """Writes to `chordal` the graph in which each vertex and its later neighbors form a clique."""
    chordal[:] = room.rows
    for v in range(len(chordal)):
        for index in range(neighbors(room.rows, v, room.near)):
            put(chordal, v, room.near[index])
