"""Splits rewired: each asks of the rows that reach it what serves them best, the rest of the ensemble as it stands.

Tree alternating optimisation (Carreira-Perpinan and Tavallali, NeurIPS 2018, section 3) carried over to a sum of trees
and to hardware: with the leaves below given, a row's loss depends on a split only by the side it takes, so one weighted
vote of the rows finds the best of all conditions, exactly. A condition that another split compares already costs no
further comparator, a new one its price; a condition's opposite is as cheap as itself.

The votes are a product, rows by conditions, but thresholds on one feature are nested: rows vote by the code of their
feature's value, and the votes for the thresholds are sums of those for the codes below. So a row costs as much as there
are features, not conditions. Where many rows reach a split some of them choose a few conditions, and all decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forestc.algorithms.compiled import compiled
from forestc.algorithms.logistic import move
from forestc.algorithms.split_state import left_of, right_of

LEAST = 1e-6  # of the loss: a gain that is worth a change
DOUBT = 1.0  # standard errors of a gain that count against it
ADDED = 1 << 18  # rows times columns: what is added up to choose conditions for a split that many rows reach
FEWEST, MOST = 512, 4096  # rows that choose then
LOOK = 8  # times as many rows, at most, are looked at to find those that choose
CHOSEN = 8  # conditions that all rows then decide between


def sample_for(columns: int) -> int:
    """How many rows choose where there are many, by the number of columns."""
    return min(MOST, max(FEWEST, ADDED // max(1, columns)))


@compiled()
def rewire(
    shape: Any, state: Any, outcomes: Any, odds: Any, unit: float, price: float, doubt: float, sample: int
) -> Any:
    """Gives each split, from the roots down, the condition of the pool with which loss plus price is least, in place.
    How many changed. Splits with a condition outside the pool keep it.

    shape, state, outcomes: see `split_state`. doubt: what a change is taken to raise the loss by, in square roots of
    the squared changes of its rows. Without it the best of hundreds of conditions is too good on few rows: on digits,
    in cross-validation, 6 points of accuracy went instead of 2. sample: if more than twice as many rows of a split have
    a vote, so many, by its weight, choose `CHOSEN` conditions, and all rows decide between those; 0: always all rows.
    Time O(trees * depth * rows * (depth + columns) + splits * pool); with a sample
    O(trees * depth * rows * (depth + CHOSEN) + splits * (sample * columns + pool)).
    """
    rows, pool = state.leaf.shape[1], outcomes.pool
    changed, count = 0, len(shape.tree)
    columns = np.unique(outcomes.column[:pool])
    bins = np.empty((outcomes.begins[-1], 2))
    votes, moved, score = np.zeros(pool), np.zeros(pool), np.zeros(pool)
    whole = np.arange(pool)
    order, spare = np.empty(rows, np.int64), np.empty(rows, np.int64)  # rows of a tree, those of a split together
    there, rise = np.empty(rows, np.int64), np.empty(rows)
    begins, ends = np.zeros(count, np.int64), np.zeros(count, np.int64)
    span = state.value.max() - state.value.min()
    factors = np.exp(unit * np.arange(-span, span + 1)) - 1
    for split in range(count - 1, -1, -1):  # children come before their parents
        if split == count - 1 or shape.tree[split + 1] != shape.tree[split]:  # a root
            begins[split], ends[split] = 0, rows
            order[:] = np.arange(rows)
        if not state.alive[split]:
            continue
        reach = order[begins[split] : ends[split]]
        now, way = state.condition[split], state.flipped[split]
        best, turned = now, way
        if now < pool and len(reach):
            candidates, each = whole, 1.0
            some = reach
            if sample and len(reach) > LOOK * sample:
                each = len(reach) / (LOOK * sample)
                some = spare[: LOOK * sample]
                for k in range(len(some)):
                    some[k] = reach[int((k + 0.5) * each)]
            _rises(shape, state, outcomes, odds, unit, factors, split, some, there, rise)
            if sample and (each > 1 or np.count_nonzero(rise[: len(some)]) > 2 * sample):
                chosen, weighted, squared = _drawn(some, rise[: len(some)], each, sample)
                gain, square = _add_up(outcomes, columns, bins, now, chosen, weighted, squared, votes, moved)
                least, _, _ = _best(shape, state, split, price, doubt, whole, gain, square, votes, moved, score)
                candidates = np.sort(np.argsort(score)[:CHOSEN])
                candidates = candidates[score[candidates] < least]
                if len(candidates):
                    if each > 1:
                        _rises(shape, state, outcomes, odds, unit, factors, split, reach, there, rise)
                    gain, square = _add_up_few(outcomes, candidates, now, reach, rise, votes, moved)
            else:
                own = rise[: len(some)]
                gain, square = _add_up(outcomes, columns, bins, now, some, own, own * own, votes, moved)
            if len(candidates):
                _, best, turned = _best(shape, state, split, price, doubt, candidates, gain, square, votes, moved, score)
        if best != now or turned != way:
            changed += 1
            state.uses[now] -= 1
            state.uses[best] += 1
            state.condition[split], state.flipped[split] = best, turned
            _follow(shape, state, outcomes, odds, unit, factors, split, reach, there)
        _part(shape, state, outcomes, split, reach, spare, begins, ends)
    return changed


@compiled()
def _side(outcomes: Any, row: int, condition: int, turned: bool) -> Any:
    """Whether a row goes left."""
    return (outcomes.code[row, outcomes.column[condition]] < outcomes.cut[condition]) != turned


@compiled()
def _part(
    shape: Any, state: Any, outcomes: Any, split: int, reach: Any, spare: Any, begins: Any, ends: Any
) -> None:  # fmt: skip
    """Puts the rows of a split that go left before those that go right."""
    left, right = left_of(shape, split), right_of(shape, split)
    if left < 0 and right < 0:
        return
    condition, turned = state.condition[split], state.flipped[split]
    front, back = 0, 0
    for k in range(len(reach)):
        row = reach[k]
        if _side(outcomes, row, condition, turned):
            reach[front] = row
            front += 1
        else:
            spare[back] = row
            back += 1
    reach[front:] = spare[:back]
    if left >= 0:
        begins[left], ends[left] = begins[split], begins[split] + front
    if right >= 0:
        begins[right], ends[right] = begins[split] + front, ends[split]


@compiled()
def _rises(
    shape: Any, state: Any, outcomes: Any, odds: Any, unit: float, factors: Any, split: int, reach: Any, there: Any,
    rise: Any,
) -> None:  # fmt: skip
    """Of each row the leaf it comes to on the other side, and by how much more its loss is on the left."""
    own = shape.tree[split]
    base, output, width = shape.start[own], shape.outputs[own, 0], shape.outputs[own, 1] - shape.outputs[own, 0]
    middle, classes, span = shape.middle[split], odds.power.shape[1], len(factors) // 2
    for k in range(len(reach)):
        row = reach[k]
        here = state.leaf[own, row]
        left = here < middle
        other = _walk(shape, state, outcomes, row, right_of(shape, split), middle) if left else (
            _walk(shape, state, outcomes, row, left_of(shape, split), shape.first[split])
        )  # fmt: skip
        there[k] = other
        more, wanted = 0.0, 0
        for at in range(width):
            step = state.value[base + other * width + at] - state.value[base + here * width + at]
            if step != 0:
                more += odds.power[row, output + at] * factors[step + span]
                if odds.label[row] == (1 if classes == 1 else output + at):
                    wanted = step
        if more != 0.0 or wanted != 0:
            change = np.log(max(1 + more / odds.total[row], 1e-15)) - unit * wanted
            rise[k] = -change if left else change
        else:
            rise[k] = 0.0


@compiled()
def _walk(shape: Any, state: Any, outcomes: Any, row: int, split: int, only: int) -> Any:
    """The leaf a row comes to from a split; from none, the only one there is."""
    while split >= 0:
        only = shape.first[split]
        if not state.alive[split]:
            return only
        if _side(outcomes, row, state.condition[split], state.flipped[split]):
            split = left_of(shape, split)
        else:
            only = shape.middle[split]
            split = right_of(shape, split)
    return only


@compiled()
def _drawn(some: Any, rise: Any, each: float, sample: int) -> Any:
    """About so many of the rows, each the likelier the more it changes; what it and its square then stand for."""
    mean = np.abs(rise).sum() / sample
    chosen, weighted, squared = np.empty(2 * sample + 1, np.int64), np.empty(2 * sample + 1), np.empty(2 * sample + 1)
    found, passed = 0, 0.5
    for k in range(len(rise)):
        if rise[k] == 0.0:
            continue
        share = min(1.0, abs(rise[k]) / mean)
        passed += share
        if passed >= 1:
            passed -= 1
            chosen[found] = some[k]
            weighted[found] = rise[k] * each / share
            squared[found] = rise[k] * weighted[found]
            found += 1
    return chosen[:found], weighted[:found], squared[:found]


@compiled()
def _add_up(
    outcomes: Any, columns: Any, bins: Any, now: int, rows: Any, rise: Any, squared: Any, votes: Any, moved: Any
) -> Any:  # fmt: skip
    """votes: what the loss is with each condition of the pool, more than if all rows went right; moved: the squares of
    rows that would go another way than now. Of all rows: votes and squares."""
    for column in columns:
        bins[outcomes.begins[column] : outcomes.begins[column + 1]] = 0.0
    all_gain, all_square, leaving = 0.0, 0.0, 0.0
    for k in range(len(rows)):
        if rise[k] == 0.0:
            continue
        row, gain, square = rows[k], rise[k], squared[k]
        all_gain += gain
        all_square += square
        if _side(outcomes, row, now, False):
            leaving += square
            square = -square
        for column in columns:
            at = outcomes.begins[column] + outcomes.code[row, column]
            bins[at, 0] += gain
            bins[at, 1] += square
    for column in columns:
        for at in range(outcomes.begins[column] + 1, outcomes.begins[column + 1]):
            bins[at] += bins[at - 1]
    for c in range(len(votes)):
        at = outcomes.begins[outcomes.column[c]] + outcomes.cut[c] - 1
        votes[c] = bins[at, 0]
        moved[c] = 0.0 if c == now else leaving + bins[at, 1]
    return all_gain, all_square


@compiled()
def _add_up_few(outcomes: Any, candidates: Any, now: int, rows: Any, rise: Any, votes: Any, moved: Any) -> Any:
    """The same for a few conditions and the present one."""
    count = len(candidates)
    column, cut = outcomes.column[candidates], outcomes.cut[candidates]
    own, changes = np.zeros(count), np.zeros(count)
    all_gain, all_square, present = 0.0, 0.0, 0.0
    for k in range(len(rows)):
        gain = rise[k]
        if gain == 0.0:
            continue
        row, square = rows[k], gain * gain
        all_gain += gain
        all_square += square
        side = _side(outcomes, row, now, False)
        if side:
            present += gain
        for at in range(count):
            holds = outcomes.code[row, column[at]] < cut[at]
            own[at] += gain if holds else 0.0
            changes[at] += square if holds != side else 0.0
    votes[candidates], moved[candidates] = own, changes
    votes[now], moved[now] = present, 0.0
    return all_gain, all_square


@compiled()
def _best(
    shape: Any, state: Any, split: int, price: float, doubt: float, candidates: Any, all_gain: float,
    all_square: float, votes: Any, moved: Any, score: Any,
) -> Any:  # fmt: skip
    """What a change must be below, and the best condition and way, the present ones if none is. score: of each
    candidate, what loss and price are with it."""
    now, way = state.condition[split], state.flipped[split]
    worth = (all_gain - votes[now] if way else votes[now]) - LEAST
    worth += price * shape.cost[now] if state.uses[now] == 1 else 0.0
    least, best, turned = worth, now, way
    for c in candidates:
        extra = price * shape.cost[c] if state.uses[c] == (1 if c == now else 0) else 0.0
        same, other = moved[c], all_square - moved[c]
        if way:
            same, other = other, same
        here = votes[c] + extra + doubt * np.sqrt(max(same, 0.0))
        if here < least:
            least, best, turned = here, c, False
        back = all_gain - votes[c] + extra + doubt * np.sqrt(max(other, 0.0))
        if back < least:
            least, best, turned = back, c, True
        score[c] = min(here, back)
    return worth, best, turned


@compiled()
def _follow(
    shape: Any, state: Any, outcomes: Any, odds: Any, unit: float, factors: Any, split: int, reach: Any, there: Any,
) -> None:  # fmt: skip
    """Rows that go another way than they did come to their other leaf."""
    own = shape.tree[split]
    base, output, width = shape.start[own], shape.outputs[own, 0], shape.outputs[own, 1] - shape.outputs[own, 0]
    span = len(factors) // 2
    for k in range(len(reach)):
        row = reach[k]
        here = state.leaf[own, row]
        left = _side(outcomes, row, state.condition[split], state.flipped[split])
        if left == (here < shape.middle[split]):
            continue
        for at in range(width):
            step = state.value[base + there[k] * width + at] - state.value[base + here * width + at]
            if step != 0:
                move(odds, row, output + at, factors[step + span] + 1)
        state.leaf[own, row] = there[k]
