"""Code and pages speak plainly: words and beginnings that they do without."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNWANTED = re.compile(r'\btold\b|\bby heart\b|\bso many\b|\bdear(?:er|est)?\b|"""Of\b')


@pytest.mark.parametrize("folder", ["forestc", "hw_sim"])
def test_words_that_code_does_without(folder):
    lines = [(path, line) for path in sorted((ROOT / folder).rglob("*.py")) for line in path.read_text().splitlines()]
    assert len(lines) > 1000
    assert not [f"{path.relative_to(ROOT)}: {line.strip()}" for path, line in lines if UNWANTED.search(line)]


def test_words_that_pages_do_without():
    pages = [ROOT / "README.md", ROOT / "benchmarks" / "NOTES.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages = [path for path in pages if path.name != "notes.md"]  # what a build of the pages leaves: a copy of NOTES.md
    lines = [(path, line) for path in pages for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 1000
    assert not [f"{path.relative_to(ROOT)}: {line.strip()}" for path, line in lines if UNWANTED.search(line)]
