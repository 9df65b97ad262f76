"""Tests that tables fit the terminal without a broken word, and list the columns left out."""

import re

import pytest

from forestc.report.tables import table
from forestc.report.widths import LONGEST, as_text

HEADS = ("feature", "distinct conditions", "instructions at most", "guarantee")
ROWS = [("worst perimeter", "1,954 to 335", "12,074", "exact-on-data (paths)"), ("area", "7", "9", "exact")]
WORDS = {word for row in (HEADS, *ROWS) for cell in row for word in cell.split()}


def columns(width, rows=ROWS):
    """Returns the words of the printed table, and its text."""
    text = as_text([table("a title", HEADS, rows)], width)
    assert max(map(len, text.splitlines())) <= width
    body = [line for line in text.splitlines() if line.startswith(("┃", "│"))]
    return {word for line in body for word in re.split(r"[┃│\s]+", line) if word}, text


@pytest.mark.parametrize("width", [30, 40, 50, 60, 80, 120])
def test_no_word_is_broken(width):
    words, text = columns(width)
    assert words <= WORDS
    assert ("--wide" in text) == (words != WORDS)


def test_columns_go_from_the_end():
    assert columns(80)[0] == WORDS
    words, text = columns(45)
    assert "guarantee" not in words and {"feature", "instructions"} <= words
    assert "without guarantee: --wide shows all" in text


def test_a_path_may_be_broken_before_all_columns_go():
    words, _ = columns(80, [("x" * (LONGEST + 20), "1", "2", "3")])
    assert {"1", "2", "3"} <= words
