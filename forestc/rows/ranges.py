"""Defines ranges, which replace rows: the values that each of a model's columns may take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import FLOAT32, Category, Float, FloatArray, NumberType, round_to
from forestc.rows.batches import Batch, Rows

SLACK = 2.0**-50  # allows this relative rounding error of values made of steps


@dataclass(frozen=True)
class ValueRange:
    """The values that one column may take: from `smallest` to `largest`."""

    smallest: float = -math.inf
    largest: float = math.inf
    step: float = 0.0  # values are origin + n * step; 0.0 for any number
    missing: bool | None = None  # True if a value may be missing; None follows the model

    @property
    def origin(self) -> float:
        return self.smallest if math.isfinite(self.smallest) else 0.0

    @property
    def whole(self) -> bool:
        return self.step > 0 and self.step == math.floor(self.step) and self.origin == math.floor(self.origin)

    def rounded(self, raw: NumberType) -> ValueRange:
        """Returns the range with its ends rounded to the type `raw`, as the source library rounds values."""
        low, high = round_to(np.array([self.smallest, self.largest]), raw).tolist()
        return ValueRange(low, high, self.step, self.missing)

    def takes_missing(self, feature: Feature) -> bool:
        return feature.missing and self.missing is not False

    def around(self, thresholds: FloatArray, raw: NumberType) -> tuple[FloatArray, FloatArray]:
        """Returns two arrays: the largest value on the range's steps below each threshold, and the smallest not below
        it. Without steps, or if rounding leaves doubt, these are neighboring floats."""
        below, above = next_below(thresholds, raw), at_least(thresholds, raw)
        if not self.step:
            return below, above
        low, high = np.full(len(thresholds), -np.inf), np.full(len(thresholds), np.inf)
        first = np.floor((thresholds - self.origin) / self.step)
        for offset in (-1, 0, 1, 2):  # Rounding of the division may be off by one step.
            moved = (first + offset) * self.step
            slack = 0.0 if self.whole else SLACK * (abs(self.origin) + np.abs(moved))
            least, most = (round_to(self.origin + moved + s, raw) for s in (-slack, slack))
            unsure = (least < thresholds) & (most >= thresholds)  # The threshold does not move.
            low = np.maximum(low, np.where(unsure, below, np.where(most < thresholds, most, -np.inf)))
            high = np.minimum(high, np.where(unsure, above, np.where(least >= thresholds, least, np.inf)))
        return low, high

    def snapped(self, values: FloatArray, raw: NumberType, random: np.random.Generator) -> FloatArray:
        """Returns the values moved into the range, and to a step next to them, up or down at random. NaN stays."""
        limits = self.rounded(raw)
        inside = np.clip(values, limits.smallest, limits.largest)
        if not self.step:
            return round_to(inside, raw)
        with np.errstate(invalid="ignore"):
            steps = (inside - self.origin) / self.step
            up = random.random(len(values)) < 0.5
            steps = np.where(up, np.ceil(steps), np.floor(steps))
            if math.isfinite(self.largest):
                steps = np.minimum(steps, math.floor((self.largest - self.origin) / self.step * (1 + SLACK)))
            moved = round_to(self.origin + steps * self.step, raw)
        return np.where(np.isfinite(inside), np.clip(moved, limits.smallest, limits.largest), inside)

    def holds(self, values: FloatArray, feature: Feature) -> NDArray[np.bool_]:
        """Returns an array (rows,): True where the range contains the feature's value. NaN counts as missing."""
        if isinstance(feature.number, Category):
            return ~np.isnan(values) | self.takes_missing(feature)
        limits, rounded = self.rounded(feature.raw), round_to(values, feature.raw)
        inside = (rounded >= limits.smallest) & (rounded <= limits.largest)
        if self.step:
            with np.errstate(invalid="ignore"):
                nearest = self.origin + np.round((values - self.origin) / self.step) * self.step
            inside &= (round_to(nearest, feature.raw) == rounded) | np.isinf(rounded)
        return np.where(np.isnan(values), self.takes_missing(feature), inside)

    def as_json(self) -> dict[str, Any]:
        ends = {"smallest": self.smallest, "largest": self.largest}
        finite = {key: value if math.isfinite(value) else None for key, value in ends.items()}
        return {**finite, "step": self.step, "missing": self.missing}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> ValueRange:
        low, high = record["smallest"], record["largest"]
        return ValueRange(
            -math.inf if low is None else low, math.inf if high is None else high, record["step"], record["missing"]
        )


ANYTHING = ValueRange()


@dataclass(frozen=True)
class Ranges:
    """The ranges of a model's columns, given instead of rows; they have no batches."""

    # Maps indices of the model's columns to ranges; other columns are unrestricted.
    columns: Mapping[int, ValueRange] = field(default_factory=dict)

    def batches(self) -> Iterator[Batch]:
        return iter(())

    def of(self, feature: Feature) -> ValueRange:
        return self.columns.get(feature.column, ANYTHING)


def outside(ranges: Ranges, model: Forest, rows: Rows) -> str:
    """Returns a sentence on rows outside the ranges; "" if all rows are inside."""
    count = total = 0
    first = ""
    for batch in rows.batches():
        all_inside = np.ones(len(batch.X), dtype=np.bool_)
        for feature, column in zip(model.features, model.row_columns, strict=True):
            inside = ranges.of(feature).holds(batch.X[:, column], feature)
            if not first and not inside.all():
                row = int(np.argmin(inside))
                first = f"feature {feature.name!r} is {batch.X[row, column]:g} in row {total + row}"
            all_inside &= inside
        count, total = count + int((~all_inside).sum()), total + len(all_inside)
    what = f"{count:,} of {total:,} rows are outside the ranges that the design was compiled for ({first})"
    return f"{what}: nothing is promised for them" if count else ""


def have_rows(rows: Rows | None) -> bool:
    return rows is not None and not isinstance(rows, Ranges)


def at_least(thresholds: FloatArray, raw: NumberType) -> FloatArray:
    """Returns for each threshold the smallest value of type `raw` that is not below it."""
    if raw != FLOAT32:
        return thresholds
    with np.errstate(over="ignore"):
        nearest = thresholds.astype(np.float32)
        return np.where(nearest < thresholds, np.nextafter(nearest, np.float32(np.inf)), nearest).astype(np.float64)


def next_below(thresholds: FloatArray, raw: NumberType) -> FloatArray:
    """Returns for each threshold the largest value of type `raw` below it."""
    return stepped(at_least(thresholds, raw), raw, -1)


def stepped(values: NDArray[Any], raw: NumberType, step: int) -> FloatArray:
    """Returns for each value the next float of type `raw`: above it (step 1) or below it (step -1)."""
    way = np.float32(step * np.inf)
    with np.errstate(over="ignore"):
        if isinstance(raw, Float) and raw.bits == 32:
            return np.nextafter(values.astype(np.float32), way).astype(np.float64)
        return np.nextafter(np.asarray(values, dtype=np.float64), float(way))
