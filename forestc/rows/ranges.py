"""Defines ranges, which replace rows: the values that each of a model's columns may take.

`made_rows` generates rows within them: on and beside the model's thresholds, at the ends of ranges, and random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import (
    FLOAT32,
    Category,
    Fixed,
    Float,
    FloatArray,
    NumberType,
    round_to,
    scaled_by,
    word_value,
)
from forestc.forest.retyping import retyped
from forestc.rows.batches import ArrayRows, Batch, Rows

OF_ROWS = "rows"  # stands for the ranges of the given rows
BOUNDARY = 20_000  # rows to steer to nodes of the model
RANDOM = 4_000  # rows of random values
ABSENT = 0.05  # share of missing values, for features that may be missing
MOST_STEPS = 2.0**53  # steps of a range at most
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
        ends = np.array([self.smallest, self.largest])
        low, high = rounded = round_to(ends, raw)
        if isinstance(raw, Fixed) and (rounded != round_to(ends, replace(raw, overflow="AP_SAT"))).any():
            low, high = raw.ends  # The range wraps.
        return ValueRange(float(low), float(high), self.step, self.missing)

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
        fine = np.isinf(low) | np.isinf(high)  # Steps finer than the type: these four lie on one side.
        return np.where(fine, below, low), np.where(fine, above, high)

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
    observed: Rows | None = field(default=None, compare=False, repr=False)  # the rows whose ranges these are

    def batches(self) -> Iterator[Batch]:
        return iter(())

    def of(self, feature: Feature) -> ValueRange:
        return self.columns.get(feature.column, ANYTHING)


def ranges_of(rows: Rows, model: Forest) -> Ranges:
    """Returns the ranges of the values in rows, with a step of 1 where all are whole numbers."""
    size = len(model.features)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    whole, missing = np.ones(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    for batch in rows.batches():
        values = batch.X[:, model.row_columns]
        absent = np.isnan(values)
        missing |= absent.any(axis=0)
        low = np.minimum(low, np.where(absent, np.inf, values).min(axis=0, initial=np.inf))
        high = np.maximum(high, np.where(absent, -np.inf, values).max(axis=0, initial=-np.inf))
        whole &= (absent | (np.floor(values) == values)).all(axis=0)
    columns: dict[int, ValueRange] = {}
    for index, feature in enumerate(model.features):
        least, most, may_be = float(low[index]), float(high[index]), bool(missing[index])
        if isinstance(feature.number, Category) or least > most:
            columns[feature.column] = ValueRange(missing=may_be)
        else:
            step = 1.0 if whole[index] and most - least <= MOST_STEPS else 0.0
            columns[feature.column] = ValueRange(least, most, step, may_be)
    return Ranges(columns, rows)


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
    if isinstance(raw, Fixed):
        return np.ldexp(np.ceil(scaled_by(thresholds, raw.fraction)), -raw.fraction)
    if raw != FLOAT32:
        return thresholds
    with np.errstate(over="ignore"):
        nearest = thresholds.astype(np.float32)
        return np.where(nearest < thresholds, np.nextafter(nearest, np.float32(np.inf)), nearest).astype(np.float64)


def next_below(thresholds: FloatArray, raw: NumberType) -> FloatArray:
    """Returns for each threshold the largest value of type `raw` below it."""
    return stepped(at_least(thresholds, raw), raw, -1)


def stepped(values: NDArray[Any], raw: NumberType, step: int) -> FloatArray:
    """Returns for each value the next value of type `raw`: above it (step 1) or below it (step -1)."""
    if isinstance(raw, Fixed):
        return np.asarray(values + np.ldexp(float(step), -raw.fraction))
    way = np.float32(step * np.inf)
    with np.errstate(over="ignore"):
        if isinstance(raw, Float) and raw.bits == 32:
            return np.nextafter(values.astype(np.float32), way).astype(np.float64)
        return np.nextafter(np.asarray(values, dtype=np.float64), float(way))


def made_rows(model: Forest, ranges: Ranges, others: Sequence[Forest] = ()) -> ArrayRows:
    """Returns generated rows within the ranges, the same for each call. others: further forests; where these accept no
    missing values, no value is missing."""
    model, random = _on_values(model), np.random.default_rng(0)
    refusing = {feature.column for forest in others for feature in forest.features if not feature.missing}
    absent = [ranges.of(f).takes_missing(f) and f.column not in refusing for f in model.features]
    some = np.zeros((RANDOM, model.width))
    for index, (feature, may_be) in enumerate(zip(model.features, absent, strict=True)):
        column = ranges.of(feature).snapped(_anywhere(model, index, ranges, random), feature.raw, random)
        some[:, model.row_columns[index]] = np.where((random.random(RANDOM) < ABSENT) & may_be, np.nan, column)
    base = encode_numbers(model, some)
    parts = [some]
    for inputs in boundary_inputs(model, base, 0, BOUNDARY):
        part = np.zeros((len(inputs), model.width))
        for index, (feature, may_be) in enumerate(zip(model.features, absent, strict=True)):
            column = ranges.of(feature).snapped(inputs[:, index], feature.raw, random)
            other = some[random.integers(0, RANDOM, len(inputs)), model.row_columns[index]]
            part[:, model.row_columns[index]] = np.where(np.isnan(column) & (not may_be), other, column)
        parts.append(part)
    rows = np.concatenate(parts)
    return ArrayRows(rows[random.permutation(len(rows))])


def every_cell(model: Forest, ranges: Ranges, most: int) -> ArrayRows | None:
    """Returns rows for every combination of conditions within the ranges; None for more than `most` rows, or for a
    range of more than `most` steps."""
    model = _on_values(model)
    values: list[FloatArray] = []
    for index, feature in enumerate(model.features):
        column = _of_every_cell(model, index, ranges, most)
        if column is None or len(column) * math.prod(map(len, values)) > most:
            return None
        values.append(np.append(column, np.nan) if ranges.of(feature).takes_missing(feature) else column)
    count = math.prod(map(len, values))
    if count > most:
        return None
    rows = np.zeros((count, model.width))
    for read_column, grid in zip(model.row_columns, np.meshgrid(*values, indexing="ij"), strict=True):
        rows[:, read_column] = grid.ravel()
    return ArrayRows(rows)


def _of_every_cell(model: Forest, index: int, ranges: Ranges, most: int) -> FloatArray | None:
    """Returns a value in each interval between a feature's thresholds, or each code of a category. Returns None if its
    range has more than `most` steps."""
    feature, limits = model.features[index], ranges.of(model.features[index])
    if isinstance(feature.number, Category):
        return np.arange(feature.number.count + 1, dtype=np.float64)
    ends = limits.rounded(feature.raw)
    thresholds = model.conditions.thresholds(index).astype(np.float64)
    if limits.step:
        steps = (limits.largest - limits.smallest) / limits.step
        if not steps <= most:
            return None
        values = limits.smallest + np.arange(math.floor(steps * (1 + SLACK)) + 1) * limits.step
        values = np.clip(round_to(values, feature.raw), ends.smallest, ends.largest)
    else:
        starts = at_least(thresholds, feature.raw)
        first = next_below(thresholds[:1], feature.raw) if len(thresholds) else np.zeros(1)
        values = np.clip(np.concatenate([first, starts]), ends.smallest, ends.largest)
    _, first_of_cell = np.unique(np.searchsorted(thresholds, values, side="right"), return_index=True)
    return np.asarray(values[first_of_cell])


def _anywhere(model: Forest, index: int, ranges: Ranges, random: np.random.Generator) -> FloatArray:
    """Returns random values of a feature, (RANDOM,): within its range, near thresholds, at the ends, and of any
    magnitude."""
    feature = model.features[index]
    if isinstance(feature.number, Category):
        return random.integers(0, feature.number.count + 1, RANDOM).astype(np.float64)
    limits = ranges.of(feature).rounded(feature.raw)
    thresholds = round_to(model.conditions.thresholds(index).astype(np.float64), feature.raw)
    thresholds = thresholds[np.isfinite(thresholds)]
    if not len(thresholds):
        thresholds = np.zeros(1)
    most = float(np.finfo(np.float64).max) / 2
    thresholds = np.clip(thresholds, -most, most)
    reach = float(np.ptp(thresholds)) or float(np.abs(thresholds).max()) or 1.0
    low = limits.smallest if np.isfinite(limits.smallest) else float(thresholds.min()) - reach
    high = limits.largest if np.isfinite(limits.largest) else max(low, float(thresholds.max())) + reach
    low, high = np.clip([low, high], -most, most)
    share, beside = random.random(RANDOM), random.choice(thresholds, RANDOM)
    ways = [
        low + share * high - share * low,
        beside,
        stepped(beside, feature.raw, -1),
        stepped(beside, feature.raw, 1),
        _of_any_size(feature, random),
        random.choice([limits.smallest, limits.largest, 0.0, -0.0], RANDOM),
    ]
    return np.asarray(np.choose(random.choice(len(ways), RANDOM, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), ways))


def _of_any_size(feature: Feature, random: np.random.Generator) -> NDArray[np.float64]:
    narrow = isinstance(feature.raw, Float) and feature.raw.bits == 32
    powers = random.integers(-149, 127, RANDOM) if narrow else random.integers(-1074, 1023, RANDOM)
    return np.ldexp(random.choice([-1.0, 1.0], RANDOM) * (1 + random.random(RANDOM)), powers)


def _on_values(forest: Forest) -> Forest:
    """Returns the forest with float thresholds instead of integer words; a forest on floats stays as it is."""
    if not forest.on_words:
        return forest
    numbers: list[NumberType] = []
    thresholds: list[FloatArray] = []
    for index, feature in enumerate(forest.features):
        raw = feature.raw if isinstance(feature.raw, Float) else Float(64)
        values = [word_value(int(word), feature.number) + 0.0 for word in forest.conditions.thresholds(index)]
        numbers.append(feature.number if isinstance(feature.number, Category) else raw)
        thresholds.append(at_least(np.array(values, dtype=np.float64), raw))
    return retyped(forest, numbers, thresholds, [feature.missing for feature in forest.features])
