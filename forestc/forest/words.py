"""Describes how a feature's word is computed, for comments in generated files."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from forestc.forest.ir import Forest
from forestc.forest.numbers import (
    FLOAT64,
    Category,
    Fixed,
    Float,
    NumberType,
    Ordered,
    round_to,
    to_words,
    word_range,
    word_value,
)


def word_note(forest: Forest, index: int) -> str:
    """Returns a line of text with a feature's number type, the recipe for its word, and an example."""
    feature = forest.features[index]
    limits = word_range(feature.number, feature.missing)
    value, word = word_example(forest, index)
    absent = "" if limits.missing is None else f", {limits.missing} means missing"
    # The recipe rounds to float32 first, as rounding may move a value across a threshold.
    rounded = feature.raw != FLOAT64 and not isinstance(feature.number, Category)
    value_text = f"{feature.raw}(value)" if rounded else "value"
    recipe = _recipe(feature.number, value_text, f"{limits.low}..{limits.high}")
    return f"{feature.number}: {recipe}{absent}; {value!r} becomes {word}"


def word_example(forest: Forest, index: int) -> tuple[float, int]:
    """Returns a value of a feature, on a threshold if possible, and the word of this value."""
    feature = forest.features[index]
    number = feature.number
    thresholds = forest.conditions.thresholds(index)
    limits = word_range(number, feature.missing)
    inside = [int(t) for t in thresholds.tolist() if limits.low <= int(t) <= limits.high]
    middle = inside[len(inside) // 2] if inside else max(limits.low, min(1, limits.high))
    value = round_to(np.array([word_value(middle, number)]), feature.raw)
    if not np.isfinite(value[0]):
        value = np.zeros(1)
    return float(value[0]), int(to_words(value, number, feature.missing)[0])


def _recipe(number: NumberType, value: str, span: str) -> str:
    match number:
        case Fixed(_, fraction):
            scaled = f"{value} * 2^{fraction}" if fraction else value
            return f"floor({scaled}), saturated to {span}"
        case Ordered(bits):
            flipped = "0x7FFFFFFF" if bits == 32 else "0x7FFFFFFFFFFFFFFF"
            float_value = value if bits == 32 else "float64(value)"
            return f"b = the {bits} bits of {float_value} as a signed integer, b XOR {flipped} where b < 0"
        case Category(count, rounding):
            codes = {"none": "the category's code", "floor": "floor(value)", "trunc": "value rounded towards 0"}
            return f"{codes[rounding]}, {count} for any that is not 0..{count - 1}"
        case Float():
            return "no word"
        case _:
            assert_never(number)
