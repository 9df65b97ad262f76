"""The logistic loss of rows, and what it changes by when some of their odds move.

The odds of a row are kept as exponentials and their sum, so that a step of one output is one multiplication. The loss
of many rows is summed as the logarithm of products: one logarithm for `TOGETHER` rows, exact to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled, share_out

STEEPNESS = 2.0 ** np.arange(-16, 5.01, 0.5)  # log odds a unit of the scores may be worth
TOGETHER = 8  # rows a logarithm is taken of: the product of so many factors neither overflows nor vanishes
LARGE = 64.0  # log odds, past which the product might overflow, and each row has its own logarithm
LEAST = 1e-15  # factor of a sum of exponentials
CHUNK = 4096  # rows that are summed by themselves, so that a sum is the same on any number of cores


class Odds(NamedTuple):
    """Of each row the exponentials of its odds, (rows, outputs), their sum, (rows,), and the class it should get. With
    one output the other class's exponential is 1, and counts in the sum."""

    power: NDArray[np.float64]
    total: NDArray[np.float64]
    label: NDArray[np.int64]


def odds_of(scores: NDArray[np.float64], unit: float, label: NDArray[np.int64]) -> Odds:
    """scores: (rows, outputs), each worth `unit` log odds."""
    odds = Odds(np.empty(scores.shape), np.empty(len(scores)), label)
    share_out(len(scores), lambda first, last: _fill(scores, unit, odds, first, last))
    return odds


@compiled()
def _fill(scores: Any, unit: float, odds: Any, first: int, last: int) -> None:
    classes = scores.shape[1]
    for row in range(first, last):
        top = 0.0 if classes == 1 else scores[row].max()
        total = 1.0 if classes == 1 else 0.0
        for k in range(classes):
            power = np.exp(min((scores[row, k] - top) * unit, 500.0))
            odds.power[row, k] = power
            total += power
        odds.total[row] = total


@compiled()
def move(power: Any, total: Any, row: int, output: int, factor: float) -> None:
    """Multiplies the odds of an output of a row."""
    more = power[row, output] * (factor - 1)
    power[row, output] += more
    total[row] = max(total[row] + more, 1e-300)


def loss_of(odds: NDArray[np.float64], label: NDArray[np.int64]) -> float:
    """The mean logistic loss of log odds (rows, outputs), of class 1 where there is one output, in nats."""
    if odds.shape[1] == 1:
        return float(np.logaddexp(0, np.where(label == 1, -odds[:, 0], odds[:, 0])).mean())
    top = odds.max(axis=1, keepdims=True)
    total = np.log(np.exp(odds - top).sum(axis=1)) + top[:, 0]
    return float((total - odds[np.arange(len(label)), label]).mean())


class Slope:
    """The mean loss of scores by what a unit of them is worth: convex, so few of `STEEPNESS` need be tried."""

    def __init__(self, scores: NDArray[np.float64], label: NDArray[np.int64]) -> None:
        self.scores, self.label = scores, label
        self.known: dict[int, float] = {}

    def at(self, place: int) -> float:
        """The loss with STEEPNESS[place]."""
        if place not in self.known:
            sums = np.empty(-(-len(self.scores) // CHUNK))
            unit = float(STEEPNESS[place])
            share_out(len(sums), lambda first, last: _loss(self.scores, unit, self.label, sums, first, last))
            self.known[place] = float(sums.sum()) / len(self.scores)
        return self.known[place]

    def lowest(self, last: int, guess: int) -> int:
        """The first place of those up to `last` where the loss is least."""
        place = min(max(guess, 0), last)
        while place < last and self.at(place + 1) < self.at(place):
            place += 1
        while place and self.at(place - 1) <= self.at(place):
            place -= 1
        return place


@compiled()
def _loss(scores: Any, unit: float, label: Any, sums: Any, first: int, last: int) -> None:
    rows, classes = scores.shape
    for chunk in range(first, last):
        loss = 0.0
        for row in range(chunk * CHUNK, min(rows, (chunk + 1) * CHUNK)):
            if classes == 1:
                odds = unit * (-scores[row, 0] if label[row] == 1 else scores[row, 0])
                loss += max(odds, 0.0) + np.log1p(np.exp(-abs(odds)))
            else:
                top, total = scores[row].max(), 0.0
                for k in range(classes):
                    total += np.exp((scores[row, k] - top) * unit)
                loss += np.log(total) + (top - scores[row, label[row]]) * unit
        sums[chunk] = loss


@compiled()
def change_of(odds: Any, rows: Any, begin: int, end: int, output: int, step: float) -> Any:
    """What the loss of rows[begin:end] changes by if their log odds of an output grow by `step`."""
    growth = np.exp(step)
    wanted = 1 if odds.power.shape[1] == 1 else output
    together = TOGETHER if abs(step) <= LARGE else 1
    power, total, label = odds.power, odds.total, odds.label
    change, right = 0.0, 0
    while begin < end:
        stop = min(end, begin + together)
        product = 1.0
        for at in range(begin, stop):
            row = rows[at]
            share = power[row, output] / total[row]
            product *= max((1 - share) + share * growth, LEAST)  # not 1 + share * (growth - 1): that cancels at 1
            right += label[row] == wanted
        change += np.log(product)
        begin = stop
    return change - right * step


@compiled()
def changes_of(odds: Any, rows: Any, begin: int, end: int, output: int, steps: Any) -> Any:
    """The same for several outputs, from `output` on, that grow by `steps`."""
    factors = np.exp(steps) - 1
    classes = odds.power.shape[1]
    together = TOGETHER if np.abs(steps).max() <= LARGE else 1
    change, wanted = 0.0, 0.0
    while begin < end:
        stop = min(end, begin + together)
        product = 1.0
        for at in range(begin, stop):
            row = rows[at]
            more = 0.0
            for k in range(len(steps)):
                more += odds.power[row, output + k] * factors[k]
            product *= max(1 + more / odds.total[row], LEAST)
            own = odds.label[row] - (1 if classes == 1 else output)
            if 0 <= own < len(steps):
                wanted += steps[own]
        change += np.log(product)
        begin = stop
    return change - wanted
