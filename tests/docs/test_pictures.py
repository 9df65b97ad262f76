"""The pictures of results say what the results have, and every result begins with one."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))
import _figures  # noqa: E402
import _pictures  # noqa: E402

RESULTS = _figures.results()
PAGE = (ROOT / "docs" / "benchmarks" / "index.md").read_text(encoding="utf-8")


def test_every_result_is_a_sentence_a_picture_and_a_table():
    order = re.findall(r"^<!-- (picture|table): (\w+)", PAGE, re.MULTILINE)
    names = list(_pictures.PICTURES)
    assert sorted(names) == sorted({name for _, name in order})
    assert order == [(kind, name) for name in dict.fromkeys(name for _, name in order) for kind in ("picture", "table")]
    for before in re.split(r"^<!-- picture: ", PAGE, flags=re.MULTILINE)[:-1]:
        last = before.rsplit("\n#", 1)[1].split("\n", 1)[1]
        assert last.strip().endswith(".") and "|" not in last


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


def test_a_difference_is_seen():
    changed = copy.deepcopy({"exactness": RESULTS["exactness"]})
    changed["exactness"]["rows"][0]["c"] = 1
    _, said = _pictures.exactness(changed["exactness"])
    assert "1 difference in" in said and ": 1 difference<" in _pictures.drawn("exactness", changed)
