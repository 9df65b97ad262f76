"""Factorizes a binary matrix X into Boolean factors of rank k by column generation and local search.

Sources: Kovacs, Gunluk and Hauser 2021, eqs. 14 to 17 (MIP(rho), bounds); Barahona and Goncalves 2019 (local search).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats, Ints
from forestc.algorithms.covers.biclique_pricing import Biclique, greedy_bicliques, heaviest_biclique
from forestc.algorithms.covers.column_generation import (
    COLUMNS_A_ROUND,
    Generated,
    Priced,
    Progress,
    SearchState,
    generate,
    stoppable,
)
from forestc.algorithms.covers.selection import Column, Cover, CoverSearch
from forestc.errors import OptionError, RowsError
from forestc.system.compiled import compiled, interruptible

HEAT = 0.01  # multiplies the least error into the first temperature; more accepts worse factors


@dataclass(frozen=True)
class Factors:
    """Boolean factors of a binary matrix X."""

    A: Bits  # (n, k)
    B: Bits  # (k, m)
    error: float  # weight of the entries where A o B differs from X


def k_greedy(X: Bits, weight: Floats, k: int, random: np.random.Generator) -> Factors:
    """Returns k factors, each grown greedily over entries not yet covered, then improved by single flips. weight: (n,
    m), 0 where X is missing."""
    H = np.where(X, weight, -weight)
    A, B = np.zeros((len(X), k), dtype=bool), np.zeros((k, X.shape[1]), dtype=bool)
    for factor in range(k):
        bicliques = greedy_bicliques(H, random)
        if not bicliques:
            break
        A[:, factor], B[factor] = bicliques[0].rows, bicliques[0].columns
        H[np.ix_(A[:, factor], B[factor])] = 0.0
    return polished(X, weight, A, B)


def polished(X: Bits, weight: Floats, A: Bits, B: Bits) -> Factors:
    """Returns factors after flips of single bits until no flip lowers the error; A and B stay unchanged."""
    return searched(X, weight, Factors(A, B, math.inf), 0, 0)


def searched(X: Bits, weight: Floats, start: Factors, tries: int, seed: int, deadline: float = math.inf) -> Factors:
    """Returns the best factors that a local search from `start` finds in `tries` random changes."""
    value, A, B = np.where(X, weight, -weight), start.A.copy(), start.B.copy()
    count = A.astype(np.int64) @ B.astype(np.int64)
    A, B, error = stoppable(_searched, value, A, B, count, tries, seed, deadline=deadline)
    return Factors(A, B, float(error))


@compiled()
def _improve(value: Floats, A: Bits, B: Bits, count: Ints) -> Any:
    """Flips single bits of A and B, in place, while that lowers the error."""
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
def _error(value: Floats, count: Ints) -> Any:
    total = 0.0
    for i in range(count.shape[0]):
        for j in range(count.shape[1]):
            if value[i, j] > 0 and count[i, j] == 0:
                total += value[i, j]
            elif value[i, j] < 0 and count[i, j] > 0:
                total -= value[i, j]
    return total


@compiled()
def _regrow(value: Floats, A: Bits, B: Bits, f: int, count: Ints) -> None:
    """Replaces factor f by a new one, grown from a random start."""
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
        first, second = np.random.randint(m), np.random.randint(m)
        b[first] = True
        b[second] = True
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
def _searched(flag: Ints, value: Floats, A: Bits, B: Bits, count: Ints, tries: int, seed: int) -> Any:
    np.random.seed(seed)
    k = len(B)
    _improve(value, A, B, count)
    error = _error(value, count)
    least, least_A, least_B = error, A.copy(), B.copy()
    for step in range(tries):
        if flag[0] != 0:
            break
        old_A, old_B, old_count = A.copy(), B.copy(), count.copy()
        for _ in range(1 + np.random.randint(2)):
            _regrow(value, A, B, np.random.randint(k), count)
        if np.random.random() < 0.25:  # regrowing alone does not reach all factors
            f, j = np.random.randint(k), np.random.randint(B.shape[1])
            B[f, j] = not B[f, j]
            for i in range(len(A)):
                if A[i, f]:
                    count[i, j] += 1 if B[f, j] else -1
        _improve(value, A, B, count)
        changed = _error(value, count)
        # The temperature falls to 0, so that worse factors are accepted ever less often.
        heat = max(HEAT * least, 0.5) * (1.0 - step / tries)
        if changed <= error + 1e-9 or np.random.random() < math.exp((error - changed) / max(heat, 1e-9)):
            error = changed
            if error < least - 1e-9:
                least, least_A, least_B = error, A.copy(), B.copy()
        else:
            A, B, count = old_A, old_B, old_count
    return least_A, least_B, least


RESTARTS, TRIES = 4, 5000  # runs of the first local search, and tries of each
# Divides the time limit: local search, integer programs, bound from MIP(1 / k).
SEARCH_SHARE, PROGRAM_SHARE, BOUND_SHARE = 0.2, 0.2, 0.1
OVERLAP_COSTS = (1.0, 0.95)  # sets rho in each integer program over the generated columns
# Limits nodes and entries of these programs if there is no time limit; larger programs are left out.
PROGRAM_NODES, PROGRAM_ENTRIES = 100, 20_000


@dataclass(frozen=True)
class Factorization:
    """Boolean factors of a binary matrix X. MIP(rho) is the integer program where covering a zero costs rho."""

    A: Bits  # (n, k)
    B: Bits  # (k, m)
    error: int  # number of entries, without missing ones, where A o B differs from X
    bound: float  # lower bound on the error of any factors of rank k
    optimal: bool
    model_error: float  # least objective found of MIP(rho) or MIP(1)
    model_bound: float  # lower bound on the optimum of MIP(rho)
    relaxation: float  # optimum of the relaxation of MIP(rho) over generated columns
    complete: bool  # True if `relaxation` is the optimum over all columns
    interrupted: bool  # True if Ctrl-C ended the search early
    rounds: int  # number of rounds of column generation for MIP(rho)

    @property
    def gap(self) -> float:
        """Relative gap, (error - bound) / error; 0 if optimal."""
        return 0.0 if self.optimal or not self.error else (self.error - self.bound) / self.error

    @property
    def model_gap(self) -> float:
        """Relative gap, 1 - model_bound / model_error, at least 0."""
        return max(0.0, 1 - self.model_bound / self.model_error) if self.model_error > 0 else 0.0


def boolean_product(A: Bits, B: Bits) -> Bits:
    """Returns A o B, (n, m): bit ij is the OR over f of A_if AND B_fj."""
    return np.asarray(A.astype(np.int64) @ B.astype(np.int64) > 0)


ENCODING_STEPS = 10_000  # combinations of factors tried for each row at most


def best_rows(X: NDArray[Any], B: Bits) -> Bits:
    """Returns A: (n, k) such that A o B differs from each row of X in the fewest entries. X: (n, m) of 0, 1 and NaN.
    For many factors a limit of steps may end the search of a row early. Raises RowsError for another matrix."""
    X = _checked_matrix(X)
    coded, row_of = np.unique(np.where(np.isnan(X), 2, X).astype(np.int8), axis=0, return_inverse=True)
    value = np.where(coded == 2, 0, 2 * coded - 1).astype(np.int64)
    return np.asarray(_encoded(value, B, ENCODING_STEPS)[row_of.reshape(-1)])


@compiled()
def _encoded(value: Ints, B: Bits, steps: int) -> Any:
    """Returns (n, k) the factors that cover the most value of each row, by branch and bound in the factors' order.
    value: (n, m), 1 for a one, -1 for a zero, 0 for a missing entry."""
    n, m = value.shape
    k = len(B)
    result = np.zeros((n, k), dtype=np.bool_)
    count, chosen = np.zeros(m, dtype=np.int64), np.zeros(k, dtype=np.bool_)
    after = np.zeros((k + 1, m), dtype=np.bool_)  # entries in any of the factors from a number on
    for f in range(k - 1, -1, -1):
        after[f] = after[f + 1] | B[f]
    state = np.zeros(k + 1, dtype=np.int64)  # at each depth: 0 to take the factor, 1 to leave it, 2 when both are done
    for i in range(n):
        count[:] = 0
        chosen[:] = False
        best, total, depth, tries = 0, 0, 0, 0
        state[0] = 0
        while depth >= 0:
            if depth == k or state[depth] == 2 or tries > steps:
                if depth == k and total > best:
                    best = total
                    result[i] = chosen
                depth -= 1
                if depth >= 0 and chosen[depth]:
                    chosen[depth] = False
                    for j in range(m):
                        if B[depth, j]:
                            count[j] -= 1
                            if count[j] == 0:
                                total -= value[i, j]
                continue
            tries += 1
            take = state[depth] == 0
            state[depth] += 1
            if take:
                chosen[depth] = True
                for j in range(m):
                    if B[depth, j]:
                        if count[j] == 0:
                            total += value[i, j]
                        count[j] += 1
            reach = total
            for j in range(m):
                if value[i, j] > 0 and count[j] == 0 and after[depth + 1, j]:
                    reach += 1
            depth += 1
            if depth < k:
                state[depth] = 0 if reach > best else 2
    return result


def factorize(
    X: NDArray[Any],
    k: int,
    *,
    rho: float = 1.0,
    time_limit: float = 60.0,
    rounds: int | None = None,
    seed: int = 0,
    start: tuple[Bits, Bits] | None = None,
    progress: Progress | None = None,
) -> Factorization:
    """Returns Boolean factors of rank k of X, (n, m) of 0, 1 and NaN (missing).

    time_limit: seconds; infinity if only `rounds` ends the search.
    rounds: most rounds of column generation, for MIP(rho) and for the bound.
    start: factors A, (n, k), and B, (k, m), to begin with.

    Raises RowsError for another X, OptionError for values not above 0, or without a limit.
    """
    X = _checked(X, k, rho, time_limit, rounds)
    _compile()
    begin = time.monotonic()
    problem, row_of, column_of = _distinct(X)
    k_used = min(k, *problem.X.shape)
    state = _BestFactors(problem, k_used, rho, seed, progress)
    state.rounds, state.timed = rounds, math.isfinite(time_limit)
    if start is not None and k_used == k:
        first_row, first_column = (np.unique(index, return_index=True)[1] for index in (row_of, column_of))
        state.offer(polished(problem.X, problem.weight, start[0][first_row], start[1][:, first_column]))
    interrupted, bound, generated = False, 0.0, None
    try:
        with interruptible():
            state.search(begin + SEARCH_SHARE * time_limit)
        if state.best.error > 0:
            until = begin + (1 - PROGRAM_SHARE - BOUND_SHARE) * time_limit
            generated = state.generated(rho, until)
            interrupted = generated.interrupted
            if not interrupted and state.best.error > 0:
                state.programs(rho, generated, begin + (1 - BOUND_SHARE) * time_limit)
                bound = generated.bound if rho <= 1.0 / k_used + 1e-12 else state.bounded(begin + time_limit)
    except KeyboardInterrupt:
        interrupted = True
    best = state.best
    error = round(best.error)
    bound = min(float(error), float(max(0, np.ceil(bound - 1e-6))))
    A, B = np.zeros((len(X), k), dtype=bool), np.zeros((k, X.shape[1]), dtype=bool)
    A[:, :k_used], B[:k_used] = best.A[row_of], best.B[:, column_of]
    value, relaxation = (generated.value, generated.relaxed) if generated else (float(error), 0.0)
    return Factorization(
        A, B, error, bound, bound >= error, min(value, state.model_value), generated.bound if generated else 0.0,
        relaxation, bool(generated and generated.complete), interrupted, generated.rounds if generated else 0,
    )  # fmt: skip


@cache
def _compile() -> None:
    """Runs the compiled functions once, so that the time to compile them does not count against the time limit."""
    problem = _WeightedMatrix(np.eye(2, dtype=bool), np.ones((2, 2)))
    state = _BestFactors(problem, 1, 1.0, 0, None)
    state.rounds = 1
    state.search(-math.inf)
    state.generated(1.0, time.monotonic() + 60)


def _checked(X: NDArray[Any], k: int, rho: float, time_limit: float, rounds: int | None) -> Floats:
    matrix = _checked_matrix(X)
    if k < 1 or not rho > 0 or not time_limit > 0 or (rounds is not None and rounds < 1):
        raise OptionError(
            "k, rho, time_limit and rounds must be above 0",
            where=f"k {k}, rho {rho}, time_limit {time_limit}, rounds {rounds}",
            do="give larger ones",
        )
    if math.isinf(time_limit) and rounds is None:
        raise OptionError("neither time nor rounds are limited", where="rounds", do="give one of the limits")
    return matrix


def _checked_matrix(X: NDArray[Any]) -> Floats:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape or not (np.isnan(X) | (X == 0) | (X == 1)).all():
        raise RowsError("only a matrix of 0, 1 and NaN can be factorized", where=f"shape {X.shape}", do="binarize it")
    return X


@dataclass(frozen=True)
class _WeightedMatrix:
    """A matrix without repeated rows and columns."""

    X: Bits
    weight: Floats  # number of original entries for each entry; 0 if missing

    @property
    def ones(self) -> Bits:
        return self.X & (self.weight > 0)


def _distinct(X: Floats) -> tuple[_WeightedMatrix, Ints, Ints]:
    """Returns X without repeated rows and columns, and each row's and each column's new index."""
    coded = np.where(np.isnan(X), 2, X).astype(np.int8)
    rows, row_of, row_count = np.unique(coded, axis=0, return_inverse=True, return_counts=True)
    both, column_of, column_count = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
    weight = np.where(both == 2, 0.0, np.outer(row_count, column_count))
    return _WeightedMatrix(both == 1, weight), row_of.reshape(-1), column_of.reshape(-1)


@dataclass(frozen=True)
class _Bicliques:
    """The search for new bicliques (row and column sets) in column generation."""

    problem: _WeightedMatrix
    rho: float  # cost of covering a zero
    index: Ints  # (n, m) master problem's row of each 1 in X, otherwise -1
    random: np.random.Generator

    def matrix(self, duals: Floats) -> Floats:
        H = -self.rho * self.problem.weight
        H[self.problem.ones] = duals
        return H

    def column(self, a: Bits, b: Bits) -> Column:
        inside = np.outer(a, b)
        rows = self.index[inside & self.problem.ones].astype(np.int32)
        cost = self.rho * float(self.problem.weight[inside & ~self.problem.X].sum())
        return Column(rows, cost, 1.0, (a.tobytes(), b.tobytes()))

    def columns(self, bicliques: Sequence[Biclique]) -> list[Column]:
        return [self.column(biclique.rows, biclique.columns) for biclique in bicliques[:COLUMNS_A_ROUND]]

    def quick(self, duals: Floats, price: float) -> list[Column]:
        bicliques = greedy_bicliques(self.matrix(duals), self.random)
        return self.columns([biclique for biclique in bicliques if biclique.weight > price])

    def fitting(self, duals: Floats, price: float, room: float) -> list[Column]:
        return self.quick(duals, price)  # all columns have size 1, so each fits

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        bicliques, worth, complete = heaviest_biclique(self.matrix(duals), price, steps, deadline)
        return Priced(self.columns(bicliques), worth, complete)


def _bits(column: Column) -> tuple[Bits, Bits]:
    a, b = column.key
    return np.frombuffer(a, dtype=np.bool_), np.frombuffer(b, dtype=np.bool_)


class _BestFactors:
    """Collects the best factors and all bicliques (row and column sets) found so far."""

    def __init__(self, problem: _WeightedMatrix, k: int, rho: float, seed: int, progress: Progress | None) -> None:
        self.problem, self.k, self.rho, self.seed, self.progress = problem, k, rho, seed, progress
        n, m = problem.X.shape
        total = float(problem.weight[problem.X].sum())
        self.best = Factors(np.zeros((n, k), dtype=bool), np.zeros((k, m), dtype=bool), total)
        self.met: dict[tuple[bytes, bytes], tuple[Bits, Bits]] = {}
        self.model_value = total
        self.rounds: int | None = None
        self.timed = True  # False if no step may depend on the clock

    def offer(self, factors: Factors) -> None:
        """Records the bicliques of the factors, and the factors themselves if they are the best so far."""
        for a, b in zip(factors.A.T, factors.B, strict=True):
            if a.any() and b.any():
                self.met[a.tobytes(), b.tobytes()] = (a.copy(), b.copy())
        if factors.error < self.best.error - 1e-9:
            self.best = factors
        covered = factors.A.astype(np.int64) @ factors.B.astype(np.int64)
        weight, X = self.problem.weight, self.problem.X
        value = float(weight[X & (covered == 0)].sum() + self.rho * (weight * covered)[~X].sum())
        self.model_value = min(self.model_value, value)

    def search(self, until: float) -> None:
        """Runs the local search from several starts, until a time of time.monotonic()."""
        X, weight = self.problem.X, self.problem.weight
        for restart in range(RESTARTS):
            if restart and time.monotonic() > until:
                break
            start = k_greedy(X, weight, self.k, np.random.default_rng((self.seed, restart)))
            self.offer(start)
            self.offer(searched(X, weight, start, TRIES, self.seed + restart, until))
            if self.progress is not None:
                error = self.best.error
                self.progress(SearchState(f"local search {restart + 1}: error {error:.6g}", error))

    def pricing(self, rho: float) -> tuple[Cover, _Bicliques]:
        ones, weight = self.problem.ones, self.problem.weight
        index = np.full(ones.shape, -1, dtype=np.int64)
        index[ones] = np.arange(np.count_nonzero(ones))
        cover = Cover(weight[ones], float(self.k), 1.0, rho == 1.0)
        return cover, _Bicliques(self.problem, rho, index, np.random.default_rng(self.seed))

    def generated(self, rho: float, deadline: float) -> Generated:
        """Runs column generation, and records its best cover as factors."""
        cover, pricer = self.pricing(rho)
        selection = CoverSearch(cover, self.seed, timed=self.timed)
        generated = generate(
            pricer, selection, start=[pricer.column(a, b) for a, b in self.met.values()], deadline=deadline,
            seed=self.seed, progress=lambda state: self.tell(state, rho), rounds=self.rounds,
        )  # fmt: skip
        self.take([generated.columns[index] for index in generated.chosen])
        return generated

    def tell(self, state: SearchState, rho: float) -> None:
        if self.progress is not None:  # a program with a larger rho does not bound the error
            bound = state.bound if rho <= 1.0 / self.k + 1e-12 else None
            self.progress(replace(state, value=self.best.error, bound=bound))

    def take(self, columns: Sequence[Column]) -> None:
        n, m = self.problem.X.shape
        A, B = np.zeros((n, self.k), dtype=bool), np.zeros((self.k, m), dtype=bool)
        for index, column in enumerate(columns):
            A[:, index], B[index] = _bits(column)
        self.offer(Factors(A, B, self.error(A, B)))
        self.offer(polished(self.problem.X, self.problem.weight, A, B))

    def error(self, A: Bits, B: Bits) -> float:
        return float(self.problem.weight[boolean_product(A, B) != self.problem.X].sum())

    def programs(self, rho: float, generated: Generated, deadline: float) -> None:
        """Solves integer programs over all bicliques found, and records their solutions as factors."""
        bicliques = [*(_bits(column) for column in generated.columns), *self.met.values()]
        for cost in OVERLAP_COSTS:
            cover, pricer = self.pricing(cost)
            pool = {column.key: column for column in (pricer.column(a, b) for a, b in bicliques)}
            selection = CoverSearch(cover, self.seed, timed=self.timed)
            selection.add(list(pool.values()))
            selection.offer(generated.chosen)  # the first columns of the pool are those of `generated`
            selection.improve(np.zeros(len(pool)))
            start = time.monotonic()
            share = start + (deadline - start) / (2 if cost == OVERLAP_COSTS[0] else 1)
            if not self.timed and sum(len(column.rows) for column in pool.values()) > PROGRAM_ENTRIES:
                return
            nodes = None if self.timed else PROGRAM_NODES
            selection.solve(share, generated.bound if cost == rho else 0.0, self.seed, nodes)
            self.take([selection.columns[index] for index in selection.best[1]])

    def bounded(self, deadline: float) -> float:
        """Returns a lower bound on the error of any factors of rank k; 0 if no time is left."""
        return self.generated(1.0 / self.k, deadline).bound if time.monotonic() < deadline else 0.0
