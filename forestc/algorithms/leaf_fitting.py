"""Integer leaves fitted together on rows, instead of rounded one by one.

Coordinate descent on the logistic loss: each leaf, one output at a time, moves by a step or two while the loss falls,
and so do the biases. What rounding one leaf loses, others make up for, so that a bit or two a leaf are often enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled

SWEEPS = 30
LITTLE = 1e-3  # of the loss: a sweep that gains less is the last
STEEPNESS = 2.0 ** np.arange(-16, 5.01, 0.5)  # log odds a unit of the scores may be worth


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


def fit_leaves(
    trees: Trees, bias: NDArray[np.int64], label: NDArray[np.int64], largest: int, steepest: float = STEEPNESS[-1]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """New leaves within 0 .. largest, and new biases.

    bias: (outputs,); with one output class 1 is decided from score 0 on, else the class of the highest score. label:
    (rows,) the right class. Time O(sweeps * rows * trees * outputs of a tree), memory O(rows * trees).
    """
    value, bias = trees.value.copy(), bias.copy()
    order = np.argsort(trees.leaf, axis=1, kind="stable").astype(np.int32)
    before = np.inf
    for _ in range(SWEEPS):
        scores = scores_of(trees.leaf, trees.start, value, trees.outputs, bias)
        steepness = min(units_to(steepest), key=lambda unit: loss_of(scores * unit, label))
        gain = _sweep(trees.leaf, order, trees.start, value, trees.outputs, bias, label, scores * steepness, steepness,
                      largest)  # fmt: skip
        loss = loss_of(scores * steepness, label) - gain
        if before - loss < LITTLE * abs(loss):
            break
        before = loss
    return value, bias


def units_to(steepest: float) -> list[float]:
    """The log odds that a unit of the scores may be worth, no more than `steepest`; at least one."""
    return [unit for unit in STEEPNESS.tolist() if unit <= steepest] or [float(STEEPNESS[0])]


def loss_of(odds: NDArray[np.float64], label: NDArray[np.int64]) -> float:
    """The mean logistic loss of log odds (rows, outputs), of class 1 where there is one output, in nats."""
    if odds.shape[1] == 1:
        return float(np.logaddexp(0, np.where(label == 1, -odds[:, 0], odds[:, 0])).mean())
    top = odds.max(axis=1, keepdims=True)
    total = np.log(np.exp(odds - top).sum(axis=1)) + top[:, 0]
    return float((total - odds[np.arange(len(label)), label]).mean())


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
    leaf: Any, order: Any, start: Any, value: Any, outputs: Any, bias: Any, label: Any, odds: Any, unit: float,
    largest: int,
) -> Any:  # fmt: skip
    """Moves every leaf and bias once, in place. What the mean loss fell by."""
    rows, classes = odds.shape
    power, total = np.empty((rows, classes)), np.empty(rows)
    for row in range(rows):
        top = 0.0 if classes == 1 else odds[row].max()
        # with one output the other class scores 0
        total[row] = 1.0 if classes == 1 else 0.0
        for k in range(classes):
            power[row, k] = np.exp(min(odds[row, k] - top, 500.0))
            total[row] += power[row, k]
    gained = 0.0
    for tree in range(leaf.shape[0]):
        width = outputs[tree, 1] - outputs[tree, 0]
        begin = 0
        while begin < rows:
            own = leaf[tree, order[tree, begin]]
            end = begin
            while end < rows and leaf[tree, order[tree, end]] == own:
                end += 1
            for k in range(width):
                output, at = outputs[tree, 0] + k, start[tree] + own * width + k
                best, least = 0, -1e-9
                for step in (-2, -1, 1, 2):
                    if not 0 <= value[at] + step <= largest:
                        continue
                    change = _change(order[tree], begin, end, power, total, label, output, classes, unit * step)
                    if change < least:
                        best, least = step, change
                if best:
                    value[at] += best
                    gained -= least
                    _move(order[tree], begin, end, power, total, output, unit * best)
            begin = end
    everyone = np.arange(rows).astype(np.int32)
    for output in range(classes):
        best, least = 0, -1e-9
        for size in (1, 2, 4, 8, 16, 32):
            for step in (-size, size):
                change = _change(everyone, 0, rows, power, total, label, output, classes, unit * step)
                if change < least:
                    best, least = step, change
        if best:
            bias[output] += best
            gained -= least
            _move(everyone, 0, rows, power, total, output, unit * best)
    return gained / rows


@compiled()
def _change(
    order: Any, begin: int, end: int, power: Any, total: Any, label: Any, output: int, classes: int, odds: float
) -> Any:
    """What the loss of some rows changes by if their odds of an output grow by so much."""
    factor = np.exp(odds) - 1
    wanted = 1 if classes == 1 else output
    change = 0.0
    for at in range(begin, end):
        row = order[at]
        change += np.log1p(max(power[row, output] * factor / total[row], -1 + 1e-15))
        if label[row] == wanted:
            change -= odds
    return change


@compiled()
def _move(order: Any, begin: int, end: int, power: Any, total: Any, output: int, odds: float) -> None:
    factor = np.exp(odds)
    for at in range(begin, end):
        row = order[at]
        more = power[row, output] * (factor - 1)
        power[row, output] += more
        total[row] = max(total[row] + more, 1e-300)
