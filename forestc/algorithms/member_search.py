"""Local search over the members of an ensemble: steepest ascent by single moves, with kicks, from several starts.

A move puts a member in or out (or counts it once more or less); the threshold is the best one after every move. At a
local optimum a few random members are moved and the ascent begins again; the result is kept unless it is worse. Some
starts count rows just below the threshold in part, which leads them across plateaus of the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.vote_patterns import IntArray, Limits, Task

SMOOTH = (0.0, 0.1, 0.3)  # of one start after the other
KICK = 4  # most members that a kick moves
WORK = 3e9  # rows times members times moves that are tried, over all starts
LEAST_MOVES, MOST_MOVES = 60, 2000  # of each start


@dataclass(frozen=True)
class Found:
    """times: (members,) how often each member counts. threshold: the best one. gained: its value. cost: by the price of
    the limits, which is not part of gained."""

    times: IntArray
    threshold: int
    gained: float
    cost: float = 0.0

    @property
    def members(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self.times)]


def search(
    task: Task,
    limits: Limits,
    *,
    starts: int = 16,
    seed: int = 0,
    begin: IntArray | None = None,
    work: float = WORK,
    most_times: int = 1,
    progress: Callable[[int, float], None] = lambda _start, _value: None,
) -> Found | None:
    """The best choice found, the one with fewest members of equal ones; None if none keeps the limits.

    begin: a choice to start from, beside full, single, best-pair and random ones. most_times: how often a member may
    count. Deterministic: the number of moves depends on the sizes alone. Time O(work).
    """
    random = np.random.default_rng(seed)
    rows = len(task.sums(np.zeros(task.members, dtype=np.int64)))
    moves = int(np.clip(work / max(1, rows * task.members * starts), LEAST_MOVES, MOST_MOVES))
    best: Found | None = None
    for number, first in enumerate(_starts(task, limits, starts, random, begin)):
        found = _climb(task, limits, first, moves, SMOOTH[number % len(SMOOTH)], random, most_times)
        if found is not None and (best is None or _better(found, best)):
            best = found
        progress(number, best.gained if best is not None else -np.inf)
    return best


def _better(one: Found, other: Found) -> bool:
    """Whether one is worth more, or the same with fewer members."""
    gain, least = (one.gained - one.cost) - (other.gained - other.cost), 1e-9 * max(1.0, abs(other.gained))
    return gain > least or (gain > -least and len(one.members) < len(other.members))


def _starts(
    task: Task, limits: Limits, count: int, random: np.random.Generator, begin: IntArray | None
) -> list[NDArray[np.int64]]:
    """Choices to start from; a start may break the limits."""
    members = task.members
    chosen = [] if begin is None else [begin.astype(np.int64)]
    chosen += [np.zeros(members, dtype=np.int64), np.ones(members, dtype=np.int64)]
    if limits.diversity is not None:
        pair = np.zeros(members, dtype=np.int64)
        pair[list(np.unravel_index(np.argmax(limits.diversity.credits), (members, members)))] = 1
        chosen.insert(0, pair)  # keeps every diversity that any choice keeps
    while len(chosen) < count:
        chosen.append((random.random(members) < random.uniform(0, 0.6)).astype(np.int64))
    return chosen[: max(1, count)]


def _climb(
    task: Task,
    limits: Limits,
    times: IntArray,
    moves: int,
    smooth: float,
    random: np.random.Generator,
    most_times: int,
) -> Found | None:
    """The best choice on one walk of that many moves."""
    best: Found | None = None
    kept, kept_worth = times, (np.inf, -np.inf)
    while moves > 0:
        times, worth, made = _ascend(task, limits, times, smooth, most_times, moves)
        moves -= made
        if worth[0] <= 0:
            value, threshold = task.value(task.sums(times))
            found = Found(times.copy(), threshold, value, _cost(limits, times > 0))
            if best is None or _better(found, best):
                best = found
        if worth[0] < kept_worth[0] or (worth[0] == kept_worth[0] and worth[1] >= kept_worth[1]):
            kept, kept_worth = times, worth
        times = kept.copy()
        for member in random.integers(0, len(times), 1 + random.integers(KICK)):
            times[member] = random.integers(1, most_times + 1) if times[member] == 0 else 0
    return best


def _cost(limits: Limits, chosen: NDArray[np.bool_]) -> float:
    return limits.price * limits.bills[0].of(chosen) if limits.bills and limits.price else 0.0


def _ascend(
    task: Task, limits: Limits, times: IntArray, smooth: float, most_times: int, most: int
) -> tuple[IntArray, tuple[float, float], int]:
    """A choice that no single move betters, its (violation, worth), and the number of moves tried."""
    times = times.copy()
    sums = task.sums(times)
    violation, worth = limits.violation(times > 0), -np.inf
    for made in range(1, most + 1):
        step, after, broken, member = _best_move(task, limits, times, sums, smooth, most_times)
        least = 1e-9 * max(1.0, abs(worth)) if np.isfinite(worth) else 0.0
        if not (broken < violation - 1e-12 or (broken <= violation and after > worth + least)):
            return times, (max(0.0, violation), worth), made
        times[member] += step
        sums, violation, worth = task.moved(sums, member, step), broken, after
    return times, (max(0.0, violation), worth), most


def _best_move(
    task: Task, limits: Limits, times: IntArray, sums: NDArray[np.float64], smooth: float, most_times: int
) -> tuple[int, float, float, int]:
    """(step, worth after, violation after, member) of the move with the least violation, and of these the best."""
    chosen = times > 0
    broken_by_flip = limits.violation_after(chosen)
    flip_price = np.zeros(len(times))
    if limits.bills and limits.price:
        flip_price = limits.price * limits.bills[0].after(chosen)
    now, now_price = limits.violation(chosen), _cost(limits, chosen)
    best = (0, -np.inf, np.inf, -1)
    for direction in (1, -1):
        steps = np.where(times + direction < 0, 0, np.where(times + direction > most_times, 0, direction))
        if not steps.any():
            continue
        flips = (times == 0) | (times + steps == 0)  # the others change how often a chosen member counts
        broken = np.where(flips, broken_by_flip, now)
        worth = task.values_after(sums, steps, smooth) - np.where(flips, flip_price, now_price)
        broken = np.where(steps == 0, np.inf, broken)
        least = float(broken.min())
        member = int(np.argmax(np.where(broken <= least, worth, -np.inf)))
        if least < best[2] or (least == best[2] and worth[member] > best[1]):
            best = (int(steps[member]), float(worth[member]), least, member)
    return best
