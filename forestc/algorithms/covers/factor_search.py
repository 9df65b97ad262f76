"""Local search for Boolean factors: k-greedy starts and alternating improvement of the true error.

With A fixed, each column of B is improved by itself, and the reverse (Barahona and Goncalves 2019; Kovacs, Gunluk and
Hauser 2021, section 3.1): bits are flipped while the error falls. To escape, a factor is thrown away and another grown
from what the rest leaves uncovered; worse factors are accepted as in simulated annealing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled
from forestc.algorithms.covers.biclique_pricing import greedy_bicliques
from forestc.algorithms.covers.column_generation import Stop
from forestc.algorithms.covers.covers import Floats

Bits = NDArray[np.bool_]
HEAT = 0.01  # share of the error that a worse choice may cost, at the start


@dataclass(frozen=True)
class Factors:
    """A: (n, k), B: (k, m). error: the weight of the entries in which A o B differs from X."""

    A: Bits
    B: Bits
    error: float


def k_greedy(X: Bits, weight: Floats, k: int, random: np.random.Generator) -> Factors:
    """k times the best biclique that greedy starts find, where entries of X that are covered count no more. weight:
    (n, m), 0 where X is missing."""
    H = np.where(X, weight, -weight)
    A, B = np.zeros((len(X), k), dtype=bool), np.zeros((k, X.shape[1]), dtype=bool)
    for place in range(k):
        found = greedy_bicliques(H, random)
        if not found:
            break
        A[:, place], B[place] = found[0].rows, found[0].columns
        H[np.ix_(A[:, place], B[place])] = 0.0
    return polished(X, weight, A, B)


def polished(X: Bits, weight: Floats, A: Bits, B: Bits) -> Factors:
    """Alternating improvement until no flip of one bit helps."""
    return searched(X, weight, Factors(A, B, math.inf), 0, 0)


def searched(X: Bits, weight: Floats, start: Factors, tries: int, seed: int, deadline: float = math.inf) -> Factors:
    """Alternating improvement, then `tries` times another factor in place of one (see `HEAT`). Returns
    the best ones met."""
    value = np.where(X, weight, -weight)
    A, B, error = Stop().run(_searched, value, start.A.copy(), start.B.copy(), tries, seed, deadline=deadline)
    return Factors(A, B, float(error))


@compiled()
def _counts(A: Any, B: Any) -> Any:
    n, k, m = len(A), len(B), B.shape[1]
    count = np.zeros((n, m), dtype=np.int64)
    for i in range(n):
        for f in range(k):
            if A[i, f]:
                for j in range(m):
                    count[i, j] += B[f, j]
    return count


@compiled()
def _improve(value: Any, A: Any, B: Any, count: Any) -> Any:
    """Flips bits of A and of B while that gains."""
    n, k, m = len(A), len(B), B.shape[1]
    again = True
    while again:
        again = False
        for i in range(n):
            for f in range(k):
                alone, gain = 1 if A[i, f] else 0, 0.0
                for j in range(m):
                    if B[f, j] and count[i, j] == alone:
                        gain += value[i, j]
                if (A[i, f] and gain < -1e-9) or (not A[i, f] and gain > 1e-9):
                    step = -1 if A[i, f] else 1
                    A[i, f] = not A[i, f]
                    again = True
                    for j in range(m):
                        if B[f, j]:
                            count[i, j] += step
        for f in range(k):
            for j in range(m):
                alone, gain = 1 if B[f, j] else 0, 0.0
                for i in range(n):
                    if A[i, f] and count[i, j] == alone:
                        gain += value[i, j]
                if (B[f, j] and gain < -1e-9) or (not B[f, j] and gain > 1e-9):
                    step = -1 if B[f, j] else 1
                    B[f, j] = not B[f, j]
                    again = True
                    for i in range(n):
                        if A[i, f]:
                            count[i, j] += step


@compiled()
def _error(value: Any, count: Any) -> Any:
    total = 0.0
    for i in range(count.shape[0]):
        for j in range(count.shape[1]):
            if value[i, j] > 0 and count[i, j] == 0:
                total += value[i, j]
            elif value[i, j] < 0 and count[i, j] > 0:
                total -= value[i, j]
    return total


@compiled()
def _regrow(value: Any, A: Any, B: Any, f: int, count: Any) -> None:
    """Another factor in the place of factor f: from the uncovered entries of a random row or column, alternately
    improved."""
    n, m = value.shape
    for i in range(n):
        if A[i, f]:
            for j in range(m):
                count[i, j] -= B[f, j]
    a, b = np.zeros(n, dtype=np.bool_), np.zeros(m, dtype=np.bool_)
    if np.random.random() < 0.5:
        i = np.random.randint(n)
        for j in range(m):
            b[j] = count[i, j] == 0 and value[i, j] > 0
    else:
        one, two = np.random.randint(m), np.random.randint(m)
        b[one] = True
        b[two] = True
    for _ in range(20):
        for i in range(n):
            total = 0.0
            for j in range(m):
                if b[j] and count[i, j] == 0:
                    total += value[i, j]
            a[i] = total > 0
        same = True
        for j in range(m):
            total = 0.0
            for i in range(n):
                if a[i] and count[i, j] == 0:
                    total += value[i, j]
            same = same and b[j] == (total > 0)
            b[j] = total > 0
        if same:
            break
    A[:, f], B[f] = a, b
    for i in range(n):
        if a[i]:
            for j in range(m):
                count[i, j] += b[j]


@compiled()
def _searched(flag: Any, value: Any, A: Any, B: Any, tries: int, seed: int) -> Any:
    np.random.seed(seed)
    k = len(B)
    count = _counts(A, B)
    _improve(value, A, B, count)
    error = _error(value, count)
    least, least_A, least_B = error, A.copy(), B.copy()
    for step in range(tries):
        if flag[0] != 0:
            break
        old_A, old_B, old_count = A.copy(), B.copy(), count.copy()
        for _ in range(1 + np.random.randint(2)):
            _regrow(value, A, B, np.random.randint(k), count)
        if np.random.random() < 0.25:  # a random bit too: regrown factors alone do not reach everything
            f, j = np.random.randint(k), np.random.randint(B.shape[1])
            B[f, j] = not B[f, j]
            for i in range(len(A)):
                if A[i, f]:
                    count[i, j] += 1 if B[f, j] else -1
        _improve(value, A, B, count)
        found = _error(value, count)
        heat = max(HEAT * least, 0.5) * (1.0 - step / tries)  # cools down to 0: worse factors are taken ever less often
        if found <= error + 1e-9 or np.random.random() < math.exp((error - found) / max(heat, 1e-9)):
            error = found
            if error < least - 1e-9:
                least, least_A, least_B = error, A.copy(), B.copy()
        else:
            A, B, count = old_A, old_B, old_count
    return least_A, least_B, least
