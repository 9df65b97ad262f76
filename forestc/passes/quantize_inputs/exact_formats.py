"""Chooses input formats without rows: words that keep every value of a feature on its side of every threshold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import Feature
from forestc.forest.numbers import (
    MAX_WORD_BITS,
    Category,
    Fixed,
    Float,
    NumberType,
    Ordered,
    check_type,
    scaled_by,
    threshold_key,
    word_range,
)
from forestc.passes.observation import Freedom
from forestc.passes.word_formats import Format, fewest_bits, integer_type
from forestc.rows.ranges import ANYTHING, ValueRange

EXACT = "exact"
WHOLE = "exact for whole numbers"


def choose_exact(
    feature: Feature,
    missing: bool,
    thresholds: NDArray[np.float64],
    values: ValueRange,
    way: str,
    input_bits: int | None,
) -> Format:
    """Chooses a format that is exact for every value in the feature's range. Raises OptionError if the options allow
    none.
    way: option `input` of quantize-inputs."""
    if isinstance(feature.number, Category):
        return Format(feature.number, np.zeros(0, dtype=np.int64), EXACT)
    if not len(thresholds):
        return Format(Fixed(1), np.zeros(0, dtype=np.int64), "not read")
    _, inside = _thresholds_inside(feature, thresholds, values)
    if isinstance(feature.raw, Fixed) and values == ANYTHING and way == "auto" and input_bits is None:
        return given_exactly(feature, feature.raw.grid, missing, thresholds, values)
    key = feature.raw.bits if isinstance(feature.raw, Float) else 64
    if way != "ordered":
        most = MAX_WORD_BITS if way == "fixed" else min(key - 1, MAX_WORD_BITS)
        narrow = _fixed(thresholds, values, inside, feature, missing, min(most, input_bits or most))
        if narrow is not None:
            return narrow
        if way == "fixed" or (input_bits or key) < key:
            raise OptionError(
                f"no fixed-point format of {input_bits or most} bits keeps every value of {feature.name!r} on its side "
                "of the thresholds",
                where="pass quantize-inputs",
                do="use input=auto without input_bits, give its range, or rows, on which a change can be measured",
            )
    return Format(Ordered(key), threshold_key(thresholds, key), EXACT)


def given_exactly(
    feature: Feature, number: NumberType, missing: bool, thresholds: NDArray[np.float64], values: ValueRange
) -> Format:
    """Returns the format for the user's type `number`. Raises OptionError if it is not exact."""
    check_type(number)
    if isinstance(number, Ordered):
        key = feature.raw.bits if isinstance(feature.raw, Float) else 64
        if number.bits < key:
            raise _not_exact(feature, number)
        return Format(number, threshold_key(thresholds, number.bits), EXACT)
    if not isinstance(number, Fixed):
        raise OptionError(
            f"{number} is not an integer format",
            where="pass quantize-inputs",
            do="use uint8, ap_fixed<12,8>, ordered32 and the like",
        )
    own, inside = _thresholds_inside(feature, thresholds, values)
    if not np.isfinite(thresholds[inside]).all():
        raise _not_exact(feature, number)
    low, high = values.around(thresholds[inside], feature.raw)
    words = np.floor(scaled_by(high, number.fraction))  # the highest possible word of each threshold
    span = word_range(number, missing)
    if not ((words > scaled_by(low, number.fraction)) & (words > span.low) & (words <= span.high)).all():
        raise _not_exact(feature, number)
    return Format(number, _scattered(thresholds, own, inside, words, number, missing), EXACT)


def _not_exact(feature: Feature, number: NumberType) -> OptionError:
    return OptionError(
        f"{number} does not keep every value of {feature.name!r} on its side of the thresholds",
        where="pass quantize-inputs",
        do="give a wider format, its range (with step 1 for whole numbers), or rows",
    )


def _thresholds_inside(
    feature: Feature, thresholds: NDArray[np.float64], values: ValueRange
) -> tuple[ValueRange, NDArray[np.bool_]]:
    """Returns the range with its ends rounded to the feature's raw type, and an array (thresholds,): True if a
    threshold is inside."""
    own = values.rounded(feature.raw)
    return own, (thresholds > own.smallest) & (thresholds <= own.largest)


def _fixed(
    thresholds: NDArray[np.float64],
    values: ValueRange,
    inside: NDArray[np.bool_],
    feature: Feature,
    missing: bool,
    most: int,
) -> Format | None:
    t, own = thresholds[inside], values.rounded(feature.raw)  # A range counts its steps from its unrounded end.
    if not np.isfinite(t).all():  # `x < inf` separates infinity from all numbers, but fixed point has no infinity.
        return None
    if not len(t):
        number = Fixed(1)
        return Format(number, _scattered(thresholds, own, inside, t, number, missing), "always on one side")
    low, high = values.around(t, feature.raw)
    freedom = Freedom(t, low, high, own.smallest, own.largest, values.whole, missing)
    if values.whole and math.isfinite(own.smallest) and math.isfinite(own.largest):
        integer = integer_type(freedom, missing)
        if integer is not None and integer.bits <= most:
            return Format(integer, _scattered(thresholds, own, inside, np.ceil(t), integer, missing), WHOLE)
    narrow = fewest_bits(freedom, missing, most)
    if narrow is None:
        return None
    assert isinstance(narrow.number, Fixed)
    return Format(narrow.number, _scattered(thresholds, own, inside, narrow.words, narrow.number, missing), EXACT)


def _scattered(
    thresholds: NDArray[np.float64],
    own: ValueRange,
    inside: NDArray[np.bool_],
    words: NDArray[np.float64] | NDArray[np.int64],
    number: Fixed,
    missing: bool,
) -> NDArray[np.int64]:
    """Returns an integer for each threshold: from `words` if it is inside the range; otherwise one that makes its
    condition hold always or never."""
    span = word_range(number, missing)
    result = np.where(thresholds <= own.smallest, span.low, span.high + 1)
    result[inside] = words.astype(np.int64)
    return result
