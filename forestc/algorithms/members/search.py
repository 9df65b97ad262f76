"""Selects members of an ensemble by local search with random changes, from several starts. A move adds or removes a
member, or changes by one how often it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Ints
from forestc.algorithms.members.selection_run import SelectionRun
from forestc.algorithms.members.vote_patterns import Limits, Objective

SMOOTH = (0.0, 0.1, 0.3)  # weighs rows exactly at the threshold; starts take these weights in turn
KICK = 4  # changes at most this many random members at a local optimum
MEMBERS_A_MOVE = 50  # allows one more move after each scan for every 50 members
LEAST_SCANS, MOST_SCANS = 60, 2000  # limits the scans of all moves from each start


@dataclass(frozen=True)
class MemberChoice:
    times: Ints  # (members,) how often each member counts
    threshold: int  # a row is decided positive above this many votes
    gained: float  # value of the choice, before hardware cost
    cost: float = 0.0  # hardware cost in units of the value

    @property
    def members(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self.times)]


@dataclass(frozen=True)
class Effort:
    """Limits on the work of `search`."""

    starts: int = 16
    scans: int = 20  # limits the scans of all moves, per start and member
    work: float = 1e9  # limits rows x members x scans, roughly, over all starts


def search(
    task: Objective,
    limits: Limits,
    effort: Effort,
    *,
    seed: int = 0,
    begin: Ints | None = None,
    enough: float = np.inf,
    few: bool = True,
    running: SelectionRun | None = None,
) -> MemberChoice | None:
    """Returns the best choice found; None if no choice found keeps the limits.

    begin: another choice to start from.
    enough: the search ends once a choice is worth this much; ignored if the limits have a price.
    few: prefers fewer members among equal choices; if False, more.
    running: limits of time, which hold once a choice is found.
    """
    random = np.random.default_rng(seed)
    rows = task.sums(np.zeros(task.members, dtype=np.int64)).size  # times classes
    scans = int(np.clip(effort.work / max(1, rows * task.members * effort.starts), LEAST_SCANS, MOST_SCANS))
    scans = min(scans, effort.scans * task.members)
    best: MemberChoice | None = None
    for number, first in enumerate(_starts(task, limits, effort.starts, random, begin)):
        smooth = SMOOTH[number % len(SMOOTH)]
        try:
            choice = _climb(task, limits, first, scans, smooth, random, few, running)
        except KeyboardInterrupt:
            if running is None:
                raise
            running.interrupt()
            choice = None
        if choice is not None and (best is None or _better(choice, best, few)):
            best = choice
            if running is not None:
                running.tell(best.gained, enough)
        if best is not None and running is not None and not running.left:
            break
        if best is not None and best.gained >= enough - 1e-9 * max(1.0, abs(enough)) and not limits.price:
            break
    return best


def _better(choice: MemberChoice, best: MemberChoice, few: bool) -> bool:
    """Returns True if a choice is worth more; the number of members breaks ties."""
    gain, least = (choice.gained - choice.cost) - (best.gained - best.cost), 1e-9 * max(1.0, abs(best.gained))
    if abs(gain) > least:
        return gain > 0
    return len(choice.members) < len(best.members) if few else len(choice.members) > len(best.members)


def _starts(task: Objective, limits: Limits, count: int, random: np.random.Generator, begin: Ints | None) -> list[Ints]:
    members = task.members
    chosen = [] if begin is None else [begin.astype(np.int64)]
    if limits.diversity is not None:
        pair = np.zeros(members, dtype=np.int64)
        pair[list(np.unravel_index(np.argmax(limits.diversity.credits), (members, members)))] = 1
        chosen.append(pair)  # The most diverse pair meets the diversity limits if any choice does.
        count = max(count, len(chosen))
    chosen += [np.zeros(members, dtype=np.int64), np.ones(members, dtype=np.int64)]
    while len(chosen) < count:
        chosen.append((random.random(members) < random.uniform(0, 0.6)).astype(np.int64))
    return chosen[: max(1, count)]


def _climb(
    task: Objective,
    limits: Limits,
    times: Ints,
    scans: int,
    smooth: float,
    random: np.random.Generator,
    few: bool,
    running: SelectionRun | None,
) -> MemberChoice | None:
    """Returns the best choice found from one start; None if no choice keeps the limits."""
    best: MemberChoice | None = None
    current, current_worth = times, (np.inf, -np.inf)
    while scans > 0 and not (running is not None and best is not None and not running.left):
        try:
            times, worth, scanned = _ascend(task, limits, times, smooth, scans, running)
        except KeyboardInterrupt:
            if running is None:
                raise
            running.interrupt()
            continue
        scans -= scanned
        if worth[0] <= 0:
            value, threshold = task.value(task.sums(times))
            choice = MemberChoice(times.copy(), threshold, value, _cost(limits, times > 0))
            if best is None or _better(choice, best, few):
                best = choice
        if worth[0] < current_worth[0] or (worth[0] == current_worth[0] and worth[1] >= current_worth[1]):
            current, current_worth = times, worth
        times = current.copy()
        for member in random.integers(0, len(times), 1 + random.integers(KICK)):
            times[member] = random.integers(1, limits.most_times + 1) if times[member] == 0 else 0
    return best


def _cost(limits: Limits, chosen: Bits) -> float:
    return limits.price * limits.bills[0].of(chosen) if limits.bills and limits.price else 0.0


def _ascend(
    task: Objective,
    limits: Limits,
    times: Ints,
    smooth: float,
    most: int,
    running: SelectionRun | None,
) -> tuple[Ints, tuple[float, float], int]:
    """Improves a choice by single moves; returns the choice, (violation, worth), and number of scans."""
    times = times.copy()
    sums = task.sums(times)
    violation, worth = limits.violation(times > 0), -np.inf
    for scan in range(1, most + 1):
        moves = _moves(task, limits, times, sums, smooth)
        improved = False
        # With many members, several moves follow one scan while each improves the choice.
        for turn, move in enumerate(moves[: 1 + len(times) // MEMBERS_A_MOVE]):
            if turn:
                move = _again(task, limits, times, sums, smooth, move)
            least = 1e-9 * max(1.0, abs(worth)) if np.isfinite(worth) else 0.0
            better = move.violation < violation - 1e-12
            if not (better or (move.violation <= violation and move.worth > worth + least)):
                break
            times[move.member] += move.step
            sums, violation, worth = task.moved(sums, move.member, move.step), move.violation, move.worth
            improved = True
        if running is not None and violation <= 0 and not running.left:
            return times, (max(0.0, violation), worth), scan
        if not improved:
            return times, (max(0.0, violation), worth), scan
    return times, (max(0.0, violation), worth), most


class _Move(NamedTuple):
    """A change of how often one member counts."""

    violation: float  # violation of the limits after the move
    worth: float  # value less price after the move
    member: int
    step: int  # change of how often the member counts


def _moves(task: Objective, limits: Limits, times: Ints, sums: NDArray[Any], smooth: float) -> list[_Move]:
    """Returns the best moves, the least violation of the limits first, then the largest worth."""
    chosen = times > 0
    broken_by_flip = limits.violation_after(chosen)
    priced = limits.price if limits.bills else 0.0
    flip_price = priced * limits.bills[0].after(chosen) if priced else np.zeros(len(times))
    violation, price = limits.violation(chosen), _cost(limits, chosen)
    moves: list[_Move] = []
    for direction in (1, -1):
        steps = np.where((times + direction < 0) | (times + direction > limits.most_times), 0, direction)
        if not steps.any():
            continue
        flips = (times == 0) | (times + steps == 0)  # other moves change only how often a chosen member counts
        broken = np.where(steps == 0, np.inf, np.where(flips, broken_by_flip, violation))
        worth = task.values_after(sums, steps, smooth) - np.where(flips, flip_price, price)
        for member in np.lexsort((-worth, broken))[: 1 + len(times) // MEMBERS_A_MOVE]:
            moves.append(_Move(float(broken[member]), float(worth[member]), int(member), int(steps[member])))
    return sorted((move for move in moves if move.step), key=lambda move: (move.violation, -move.worth))


def _again(task: Objective, limits: Limits, times: Ints, sums: NDArray[Any], smooth: float, move: _Move) -> _Move:
    after = times.copy()
    after[move.member] += move.step
    steps = np.zeros(len(times), dtype=np.int64)
    steps[move.member] = move.step
    worth = float(task.values_after(sums, steps, smooth)[move.member]) - _cost(limits, after > 0)
    return move._replace(violation=limits.violation(after > 0), worth=worth)
