"""Simulated boards: the top that is placed, in Verilator, behind a pseudo-terminal that the client opens."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from models import trained
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.boards import simulated
from forestc.boards.client import Board
from forestc.boards.simulated import Line, line_of
from forestc.errors import BoardError, MissingExtraError, OptionError

X, Y = load_iris(return_X_y=True)
NOISY = "sim:damaged=0.004,lost=0.001"


@pytest.fixture
def tools(need_tool):
    for tool in ("verilator", "amaranth", "serial"):
        need_tool(tool)


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y)
    folder = tmp_path_factory.mktemp("simulated") / "out"
    return forestc.compile(model, X, folder, label=Y, outputs="both", targets=["verilog"]).design


def on_board(design, rows, port, random_rows):
    """Checks a design on a simulated board. Returns the figures of the board."""
    result = forestc.check(design, rows, port=port, engines=["board"], random_rows=random_rows)
    board = result.engines["board"]
    assert result.ok and board.differences == 0
    assert board.vectors == sum(result.vectors.values()) >= random_rows + len(rows)
    return result.figures["board"]


def test_check_runs_all_vectors_on_a_line_that_damages_and_loses_bytes(tools, design):
    figures = on_board(design, X[:50], NOISY, 150)
    assert figures["port"] == NOISY and figures["resends"] > 0 and figures["rows_per_second"] > 0


def test_a_simulated_board_predicts_and_ends_with_its_client(tools, design):
    with Board("sim", design) as board:
        assert np.array_equal(board.predict_proba(X), design.predict_proba(X))
    with pytest.raises(BoardError, match="the port failed"):
        board.predict(X)


def test_an_engine_behind_a_simulated_port(tools, tmp_path):
    forestc.make_engine(tmp_path / "engine", trees=2, nodes=32, features=4, classes=3, walkers=1, scores=True)
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y)
    design = forestc.compile(
        model, X, tmp_path / "out", label=Y, targets=["engine"], engine=tmp_path / "engine",
        passes="quantize-inputs{input_bits=8},round-leaves{leaf_bits=8}",
    ).design  # fmt: skip
    assert on_board(design, X[:20], NOISY, 100)["resends"] > 0


@pytest.mark.long
@pytest.mark.parametrize("options", [{"latency": 2}, {"stream": forestc.StreamOptions()}, {"outputs": "scores"}])
def test_larger_designs(tools, tmp_path, options):
    model, X, y = trained("forest-multi")
    done = forestc.compile(model, X, tmp_path / "out", label=y, targets=["verilog"], **options)
    on_board(done.design, X[:500], "sim:damaged=0.002,lost=0.0005", 1000)


@pytest.mark.parametrize(
    ("port", "line"),
    [
        ("sim", Line()),
        ("sim:", Line()),
        ("sim:damaged=0.01,lost=0.001", Line(0.01, 0.001)),
        ("sim:clocks=20,seed=7", Line(clocks=20, seed=7)),
    ],
)
def test_the_name_of_a_simulated_port_has_its_options(port, line):
    assert line_of(port) == line


@pytest.mark.parametrize(
    ("port", "what"),
    [
        ("sim:broken=1", "unknown key 'broken'"),
        ("sim:damaged=much", "damaged is 'much'"),
        ("sim:damaged", "damaged is ''"),
        ("sim:damaged=1", "no line has these values"),
        ("sim:lost=nan", "no line has these values"),
        ("sim:clocks=7", "no line has these values"),
        ("sim:clocks=8.5", "clocks is '8.5'"),
    ],
)
def test_impossible_lines_are_refused(port, what):
    with pytest.raises(OptionError, match=what) as found:
        line_of(port)
    assert found.value.where == f"port={port}" and found.value.do


def test_what_a_simulation_needs_is_said(tools, design, monkeypatch):
    with pytest.raises(OptionError, match="no design is given"):
        Board("sim")
    with monkeypatch.context() as patch:
        patch.setattr(simulated, "pseudo_terminal", lambda: None)
        with pytest.raises(BoardError, match="no pseudo-terminals"):
            Board("sim", design)
    monkeypatch.setitem(sys.modules, "forestc.boards.gateware", None)
    with pytest.raises(MissingExtraError, match=r"forestc\[board\]"):
        Board("sim", design)
