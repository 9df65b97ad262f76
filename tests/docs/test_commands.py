"""Tests that the commands of simulators and of yosys on pages work as printed, in a folder compiled with the page's
options. Only NAME is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from docs.blocks import blocks
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.cli import main

PAGES = Path(__file__).parents[2] / "docs" / "howto"
TOOLS = ("cd ", "ghdl ", "iverilog ", "yosys ", "SIM=")
# SAID gives the text that shows success, by the beginning of a command.
SAID = {"ghdl -r": "PASS", "vvp": "PASS", "SIM=": "FAIL=0"}
SLOW = ("SIM=", "yosys ")
# Each page has the folder in which its commands run.
FOLDERS = {"vhdl.md": "out/vhdl", "engine.md": ".", "streams.md": "."}


def printed() -> dict[str, list[str]]:
    """Returns the commands of each page in order."""
    found = {}
    for page in sorted(PAGES.glob("*.md")):
        lines = [line for block in blocks(page) for line in block.text.splitlines()]
        if commands := [line for line in lines if line.startswith(TOOLS)]:
            found[page.name] = commands
    return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles folders with the forestc commands of the pages."""
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    work = tmp_path_factory.mktemp("printed")
    stream = forestc.StreamOptions(tdata_bits=64, user_bits=8, registers=True)
    for page, targets in (("vhdl.md", "vhdl"), ("streams.md", "verilog"), ("engine.md", "engine")):
        options = {} if targets == "engine" else {"latency": 3, "stream": stream}
        forestc.compile(model, X, work / page / "out", label=y, targets=targets, name="model", **options)
    with pytest.raises(SystemExit) as ended:
        words = "--trees 4 --nodes 2000 --features 16 --device ice40-up5k -o"
        main(["engine", *words.split(), str(work / "engine.md" / "engine")])
    assert not ended.value.code
    return work


def test_each_page_that_prints_commands_is_run():
    assert set(printed()) == set(FOLDERS)
    assert [line.split()[0] for line in printed()["vhdl.md"]] == [*["ghdl"] * 6, "SIM=ghdl"]


@pytest.mark.parametrize("page", [page for page in FOLDERS if page != "streams.md"])
def test_commands_run_as_they_are_printed(page, compiled, need_tool):
    assert runs([line for line in printed()[page] if not line.startswith(SLOW)], page, compiled, need_tool)


@pytest.mark.long
@pytest.mark.parametrize("page", FOLDERS)
def test_slow_commands_run_as_they_are_printed(page, compiled, need_tool):
    runs([line for line in printed()[page] if line.startswith(SLOW)], page, compiled, need_tool)


def runs(lines, page, compiled, need_tool):
    """Runs commands; returns how many."""
    here = compiled / page / FOLDERS[page]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = 0
    for line in lines:
        if line.startswith("cd "):
            here = compiled / page / line.removeprefix("cd ")
            continue
        need_tool(line.split()[0].removeprefix("SIM="))
        command = ["sh", "-c", line.replace("NAME", "model")]
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"{page}: {line}\n{said}"
        for part, expected in SAID.items():
            assert part not in line or expected in said, f"{page}: {line}\n{said}"
        assert not (said and line.startswith("ghdl -a")), f"{page}: {line}\n{said}"
        ran += 1
    return ran
