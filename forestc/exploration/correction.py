"""Corrects estimates by measured values: for each figure, a line is fitted through the logarithms of both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from forestc.exploration.study import RUNGS, Trial

CORRECTED = ("lut", "ff", "fmax_mhz", "flash", "ram", "instructions", "mean_instructions")
PRIOR = 2.0  # weighs the prior, a slope of 1, as much as data of this spread
SLOPES = (0.5, 1.5)  # limits the slope


@dataclass(frozen=True)
class Correction:
    """A fitted line: corrected = factor * estimate ** slope."""

    factor: float
    slope: float
    designs: int  # number of designs that the line is fitted to

    def of(self, estimate: float) -> float:
        return float(self.factor * max(estimate, 1.0) ** self.slope)


def corrections(trials: Iterable[Trial]) -> dict[str, Correction]:
    """Returns {figure: correction} for the figures in CORRECTED that some trial has both estimated and measured."""
    lines = {}
    for name in CORRECTED:
        pairs = [
            (math.log(max(estimated, 1.0)), math.log(max(measured, 1.0)))
            for trial in trials
            if name in trial.figures.get("estimate", {})
            for estimated, measured in [(trial.figures["estimate"][name], _measured(trial, name))]
            if measured is not None
        ]
        if pairs:
            lines[name] = _line(pairs)
    return lines


def corrected(trial: Trial, lines: Mapping[str, Correction]) -> Trial:
    estimate = trial.figures.get("estimate", {})
    return replace(
        trial, corrected={name: round(line.of(estimate[name]), 1) for name, line in lines.items() if name in estimate}
    )


def _measured(trial: Trial, name: str) -> float | None:
    values = [trial.figures[rung][name] for rung in RUNGS[1:] if name in trial.figures.get(rung, {})]
    return values[-1] if values else None


def _line(pairs: list[tuple[float, float]]) -> Correction:
    count = len(pairs)
    mean_x, mean_y = (sum(pair[k] for pair in pairs) / count for k in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in pairs)
    common = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    slope = min(max((common + PRIOR) / (spread + PRIOR), SLOPES[0]), SLOPES[1])
    return Correction(math.exp(mean_y - slope * mean_x), slope, count)
