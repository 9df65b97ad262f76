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
from forestc.algorithms.covers.column_generation import (
    COLUMNS_A_ROUND,
    Generated,
    Priced,
    Progress,
    SearchState,
    generate,
)
from forestc.algorithms.covers.selection import Column, Cover, CoverSearch
from forestc.errors import OptionError, RowsError
from forestc.papers.factorization.biclique_pricing import Biclique, greedy_bicliques, heaviest_biclique
from forestc.papers.factorization.factor_search import (
    Factors,
    WeightedMatrix,
    best_codes,
    boolean_product,
    k_greedy,
    searched,
)
from forestc.system.compiled import interruptible, threads

RESTARTS = 4  # runs of the local search, per thread
# Limits the tries of a run: their least and most number, tries per bit of the smaller factor, words read in total.
LEAST_TRIES, MOST_TRIES, TRIES_A_BIT, WORDS_READ = 50, 20_000, 50, 10**8
FIRST_SHARE, LAST_SHARE = 16, 4  # divides and multiplies the tries of the first and the last runs in a time limit
# Divides the time limit: local search, integer programs, bound from MIP(1 / k).
SEARCH_SHARE, PROGRAM_SHARE, BOUND_SHARE = 0.2, 0.2, 0.1
# Limits the ones of a matrix with a column generation, in all and per square root of a second: the time of a master
# problem grows with their square. Of a larger matrix the local search takes all the time.
MOST_ONES, ONES_A_ROOT = 50_000, 3_000
MEMORY = 0.7  # weighs the mean of the duals so far against the current duals
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


def factorize(
    X: NDArray[Any],
    k: int,
    *,
    rho: float = 1.0,
    time_limit: float = 60.0,
    rounds: int | None = None,
    work: float = math.inf,
    seed: int = 0,
    start: Bits | None = None,
    progress: Progress | None = None,
) -> Factorization:
    """Returns Boolean factors of rank k of X, (n, m) of 0, 1 and NaN (missing).

    time_limit: seconds; infinity if only `rounds` ends the search.
    rounds: most rounds of column generation, for MIP(rho) and for the bound.
    work: most steps of the relaxations of each of both: nonzeros times simplex iterations.
    start: a factor B, (k, m), to begin with, ignored if it has another shape.

    Raises RowsError for another X, OptionError for values not above 0, or without a limit.
    """
    X = _checked(X, k, rho, time_limit, rounds)
    _compile()
    begin = time.monotonic()
    problem, row_of, column_of = _distinct(X)
    k_used = min(k, *problem.X.shape)
    state = _BestFactors(problem, k_used, rho, seed, progress)
    state.rounds, state.work, state.timed = rounds, work, math.isfinite(time_limit)
    interrupted, bound, generated = False, 0.0, None
    try:
        if start is not None and start.shape == (k_used, X.shape[1]):
            first_row, first_column = (np.unique(index, return_index=True)[1] for index in (row_of, column_of))
            state.improve([Factors(best_codes(X, start)[first_row], start[:, first_column])])
        modelled = np.count_nonzero(problem.ones) <= min(MOST_ONES, ONES_A_ROOT * math.sqrt(time_limit))
        with interruptible():
            state.search(begin + (SEARCH_SHARE if modelled else 1.0) * time_limit)
        if state.best.error > 0 and modelled:
            until = begin + (1 - PROGRAM_SHARE - BOUND_SHARE) * time_limit
            generated = state.generated(rho, until)
            interrupted = generated.interrupted
            if not interrupted and state.best.error > 0:
                state.programs(rho, generated, begin + (1 - BOUND_SHARE) * time_limit)
                bound = generated.bound if rho <= 1.0 / k_used + 1e-12 else state.bounded(begin + time_limit)
    except KeyboardInterrupt:
        interrupted = True
    A, B = np.zeros((len(X), k), dtype=bool), np.zeros((k, X.shape[1]), dtype=bool)
    A[:, :k_used], B[:k_used] = state.best.A[row_of], state.best.B[:, column_of]
    better, error = best_codes(X, B), round(state.best.error)
    changed = int(np.count_nonzero((boolean_product(better, B) != (X == 1)) & ~np.isnan(X)))
    if changed < error:
        A, error = better, changed
    bound = min(float(error), float(max(0, np.ceil(bound - 1e-6))))
    value, relaxation = (generated.value, generated.relaxed) if generated else (float(error), 0.0)
    return Factorization(
        A, B, error, bound, bound >= error, min(value, state.model_value), generated.bound if generated else 0.0,
        relaxation, bool(generated and generated.complete), interrupted, generated.rounds if generated else 0,
    )  # fmt: skip


def best_rows(X: NDArray[Any], B: Bits) -> Bits:
    """Returns A: (n, k) such that A o B differs from each row of X in the fewest entries. X: (n, m) of 0, 1 and NaN.
    For many factors a limit of steps may end the search of a row early. Raises RowsError for another matrix."""
    return best_codes(_checked_matrix(X), B)


@cache
def _compile() -> None:
    """Runs the compiled functions once, so that the time to compile them does not count against the time limit."""
    problem, *_ = _distinct(np.eye(2))
    state = _BestFactors(problem, 1, 1.0, 0, None)
    state.rounds = 1
    state.search(-math.inf)
    state.generated(1.0, time.monotonic() + 60)
    best_rows(np.eye(2), np.eye(2, dtype=bool))


def _checked(X: NDArray[Any], k: int, rho: float, time_limit: float, rounds: int | None) -> Floats:
    matrix = _checked_matrix(X)
    if k < 1 or not rho > 0 or not time_limit > 0 or (rounds is not None and rounds < 1):
        raise OptionError(
            f"one of {k}, {rho}, {time_limit} and {rounds} is not above 0",
            where="k, rho, time_limit and rounds",
            do="give larger ones",
        )
    if math.isinf(time_limit) and rounds is None:
        raise OptionError("neither is given", where="time_limit and rounds", do="give one of the limits")
    return matrix


def _checked_matrix(X: NDArray[Any]) -> Floats:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape or not (np.isnan(X) | (X == 0) | (X == 1)).all():
        raise RowsError(
            f"other values than 0, 1 and NaN, or a shape {X.shape} that is no matrix", where="X", do="binarize it"
        )
    return X


def _distinct(X: Floats) -> tuple[WeightedMatrix, Ints, Ints]:
    """Returns X without repeated rows and columns, and each row's and each column's new index."""
    coded = np.where(np.isnan(X), 2, X).astype(np.int8)
    rows, row_of, row_weight = _unique(coded)
    both, column_of, column_weight = _unique(rows.T)
    return WeightedMatrix(both.T == 1, both.T != 2, row_weight, column_weight), row_of, column_of


def _unique(coded: NDArray[np.int8]) -> tuple[NDArray[np.int8], Ints, Ints]:
    """Returns distinct rows, the most frequent first, each row's index among them, and their counts."""
    rows, row_of, count = np.unique(coded, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-count, kind="stable")
    return rows[order], np.argsort(order)[row_of.reshape(-1)], count[order]


@dataclass(frozen=True)
class _Bicliques:
    """The search for new bicliques (row and column sets) in column generation."""

    problem: WeightedMatrix
    rho: float  # cost of covering a zero
    index: Ints  # (n, m) master problem's row of each 1 in X, otherwise -1
    random: np.random.Generator
    mean: Floats  # (rows of the master problem,) mean of the duals so far, where the last ones weigh most

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
        # A degenerate master problem has many optimal duals: their mean finds columns where the last ones find none.
        self.mean[:] = MEMORY * self.mean + (1 - MEMORY) * duals if self.mean.any() else duals
        return [*self.fitting(duals, price, math.inf), *self.fitting(self.mean, price, math.inf)]

    def fitting(self, duals: Floats, price: float, room: float) -> list[Column]:
        bicliques = greedy_bicliques(self.matrix(duals), self.random)  # all columns have size 1, so each fits
        return self.columns([biclique for biclique in bicliques if biclique.weight > price])

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        bicliques, worth, complete = heaviest_biclique(self.matrix(duals), price, steps, deadline)
        return Priced(self.columns(bicliques), worth, complete)


def _bits(column: Column) -> tuple[Bits, Bits]:
    a, b = column.key
    return np.frombuffer(a, dtype=np.bool_), np.frombuffer(b, dtype=np.bool_)


class _BestFactors:
    """Collects the best factors and all bicliques (row and column sets) found so far."""

    def __init__(self, problem: WeightedMatrix, k: int, rho: float, seed: int, progress: Progress | None) -> None:
        self.problem, self.k, self.rho, self.seed, self.progress = problem, k, rho, seed, progress
        n, m = problem.X.shape
        total = float(problem.weight[problem.X].sum())
        self.best = Factors(np.zeros((n, k), dtype=bool), np.zeros((k, m), dtype=bool), total)
        self.met: dict[tuple[bytes, bytes], tuple[Bits, Bits]] = {}
        self.model_value = total
        self.rounds: int | None = None
        self.work = math.inf
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

    def improve(self, starts: Sequence[Factors], tries: int = 0, until: float = math.inf) -> None:
        """Records the results of local searches."""
        for factors in searched(self.problem, starts, tries, self.seed, until):
            self.offer(factors)
        self.seed += len(starts)

    def search(self, until: float) -> None:
        """Runs the local search from several starts, until a time of time.monotonic() or several runs in vain. With a
        time limit the tries of a run grow."""
        most = self.tries()
        tries, run, vain = max(1, most // FIRST_SHARE) if self.timed else most, 0, 0
        while vain < RESTARTS and self.best.error > 0 and (not run or time.monotonic() < until):
            before = self.best.error
            random = [np.random.default_rng((self.seed, index)) for index in range(threads())]
            starts = [k_greedy(self.problem, self.k, matrix, until) for matrix in random]
            for start in starts:
                self.offer(start)
            self.improve(starts, tries, until)
            run += 1
            if not self.timed:
                vain = run
            elif tries >= most:
                vain = vain + 1 if self.best.error == before else 0
            tries = min(2 * tries, LAST_SHARE * most) if self.timed else tries
            if self.progress is not None:
                error = self.best.error
                self.progress(SearchState(f"local search {run}: error {error:.6g}", error))

    def tries(self) -> int:
        n, m = self.problem.X.shape
        words = self.k * (n * -(-m // 64) + m * -(-n // 64))
        return int(np.clip(min(TRIES_A_BIT * self.k * min(n, m), WORDS_READ // words), LEAST_TRIES, MOST_TRIES))

    def pricing(self, rho: float) -> tuple[Cover, _Bicliques]:
        ones, weight = self.problem.ones, self.problem.weight
        index = np.full(ones.shape, -1, dtype=np.int64)
        index[ones] = np.arange(np.count_nonzero(ones))
        cover = Cover(weight[ones], float(self.k), 1.0, rho == 1.0)
        mean = np.zeros(np.count_nonzero(ones))
        return cover, _Bicliques(self.problem, rho, index, np.random.default_rng(self.seed), mean)

    def generated(self, rho: float, deadline: float) -> Generated:
        """Runs column generation, and records its best cover as factors."""
        cover, pricer = self.pricing(rho)
        selection = CoverSearch(cover, self.seed, timed=self.timed)
        generated = generate(
            pricer, selection, start=[pricer.column(a, b) for a, b in self.met.values()], deadline=deadline,
            seed=self.seed, progress=lambda state: self.tell(state, rho), rounds=self.rounds,
            work=self.work,
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
        self.improve([Factors(A, B)])

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
