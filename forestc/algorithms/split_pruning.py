"""Splits removed where the loss on rows rises less than what they cost in hardware, leaves fitted anew in between.

A subtree becomes one leaf if that raises the logistic loss by less than `price` times what its splits cost: their
multiplexers, their share of the comparators they read, and with a whole tree its place in the sums. Cheapest first,
each judged again when its turn comes. Before that the splits that are left are rewired (`split_rewiring`). With a
rising price the ensemble shrinks step by step, and the leaves that are left make up for the ones that went.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled, share_out
from forestc.algorithms.leaf_fitting import Trees, fit_leaves, scores_of, sorted_by_leaf
from forestc.algorithms.logistic import STEEPNESS, Odds, Slope, change_of, changes_of, move, odds_of
from forestc.algorithms.split_rewiring import DOUBT, rewire, sample_for
from forestc.algorithms.split_state import Outcomes, Shape, State

MOST_CANDIDATES = 4  # leaves whose value a subtree may take, beside their mean
ROUNDS = 4  # of pruning and fitting at each price
LEAST_LOSS = 0.002  # of a row, that steeper odds must save: see `prune`


@dataclass(frozen=True)
class Splits:
    """The inner nodes of all trees, tree by tree, children before parents.

    tree: of each. first, last: its leaves, numbered from left to right within the tree: first .. last - 1; middle: the
    first of its right side. size: inner nodes below and with it. condition: number of what it compares. cost: of each
    condition, in any unit. node: what a node costs beside its comparator; sum: what a tree costs beside its splits;
    both for an output. outcomes: of the conditions, if splits may choose from a pool of them.
    """

    tree: NDArray[np.int64]
    first: NDArray[np.int64]
    middle: NDArray[np.int64]
    last: NDArray[np.int64]
    size: NDArray[np.int64]
    condition: NDArray[np.int64]
    cost: NDArray[np.float64]
    node: float
    sum: float
    outcomes: Outcomes | None = None


@dataclass(frozen=True)
class Pruned:
    """group: of each leaf, all trees' in a row, the first leaf of those that became one with it. value: of every leaf
    and output. condition: of each split; flipped: whether its sides changed places. splits: how many are left; cost: of
    what is left. loss: mean, on the rows. unit: log odds that one of the scores is worth."""

    group: NDArray[np.int64]
    value: NDArray[np.int64]
    bias: NDArray[np.int64]
    condition: NDArray[np.int64]
    flipped: NDArray[np.bool_]
    splits: int
    cost: float
    price: float
    loss: float
    unit: float


def prune(
    trees: Trees,
    bias: NDArray[np.int64],
    label: NDArray[np.int64],
    largest: int,
    splits: Splits,
    prices: NDArray[np.float64],
    least_loss: float = LEAST_LOSS,
    alike: float = 1.0,
) -> Iterator[Pruned]:
    """The ensemble after each of the prices, which rise; each goes on from the one before.

    trees.leaf numbers leaves from left to right. largest: a leaf may hold 0 .. largest. Where the classes of the rows
    can be told apart the loss could be made as small as one likes by steeper odds, and nothing would be worth keeping:
    a unit of the scores may be worth no more than what leaves a mean loss `least_loss` above the least there is. alike:
    how many rows there are for each that chance gave: it and its copies.

    Time O(prices * rounds * rows * trees * (sweeps + depth * (depth + columns of the outcomes))); where many rows reach
    a split some choose its condition, and there are no columns in it, see `rewire`. Linear in the rows, either way.
    Memory O(rows * (trees + columns)).
    """
    widths = trees.outputs[:, 1] - trees.outputs[:, 0]
    leaves = np.diff(trees.start) // widths
    slots = np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64)
    shape = Shape(
        splits.tree, splits.first, splits.middle, splits.last, splits.size, splits.cost, slots, trees.start,
        trees.outputs,
    )  # fmt: skip
    state = State(
        trees.leaf.copy(), trees.value.copy(), np.concatenate([np.arange(count) for count in leaves]).astype(np.int64),
        np.ones(len(splits.tree), dtype=np.bool_), splits.condition.copy(), np.zeros(len(splits.tree), dtype=np.bool_),
        np.zeros(len(splits.cost), dtype=np.int64),
    )  # fmt: skip
    outcomes = splits.outcomes
    sample = 0 if outcomes is None else sample_for(len(np.unique(outcomes.column[: outcomes.pool])))
    steepest = steepest_for(trees, bias, label, largest, least_loss)
    for price in prices.tolist():
        for _ in range(ROUNDS):
            _grouped(state, slots)
            now = replace(trees, leaf=state.leaf, value=state.value)
            value, bias = fit_leaves(now, bias, label, largest, steepest)
            state.value[:] = _spread(value, state.group, slots, trees.start, widths)
            scores = scores_of(state.leaf, trees.start, state.value, trees.outputs, bias)
            unit = _steepest(scores, label, steepest, least_loss)
            state.uses[:] = np.bincount(state.condition[state.alive], minlength=len(splits.cost))
            rewired = 0
            if outcomes is not None:
                odds = odds_of(scores, unit, label)
                doubt = DOUBT * float(np.sqrt(alike))
                rewired = rewire(shape, state, outcomes, odds, unit, price, doubt, sample)
                scores = scores_of(state.leaf, trees.start, state.value, trees.outputs, bias)
                unit = _steepest(scores, label, steepest, least_loss)
            removed = _round(shape, state, splits, now, odds_of(scores, unit, label), unit, price)
            if not removed and not rewired:
                break
        used = np.bincount(state.condition[state.alive], minlength=len(splits.cost)) > 0
        alive = splits.tree[state.alive]
        cost = float(
            splits.cost[used].sum() + splits.node * widths[alive].sum() + splits.sum * widths[np.unique(alive)].sum()
        )
        _grouped(state, slots)
        scores = scores_of(state.leaf, trees.start, state.value, trees.outputs, bias)
        yield Pruned(
            state.group.copy(), state.value.copy(), bias.copy(), state.condition.copy(), state.flipped.copy(),
            len(alive), cost, price, Slope(scores, label).at(int(np.searchsorted(STEEPNESS, unit))), unit,
        )  # fmt: skip


def steepest_for(
    trees: Trees, bias: NDArray[np.int64], label: NDArray[np.int64], largest: int, least_loss: float
) -> float:
    """The log odds a unit of the scores may be worth: the most with which the whole ensemble's mean loss, its leaves
    fitted, is not yet within `least_loss` of the least."""
    value, moved = fit_leaves(trees, bias, label, largest, 1.0 / largest)
    scores = scores_of(trees.leaf, trees.start, value, trees.outputs, moved)
    return _steepest(scores, label, float(STEEPNESS[-1]), least_loss)


def _steepest(scores: NDArray[np.float64], label: NDArray[np.int64], most: float, least_loss: float) -> float:
    """What a unit of these scores is best taken to be worth: the most, up to `most`, that is worth `least_loss`."""
    slope = Slope(scores, label)
    lowest = slope.lowest(len(STEEPNESS) - 1, int(np.searchsorted(STEEPNESS, most)))
    place = min(lowest - 1, int(np.searchsorted(STEEPNESS, most, side="right")) - 1)
    while place > 0 and slope.at(place) - slope.at(lowest) < least_loss:
        place -= 1
    return float(STEEPNESS[max(place, 0)])


def _grouped(state: State, slots: NDArray[np.int64]) -> None:
    """The leaf of each row, of those that are one the first."""
    for tree, own in enumerate(state.leaf):
        own[:] = state.group[slots[tree] : slots[tree + 1]][own]


def _spread(value: Any, group: Any, slots: Any, start: Any, widths: Any) -> NDArray[np.int64]:
    """Leaves that are one hold what their first one holds."""
    parts = []
    for tree, width in enumerate(widths.tolist()):
        own = value[start[tree] : start[tree + 1]].reshape(-1, width)
        parts.append(own[group[slots[tree] : slots[tree + 1]]].ravel())
    return np.concatenate(parts)


def _round(shape: Shape, state: State, splits: Splits, trees: Trees, odds: Odds, unit: float, price: float) -> int:
    """Removes what is not worth its price, cheapest first, in place. How many splits went."""
    rows = sorted_by_leaf(trees)
    ratio = np.full(len(shape.tree), np.inf)
    whole = (shape, state, rows, odds, unit, splits.node, splits.sum)
    share_out(len(ratio), lambda first, last: _ratios(*whole, ratio, first, last))
    return int(_remove(*whole, price, ratio, np.argsort(ratio, kind="stable")))


@compiled()
def _ratios(
    shape: Any, state: Any, rows: Any, odds: Any, unit: float, node: float, per_sum: float, ratio: Any, begin: int,
    end: int,
) -> None:  # fmt: skip
    """What the loss rises by if a split goes, for each LUT that this saves."""
    for split in range(begin, end):
        if state.alive[split]:
            change, _ = _best(shape, state, rows, odds, unit, split)
            ratio[split] = change / _saved(shape, state, node, per_sum, split)


@compiled()
def _remove(
    shape: Any, state: Any, rows: Any, odds: Any, unit: float, node: float, per_sum: float, price: float, ratio: Any,
    order: Any,
) -> Any:  # fmt: skip
    removed = 0
    for split in order:
        if ratio[split] >= price:
            break
        if not state.alive[split]:
            continue
        change, chosen = _best(shape, state, rows, odds, unit, split)
        if change >= price * _saved(shape, state, node, per_sum, split):
            continue
        own = shape.tree[split]
        base, output, width = shape.start[own], shape.outputs[own, 0], shape.outputs[own, 1] - shape.outputs[own, 0]
        for slot in range(shape.first[split], shape.last[split]):
            for k in range(width):
                step = chosen[k] - state.value[base + slot * width + k]
                if step != 0:
                    factor = np.exp(unit * step)
                    for at in range(rows.begins[own, slot], rows.begins[own, slot + 1]):
                        move(odds.power, odds.total, rows.order[own, at], output + k, factor)
                state.value[base + slot * width + k] = chosen[k]
            state.group[shape.slots[own] + slot] = shape.first[split]
        for inner in range(split - shape.size[split] + 1, split + 1):
            if state.alive[inner]:
                state.alive[inner] = False
                state.uses[state.condition[inner]] -= 1
                removed += 1
    return removed


@compiled()
def _saved(shape: Any, state: Any, node: float, per_sum: float, split: int) -> Any:
    """What a subtree's splits cost."""
    own = shape.tree[split]
    width = shape.outputs[own, 1] - shape.outputs[own, 0]
    saved = 0.0
    for inner in range(split - shape.size[split] + 1, split + 1):
        if state.alive[inner]:
            condition = state.condition[inner]
            saved += node * width + shape.cost[condition] / state.uses[condition]
    if shape.last[split] - shape.first[split] == shape.slots[own + 1] - shape.slots[own]:
        saved += per_sum * width
    return saved


@compiled()
def _best(shape: Any, state: Any, rows: Any, odds: Any, unit: float, split: int) -> Any:
    """The least the loss rises by if a subtree becomes one leaf, and what that leaf then holds."""
    own = shape.tree[split]
    base, first, last = shape.start[own], shape.first[split], shape.last[split]
    width = shape.outputs[own, 1] - shape.outputs[own, 0]
    counts = np.zeros(last - first)
    tried = np.zeros((MOST_CANDIDATES + 1, width), np.int64)
    for slot in range(first, last):
        here = rows.begins[own, slot + 1] - rows.begins[own, slot]
        counts[state.group[shape.slots[own] + slot] - first] += here
    all_rows = counts.sum()
    for k in range(width):
        mean = 0.0
        for slot in range(first, last):
            mean += (rows.begins[own, slot + 1] - rows.begins[own, slot]) * state.value[base + slot * width + k]
        tried[0, k] = int(np.floor(mean / max(all_rows, 1.0) + 0.5))
    best, chosen = np.inf, 0
    for attempt in range(MOST_CANDIDATES + 1):
        if attempt:
            fullest = np.argmax(counts)
            if counts[fullest] <= 0:
                break
            counts[fullest] = 0
            at = base + (first + fullest) * width
            tried[attempt] = state.value[at : at + width]
        known = False
        for earlier in range(attempt):
            known = known or bool(np.all(tried[earlier] == tried[attempt]))
        if not known:
            change = _rise(shape, state, rows, odds, unit, own, first, last, tried[attempt])
            if change < best:
                best, chosen = change, attempt
    return best, tried[chosen]


@compiled()
def _rise(
    shape: Any, state: Any, rows: Any, odds: Any, unit: float, own: int, first: int, last: int, chosen: Any
) -> Any:  # fmt: skip
    """What the loss rises by if the leaves first .. last - 1 hold `chosen`."""
    base, output, width = shape.start[own], shape.outputs[own, 0], shape.outputs[own, 1] - shape.outputs[own, 0]
    rise = 0.0
    for slot in range(first, last):
        steps = unit * (chosen - state.value[base + slot * width : base + (slot + 1) * width])
        if np.all(steps == 0):
            continue
        begin, end = rows.begins[own, slot], rows.begins[own, slot + 1]
        if width == 1:
            rise += change_of(odds, rows.order[own], begin, end, output, steps[0])
        else:
            rise += changes_of(odds, rows.order[own], begin, end, output, steps)
    return rise
