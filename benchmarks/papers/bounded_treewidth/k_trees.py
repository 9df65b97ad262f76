"""Encodes and decodes k-trees, the maximal graphs of treewidth k, as codes that number them (Caminiti, Fusco and
Petreschi, Bijective Linear Time Coding and Decoding for k-Trees, 2010).

A code is a set Q of k vertices and n - k - 2 pairs of a parent and a position. Vertices outside Q are numbered 1 to n -
k in their order, the vertices of Q after them. Each vertex v outside Q is joined to a k-clique K(v): the clique of its
parent, with the parent in place of the vertex at the pair's position. Parent 0 stands for Q itself. Any function from
vertices to pairs is a code. Its cycles are opened, as Dandelion codes of trees do, at a vertex x that hangs on Q.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestc.system.compiled import compiled

Ints = NDArray[np.int64]
# A code is Q, ascending, and pairs of (parent, position), with (0, 0) for Q itself.
Code = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]


@compiled()
def decode_into(n: int, k: int, chosen: Ints, parent: Ints, position: Ints, bags: Ints, above: Ints) -> None:
    """Decodes the k-tree of a code into bags, parents before children. A bag is a vertex with the k-clique that it is
    joined to.

    chosen: (k,) Q ascending.
    parent, position: (n - k + 1,) room; the first n - k - 2 entries are the pairs of the code.
    bags: (n - k, k + 1) is filled with the vertex, then its clique.
    above: (n - k,) is filled with the index of the parent bag, or -1 if the parent is Q.
    """
    m = n - k
    outside = np.zeros(m + 1, np.int64)  # the vertex of each number
    inside = np.zeros(n, np.bool_)
    for v in chosen:
        inside[v] = True
    number = 0
    for v in range(n):
        if not inside[v]:
            number += 1
            outside[number] = v
    if m == 1:
        parent[1], position[1] = 0, 0
    else:
        # No pair names the leaf, the highest such number; its own pair, (0, 0), is left out of the code. Number 1 is x.
        named = np.zeros(m + 1, np.bool_)
        for at in range(m - 2):
            named[parent[at]] = True
        leaf = m
        while named[leaf]:
            leaf -= 1
        at = m - 3
        for number in range(m, 0, -1):
            if number == leaf or number == 1:
                parent[number], position[number] = 0, 0
            else:
                parent[number], position[number] = parent[at], position[at]
                at -= 1
        # Encoding cut each cycle at its highest number, starting with the cycle of the highest; decoding joins them
        # from the lowest.
        state = np.zeros(m + 1, np.int64)
        for begin in range(1, m + 1):
            v = begin
            while v and state[v] == 0:
                state[v] = begin
                v = parent[v]
            if v and state[v] == begin:  # A new cycle is found: mark its highest number.
                highest = v
                u = parent[v]
                while u != v:
                    highest = max(highest, u)
                    u = parent[u]
                state[highest] = -begin
        for number in range(1, m + 1):
            if state[number] < 0:
                parent[1], parent[number] = parent[number], parent[1]
                position[1], position[number] = position[number], position[1]
    cliques = np.zeros((m + 1, k), np.int64)  # of numbers, ascending
    for at in range(k):
        cliques[0, at] = m + 1 + at
    bag_of = np.full(m + 1, -1)
    stack = np.zeros(m + 1, np.int64)
    done = 0
    for begin in range(1, m + 1):
        top = 0
        v = begin
        while v and bag_of[v] < 0:
            stack[top] = v
            top += 1
            v = parent[v]
        while top > 0:
            top -= 1
            v = stack[top]
            up = parent[v]
            if up == 0:
                cliques[v] = cliques[0]
            else:
                filled = 0
                waiting = True
                for at in range(k):
                    if at == position[v]:
                        continue
                    if waiting and cliques[up, at] > up:
                        cliques[v, filled] = up
                        filled += 1
                        waiting = False
                    cliques[v, filled] = cliques[up, at]
                    filled += 1
                if waiting:
                    cliques[v, filled] = up
            bag_of[v] = done
            above[done] = -1 if up == 0 else bag_of[up]
            bags[done, 0] = outside[v]
            for at in range(k):
                number = cliques[v, at]
                bags[done, 1 + at] = outside[number] if number <= m else chosen[number - m - 1]
            done += 1


def decode(code: Code, n: int) -> tuple[Ints, Ints]:
    """Decodes a code over n vertices; returns (bags, above) as `decode_into` fills them."""
    chosen, pairs = code
    k = len(chosen)
    parent, position = np.zeros(n - k + 1, np.int64), np.zeros(n - k + 1, np.int64)
    for at, pair in enumerate(pairs):
        parent[at], position[at] = pair
    bags, above = np.zeros((n - k, k + 1), np.int64), np.zeros(n - k, np.int64)
    decode_into(n, k, np.array(chosen, np.int64), parent, position, bags, above)
    return bags, above


def encode(neighbors: Sequence[set[int]], k: int) -> Code:
    """Returns the code of a k-tree of at least k + 1 vertices. neighbors: of each vertex."""
    n = len(neighbors)
    left = [set(near) for near in neighbors]
    leaf = max(v for v in range(n) if len(left[v]) == k)
    chosen = tuple(sorted(left[leaf]))
    m = n - k
    if m == 1:
        return chosen, ()
    outside = [v for v in range(n) if v not in left[leaf]]
    number = {v: at for at, v in enumerate((*outside, *chosen), start=1)}
    clique: dict[int, list[int]] = {0: sorted(number[v] for v in chosen)}
    order: list[int] = []  # lists the vertices in the order of their removal, leaves first, until only Q is left
    ready = [v for v in outside if len(left[v]) == k]
    while ready:
        v = ready.pop()
        clique[number[v]] = sorted(number[u] for u in left[v])
        order.append(number[v])
        for u in left[v]:
            left[u].discard(v)
            if len(left[u]) == k and u not in chosen and u not in ready:
                ready.append(u)
        left[v] = set()
    taken = {v: at for at, v in enumerate(order)}
    pair: dict[int, tuple[int, int]] = {}
    for v in order:
        later = [u for u in clique[v] if u in taken]
        if later:
            up = min(later, key=taken.__getitem__)
            (missing,) = set(clique[up]) - set(clique[v])
            pair[v] = (up, clique[up].index(missing))
        else:
            pair[v] = (0, 0)
    x = 1
    while pair[x][0]:
        highest = v = pair[x][0]
        while v:
            highest, v = max(highest, v), pair[v][0]
        pair[x], pair[highest] = pair[highest], pair[x]
    return chosen, tuple(pair[v] for v in range(1, m + 1) if v not in (x, number[leaf]))


def random_code(n: int, k: int, random: np.random.Generator) -> Code:
    """Draws a code uniformly, so that its k-tree is uniform over all k-trees on n >= k + 1 vertices."""
    chosen = tuple(int(v) for v in np.sort(random.choice(n, k, replace=False)))
    drawn = random.integers(0, k * (n - k) + 1, max(0, n - k - 2)).tolist()
    return chosen, tuple((0, 0) if code == 0 else (1 + (code - 1) // k, (code - 1) % k) for code in drawn)


def edges(bags: Ints) -> list[set[int]]:
    """Returns the neighbors of each vertex of a k-tree in bags."""
    n = bags.shape[0] + bags.shape[1] - 1
    near: list[set[int]] = [set() for _ in range(n)]
    for bag in bags.tolist():
        for u in bag:
            near[u].update(v for v in bag if v != u)
    return near
