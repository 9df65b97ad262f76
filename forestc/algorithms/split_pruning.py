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

from forestc.algorithms.compiled import compiled
from forestc.algorithms.leaf_fitting import STEEPNESS, Trees, fit_leaves, loss_of, scores_of
from forestc.algorithms.split_rewiring import DOUBT, rewire

MOST_CANDIDATES = 4  # leaves whose value a subtree may take, beside their mean
ROUNDS = 4  # of pruning and fitting at each price
LEAST_LOSS = 0.002  # of a row, that steeper odds must save: see `prune`


@dataclass(frozen=True)
class Splits:
    """The inner nodes of all trees, tree by tree, children before parents.

    tree: of each. first, last: its leaves, numbered from left to right within the tree: first .. last - 1; middle: the
    first of its right side. size: inner nodes below and with it. condition: number of what it compares. cost: of each
    condition, in any unit. node: what a node costs beside its comparator; sum: what a tree costs beside its splits;
    both for an output. pool: the first so many conditions are there for any split; 0: splits keep theirs. holds: (rows,
    conditions) 1 where a row goes left, if there is a pool.
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
    pool: int = 0
    holds: NDArray[np.uint8] | None = None


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
    how many rows there are for each that chance gave: it and its copies. Time
    O(prices * rounds * rows * trees * (sweeps + depth * pool)), memory O(rows * (trees + conditions)).
    """
    widths = trees.outputs[:, 1] - trees.outputs[:, 0]
    leaves = np.diff(trees.start) // widths
    slots = np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64)
    group = np.concatenate([np.arange(count) for count in leaves]).astype(np.int64)
    alive = np.ones(len(splits.tree), dtype=np.bool_)
    leaf = trees.leaf.copy()
    condition, flipped = splits.condition.copy(), np.zeros(len(splits.tree), dtype=np.bool_)
    steepest = steepest_for(trees, bias, label, largest, least_loss)
    value, bias = trees.value.copy(), bias.copy()
    for price in prices.tolist():
        for _ in range(ROUNDS):
            leaf = _grouped(leaf, group, slots)
            now = replace(trees, leaf=leaf, value=value)
            value, bias = fit_leaves(now, bias, label, largest, steepest)
            value = _spread(value, group, slots, trees.start, widths)
            scores = scores_of(now.leaf, trees.start, value, trees.outputs, bias)
            unit = _steepest(scores, label, steepest, least_loss)
            uses = np.bincount(condition[alive], minlength=len(splits.cost)).astype(np.int64)
            rewired = 0
            if splits.holds is not None:
                power, total = _powers(scores * unit)
                rewired = rewire(
                    leaf, splits.holds, trees.start, value, trees.outputs, alive, splits.tree, splits.first,
                    splits.middle, splits.last, splits.size, condition, flipped, splits.pool, splits.cost, uses, label,
                    power, total, unit, price, DOUBT * np.sqrt(alike),
                )  # fmt: skip
                scores = scores_of(leaf, trees.start, value, trees.outputs, bias)
                unit = _steepest(scores, label, steepest, least_loss)
            order = np.argsort(leaf, axis=1, kind="stable").astype(np.int32)
            found = np.stack([np.bincount(own, minlength=int(leaves.max())) for own in leaf])
            begins = np.concatenate([np.zeros((len(found), 1), np.int64), np.cumsum(found, axis=1)], axis=1)
            removed = _round(
                order, begins, slots, trees.start, value, trees.outputs, group, alive, splits.tree, splits.first,
                splits.last, splits.size, condition, splits.cost, uses, splits.node, splits.sum, label,
                scores * unit, unit, price,
            )  # fmt: skip
            if not removed and not rewired:
                break
        used = np.bincount(condition[alive], minlength=len(splits.cost)) > 0
        roots = np.unique(splits.tree[alive])
        cost = float(
            splits.cost[used].sum() + splits.node * widths[splits.tree[alive]].sum() + splits.sum * widths[roots].sum()
        )
        leaf = _grouped(leaf, group, slots)
        loss = loss_of(scores_of(leaf, trees.start, value, trees.outputs, bias) * unit, label)
        yield Pruned(
            group.copy(), value.copy(), bias.copy(), condition.copy(), flipped.copy(), int(alive.sum()), cost, price,
            loss, unit,
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
    losses: list[float] = []
    for unit in STEEPNESS.tolist():
        losses.append(loss_of(scores * unit, label))
        if len(losses) > 1 and losses[-1] > losses[-2]:  # it is convex
            break
    gains = [loss - min(losses) >= least_loss for loss in losses[: int(np.argmin(losses))]]
    units = [unit for unit, gain in zip(STEEPNESS.tolist(), gains, strict=False) if gain and unit <= most]
    return float(units[-1]) if units else float(STEEPNESS[0])


def _grouped(leaf: Any, group: Any, slots: Any) -> NDArray[np.int32]:
    """The leaf of each row, of those that are one the first."""
    return np.stack([group[slots[tree] : slots[tree + 1]][own] for tree, own in enumerate(leaf)]).astype(np.int32)


def _spread(value: Any, group: Any, slots: Any, start: Any, widths: Any) -> NDArray[np.int64]:
    """Leaves that are one hold what their first one holds."""
    parts = []
    for tree, width in enumerate(widths.tolist()):
        own = value[start[tree] : start[tree + 1]].reshape(-1, width)
        parts.append(own[group[slots[tree] : slots[tree + 1]]].ravel())
    return np.concatenate(parts)


@compiled()
def _powers(odds: Any) -> Any:
    """Of each row the exponentials of its odds, and their sum; with one output the other class scores 0."""
    rows, classes = odds.shape
    power, total = np.empty((rows, classes)), np.empty(rows)
    for row in range(rows):
        top = 0.0 if classes == 1 else odds[row].max()
        total[row] = 1.0 if classes == 1 else 0.0
        for k in range(classes):
            power[row, k] = np.exp(min(odds[row, k] - top, 500.0))
            total[row] += power[row, k]
    return power, total


@compiled()
def _round(
    order: Any, begins: Any, slots: Any, start: Any, value: Any, outputs: Any, group: Any, alive: Any, tree: Any,
    first: Any, last: Any, size: Any, condition: Any, cost: Any, uses: Any, node: float, per_sum: float, label: Any,
    odds: Any, unit: float, price: float,
) -> Any:  # fmt: skip
    """Removes what is not worth its price, cheapest first, in place. How many splits went."""
    power, total = _powers(odds)
    ratio = np.full(len(tree), np.inf)
    for split in range(len(tree)):
        if alive[split]:
            gain = _saved(split, alive, tree, first, last, size, condition, cost, uses, node, per_sum, slots, outputs)
            change, _ = _best(split, order, begins, slots, start, value, outputs, group, tree, first, last, label,
                              power, total, unit)  # fmt: skip
            ratio[split] = change / gain
    removed = 0
    for split in np.argsort(ratio):
        if ratio[split] >= price:
            break
        if not alive[split]:
            continue
        gain = _saved(split, alive, tree, first, last, size, condition, cost, uses, node, per_sum, slots, outputs)
        change, chosen = _best(split, order, begins, slots, start, value, outputs, group, tree, first, last, label,
                               power, total, unit)  # fmt: skip
        if change >= price * gain:
            continue
        own, width = tree[split], outputs[tree[split], 1] - outputs[tree[split], 0]
        _shift(own, first[split], last[split], chosen, order, begins, start, value, outputs, power, total, unit)
        for slot in range(first[split], last[split]):
            group[slots[own] + slot] = first[split]
            for k in range(width):
                value[start[own] + slot * width + k] = chosen[k]
        for inner in range(split - size[split] + 1, split + 1):
            if alive[inner]:
                alive[inner] = False
                uses[condition[inner]] -= 1
                removed += 1
    return removed


@compiled()
def _saved(
    split: int, alive: Any, tree: Any, first: Any, last: Any, size: Any, condition: Any, cost: Any, uses: Any,
    node: float, per_sum: float, slots: Any, outputs: Any,
) -> Any:  # fmt: skip
    """What a subtree's splits cost."""
    own, width = tree[split], outputs[tree[split], 1] - outputs[tree[split], 0]
    saved = 0.0
    for inner in range(split - size[split] + 1, split + 1):
        if alive[inner]:
            saved += node * width + cost[condition[inner]] / uses[condition[inner]]
    if last[split] - first[split] == slots[own + 1] - slots[own]:
        saved += per_sum * width
    return saved


@compiled()
def _best(
    split: int, order: Any, begins: Any, slots: Any, start: Any, value: Any, outputs: Any, group: Any, tree: Any,
    first: Any, last: Any, label: Any, power: Any, total: Any, unit: float,
) -> Any:  # fmt: skip
    """The least the loss rises by if a subtree becomes one leaf, and what that leaf then holds."""
    own = tree[split]
    width = outputs[own, 1] - outputs[own, 0]
    counts = np.zeros(last[split] - first[split])
    mean = np.zeros(width)
    for slot in range(first[split], last[split]):
        rows = begins[own, slot + 1] - begins[own, slot]
        counts[group[slots[own] + slot] - first[split]] += rows
        for k in range(width):
            mean[k] += rows * value[start[own] + slot * width + k]
    all_rows = counts.sum()
    best, chosen = np.inf, np.zeros(width, np.int64)
    candidate = np.zeros(width, np.int64)
    for attempt in range(MOST_CANDIDATES + 1):
        if attempt == 0:
            for k in range(width):
                candidate[k] = int(np.floor(mean[k] / max(all_rows, 1.0) + 0.5))
        else:
            fullest = np.argmax(counts)
            if counts[fullest] <= 0:
                break
            counts[fullest] = 0
            for k in range(width):
                candidate[k] = value[start[own] + (first[split] + fullest) * width + k]
        change = _rise(own, first[split], last[split], candidate, order, begins, start, value, outputs, label, power,
                       total, unit)  # fmt: skip
        if change < best:
            best = change
            chosen[:] = candidate
    return best, chosen


@compiled()
def _rise(
    own: int, first: int, last: int, chosen: Any, order: Any, begins: Any, start: Any, value: Any, outputs: Any,
    label: Any, power: Any, total: Any, unit: float,
) -> Any:  # fmt: skip
    """What the loss rises by if the leaves first .. last - 1 hold `chosen`."""
    width, classes = outputs[own, 1] - outputs[own, 0], power.shape[1]
    rise = 0.0
    for slot in range(first, last):
        for at in range(begins[own, slot], begins[own, slot + 1]):
            row = order[own, at]
            more, wanted = 0.0, 0.0
            for k in range(width):
                step = unit * (chosen[k] - value[start[own] + slot * width + k])
                if step != 0.0:
                    output = outputs[own, 0] + k
                    more += power[row, output] * (np.exp(step) - 1)
                    if label[row] == (1 if classes == 1 else output):
                        wanted += step
            if more != 0.0 or wanted != 0.0:
                rise += np.log1p(max(more / total[row], -1 + 1e-15)) - wanted
    return rise


@compiled()
def _shift(
    own: int, first: int, last: int, chosen: Any, order: Any, begins: Any, start: Any, value: Any, outputs: Any,
    power: Any, total: Any, unit: float,
) -> None:  # fmt: skip
    """Rows of the leaves first .. last - 1 as they are once these hold `chosen`."""
    width = outputs[own, 1] - outputs[own, 0]
    for slot in range(first, last):
        for k in range(width):
            factor = np.exp(unit * (chosen[k] - value[start[own] + slot * width + k]))
            output = outputs[own, 0] + k
            for at in range(begins[own, slot], begins[own, slot + 1]):
                row = order[own, at]
                more = power[row, output] * (factor - 1)
                power[row, output] += more
                total[row] = max(total[row] + more, 1e-300)
