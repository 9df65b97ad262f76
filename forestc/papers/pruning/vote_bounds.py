"""Bounds the value of any selection of members from above, by a linear program over sets of rows that cannot all be
right.

The sets are combinatorial Benders cuts (G. Codato and M. Fischetti, 2006).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.highs import make_highs, make_model, most_calls, most_nodes, run
from forestc.algorithms.members.selection_run import SelectionRun
from forestc.algorithms.members.vote_patterns import Patterns
from forestc.papers.pruning.vote_quads import quads

MOST_PAIRS = 200_000  # stops listing conflicting pairs of rows beyond this number; the largest gains come first
PAIRS_A_ROUND = 4000  # limits the pairs added between two solves of the linear program
MOST_SETS = 5000  # returns only the sets with tight constraints if there are more sets
SETS_A_ROUND = 40  # searches for larger sets between two solves of the program
QUADS_A_ROUND = 300  # limits the violated sets added between two solves if some have four rows
WEIGHINGS = 4  # solves this many linear programs for one set, each weighted by the one before
LEAST_VIOLATION = 1e-6  # ignores a smaller violation of a cut as rounding of the solver
UNITS = 1 << 30  # scales multipliers to integers, so that sums stay below 2^63


@dataclass(frozen=True)
class Bound:
    """Upper bounds on the value of any selection."""

    value: float
    pairs: float  # the same bound from single rows and pairs of rows alone
    sets: tuple[tuple[int, ...], ...]  # sets of rows; each loses at least one row


class _Covering:
    """The least worth of rows that meet all sets found so far. lp: bound by the linear program. share: (rows,) how far
    each row is lost in its solution."""

    def __init__(self, worth: Floats) -> None:
        import highspy

        self.worth, self.sets, self.lp, self.share = worth, list[tuple[int, ...]](), 0.0, np.zeros(len(worth))
        self._lost, self._optimal = make_highs(), highspy.HighsModelStatus.kOptimal
        no_rows: list[tuple[list[int], list[float]]] = [([], [])] * len(worth)
        self._lost.passModel(make_model(worth, np.ones(len(worth)), ([], []), no_rows, by_rows=False))

    def add(self, sets: list[tuple[int, ...]], seconds: float) -> bool:
        """Adds sets and solves the linear program. Returns False if time ended it; `lp` stays a bound."""
        for rows in sets:
            self._lost.addRow(1.0, math.inf, len(rows), np.array(rows, dtype=np.int32), np.ones(len(rows)))
        self.sets += sets
        run(self._lost, seconds=seconds)
        if self._lost.getModelStatus() != self._optimal:
            return False
        self.share = np.array(self._lost.getSolution().col_value)
        self.lp = max(self.lp, float(self._lost.getInfo().objective_function_value))
        return True

    def add_violated(self, pool: Pool, seconds: float, most: int) -> bool:
        """Adds sets of a pool until none is violated. Returns False if time ended it."""
        until = time.perf_counter() + seconds
        while True:
            sums = np.concatenate([self.share[rows].sum(axis=1) for rows in pool])
            broken = np.flatnonzero(sums < 1 - LEAST_VIOLATION)
            if not len(broken):
                return True
            broken = broken[np.argsort(sums[broken], kind="stable")[:most]]
            firsts = np.cumsum([0, *map(len, pool)])
            chosen = [
                tuple(rows[index - first].tolist())
                for rows, first in zip(pool, firsts, strict=False)
                for index in broken[(broken >= first) & (broken < first + len(rows))]
            ]
            if not self.add(chosen, max(0.0, until - time.perf_counter())):
                return False

    def by_program(self, seconds: float, steps: int | None) -> tuple[float, Floats]:
        """Solves the integer program. Returns a lower bound, and the rows of the best solution as shares of 0 and 1."""
        options = {}
        if steps is not None:
            options["mip_max_nodes"] = most_nodes(steps, sum(map(len, self.sets)))
        solver = make_highs(mip_rel_gap=0.0, **options)
        lines = [(rows, np.ones(len(rows))) for rows in self.sets]
        bounds = np.ones(len(lines)), np.full(len(lines), math.inf)
        rows = len(self.worth)
        solver.passModel(make_model(self.worth, np.ones(rows), bounds, lines, by_rows=True, whole=rows))
        run(solver, None if steps is None else most_calls(options["mip_max_nodes"]), seconds)
        solution = np.array(solver.getSolution().col_value)
        bound = float(solver.getInfo().mip_dual_bound)
        return bound if math.isfinite(bound) else 0.0, np.rint(solution) if len(solution) else np.ones(rows)


Pool = Sequence[Ints]  # arrays of sets, each (sets, rows of a set)


def bound(
    patterns: Patterns,
    time_limit: float,
    rounds: float = math.inf,
    running: SelectionRun | None = None,
    steps: int | None = None,
) -> Bound:
    """Returns an upper bound on `Patterns.value` for 0/1 votes, and cuts for the integer program.

    time_limit: seconds for the search for larger sets.
    rounds: limits the programs of this search. steps: limits the work of an integer program.
    running: limits of time for all of it.
    """
    begun, running = time.perf_counter(), running or SelectionRun()
    wished, worth = float(patterns.gain[patterns.gain > 0].sum()), np.abs(patterns.gain)
    covering, by_pairs, loss = _Covering(worth), 0.0, 0.0
    try:
        pool = _conflicts(patterns, running)
        by_pairs = loss = _packed(pool, worth, running)
        solved = covering.add_violated(pool, running.left, PAIRS_A_ROUND)
        by_pairs = loss = max(loss, covering.lp)
        if solved and time_limit > 0 and wished > loss:
            until = min(begun + time_limit, time.perf_counter() + running.left)
            limited = SelectionRun(until)
            solved = covering.add_violated([*pool, quads(patterns, limited)], limited.left, QUADS_A_ROUND)
            loss = max(loss, covering.lp)
            if solved:
                loss = _by_larger_sets(patterns, covering, rounds, limited, steps)
    except KeyboardInterrupt:
        running.interrupt()
        loss = max(loss, covering.lp)
    integral = bool((patterns.gain == np.rint(patterns.gain)).all())

    def at_most(lost_at_least: float) -> float:
        return float(np.floor(wished - lost_at_least + 1e-6)) if integral else wished - lost_at_least

    sets = covering.sets
    if len(sets) > MOST_SETS:
        sets = [rows for rows in sets if covering.share[list(rows)].sum() <= 1 + LEAST_VIOLATION]
    return Bound(at_most(loss), at_most(by_pairs), tuple(sets))


def _by_larger_sets(
    patterns: Patterns, covering: _Covering, rounds: float, running: SelectionRun, steps: int | None
) -> float:
    """Returns the loss by larger sets: first of the linear program, then of integer programs. Each is followed by sets
    that its solution misses."""
    systems = _Systems(patterns)
    systems.seen.update(covering.sets)
    loss = covering.lp
    integer = False
    while rounds > 0 and running.left:
        rounds -= 1
        share = covering.share
        if integer:
            least, share = covering.by_program(running.left, steps)
            loss = max(loss, least)
        added = systems.separate(share, running.left)
        if added and not covering.add(added, running.left):
            break
        loss = max(loss, covering.lp)
        if not added:
            if integer:
                break
            integer = True
    return loss


def _conflicts(patterns: Patterns, running: SelectionRun) -> list[Ints]:
    """Returns pairs of rows that conflict: one of positive gain, and one of negative gain that has all of its votes.
    Rows of positive gain without votes are always lost, and come alone, first."""
    wished, unwished = np.flatnonzero(patterns.gain > 0), np.flatnonzero(patterns.gain < 0)
    wished, unwished = (rows[np.argsort(-np.abs(patterns.gain[rows]), kind="stable")] for rows in (wished, unwished))
    votes = patterns.votes.T.astype(np.float32)
    voted = votes[wished].any(axis=1)
    alone, wished = wished[~voted], wished[voted]
    pairs, count = [np.zeros((0, 2), dtype=np.int64)], 0
    against = 1 - votes[unwished].T
    for first in range(0, len(wished), 512):
        some = wished[first : first + 512]
        positive, negative = np.nonzero(votes[some] @ against == 0)
        pairs.append(np.stack([some[positive], unwished[negative]], axis=1))
        count += len(positive)
        if count > MOST_PAIRS or not running.left:
            break
    return [alone[:, None], np.concatenate(pairs)]


def _packed(pool: Pool, worth: Floats, running: SelectionRun) -> float:
    """Returns a quick lower bound on the loss. Each conflict in turn adds the least worth left of its rows, and takes
    it from them."""
    left = worth.tolist()
    loss = 0.0
    for rows in (rows for sets in pool for rows in sets.tolist()):
        if not running.left:
            break
        least = min(left[row] for row in rows)
        if least > 0:
            loss += least
            for row in rows:
                left[row] -= least
    return loss


class _Systems:
    """A search for sets of rows that cannot all be right, by Farkas' lemma."""

    def __init__(self, patterns: Patterns) -> None:
        import highspy

        rows, members = len(patterns.gain), patterns.members
        sign = np.where(patterns.gain > 0, 1.0, -1.0)
        votes = patterns.votes.astype(np.float64) * sign  # (members, rows)
        infinity = float("inf")
        # Constraints bound each member's weighted votes and the threshold, and normalize the margins.
        matrix = np.zeros((members + 2, rows + members + 1))
        matrix[:members, :rows] = votes
        matrix[:members, rows : rows + members] = -np.eye(members)
        matrix[members, :rows], matrix[members, -1] = sign, -1.0
        matrix[-1, :rows], matrix[-1, rows : rows + members] = sign > 0, -1.0
        bounds = np.array([-infinity] * members + [0.0, 1.0]), np.array([0.0] * members + [0.0, 1.0])
        lines = [(np.flatnonzero(column), column[column != 0]) for column in matrix.T]
        columns = matrix.shape[1]
        model = make_model(np.zeros(columns), np.full(columns, infinity), bounds, lines, by_rows=False)
        self.rows, self.program, self.votes, self.sign = rows, make_highs(), patterns.votes, sign.astype(np.int64)
        self.program.passModel(model)
        self.optimal = highspy.HighsModelStatus.kOptimal
        self.seen: set[tuple[int, ...]] = set()
        self.random = np.random.default_rng(0)

    def separate(self, share: Floats, time_limit: float) -> list[tuple[int, ...]]:
        """Returns new sets of rows that cannot all be right. The entries of a set in `share`, (rows,), add up to less
        than 1. `time_limit` is in seconds."""
        sets, until = [], time.perf_counter() + time_limit
        taken = share.copy()  # the next set should have other rows
        for _ in range(SETS_A_ROUND):
            if time.perf_counter() > until:
                break
            rows = self._sparse((0.02 + taken) * (0.2 + self.random.random(self.rows)), until)
            key = tuple(int(row) for row in rows)
            if not key or share[rows].sum() >= 1 - LEAST_VIOLATION:
                taken = share.copy()
                continue
            taken[rows] += 0.1
            if key not in self.seen:
                self.seen.add(key)
                sets.append(key)
        return sets

    def _sparse(self, weight: Floats, until: float) -> Ints:
        """Returns the rows of a set with little weight, or none. Rows with large multipliers become cheaper and are
        weighed again, so that the set has few rows."""
        cost, all_rows = weight, np.arange(self.rows, dtype=np.int32)
        multipliers = np.zeros(self.rows)
        for _ in range(WEIGHINGS):
            self.program.changeColsCost(self.rows, all_rows, cost)
            run(self.program, seconds=max(0.0, until - time.perf_counter()))
            if self.program.getModelStatus() != self.optimal:
                break
            multipliers = np.array(self.program.getSolution().col_value)[: self.rows]
            small = 0.02 * max(float(multipliers.max()), 1e-9)
            cost = weight * small / (multipliers + small)
        return self._proved(multipliers)

    def _proved(self, multipliers: Floats) -> Ints:
        """Returns rows that exact arithmetic proves cannot all be right; otherwise an empty array."""
        largest = float(multipliers.max(initial=0.0))
        if largest <= 0:
            return np.zeros(0, dtype=np.int64)
        integers = np.rint(np.maximum(multipliers, 0.0) * (UNITS / largest)).astype(np.int64)
        below = int(integers @ self.sign)  # the threshold, which is at least 0, must not help
        if below < 0:
            integers[np.argmax(np.where(self.sign > 0, integers, 0))] -= below
        reached = int(np.maximum(self.votes.astype(np.int64) @ (integers * self.sign), 0).sum())
        required = int(integers[self.sign > 0].sum())
        return np.flatnonzero(integers if reached < required else 0 * integers)
