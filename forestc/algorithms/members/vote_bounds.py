"""Bounds the value of any selection of members from above, by a linear program over sets of rows that cannot all be
right.

The sets are combinatorial Benders cuts (G. Codato and M. Fischetti, 2006).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.highs import make_highs, make_model, run
from forestc.algorithms.members.vote_patterns import Patterns

MOST_PAIRS = 200_000  # stops listing conflicting pairs of rows soon after this number
PAIRS_A_ROUND = 4000  # limits the pairs added between two solves of the linear program
MOST_SETS = 5000  # returns only the sets with tight constraints if there are more sets
SETS_A_ROUND = 40  # searches for larger sets between two solves of the linear program
LEAST_SECONDS = 10.0  # seconds for a linear program in any case
LEAST_VIOLATION = 1e-6  # ignores a smaller violation of a cut as rounding of the solver
UNITS = 1 << 30  # scales multipliers to integers, so that sums stay below 2^63


@dataclass(frozen=True)
class Bound:
    """Upper bounds on the value of any selection."""

    value: float
    pairs: float  # the same bound from single rows and pairs of rows alone
    sets: tuple[tuple[int, ...], ...]  # sets of rows; each loses at least one row


def bound(patterns: Patterns, time_limit: float) -> Bound:
    """Returns an upper bound on `Patterns.value` for 0/1 votes, and sets of rows that cannot all be right (cuts).
    `time_limit` is in seconds."""
    import highspy

    begun = time.perf_counter()
    wished = float(patterns.gain[patterns.gain > 0].sum())
    worth = np.abs(patterns.gain)
    lost, optimal = make_highs(), highspy.HighsModelStatus.kOptimal
    # Each row has a variable from 0 (kept) to 1 (lost); cuts become constraints later.
    no_rows: list[tuple[list[int], list[float]]] = [([], [])] * len(worth)
    lost.passModel(make_model(worth, np.ones(len(worth)), ([], []), no_rows, by_rows=False))
    pool = _conflicts(patterns)
    sets: list[tuple[int, ...]] = []
    loss, by_pairs = 0.0, 0.0
    share = np.zeros(len(worth))
    unused = np.ones(len(pool), dtype=bool)
    systems: _Systems | None = None
    while True:
        broken = np.flatnonzero(unused & (_sums(pool, share) < 1 - LEAST_VIOLATION))[:PAIRS_A_ROUND]
        added = [pool[k] for k in broken]
        unused[broken] = False
        if not added:
            by_pairs = by_pairs or loss
            if time.perf_counter() - begun > time_limit:
                break
            systems = systems or _Systems(patterns)
            added = systems.separate(share, begun + time_limit - time.perf_counter())
            if not added:
                break
        for rows in added:
            lost.addRow(1.0, float("inf"), len(rows), np.array(rows, dtype=np.int32), np.ones(len(rows)))
        run(lost, seconds=max(LEAST_SECONDS, begun + time_limit - time.perf_counter()))
        if lost.getModelStatus() != optimal:  # the bound by fewer cuts holds, too
            break
        sets += added
        share = np.array(lost.getSolution().col_value)
        loss = float(lost.getInfo().objective_function_value)
    integral = bool((patterns.gain == np.rint(patterns.gain)).all())

    def at_most(lost_at_least: float) -> float:
        return float(np.floor(wished - lost_at_least + 1e-6)) if integral else wished - lost_at_least

    if len(sets) > MOST_SETS:
        sets = [rows for rows in sets if share[list(rows)].sum() <= 1 + LEAST_VIOLATION]
    return Bound(at_most(loss), at_most(by_pairs), tuple(sets))


def _conflicts(patterns: Patterns) -> list[tuple[int, ...]]:
    """Returns single rows and pairs of rows that no selection decides as their gains ask."""
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


def _sums(pool: list[tuple[int, ...]], share: Floats) -> Floats:
    single = [rows for rows in pool if len(rows) == 1]
    pairs = np.array([rows for rows in pool if len(rows) == 2], dtype=np.int64).reshape(-1, 2)
    return np.concatenate([share[[rows[0] for rows in single]], share[pairs].sum(axis=1)])


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
        """Returns rows that exact arithmetic proves cannot all be right; otherwise an empty array."""
        integers = np.rint(np.maximum(multipliers, 0.0) * (UNITS / max(multipliers.max(initial=0.0), 1e-300))).astype(
            np.int64
        )
        below = int(integers @ self.sign)  # the threshold, which is at least 0, must not help
        if below < 0:
            integers[np.argmax(np.where(self.sign > 0, integers, 0))] -= below
        reached = int(np.maximum(self.votes.astype(np.int64) @ (integers * self.sign), 0).sum())
        required = int(integers[self.sign > 0].sum())
        return np.flatnonzero(integers if reached < required else 0 * integers)
