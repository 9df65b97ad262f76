"""Prunes splits: a subtree becomes one leaf if the logistic loss rises by less than `price` times the hardware cost
saved. Leaves are refitted before each round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from forestc.algorithms.arrays import Bits, Floats, Ints
from forestc.algorithms.splits.leaf_fitting import Sorted, Trees, fit_leaves, scores_of, sorted_by_leaf
from forestc.algorithms.splits.logistic import FEW, STEEPNESS, Odds, Slope, change_of, changes_of, move, odds_of
from forestc.algorithms.splits.reached_leaves import leaves_on
from forestc.algorithms.splits.rewiring import DOUBT, Fitted, rewire, sample_for
from forestc.algorithms.splits.state import Outcomes, Shape, State, mean_leaf, merge, rows_of, saved_by, tree_of
from forestc.system.compiled import compiled, share_out

MOST_CANDIDATES = 4  # leaves whose values are tried for a subtree, beside the mean
ROUNDS = 4  # rounds of pruning and fitting at each price
LEAST_LOSS = 0.002  # bounds the odds: the mean loss stays this far above its minimum


@dataclass(frozen=True)
class Splits:
    """The inner nodes of all trees, tree by tree, children before parents."""

    tree: Ints  # index of each split's tree
    first: Ints  # first leaf below the split, counted within the tree
    middle: Ints  # first leaf of the right subtree
    last: Ints  # last leaf below the split, plus one
    size: Ints  # number of splits in the subtree, with its root
    condition: Ints  # index of the split's condition
    cost: Floats  # cost of each condition
    node: float  # cost of a split without its condition, for each output
    sum: float  # cost of a tree without its splits, for each output
    outcomes: Outcomes | None = None  # outcomes of the conditions, if splits may change conditions


class Start(NamedTuple):
    """A pruned ensemble from which pruning continues; arrays as in `Pruned`."""

    group: Ints
    value: Ints
    bias: Ints
    condition: Ints
    flipped: Bits


@dataclass(frozen=True)
class Pruned:
    """An ensemble after pruning at one price."""

    group: Ints  # for each leaf, first leaf merged with it
    value: Ints  # value of every leaf and output
    bias: Ints
    condition: Ints  # index of each split's condition
    flipped: Bits  # True if the split's sides are swapped
    splits: int  # number of remaining splits
    cost: float  # cost of the remaining conditions, splits and trees
    price: float
    loss: float  # mean loss over the rows
    unit: float  # log odds that one unit of score is worth
    state: State  # present trees; the next price changes them in place


def prune(
    trees: Trees,
    bias: Ints,
    label: Ints,
    largest: int,
    splits: Splits,
    prices: Floats,
    copies_per_row: float = 1.0,
    start: Start | None = None,
) -> Iterator[Pruned]:
    """Yields the pruned ensemble after each price; prices ascend. Leaves keep values from 0 to `largest`.
    copies_per_row: number of times that each row occurs in the data."""
    outcomes = splits.outcomes
    sample = 0 if outcomes is None else sample_for(len(np.unique(outcomes.column[: outcomes.pool])))
    steepest = steepest_for(trees, bias, label, largest)
    shape, state, bias = started(trees, splits, bias, start)
    for price in prices.tolist():
        for _ in range(ROUNDS):
            merged = present_trees(trees, shape, state)
            value, bias = fit_leaves(merged, bias, label, largest, steepest)
            spread(shape, state, value)
            scores = scores_of(state.leaf, trees.start, state.value, trees.outputs, bias)
            unit = _steepest(scores, label, steepest)
            state.uses[:] = np.bincount(state.condition[state.alive], minlength=len(splits.cost))
            rewired = 0
            if outcomes is not None:
                odds = odds_of(scores, unit, label)
                doubt = DOUBT * float(np.sqrt(copies_per_row))
                rewired = rewire(Fitted(shape, state, outcomes, odds, unit), price, doubt, sample)
                scores = scores_of(state.leaf, trees.start, state.value, trees.outputs, bias)
                unit = _steepest(scores, label, steepest)
            removed = _round(shape, state, merged, odds_of(scores, unit, label), unit, price)
            if not removed and not rewired:
                break
        present_trees(trees, shape, state)
        scores = scores_of(state.leaf, trees.start, state.value, trees.outputs, bias)
        loss = Slope(scores, label).at(int(np.searchsorted(STEEPNESS, unit)))
        yield pruned_of(shape, state, bias, price, loss, unit)


def as_given(trees: Trees, splits: Splits) -> tuple[Shape, State]:
    """Returns the original trees: a fixed Shape, and a State for pruning to change, without removed splits."""
    leaves = np.diff(trees.start) // (trees.outputs[:, 1] - trees.outputs[:, 0])
    slots = np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64)
    shape = Shape(
        splits.tree, splits.first, splits.middle, splits.last, splits.size, splits.cost, splits.node, splits.sum, slots,
        trees.start, trees.outputs,
    )  # fmt: skip
    state = State(
        trees.leaf.copy(), trees.value.copy(), np.concatenate([np.arange(count) for count in leaves]).astype(np.int64),
        np.ones(len(splits.tree), dtype=np.bool_), splits.condition.copy(), np.zeros(len(splits.tree), dtype=np.bool_),
        np.bincount(splits.condition, minlength=len(splits.cost)),
    )  # fmt: skip
    return shape, state


def started(trees: Trees, splits: Splits, bias: Ints, start: Start | None) -> tuple[Shape, State, Ints]:
    """Returns the shape, state and biases from which pruning begins. State and biases are copies."""
    shape, state = as_given(trees, splits)
    if start is None:
        return shape, state, bias.copy()
    state.value[:], state.group[:] = start.value, start.group
    state.condition[:], state.flipped[:] = start.condition, start.flipped
    first = shape.slots[splits.tree]
    state.alive[:] = start.group[first + splits.first] != start.group[first + splits.middle]
    state.uses[:] = np.bincount(state.condition[state.alive], minlength=len(splits.cost))
    if splits.outcomes is not None:  # conditions changed, so rows take other paths
        state.leaf[:] = leaves_on(shape, state, splits.outcomes)
    return shape, state, start.bias.copy()


def pruned_of(
    shape: Shape, state: State, bias: Ints, price: float, loss: float, unit: float
) -> Pruned:  # fmt: skip
    """Returns the present trees as `Pruned`, with copies of the state's arrays."""
    return Pruned(
        state.group.copy(), state.value.copy(), bias.copy(), state.condition.copy(), state.flipped.copy(),
        int(state.alive.sum()), cost_of(shape, state), price, loss, unit, state,
    )  # fmt: skip


def cost_of(shape: Shape, state: State) -> float:
    """Returns the cost of the remaining conditions, splits and trees."""
    widths = shape.outputs[:, 1] - shape.outputs[:, 0]
    alive = shape.tree[state.alive]
    used = np.unique(state.condition[state.alive])
    return float(shape.cost[used].sum() + shape.node * widths[alive].sum() + shape.sum * widths[np.unique(alive)].sum())


def steepest_for(trees: Trees, bias: Ints, label: Ints, largest: int) -> float:
    """Returns the most log odds that a unit of score may be worth. They keep the mean loss `LEAST_LOSS` above its
    minimum."""
    value, moved = fit_leaves(trees, bias, label, largest, 1.0 / largest)
    scores = scores_of(trees.leaf, trees.start, value, trees.outputs, moved)
    return _steepest(scores, label, float(STEEPNESS[-1]))


def _steepest(scores: Floats, label: Ints, most: float) -> float:
    """Returns the largest steepness, up to `most`, with a mean loss at least `LEAST_LOSS` above its minimum."""
    slope = Slope(scores, label)
    lowest = slope.lowest(len(STEEPNESS) - 1, int(np.searchsorted(STEEPNESS, most)))
    index = min(lowest - 1, int(np.searchsorted(STEEPNESS, most, side="right")) - 1)
    while index > 0 and slope.at(index) - slope.at(lowest) < LEAST_LOSS:
        index -= 1
    return float(STEEPNESS[max(index, 0)])


def present_trees(trees: Trees, shape: Shape, state: State) -> Trees:
    """Returns the trees with leaves and values of `state`. In `state.leaf`, a merged leaf is replaced by the first of
    its group."""
    for tree, leaf in enumerate(state.leaf):
        leaf[:] = state.group[shape.slots[tree] : shape.slots[tree + 1]][leaf]
    return replace(trees, leaf=state.leaf, value=state.value)


def spread(shape: Shape, state: State, value: Ints) -> None:
    """Sets each leaf of `state` to the entry of `value` for the first leaf of its group."""
    for tree, (first, last) in enumerate(shape.outputs.tolist()):
        own = slice(shape.start[tree], shape.start[tree + 1])
        group = state.group[shape.slots[tree] : shape.slots[tree + 1]]
        state.value[own] = value[own].reshape(-1, last - first)[group].ravel()


def _round(shape: Shape, state: State, trees: Trees, odds: Odds, unit: float, price: float) -> int:
    """Removes splits that are worth less than their cost, in place; returns how many."""
    rows = sorted_by_leaf(trees)
    ratio = np.full(len(shape.tree), np.inf)
    arguments = (shape, state, rows, odds, unit)
    few = len(ratio) if trees.leaf.size * odds.power.shape[1] < FEW else 1
    share_out(len(ratio), lambda first, last: _ratios(*arguments, ratio, first, last), few=few)
    return int(_remove(*arguments, price, ratio, np.argsort(ratio, kind="stable")))


@compiled()
def _ratios(
    shape: Shape, state: State, rows: Sorted, odds: Odds, unit: float, ratio: Floats, begin: int, end: int
) -> None:  # fmt: skip
    for split in range(begin, end):
        if state.alive[split]:
            change, _ = _best(shape, state, rows, odds, unit, split)
            ratio[split] = change / saved_by(shape, state, split)


@compiled()
def _remove(
    shape: Shape, state: State, rows: Sorted, odds: Odds, unit: float, price: float, ratio: Floats, order: Ints
) -> Any:  # fmt: skip
    removed = 0
    for split in order:
        if ratio[split] >= price:
            break
        if not state.alive[split]:
            continue
        change, chosen = _best(shape, state, rows, odds, unit, split)
        if change >= price * saved_by(shape, state, split):
            continue
        tree, base, output, width = tree_of(shape, split)
        for slot in range(shape.first[split], shape.last[split]):
            for k in range(width):
                step = chosen[k] - state.value[base + slot * width + k]
                if step != 0:
                    factor = np.exp(unit * step)
                    for row in rows_of(rows, tree, slot):
                        move(odds.power, odds.total, row, output + k, factor)
        removed += merge(shape, state, split, chosen)
    return removed


@compiled()
def _best(shape: Shape, state: State, rows: Sorted, odds: Odds, unit: float, split: int) -> Any:
    """Returns the least rise of the loss found for merging a subtree, and the leaf's values."""
    tree, base, _, width = tree_of(shape, split)
    first, last = shape.first[split], shape.last[split]
    counts = np.zeros(last - first)
    tried = np.zeros((MOST_CANDIDATES + 1, width), np.int64)
    for slot in range(first, last):
        counts[state.group[shape.slots[tree] + slot] - first] += len(rows_of(rows, tree, slot))
    mean = mean_leaf(shape, state, rows, split)
    for k in range(width):
        tried[0, k] = mean[k]
    best, chosen = np.inf, 0
    for attempt in range(MOST_CANDIDATES + 1):
        if attempt:
            fullest = 0
            for slot in range(1, last - first):
                if counts[slot] > counts[fullest]:
                    fullest = slot
            if counts[fullest] <= 0:
                break
            counts[fullest] = 0
            for k in range(width):
                tried[attempt, k] = state.value[base + (first + fullest) * width + k]
        seen = False
        for earlier in range(attempt):
            different = False
            for k in range(width):
                different = different or tried[earlier, k] != tried[attempt, k]
            seen = seen or not different
        if not seen:
            change = _rise(shape, state, rows, odds, unit, split, tried[attempt])
            if change < best:
                best, chosen = change, attempt
    return best, tried[chosen]


@compiled()
def _rise(shape: Shape, state: State, rows: Sorted, odds: Odds, unit: float, split: int, chosen: Ints) -> Any:
    """Returns the rise of the loss if all leaves of a subtree take the values `chosen`."""
    tree, base, output, width = tree_of(shape, split)
    rise, steps = 0.0, np.empty(width)
    for slot in range(shape.first[split], shape.last[split]):
        moves = False
        for k in range(width):
            steps[k] = unit * (chosen[k] - state.value[base + slot * width + k])
            moves = moves or steps[k] != 0
        if not moves:
            continue
        begin, end = rows.begins[tree, slot], rows.begins[tree, slot + 1]
        if width == 1:
            rise += change_of(odds, rows.order[tree], begin, end, output, steps[0])
        else:
            rise += changes_of(odds, rows.order[tree], begin, end, output, steps)
    return rise
