"""Gives quantized forests the same number types, so that their rows have the same words. All decisions stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import MAX_WORD_BITS, Category, Fixed, NumberType, word_range
from forestc.forest.retyping import retyped
from forestc.passes.word_formats import type_for


@dataclass(frozen=True)
class _Read:
    """A column as one forest reads it. thresholds: its distinct words in conditions."""

    model: str
    feature: Feature
    thresholds: NDArray[np.int64]

    def at(self, fraction: int) -> NDArray[np.object_]:
        """Returns the thresholds between the lowest and the highest word, in steps of 2^-fraction."""
        assert isinstance(self.feature.number, Fixed)
        span = word_range(self.feature.number, self.feature.missing)
        inside = self.thresholds[(self.thresholds > span.low) & (self.thresholds <= span.high)]
        return np.array([int(t) << (fraction - self.feature.number.fraction) for t in inside], dtype=object)


def differing_missing(forests: Mapping[str, Forest]) -> str:
    """Returns a message on a column in which only some of the forests take missing values; "" if there is none."""
    for reads in _columns(forests).values():
        takes = {read.feature.missing: read.model for read in reads}
        if len(takes) == 2:
            return (
                f"{takes[True]} takes missing values in column {reads[0].feature.name!r}, and {takes[False]} does not"
            )
    return ""


def with_common_words(forests: Mapping[str, Forest]) -> list[Forest]:
    """Returns the forests with one number type for each column. forests: quantized forests by name.

    Raises ModelError, with the column and both models, if no type holds the thresholds of all.
    """
    (first, forest), *others = forests.items()
    for name, other in others:
        if clash := _clash(forest, other):
            raise ModelError(
                f"{first} and {name} have other columns: {clash}",
                where="common words",
                do="train both on the same columns, in one order",
            )
    if message := differing_missing(forests):
        raise ModelError(message, where="missing values", do="train both on rows with missing values, or both without")
    types = {column: _common(reads) for column, reads in _columns(forests).items()}
    return [_retyped(forest, types) for forest in forests.values()]


def _clash(forest: Forest, other: Forest) -> str:
    """Returns a difference between two forests' columns; "" if there is none."""
    if forest.width != other.width:
        return f"{forest.width} columns and {other.width}"
    names = dict(zip(forest.row_columns, forest.features, strict=True))
    for column, feature in zip(other.row_columns, other.features, strict=True):
        same = names.get(column, feature)
        if same.name != feature.name and same.named and feature.named:
            return f"column {column} is {same.name!r} and {feature.name!r}"
    return ""


def _columns(forests: Mapping[str, Forest]) -> dict[int, list[_Read]]:
    columns: dict[int, list[_Read]] = {}
    for model, forest in forests.items():
        for index, (feature, column) in enumerate(zip(forest.features, forest.row_columns, strict=True)):
            read = _Read(model, feature, forest.conditions.thresholds(index).astype(np.int64))
            columns.setdefault(column, []).append(read)
    return columns


def _common(reads: Sequence[_Read]) -> NumberType:
    """Returns the number type that holds all thresholds of a column."""
    used = [read for read in reads if len(read.thresholds) or isinstance(read.feature.number, Category)] or reads[:1]
    first = used[0]
    for other in used[1:]:
        if other.feature.raw != first.feature.raw:
            raise _differ(first, other, first.feature.raw, other.feature.raw)
        both = (first.feature.number, other.feature.number)
        if both[0] != both[1] and not all(isinstance(number, Fixed) for number in both):
            raise _differ(first, other, *both)
    fractions = [read.feature.number.fraction for read in used if isinstance(read.feature.number, Fixed)]
    if len({read.feature.number for read in used}) == 1 or not fractions:
        return first.feature.number
    words = np.concatenate([read.at(max(fractions)) for read in used])
    low, high = int(words.min(initial=1)) - 1, int(words.max(initial=0)) + first.feature.missing
    number = type_for(low, high, max(fractions), MAX_WORD_BITS)
    if number is None:
        raise _differ(first, used[1], first.feature.number, used[1].feature.number)
    return number


def _differ(read: _Read, other: _Read, first: NumberType, second: NumberType) -> ModelError:
    return ModelError(
        f"column {read.feature.name!r} is {first} in {read.model} and {second} in {other.model}", where="common words",
        do="train both with one library on rows of one kind, or quantize both with quantize-inputs{input=fixed}",
    )  # fmt: skip


def _retyped(forest: Forest, types: Mapping[int, NumberType]) -> Forest:
    numbers, thresholds = [], []
    for index, (feature, column) in enumerate(zip(forest.features, forest.row_columns, strict=True)):
        number, old = types[column], forest.conditions.thresholds(index).astype(np.int64)
        if isinstance(number, Fixed) and isinstance(feature.number, Fixed):
            before, after = (word_range(kind, feature.missing) for kind in (feature.number, number))
            inside = (old > before.low) & (old <= before.high)
            always = np.where(old <= before.low, after.low, after.high + 1)
            shift = max(0, number.fraction - feature.number.fraction)
            old = np.where(inside, np.where(inside, old, 0) << shift, always)
        numbers.append(number)
        thresholds.append(old)
    return retyped(forest, numbers, thresholds, [feature.missing for feature in forest.features])
