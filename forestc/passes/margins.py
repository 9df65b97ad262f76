"""Computes the margins of decisions: how far scores are from deciding for another class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Forest


def margins(forest: Forest, scores: NDArray[Any], values: NDArray[Any]) -> NDArray[np.float64]:
    """Returns the margin of each row's decision, (rows,): the distance of the score from the threshold, or of the two
    largest scores; 0 if the deciding values tie."""
    scale = forest.scale or 1.0
    if forest.decision.kind == "threshold":
        return np.asarray(np.abs(scores[:, -1] - forest.decision.threshold) * scale, dtype=np.float64)
    if scores.shape[1] < 2:
        return np.full(len(scores), np.inf)
    ordered = np.sort(scores, axis=1).astype(np.float64)
    margin = (ordered[:, -1] - ordered[:, -2]) * scale
    if forest.decision.on == "values":
        largest = np.sort(values, axis=1)[:, -2:]
        margin = np.where(largest[:, 0] == largest[:, 1], 0.0, margin)
    return np.asarray(margin)


def bound_text(error: float) -> str:
    """Returns a bound above 0 as text, rounded up to three significant digits."""
    exponent = math.floor(math.log10(error)) - 2
    return f"{math.ceil(error / 10.0**exponent) * 10.0**exponent:.3g}"
