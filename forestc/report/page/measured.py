"""What a page says of given rows: accuracy, a confusion matrix, and histograms, and nothing else of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.checks.agreement import Agreement, agreement
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows import rows_from
from forestc.rows.batches import Batch, Rows
from forestc.rows.encode import encode

BINS = 32


@dataclass(frozen=True)
class Measured:
    """agreed: with the model. confusion: (classes, classes) rows by true and predicted class, None without labels or
    classes. other: rows whose label is no class of the model. histograms: by column of the rows."""

    name: str
    agreed: Agreement
    confusion: NDArray[np.int64] | None
    other: int
    histograms: Mapping[int, Histogram]

    @property
    def standard_error(self) -> float | None:
        """Of the compiled design's accuracy; None for a regression, or without labels."""
        share, rows = self.agreed.compiled, self.agreed.rows
        return None if share is None or self.confusion is None else math.sqrt(share * (1 - share) / rows)


@dataclass(frozen=True)
class Histogram:
    """counts: (BINS,) values in equal steps from low to high, which are rounded outwards. missing: values."""

    low: float
    high: float
    counts: NDArray[np.int64]
    missing: int


def measured(design: Design, rows: Any, label: Any = None, name: str = "") -> Measured:
    """rows: all that `rows_from` opens. Goes through them a few times, in batches. Raises ForestcError."""
    opened = rows_from(rows, design.model, label)
    task = _Confusion(design.forest)
    for batch in opened.batches():
        task.add(batch)
    return Measured(name, agreement(design.model, design.forest, opened), task.found, task.other, histograms(opened))


@dataclass
class _Confusion:
    forest: Forest
    found: NDArray[np.int64] | None = None
    other: int = 0

    def add(self, batch: Batch) -> None:
        forest = self.forest
        if batch.truth is None or not forest.decides or len(forest.targets) > 1 or batch.truth.ndim > 1:
            return
        count = len(forest.classes)
        if self.found is None:
            self.found = np.zeros((count, count), dtype=np.int64)
        answered = evaluate_quickly(forest, encode(forest, batch.X)).index.reshape(-1)
        known = batch.truth >= 0
        self.other += int((~known).sum())
        np.add.at(self.found, (batch.truth[known], answered[known]), 1)


@dataclass
class _Ends:
    low: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    high: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def histograms(rows: Rows) -> dict[int, Histogram]:
    """The histogram of each column that has finite values."""
    ends = _Ends()
    for batch in rows.batches():
        X = np.where(np.isfinite(batch.X), batch.X, np.nan)
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        ends.low = low if not len(ends.low) else np.fmin(ends.low, low)
        ends.high = high if not len(ends.high) else np.fmax(ends.high, high)
    columns = [c for c in range(len(ends.low)) if not math.isnan(ends.low[c])]
    outer = {c: rounded_outwards(float(ends.low[c]), float(ends.high[c])) for c in columns}
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
    """How many values lie in each of BINS equal steps; by halves, as high - low may be too large for a float."""
    places = (values / 2 - low / 2) / (high / 2 - low / 2) * BINS
    return np.bincount(np.clip(places.astype(np.int64), 0, BINS - 1), minlength=BINS)


def rounded_outwards(low: float, high: float) -> tuple[float, float]:
    """Round ends around a range, so that they are not the values of single rows; they always differ."""
    if low == high:
        more = max(0.5, 16 * math.ulp(low))
        return low - more, high + more
    span = high - low
    step = 10.0 ** math.floor(math.log10(span)) / 2 if math.isfinite(span) else 0.0
    if step <= 2 * math.ulp(max(abs(low), abs(high))):
        return low, high
    return math.floor(low / step) * step, math.ceil(high / step) * step
