from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from example_counts import examples
from forest_reader import Text
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows

from forestc.errors import ForestcError, ModelError
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import evaluate

CASES = Path(__file__).parents[1] / "cases"


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10**6), st.booleans())
def test_forests_print_and_parse_back_the_same(seed, quantized):
    forest = random_forest(seed, quantized)
    text = print_forest(forest)
    again = parse_forest(text)
    assert print_forest(again) == text
    rows = troublesome_rows(forest, seed, 30)
    before, after = evaluate(forest, rows), evaluate(again, rows)
    assert (before.leaves == after.leaves).all()
    assert before.scores.tobytes() == after.scores.tobytes()


def test_text_written_by_hand_prints_as_it_was_written():
    text = (CASES / "small.forest").read_text()
    forest = parse_forest(text)
    assert print_forest(forest) == text
    assert [feature.name for feature in forest.features] == ["a b", '"; $finish', "1st"]
    found = evaluate(forest, [[89, 0, -8, 1], [90, 0, 0, 2], [0, 0, float("nan"), 4]])
    assert found.scores[:, 0].tolist() == [-3, 4, -3]
    assert found.decision.tolist() == ["no", "yes", "no"]
    assert found.leaves.tolist() == [[3, 3], [2, 2], [3, 3]]


@settings(deadline=None, max_examples=examples(150))
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.text(max_size=4))
def test_damaged_text_is_refused_with_a_clear_error(seed, place, junk):
    text = print_forest(random_forest(seed % 50, seed % 2 == 0))
    place %= len(text)
    damaged = text[:place] + junk + text[place + 1 :]
    try:
        parse_forest(damaged)
    except ForestcError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no trees"),
        ("forest 1\ntree outputs 0\n0: leaf 1.0\n", "not a forest's text form|lines that start with"),
        ("color red\ntree outputs 0\n0: leaf 1.0\n", "unknown line"),
    ],
)
def test_text_of_something_else(text, message):
    with pytest.raises(ModelError, match=message):
        parse_forest(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("leaf 5", "leaf 99999999999999999999", "too large|int"),
        ("0 < 90 ? 1 : 2\n1: 1", "0 < 99999999999999999999 ? 1 : 2\n1: 1", "too large|int"),
        ('["no", "yes"]', "[" * 100_000, "not a forest's text form"),
        ("columns 4", "columns 999999999", "999999999 columns"),
        ("category<5>", "category<9999999>", "number type"),
        ("{1,4}", "{1,6}", "tree 1, node 0, feature '1st': the set holds a code outside 0 to 5"),
    ],
)
def test_numbers_past_all_bounds_are_refused(old, new, message):
    text = (CASES / "small.forest").read_text()
    assert old in text
    with pytest.raises(ModelError, match=message):
        parse_forest(text.replace(old, new, 1))


@pytest.mark.parametrize(("number", "raw"), [("float32", "float32"), ("float64", "float32"), ("float32", "float64")])
def test_a_threshold_is_of_its_feature_s_type(number, raw):
    """For float32 values x < 0.1 and x < (float32) 0.1 are the same; only the latter threshold is a float32."""
    text = print_forest(random_forest(0, False)).split("tree")[0]
    text = re.sub('feature "[^\n]*\n', "", text)
    text = re.sub("columns .*\n", f'columns 1\nfeature "f" {number} column 0 raw {raw}\n', text)
    tree = "tree outputs 0\n0: 0 < {} ? 1 : 2\n1: leaf 0.0\n2: leaf 1.0\n"
    for fine in ("0.10000000149011612", "-0.0", "inf"):
        assert parse_forest(text + tree.format(fine)).n_nodes == 3
    for wrong in ("0.1", "1e300", "16777217.0"):
        with pytest.raises(ModelError, match=r"tree 0, node 0, feature 'f': threshold .* not a float32"):
            parse_forest(text + tree.format(wrong))


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10**6), st.sampled_from(["floats", "any", "average", "median", "means"]))
def test_a_reader_written_from_the_page_answers_as_forestc_does(seed, kind):
    forest = random_forest(seed, kind != "floats", "any" if kind == "floats" else kind)
    rows = troublesome_rows(forest, seed, 12)
    expected, text = evaluate(forest, rows), Text(print_forest(forest))
    for at, row in enumerate(rows.tolist()):
        leaves, scores, decided = text.answer(row)
        assert leaves == expected.leaves[at].tolist()
        assert scores == expected.scores[at].tolist()
        if forest.decides:
            assert decided == np.atleast_1d(expected.decision[at]).tolist()
