"""Measures rows for a page: accuracy, a confusion matrix and histograms. No single row is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.checks.agreement import Agreement, agreement
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.passes.quick_evaluation import evaluate_rows
from forestc.rows.batches import Rows
from forestc.rows.given import rows_from

BINS = 32  # bars of a histogram


@dataclass(frozen=True)
class Measured:
    """A design's figures on rows."""

    name: str
    agreed: Agreement  # agreement with the model
    confusion: NDArray[np.int64] | None  # (classes, classes), rows by true and predicted class
    other: int  # rows with a label unknown to the model
    histograms: Mapping[int, Histogram]  # histograms by column of the rows

    @property
    def standard_error(self) -> float | None:
        """The standard error of the design's accuracy; None without a confusion matrix."""
        share, rows = self.agreed.compiled, self.agreed.rows
        return None if share is None or self.confusion is None else math.sqrt(share * (1 - share) / rows)


@dataclass(frozen=True)
class Histogram:
    low: float
    high: float
    counts: NDArray[np.int64]  # (BINS,) values in equal steps from `low` to `high`
    missing: int  # number of missing values


def measured(design: Design, rows: object, label: object = None, name: str = "") -> Measured:
    """Measures a design on rows. rows: as `rows_from` takes them. Raises ForestcError."""
    opened = rows_from(rows, design.model, label)
    confusion, other = _confusion(design.forest, opened)
    return Measured(name, agreement(design.model, design.forest, opened), confusion, other, histograms(opened))


def _confusion(forest: Forest, rows: Rows) -> tuple[NDArray[np.int64] | None, int]:
    counts, other = None, 0
    for batch in rows.batches():
        if batch.truth is None or not forest.decides or len(forest.targets) > 1 or batch.truth.ndim > 1:
            continue
        if counts is None:
            counts = np.zeros((len(forest.classes), len(forest.classes)), dtype=np.int64)
        answered = evaluate_rows(forest, batch.X).index.reshape(-1)
        labeled = batch.truth >= 0
        other += int((~labeled).sum())
        np.add.at(counts, (batch.truth[labeled], answered[labeled]), 1)
    return counts, other


def histograms(rows: Rows) -> dict[int, Histogram]:
    ends: NDArray[np.float64] | None = None  # (2, columns): the lowest and highest values so far
    for batch in rows.batches():
        X = np.where(np.isfinite(batch.X), batch.X, np.nan)
        X = X if ends is None else np.concatenate([ends, X])
        ends = np.stack([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])
    low, high = np.zeros((2, 0)) if ends is None else ends
    columns = [c for c in range(len(low)) if not math.isnan(low[c])]
    outer = {c: rounded_outwards(float(low[c]), float(high[c])) for c in columns}
    counts = {c: np.zeros(BINS, dtype=np.int64) for c in columns}
    missing = dict.fromkeys(columns, 0)
    for batch in rows.batches():
        for c in columns:
            values = batch.X[:, c]
            finite = values[np.isfinite(values)]
            counts[c] += _binned(finite, *outer[c])
            missing[c] += int(np.isnan(values).sum())
    return {c: Histogram(*outer[c], counts[c], missing[c]) for c in columns}


def _binned(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.int64]:
    """Returns how many values lie in each of BINS equal steps."""
    steps = (values / 2 - low / 2) / (high / 2 - low / 2) * BINS
    return np.bincount(np.clip(steps.astype(np.int64), 0, BINS - 1), minlength=BINS)


def rounded_outwards(low: float, high: float) -> tuple[float, float]:
    """Returns round numbers around a range, so that its ends do not show values of single rows. A range too narrow to
    round is returned unchanged."""
    if low == high:
        more = max(0.5, 16 * math.ulp(low))
        return low - more, high + more
    span = high - low
    step = 10.0 ** math.floor(math.log10(span)) / 2 if math.isfinite(span) else 0.0
    if step <= 2 * math.ulp(max(abs(low), abs(high))):
        return low, high
    return math.floor(low / step) * step, math.ceil(high / step) * step
