"""Tests what a program can check on pages: links lead somewhere, commands and passes exist, no page is left out."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer
from docs.blocks import blocks
from markdown_it import MarkdownIt

import forestc
from forestc import papers
from forestc.cli import app
from forestc.passes import PASSES
from forestc.passes.base import parse_passes

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))
import _figures  # noqa: E402

NOTES = ROOT / "benchmarks" / "NOTES.md"
BUILT = ("notes.md", "command-line.md")  # pages that Sphinx makes
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name not in BUILT)
COMMANDS = typer.main.get_command(app).commands


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def links(page: Path):
    """Returns the targets of the links and pictures of a page, without other sites."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target and not re.match(r"[a-z]+:", str(target)):
                yield str(target)


def anchors(page: Path) -> set[str]:
    """Returns the anchors that a repository host and Sphinx make from a page's headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.fixture
def generate():
    return importlib.import_module("_generate")


@pytest.mark.parametrize("page", [ROOT / "README.md", NOTES, *PAGES], ids=name)
def test_measured_numbers_have_a_source(page):
    """If this fails, take the number from a result by a marker (see docs/_figures.py), or mark its kind behind it."""
    assert not list(_figures.unsourced(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It takes 13 s and 1.5 MB of 2,000 bytes.", ["13 s", "1.5 MB", "2,000 bytes"]),
        ("It takes 13 s<!-- limit -->, 5 %<!-- example -->, and 7 % more.", ["7 %"]),
        ("A 2-minute run on 3 boards, at `--clock 12 MHz`, `a\n5 %`.\n\n    12 s\n\n```\n13 s\n```\n", ["2-minute"]),
        ("<!-- figure: a.rows[b].c -->12 LUTs<!-- end --> of 14 LUTs", ["14 LUTs"]),
        ("<!-- figure: a.rows[b].c -->12<!-- end --> LUTs", []),
        ("| what | LUTs | trees |\n| --- | --- | --- |\n| a | 5 | 6 |\n", ["5 LUTs"]),
        ("<!-- table: a.rows -->\n| LUTs |\n| --- |\n| 5 |\n\n<!-- end of table -->", []),
    ],
)
def test_a_number_without_a_source_is_found(text, numbers):
    assert list(_figures.unsourced(text)) == numbers


def test_a_figure_is_what_its_result_has():
    rows = [{"a": "x", "b": 1, "LUTs": 1234}, {"a": "x", "b": 2, "LUTs": 0.25}]
    known = {"some": {"rows": rows, "all s": 1.5, "more": {"bytes_of_c": 7}}}
    at = "<!-- figure: some.{} -->9<!-- end -->"
    for path, text in [("rows[x; 1].LUTs", "1,234"), ("rows[x; 2].LUTs:.1f", "0.2"), ("more.bytes of c", "7")]:
        assert _figures.filled(at.format(path), known) == at.format(path).replace(">9<", f">{text}<")
    for path in ("rows[x].LUTs", "rows[y].LUTs", "rows[x; 1].bytes", "other.rows"):
        with pytest.raises(KeyError):
            _figures.filled(at.format(path), known)
    shown = _figures.filled("<!-- table: some.rows[x; 2]: LUTs -->\nold\n<!-- end of table -->", known)
    assert "| LUTs |\n| --- |\n| 0.25 |\n" in shown and "old" not in shown and "1,234" not in shown
    with pytest.raises(ValueError, match="a table lacks"):
        _figures.filled("<!-- table: some.rows: LUTs -->\n", known)


@pytest.mark.parametrize("page", [ROOT / "README.md", NOTES, *PAGES], ids=name)
def test_links_lead_to_files_and_headings(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{name(page)} links to {target}"
        assert not anchor or anchor in anchors(file), f"{name(page)} links to {target}"


def test_what_is_written_by_a_script_is_as_it_would_be_written(generate):
    """If this fails, run python docs/_generate.py and commit the changes."""
    assert generate.main(["--check"]) == 0


def test_the_script_names_what_is_out_of_date(generate, tmp_path, monkeypatch, capsys):
    page, result = tmp_path / "docs" / "page.md", tmp_path / "docs" / "benchmarks" / "speed.json"
    result.parent.mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "NOTES.md").write_text("# Notes\n")
    result.write_text('{"title": "speed", "rows": [{"what": "a", "x_s": 1.5}, {"what": "b", "more": 2000}]}')
    page.write_text("# Page\n\n<!-- table: speed.rows: what | x s -->\nold\n<!-- end of table -->\n")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(generate, "PAGES", {})
    (tmp_path / "docs" / "reference").mkdir()
    assert generate.main(["--check"]) == 1
    printed = capsys.readouterr()
    assert "docs/page.md is not up to date" in printed.out and "run: python docs/_generate.py" in printed.err
    assert "old" in page.read_text()
    assert generate.main([]) == 0 and generate.main(["--check"]) == 0
    assert "| what | x s |\n| --- | --- |\n| a | 1.5 |\n| b |  |\n" in page.read_text()


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[[^\]]*\]\(([\w/-]+\.md)\)$", index, re.MULTILINE)  # the pattern of docs/conf.py
    assert sorted(listed) == sorted({str(path.relative_to(ROOT / "docs")) for path in PAGES} - {"index.md"})
    assert "(../benchmarks/NOTES.md)" in index and "(../forestc/cli/verbs.py)" in index


def commands():
    """Yields each line of a code block that calls forestc, joined with its lines after backslashes."""
    for page in [ROOT / "README.md", *PAGES]:
        for block in blocks(page):
            for line in block.text.replace("\\\n", " ").splitlines():
                if line.strip().startswith("forestc "):
                    yield pytest.param(line.strip(), id=f"{name(page)}: {line.strip()[:60]}")


@pytest.mark.parametrize("line", list(commands()))
def test_commands_and_their_options_exist(line):
    words = shlex.split(line, comments=True)
    if words[1].startswith("--"):
        return
    command = COMMANDS[words[1]]
    options = {spelt: option for option in command.params for spelt in option.opts if spelt.startswith("-")}
    given, rest, value_of = [], [], ""
    for word in words[2:]:
        if value_of:
            if value_of in ("-p", "--passes") and word != "none":
                parse_passes(word, PASSES)
            value_of = ""
        elif re.fullmatch(r"-O\d", word):
            given.append("-O")
        elif word.startswith("-"):
            assert word in options, f"{line}: {words[1]} has no {word}"
            given.append(word)
            value_of = "" if options[word].is_flag else word
        else:
            rest.append(word)
    assert not value_of, f"{line}: {value_of} has no value"
    for option in command.params:
        if option.required and option.param_type_name == "option":
            assert set(option.opts) & set(given), f"{line}: {option.opts} is required"
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    assert len(rest) <= len(arguments) or any(p.nargs == -1 for p in arguments), f"{line}: {rest}"


def passes_in_text():
    """Yields passes with options that pages mention between backticks, in `-p`, or in a table of options."""
    names = "|".join(PASSES)
    spelt = re.compile(rf'`((?:{names})\{{[^`]*\}})`|-p\s+"((?:{names})[^"]*)"')
    for page in [ROOT / "README.md", *PAGES]:
        for found in spelt.finditer(page.read_text(encoding="utf-8")):
            yield pytest.param(found[1] or found[2], id=f"{name(page)}: {found[1] or found[2]}")


@pytest.mark.parametrize("text", list(passes_in_text()))
def test_passes_and_their_options_exist(text):
    assert parse_passes(" ".join(text.split()), PASSES)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=name)
def test_python_blocks_are_python(page):
    for block in blocks(page):
        assert block.kind != "python" or ast.parse(block.text)


def test_the_page_of_the_api_has_every_public_name():
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto(?:function|class):: ([\w.]+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(
        [f"forestc.{name}" for name in forestc.__all__] + [f"forestc.papers.{name}" for name in papers.__all__]
    )
