"""Code and pages speak plainly: words and beginnings that they do without."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VAGUE = {"one", "each", "found"}  # names that say nothing of what they hold
CONSTANTS = "kernel.py"  # of the simulator: one, two, three are numbers of 64 bits
UNWANTED = re.compile(r'\btold\b|\bby heart\b|\bso many\b|\bdear(?:er|est)?\b|"""Of\b')


@pytest.mark.parametrize("folder", ["forestc", "hw_sim", "hdl_templates", "tests", "benchmarks", "examples"])
def test_words_that_code_does_without(folder):
    paths = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".py", ".j2")]
    lines = [(path, line) for path in paths if path != Path(__file__) for line in path.read_text().splitlines()]
    assert len(lines) > (400 if folder == "examples" else 1000)
    assert not [f"{path.relative_to(ROOT)}: {line.strip()}" for path, line in lines if UNWANTED.search(line)]


def test_words_that_pages_do_without():
    pages = [ROOT / "README.md", ROOT / "benchmarks" / "NOTES.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages = [path for path in pages if path.name != "notes.md"]  # what a build of the pages leaves: a copy of NOTES.md
    lines = [(path, line) for path in pages for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 1000
    assert not [f"{path.relative_to(ROOT)}: {line.strip()}" for path, line in lines if UNWANTED.search(line)]


@pytest.mark.parametrize("folder", ["forestc", "hw_sim"])
def test_local_names_say_what_they_hold(folder):
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if path.name != CONSTANTS]
    nodes = [(path, node) for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    assert len(nodes) > 1000
    attributes = {id(node.target) for _, node in nodes if isinstance(node, ast.AnnAssign)}
    vague = [(path, node) for path, node in nodes if isinstance(node, ast.Name) and node.id in VAGUE]
    assert not [f"{path.relative_to(ROOT)}:{node.lineno}" for path, node in vague if id(node) not in attributes]


def docstring_lines(kind):
    """The lines of the docstrings in a class: public ones have sections, which are as long as the lists in them."""
    parts = [part for part in ast.walk(kind) if isinstance(part, ast.ClassDef | ast.FunctionDef)]
    texts = [part.body[0] for part in parts if ast.get_docstring(part)]
    return sum(text.end_lineno - text.lineno + 1 for text in texts)


def test_a_class_has_a_name_of_its_own_and_fits_300_lines():
    paths = [path for folder in ("forestc", "hw_sim") for path in sorted((ROOT / folder).rglob("*.py"))]
    nodes = [(path, node) for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    homes, lengths = {}, {}
    for path, node in nodes:
        if isinstance(node, ast.ClassDef):
            homes.setdefault(node.name, set()).add(str(path.relative_to(ROOT)))
            lengths[node.name] = node.end_lineno - node.lineno + 1 - docstring_lines(node)
    assert len(homes) > 300
    assert not {name: places for name, places in homes.items() if len(places) > 1}
    assert not {name: lines for name, lines in lengths.items() if lines > 300}
