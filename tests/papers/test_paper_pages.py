"""Runs the examples of the pages about the papers' methods."""

from pathlib import Path

import pytest
from docs.blocks import blocks
from docs.page_runner import run_page

PAGES = sorted((Path(__file__).parents[2] / "docs" / "explanation").glob("papers-*.md"))


def test_there_are_pages():
    assert len(PAGES) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(str(page), blocks(page)) >= 1
