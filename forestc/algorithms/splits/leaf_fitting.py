"""Fits integer leaves together on rows by coordinate descent on the logistic loss, so that other leaves compensate the
rounding of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forestc.algorithms.arrays import Floats, Int32s, Ints
from forestc.algorithms.splits.logistic import FEW, STEEPNESS, Odds, Slope, change_of, move, odds_of
from forestc.system.compiled import compiled, share_out

SWEEPS = 30  # sweeps over all leaves at most
CONVERGED = 1e-3  # ends after a sweep that gains less, relative to the loss


@dataclass
class Trees:
    """The leaf that each row reaches in each tree, and the trees' integer leaf values."""

    leaf: Int32s  # (trees, rows)
    start: Ints  # (trees + 1,) start of each tree's entries in `value`
    value: Ints  # one entry for each leaf and output, tree by tree
    outputs: Ints  # (trees, 2) first output that a tree feeds; last plus one

    @staticmethod
    def of(leaf: Int32s, values: Sequence[Ints], outputs: Sequence[tuple[int, ...]]) -> Trees:
        """Builds the arrays from each tree's leaf values, (leaves, outputs), and the consecutive outputs that the tree
        feeds."""
        start = np.concatenate([[0], np.cumsum([leaves.size for leaves in values])]).astype(np.int64)
        spans = np.array([(fed[0], fed[-1] + 1) for fed in outputs], dtype=np.int64)
        return Trees(leaf, start, np.concatenate([leaves.ravel() for leaves in values]), spans)


class Sorted(NamedTuple):
    """Row numbers for each tree, sorted by the leaf that the row reaches."""

    order: Int32s  # (trees, rows)
    begins: Ints  # (trees, leaves + 1) start of each leaf's rows in `order`


def fit_leaves(
    trees: Trees, bias: Ints, label: Ints, largest: int, steepest: float = STEEPNESS[-1]
) -> tuple[Ints, Ints]:
    """Returns new leaf values from 0 to `largest`, and new biases, (outputs,). steepest: most log odds that one unit of
    score may be worth."""
    value, bias = trees.value.copy(), bias.copy()
    rows = sorted_by_leaf(trees)
    scores = scores_of(trees.leaf, trees.start, value, trees.outputs, bias)
    steep = int(np.searchsorted(STEEPNESS[1:], steepest, side="right"))  # index of the steepest that is allowed
    index, before = steep, np.inf
    for _ in range(SWEEPS):
        slope = Slope(scores, label)
        index = slope.lowest(steep, index)
        unit, loss = float(STEEPNESS[index]), slope.at(index)
        odds = odds_of(scores, unit, label)
        loss -= _sweep(rows, (trees.start, trees.outputs), value, bias, scores, odds, unit, largest)
        if before - loss < CONVERGED * abs(loss):
            break
        before = loss
    return value, bias


def sorted_by_leaf(trees: Trees) -> Sorted:
    """Returns for each tree the rows, stably sorted by the leaf that they reach."""
    leaves = int((np.diff(trees.start) // (trees.outputs[:, 1] - trees.outputs[:, 0])).max(initial=1))
    rows = Sorted(np.empty(trees.leaf.shape, np.int32), np.zeros((len(trees.leaf), leaves + 1), np.int64))
    few = FEW // max(1, trees.leaf.shape[1])
    share_out(len(trees.leaf), lambda first, last: _sort(trees.leaf, rows, first, last), few=few)
    return rows


@compiled()
def _sort(leaf: Int32s, rows: Sorted, first: int, last: int) -> None:
    leaves = rows.begins.shape[1] - 1
    for tree in range(first, last):
        begins = rows.begins[tree]
        for row in range(leaf.shape[1]):
            begins[leaf[tree, row] + 1] += 1
        for slot in range(leaves):
            begins[slot + 1] += begins[slot]
        at = begins[:leaves].copy()
        for row in range(leaf.shape[1]):
            slot = leaf[tree, row]
            rows.order[tree, at[slot]] = row
            at[slot] += 1


@compiled()
def integer_scores(leaf: Int32s, start: Ints, value: Ints, outputs: Ints, bias: Ints) -> Any:
    """Returns the sums of leaf values and biases, (rows, outputs)."""
    scores = np.empty((leaf.shape[1], len(bias)), np.int64)
    fill_scores(leaf, start, value, outputs, bias, scores)
    return scores


@compiled()
def fill_scores(leaf: Int32s, start: Ints, value: Ints, outputs: Ints, bias: Ints, scores: Ints) -> None:
    for row in range(leaf.shape[1]):
        for k in range(len(bias)):
            scores[row, k] = bias[k]
    for tree in range(leaf.shape[0]):
        first, width = outputs[tree, 0], outputs[tree, 1] - outputs[tree, 0]
        for row in range(leaf.shape[1]):
            at = start[tree] + leaf[tree, row] * width
            for k in range(width):
                scores[row, first + k] += value[at + k]


def scores_of(leaf: Int32s, start: Ints, value: Ints, outputs: Ints, bias: Ints) -> Floats:
    """Returns `integer_scores` as floats. With one output, 0.5 is added, as the decision lies between -1 and 0."""
    return np.asarray(integer_scores(leaf, start, value, outputs, bias) + (0.5 if len(bias) == 1 else 0.0))


@compiled()
def _sweep(
    rows: Sorted,
    trees: tuple[Ints, Ints],
    value: Ints,
    bias: Ints,
    scores: Floats,
    odds: Odds,
    unit: float,
    largest: int,
) -> Any:
    """Moves each leaf and bias at most once, in place. Returns the mean loss saved. trees: `start` and `outputs`."""
    start, outputs = trees
    gained = 0.0
    zero, few, most = np.int64(0), np.int64(2), np.int64(32)  # numba would compile `_step` again for plain constants
    for tree in range(len(outputs)):
        width = outputs[tree, 1] - outputs[tree, 0]
        for slot in range((start[tree + 1] - start[tree]) // width):
            begin, end = rows.begins[tree, slot], rows.begins[tree, slot + 1]
            for k in range(width):
                output, at = outputs[tree, 0] + k, start[tree] + slot * width + k
                down, up = min(value[at], few), min(largest - value[at], few)
                step, gain = _step(odds, rows.order[tree], begin, end, output, unit, down, up)
                if step:
                    value[at] += step
                    gained += gain
                    _move(odds, rows.order[tree], begin, end, output, unit, step, scores)
    all_rows = np.empty(len(scores), np.int32)
    for row in range(len(scores)):
        all_rows[row] = row
    for output in range(len(bias)):
        step, gain = _step(odds, all_rows, zero, len(scores), output, unit, most, most)
        if step:
            bias[output] += step
            gained += gain
            _move(odds, all_rows, zero, len(scores), output, unit, step, scores)
    return gained / len(scores)


@compiled()
def _step(odds: Odds, rows: Int32s, begin: int, end: int, output: int, unit: float, down: int, up: int) -> Any:
    """Returns (step, loss saved) for a leaf or bias. The step is 0 if no step lowers the loss. down, up:
    largest steps."""
    best, least = 0, -1e-9
    if begin == end:
        return best, -least
    for sign, room in ((-1, down), (1, up)):
        size = 1
        while size <= room:
            change = change_of(odds, rows, begin, end, output, unit * sign * size)
            if change >= least:
                break
            best, least = sign * size, change
            size *= 2
        if best:
            break
    return best, -least


@compiled()
def _move(
    odds: Odds, rows: Int32s, begin: int, end: int, output: int, unit: float, step: int, scores: Floats
) -> None:  # fmt: skip
    factor, power, total = np.exp(unit * step), odds.power, odds.total
    for at in range(begin, end):
        move(power, total, rows[at], output, factor)
        scores[rows[at], output] += step
