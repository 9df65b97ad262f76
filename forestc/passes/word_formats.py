"""Chooses input formats: the integer type of each feature, and its thresholds as integers (words).

Fixed point takes the fewest fraction bits k with a multiple of 2^-k in each interval in which a threshold may move.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.forest.numbers import (
    Category,
    Fixed,
    Float,
    NumberType,
    Ordered,
    check_type,
    scaled_by,
    threshold_key,
    word_bits,
    word_range,
)
from forestc.passes.observation import Freedom

# Limits fixed point, if input=auto chooses it, to the bits of a float32's significand.
MOST_FIXED_BITS = 24
MOST_INTEGER_BITS = 32


@dataclass(frozen=True)
class Format:
    """The integer type of a feature, with its thresholds as integers."""

    number: NumberType
    words: NDArray[np.int64]  # an integer for each distinct threshold
    keeps: str  # how exact the format is, for reports


def choose(
    number: NumberType,
    raw: NumberType,
    missing: bool,
    freedom: Freedom,
    way: str,
    input_bits: int | None,
) -> Format:
    """Chooses the integer format of a feature.
    way: option `input` of quantize-inputs.
    input_bits: largest number of bits, even if the format becomes approximate; None for no limit."""
    if isinstance(number, Category):
        return Format(number, np.zeros(0, dtype=np.int64), "exact")
    t = freedom.thresholds
    if not len(t):
        return Format(Fixed(1), np.zeros(0, dtype=np.int64), "not read")
    seen = freedom.smallest <= freedom.largest
    if way != "ordered" and seen and freedom.whole:
        integer = integer_type(freedom, missing)
        if integer is not None and (input_bits is None or integer.bits <= input_bits):
            return Format(integer, _clipped(np.ceil(t), integer, missing), "exact for whole numbers")
    if way != "ordered" and seen:
        narrow = fewest_bits(freedom, missing, input_bits or (MOST_INTEGER_BITS if way == "fixed" else MOST_FIXED_BITS))
        if narrow is not None:
            return narrow
        if input_bits is not None or way == "fixed":
            return _narrowed(freedom, missing, input_bits or MOST_INTEGER_BITS)
    bits = raw.bits if isinstance(raw, Float) else 64
    return Format(Ordered(bits), threshold_key(t, bits), "exact")


def comparator_bits(number: NumberType, words: NDArray[np.int64]) -> int:
    """Returns the total number of input bits that comparators read. A comparator skips bits below its threshold's
    lowest 1 bit."""
    width = word_bits(number)
    lowest = words & -words
    zeros = np.where(words == 0, width - 1, np.log2(np.maximum(lowest, 1)).astype(np.int64))
    return int(np.maximum(width - zeros, 1).sum())


def given(number: NumberType, missing: bool, freedom: Freedom) -> Format:
    """Returns the feature's format for a type that the user chose. Raises OptionError unless the type holds integers,
    such as uint8, ap_fixed<12,8> or ordered32."""
    check_type(number)
    if isinstance(number, Ordered):
        return Format(number, threshold_key(freedom.thresholds, number.bits), "exact")
    if not isinstance(number, Fixed):
        raise OptionError(
            f"{number} is not an integer format",
            where="pass quantize-inputs",
            do="use uint8, ap_fixed<12,8>, ordered32 and the like",
        )
    scaled = scaled_by(freedom.thresholds, number.fraction)
    low, high = scaled_by(freedom.low, number.fraction), np.floor(scaled_by(freedom.high, number.fraction))
    nearest = np.ceil(scaled)
    nearest = np.where((nearest > high) & (np.floor(scaled) > low), np.floor(scaled), nearest)
    words = _clipped(nearest, number, missing)
    on_rows = bool(((words > low) & (words <= high)).all())
    return Format(number, words, "exact on the rows" if on_rows else "approximate")


def integer_type(freedom: Freedom, missing: bool) -> Fixed | None:
    """Returns the integer type that keeps whole numbers on their sides of all thresholds; None if it needs more than 32
    bits."""
    t = np.ceil(freedom.thresholds[np.isfinite(freedom.thresholds)])
    return type_for(int(t.min(initial=1)) - 1, int(t.max(initial=0)) + missing, 0, MOST_INTEGER_BITS)


def type_for(low: int, high: int, fraction: int, most: int) -> Fixed | None:
    signed = low < 0
    bits = max((~low).bit_length() if signed else 0, max(high, 0).bit_length()) + signed
    bits = max(bits, 2 if signed else 1)
    return Fixed(bits, fraction, signed) if bits <= most else None


def _clipped(words: NDArray[np.float64], number: NumberType, missing: bool) -> NDArray[np.int64]:
    """Clips thresholds to the type's range; a condition that always or never holds stays so."""
    span = word_range(number, missing)
    inside = np.clip(words, -(2.0**62), 2.0**62).astype(np.int64)
    return np.clip(inside, span.low, span.high + 1)


def fewest_bits(freedom: Freedom, missing: bool, most: int) -> Format | None:
    """Returns the fixed-point format with the fewest fraction bits that keeps all rows' paths; None if it needs more
    than `most` bits."""
    t = freedom.thresholds
    finite = np.isfinite(t)
    # `x < inf` separates infinity from all numbers, but fixed point has no infinity.
    if freedom.largest == math.inf and np.isposinf(t).any():
        return None
    low_ends, high_ends = freedom.low[finite], freedom.high[finite]
    reach = float(np.abs(t[finite]).max(initial=0.0))
    least = -max(0, math.frexp(reach)[1]) if reach else 0

    def enough(fraction: int) -> bool:
        return bool((np.floor(scaled_by(high_ends, fraction)) > scaled_by(low_ends, fraction)).all())

    # If k fraction bits are enough, k + 1 are enough, too, so bisection finds k.
    fraction = least + bisect_left(range(least, least + most + 39), True, key=enough)
    low, high = scaled_by(low_ends, fraction), np.floor(scaled_by(high_ends, fraction))
    if not (high > low).all():
        return None
    scaled = scaled_by(t[finite], fraction)
    above = np.ceil(scaled)
    nearest = np.where((above <= high) & ((above - scaled <= 0.5) | (np.floor(scaled) <= low)), above, np.floor(scaled))
    # If both neighbors miss the interval, the largest multiple inside it is taken.
    nearest = np.where((nearest > low) & (nearest <= high), nearest, high)
    number = type_for(int(nearest.min(initial=1)) - 1, int(nearest.max(initial=1)) + missing, fraction, most)
    if number is None:
        return None
    span = word_range(number, missing)
    # `x < -inf` holds for no value, `x < inf` for every finite value.
    words = np.where(t < 0, span.low, span.high + 1)
    words[finite] = nearest.astype(np.int64)
    return Format(number, words, "exact on the rows")


def _narrowed(freedom: Freedom, missing: bool, most: int) -> Format:
    """Returns the finest fixed-point format of at most `most` bits, with rounded thresholds."""
    finite = freedom.thresholds[np.isfinite(freedom.thresholds)]
    reach = float(np.abs(finite).max(initial=0.0)) or 1.0
    for fraction in range(most + 2 - math.frexp(reach)[1], -1100, -1):
        scaled = np.rint(scaled_by(finite, fraction))
        low, high = (int(scaled.min()) - 1, int(scaled.max()) + missing) if len(scaled) else (0, 1)
        number = type_for(low, high, fraction, most)
        if number is not None:
            words = _clipped(np.rint(scaled_by(freedom.thresholds, fraction)), number, missing)
            return Format(number, words, "approximate")
    raise OptionError(f"{most} input bits are too few", where="pass quantize-inputs", do="give more input_bits")


def parse_formats(formats: Mapping[str, Any] | None, forest: Forest) -> dict[str, str]:
    """Returns the option `formats` as {feature name: type}. Raises OptionError for an unknown feature."""
    if formats is None:
        return {}
    if not isinstance(formats, Mapping):
        raise OptionError(
            "formats does not map feature names to types", where="pass quantize-inputs", do='write {"age":"uint8"}'
        )
    names = {feature.name for feature in forest.features}
    result = {}
    for name, text in formats.items():
        if name not in names:
            raise OptionError(
                f"formats names {name!r}, which no condition reads", where="pass quantize-inputs", do="check the name"
            )
        result[name] = str(text)
    return result
