"""Chooses the smallest design within the tolerance, and says what it loses with the choice counted.

A design that was chosen among many on some rows looks better there than it is. How much is estimated by the bootstrap
(Efron, 1983; for a choice among models: Tsamardinos, Greasidou and Borboudakis, 2018): rows are drawn again, the same
rule chooses on each draw, and what the chosen designs lose on all rows is compared with what they lose on the draw.
Each draw has as many rows of a class as the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.passes.scorer import Loss, RowErrors

DRAWS = 200  # how often the rows are drawn again
BLOCKS = 5_000  # limits the blocks of rows that are drawn
SHOWN, MEASURED, ESTIMATED = "shown", "measured", "estimated"
SURE, WITHIN = (SHOWN,), (SHOWN, MEASURED, ESTIMATED)
INTERVAL = 1.96  # standard errors on both sides of an interval of 95 %
STEP, STRICTEST = 0.25, 4.0  # standard errors: the choice gets stricter by STEP, up to STRICTEST


@dataclass(frozen=True)
class Evidence:
    """The loss of a design on rows of which some chose it."""

    loss: Loss  # as measured
    optimism: float = 0.0  # how much smaller the measured loss is than the true one because of the choice, on average
    retrained: bool = False  # True if copies of the design, of models trained again, were scored in its place

    @property
    def lost(self) -> float:
        """The estimated loss of accuracy, the choice counted."""
        return self.loss.lost + self.optimism

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95 %; only its upper end counts the choice."""
        half = INTERVAL * self.loss.wide
        return self.loss.lost - half, self.lost + half

    def as_dict(self, tolerance: float) -> dict[str, Any]:
        low, high = self.interval
        return {
            "word": self.word(tolerance),
            "measure": self.loss.measure,
            "lost": self.lost,
            "interval": [low, high],
            "optimism": self.optimism,
            "rows": self.loss.rows,
            "enough": self.enough(tolerance),
        }

    def word(self, tolerance: float) -> str:
        """Returns "shown" if the interval is within the tolerance, "measured" if only the estimate is, "estimated" if
        copies were scored, and "" if the estimate is above the tolerance."""
        if self.lost > tolerance:
            return ""
        return ESTIMATED if self.retrained else SHOWN if self.interval[1] <= tolerance else MEASURED

    def said(self, tolerance: float) -> str:
        """Returns the word, the loss and its interval in a sentence."""
        measure, own = self.loss.measure, self.loss.measure == "R squared"  # R squared is no share, and has no points
        lost, low, high = (f"{end:.4f}" if own else f"{100 * end:.2f}" for end in (self.lost, *self.interval))
        unit, most = ("", f"{tolerance:g}") if own else (" points", f"{100 * tolerance:g}")
        rows = f"{self.loss.rows:,} rows"
        on = f"by cross-validation on {rows}" if self.retrained else f"on {rows} that also chose it"
        word, enough = self.word(tolerance), self.enough(tolerance)
        more = f"; some {enough:,} rows would show {most}" if word == MEASURED and enough else ""
        return (
            f"{word or 'not within the tolerance'}: loses {lost}{unit} of {measure} (95 %: {low} to {high}) "
            f"{on}, the choice counted{more}"
        )

    def enough(self, tolerance: float) -> int | None:
        """Returns how many rows would show a loss as small as the estimated one; None if none would."""
        room = tolerance - self.lost
        return math.ceil(self.loss.rows * (INTERVAL * self.loss.wide / room) ** 2) if room > 0 else None


@dataclass(frozen=True)
class Differences:
    """A design's errors minus the model's, summed over blocks of rows; (blocks,) each."""

    sums: NDArray[np.float32]
    squares: NDArray[np.float32]

    @staticmethod
    def of(errors: NDArray[np.float64], baseline: RowErrors) -> Differences:
        differences = baseline.by_unit(errors - baseline.errors)[baseline.by_class[0]]
        starts = _starts(len(differences))
        parts = (np.add.reduceat(values, starts).astype(np.float32) for values in (differences, differences**2))
        return Differences(*parts)


def _starts(units: int) -> NDArray[np.int64]:
    """Returns the first unit of each block."""
    return np.linspace(0, units, min(units, BLOCKS), endpoint=False).astype(np.int64)


def _drawn(classes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Returns how often each draw takes each block, (blocks, draws). classes: (blocks,) ascending."""
    random = np.random.default_rng(0)
    counts = np.unique(classes, return_counts=True)[1]
    drawn = [random.multinomial(count, np.full(count, 1 / count), DRAWS).T for count in counts]
    return np.concatenate(drawn).astype(np.float32)


def smallest(
    sizes: NDArray[np.float64], lost: NDArray[np.float64], errors: NDArray[np.float64], limit: float, strict: float
) -> NDArray[np.int64]:
    """Returns the number of the chosen design in each draw of rows: the smallest whose loss plus `strict` standard
    errors is within the limit, otherwise design 0. sizes: (designs,); lost, errors: (designs, draws)."""
    good = lost + strict * errors <= limit
    good[0] = True
    return np.asarray(np.where(good, sizes[:, None], np.inf).argmin(axis=0), dtype=np.int64)


class Choice:
    """A choice among designs that were scored on the same rows. The first one, -O1's, is good whatever it loses."""

    def __init__(self, losses: Sequence[Loss], differences: Sequence[Differences], baseline: RowErrors) -> None:
        self.lost = np.array([loss.lost for loss in losses])
        self.errors = np.array([loss.error for loss in losses])
        sums = np.array([each.sums for each in differences])
        squares = np.array([each.squares for each in differences])
        drawn = _drawn(baseline.by_class[1][_starts(baseline.units)])
        own = sums.sum(axis=1, dtype=np.float64)
        # A loss on several splits into folds has a value and an error of its own.
        own_errors = baseline.error_of_sums(own, squares.sum(axis=1, dtype=np.float64))
        wider = np.where(own_errors > 0, self.errors / np.maximum(own_errors, 1e-12), 1.0)
        drawn_sums, drawn_squares = (sums @ drawn).astype(np.float64), (squares @ drawn).astype(np.float64)
        self.drawn_errors = baseline.error_of_sums(drawn_sums, drawn_squares) * wider[:, None]
        self.drawn_lost = drawn_sums / baseline.divisor + (self.lost - own / baseline.divisor)[:, None]

    def of(self, sizes: NDArray[np.float64], limit: float, strict: float) -> int:
        """Returns the number of the chosen design. sizes: (designs,). strict: standard errors added to a loss."""
        return int(smallest(sizes, self.lost[:, None], self.errors[:, None], limit, strict)[0])

    def optimism(self, sizes: NDArray[np.float64], limit: float, strict: float) -> float:
        """Returns how much less the chosen designs lose, on average, on the rows that chose them than on others."""
        chosen = smallest(sizes, self.drawn_lost, self.drawn_errors, limit, strict)
        return max(0.0, float((self.lost[chosen] - self.drawn_lost[chosen, np.arange(DRAWS)]).mean()))
