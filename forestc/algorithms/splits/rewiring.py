"""Rewires splits: each split gets the best condition for the rows that reach it, with all other splits fixed
(Carreira-Perpinan and Tavallali, NeurIPS 2018, section 3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.splits.logistic import Odds, move
from forestc.algorithms.splits.state import Outcomes, Shape, State, left_of, right_of, tree_of
from forestc.system.compiled import compiled

LEAST = 1e-6  # ignores changes that lower the loss by less
DOUBT = 1.0  # requires each change to gain this many standard errors
ADDED = 1 << 17  # sets the rows of a sample to this number / columns
FEWEST, MOST = 512, 4096  # rows of a sample, at least and at most
LOOK = 4  # draws a sample from at most this many times as many rows
CHOSEN = 8  # conditions that the sample picks and all rows decide between


class Fitted(NamedTuple):
    """Trees, their rows, and the fit to these rows."""

    shape: Shape
    state: State
    outcomes: Outcomes
    odds: Odds
    unit: float  # log odds that one unit of score is worth


class Sums(NamedTuple):
    """Sums over the rows of a split, for each condition."""

    votes: Floats  # rises of rows below the condition's cut
    moved: Floats  # squares of rows that would change sides
    score: Floats


def sample_for(columns: int) -> int:
    return min(MOST, max(FEWEST, ADDED // max(1, columns)))


def rewire(fitted: Fitted, price: float, doubt: float, sample: int) -> int:
    """Gives splits the condition with the least loss plus price, in place. Returns how many splits changed. doubt:
    number of standard errors by which a change must exceed its price."""
    outcomes = fitted.outcomes
    columns, pool = np.unique(outcomes.column[: outcomes.pool]), np.arange(outcomes.pool)
    drawn = sample if 0 < 2 * sample < fitted.state.leaf.shape[1] else None  # numba compiles no sampling for None
    return int(_rewired(fitted, price, doubt, columns, pool, drawn))


@compiled()
def _rewired(fitted: Fitted, price: float, doubt: float, columns: Ints, pool: Ints, sample: int | None) -> Any:
    shape, state, outcomes, _, unit = fitted
    rows, count, changed = state.leaf.shape[1], len(shape.tree), 0
    bins = np.empty((outcomes.begins[-1], 2))
    sums = Sums(np.zeros(len(pool)), np.zeros(len(pool)), np.zeros(len(pool)))
    order, spare = np.empty(rows, np.int64), np.empty(rows, np.int64)  # a tree's rows; those of a split are contiguous
    there, rise, squares = np.empty(rows, np.int64), np.empty(rows), np.empty(rows)
    begins, ends = np.zeros(count, np.int64), np.zeros(count, np.int64)
    lowest, highest = state.value[0], state.value[0]
    for value in state.value:
        lowest, highest = min(lowest, value), max(highest, value)
    span = highest - lowest
    factors = np.empty(2 * span + 1)
    for k in range(len(factors)):
        factors[k] = np.exp(unit * (k - span)) - 1
    children = _children(shape, state)
    for split in range(count - 1, -1, -1):  # children come before their parents
        if split == count - 1 or shape.tree[split + 1] != shape.tree[split]:  # a root
            begins[split], ends[split] = 0, rows
            for row in range(rows):
                order[row] = row
        if not state.alive[split]:
            continue
        reach = order[begins[split] : ends[split]]
        present, way = state.condition[split], state.flipped[split]
        best, turned = present, way
        if present < len(pool) and len(reach):
            candidates, some, spacing, picks = pool, reach, 1.0, False
            if sample is not None and len(reach) > LOOK * sample:
                spacing = len(reach) / (LOOK * sample)
                some = spare[: LOOK * sample]
                for k in range(len(some)):
                    some[k] = reach[int((k + 0.5) * spacing)]
            _rises(fitted, factors, children, split, some, there, rise)
            if sample is not None:
                picks = spacing > 1 or _nonzero(rise[: len(some)]) > 2 * sample
                if picks:
                    chosen, weighted, squared = _drawn(some, rise[: len(some)], spacing, sample)
                    gain, square = _add_up(outcomes, columns, bins, present, chosen, weighted, squared, sums)
                    least, _, _ = _best(fitted, split, price, doubt, pool, gain, square, sums)
                    candidates = _first_below(np.argsort(sums.score)[:CHOSEN], sums.score, least)
                    if len(candidates):
                        if spacing > 1:
                            _rises(fitted, factors, children, split, reach, there, rise)
                        gain, square = _add_up_few(outcomes, candidates, present, reach, rise, sums)
            if not picks:
                for k in range(len(some)):
                    squares[k] = rise[k] * rise[k]
                gain, square = _add_up(outcomes, columns, bins, present, some, rise, squares, sums)
            if len(candidates):
                _, best, turned = _best(fitted, split, price, doubt, candidates, gain, square, sums)
        if best != present or turned != way:
            changed += 1
            state.uses[present] -= 1
            state.uses[best] += 1
            state.condition[split], state.flipped[split] = best, turned
            _follow(fitted, factors, split, reach, there)
        _part(shape, state, split, reach, spare, begins, ends)
    return changed


@compiled()
def _nonzero(rise: Floats) -> int:
    count = 0
    for k in range(len(rise)):
        count += rise[k] != 0.0
    return count


@compiled()
def _first_below(candidates: Ints, score: Floats, least: float) -> Any:
    below, count = np.empty(len(candidates), np.int64), 0
    for k in range(len(candidates)):
        if score[candidates[k]] < least:
            at = count
            while at > 0 and below[at - 1] > candidates[k]:
                below[at] = below[at - 1]
                at -= 1
            below[at] = candidates[k]
            count += 1
    return below[:count]


@compiled()
def _children(shape: Shape, state: State) -> Any:
    """Returns each split's right and left child, (splits, 2); -k - 1 marks leaf k."""
    children = np.empty((len(shape.tree), 2), np.int64)
    for split in range(len(shape.tree)):
        left, right = left_of(shape, split), right_of(shape, split)
        children[split, 1] = left if left >= 0 and state.alive[left] else -1 - shape.first[split]
        children[split, 0] = right if right >= 0 and state.alive[right] else -1 - shape.middle[split]
    return children


# Loops use plain arrays, because numba is slow with named tuples and slices.


@compiled()
def _part(shape: Shape, state: State, split: int, reach: Ints, spare: Ints, begins: Ints, ends: Ints) -> None:
    """Partitions the rows of a split, in place: rows that go left come first."""
    left, right = left_of(shape, split), right_of(shape, split)
    if left < 0 and right < 0:
        return
    leaf, middle = state.leaf[shape.tree[split]], shape.middle[split]
    front, back = 0, 0
    for k in range(len(reach)):
        row = reach[k]
        goes_left = leaf[row] < middle
        reach[front] = row
        spare[back] = row
        front += goes_left
        back += not goes_left
    for k in range(back):
        reach[front + k] = spare[k]
    if left >= 0:
        begins[left], ends[left] = begins[split], begins[split] + front
    if right >= 0:
        begins[right], ends[right] = begins[split] + front, ends[split]


@compiled()
def _rises(
    fitted: Fitted, factors: Floats, children: Ints, split: int, reach: Ints, new_leaf: Ints, rise: Floats
) -> None:
    """Writes for each row its leaf if the split sent it to the other side, and its loss left minus right."""
    shape, state, outcomes, odds, unit = fitted
    tree, base, output, width = tree_of(shape, split)
    middle, span = shape.middle[split], len(factors) // 2
    own_class = 1 if odds.power.shape[1] == 1 else output
    leaf, code, label, power, total = state.leaf[tree], outcomes.code, odds.label, odds.power, odds.total
    value = state.value[base : shape.start[tree + 1]]
    low = split - shape.size[split] + 1
    inside = split + 1 - low
    column, cut, flipped = np.empty(inside, np.int64), np.empty(inside, np.int64), np.empty(inside, np.int64)
    for inner in range(inside):
        condition = state.condition[low + inner]
        column[inner], cut[inner] = outcomes.column[condition], outcomes.cut[condition]
        flipped[inner] = 1 if state.flipped[low + inner] else 0
    for k in range(len(reach)):
        row = reach[k]
        leaf_now = leaf[row]
        at = children[split, 0 if leaf_now < middle else 1]
        while at >= 0:
            inner = at - low
            at = children[at, (1 if code[row, column[inner]] < cut[inner] else 0) ^ flipped[inner]]
        across = -1 - at
        new_leaf[k] = across
        more, gained = 0.0, 0
        for j in range(width):
            step = value[across * width + j] - value[leaf_now * width + j]
            if step != 0:
                more += power[row, output + j] * factors[step + span]
                if label[row] == own_class + j:
                    gained = step
        if more != 0.0 or gained != 0:
            change = np.log(max(1 + more / total[row], 1e-15)) - unit * gained
            rise[k] = -change if leaf_now < middle else change
        else:
            rise[k] = 0.0


@compiled()
def _drawn(some: Ints, rise: Floats, spacing: float, sample: int) -> Any:
    """Draws about `sample` rows in proportion to |rise|. Returns them, and rises and squares weighted by inverse
    probability."""
    mean = 0.0
    for k in range(len(rise)):
        mean += abs(rise[k])
    mean /= sample
    chosen, weighted, squared = np.empty(2 * sample + 1, np.int64), np.empty(2 * sample + 1), np.empty(2 * sample + 1)
    count, passed = 0, 0.5
    for k in range(len(rise)):
        if rise[k] == 0.0:
            continue
        share = min(1.0, abs(rise[k]) / mean)
        passed += share
        if passed >= 1:
            passed -= 1
            chosen[count] = some[k]
            weighted[count] = rise[k] * spacing / share
            squared[count] = rise[k] * weighted[count]
            count += 1
    return chosen[:count], weighted[:count], squared[:count]


@compiled()
def _add_up(
    outcomes: Outcomes, columns: Ints, bins: Floats, present: int, rows: Ints, rise: Floats, squared: Floats, sums: Sums
) -> Any:
    """Fills `votes` and `moved` of the sums for every condition. Returns both sums over all rows."""
    votes, moved = sums.votes, sums.moved
    code, begins = outcomes.code, outcomes.begins
    column_now, cut_now = outcomes.column[present], outcomes.cut[present]
    bins[:] = 0.0
    all_gain, all_square, leaving = 0.0, 0.0, 0.0
    for k in range(len(rows)):
        if rise[k] == 0.0:
            continue
        row, gain, square = rows[k], rise[k], squared[k]
        all_gain += gain
        all_square += square
        if code[row, column_now] < cut_now:
            leaving += square
            square = -square
        for column in columns:
            at = begins[column] + code[row, column]
            bins[at, 0] += gain
            bins[at, 1] += square
    for column in columns:
        for at in range(begins[column] + 1, begins[column + 1]):
            bins[at, 0] += bins[at - 1, 0]
            bins[at, 1] += bins[at - 1, 1]
    for c in range(len(votes)):
        at = outcomes.begins[outcomes.column[c]] + outcomes.cut[c] - 1
        votes[c] = bins[at, 0]
        moved[c] = 0.0 if c == present else leaving + bins[at, 1]
    return all_gain, all_square


@compiled()
def _add_up_few(outcomes: Outcomes, candidates: Ints, now: int, rows: Ints, rise: Floats, sums: Sums) -> Any:
    votes, moved = sums.votes, sums.moved
    count = len(candidates)
    column, cut = np.empty(count, np.int64), np.empty(count, np.int64)
    for at in range(count):
        column[at], cut[at] = outcomes.column[candidates[at]], outcomes.cut[candidates[at]]
    gains, changes = np.zeros(count), np.zeros(count)
    code, column_now, cut_now = outcomes.code, outcomes.column[now], outcomes.cut[now]
    all_gain, all_square, present = 0.0, 0.0, 0.0
    for k in range(len(rows)):
        gain = rise[k]
        if gain == 0.0:
            continue
        row, square = rows[k], gain * gain
        all_gain += gain
        all_square += square
        side = code[row, column_now] < cut_now
        present += gain if side else 0.0
        for at in range(count):
            holds = code[row, column[at]] < cut[at]
            gains[at] += gain if holds else 0.0
            changes[at] += square if holds != side else 0.0
    for at in range(count):
        votes[candidates[at]], moved[candidates[at]] = gains[at], changes[at]
    votes[now], moved[now] = present, 0.0
    return all_gain, all_square


@compiled()
def _best(
    fitted: Fitted, split: int, price: float, doubt: float, candidates: Ints, all_gain: float,
    all_square: float, sums: Sums,
) -> Any:  # fmt: skip
    """Returns the score to beat, the condition with the least score, and True if it is flipped."""
    shape, state = fitted.shape, fitted.state
    votes, moved, score = sums
    present, way = state.condition[split], state.flipped[split]
    worth = (all_gain - votes[present] if way else votes[present]) - LEAST
    worth += price * shape.cost[present] if state.uses[present] == 1 else 0.0
    least, best, turned = worth, present, way
    for c in candidates:
        extra = price * shape.cost[c] if state.uses[c] == (1 if c == present else 0) else 0.0
        same, other = moved[c], all_square - moved[c]
        if way:
            same, other = other, same
        unflipped = votes[c] + extra + doubt * np.sqrt(max(same, 0.0))
        if unflipped < least:
            least, best, turned = unflipped, c, False
        flipped_score = all_gain - votes[c] + extra + doubt * np.sqrt(max(other, 0.0))
        if flipped_score < least:
            least, best, turned = flipped_score, c, True
        score[c] = min(unflipped, flipped_score)
    return worth, best, turned


@compiled()
def _follow(fitted: Fitted, factors: Floats, split: int, reach: Ints, new_leaf: Ints) -> None:
    """Updates leaf and odds, in place, of the rows that go to the split's other side."""
    shape, state, outcomes, odds, _ = fitted
    tree, base, output, width = tree_of(shape, split)
    span, middle, turned = len(factors) // 2, shape.middle[split], state.flipped[split]
    column, cut = outcomes.column[state.condition[split]], outcomes.cut[state.condition[split]]
    leaf, value, code, power, total = state.leaf[tree], state.value, outcomes.code, odds.power, odds.total
    for k in range(len(reach)):
        row = reach[k]
        old_leaf = leaf[row]
        if ((code[row, column] < cut) != turned) == (old_leaf < middle):
            continue
        for at in range(width):
            step = value[base + new_leaf[k] * width + at] - value[base + old_leaf * width + at]
            if step != 0:
                move(power, total, row, output + at, factors[step + span] + 1)
        leaf[row] = new_leaf[k]
