"""Column generation for penalized covers: one engine for decision rules and for binary matrix factorization.

A row that no chosen column covers costs its penalty. Column k costs cost_k and takes size_k of a budget. There are far
too many columns to list:

    minimize    sum_i penalty_i * missed_i + sum_k cost_k * w_k
    subject to  missed_i + sum_{k covers i} w_k >= 1 for every row i,   sum_k size_k * w_k <= budget,   w_k in {0, 1}

This is the master problem of Dash, Gunluk and Wei (2018, eqs. 1 to 4) and MIP(rho) of Kovacs, Gunluk and Hauser (2021,
eqs. 14 and 15). The restricted master is its linear relaxation over the columns found so far, solved as its dual:

    maximize  sum_i dual_i - budget * price   subject to  sum_{i in k} dual_i - price * size_k <= cost_k,
              0 <= dual_i <= penalty_i, price >= 0

The worth of a column is (sum_{i in k} dual_i - cost_k) / size_k. With the largest worth of all columns, or more, every
cover costs at least

    sum_i dual_i - budget * max(0, worth)

Before pricing, duals are smoothed towards the best duals so far (Wentges 1997). The best cover may need columns that
the relaxation does not use, so `refill` searches for these.
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
from forestc.algorithms.highs import make_highs, make_model
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

COLUMNS_A_ROUND = 20  # columns that one pricing returns at most
MOST_DROPPED = 3  # columns that one try of `refill` drops at most
MOST_IN_VAIN = 100  # stops `refill` after this many tries in a row without a better cover
PRICES = (0.0, 0.5, 1.0)  # multiplies the price of the budget in `refill`; each try draws one of these


@dataclass(frozen=True)
class Priced:
    """Result of pricing.

    columns: of positive reduced gain, the best first.
    worth: upper bound on (sum of duals - cost) / size of every column; inf if unknown.
    complete: True if the search was exhaustive.
    """

    columns: list[Column]
    worth: float = math.inf
    complete: bool = False


class Pricer(Protocol):
    """A search for columns with a sum of duals above cost + price * size."""

    def quick(self, duals: Floats, price: float) -> list[Column]:
        """Returns good columns fast; an empty list proves nothing."""
        ...

    def fitting(self, duals: Floats, price: float, room: float) -> list[Column]:
        """Returns good columns of size `room` or less."""
        ...

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        """Returns columns and an upper bound on the worth of all. Stops after about `steps` additions or at the
        deadline (of time.monotonic()), with the results so far."""
        ...


LEAST_GAIN = 1e-7  # ignores smaller reduced gains as rounding errors
SMOOTHING = (0.8, 0.4, 0.0)  # weighs the best duals so far in the duals that are priced; tried in turn
FREQUENT = 5  # rounds between two local searches for a better cover
# Limits the steps of exact pricing: in most rounds; if nothing else finds a column; the same without a deadline.
FEW_STEPS, MANY_STEPS, MOST_UNTIMED_STEPS = 10**8, 10**17, 10**9
EXACT_SHARE = 0.3  # share of the remaining time that one exact pricing may take
LAST_SHARE = 0.15  # share of the time reserved for a last exact pricing, which gives the bound
INACTIVE = -1  # marks an inactive column among the counts of idle rounds
# Limits the tries of `refill`: in some rounds, if pricing finds no column, and as a last resort.
SOME_TRIES, FEW_TRIES, MANY_TRIES = 8, 40, 400
REFILL_SHARE = 0.1  # share of the remaining time for SOME_TRIES
MOST_IDLE = 8  # rounds that a column may be unused before it becomes inactive


@dataclass(frozen=True)
class Generated:
    """Result of `generate`.

    chosen: column indices of the best cover found.
    value: objective of that cover.
    bound: lower bound on every cover over all columns.
    relaxed: optimum of the last relaxation solved.
    complete: True if `relaxed` is the optimum over all columns.
    duals, price: the dual solution behind the bound.
    interrupted: True if Ctrl-C ended the search early.
    """

    columns: list[Column]
    chosen: tuple[int, ...]
    value: float
    bound: float
    relaxed: float
    complete: bool
    duals: Floats
    price: float
    rounds: int
    interrupted: bool


def stoppable(function: Callable[..., Any], *values: Any, deadline: float = math.inf) -> Any:
    """Runs compiled code in a thread, as function(flag, *values), and returns its result. Sets the flag, which the code
    polls, at the deadline (of time.monotonic()) and on Ctrl-C."""
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
    """The dual of the restricted master problem. Columns unused for long become inactive until `activate` brings them
    back."""

    def __init__(self, cover: Cover, seed: int) -> None:
        import highspy

        self.cover, self._seed, self._inf = cover, seed, highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
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
        """Activates the inactive ones among these columns. Returns how many."""
        many = 0
        for position in indices:
            if self._idle[position] == INACTIVE:
                self._highs.changeRowBounds(position, -self._inf, self._cost[position])
                self._idle[position] = 0
                many += 1
        return many

    def solve(self) -> Relaxed:
        """Solves the problem, then deactivates columns unused for more than `MOST_IDLE` rounds."""
        self._highs.run()
        used = self._highs if self._highs.getModelStatus() == self._optimal else self._again()
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

    def _again(self) -> Any:
        """Solves the problem without a warm start. Raises InternalError if no optimum is found."""
        fresh = make_highs(seed=self._seed, solver="simplex")
        fresh.passModel(self._highs.getModel())
        fresh.run()
        if fresh.getModelStatus() != self._optimal:
            raise InternalError(f"the master problem ended as {fresh.getModelStatus()}")
        return fresh


@dataclass(frozen=True)
class Relaxed:
    """An optimum of the restricted master. price: dual of the budget. taken: (columns,) value of each column's
    variable."""

    value: float
    duals: Floats
    price: float
    taken: Floats


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
    """Improves the best cover: each try drops up to `MOST_DROPPED` of its columns and prices new ones for the uncovered
    rows.

    add: puts a column into the selection and returns its index.
    price: of one unit of the budget.
    until: stops at this time of time.monotonic().
    """
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
) -> Generated:
    """Generates columns, finds the best cover over them, and bounds the cost of every cover. Ctrl-C ends the search
    early.

    selection: a search without columns; it finds the best cover.
    start: columns to begin with; the first, the first two and so on are tried as covers.
    deadline: a time of time.monotonic(); infinity if rounds and steps alone end the search.
    """
    run = _Run(pricer, selection, deadline, seed, progress, rounds)
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
    """The state of `generate`. Its center holds the duals of the best bound so far."""

    def __init__(
        self, pricer: Pricer, selection: CoverSearch, deadline: float, seed: int, progress: Progress | None,
        rounds: int | None,
    ) -> None:  # fmt: skip
        self.most_rounds = math.inf if rounds is None else rounds
        self.cover, self.pricer, self.selection, self.progress = selection.cover, pricer, selection, progress
        self.begin, self.deadline = time.monotonic(), deadline
        self.last_call = self.begin + (1 - LAST_SHARE) * max(0.0, deadline - self.begin)
        self.many_steps = MANY_STEPS if deadline < math.inf else MOST_UNTIMED_STEPS
        self.master = Master(self.cover, seed)
        self.indices: dict[Hashable, int] = {}
        self.bound, self.relaxed = 0.0, float(self.cover.penalty.sum())
        self.center, self.center_price, self.center_value = np.zeros(len(self.cover.penalty)), 0.0, 0.0
        self.complete = False
        self.round, self.wait, self.failures = 0, 0, 0
        self.solved = 0  # number of columns in the last solve of the master
        self.random = np.random.default_rng(seed)

    def add(self, columns: Sequence[Column]) -> int:
        """Adds new columns, and activates the others if they are inactive. Returns how many became active."""
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
        """Offers the first of these columns, the first two and so on as covers, as far as the budget allows."""
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
        """Returns True if the bound meets the relaxation or the best cover."""
        self.complete = self.complete or self.relaxed - self.bound <= 1e-6 * max(1.0, self.relaxed)
        return self.complete or self.cover.rounded(self.bound) >= self.selection.best[0] - 1e-9

    def find(self, at: Relaxed) -> int:
        """Adds columns that gain at the master's duals, and returns how many."""
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
        """Prices exactly at these duals and updates the bound. Returns how many columns were added, and whether pricing
        was complete."""
        pricing = self.pricer.exact(duals, price, steps, deadline)
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
