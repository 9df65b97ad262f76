"""The pages are true as far as a program can tell: links lead somewhere, commands and passes exist, all is shown."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import typer
from docs.blocks import blocks
from markdown_it import MarkdownIt

from forestc.cli import app
from forestc.passes import PASSES
from forestc.passes.base import parse_passes

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts)
MADE = ("command-line", "passes", "api", "manifest")  # pages that docs/_generate.py writes
COMMANDS = typer.main.get_command(app).commands
README_LINES = 130


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def links(page: Path):
    """Where the links and pictures of a page lead, those to other sites left out."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target and not re.match(r"[a-z]+:", str(target)):
                yield str(target)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=name)
def test_links_lead_to_files(page):
    for target in links(page):
        file = (page.parent / target.partition("#")[0]).resolve()
        made = file.parent == ROOT / "docs" / "generated" and file.stem in MADE and page.name != "README.md"
        assert made or file.is_file(), f"{name(page)} links to {target}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split()
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in PAGES} - {"index"}
    assert pages | {f"generated/{page}" for page in MADE} == {
        word for word in index if re.fullmatch(r"\w+/[\w-]+", word)
    }


def test_every_benchmark_file_is_shown():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    files = sorted((ROOT / "docs" / "benchmarks").glob("*.json"))
    assert files
    for file in files:
        assert f"generated/tables/{file.stem}.md" in pages


def commands():
    """Each line of a code block that calls forestc, with the lines that a backslash joins to it."""
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
    assert len(rest) <= sum(p.param_type_name == "argument" for p in command.params), f"{line}: {rest}"


def passes_in_text():
    """Passes with options that pages mention between backticks, or in `-p`, or in a table of options."""
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


def test_generated_pages_tell_every_option_and_name():
    spec = importlib.util.spec_from_file_location("_generate", ROOT / "docs" / "_generate.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert tuple(made.PAGES) == MADE
    page = made.commands_page()
    for command, told in COMMANDS.items():
        assert f"## {command}\n" in page
        for option in told.params:
            if option.param_type_name == "option" and option.name != "help":
                assert all(f"`{spelt}" in page for spelt in option.opts), option.opts
    passes = made.passes_page()
    for step, kind in PASSES.items():
        assert f"## {step}\n" in passes
        assert all(f"| `{field.name}` |" in passes for field in fields(kind))
    manifest = made.manifest_page()
    assert "| `latency_cycles` | integer |" in manifest and "## `made.options`" in manifest
