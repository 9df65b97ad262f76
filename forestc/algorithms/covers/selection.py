"""The best cover over given columns: swap local search, then the integer program.

The problem is that of `column_generation`, restricted to columns that are at hand. The local search adds, drops and
swaps columns, always by the move that gains most, and escapes by dropping a few at random. Of equal objectives
the one of smaller size wins.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestc.algorithms.arrays import Floats, Int32s, Ints
from forestc.algorithms.highs import make_highs, make_model, most_calls, run
from forestc.system.compiled import compiled

TRIES = 20  # random escapes of one call of `improve`
LONGEST = 2.0  # seconds of one call of `improve`


@dataclass(frozen=True)
class Column:
    """rows: ascending, those it covers. key: what the column stands for, hashable; equal keys are equal columns."""

    rows: Int32s
    cost: float
    size: float
    key: Any


@dataclass(frozen=True)
class Cover:
    """The problem without its columns. penalty: (rows,) > 0. least_size: no column is smaller. integral: all penalties
    and costs are whole numbers, so that bounds may be rounded up."""

    penalty: Floats
    budget: float
    least_size: float
    integral: bool

    def rounded(self, bound: float) -> float:
        """The bound on covers that follows from a bound on fractional covers."""
        return float(math.ceil(bound - 1e-6)) if self.integral else bound


class CoverSearch:
    """Keeps the best cover over a growing list of columns."""

    def __init__(self, cover: Cover, seed: int) -> None:
        self.cover = cover
        self.columns: list[Column] = []
        self._random = np.random.default_rng(seed)
        self._chosen: tuple[int, ...] = ()
        self._value, self._size = float(cover.penalty.sum()), 0.0
        # a step in size that can't outweigh a step in the objective
        self._tie = (1.0 if cover.integral else 1e-6) * 1e-3 / max(1.0, cover.budget)
        self._flat: tuple[Any, ...] | None = None

    @property
    def best(self) -> tuple[float, tuple[int, ...]]:
        """Objective and columns of the best cover so far."""
        return self._value, self._chosen

    def add(self, columns: Sequence[Column]) -> None:
        """More columns to choose from."""
        self.columns += columns
        if columns:
            self._flat = None

    def improve(self, taken: Floats) -> None:
        """Local search from the columns that the relaxation takes most of, from the best cover, and from covers near
        it. taken: (columns,)."""
        if not self.columns:
            return
        until = time.monotonic() + LONGEST
        self._search(self._fitting(np.argsort(-taken, kind="stable")[: np.count_nonzero(taken > 0.01)]))
        self._search(np.array(self._chosen, dtype=np.int64))
        for _ in range(TRIES):
            if time.monotonic() > until:
                break
            near = np.array(self._chosen, dtype=np.int64)
            if len(near):
                near = self._random.permutation(near)[int(self._random.integers(1, min(4, len(near) + 1))) :]
            self._search(near)

    def offer(self, chosen: Sequence[int]) -> None:
        """A cover found elsewhere, kept if it is better."""
        distinct = sorted(set(map(int, chosen)))
        missed = self.cover.penalty.copy()
        for place in distinct:
            missed[self.columns[place].rows] = 0.0
        value = float(missed.sum()) + sum(self.columns[place].cost for place in distinct)
        size = sum(self.columns[place].size for place in distinct)
        if size <= self.cover.budget + 1e-9 and (
            value + self._tie * size < self._value + self._tie * self._size - 0.5 * self._tie
        ):
            self._chosen, self._value, self._size = tuple(distinct), value, size

    def solve(self, deadline: float, target: float, seed: int, nodes: int | None = None) -> bool:
        """The integer program over all columns at hand, from the best cover so far. target: a bound at which the search
        may stop. nodes: the most of its search tree. Returns whether the best cover is now proved to be the best over
        these columns."""
        if self._value <= target + 1e-9 and self._size == 0:
            return True
        seconds = deadline - time.monotonic()
        if seconds <= 0 or not self.columns:
            return not self.columns
        columns, proved = _integer_program(self, seconds, seed, nodes)
        self.offer(columns)
        return proved

    def _fitting(self, order: Ints) -> Ints:
        """The first columns in this order that fit into the budget together."""
        room, kept = self.cover.budget, []
        for place in order.tolist():
            if self.columns[place].size <= room:
                room -= self.columns[place].size
                kept.append(place)
        return np.array(kept, dtype=np.int64)

    def _search(self, start: Ints) -> None:
        if self._flat is None:
            ends = np.cumsum([0, *(len(column.rows) for column in self.columns)])
            rows = np.concatenate([column.rows for column in self.columns])
            cost = np.array([column.cost for column in self.columns])
            size = np.array([column.size for column in self.columns])
            self._flat = ends, rows, cost, size
        ends, rows, cost, size = self._flat
        self.offer(_swapped(ends, rows, cost + self._tie * size, size, self.cover.penalty, self.cover.budget, start))


@compiled()
def _swapped(ends: Ints, rows: Int32s, cost: Floats, size: Floats, penalty: Floats, budget: float, start: Ints) -> Any:
    """Best-improvement local search; cost includes the tie-break. Returns the columns chosen."""
    many = len(cost)
    inside = np.zeros(many, dtype=np.bool_)
    count = np.zeros(len(penalty), dtype=np.int64)
    used = 0.0
    for k in start:
        inside[k] = True
        used += size[k]
        for at in range(ends[k], ends[k + 1]):
            count[rows[at]] += 1
    open_ = np.empty(len(penalty))
    while True:
        least, drop, take = -1e-9, -1, -1
        for out in range(-1, many):
            if out >= 0 and not inside[out]:
                continue
            for i in range(len(penalty)):
                open_[i] = penalty[i] if count[i] == 0 else 0.0
            change, room = 0.0, budget - used + 1e-9
            if out >= 0:
                change, room = -cost[out], room + size[out]
                for at in range(ends[out], ends[out + 1]):
                    i = rows[at]
                    if count[i] == 1:
                        open_[i] = penalty[i]
                        change += penalty[i]
                if change < least:
                    least, drop, take = change, out, -1
            for k in range(many):
                if inside[k] or size[k] > room:
                    continue
                value = change + cost[k]
                for at in range(ends[k], ends[k + 1]):
                    value -= open_[rows[at]]
                if value < least:
                    least, drop, take = value, out, k
        if drop < 0 and take < 0:
            break
        if drop >= 0:
            inside[drop] = False
            used -= size[drop]
            for at in range(ends[drop], ends[drop + 1]):
                count[rows[at]] -= 1
        if take >= 0:
            inside[take] = True
            used += size[take]
            for at in range(ends[take], ends[take + 1]):
                count[rows[at]] += 1
    return np.flatnonzero(inside)


def _integer_program(search: CoverSearch, seconds: float, seed: int, nodes: int | None) -> tuple[list[int], bool]:
    """The columns that HiGHS chooses, and whether it proved that no others are better."""
    import highspy

    cover, columns = search.cover, search.columns
    rows, many = len(cover.penalty), len(columns)
    tie = search._tie
    cost = np.concatenate([cover.penalty, [column.cost + tie * column.size for column in columns]])
    bounds = np.append(np.ones(rows), -np.inf), np.append(np.full(rows, np.inf), cover.budget)
    lines: list[tuple[ArrayLike, ArrayLike]] = [([row], [1.0]) for row in range(rows)]
    lines += [(np.append(c.rows, rows), np.append(np.ones(len(c.rows)), c.size)) for c in columns]
    # missed_i is integral anyway; declared continuous, HiGHS 1.14 calls wrong optima optimal (9 of 2,500 small covers)
    model = make_model(cost, np.ones(rows + many), bounds, lines, by_rows=False, whole=rows + many)
    limits = {} if nodes is None else {"mip_max_nodes": nodes}
    highs = make_highs(seed=seed, time_limit=seconds, mip_rel_gap=0.0, mip_abs_gap=0.4 * tie, **limits)
    highs.passModel(model)
    start = np.zeros(rows + many)
    missed = np.ones(rows)
    for place in search.best[1]:
        start[rows + place] = 1.0
        missed[columns[place].rows] = 0.0
    start[:rows] = missed
    known = highspy.HighsSolution()
    known.col_value = start
    highs.setSolution(known)
    run(highs, None if nodes is None else most_calls(nodes))
    values = np.asarray(highs.getSolution().col_value)
    proved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    if not len(values) or not math.isfinite(highs.getInfo().objective_function_value):
        return list(search.best[1]), False
    return [int(place) for place in np.flatnonzero(values[rows:] > 0.5)], proved
