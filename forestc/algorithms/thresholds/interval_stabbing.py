"""Finds the fewest points that stab all intervals, to merge thresholds of a feature (Nakamura and Sakurada,
"Simplification of forest classifiers and regressors by sharing branching conditions", algorithm 1 and problem 5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from forestc.algorithms.arrays import Bits, Floats, Int32s, Ints
from forestc.system.compiled import compiled


@dataclass(frozen=True)
class Stabbing:
    """Points that stab intervals, and the assignment of intervals to points."""

    low: Floats  # (points,) lower end, excluded, of the range that a point may take
    high: Floats  # (points,) upper end of this range
    point: Ints  # (intervals,) index of each interval's point
    missed: Bits  # (intervals,) True if this point lies outside of the interval


def stab(low: Floats, high: Floats) -> Stabbing:
    """Returns the fewest points that stab all intervals (low, high], (p,) with low < high."""
    order = np.argsort(low)
    point = np.empty(len(low), dtype=np.int64)
    point[order] = min_intset(low[order], high[order])
    return _stabbing(low, high, point, np.zeros(len(low), dtype=bool), int(point.max(initial=-1)) + 1)


def stab_most(low: Floats, high: Floats, exceptions: int) -> Stabbing:
    """Returns the fewest points that stab all intervals except at most `exceptions`. An interval without a point takes
    the nearest one."""
    if exceptions <= 0 or not len(low):
        return stab(low, high)
    ends, prefix, start, order = _right_ends(low, high)
    if exceptions >= len(low):
        chosen = np.array([len(ends) // 2])
    else:
        chosen = _chosen(_counter(start[order], len(ends) + 1), prefix, len(low), exceptions)
    stabbing = take(low, high, ends[chosen])
    used = np.unique(stabbing.point)  # a point that no interval takes is dropped
    return stabbing if len(used) == len(chosen) else take(low, high, ends[chosen[used]])


@compiled(lambda low, high: 0.2 * len(low))
def min_intset(low: Floats | Ints, high: Floats | Ints) -> Any:
    """Returns the index of each interval's point, (p,), among the fewest points that stab all intervals (Min_IntSet).
    `low` must ascend."""
    group = np.empty(len(low), dtype=np.int64)
    current, end = -1, high[0] if len(high) else 0
    for i in range(len(low)):
        if current < 0 or low[i] >= end:
            current += 1
            end = high[i]
        elif high[i] < end:
            end = high[i]
        group[i] = current
    return group


def _stabbing(low: Floats, high: Floats, point: Ints, missed: Bits, count: int) -> Stabbing:
    """Returns a `Stabbing`: each point may move within the intersection of the intervals that it stabs."""
    lows, highs = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(lows, point[~missed], low[~missed])
    np.minimum.at(highs, point[~missed], high[~missed])
    return Stabbing(lows, highs, point, missed)


def take(low: Floats, high: Floats, points: Floats) -> Stabbing:
    """Returns a `Stabbing` in which each interval takes the first point inside it, or the nearest point if none is
    inside. `points` must ascend."""
    after = np.searchsorted(points, low, side="right")  # the first point above low
    inside = after < len(points)
    inside[inside] = points[after[inside]] <= high[inside]
    before, behind = np.maximum(after - 1, 0), np.minimum(after, len(points) - 1)
    with np.errstate(invalid="ignore", over="ignore"):
        left, right = np.abs(low - points[before]), np.abs(points[behind] - high)
    nearest = np.where((after > 0) & ((after == len(points)) | (left <= right)), before, behind)
    return _stabbing(low, high, np.where(inside, after, nearest), ~inside, len(points))


def _right_ends(low: Floats, high: Floats) -> tuple[Floats, Ints, Ints, Ints]:
    """Returns four arrays: distinct right ends; number of intervals ending before each; each interval's first right end
    above `low`; intervals sorted by right end."""
    ends, end_of = np.unique(high, return_inverse=True)
    order = np.argsort(end_of, kind="stable")
    prefix = np.searchsorted(end_of[order], np.arange(len(ends) + 1), side="left")
    return ends, prefix.astype(np.int64), np.searchsorted(ends, low, side="right").astype(np.int64), order


def _counter(values: Ints, limit: int) -> Int32s:
    """Returns a wavelet matrix, with which `_at_least` counts values quickly."""
    bits = max(1, int(limit).bit_length())
    zeros = np.zeros((bits, len(values) + 1), dtype=np.int32)
    level = values
    for row, bit in enumerate(range(bits - 1, -1, -1)):
        clear = (level >> bit & 1) == 0
        zeros[row, 1:] = np.cumsum(clear)
        level = np.concatenate([level[clear], level[~clear]])
    return zeros


@compiled()
def _at_least(zeros: Int32s, first: int, least: int) -> Any:
    """Returns how many of the values before index `first` are at least `least`."""
    bits, total = zeros.shape[0], zeros.shape[1] - 1
    begin, length, count = 0, first, 0
    for row in range(bits):
        before = zeros[row, begin]
        zeros_inside = zeros[row, begin + length] - before
        if least >> (bits - 1 - row) & 1:
            begin, length = zeros[row, total] + begin - before, length - zeros_inside
        else:
            count += length - zeros_inside
            begin, length = before, zeros_inside
    return count + length


@compiled()
def _missed(zeros: Int32s, prefix: Ints, a: int, b: int) -> Any:
    """Returns how many intervals lie strictly between two points, the right ends a < b."""
    return _at_least(zeros, prefix[b], a + 1)


@compiled()
def _priced(zeros: Int32s, prefix: Ints, price: float, most: bool) -> Any:
    """Returns an array by right end: the point before it in the cheapest set that ends there, -1 for none. The last
    entry is the last point of the best set."""
    q = len(prefix) - 1
    value, count = np.zeros(q + 1), np.zeros(q + 1, dtype=np.int64)
    before = np.full(q + 1, -1, dtype=np.int64)
    queue, since = np.empty(q + 2, dtype=np.int64), np.empty(q + 2, dtype=np.int64)
    head, tail = 0, 1
    queue[0], since[0] = -1, 0

    def better(a: int, b: int, at: int) -> Any:
        """Returns True if b is a better predecessor of `at` than a."""
        x = _missed(zeros, prefix, a, at) + (0.0 if a < 0 else value[a])
        y = _missed(zeros, prefix, b, at) + value[b]
        if x != y:
            return y < x
        m, n = (0 if a < 0 else count[a]), count[b]
        return n > m if most else n < m

    for at in range(q + 1):
        while head + 1 < tail and since[head + 1] <= at:
            head += 1
        a = queue[head]
        before[at] = a
        paid = 0.0 if at == q else price
        value[at] = _missed(zeros, prefix, a, at) + (0.0 if a < 0 else value[a]) + paid
        count[at] = (0 if a < 0 else count[a]) + (at < q)
        if at == q:
            break
        while tail > head and since[tail - 1] > at and better(queue[tail - 1], at, since[tail - 1]):
            tail -= 1
        if tail == head:
            queue[tail], since[tail] = at, at + 1
            tail += 1
            continue
        last = queue[tail - 1]
        left, right = max(at, since[tail - 1]) + 1, q + 1
        while left < right:
            middle = (left + right) // 2
            if better(last, at, middle):
                right = middle
            else:
                left = middle + 1
        if left <= q:
            queue[tail], since[tail] = at, left
            tail += 1
    return before


def _path(before: Ints) -> list[int]:
    points = []
    at = int(before[-1])
    while at >= 0:
        points.append(at)
        at = int(before[at])
    return points[::-1]


def _misses(zeros: Int32s, prefix: Ints, points: list[int]) -> int:
    path = [-1, *points, len(prefix) - 1]
    return sum(int(_missed(zeros, prefix, a, b)) for a, b in pairwise(path))


def _chosen(zeros: Int32s, prefix: Ints, p: int, exceptions: int) -> Ints:
    """Returns indices of the fewest right ends that, as points, miss at most `exceptions` intervals."""
    low, high = 1, p + 1  # at price `low` few enough intervals are missed, at `high` too many
    while high - low > 1:
        middle = (low + high) // 2
        few = _misses(zeros, prefix, _path(_priced(zeros, prefix, float(middle), True))) <= exceptions
        low, high = (middle, high) if few else (low, middle)
    longer = _path(_priced(zeros, prefix, float(low), True))
    shorter = _path(_priced(zeros, prefix, float(low), False))
    over = _misses(zeros, prefix, shorter) - exceptions
    length = len(shorter) + max(0, -(-over // low))
    if length <= len(shorter):
        return np.array(shorter, dtype=np.int64)
    # Costs are Monge, so misses fall linearly from the shorter to the longer path.
    shift = length - len(shorter)
    a, b = [-1, *shorter, len(prefix) - 1], [-1, *longer, len(prefix) - 1]
    meet = next(i for i in range(len(a) - 1) if i + shift + 1 < len(b) and b[i + shift + 1] <= a[i + 1])
    return np.array([*b[1 : meet + shift + 1], *a[meet + 1 : -1]], dtype=np.int64)
