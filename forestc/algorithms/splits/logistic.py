"""Computes the logistic loss of rows, and how the loss changes with the scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forestc.algorithms.arrays import Floats, Int32s, Ints
from forestc.system.compiled import compiled, share_out

STEEPNESS = 2.0 ** np.arange(-16, 5.01, 0.5)  # lists the log odds that one unit of score may be worth
TOGETHER = 8  # rows per logarithm, so that their product neither overflows nor underflows
LARGE = 64.0  # takes one logarithm per row above this change of log odds
LEAST = 1e-15  # bounds each factor of the product from below
CHUNK = 4096  # rows summed at a time, for equal sums on any number of cores
FEW = 200_000  # exponentials, or rows sorted, for which threads are not worth starting


class Odds(NamedTuple):
    """Exponentials of the rows' log odds."""

    power: Floats  # (rows, outputs) exponentials of the log odds
    total: Floats  # (rows,) sums of `power`; plus 1 if there is one output
    label: Ints  # (rows,) true class


def odds_of(scores: Floats, unit: float, label: Ints) -> Odds:
    """Returns the odds of scores (rows, outputs). unit: log odds of one unit of the scores."""
    odds = Odds(np.empty(scores.shape), np.empty(len(scores)), label)
    few = FEW // max(1, scores.shape[1])
    share_out(len(scores), lambda first, last: _fill(scores, unit, odds, first, last), few=few)
    return odds


@compiled()
def _highest(scores: Floats, row: int) -> float:
    highest = scores[row, 0]
    for k in range(1, scores.shape[1]):
        highest = max(highest, scores[row, k])
    return highest  # type: ignore[no-any-return]


@compiled()
def _fill(scores: Floats, unit: float, odds: Odds, first: int, last: int) -> None:
    classes = scores.shape[1]
    for row in range(first, last):
        top = 0.0 if classes == 1 else _highest(scores, row)
        total = 1.0 if classes == 1 else 0.0
        for k in range(classes):
            power = np.exp(min((scores[row, k] - top) * unit, 500.0))
            odds.power[row, k] = power
            total += power
        odds.total[row] = total


@compiled()
def move(power: Floats, total: Floats, row: int, output: int, factor: float) -> None:
    """Multiplies the exponential of one output of a row by `factor`, in place."""
    more = power[row, output] * (factor - 1)
    power[row, output] += more
    total[row] = max(total[row] + more, 1e-300)


class Slope:
    """The mean log loss of rows as a function of the slope, the log odds that one unit of score is worth."""

    def __init__(self, scores: Floats, label: Ints) -> None:
        self.scores, self.label = scores, label
        self.losses: dict[int, float] = {}

    def at(self, index: int) -> float:
        """Returns the mean loss at STEEPNESS[index]."""
        if index not in self.losses:
            sums = np.empty(-(-len(self.scores) // CHUNK))
            unit = float(STEEPNESS[index])
            few = FEW // (CHUNK * max(1, self.scores.shape[1]))
            share_out(len(sums), lambda first, last: _loss(self.scores, unit, self.label, sums, first, last), few=few)
            self.losses[index] = float(sums.sum()) / len(self.scores)
        return self.losses[index]

    def lowest(self, last: int, guess: int) -> int:
        """Returns the first index of `STEEPNESS`, up to `last`, with the lowest loss. The search begins at `guess`."""
        index = min(max(guess, 0), last)
        while index < last and self.at(index + 1) < self.at(index):
            index += 1
        while index and self.at(index - 1) <= self.at(index):
            index -= 1
        return index


@compiled()
def _loss(scores: Floats, unit: float, label: Ints, sums: Floats, first: int, last: int) -> None:
    rows, classes = scores.shape
    for chunk in range(first, last):
        loss = 0.0
        for row in range(chunk * CHUNK, min(rows, (chunk + 1) * CHUNK)):
            if classes == 1:
                odds = unit * (-scores[row, 0] if label[row] == 1 else scores[row, 0])
                loss += max(odds, 0.0) + np.log1p(np.exp(-abs(odds)))
            else:
                top, total = _highest(scores, row), 0.0
                for k in range(classes):
                    total += np.exp((scores[row, k] - top) * unit)
                loss += np.log(total) + (top - scores[row, label[row]]) * unit
        sums[chunk] = loss


@compiled()
def change_of(odds: Odds, rows: Int32s, begin: int, end: int, output: int, step: float) -> Any:
    """Returns the change of the summed loss of rows[begin:end] if their log odds of `output` grow by `step`."""
    growth = np.exp(step)
    own_class = 1 if odds.power.shape[1] == 1 else output
    together = TOGETHER if abs(step) <= LARGE else 1
    power, total, label = odds.power, odds.total, odds.label
    change, right = 0.0, 0
    while begin < end:
        stop = min(end, begin + together)
        product = 1.0
        for at in range(begin, stop):
            row = rows[at]
            share = power[row, output] / total[row]
            product *= max((1 - share) + share * growth, LEAST)  # 1 + share * (growth - 1) cancels at share 1
            right += label[row] == own_class
        change += np.log(product)
        begin = stop
    return change - right * step


@compiled()
def changes_of(odds: Odds, rows: Int32s, begin: int, end: int, output: int, steps: Floats) -> Any:
    """Returns the change of the summed loss of rows[begin:end] if the log odds of consecutive outputs, from `output`
    on, grow by the entries of `steps`."""
    factors, together = np.empty(len(steps)), TOGETHER
    for k in range(len(steps)):
        factors[k] = np.exp(steps[k]) - 1
        if abs(steps[k]) > LARGE:
            together = 1
    classes = odds.power.shape[1]
    change, label_steps = 0.0, 0.0
    while begin < end:
        stop = min(end, begin + together)
        product = 1.0
        for at in range(begin, stop):
            row = rows[at]
            more = 0.0
            for k in range(len(steps)):
                more += odds.power[row, output + k] * factors[k]
            product *= max(1 + more / odds.total[row], LEAST)
            k = odds.label[row] - (1 if classes == 1 else output)
            if 0 <= k < len(steps):
                label_steps += steps[k]
        change += np.log(product)
        begin = stop
    return change - label_steps
