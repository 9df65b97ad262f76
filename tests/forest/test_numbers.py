from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forestc.errors import ModelError
from forestc.forest.numbers import (
    FLOAT32,
    Category,
    Fixed,
    Float,
    Ordered,
    key_value,
    order_key,
    parse_number_type,
    round_to,
    threshold_key,
    to_words,
    word_range,
)

TYPES = [Float(32), Float(64), Fixed(8), Fixed(8, 0, True), Fixed(12, 4), Fixed(12, -3, True), Ordered(32), Category(5)]


@pytest.mark.parametrize("number", TYPES, ids=str)
def test_types_print_and_parse(number):
    assert parse_number_type(str(number)) == number


@pytest.mark.parametrize(
    ("text", "value", "word"),
    [
        ("ap_fixed<16,6>", -1.25, -1280),
        ("ap_ufixed<4,3>", 2.75, 5),
        ("ap_ufixed<4,7>", 17.0, 2),
        ("ap_fixed<8,0>", 0.25, 64),
    ],
)
def test_a_fixed_point_type_counts_its_integer_bits(text, value, word):
    assert to_words(np.array([value]), parse_number_type(text), False).tolist() == [word]


@pytest.mark.parametrize(
    "text", ["", "float16", "uint0", "uint99", "int1", "ap_fixed<99,98>", "category<0>", "ap_fixed<4,-9995>"]
)
def test_impossible_types_are_refused(text):
    with pytest.raises(ModelError, match="number type"):
        parse_number_type(text)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=20))
def test_keys_order_as_floats_do(values):
    x = np.array(values, dtype=np.float32)
    keys = order_key(x, 32)
    for a, ka in zip(x, keys, strict=True):
        for t in x:
            assert (a < t) == (ka < threshold_key(np.array([t], dtype=np.float64), 32)[0])
    assert np.array_equal(key_value(keys, 32), x.astype(np.float64))


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=20))
def test_keys_of_doubles_order_as_they_do(values):
    x = np.array(values)
    keys = order_key(x, 64)
    for a, ka in zip(x, keys, strict=True):
        for t in x:
            assert (a < t) == (ka < threshold_key(np.array([t]), 64)[0])
    assert np.array_equal(key_value(keys, 64), x)


@given(st.floats(allow_nan=False), st.integers(-8, 12), st.integers(-2000, 2000))
def test_strict_comparison_survives_floor_and_saturation(x, fraction, threshold):
    number = Fixed(12, fraction, True)
    span = word_range(number, False)
    threshold = int(np.clip(threshold, span.low + 1, span.high))
    word = int(to_words(np.array([x]), number, False)[0])
    assert span.low <= word <= span.high
    assert (word < threshold) == (x < float(np.ldexp(threshold, -fraction)))


def test_wide_words_saturate_exactly():
    for number in (Fixed(62), Fixed(63, 0, True), Fixed(62, 0, True)):
        span = word_range(number, False)
        words = to_words(np.array([np.inf, -np.inf, 1e300, -1e300]), number, False)
        assert words.tolist() == [span.high, span.low, span.high, span.low]


def test_missing_takes_the_highest_word():
    for number in (Fixed(4), Fixed(4, 0, True), Ordered(32), Ordered(64), Category(3)):
        span = word_range(number, True)
        words = to_words(np.array([np.nan, np.inf, 1e9]), number, True)
        assert words[0] == span.missing == span.top
        assert (words[1:] <= span.high).all()


def test_categories_send_everything_unknown_to_one_code():
    words = to_words(np.array([0.0, 2.0, 3.0, -1.0, 0.5, np.inf, 1e30]), Category(3), False)
    assert words.tolist() == [0, 2, 3, 3, 3, 3, 3]


def test_rows_are_rounded_to_the_source_type_first():
    value = np.float64(np.float32(0.1)) + 1e-12
    assert round_to(np.array([value]), FLOAT32)[0] == np.float32(0.1)
    assert round_to(np.array([1e300]), FLOAT32)[0] == np.inf
