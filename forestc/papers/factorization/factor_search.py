"""Improves Boolean factors A and B of a binary matrix X by local search on packed bits.

Source: Barahona and Goncalves 2019 (alternating local search); here factors are also replaced at random.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forestc.algorithms.arrays import Bits, Floats, Ints, Words
from forestc.papers.bit_words import packed_words, popcount
from forestc.papers.factorization.biclique_pricing import greedy_bicliques
from forestc.system.compiled import compiled, threads

HEAT = 0.01  # multiplies the least error into the first temperature; more accepts worse factors
ENCODING_STEPS = 10_000  # combinations of factors tried for each row at most
LONGEST_GROWTH = 20  # stops the growth of a new factor after this many rounds
ZERO, ONE = np.uint64(0), np.uint64(1)


class Side(NamedTuple):
    """The rows of a matrix, or its columns, as packed bits. Of columns, read column for row and row for column."""

    ones: Words  # (rows, words)
    zeros: Words  # (rows, words); a missing entry is neither one nor zero
    weight: Ints  # (rows,) number of equal rows that one row stands for
    planes: Words  # (planes, words): bit p of the weight of each column


@dataclass(frozen=True)
class WeightedMatrix:
    """A binary matrix without repeated rows and columns."""

    X: Bits  # (n, m)
    known: Bits  # (n, m), False if missing
    row_weight: Ints  # (n,) number of original rows
    column_weight: Ints  # (m,) number of original columns

    @cached_property
    def weight(self) -> Floats:
        """Number of original entries for each entry; 0 if missing."""
        return np.where(self.known, np.outer(self.row_weight, self.column_weight), 0.0)

    @cached_property
    def ones(self) -> Bits:
        return self.X & self.known

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """The matrix by rows and by columns."""
        zeros = self.known & ~self.X
        return (
            _side(self.ones, zeros, self.row_weight, self.column_weight),
            _side(self.ones.T, zeros.T, self.column_weight, self.row_weight),
        )


def _side(ones: Bits, zeros: Bits, weight: Ints, other: Ints) -> Side:
    planes = [(other >> p & 1).astype(bool) for p in range(int(other.max()).bit_length())]
    return Side(packed_words(ones), packed_words(zeros), weight, packed_words(np.array(planes)))


@dataclass(frozen=True)
class Factors:
    """Boolean factors of a binary matrix X."""

    A: Bits  # (n, k)
    B: Bits  # (k, m)
    error: float = math.inf  # weight of the entries where A o B differs from X


def k_greedy(problem: WeightedMatrix, k: int, random: np.random.Generator, deadline: float = math.inf) -> Factors:
    """Returns k factors, each grown greedily over entries not yet covered, then improved by single flips. Later factors
    are empty if the deadline comes first."""
    H = np.where(problem.X, problem.weight, -problem.weight)
    A, B = np.zeros((len(H), k), dtype=bool), np.zeros((k, H.shape[1]), dtype=bool)
    for factor in range(k):
        bicliques = greedy_bicliques(H, random) if not factor or time.monotonic() < deadline else []
        if not bicliques:
            break
        A[:, factor], B[factor] = bicliques[0].rows, bicliques[0].columns
        H[np.ix_(A[:, factor], B[factor])] = 0.0
    return searched(problem, [Factors(A, B)])[0]


def searched(
    problem: WeightedMatrix, starts: Sequence[Factors], tries: int = 0, seed: int = 0, deadline: float = math.inf
) -> list[Factors]:
    """Returns the best factors that a local search from each start finds in `tries` random changes; with none, after
    flips of single bits until no flip lowers the error. Uses threads."""
    rows, columns = problem.sides
    flag: Ints = np.zeros(1, dtype=np.int64)

    def run(index: int) -> Factors:
        A, B = starts[index].A.copy(), np.ascontiguousarray(starts[index].B.T.copy())
        A, B, error = _searched(flag, rows, columns, A, B, tries, seed + index)
        return Factors(A, np.ascontiguousarray(B.T), float(error))

    with ThreadPoolExecutor(min(threads(), len(starts))) as pool:
        running = [pool.submit(run, index) for index in range(len(starts))]
        try:
            wait(running, None if deadline == math.inf else max(0.0, deadline - time.monotonic()))
        finally:
            if not all(future.done() for future in running):
                flag[0] = 1
        return [future.result() for future in running]


def boolean_product(A: Bits, B: Bits) -> Bits:
    """Returns A o B, (n, m): bit ij is the OR over f of A_if AND B_fj."""
    return np.asarray(A.astype(np.float32) @ B.astype(np.float32) > 0)


def best_codes(X: Floats, B: Bits) -> Bits:
    """Returns A: (n, k) such that A o B differs from each row of X in the fewest entries. X: (n, m) of 0, 1 and NaN.
    For many factors a limit of steps may end the search of a row early."""
    coded, row_of = np.unique(np.where(np.isnan(X), 2, X).astype(np.int8), axis=0, return_inverse=True)
    return np.asarray(
        _encoded(packed_words(coded == 1), packed_words(coded == 0), packed_words(B), ENCODING_STEPS)[
            row_of.reshape(-1)
        ]
    )


@compiled()
def _cover(chosen: Bits, factors: Words, cover: Words) -> None:
    """Writes the union of the chosen factors of each row."""
    cover[:] = 0
    for i in range(len(chosen)):
        for f in range(chosen.shape[1]):
            if chosen[i, f]:
                for w in range(factors.shape[1]):
                    cover[i, w] |= factors[f, w]


@compiled()
def _surplus(ones: np.uint64, zeros: np.uint64) -> int:
    return np.int64(popcount(ones)) - np.int64(popcount(zeros))  # type: ignore[return-value]


@compiled()
def _count(side: Side, i: int, w: int, bits: Any) -> int:
    """Returns the weight of the ones minus that of the zeros among some bits of a word of a row."""
    ones, zeros, total = bits & side.ones[i, w], bits & side.zeros[i, w], 0
    for p in range(len(side.planes)):
        plane = side.planes[p, w]
        if plane != 0:
            total += _surplus(ones & plane, zeros & plane) << p
    return total


@compiled()
def _settle(side: Side, chosen: Bits, own: Words, factors: Words, dirty: Bits, changed: Bits, moved: Bits) -> None:
    """Flips choices of each row while that lowers the error. own: the choices, packed by factor. dirty, changed: rows
    and factors that changed since the last call; other choices need no look. Sets `moved` for factors of new `own`."""
    n, k = chosen.shape
    words = factors.shape[1]
    before, after = np.zeros(words, dtype=np.uint64), np.zeros((k + 1, words), dtype=np.uint64)
    for i in range(n):
        whole = dirty[i]
        for f in range(k):
            whole = whole or (changed[f] and chosen[i, f])
        again = True
        while again:
            again = False
            for f in range(k - 1, -1, -1):
                for w in range(words):
                    after[f, w] = after[f + 1, w] | factors[f, w] if chosen[i, f] else after[f + 1, w]
            before[:] = 0
            for f in range(k):
                if whole or changed[f]:
                    gain = 0
                    for w in range(words):
                        gain += _count(side, i, w, factors[f, w] & ~(before[w] | after[f + 1, w]))
                    if (gain > 0 and not chosen[i, f]) or (gain < 0 and chosen[i, f]):
                        chosen[i, f] = not chosen[i, f]
                        own[f, i >> 6] ^= ONE << np.uint64(i & 63)
                        moved[f] = True
                        whole = True
                        again = True
                if chosen[i, f]:
                    for w in range(words):
                        before[w] |= factors[f, w]


@compiled()
def _error(side: Side, cover: Words) -> int:
    error = 0
    for i in range(len(cover)):
        wrong = 0
        for w in range(cover.shape[1]):
            wrong += _count(side, i, w, side.ones[i, w] & ~cover[i, w])
            wrong -= _count(side, i, w, side.zeros[i, w] & cover[i, w])
        error += wrong * side.weight[i]
    return error


@compiled()
def _grow(side: Side, cover: Words, chosen: Bits, f: int, own: Words, factor: Words) -> bool:
    """Sets factor f for each row where it gains. Returns whether a choice changed."""
    changed = False
    for i in range(len(chosen)):
        gain = 0
        for w in range(len(factor)):
            gain += _count(side, i, w, factor[w] & ~cover[i, w])
        if chosen[i, f] != (gain > 0):
            chosen[i, f] = gain > 0
            own[f, i >> 6] ^= ONE << np.uint64(i & 63)
            changed = True
    return changed


@compiled()
def _searched(flag: Ints, rows: Side, columns: Side, A: Bits, B: Bits, tries: int, seed: int) -> Any:
    """Runs the local search; B: (m, k)."""
    np.random.seed(seed)
    (n, k), m = A.shape, len(B)
    a, b = np.zeros((k, columns.ones.shape[1]), dtype=np.uint64), np.zeros((k, rows.ones.shape[1]), dtype=np.uint64)
    for f in range(k):
        for i in range(n):
            if A[i, f]:
                a[f, i >> 6] |= ONE << np.uint64(i & 63)
        for j in range(m):
            if B[j, f]:
                b[f, j >> 6] |= ONE << np.uint64(j & 63)
    row_cover, column_cover = np.zeros_like(rows.ones), np.zeros_like(columns.ones)
    dirty_rows, dirty_columns = np.ones(n, dtype=np.bool_), np.ones(m, dtype=np.bool_)
    of_rows, of_columns = np.zeros(k, dtype=np.bool_), np.zeros(k, dtype=np.bool_)  # factors to look at
    error, least = -1, 0
    old_A, old_B, old_a, old_b = A.copy(), B.copy(), a.copy(), b.copy()
    least_A, least_B = A.copy(), B.copy()
    for step in range(tries + 1):
        if step:
            for _ in range(1 + np.random.randint(2)):
                f = np.random.randint(k)
                for i in range(n):
                    dirty_rows[i] |= A[i, f]
                    A[i, f] = False
                for j in range(m):
                    dirty_columns[j] |= B[j, f]
                    B[j, f] = False
                a[f] = 0
                b[f] = 0
                _cover(A, b, row_cover)
                _cover(B, a, column_cover)
                if np.random.random() < 0.5:
                    i = np.random.randint(n)
                    b[f] = rows.ones[i] & ~row_cover[i]
                    for j in range(m):
                        B[j, f] = (b[f, j >> 6] >> np.uint64(j & 63)) & ONE != 0
                else:
                    for _ in range(2):
                        j = np.random.randint(m)
                        B[j, f] = True
                        b[f, j >> 6] |= ONE << np.uint64(j & 63)
                for _ in range(LONGEST_GROWTH):
                    _grow(rows, row_cover, A, f, a, b[f])
                    if not _grow(columns, column_cover, B, f, b, a[f]):
                        break
                for i in range(n):
                    dirty_rows[i] |= A[i, f]
                for j in range(m):
                    dirty_columns[j] |= B[j, f]
                of_rows[f] = True
                of_columns[f] = True
            if np.random.random() < 0.25:  # new factors alone do not reach all solutions
                f, j = np.random.randint(k), np.random.randint(m)
                B[j, f] = not B[j, f]
                b[f, j >> 6] ^= ONE << np.uint64(j & 63)
                dirty_columns[j] = True
                of_rows[f] = True
        while True:
            _settle(rows, A, a, b, dirty_rows, of_rows, of_columns)
            dirty_rows[:] = False
            of_rows[:] = False
            _settle(columns, B, b, a, dirty_columns, of_columns, of_rows)
            dirty_columns[:] = False
            of_columns[:] = False
            if not of_rows.any():
                break
        _cover(A, b, row_cover)
        changed = _error(rows, row_cover)
        # The temperature falls to 0, so that worse factors are accepted ever less often.
        heat = max(HEAT * least, 0.5) * (1.0 - step / (tries + 1))
        if error < 0 or changed <= error or np.random.random() < math.exp((error - changed) / heat):
            if step == 0 or changed < least:
                least = changed
                least_A[:] = A
                least_B[:] = B
            error = changed
            old_A[:] = A
            old_B[:] = B
            old_a[:] = a
            old_b[:] = b
        else:
            A[:] = old_A
            B[:] = old_B
            a[:] = old_a
            b[:] = old_b
        if flag[0] != 0:
            break
    return least_A, least_B, least


@compiled()
def _encoded(ones: Words, zeros: Words, factors: Words, steps: int) -> Any:
    """Returns (n, k) the factors that cover each row best, by branch and bound in the factors' order."""
    n, words = ones.shape
    k = len(factors)
    result, chosen = np.zeros((n, k), dtype=np.bool_), np.zeros(k, dtype=np.bool_)
    after, cover = np.zeros((k + 1, words), dtype=np.uint64), np.zeros((k + 1, words), dtype=np.uint64)
    for f in range(k - 1, -1, -1):
        for w in range(words):
            after[f, w] = after[f + 1, w] | factors[f, w]
    state = np.zeros(k + 1, dtype=np.int64)  # at each depth: 0 to take the factor, 1 to leave it, 2 when both are done
    for i in range(n):
        best, depth, tries = 0, 0, 0
        chosen[:] = False
        state[0] = 0
        while depth >= 0:
            if depth == k or state[depth] == 2 or tries > steps:
                depth -= 1
                continue
            tries += 1
            take = state[depth] == 0
            state[depth] += 1
            chosen[depth] = take
            total, reach = 0, 0
            for w in range(words):
                united = cover[depth, w] | factors[depth, w] if take else cover[depth, w]
                cover[depth + 1, w] = united
                total += _surplus(united & ones[i, w], united & zeros[i, w])
                reach += _surplus(ones[i, w] & after[depth + 1, w] & ~united, ZERO)
            if total > best:
                best = total
                result[i] = chosen
                result[i, depth + 1 :] = False
            depth += 1
            state[depth] = 0 if total + reach > best else 2
    return result
