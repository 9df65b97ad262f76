"""Tests raw inputs: every column has a C type of its own, and is compared as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from forest_kinds import RAW
from random_forests import random_forest

from forestc.backends.c.choice import check
from forestc.backends.c.inputs import fits, inputs_of
from forestc.backends.c.options import COptions
from forestc.backends.c.raw import TYPES, by_position, column_types, parsed
from forestc.errors import OptionError
from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import FLOAT64, Fixed
from forestc.forest.verify import verify
from forestc.rows.encode import encode


def values_of(kind, random, count):
    """Draws values of a type: its ends, small ones, and values that float32 rounds."""
    least, greatest = kind.ends
    words = random.integers(least, greatest, count, endpoint=True)
    near = np.clip(random.integers(-300, 400, count), least, greatest)
    words = np.where(random.random(count) < 0.4, near, words)
    words = np.where(random.random(count) < 0.1, random.choice([least, greatest, max(least, -1), 0], count), words)
    values = kind.values(words)
    if kind.whole:
        return values
    small = random.integers(-300, 400, count) / 4
    return np.where(random.random(count) < 0.4, small, values)


@pytest.mark.parametrize("seed", range(30))
def test_a_forest_on_raw_values_has_the_same_answers(seed):
    """Compares with the evaluator, on values of every type and on all thresholds."""
    random = np.random.default_rng(seed)
    forest = random_forest(seed, True, types=RAW)
    if seed % 2:
        forest = replace(forest, features=tuple(replace(f, raw=FLOAT64) for f in forest.features))
    names = random.choice(list(TYPES), forest.columns)
    inputs = inputs_of(forest, "raw", ",".join(f"{k + 1}={name}" for k, name in enumerate(names)))
    verify(inputs.forest)
    rows = np.stack([values_of(kind, random, 3000) for kind in inputs.types], axis=1)
    for index, feature in enumerate(inputs.forest.features):
        kind, near = inputs.types[feature.column], inputs.forest.conditions.thresholds(index)
        if len(near):
            words = np.clip(random.choice(near, 1000) + random.integers(-1, 2, 1000), *kind.ends)
            rows[:1000, feature.column] = kind.values(words)
        if feature.missing:
            rows[random.random(len(rows)) < 0.1, feature.column] = np.nan
    assert fits(forest, inputs.types, rows).all() and np.array_equal(inputs.fitted(rows), rows, equal_nan=True)
    said = evaluate_words(inputs.forest, encode(inputs.forest, rows))
    expected = evaluate_words(forest, encode(forest, rows))
    assert np.array_equal(said.leaves, expected.leaves) and np.array_equal(said.scores, expected.scores)


def test_types_are_read_and_wrong_ones_are_refused():
    forest = replace(random_forest(3, True, types=[Fixed(8)]), columns=9)
    names = [feature.name for feature in forest.features]
    assert parsed("a=b=float64, *=int8") == {"a=b": "double", "*": "int8"}
    assert by_position(forest, f"{names[0]}=uint16,9=float32,*=int8") == "1=uint16,9=float,*=int8"
    assert [kind.c for kind in column_types(forest, "9=int8")] == ["float"] * 8 + ["int8_t"]
    for text, message in (
        (
            "adc",
            "c_types=: 'adc' .*; use FEATURE=TYPE, of the types int8, int16, int32, uint8, uint16, uint32, float",
        ),
        ("adc=half", "c_types=: 'adc=half' .*; use FEATURE"),
        ("1=int8,1=int16", "'1'.* two types"),
        (
            "feture 0=int8",
            "'feture 0' .*; use a position from 1 to 9, or a name",
        ),
        ("10=int8", "'10' is no column that the model reads"),
        (f"1=int8,{names[0]}=int16", "column 1 has two types"),
    ):
        with pytest.raises(OptionError, match=message):
            by_position(forest, text)
    with pytest.raises(OptionError, match=r"c_types=: .*use c_inputs=raw, or leave c_types= out"):
        check(COptions(c_inputs="float", c_types="*=int8"))
