from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forestc.backends.names import RESERVED, c_string, feature_name, identifier

AWKWARD = [
    "x",
    "input",
    "a b",
    "1st",
    "module",
    '"; $finish',
    "",
    "é",
    "名前" * 150,
    "*/",
    "\n`define",
    "_",
    "int",
    "a" * 300,
]


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_become_identifiers(name):
    for made in (identifier(name), feature_name(3, name)):
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", made)
        assert made not in RESERVED
        assert len(made) <= 48


@given(st.lists(st.text(max_size=60), max_size=20))
def test_features_keep_apart_whatever_they_are_called(names):
    made = [feature_name(index, name) for index, name in enumerate(names)]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"x\d+(_[A-Za-z0-9_]+)?", name) for name in made)


@given(st.text())
def test_c_strings_hold_any_text(text):
    literal = c_string(text)
    assert re.fullmatch(r'"(?:[ !#->@-\[\]-~]|\\[0-7]{3})*"', literal)
    data = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), literal[1:-1].encode())
    assert data == text.encode("utf-8", "replace")
