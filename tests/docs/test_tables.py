"""Tests pages that list a table of the code (engines, verbs, targets, passes, kinds of models, boards): they list all
of it, and their limits are the code's."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from docs.blocks import blocks
from docs.test_pages import COMMANDS, PAGES, ROOT, name
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.table import RUNNERS, TARGETS
from forestc.costs.devices import DEVICES
from forestc.errors import ModelError
from forestc.forest.ir import Aggregate, Combine, Decision, LinkKind
from forestc.forest.text import _HEADER, parse_forest, print_forest
from forestc.frontends.kinds import FOLDERS, KINDS
from forestc.netlist.ir import Cell
from forestc.netlist.ports import PortKind
from forestc.netlist.text import operation, parse_netlist, print_netlist
from forestc.passes import PASSES
from forestc.passes.round_leaves.rounding import refuse_sums
from forestc.training import TRAINERS

REFERENCE, HOWTO, EXPLANATION = (ROOT / "docs" / folder for folder in ("reference", "howto", "explanation"))
TABLES = {
    "engines of check": set(RUNNERS),
    "targets": set(TARGETS) - {"engine"},
    "passes": set(PASSES),
    "commands": set(COMMANDS),
    "trainers": set(TRAINERS),
    "devices": set(DEVICES),
}
MOST = 0.7  # share of a table: a paragraph that names more of it counts as a list, and must name all


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def named(text: str) -> set[str]:
    """Returns the texts between backticks, as they are and up to the first blank."""
    spelt = re.findall(r"`([^`\n]+)`", text)
    return {*spelt, *(word.split(" ")[0].removeprefix("forestc ") for word in spelt)}


def incomplete(text: str) -> list[str]:
    """Returns the tables of the code that a paragraph or table of the page names mostly, but not completely."""
    found = []
    for part in re.split(r"\n\s*\n", text):
        for table, names in TABLES.items():
            here = named(part) & names
            if MOST * len(names) <= len(here) < len(names):
                found.append(f"{table} without {', '.join(sorted(names - here))}")
    return found


WRITTEN = [
    page for page in [ROOT / "README.md", *PAGES] if "<!-- Made by" not in read(page)
]  # Other tables come from the code.


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_a_page_that_lists_a_table_lists_all_of_it(page):
    assert not incomplete(read(page))


def rows_of(page: Path, head: str) -> list[str]:
    """Returns the first cells of the table with this head, without backticks."""
    lines = read(page).split(f"| {head} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [line.split("|")[1].strip().strip("`") for line in lines]


def test_check_s_page_has_every_engine():
    assert sorted(rows_of(HOWTO / "check.md", "engine")) == sorted(RUNNERS)


@pytest.mark.parametrize(
    ("command", "option", "table"), [("check", "--engines", RUNNERS), ("compile", "--target", TARGETS)]
)
def test_help_lists_every_engine_and_target(command, option, table):
    (found,) = [each for each in COMMANDS[command].params if option in each.opts]
    listed = found.help.split("a list of: ")[1].split(";")[0]
    assert sorted(listed.split(", ")) == sorted(table)


def test_the_folder_s_page_has_the_files_of_every_target():
    page = read(REFERENCE / "folder.md")
    assert all(f"| `{target}/" in page for target in TARGETS)


@pytest.mark.parametrize(("page", "targets"), [(REFERENCE / "folder.md", TARGETS), (HOWTO / "vhdl.md", ("vhdl",))])
def test_a_table_of_files_has_every_file_that_is_written(page, targets, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    stream = forestc.StreamOptions(registers=True)
    folder = forestc.compile(
        model, X, tmp_path / "out", label=y, name="model", targets=targets, stream=stream
    ).design.folder
    files = {(path.parent.name, path.name.replace("model", "NAME")) for path in folder.glob("*/*")}
    spelt = {word.rsplit("/", 1)[-1] for word in named(read(page))}
    shared = tuple(word for word in spelt if word.startswith(("_", ".")))  # `NAME_hls.cpp`, `.h`, `_tb.cpp`
    missing = {(place, file) for place, file in files if file not in spelt}
    assert len(files) > 15
    assert not {file for place, file in missing if place not in ("hls", "engine") or not file.endswith(shared)}


def test_the_pages_on_models_have_every_kind_of_file():
    page = " ".join(read(REFERENCE / "models.md").split())
    for kind in KINDS:
        assert not kind.do or kind.name in page, kind.name
    for what, _ in FOLDERS.values():
        assert what.removesuffix(", which is not read") in page, what


def test_the_table_of_models_has_every_kind_that_is_read():
    (table,) = re.findall(r"\| source \|.*?\n\n", read(REFERENCE / "models.md"), re.DOTALL)
    rows = [line.split("|")[2] for line in table.splitlines()[2:] if line]
    known = [kind for kind in KINDS if not kind.do]
    assert not [kind.name for kind in known if kind.name not in table]
    for row in rows:
        kinds = [kind for kind in known if kind.name in row]
        assert kinds and ("live object" in row) == any(kind.live for kind in kinds), row


def kinds_that_are_not_compiled():
    """Makes forests that `compile` refuses, by changes of the vote on the page of the text form."""
    (vote,) = [block.text for block in blocks(REFERENCE / "forest-text.md") if block.text.startswith('forest "vote"')]
    regression = vote
    for old, new in (
        ("decision argmax on scores", "decision none on scores"),
        ("decision threshold 0.0 on scores", "decision none on scores"),
        ('classes ["a", "b"]', "classes []"),
        ("combine vote 1.0 2.0", "combine each"),
    ):
        regression = regression.replace(old, new)
    mean = vote.replace("combine vote", "combine average").replace("link softmax", "link softmax-zero")
    least = vote.replace("part-aggregate sum float32", "part-aggregate min float32")
    return {"minima and maxima": least, "one part is a regression": regression, "after a [link]": mean}


@pytest.mark.parametrize("said", kinds_that_are_not_compiled())
def test_what_the_page_calls_not_compiled_is_read_and_refused(said):
    (part,) = re.findall(r"## What is read but not compiled\n(.*?)\n## ", read(REFERENCE / "models.md"), re.DOTALL)
    assert said in part and part.count("\n- ") == 4
    forest = parse_forest(kinds_that_are_not_compiled()[said])
    with pytest.raises(ModelError, match="read but not compiled"):
        refuse_sums(forest)


def test_layouts_of_c_are_all_explained():
    page = read(HOWTO / "c.md")
    assert all(f"| `{layout}`" in page for layout in LAYOUTS)


# The text form of forests

TEXT_FORM = REFERENCE / "forest-text.md"


@pytest.mark.parametrize("block", blocks(TEXT_FORM), ids=lambda block: block.text.split("\n", 1)[0])
def test_examples_of_the_text_form_parse_and_print_as_they_are(block):
    assert block.kind == "text" and print_forest(parse_forest(block.text)) == block.text


def test_the_text_form_s_page_names_every_construct():
    page = read(TEXT_FORM)
    words = named(page)
    assert _HEADER | {"tree"} <= words
    literals = (LinkKind, *(get_type_hints(kind)["kind"] for kind in (Aggregate, Decision, Combine)))
    assert {word for literal in literals for word in get_args(literal)} <= words


# The text form of netlists

NETLIST_TEXT = REFERENCE / "netlist-text.md"


@pytest.mark.parametrize("block", blocks(NETLIST_TEXT), ids=lambda block: block.text.split("\n", 1)[0])
def test_examples_of_netlists_parse_and_print_as_they_are(block):
    assert block.kind == "text" and print_netlist(parse_netlist(block.text)) == block.text


def test_the_page_of_netlists_has_every_cell_and_every_kind_of_port():
    page = read(NETLIST_TEXT)
    cells = {operation(kind) for kind in get_args(Cell)}
    assert set(re.findall(r"^### `(\w+)`$", page, re.MULTILINE)) == cells
    assert set(re.findall(r"^%\d+ = (\w+)", page, re.MULTILINE)) == cells
    assert set(get_args(PortKind)) <= named(page)


# The Makefile


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=name)
def test_make_knows_what_a_page_tells_to_make(page):
    targets = set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    expected = set(re.findall(r"(?:`|^    )make ([a-z-]+)", read(page), re.MULTILINE))
    assert {"demo", "test"} <= targets and expected <= targets


# Limits


def limits() -> list[tuple[str, str]]:
    """Yields each constant of the code with its text on a page."""
    return re.findall(r"^\| [^|]* \| ([\d,]+) \| [^|]* \| `([\w.]+)` \|$", read(REFERENCE / "limits.md"), re.MULTILINE)


@pytest.mark.parametrize(("number", "constant"), limits())
def test_limits_are_the_code_s(number, constant):
    module, _, attribute = constant.rpartition(".")
    assert f"{getattr(import_module(module), attribute):,}" == number


def test_every_line_of_the_table_of_limits_names_its_constant():
    table = read(REFERENCE / "limits.md").split("| constant |", 1)[1].split("\n\n", 1)[0]
    assert len(limits()) == table.count("\n| ") >= 20


@pytest.mark.parametrize(
    "page", [REFERENCE / "limits.md", *sorted(HOWTO.glob("add-*.md")), ROOT / "CONTRIBUTING.md"], ids=name
)
def test_files_that_a_page_names_are_there(page):
    places = ("forestc/", "tests/", "benchmarks/", "hdl_templates/", "docs/")
    paths = {
        word for word in named(read(page)) if word.startswith(places) and "/my_" not in word and "_my_" not in word
    }
    assert len(paths) > 2 and not [path for path in paths if not (ROOT / path).exists()]
