"""Defines the number types of features: how a row's value is represented when it is compared.

| type                            | text            | value                                           |
|---------------------------------|-----------------|-------------------------------------------------|
| Float(bits)                     | float32         | the float itself, rounded to that type          |
| Fixed(bits, fraction, signed)   | uint8, ap_ufixed<12,8> | floor(x * 2^fraction), saturated to the bits |
| Ordered(bits)                   | ordered32       | the float's bits as an order-preserving integer |
| Category(count)                 | category<5>     | the code 0..count-1; `count` for any other      |
| Category(count, "floor")        | category<5,floor> | the code floor(x); "trunc" rounds towards 0   |

ap_fixed<W,I> has W bits, I of them integer bits with the sign, so W - I fraction bits; ap_ufixed<W,I> has no sign.
ap_fixed<W,I,Q,O> also says how it rounds and what it does with a value out of its range, as the types of HLS do:
AP_TRN is floor, AP_RND rounds halves up, AP_RND_CONV to even; AP_SAT saturates, AP_WRAP keeps the lowest W bits. Words
that are compared are floored and saturated; the type to which a source rounds values first may do otherwise.

All types but Float give integers, called words. For an integer T, `x < T / 2^k` holds if and only if `floor(x * 2^k) <
T` does, so Fixed keeps comparisons where it does not saturate. If a feature may be missing, its highest word means
missing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

from forestc.errors import HERE, ModelError

FloatArray: TypeAlias = NDArray[np.float64]
WordArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Float:
    bits: int

    def __str__(self) -> str:
        return f"float{self.bits}"


Rounding: TypeAlias = Literal["AP_TRN", "AP_RND", "AP_RND_CONV"]
Overflow: TypeAlias = Literal["AP_SAT", "AP_WRAP"]


@dataclass(frozen=True, slots=True)
class Fixed:
    bits: int
    fraction: int = 0
    signed: bool = False
    rounding: Rounding = "AP_TRN"
    overflow: Overflow = "AP_SAT"

    def __str__(self) -> str:
        if not self.plain:
            return self.fixed_point(self.rounding, self.overflow)
        return self.fixed_point() if self.fraction else f"{'' if self.signed else 'u'}int{self.bits}"

    @property
    def plain(self) -> bool:
        """True if values are floored and saturated."""
        return (self.rounding, self.overflow) == ("AP_TRN", "AP_SAT")

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        span = word_range(self, False)
        return math.ldexp(span.low, -self.fraction), math.ldexp(span.high, -self.fraction)

    @property
    def grid(self) -> Fixed:
        """The plain type with the same values."""
        return Fixed(self.bits, self.fraction, self.signed)

    def fixed_point(self, *modes: str) -> str:
        """Returns the type as `ap_fixed<W,I>` in HLS, with modes of rounding and overflow."""
        arguments = (self.bits, self.bits - self.fraction, *modes)
        return f"ap_{'' if self.signed else 'u'}fixed<{','.join(map(str, arguments))}>"


@dataclass(frozen=True, slots=True)
class Ordered:
    bits: int

    def __str__(self) -> str:
        return f"ordered{self.bits}"


@dataclass(frozen=True, slots=True)
class Category:
    count: int
    rounding: Literal["none", "floor", "trunc"] = "none"

    def __str__(self) -> str:
        return f"category<{self.count}{'' if self.rounding == 'none' else ',' + self.rounding}>"


NumberType: TypeAlias = Float | Fixed | Ordered | Category
FLOAT32 = Float(32)
FLOAT64 = Float(64)

MAX_WORD_BITS = 62  # limits bits of an unsigned Fixed word; a signed one may have one more
MAX_EXACT_BITS = 53  # limits bits of a Fixed type to which values are rounded: a float64 holds each of its values
MAX_CATEGORIES = 1 << 16  # limits the memory that a file of unknown origin can claim
MAX_FRACTION = 1100  # exceeds the exponent of every float64


def parse_number_type(text: str) -> NumberType:
    """Parses the text of a number type, as `str` prints it. Raises ModelError for any other text."""
    if match := re.fullmatch(r"(float|ordered)(32|64)", text):
        return Float(int(match[2])) if match[1] == "float" else Ordered(int(match[2]))
    if match := re.fullmatch(r"(u?)int(\d{1,2})", text):
        return check_type(Fixed(int(match[2]), 0, match[1] == ""))
    modes = f"({'|'.join(get_args(Rounding))}),({'|'.join(get_args(Overflow))})"
    if match := re.fullmatch(rf"ap_(u?)fixed<(\d{{1,2}}),(-?\d{{1,4}})(?:,{modes})?>", text):
        bits, integer = int(match[2]), int(match[3])
        rounding, overflow = match[4] or "AP_TRN", match[5] or "AP_SAT"
        return check_type(Fixed(bits, bits - integer, match[1] == "", rounding, overflow))  # type: ignore[arg-type]
    if match := re.fullmatch(r"category<(\d{1,7})(?:,(floor|trunc))?>", text):
        return check_type(Category(int(match[1]), match[2] or "none"))  # type: ignore[arg-type]
    raise ModelError(
        f"unknown number type {text!r}",
        where=HERE,
        do="known: float32, float64, uint8, int8, ap_fixed<12,8>, ordered32, category<5> and the like",
    )


def check_type(number: NumberType) -> NumberType:
    """Returns the type. Raises ModelError if its bits, fraction or count are out of range."""
    match number:
        case Float(bits) | Ordered(bits):
            fine = bits in (32, 64)
        case Fixed(bits, fraction, signed):
            most = MAX_WORD_BITS + signed if number.plain else MAX_EXACT_BITS
            fine = (2 if signed else 1) <= bits <= most and abs(fraction) <= MAX_FRACTION
        case Category(count, _):
            fine = 1 <= count <= MAX_CATEGORIES
        case _:
            assert_never(number)
    if not fine:
        raise ModelError(f"number type {number} is out of range", where=HERE, do=f"use at most {MAX_WORD_BITS} bits")
    return number


@dataclass(frozen=True, slots=True)
class WordRange:
    """The range of the integer codes (words) of a feature's values."""

    low: int  # lowest word of a value
    high: int  # highest word of a value
    missing: int | None  # word for a missing value, or None

    @property
    def top(self) -> int:
        """The largest word; if there is a word for missing, this is it."""
        return self.high if self.missing is None else self.missing


def word_range(number: NumberType, may_be_missing: bool) -> WordRange:
    """Returns the range of a number type's words. Raises ModelError for a Float."""
    match number:
        case Fixed(bits, _, signed):
            low, top = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        case Ordered(bits):
            low, top = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        case Category(count, _):
            low, top = 0, count + may_be_missing
        case Float():
            raise ModelError(f"{number} has no words", where=HERE, do="quantize the forest first")
        case _:
            assert_never(number)
    return WordRange(low, top - may_be_missing, top if may_be_missing else None)


def order_key(values: NDArray[Any], bits: int) -> WordArray:
    """Converts floats of 32 or 64 bits to integers in the same order; -0.0 comes just below 0.0. For thresholds use
    `threshold_key`."""
    with np.errstate(over="ignore"):  # A value beyond the range of float32 becomes infinite.
        pattern = values.astype(f"f{bits // 8}").view(f"i{bits // 8}")
    return _mirrored(pattern).astype(np.int64)


def key_value(keys: WordArray, bits: int) -> FloatArray:
    """Converts the integers of `order_key` back to floats."""
    pattern = _mirrored(keys.astype(f"i{bits // 8}"))
    with np.errstate(invalid="ignore"):  # Keys beyond that of infinity are NaNs.
        return pattern.view(f"f{bits // 8}").astype(np.float64)


def _mirrored(pattern: NDArray[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    """Flips all bits but the sign, in negative integers only."""
    return np.where(pattern < 0, pattern ^ np.iinfo(pattern.dtype).max, pattern)


def threshold_key(thresholds: FloatArray, bits: int) -> WordArray:
    """Returns keys T such that `x < t` holds if and only if `order_key(x) < T` does, for both zeros too."""
    return order_key(np.where(thresholds == 0.0, -0.0, thresholds), bits)


def round_to(values: NDArray[Any], number: NumberType) -> FloatArray:
    """Returns the values rounded to the type, as float64. Only Float(32) and Fixed round. A Fixed type that wraps makes
    infinity 0, as HLS does; NaN stays."""
    wide = np.asarray(values, dtype=np.float64)
    if number == FLOAT32:
        with np.errstate(over="ignore", invalid="ignore"):  # A signaling NaN is invalid.
            return wide.astype(np.float32).astype(np.float64)
    return _fixed_point(wide, number) if isinstance(number, Fixed) else wide


def _fixed_point(values: FloatArray, number: Fixed) -> FloatArray:
    span = word_range(number, False)
    with np.errstate(invalid="ignore"):  # Infinities have no remainder.
        scaled = scaled_by(values, number.fraction)
        words = np.rint(scaled) if number.rounding == "AP_RND_CONV" else np.floor(scaled)
        if number.rounding == "AP_RND":
            words += scaled - words >= 0.5
        if number.overflow == "AP_SAT":
            words = np.clip(words, span.low, span.high)
        else:
            words = np.where(np.isinf(words), 0.0, np.mod(words, 2.0**number.bits))
            words = np.where(words > span.high, words - 2.0**number.bits, words)
    return np.asarray(np.ldexp(words + 0.0, -number.fraction))


def scaled_by(values: FloatArray, fraction: int) -> FloatArray:
    """Returns values * 2^fraction. A value too small for float64 becomes the smallest float of its sign instead of 0,
    so its floor stays right."""
    with np.errstate(over="ignore"):
        scaled = np.ldexp(values, fraction)
    if fraction >= 0:
        return np.asarray(scaled)
    return np.where((scaled == 0) & (values != 0), np.copysign(np.finfo(np.float64).smallest_subnormal, values), scaled)


def to_words(values: FloatArray, number: NumberType, may_be_missing: bool) -> WordArray:
    """Returns the words (integer codes) of a feature's values (rows,), already rounded to the source's type. NaN
    becomes the highest word. Raises ModelError for a Float."""
    limits = word_range(number, may_be_missing)
    absent = np.isnan(values)
    present = np.where(absent, 0.0, values)
    match number:
        case Fixed(_, fraction):
            scaled = np.floor(scaled_by(present, fraction))
            # The float clip avoids an overflow of int64; the integer clip is exact.
            safe = np.clip(scaled, -(2.0**63), np.nextafter(2.0**63, 0.0)).astype(np.int64)
            words = np.where(scaled >= 2.0**63, limits.high, np.clip(safe, limits.low, limits.high))
        case Ordered(bits):
            words = order_key(present, bits)
        case Category(count, rounding):
            present = {"none": present, "floor": np.floor(present), "trunc": np.trunc(present)}[rounding]
            valid = (present >= 0) & (present < count) & (present == np.floor(present))
            words = np.where(valid, present, count).astype(np.int64)
        case Float():
            raise ModelError(f"{number} has no words", where=HERE, do="quantize the forest first")
        case _:
            assert_never(number)
    return np.where(absent, limits.top, words)


def word_value(word: int, number: NumberType) -> float:
    """Returns the real threshold that a threshold word stands for; for a category, the word itself."""
    match number:
        case Fixed(_, fraction):
            with np.errstate(over="ignore"):
                return float(np.ldexp(float(word), -fraction))
        case Ordered(bits):
            return float(key_value(np.array([word], dtype=np.int64), bits)[0])
        case Category() | Float():
            return float(word)
        case _:
            assert_never(number)


def word_bits(number: NumberType) -> int:
    """Returns the number of bits of a type's words; a category's word for missing is not counted. The type must not be
    a Float."""
    assert not isinstance(number, Float)
    return number.count.bit_length() if isinstance(number, Category) else number.bits
