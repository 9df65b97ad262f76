"""Runs the blocks of a page in order in the current folder, and compares their output with the page.

It needs the standard library alone: `python page_runner.py BLOCKS.json` runs a page in an environment that has only the
packages of its own install line.

A block with a caption becomes a file of that name. `python` blocks of a page share their names, `sh` blocks are run by
bash, and a `text` block right after either is its expected output: `...` stands for anything, and blanks do not count.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A code block. kind: its language, empty for an indented one. file: the name in its `caption`."""

    kind: str
    text: str
    line: int
    file: str = ""


def run_shell(text: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"}
    )
    assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def run_python(block: Block, page: str, names: dict) -> str:
    printed = io.StringIO()
    lines = "\n" * block.line + block.text  # With this many empty lines a traceback names the line of the page.
    with contextlib.redirect_stdout(printed):
        exec(compile(lines, page, "exec"), names)
    return printed.getvalue()


def run_page(page: str, blocks: list[Block]) -> int:
    """Runs the blocks of a page; returns how many were run."""
    names, printed, ran = {"__name__": "tutorial"}, None, 0
    for block in blocks:
        where = f"{page}, line {block.line}"
        if block.file:
            Path(block.file).write_text(block.text)
            printed = None
        elif block.kind == "text":
            assert printed is not None, f"{where}: output of nothing"
            same = doctest.OutputChecker().check_output(block.text, printed, SAME)
            assert same, f"{where} says\n{block.text}\nand this was printed:\n{printed}"
            printed = None
        elif block.kind in ("python", "sh"):
            printed = run_python(block, page, names) if block.kind == "python" else run_shell(block.text)
            ran += 1
        elif block.kind:  # An indented block is the install line, which was run before.
            raise AssertionError(f"{where}: a block of kind {block.kind!r} that nobody runs")
    return ran


if __name__ == "__main__":
    given = Path(sys.argv[1])
    print(run_page(given.stem, [Block(**block) for block in json.loads(given.read_text())]), "blocks ran")
