"""Tests that a bitstream is read back to a netlist, and that a changed bit in it is noticed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.boards.bitstream import build
from forestc.boards.platforms import platform_of
from forestc.costs.boards import board_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.long
@pytest.mark.parametrize("name, reader", [("icebreaker", "icebox_vlog"), ("tang-nano-20k", "apycula")])
def test_answers_of_the_netlist_in_the_bitstream(name, reader, tmp_path, monkeypatch, need_tool):
    need_tool(reader)
    need_tool("verilator")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    bitstreams = importlib.import_module("bitstreams")
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    design = forestc.compile(model, X, tmp_path / "out", label=y, targets="verilog").design
    board = board_of(name)
    clock = platform_of(board).default_clk_frequency
    made = build(design, board, baud=int(clock / bitstreams.DIVISOR))
    assert bitstreams.read_back(design, (made, board), X, 20) == (20, 0)
    assert any(bitstreams.notices(design, (made, board), X, seed) for seed in range(12))
