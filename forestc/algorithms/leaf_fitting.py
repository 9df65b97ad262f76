"""Integer leaves fitted together on rows, instead of rounded one by one.

Coordinate descent on the logistic loss: each leaf, one output at a time, moves by a step or two while the loss falls,
and so do the biases. What rounding one leaf loses, others make up for, so that a bit or two a leaf are often enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled, share_out
from forestc.algorithms.logistic import STEEPNESS, Slope, change_of, move, odds_of

SWEEPS = 30
LITTLE = 1e-3  # of the loss: a sweep that gains less is the last


@dataclass
class Trees:
    """Of each tree the leaf of each row, its integer leaves and where they go.

    leaf: (trees, rows). start: (trees + 1,) where a tree's leaves begin in the other arrays, one entry a leaf and
    output of its tree. value: what they hold. outputs: (trees, 2) first output a tree feeds and one past the last.
    """

    leaf: NDArray[np.int32]
    start: NDArray[np.int64]
    value: NDArray[np.int64]
    outputs: NDArray[np.int64]

    @staticmethod
    def of(leaf: NDArray[np.int32], values: Sequence[NDArray[np.int64]], outputs: Sequence[tuple[int, ...]]) -> Trees:
        """leaf: as above. values: of each tree, (leaves, outputs). outputs: those it feeds, one after the other."""
        start = np.concatenate([[0], np.cumsum([own.size for own in values])]).astype(np.int64)
        spans = np.array([(fed[0], fed[-1] + 1) for fed in outputs], dtype=np.int64)
        return Trees(leaf, start, np.concatenate([own.ravel() for own in values]), spans)


class Sorted(NamedTuple):
    """Of each tree the rows, sorted by leaf: order (trees, rows), and where each leaf's begin, begins (trees, leaves of
    the largest tree + 1)."""

    order: NDArray[np.int32]
    begins: NDArray[np.int64]


def fit_leaves(
    trees: Trees, bias: NDArray[np.int64], label: NDArray[np.int64], largest: int, steepest: float = STEEPNESS[-1]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """New leaves within 0 .. largest, and new biases.

    bias: (outputs,); with one output class 1 is decided from score 0 on, else the class of the highest score. label:
    (rows,) the right class. Time O(sweeps * rows * trees * outputs of a tree), memory O(rows * trees).
    """
    value, bias = trees.value.copy(), bias.copy()
    rows = sorted_by_leaf(trees)
    scores = scores_of(trees.leaf, trees.start, value, trees.outputs, bias)
    steep = int(np.searchsorted(STEEPNESS[1:], steepest, side="right"))  # the last that is allowed
    place, before = steep, np.inf
    for _ in range(SWEEPS):
        slope = Slope(scores, label)
        place = slope.lowest(steep, place)
        unit, loss = float(STEEPNESS[place]), slope.at(place)
        loss -= _sweep(
            rows, trees.start, value, trees.outputs, bias, scores, odds_of(scores, unit, label), unit, largest
        )
        if before - loss < LITTLE * abs(loss):
            break
        before = loss
    return value, bias


def sorted_by_leaf(trees: Trees) -> Sorted:
    """Rows that share a leaf keep their order."""
    leaves = int((np.diff(trees.start) // (trees.outputs[:, 1] - trees.outputs[:, 0])).max(initial=1))
    rows = Sorted(np.empty(trees.leaf.shape, np.int32), np.zeros((len(trees.leaf), leaves + 1), np.int64))
    share_out(len(trees.leaf), lambda first, last: _sort(trees.leaf, rows, first, last))
    return rows


@compiled()
def _sort(leaf: Any, rows: Any, first: int, last: int) -> None:
    leaves = rows.begins.shape[1] - 1
    for tree in range(first, last):
        begins = rows.begins[tree]
        for row in range(leaf.shape[1]):
            begins[leaf[tree, row] + 1] += 1
        for own in range(leaves):
            begins[own + 1] += begins[own]
        at = begins[:leaves].copy()
        for row in range(leaf.shape[1]):
            own = leaf[tree, row]
            rows.order[tree, at[own]] = row
            at[own] += 1


@compiled()
def scores_of(leaf: Any, start: Any, value: Any, outputs: Any, bias: Any) -> Any:
    """(rows, outputs): what the leaves of `Trees` and the biases add up to."""
    scores = np.empty((leaf.shape[1], len(bias)))
    for row in range(leaf.shape[1]):
        for k in range(len(bias)):
            scores[row, k] = bias[k]
    for tree in range(leaf.shape[0]):
        width = outputs[tree, 1] - outputs[tree, 0]
        for row in range(leaf.shape[1]):
            at = start[tree] + leaf[tree, row] * width
            for k in range(width):
                scores[row, outputs[tree, 0] + k] += value[at + k]
    return scores + 0.5 if len(bias) == 1 else scores  # scores are whole: -1 and 0 lie as far on either side


@compiled()
def _sweep(
    rows: Any, start: Any, value: Any, outputs: Any, bias: Any, scores: Any, odds: Any, unit: float, largest: int
) -> Any:
    """Moves every leaf and bias once, in place, and what follows from them. What the mean loss fell by."""
    gained = 0.0
    for tree in range(len(outputs)):
        width = outputs[tree, 1] - outputs[tree, 0]
        for own in range((start[tree + 1] - start[tree]) // width):
            begin, end = rows.begins[tree, own], rows.begins[tree, own + 1]
            for k in range(width):
                output, at = outputs[tree, 0] + k, start[tree] + own * width + k
                step, gain = _step(odds, rows.order[tree], begin, end, output, unit, value[at], largest - value[at], 2)
                if step:
                    value[at] += step
                    gained += gain
                    _move(odds, rows.order[tree], begin, end, output, unit, step, scores)
    everyone = np.arange(len(scores)).astype(np.int32)
    for output in range(len(bias)):
        step, gain = _step(odds, everyone, 0, len(scores), output, unit, 32, 32, 32)
        if step:
            bias[output] += step
            gained += gain
            _move(odds, everyone, 0, len(scores), output, unit, step, scores)
    return gained / len(scores)


@compiled()
def _step(odds: Any, rows: Any, begin: int, end: int, output: int, unit: float, down: int, up: int, most: int) -> Any:
    """Of the steps 1, 2, 4 .. most, down or up by as much as there is, the one that gains most, and what it gains; 0
    where none gains. The loss is convex: where a step gains nothing, neither does a larger one."""
    best, least = 0, -1e-9
    if begin == end:
        return best, -least
    for sign, room in ((-1, down), (1, up)):
        size = 1
        while size <= min(room, most):
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
    odds: Any, rows: Any, begin: int, end: int, output: int, unit: float, step: int, scores: Any
) -> None:  # fmt: skip
    factor, power, total = np.exp(unit * step), odds.power, odds.total
    for at in range(begin, end):
        move(power, total, rows[at], output, factor)
        scores[rows[at], output] += step
