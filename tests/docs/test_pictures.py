"""The pictures of results say what the results have."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))
import _figures  # noqa: E402
import _pictures  # noqa: E402

RESULTS = _figures.results()


@pytest.mark.parametrize("name", _pictures.PICTURES)
def test_a_picture_is_an_svg_with_its_text_that_other_numbers_change(name):
    text = _pictures.drawn(name, RESULTS)
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") and f"![{root.get('aria-label')}](" in _pictures.linked(name, RESULTS)
    assert "prefers-color-scheme:dark" in text and text == _pictures.drawn(name, RESULTS)
    changed = copy.deepcopy({name: RESULTS[name]})
    for rows in (part for part in changed[name].values() if isinstance(part, list)):
        for row in (row for row in rows if isinstance(row, dict)):
            row |= {key: value * 0.9 for key, value in row.items() if isinstance(value, float)}
            row |= {key: value + 1 for key, value in row.items() if type(value) is int}
    assert _pictures.drawn(name, changed) != text
