"""Tests that every kind of design is clean under `verilator -Wall`, Icarus `-Wall` and `yosys check -assert`."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from models import KINDS, trained
from random_forests import random_forest
from thinned import only

import forestc
from forestc.backends.verilog import core as verilog
from forestc.forest.builder import changed
from forestc.lowering.trees import LoweringOptions, lower
from forestc.toolchain.verilator import find_verilator
from forestc.toolchain.yosys import run_yosys


def written(forest, folder, name, latency):
    """Writes the core of a forest to a file; returns its module's name."""
    from dataclasses import replace

    forest = replace(forest, name=name)
    outputs = "both" if forest.decides else "scores"
    netlist = lower(forest, LoweringOptions(latency=latency, outputs=outputs))
    core, _ = verilog.emit(netlist).items()
    (folder / core[0]).write_text(core[1])
    return core[0]


def lint(folder, files, need_tool):
    for tool in ("verilator", "iverilog"):
        need_tool(tool)
    verilator = find_verilator()
    assert verilator is not None
    for file in files:
        top = file.removesuffix(".v")
        for command in (
            [verilator.binary, "--lint-only", "-Wall", "--language", "1364-2005", "--top-module", top, file],
            ["iverilog", "-g2005", "-Wall", "-o", os.devnull, file],
        ):
            environment = {**os.environ, "VERILATOR_ROOT": str(verilator.root)}
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
            quiet = not done.stderr and (top not in done.stdout or "%" not in done.stdout)
            assert done.returncode == 0 and quiet, f"{command[0]} on {file}: {done.stderr[:800]}"
    checks = "\n".join(
        f"read_verilog {file}\nhierarchy -check -top {file.removesuffix('.v')}\nproc\ncheck -assert\ndesign -reset"
        for file in files
    )
    run_yosys(checks, folder, writes=[])


@pytest.mark.parametrize("part", only(range(5), 0))
def test_trained_models_pass_three_linters(part, tmp_path, need_tool):
    files = []
    kinds = [kind for kind in KINDS if not kind.startswith("extra")]  # Extra trees are written like other trees.
    for place, kind in enumerate(kinds[part::5]):
        model, X, y = trained(kind)
        forest = forestc.quantize(model, X, None if y.dtype.kind in "OU" else y)
        forest = changed(forest, trees=forest.trees[: max(3, forest.n_outputs)])  # more give the same lines
        files.append(written(forest, tmp_path, f"kind{place}", place % 4))
    lint(tmp_path, files, need_tool)


@pytest.mark.parametrize("latency", [0, 3])
def test_random_forests_pass_three_linters(latency, tmp_path, need_tool):
    files = [written(random_forest(seed, True), tmp_path, f"random{seed}", latency) for seed in range(15)]
    lint(tmp_path, files, need_tool)
    shutil.rmtree(tmp_path)
