"""What docs/conf.py makes of pages: tabs, languages of code, columns of numbers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))

PAGE = "<!-- tabs -->\n\n**Command line**\n\n    forestc check out\n\n**Python**\n\nText.\n\n<!-- end of tabs -->\n"
TABS = """:::::{tab-set}
::::{tab-item} Command line
:sync: Command line

    forestc check out
::::

::::{tab-item} Python
:sync: Python

Text.
::::
:::::
"""

BOARDS = ["**iCEBreaker**", "**ULX3S**", "**Tang Nano 9K**"]  # in the tutorial for boards


@pytest.fixture(scope="module")
def conf():
    return importlib.import_module("conf")


def table(*columns: list[str]):
    """A table with a heading and these columns."""
    from docutils import nodes

    def row(texts):
        return nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in texts))

    rows = list(zip(*columns, strict=True))
    group = nodes.tgroup("", nodes.thead("", row(rows[0])), nodes.tbody("", *map(row, rows[1:])), cols=len(columns))
    return nodes.table("", group)


def test_parts_between_the_marks_become_tabs(conf):
    source = [f"Before.\n\n{PAGE}\nAfter.\n"]
    conf.tabs(None, "howto/check", source)
    assert source == [f"Before.\n\n{TABS}\nAfter.\n"]


def test_every_page_closes_its_tabs_and_names_them():
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert text.count("\n<!-- tabs -->\n") == text.count("\n<!-- end of tabs -->\n"), page
        for part in text.split("\n<!-- tabs -->\n")[1:]:
            inside = part.split("<!-- end of tabs -->")[0]
            titles = [line for line in inside.splitlines() if line.startswith("**") and line.endswith("**")]
            assert titles == BOARDS if page.name == "board.md" else titles == ["**Command line**", "**Python**"], page


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("forestc check out", "sh"),
        ("SIM=ghdl python test_NAME_axis.py", "sh"),
        ("import forestc\nforestc.check(1)", "python"),
        ("name,lut\nTreeLUT,900", "text"),
        ("use work.NAME_pkg.all;", "text"),
    ],
)
def test_indented_code_gets_its_language(conf, text, language):
    from docutils import nodes

    block = nodes.literal_block(text, text)
    conf.name_languages(None, block)
    assert block["language"] == language


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (["12", "1,024", "-0.5", "95 %"], False),
        (["12", "1,024", "-0.5", "3e-05", "95%"], True),
        (["", "7", "-", "none"], True),
        (["", "-"], False),
        (["4", "two"], False),
    ],
)
def test_columns_of_numbers_stand_at_the_right(conf, cells, right):
    from docutils import nodes

    made = table(["LUTs", *cells], ["name", *("x" for _ in cells)])
    conf.align_numbers(None, made)
    found = [entry["classes"] for entry in made.findall(nodes.entry)]
    assert found[::2] == [["number"] if right else []] * (len(cells) + 1)
    assert found[1::2] == [[]] * (len(cells) + 1)
