"""Covers rows by columns when the columns are too many to list.

An uncovered row costs its penalty, a column its cost; the columns' sizes must fit a budget (Dash, Gunluk and Wei 2018,
eqs. 1 to 4).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.covers.selection import Column, Cover, CoverSearch
from forestc.algorithms.highs import MOST_ITERATIONS, make_highs, make_model, steps_of
from forestc.errors import InternalError
from forestc.system.compiled import interruptible


@dataclass(frozen=True)
class SearchState:
    """State of a search: its best value so far, the bound on every value, and a line for people. None: not known."""

    text: str
    value: float | None = None
    bound: float | None = None

    def __str__(self) -> str:
        return self.text


Progress = Callable[[SearchState], None]


def relative_gap(value: float, bound: float) -> float:
    """Returns abs(value - bound) / abs(value): 0 if they are equal, infinity without a bound."""
    return 0.0 if value == bound else abs(float(value) - float(bound)) / max(abs(float(value)), 1e-300)


COLUMNS_A_ROUND = 20  # columns that a pricing takes from one search at most
MOST_DROPPED = 3  # columns that one try of `refill` drops at most
MOST_IN_VAIN = 100  # stops `refill` after this many tries without a better cover
PRICES = (0.0, 0.5, 1.0)  # multiplies the price of the budget in `refill`, drawn for each try


@dataclass(frozen=True)
class Priced:
    """Columns that a pricing found, with a bound on all columns."""

    columns: list[Column]  # columns of positive reduced gain, the best first
    worth: float = math.inf  # upper bound on (sum of duals - cost) / size
    complete: bool = False  # True if the search was exhaustive


class Pricer(Protocol):
    """A search for columns with a sum of duals above cost + price * size."""

    def quick(self, duals: Floats, price: float) -> list[Column]:
        """Returns good columns fast; an empty list proves nothing."""
        ...

    def fitting(self, duals: Floats, price: float, room: float) -> list[Column]:
        """Returns good columns of size `room` or less."""
        ...

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        """Returns columns and an upper bound on the worth of every column. Stops after about `steps` additions, or at
        the deadline (of time.monotonic())."""
        ...


LEAST_GAIN = 1e-7  # ignores smaller reduced gains as rounding errors
SMOOTHING = (0.8, 0.4, 0.0)  # weighs the best duals so far against the current duals (Wentges 1997)
FREQUENT = 5  # rounds between two local searches for a better cover
FEW_STEPS, MANY_STEPS = 10**8, 10**17  # steps of exact pricing in most rounds, and as a last resort
MOST_UNTIMED_STEPS = 3 * 10**8  # steps of exact pricing as a last resort without a deadline
EXACT_SHARE = 0.3  # share of remaining time for FEW_TRIES, or for pricing with MANY_STEPS
LAST_SHARE = 0.15  # share of the time reserved for the exact pricing behind the bound
INACTIVE = -1  # marks an inactive column among the counts of idle rounds
# Limits the tries of `refill`: in some rounds; if no column is found; as a last resort.
SOME_TRIES, FEW_TRIES, MANY_TRIES = 8, 40, 400
REFILL_SHARE = 0.1  # share of the remaining time for SOME_TRIES
MOST_IDLE = 8  # rounds that a column may be unused before it becomes inactive


@dataclass(frozen=True)
class Generated:
    """Columns that `generate` found, with the best cover and a bound."""

    columns: list[Column]
    chosen: tuple[int, ...]  # column indices of the best cover found
    value: float  # objective of the best cover
    bound: float  # lower bound on the objective of every cover
    relaxed: float  # optimum of the last relaxation solved
    complete: bool  # True if `relaxed` is the optimum over all columns
    duals: Floats  # duals of the rows for the bound
    price: float  # dual of the budget for the bound
    rounds: int
    interrupted: bool  # True if Ctrl-C ended the search early


def stoppable(function: Callable[..., Any], *values: Any, deadline: float = math.inf) -> Any:
    """Runs compiled code in a thread as function(flag, *values). At the deadline (of time.monotonic()) or Ctrl-C it
    sets flag[0], which the code must poll."""
    flag: Ints = np.zeros(1, dtype=np.int64)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(function, flag, *values)
        try:
            return future.result(None if deadline == math.inf else max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            flag[0] = 1
            return future.result()
        except BaseException:
            flag[0] = 1
            raise


class Master:
    """The linear relaxation of the cover problem over the columns found so far, solved as its dual.

    work: limits the steps of all solutions together; see `highs.steps_of`.
    """

    def __init__(self, cover: Cover, seed: int, work: float = math.inf) -> None:
        import highspy

        self._work = work
        self.cover, self._seed, self._inf = cover, seed, highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._limit = highspy.HighsModelStatus.kIterationLimit
        self._cost = np.zeros(0)
        self._idle: Ints = np.zeros(0, dtype=np.int64)  # rounds since each column was last used, or INACTIVE
        self._highs = make_highs(seed=seed, solver="simplex")
        count = len(cover.penalty)
        cost, upper = np.append(np.ones(count), -cover.budget), np.append(cover.penalty, self._inf)
        nothing: list[tuple[list[int], list[float]]] = [([], [])] * (count + 1)
        self._highs.passModel(make_model(cost, upper, ([], []), nothing, by_rows=False, maximize=True))

    def add(self, columns: Sequence[Column]) -> None:
        if not columns:
            return
        price = len(self.cover.penalty)
        index = [np.append(column.rows, price).astype(np.int32) for column in columns]
        value = [np.append(np.ones(len(column.rows)), -column.size) for column in columns]
        start = np.cumsum([0, *map(len, index)])[:-1].astype(np.int32)
        low, cost = np.full(len(columns), -self._inf), np.array([column.cost for column in columns])
        joined = np.concatenate(index), np.concatenate(value)
        self._highs.addRows(len(columns), low, cost, len(joined[0]), start, *joined)
        self._cost = np.concatenate([self._cost, cost])
        self._idle = np.concatenate([self._idle, np.zeros(len(columns), dtype=np.int64)])

    def activate(self, indices: Sequence[int]) -> int:
        """Puts inactive columns back into the relaxation. Returns how many were inactive."""
        many = 0
        for position in indices:
            if self._idle[position] == INACTIVE:
                self._highs.changeRowBounds(position, -self._inf, self._cost[position])
                self._idle[position] = 0
                many += 1
        return many

    def solve(self) -> Relaxed | None:
        """Solves the relaxation, then deactivates columns unused for more than `MOST_IDLE` rounds. Returns None if the
        work does not suffice."""
        used = self._run(self._highs)
        if used.getModelStatus() not in (self._optimal, self._limit):
            used = self._again()
        if used.getModelStatus() == self._limit:
            return None
        value, solution = float(used.getInfo().objective_function_value), used.getSolution()
        values = np.asarray(solution.col_value)
        duals, price = np.clip(values[:-1], 0.0, self.cover.penalty), max(0.0, float(values[-1]))
        taken = np.abs(np.asarray(solution.row_dual)) if len(self._cost) else np.zeros(0)
        active = self._idle != INACTIVE
        self._idle[active] = np.where(taken[active] > 1e-6, 0, self._idle[active] + 1)
        for position in np.flatnonzero(self._idle > MOST_IDLE).tolist():
            self._highs.changeRowBounds(position, -self._inf, self._inf)
            self._idle[position] = INACTIVE
        return Relaxed(value, duals, price, taken)

    def _run(self, solver: Any) -> Any:
        most = self._work / max(1, solver.getNumNz())
        solver.setOptionValue("simplex_iteration_limit", int(min(MOST_ITERATIONS, max(0.0, most))))
        solver.run()
        self._work -= steps_of(solver)
        return solver

    def _again(self) -> Any:
        """Solves the problem without a warm start."""
        fresh = make_highs(seed=self._seed, solver="simplex")
        fresh.passModel(self._highs.getModel())
        self._run(fresh)
        if fresh.getModelStatus() not in (self._optimal, self._limit):
            raise InternalError(f"the master problem ended as {fresh.getModelStatus()}", where="HiGHS")
        return fresh


@dataclass(frozen=True)
class Relaxed:
    """An optimum of the relaxation over the active columns."""

    value: float
    duals: Floats
    price: float  # dual of the budget
    taken: Floats  # (columns,) value of each column's variable


def refill(
    pricer: Pricer,
    selection: CoverSearch,
    add: Callable[[Column], int],
    price: float,
    *,
    tries: int,
    until: float,
    random: np.random.Generator,
) -> None:
    """Improves the best cover: each try drops some columns and prices new ones for the uncovered rows. `add` adds a
    column to the search and returns its index."""
    cover, columns, vain = selection.cover, selection.columns, 0
    for _ in range(tries):
        if time.monotonic() > until or vain == MOST_IN_VAIN:
            return
        before = selection.best
        chosen = random.permutation(np.array(selection.best[1], dtype=np.int64))
        selected = chosen[random.integers(0, min(MOST_DROPPED, len(chosen)) + 1) :].tolist()
        size_price = price * float(random.choice(PRICES))
        open_ = cover.penalty.copy()
        room = cover.budget
        for index in selected:
            open_[columns[index].rows] = 0.0
            room -= columns[index].size
        while room >= cover.least_size:
            fitting = [column for column in pricer.fitting(open_, size_price, room) if column.size <= room]
            gains = [float(open_[column.rows].sum()) - column.cost - size_price * column.size for column in fitting]
            if not fitting or max(gains) <= 0:
                break
            best = fitting[int(np.argmax(gains))]
            selected.append(add(best))
            open_[best.rows] = 0.0
            room -= best.size
        selection.offer(selected)
        vain = vain + 1 if selection.best == before else 0


def generate(
    pricer: Pricer,
    selection: CoverSearch,
    *,
    start: Sequence[Column] = (),
    deadline: float,
    seed: int,
    progress: Progress | None = None,
    rounds: int | None = None,
    work: float = math.inf,
) -> Generated:
    """Generates columns, searches for the best cover over them, and bounds the cost of every cover. Ctrl-C ends the
    search early. `start` holds columns to begin with; its first, its first two and so on are tried as covers. An
    infinite deadline leaves the end to rounds and steps. work: limits the steps of the relaxations."""
    run = _Run(pricer, selection, deadline, progress, rounds, Master(selection.cover, seed, work), seed)
    interrupted = False
    try:
        with interruptible():
            run.add(start)
            run.offer(start)
            run.rounds()
    except KeyboardInterrupt:
        interrupted = True
    value, chosen = selection.best
    bound = min(value, selection.cover.rounded(run.bound))
    return Generated(
        list(selection.columns), chosen, value, bound, run.relaxed, run.complete, run.center, run.center_price,
        run.round, interrupted,
    )  # fmt: skip


class _Run:
    """Holds the state of `generate`."""

    def __init__(
        self, pricer: Pricer, selection: CoverSearch, deadline: float, progress: Progress | None, rounds: int | None,
        master: Master, seed: int,
    ) -> None:  # fmt: skip
        self.most_rounds = math.inf if rounds is None else rounds
        self.cover, self.pricer, self.selection, self.progress = selection.cover, pricer, selection, progress
        self.begin, self.deadline = time.monotonic(), deadline
        self.last_call = self.begin + (1 - LAST_SHARE) * max(0.0, deadline - self.begin)
        self.many_steps = MANY_STEPS if deadline < math.inf else MOST_UNTIMED_STEPS
        self.master = master
        self.indices: dict[Hashable, int] = {}
        self.bound, self.relaxed = 0.0, float(self.cover.penalty.sum())
        self.center, self.center_price, self.center_value = np.zeros(len(self.cover.penalty)), 0.0, 0.0
        self.complete = False
        self.round, self.wait, self.failures = 0, 0, 0
        self.solved = 0  # number of columns in the last solve of the master
        self.random = np.random.default_rng(seed)

    def add(self, columns: Sequence[Column]) -> int:
        """Adds new columns and reactivates inactive ones. Returns how many became active."""
        pool_size = len(self.selection.columns)
        new: list[Column] = []
        again: list[int] = []
        for column in columns:
            index = self.indices.setdefault(column.key, pool_size + len(new))
            if index == pool_size + len(new):
                new.append(column)
            elif index < pool_size:
                again.append(index)
        activated = self.master.activate(again)
        self.master.add(new)
        self.selection.add(new)
        return len(new) + activated

    def offer(self, columns: Sequence[Column]) -> None:
        """Tries the first column, the first two and so on as covers, within the budget."""
        sizes = np.cumsum([column.size for column in columns])
        indices = [self.indices[column.key] for column in columns[: int((sizes <= self.cover.budget).sum())]]
        for count in range(1, len(indices) + 1):
            self.selection.offer(indices[:count])

    def index_of(self, column: Column) -> int:
        self.add([column])
        return self.indices[column.key]

    def refill(self, price: float, tries: int, share: float = REFILL_SHARE) -> None:
        start = time.monotonic()
        until = start + share * (self.last_call - start)
        refill(self.pricer, self.selection, self.index_of, price, tries=tries, until=until, random=self.random)

    def rounds(self) -> None:
        taken, at_price = np.zeros(len(self.selection.columns)), 0.0
        while time.monotonic() < self.deadline:
            at, self.solved = self.master.solve(), len(self.selection.columns)
            if at is None:
                break
            self.relaxed, taken, at_price = at.value, at.taken, at.price
            self.round += 1
            if self.round < FREQUENT or self.round % FREQUENT == 0:
                self.selection.improve(taken)
                self.refill(at_price, SOME_TRIES)
            self.tell()
            if self.closed() or self.round >= self.most_rounds:
                break
            if time.monotonic() > self.last_call:
                self.priced(at, at.duals, at.price, self.many_steps, self.deadline)
                break
            if not self.find(at):
                break
        if self.cover.rounded(self.bound) < self.selection.best[0] - 1e-9:
            self.refill(at_price, MANY_TRIES, 1.0)
        self.selection.improve(np.append(taken, np.zeros(len(self.selection.columns) - len(taken))))
        self.closed()
        self.tell()

    def closed(self) -> bool:
        """Returns True if the bound reaches the relaxation's optimum or the best cover's objective."""
        self.complete = self.complete or self.relaxed - self.bound <= 1e-6 * max(1.0, self.relaxed)
        return self.complete or self.cover.rounded(self.bound) >= self.selection.best[0] - 1e-9

    def find(self, at: Relaxed) -> int:
        """Adds columns that improve the relaxation, and returns how many."""
        added = 0
        if self.wait:
            self.wait -= 1
        else:
            for share in SMOOTHING:
                duals = share * self.center + (1 - share) * at.duals
                price = share * self.center_price + (1 - share) * at.price
                count, over = self.priced(at, duals, price, FEW_STEPS, self.last_call)
                added += count
                if not over:  # exact pricing takes too long: wait 2, 4, 8, ... rounds
                    self.failures += 1
                    self.wait = min(20, 2**self.failures)
                    break
                self.failures = 0
        added += self.add(self.gaining(self.pricer.quick(at.duals, at.price), at))
        if not added:
            self.refill(at.price, FEW_TRIES, EXACT_SHARE)
            added = len(self.gaining(self.selection.columns[self.solved :], at))
        if not added:
            start = time.monotonic()
            until = min(self.last_call, start + max(1.0, EXACT_SHARE * (self.last_call - start)))
            added, over = self.priced(at, at.duals, at.price, self.many_steps, until)
            if not added and not over and time.monotonic() < self.last_call:
                self.refill(at.price, MANY_TRIES, 0.5)
                self.priced(at, at.duals, at.price, self.many_steps, self.deadline)
                added = len(self.gaining(self.selection.columns[self.solved :], at))
        return added

    def priced(self, at: Relaxed, duals: Floats, price: float, steps: int, deadline: float) -> tuple[int, bool]:
        """Prices columns exactly and updates the bound. Returns how many columns were added, and whether pricing was
        complete."""
        pricing = self.pricer.exact(duals, price, steps, deadline)
        # Every cover costs at least this, because no column is worth more.
        value = float(duals.sum()) - self.cover.budget * max(0.0, pricing.worth)
        if value > self.center_value:
            self.center, self.center_price, self.center_value = duals, max(0.0, pricing.worth), value
        self.bound = max(self.bound, value)
        return self.add(self.gaining(pricing.columns, at)), pricing.complete

    def gaining(self, columns: Sequence[Column], at: Relaxed) -> list[Column]:
        return [
            column
            for column in columns
            if float(at.duals[column.rows].sum()) - column.cost - at.price * column.size > LEAST_GAIN
        ]

    def tell(self) -> None:
        if self.progress is not None:
            value, bound = self.selection.best[0], self.cover.rounded(self.bound)
            text = (
                f"round {self.round}: {len(self.selection.columns)} columns, relaxation {self.relaxed:.6g}, "
                f"incumbent {value:.6g}, bound {bound:.6g}, {time.monotonic() - self.begin:.1f} s"
            )
            self.progress(SearchState(text, value, bound))
