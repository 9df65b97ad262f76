"""Bounds the value of any selection from above, more tightly than the relaxation of the integer program does.

Some sets of rows can't all be decided as their gains ask, so each set loses at least one row: a cut. Two rows conflict
if the first should be positive, the second negative, and the second has all votes of the first. Larger sets follow from
Farkas' lemma (combinatorial Benders cuts, G. Codato and M. Fischetti, 2006). A linear program over the cuts bounds the
loss from below.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.highs import make_highs, make_model, run
from forestc.algorithms.members.selection_run import SelectionRun
from forestc.algorithms.members.vote_patterns import Patterns

MOST_PAIRS = 200_000  # stops collecting pairs of conflicting rows beyond this many; the largest gains come first
PAIRS_A_ROUND = 4000  # adds at most this many violated pairs to the linear program before it is solved again
MOST_SETS = 5000  # sets above which only tight ones (equality in the linear program) are returned
SETS_A_ROUND = 40  # searches this often for larger sets before the linear program is solved again
LEAST_VIOLATION = 1e-6  # treats a smaller violation of a cut, in lost rows, as rounding of the solver
UNITS = 1 << 30  # scales the largest multiplier of a set to this integer, so that sums stay below 2^63


@dataclass(frozen=True)
class Bound:
    """Result of `bound`. value: upper bound on the value of any selection. pairs: the same from conflicting pairs
    alone. sets: sets of rows; each loses at least one row."""

    value: float
    pairs: float
    sets: tuple[tuple[int, ...], ...]


def bound(
    patterns: Patterns, time_limit: float, rounds: float = math.inf, running: SelectionRun | None = None
) -> Bound:
    """Returns an upper bound on `Patterns.value` for 0/1 votes, and cuts for the integer program.
    time_limit: seconds for the search for larger sets. rounds: limits the linear programs of this search.
    running: limits of time for all of it."""
    import highspy

    begun, running = time.perf_counter(), running or SelectionRun()
    wished = float(patterns.gain[patterns.gain > 0].sum())
    worth = np.abs(patterns.gain)
    lost, optimal = make_highs(), highspy.HighsModelStatus.kOptimal
    # Each variable says how far its row is lost; each cut becomes a constraint later.
    no_rows: list[tuple[list[int], list[float]]] = [([], [])] * len(worth)
    lost.passModel(make_model(worth, np.ones(len(worth)), ([], []), no_rows, by_rows=False))
    sets: list[tuple[int, ...]] = []
    loss, by_pairs = 0.0, 0.0
    share = np.zeros(len(worth))
    systems: _Systems | None = None
    try:
        pool = _conflicts(patterns)
        loss = _packed(pool, worth)
        unused = np.ones(len(pool), dtype=bool)
        while True:
            broken = np.flatnonzero(unused & (_sums(pool, share) < 1 - LEAST_VIOLATION))[:PAIRS_A_ROUND]
            added = [pool[k] for k in broken]
            unused[broken] = False
            if not added:
                by_pairs = by_pairs or loss
                rounds -= 1
                if rounds < 0 or time.perf_counter() - begun > time_limit or not running.left:
                    break
                systems = systems or _Systems(patterns)
                added = systems.separate(share, min(begun + time_limit - time.perf_counter(), running.left))
                if not added:
                    break
            for rows in added:
                lost.addRow(1.0, float("inf"), len(rows), np.array(rows, dtype=np.int32), np.ones(len(rows)))
            run(lost, seconds=running.left)
            if lost.getModelStatus() != optimal:  # the bound by fewer cuts holds, too
                break
            sets += added
            share = np.array(lost.getSolution().col_value)
            loss = max(loss, float(lost.getInfo().objective_function_value))
    except KeyboardInterrupt:
        running.interrupt()
    by_pairs = by_pairs or loss
    integral = bool((patterns.gain == np.rint(patterns.gain)).all())

    def at_most(lost_at_least: float) -> float:
        return float(np.floor(wished - lost_at_least + 1e-6)) if integral else wished - lost_at_least

    if len(sets) > MOST_SETS:
        sets = [rows for rows in sets if share[list(rows)].sum() <= 1 + LEAST_VIOLATION]
    return Bound(at_most(loss), at_most(by_pairs), tuple(sets))


def _conflicts(patterns: Patterns) -> list[tuple[int, ...]]:
    """Returns pairs of rows that conflict: one of positive gain, and one of negative gain that has all of its votes. A
    row of positive gain without votes is always lost, and comes alone."""
    wished, unwished = np.flatnonzero(patterns.gain > 0), np.flatnonzero(patterns.gain < 0)
    wished, unwished = (rows[np.argsort(-np.abs(patterns.gain[rows]), kind="stable")] for rows in (wished, unwished))
    votes = patterns.votes.T.astype(np.float32)
    conflicts: list[tuple[int, ...]] = [(int(row),) for row in wished if not votes[row].any()]
    against = 1 - votes[unwished].T
    for first in range(0, len(wished), 512):
        some = wished[first : first + 512]
        some = some[votes[some].any(axis=1)]
        positive, negative = np.nonzero(votes[some] @ against == 0)
        conflicts += zip(some[positive].tolist(), unwished[negative].tolist(), strict=True)
        if len(conflicts) > MOST_PAIRS:
            break
    return conflicts


def _packed(pool: list[tuple[int, ...]], worth: Floats) -> float:
    """Returns a quick lower bound on the loss. Each conflict in turn adds the least worth left of its rows, and takes it
    from them."""
    left = worth.tolist()
    loss = 0.0
    for rows in pool:
        least = min(left[row] for row in rows)
        if least > 0:
            loss += least
            for row in rows:
                left[row] -= least
    return loss


def _sums(pool: list[tuple[int, ...]], share: Floats) -> Floats:
    single = [rows for rows in pool if len(rows) == 1]
    pairs = np.array([rows for rows in pool if len(rows) == 2], dtype=np.int64).reshape(-1, 2)
    return np.concatenate([share[[rows[0] for rows in single]], share[pairs].sum(axis=1)])


class _Systems:
    """A search for sets of rows that no selection decides as their gains ask. A linear program, with members relaxed to
    values from 0 to 1, gives multipliers of the rows that prove such a set (Farkas' lemma)."""

    def __init__(self, patterns: Patterns) -> None:
        import highspy

        rows, members = len(patterns.gain), patterns.members
        sign = np.where(patterns.gain > 0, 1.0, -1.0)
        votes = patterns.votes.astype(np.float64) * sign  # (members, rows)
        infinity = float("inf")
        # Constraints: one on each member's weighted votes, one on the threshold, one that normalizes the margins.
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
        """Returns new sets of rows with shares that add up to less than 1. share: (rows,) how far each row is lost so
        far.
        time_limit: in seconds."""
        sets, until = [], time.perf_counter() + time_limit
        cost = share + 1e-4
        all_rows = np.arange(self.rows, dtype=np.int32)
        for _ in range(SETS_A_ROUND):
            if time.perf_counter() > until:
                break
            self.program.changeColsCost(self.rows, all_rows, cost * (1 + 0.05 * self.random.random(self.rows)))
            run(self.program, seconds=max(0.0, until - time.perf_counter()))
            if self.program.getModelStatus() != self.optimal:
                break
            rows = self._proved(np.array(self.program.getSolution().col_value)[: self.rows])
            cost[rows] += 0.1  # the next set should have other rows
            key = tuple(int(row) for row in rows)
            if key and key not in self.seen and share[rows].sum() < 1 - LEAST_VIOLATION:
                self.seen.add(key)
                sets.append(key)
        return sets

    def _proved(self, multipliers: Floats) -> Ints:
        """Returns the rows with positive multipliers if these, rounded to integers, prove in exact arithmetic that one
        of the rows is lost; otherwise no rows."""
        integers = np.rint(np.maximum(multipliers, 0.0) * (UNITS / max(multipliers.max(initial=0.0), 1e-300))).astype(
            np.int64
        )
        below = int(integers @ self.sign)  # the threshold, which is at least 0, must not help
        if below < 0:
            integers[np.argmax(np.where(self.sign > 0, integers, 0))] -= below
        reached = int(np.maximum(self.votes.astype(np.int64) @ (integers * self.sign), 0).sum())
        required = int(integers[self.sign > 0].sum())
        return np.flatnonzero(integers if reached < required else 0 * integers)
