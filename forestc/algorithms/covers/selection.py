"""Finds the best cover over given columns by local search and by an integer program. Of covers with equal objectives,
the smaller one wins."""

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

TRIES = 20  # tries of one call of `improve` to leave a local optimum
LONGEST = 2.0  # seconds after which `improve` starts no further try, if there is a time limit


@dataclass(frozen=True)
class Column:
    """A set of rows that a cover may choose."""

    rows: Int32s  # indices of the covered rows, ascending
    cost: float
    size: float  # units of the budget that the column takes
    key: Any  # hashable identity, such as a clause


@dataclass(frozen=True)
class Cover:
    """A covering problem without its columns."""

    penalty: Floats  # (rows,) cost of leaving each row uncovered
    budget: float
    least_size: float  # lower bound on the size of every column
    integral: bool  # True if penalties and costs are whole numbers

    def rounded(self, bound: float) -> float:
        """Returns a lower bound on the objective of any cover, from a bound for fractional covers."""
        return float(math.ceil(bound - 1e-6)) if self.integral else bound


class CoverSearch:
    """A search for the best cover over a growing list of columns. timed: False if no step may depend on the clock."""

    def __init__(self, cover: Cover, seed: int, *, timed: bool = True) -> None:
        self.cover, self._longest = cover, LONGEST if timed else math.inf
        self.columns: list[Column] = []
        self._random = np.random.default_rng(seed)
        self._chosen: tuple[int, ...] = ()
        self._value, self._size = float(cover.penalty.sum()), 0.0
        # Breaks ties: of equal objectives, the smaller cover is better.
        self._tie = (1.0 if cover.integral else 1e-6) * 1e-3 / max(1.0, cover.budget)
        self._flat: tuple[Any, ...] | None = None

    @property
    def best(self) -> tuple[float, tuple[int, ...]]:
        """Objective and column indices of the best cover so far."""
        return self._value, self._chosen

    def add(self, columns: Sequence[Column]) -> None:
        self.columns += columns
        if columns:
            self._flat = None

    def improve(self, taken: Floats) -> None:
        """Improves the best cover by local search. taken: (columns,) values of the columns' variables in the
        relaxation."""
        if not self.columns:
            return
        until = time.monotonic() + self._longest
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
        """Replaces the best cover by `chosen` (column indices) if `chosen` is better and within the budget."""
        distinct = sorted(set(map(int, chosen)))
        missed = self.cover.penalty.copy()
        for index in distinct:
            missed[self.columns[index].rows] = 0.0
        value = float(missed.sum()) + sum(self.columns[index].cost for index in distinct)
        size = sum(self.columns[index].size for index in distinct)
        if size <= self.cover.budget + 1e-9 and (
            value + self._tie * size < self._value + self._tie * self._size - 0.5 * self._tie
        ):
            self._chosen, self._value, self._size = tuple(distinct), value, size

    def solve(self, deadline: float, target: float, seed: int, nodes: int | None = None) -> bool:
        """Improves the best cover by an integer program. Returns True if no cover over these columns is better. target:
        lower bound; an empty cover that meets it is optimal."""
        if self._value <= target + 1e-9 and self._size == 0:
            return True
        seconds = deadline - time.monotonic()
        if seconds <= 0 or not self.columns:
            return not self.columns
        columns, proved = _integer_program(self, seconds, seed, nodes)
        self.offer(columns)
        return proved

    def _fitting(self, order: Ints) -> Ints:
        room, selected = self.cover.budget, []
        for index in order.tolist():
            if self.columns[index].size <= room:
                room -= self.columns[index].size
                selected.append(index)
        return np.array(selected, dtype=np.int64)

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
    """Improves the cover `start` until no single addition, removal or swap improves it; returns it."""
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
    import highspy

    cover, columns = search.cover, search.columns
    rows, many = len(cover.penalty), len(columns)
    tie = search._tie
    cost = np.concatenate([cover.penalty, [column.cost + tie * column.size for column in columns]])
    bounds = np.append(np.ones(rows), -np.inf), np.append(np.full(rows, np.inf), cover.budget)
    lines: list[tuple[ArrayLike, ArrayLike]] = [([row], [1.0]) for row in range(rows)]
    lines += [(np.append(c.rows, rows), np.append(np.ones(len(c.rows)), c.size)) for c in columns]
    # All variables are integers: with continuous ones, HiGHS 1.14 reported wrong optima.
    model = make_model(cost, np.ones(rows + many), bounds, lines, by_rows=False, whole=rows + many)
    limits = {} if nodes is None else {"mip_max_nodes": nodes}
    highs = make_highs(seed=seed, time_limit=seconds, mip_rel_gap=0.0, mip_abs_gap=0.4 * tie, **limits)
    highs.passModel(model)
    start = np.zeros(rows + many)
    missed = np.ones(rows)
    for index in search.best[1]:
        start[rows + index] = 1.0
        missed[columns[index].rows] = 0.0
    start[:rows] = missed
    solution = highspy.HighsSolution()
    solution.col_value = start
    highs.setSolution(solution)
    run(highs, None if nodes is None else most_calls(nodes))
    values = np.asarray(highs.getSolution().col_value)
    proved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    if not len(values) or not math.isfinite(highs.getInfo().objective_function_value):
        return list(search.best[1]), False
    return [int(index) for index in np.flatnonzero(values[rows:] > 0.5)], proved
