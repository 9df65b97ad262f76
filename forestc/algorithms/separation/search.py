"""Searches for an input where several sums of leaves are all at least 0, by branch and bound over boxes of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from forestc.algorithms.arrays import Int32s, Ints
from forestc.system.compiled import compiled

NONE, FOUND, STOPPED = 0, 1, 2  # results of a search: no input; an input; the limit was reached
TREES_TRIED = 4  # trees that offer cuts; the widest ranges of values come first
CUTS_TRIED = 10  # cuts at the sides of leaves tried for each tree, on average at most


@compiled()
def search(
    low: Int32s, high: Int32s, tree: Int32s, value: Ints, start: Ints, single: int, first_low: Int32s,
    first_high: Int32s, limit: int, cells: Int32s,
) -> tuple[int, int]:  # fmt: skip
    """Returns NONE, FOUND or STOPPED, and the steps taken. Writes an input where the first `single` sums are at least 0
    to `cells`, (features,). `low`, `high`: (features, leaves)."""
    features, leaves, sums = low.shape[0], low.shape[1], len(start)
    # Open boxes are a stack. `inside[begin : begin + count]` lists the leaves that meet a box.
    room = 64
    box_low, box_high = np.empty((room, features), np.int32), np.empty((room, features), np.int32)
    base = np.empty((room, sums), np.int64)
    begin, count = np.empty(room, np.int64), np.empty(room, np.int64)
    inside = np.empty(4 * leaves + 64, np.int32)
    halves = np.empty((2, leaves + 1), np.int32)
    most, least = np.empty(sums, np.int64), np.empty(sums, np.int64)
    upper, lower = np.empty(sums, np.int64), np.empty(sums, np.int64)
    spread, best = np.empty(TREES_TRIED, np.int64), np.empty(TREES_TRIED, np.int32)
    box_low[0], box_high[0], base[0] = first_low, first_high, start
    begin[0], count[0] = 0, leaves
    for leaf in range(leaves):
        inside[leaf] = leaf
    open_boxes, steps = 1, 0
    while open_boxes:
        box_at = open_boxes - 1
        first, n = begin[box_at], count[box_at]
        steps += (n + 1) * sums
        n = _bounds(inside[first : first + n], tree, value, base[box_at], upper, lower, most, least)
        closed, holds, chosen = False, True, -1
        for s in range(sums):
            upper[s] += base[box_at, s]
            lower[s] += base[box_at, s]
            closed |= upper[s] < 0
            holds &= s >= single or lower[s] >= 0
            if upper[s] > lower[s] and (chosen < 0 or upper[s] < upper[chosen]):
                chosen = s
        if closed:
            open_boxes -= 1
            continue
        if holds:
            cells[:] = box_low[box_at]
            return FOUND, steps
        if steps > limit:
            return STOPPED, steps
        here = inside[first : first + n]
        _widest(here, tree, value[:, chosen], spread, best)
        # Takes the cut at a leaf's side that lowers both halves' bounds most.
        cut_feature, cut_at, cut_score, larger_left, tried = -1, 0, -1.0, False, 0
        for rank in range(TREES_TRIED):
            if spread[rank] == 0:
                break
            for feature in range(features):
                for side in range(2):
                    cut = low[feature, best[rank]] if side == 0 else high[feature, best[rank]]
                    outside = not box_low[box_at, feature] < cut < box_high[box_at, feature]
                    if outside or tried >= CUTS_TRIED * (rank + 1):
                        continue
                    tried += 1
                    on_left, on_right = _halves(here, tree, low[feature], high[feature], cut, value[:, chosen])
                    on_left += base[box_at, chosen]
                    on_right += base[box_at, chosen]
                    steps += n
                    # A half with a negative bound is discarded, so a still lower bound gains nothing.
                    enough = upper[chosen] + 1
                    score = (0.01 + min(enough, upper[chosen] - on_left)) * (
                        0.01 + min(enough, upper[chosen] - on_right)
                    )
                    if score > cut_score:
                        cut_feature, cut_at, cut_score, larger_left = feature, cut, score, on_left > on_right
        n_left = n_right = 0
        for index in range(first, first + n):
            leaf = inside[index]
            if low[cut_feature, leaf] < cut_at:
                halves[0, n_left] = leaf
                n_left += 1
            if high[cut_feature, leaf] > cut_at:
                halves[1, n_right] = leaf
                n_right += 1
        if first + n_left + n_right > len(inside):
            more = np.empty(2 * (len(inside) + leaves), np.int32)
            more[: len(inside)] = inside
            inside = more
        if box_at + 2 > room:
            room *= 2
            box_low, box_high = _longer(box_low, room), _longer(box_high, room)
            base = _longer(base, room)
            begin, count = _longer(begin, room), _longer(count, room)
        box_low[box_at + 1], box_high[box_at + 1], base[box_at + 1] = box_low[box_at], box_high[box_at], base[box_at]
        # The half with the larger bound comes next, because an input is likelier there.
        box_left, box_right = (box_at + 1, box_at) if larger_left else (box_at, box_at + 1)
        count[box_left], count[box_right] = n_left, n_right
        begin[box_at], begin[box_at + 1] = first, first + count[box_at]
        for index in range(n_left):
            inside[begin[box_left] + index] = halves[0, index]
        for index in range(n_right):
            inside[begin[box_right] + index] = halves[1, index]
        box_high[box_left, cut_feature] = cut_at
        box_low[box_right, cut_feature] = cut_at
        open_boxes += 1
    return NONE, steps


@compiled()
def _bounds(
    inside: Int32s, tree: Int32s, value: Ints, base: Ints, upper: Ints, lower: Ints, most: Ints, least: Ints
) -> Any:
    """Adds trees that have only one value in the box to `base`, and writes bounds on the sums of the others. Returns
    the number of leaves left in `inside`."""
    upper[:], lower[:] = 0, 0
    at, stay = 0, 0
    while at < len(inside):
        end = at + 1
        most[:] = value[inside[at]]
        least[:] = most
        while end < len(inside) and tree[inside[end]] == tree[inside[at]]:
            leaf = inside[end]
            for s in range(len(most)):
                most[s] = max(most[s], value[leaf, s])
                least[s] = min(least[s], value[leaf, s])
            end += 1
        if (most != least).any():
            upper += most
            lower += least
            for index in range(at, end):
                inside[stay] = inside[index]
                stay += 1
        else:
            base += most
        at = end
    return stay


@compiled()
def _widest(inside: Int32s, tree: Int32s, value: Ints, spread: Ints, best: Int32s) -> None:
    """Writes the widths of the trees with the widest value ranges, and their leaves with the largest value."""
    spread[:] = 0
    at = 0
    while at < len(inside):
        end, top = at + 1, inside[at]
        bottom = value[top]
        while end < len(inside) and tree[inside[end]] == tree[inside[at]]:
            leaf = inside[end]
            if value[leaf] > value[top]:
                top = leaf
            bottom = min(bottom, value[leaf])
            end += 1
        rank, width = TREES_TRIED, value[top] - bottom
        while rank > 0 and spread[rank - 1] < width:
            rank -= 1
        for other in range(TREES_TRIED - 1, rank, -1):
            spread[other], best[other] = spread[other - 1], best[other - 1]
        if rank < TREES_TRIED:
            spread[rank], best[rank] = width, top
        at = end


@compiled()
def _halves(inside: Int32s, tree: Int32s, low: Int32s, high: Int32s, cut: int, value: Ints) -> Any:
    """Returns upper bounds on the sums left and right of a cut."""
    on_left = on_right = np.int64(0)
    at = 0
    while at < len(inside):
        current = tree[inside[at]]
        most_left = most_right = np.int64(-(1 << 62))
        while at < len(inside) and tree[inside[at]] == current:
            leaf = inside[at]
            if low[leaf] < cut:
                most_left = max(most_left, value[leaf])
            if high[leaf] > cut:
                most_right = max(most_right, value[leaf])
            at += 1
        on_left += most_left
        on_right += most_right
    return on_left, on_right


@compiled()
def _longer(array: Int32s | Ints, room: int) -> Any:
    longer = np.empty((room,) + array.shape[1:], array.dtype)  # noqa: RUF005, numba unpacks no tuples
    longer[: len(array)] = array
    return longer
