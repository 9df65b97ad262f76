"""Finds the code blocks of a Markdown page."""

from __future__ import annotations

from pathlib import Path

from docs.page_runner import Block
from markdown_it import MarkdownIt


def blocks(page: Path) -> list[Block]:
    """Returns all code blocks in order."""
    found = []
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block"):
            continue
        assert token.map is not None
        kind, text, file = token.info.strip(), token.content, ""
        if kind.startswith("{code-block}"):
            first, text = text.split("\n", 1)
            assert first.startswith(":caption: "), f"{page}: line {token.map[0]}: a code-block without a caption"
            kind, file = kind.removeprefix("{code-block}").strip(), first.removeprefix(":caption: ").strip()
            text = text.lstrip("\n")
        found.append(Block(kind, text, token.map[0] + 1, file))
    return found
