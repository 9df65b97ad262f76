"""Prunes splits of regressions: a split is removed if the squared error rises by less than `price` times the hardware
cost saved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.splits.leaf_fitting import Sorted, Trees, integer_scores, sorted_by_leaf
from forestc.algorithms.splits.pruning import Pruned, Splits, Start, present_trees, pruned_of, spread, started
from forestc.algorithms.splits.state import Shape, State, merge, rows_of, saved_by, tree_of
from forestc.system.compiled import compiled

SWEEPS = 20  # sweeps over all leaves at most
CONVERGED = 1e-4  # ends after a sweep that gains less, relative to the squared error
ROUNDS = 3  # rounds of pruning and fitting at each price


def prune_squared(
    trees: Trees,
    bias: Ints,
    target: Floats,
    largest: int,
    splits: Splits,
    prices: Floats,
    start: Start | None = None,
) -> Iterator[Pruned]:
    """Yields the ensemble after each price; prices ascend. target: (rows, outputs) true values, in units of the scores.
    prices: squared error that a unit of cost is worth."""
    shape, state, bias = started(trees, splits, bias, start)
    for price in prices.tolist():
        for _ in range(ROUNDS):
            rows = sorted_by_leaf(present_trees(trees, shape, state))
            residual = target - integer_scores(state.leaf, shape.start, state.value, shape.outputs, bias)
            before = float((residual**2).sum())
            for _ in range(SWEEPS):
                _sweep(rows, shape.start, state.value, shape.outputs, bias, residual, largest)
                after = float((residual**2).sum())
                if before - after <= CONVERGED * after:
                    break
                before = after
            spread(shape, state, state.value)
            arguments = (shape, state, rows, residual, largest)
            ratio = np.full(len(shape.tree), np.inf)
            _ratios(*arguments, ratio)
            if not _remove(*arguments, price, ratio, np.argsort(ratio, kind="stable")):
                break
        present_trees(trees, shape, state)
        yield pruned_of(shape, state, bias, price, float((residual**2).sum()) / len(residual), 1.0)


@compiled()
def _sweep(rows: Sorted, start: Ints, value: Ints, outputs: Ints, bias: Ints, residual: Floats, largest: int) -> None:
    for tree in range(len(outputs)):
        first, width = outputs[tree, 0], outputs[tree, 1] - outputs[tree, 0]
        for slot in range((start[tree + 1] - start[tree]) // width):
            reached = rows_of(rows, tree, slot)
            if not len(reached):
                continue
            for k in range(width):
                total = 0.0
                for row in reached:
                    total += residual[row, first + k]
                entry = start[tree] + slot * width + k
                best = int(np.floor(value[entry] + total / len(reached) + 0.5))
                step = min(max(best, 0), largest) - value[entry]
                if step != 0:
                    value[entry] += step
                    for row in reached:
                        residual[row, first + k] -= step
    for k in range(len(bias)):
        step = int(np.floor(residual[:, k].mean() + 0.5))
        bias[k] += step
        residual[:, k] -= step


@compiled()
def _merged(shape: Shape, state: State, rows: Sorted, residual: Floats, largest: int, split: int, chosen: Ints) -> Any:
    """Returns the squared error's rise if a subtree becomes a leaf; writes the leaf's values to `chosen`."""
    tree, base, first, width = tree_of(shape, split)
    rise = 0.0
    for k in range(width):
        total, squared, present, count = 0.0, 0.0, 0.0, 0
        for slot in range(shape.first[split], shape.last[split]):
            old = state.value[base + slot * width + k]
            for row in rows_of(rows, tree, slot):
                error = residual[row, first + k]
                total += error + old
                squared += (error + old) ** 2
                present += error**2
                count += 1
        value = min(max(int(np.floor(total / max(count, 1) + 0.5)), 0), largest)
        chosen[k] = value
        rise += squared - 2 * value * total + count * value**2 - present
    return rise


@compiled()
def _ratios(shape: Shape, state: State, rows: Sorted, residual: Floats, largest: int, ratio: Floats) -> None:
    for split in range(len(ratio)):
        if state.alive[split]:
            chosen = np.zeros(tree_of(shape, split)[3], np.int64)
            rise = _merged(shape, state, rows, residual, largest, split, chosen)
            ratio[split] = rise / max(saved_by(shape, state, split), 1e-9)


@compiled()
def _remove(
    shape: Shape, state: State, rows: Sorted, residual: Floats, largest: int, price: float, ratio: Floats, order: Ints
) -> Any:  # fmt: skip
    """Removes splits that are worth less than their cost, in place; returns how many."""
    removed = 0
    for split in order:
        if ratio[split] >= price:
            break
        if not state.alive[split]:
            continue
        tree, base, first, width = tree_of(shape, split)
        chosen = np.zeros(width, np.int64)
        rise = _merged(shape, state, rows, residual, largest, split, chosen)
        if rise >= price * saved_by(shape, state, split):
            continue
        for slot in range(shape.first[split], shape.last[split]):
            for k in range(width):
                step = chosen[k] - state.value[base + slot * width + k]
                for row in rows_of(rows, tree, slot):
                    residual[row, first + k] -= step
        removed += merge(shape, state, split, chosen)
    return removed
