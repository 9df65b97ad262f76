"""Generates rows for a model if the user has none: on and beside the model's thresholds, at the ends of ranges, and
random."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Category, Float, FloatArray, NumberType, round_to, word_value
from forestc.forest.retyping import retyped
from forestc.rows.batches import ArrayRows
from forestc.rows.ranges import SLACK, Ranges, at_least, next_below, stepped

BOUNDARY = 20_000  # rows to steer to nodes of the model
RANDOM = 4_000  # rows of random values
ABSENT = 0.05  # share of missing values, for features that may be missing


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
