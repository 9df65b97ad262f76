"""Finds the fewest points that stab all intervals. Points have few binary digits and many trailing zeros, so
comparators are cheap.

Source of the number of points: Nakamura and Sakurada 2022, algorithm 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.thresholds.interval_stabbing import min_intset
from forestc.system.compiled import compiled

DIGITS = 53  # bits of an integer that a float64 holds exactly


def narrow_points(low: Floats, high: Floats) -> tuple[Floats, int] | None:
    """Returns the fewest points that stab all intervals, ascending, and their number of fraction bits (may be
    negative); None if 53 bits do not suffice. low, high: (p,) ends of the intervals (low, high]."""
    order = np.argsort(low)
    low, high = low[order], high[order]
    count = int(min_intset(low, high).max(initial=-1)) + 1
    ends = np.concatenate([low, high])
    reach = float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0)) or 1.0
    top = math.frexp(reach)[1]  # |ends| < 2^top
    least, most = -top - 1, DIGITS - top  # bisection: `most` bits are enough, `least` are too few
    if not _enough(low, high, most, top, count):
        return None
    while most - least > 1:
        middle = (least + most) // 2
        if _enough(low, high, middle, top, count):
            most = middle
        else:
            least = middle
    words = _roundest(*_scaled(low, high, most, top), count, max(1, top + most + 1))
    with np.errstate(over="ignore"):
        return np.ldexp(words.astype(np.float64), -most), most


def _scaled(low: Floats, high: Floats, fraction: int, top: int) -> tuple[Ints, Ints]:
    """Returns the intervals in units of 2^-fraction, with infinite ends made finite."""
    past = math.ldexp(1.0, max(0, top + fraction) + 1)
    lows, highs = np.floor(np.ldexp(low, fraction)), np.floor(np.ldexp(high, fraction))
    if fraction < 0:  # scaling down may have turned a small negative number into -0.0
        lows, highs = (np.where((n == 0) & (x < 0), -1.0, n) for n, x in ((lows, low), (highs, high)))
    if math.isinf(low[0]) or math.isinf(high.max()):
        ends = np.concatenate([lows, highs])
        finite = ends[np.isfinite(ends)]
        least, most = (finite.min() - 1, finite.max()) if len(finite) else (-1.0, 0.0)
        lows = np.where(np.isneginf(lows), np.minimum(least, highs - 1), lows)
        highs = np.where(np.isposinf(highs), np.maximum(most, lows + 1), highs)
    return np.clip(lows, -2 * past, past).astype(np.int64), np.clip(highs, -past, 2 * past).astype(np.int64)


def _enough(low: Floats, high: Floats, fraction: int, top: int, count: int) -> bool:
    lows, highs = _scaled(low, high, fraction, top)
    return bool((lows < highs).all()) and int(min_intset(lows, highs).max(initial=-1)) + 1 == count


@compiled(lambda low, *_: 15 * len(low))
def _roundest(low: Ints, high: Ints, count: int, width: int) -> Any:
    """Returns `count` integers that stab all intervals, with the most trailing zeros."""
    p = len(low)
    # Finds the least value of each point, from the last point to the first.
    earliest = np.empty(count, dtype=np.int64)
    at, leftmost = count, np.int64(0)
    for i in range(p - 1, -1, -1):
        if at == count or high[i] < leftmost:
            at -= 1
            leftmost = low[i] + 1
            earliest[at] = leftmost
    # The next point is at most the least right end of all later intervals.
    ends = np.empty(p, dtype=np.int64)
    for i in range(p - 1, -1, -1):
        ends[i] = high[i] if i == p - 1 else min(high[i], ends[i + 1])
    room = 4 * count + 1024
    word, zeros, parent = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    word[0], zeros[0], parent[0] = low[0], 0, -1  # no point yet: no interval is stabbed
    begin, end = 0, 1
    choice, gain, origin = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    for point in range(count):
        candidates = 0
        for state in range(begin, end):
            limit = ends[0] if point == 0 else ends[np.searchsorted(low, word[state])]
            previous = limit + 1
            for level in range(width + 1):
                value = (limit >> level) << level
                if value < earliest[point]:
                    break
                if value == previous:
                    continue
                previous = value
                if candidates == len(choice):
                    choice, gain = np.append(choice, choice), np.append(gain, gain)
                    origin = np.append(origin, origin)
                digits = level  # trailing zero bits
                while digits < width and (value >> digits) & 1 == 0:
                    digits += 1
                zeros_here = zeros[state] + digits
                # Sorts candidates by insertion: more zeros first, then larger values.
                at = candidates
                while at > 0 and (gain[at - 1] < zeros_here or (gain[at - 1] == zeros_here and choice[at - 1] < value)):
                    choice[at], gain[at], origin[at] = choice[at - 1], gain[at - 1], origin[at - 1]
                    at -= 1
                choice[at], gain[at], origin[at] = value, zeros_here, state
                candidates += 1
        stored = end
        for i in range(candidates):  # Pareto front: further right than every candidate with more zeros
            if i == 0 or choice[i] > word[stored - 1]:
                if stored == room:
                    word, zeros, parent = np.append(word, word), np.append(zeros, zeros), np.append(parent, parent)
                    room *= 2
                word[stored], zeros[stored], parent[stored] = choice[i], gain[i], origin[i]
                stored += 1
        begin, end = end, stored
    result = np.empty(count, dtype=np.int64)
    state = begin  # the first has the most zeros
    for point in range(count - 1, -1, -1):
        result[point] = word[state]
        state = parent[state]
    return result
