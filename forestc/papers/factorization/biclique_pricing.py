"""Finds heavy bicliques: row bits a and column bits b with a large sum a' H b of entries of H.

Heavy bicliques become columns of binary matrix factorization (Kovacs, Gunluk and Hauser 2021, section 3.1; Karapetyan
and Punnen 2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from forestc.algorithms.arrays import Bits, Floats, Ints
from forestc.algorithms.covers.column_generation import stoppable
from forestc.system.compiled import compiled

ORDERS = 15  # tries this many orders of H's rows, and as many of H's columns
NOISE = 0.2  # scales the random noise on the sort keys of perturbed orders
CLOSE = 0.6  # returns only bicliques above this share of the best weight so far
MOST_KEPT = 64  # bicliques that one exact search returns at most


@dataclass(frozen=True)
class Biclique:
    """A set of rows and a set of columns of a matrix H."""

    rows: Bits
    columns: Bits
    weight: float  # sum of the entries of H in these rows and columns


def greedy_bicliques(H: Floats, random: np.random.Generator) -> list[Biclique]:
    """Returns locally optimal bicliques (row and column sets) of positive weight, the heaviest first."""
    bicliques: dict[bytes, Biclique] = {}
    for turned in (False, True):
        matrix = np.ascontiguousarray(H.T) if turned else H
        positive = np.maximum(matrix, 0.0).sum(axis=1)
        revised = positive + 1e-6 * np.minimum(matrix, 0.0).sum(axis=1)
        keys = [positive, revised]
        for key in (positive, revised):
            keys.append(key * (1 + NOISE * random.standard_normal(len(key))))
        keys += [random.random(len(positive)) for _ in range(ORDERS - len(keys))]
        orders = np.array([np.argsort(-key, kind="stable") for key in keys])
        for a, b in zip(*_greedy(matrix, orders), strict=True):
            rows, columns = (b, a) if turned else (a, b)
            weight = float(H[np.ix_(rows, columns)].sum())
            if weight > 0:
                bicliques[rows.tobytes() + columns.tobytes()] = Biclique(rows, columns, weight)
    return sorted(bicliques.values(), key=lambda biclique: -biclique.weight)


def improved(H: Floats, columns: Bits) -> Biclique:
    """Returns the biclique that results from choosing the best rows and the best columns in turn, starting from the
    given columns."""
    rows, columns = _alternated(H, columns.copy())
    return Biclique(rows, columns, float(H[np.ix_(rows, columns)].sum()))


def heaviest_biclique(
    H: Floats, least: float, steps: int = 10**17, deadline: float = math.inf
) -> tuple[list[Biclique], float, bool]:
    """Returns bicliques (row and column sets) heavier than `least`, an upper bound on all weights (at least `least`),
    and True if the search was complete."""
    turned = H.shape[1] > H.shape[0]
    matrix = np.ascontiguousarray(H.T if turned else H)
    sides, bound, complete = stoppable(_branched, matrix, least, MOST_KEPT, steps, deadline=deadline)
    bicliques = []
    for side in sides:
        b, a = _alternated(matrix, side)[::-1]
        rows, columns = (b, a) if turned else (a, b)
        bicliques.append(Biclique(rows, columns, float(H[np.ix_(rows, columns)].sum())))
    return sorted(bicliques, key=lambda biclique: -biclique.weight), max(float(bound), least), bool(complete)


@compiled()
def _alternated(H: Floats, b: Bits) -> Any:
    n, m = H.shape
    a = np.zeros(n, dtype=np.bool_)
    s = np.zeros(m)
    while True:
        s[:] = 0.0
        for i in range(n):
            total = 0.0
            for j in range(m):
                if b[j]:
                    total += H[i, j]
            a[i] = total > 0
            if a[i]:
                for j in range(m):
                    s[j] += H[i, j]
        same = True
        for j in range(m):
            if b[j] != (s[j] > 0):
                b[j] = not b[j]
                same = False
        if same:
            return a, b


@compiled()
def _greedy(H: Floats, orders: Ints) -> Any:
    n, m = H.shape
    many = len(orders)
    rows, columns = np.zeros((many, n), dtype=np.bool_), np.zeros((many, m), dtype=np.bool_)
    for k in range(many):
        s, before = np.zeros(m), 0.0
        for i in orders[k]:
            after = 0.0
            for j in range(m):
                after += max(0.0, s[j] + H[i, j])
            if after > before:
                before = after
                for j in range(m):
                    s[j] += H[i, j]
        a, b = _alternated(H, s > 0)
        rows[k], columns[k] = a, b
    return rows, columns


@compiled()
def _branched(flag: Ints, H: Floats, least: float, most: int, limit: int) -> Any:
    """Searches bicliques depth-first: each column of H is first included, then excluded."""
    n, m = H.shape
    size = np.zeros(m)
    for i in range(n):
        for j in range(m):
            size[j] += abs(H[i, j])
    order = np.argsort(-size)
    G = np.empty((m, n))
    for d in range(m):
        for i in range(n):
            G[d, i] = H[i, order[d]]
    positive = np.zeros((m + 1, n))  # positive weights, summed over the columns from d on
    for d in range(m - 1, -1, -1):
        for i in range(n):
            positive[d, i] = positive[d + 1, i] + max(0.0, G[d, i])
    sums = np.zeros((m + 1, n))
    state = np.zeros(m + 1, dtype=np.int8)  # 0: include next, 1: exclude next, 2: done
    taken = np.zeros(m, dtype=np.bool_)
    bicliques = np.zeros((most, m), dtype=np.bool_)
    bounds = np.zeros(m + 1)
    count = 0
    best = least
    worst = least
    d = 0
    steps = 0
    complete = True
    for i in range(n):
        bounds[0] += positive[0, i]
    while d >= 0:
        if state[d] == 0 or state[d] == 1:
            steps += n
            if flag[0] != 0 or steps > limit:
                complete = False
                for e in range(d + 1):
                    if state[e] < 2:
                        worst = max(worst, bounds[e])
                break
            include = state[d] == 0
            state[d] += 1
            bound = 0.0
            value = 0.0
            if include:
                for i in range(n):
                    x = sums[d, i] + G[d, i]
                    sums[d + 1, i] = x
                    value += max(0.0, x)
                    bound += max(0.0, x + positive[d + 1, i])
            else:
                for i in range(n):
                    x = sums[d, i]
                    sums[d + 1, i] = x
                    value += max(0.0, x)
                    bound += max(0.0, x + positive[d + 1, i])
            taken[order[d]] = include
            if include and value > max(least, CLOSE * best) + 1e-9:
                at = 0 if value > best else 1 + count % (most - 1)  # the best one is never overwritten
                bicliques[at] = taken
                for e in range(d + 1, m):
                    bicliques[at, order[e]] = False
                if at:
                    count += 1
                best = max(best, value)
            if d + 1 < m and bound > best + 1e-9:
                d += 1
                state[d] = 0
                bounds[d] = bound
        else:
            taken[order[d]] = False
            d -= 1
    return bicliques[(0 if best > least else 1) : 1 + min(count, most - 1)], max(best, worst), complete
