"""Tests synth: real synthesis, place and route of a small design with the tools from PyPI."""

from __future__ import annotations

import json
import os
from functools import cache

import numpy as np
import pytest
from models import trained
from sklearn.base import clone
from thinned import only

import forestc
from forestc.commands.synth import synth
from forestc.compilation import synthesis
from forestc.costs.devices import DEVICES, LUT6
from forestc.errors import OptionError, ToolError
from forestc.forest.text import print_forest
from forestc.toolchain import packaged, yosys
from hdl_templates import render


@pytest.fixture(scope="module")
def designs(tmp_path_factory):
    """Compiles a small forest, combinational and with two registers."""
    model, X, y = trained("forest-text-labels")
    model = clone(model).set_params(n_estimators=5).fit(X, y)
    folder = tmp_path_factory.mktemp("synth")
    return {
        latency: forestc.compile(
            model, X, folder / f"out{latency}", label=y, latency=latency, targets=["verilog"], name="m",
            passes="simplify,round-leaves,simplify",
        ).design
        for latency in (0, 2)
    }  # fmt: skip


@pytest.fixture(scope="module")
def placed(designs):
    """Returns a function that gives the figures of a design on a device, computed once."""
    # With seed 1 nextpnr finds no route for the clock on this device.
    return cache(lambda latency, device: synth(designs[latency], device, seed=1 + (device == "machxo2-1200")))


@pytest.fixture(autouse=True)
def tools():
    """Skips or fails the tests if the tools, which come with pip, are missing."""
    there = all(map(packaged.find_command, ("yosys", "nextpnr-ice40", "nextpnr-ecp5")))
    if not there and not os.environ.get("FORESTC_REQUIRE_TOOLS"):
        pytest.skip("yosys and nextpnr are not installed")


@pytest.mark.parametrize("device", only(["lut6", "xcup"], 0))
def test_cells_are_counted(placed, device):
    plain, pipelined = (placed(latency, device) for latency in (0, 2))
    assert plain["lut"] > 0 and plain["ff"] == 0 and plain["fmax_mhz"] is None
    assert pipelined["ff"] > 0 and pipelined["depth"] < plain["depth"]
    assert plain["tools"][0].startswith("Yosys 0.")


NEW = ["gw1nr-9", "gw2ar-18", "machxo2-1200", "machxo3-6900", "nexus-40", "gatemate-a1"]


@pytest.mark.parametrize("device", only(["ecp5-25k", "ice40-hx8k", *NEW], 0))
def test_placed_and_routed(placed, device):
    plain, pipelined = (placed(latency, device) for latency in (0, 2))
    for figures in (plain, pipelined):
        used = figures["placed"]["used"] + figures["carry"]
        assert 0 < used < figures["placed"]["available"]
        assert len(figures["tools"]) == 2
    if DEVICES[device].family.timed:
        assert 0 < plain["fmax_mhz"] < pipelined["fmax_mhz"]
    else:
        assert plain["fmax_mhz"] is pipelined["fmax_mhz"] is None


@pytest.mark.parametrize("device", only(["ice40-hx8k", "lut6", "ecp5-25k", "xcup"], 0))
def test_native_tools_are_taken(designs, placed, need_tool, device):
    """Uses Debian's yosys 0.23 and nextpnr-ice40 0.4. Debian has no nextpnr for ECP5, so PyPI's reads the netlist of
    Debian's yosys."""
    need_tool("yosys")
    packaged, native = placed(2, device), synth(designs[2], device, native=True)
    assert native["tools"][0].startswith("Yosys 0.") and "(pip)" not in native["tools"][0]
    assert native["ff"] == packaged["ff"] and native["lut"] > 0
    if DEVICES[device].nextpnr:
        assert native["fmax_mhz"] > 0
    if device == "ice40-hx8k":
        need_tool("nextpnr-ice40")
        assert native["tools"][1].startswith("nextpnr-ice40 0.")


def test_gowins_luts_have_four_inputs_before_placing(designs, tmp_path, monkeypatch):
    """nextpnr times no path through smaller ones. yosys proves that the larger LUTs compute the same."""
    kinds = []

    def placing(netlist, *_, **__):
        (top,) = (m for n, m in json.loads(netlist.read_text())["modules"].items() if n == "forestc_registered")
        kinds.extend(cell["type"] for cell in top["cells"].values())
        raise ToolError("not placed", where="here")

    monkeypatch.setattr(synthesis, "place", placing)
    with pytest.raises(ToolError, match="not placed"):
        synth(designs[0], "gw2ar-18")
    assert kinds.count("LUT4") > 10 and not {"LUT1", "LUT2", "LUT3"} & set(kinds)
    (tmp_path / "cells.v").write_text(render("synth/luts.v.j2"))
    (tmp_path / "core.v").write_text(designs[0].path("verilog").read_text())
    own = "read_verilog core.v; synth_gowin -family gw2a -nowidelut -noalu -top m\n"
    whole = "read_verilog -overwrite +/gowin/cells_sim.v; hierarchy -top m; proc; flatten; opt_clean; rename m"
    script = f"{own}{whole} gold\ndesign -stash gold\n{own}techmap -map cells.v\n"
    script += f"select -assert-none t:LUT1 t:LUT2 t:LUT3\n{whole} gate\ndesign -stash gate\n"
    script += "design -copy-from gold gold; design -copy-from gate gate; miter -equiv -flatten gold gate miter\n"
    script += "hierarchy -top miter; sat -verify -prove trigger 0 miter\n"
    yosys.run_yosys(script + "write_json proved.json\n", tmp_path, writes=["proved.json"])


@pytest.mark.long
def test_an_older_nextpnr_reads_what_a_newer_yosys_wrote(designs, need_tool, monkeypatch):
    need_tool("nextpnr-ice40")
    newer = yosys.need_yosys()
    for module in (yosys, synthesis):
        monkeypatch.setattr(module, "need_yosys", lambda native=False: newer)
    figures = synth(designs[2], "ice40-hx8k", native=True)
    assert "(pip)" in figures["tools"][0] and figures["tools"][1].startswith("nextpnr-ice40 0.")
    assert figures["fmax_mhz"] > 0


def test_the_command(designs, placed, run, monkeypatch):
    status, out, _ = run("synth", designs[0].folder, "--device", "lut6", "--json")
    figures = json.loads(out)
    assert status == 0
    assert {"device", "lut", "ff", "carry", "bram", "depth", "fmax_mhz", "tools"} <= set(figures)
    monkeypatch.setattr("forestc.commands.synth.synth", lambda *_, **__: placed(0, "ecp5-25k"))
    status, shown, _ = run("synth", designs[0].folder, "--device", "ecp5-25k")
    assert status == 0 and "Fmax" in shown and "░" in shown


def test_compile_to_a_placed_design(tmp_path, run, monkeypatch):
    model, X, y = trained("tree-binary")
    np.savetxt(
        tmp_path / "rows.csv",
        np.column_stack([X, y]),
        delimiter=",",
        header=",".join([*map(str, range(len(X[0]))), "y"]),
        comments="",
    )
    (tmp_path / "m.forest").write_text(print_forest(forestc.load(model)))
    command = "compile m.forest --rows rows.csv --label y --target verilog --latency 1 --device ecp5-25k -o out"
    status, out, _ = run(f"{command} --json")
    output = json.loads(out)
    assert status == 0
    assert output["synthesis"]["device"] == "ecp5-25k" and output["synthesis"]["fmax_mhz"] > 0
    stages = ["load", "passes", "lower", "emit", "check", "estimate", "write", "synthesis", "place and route"]
    assert list(output["seconds"]) == stages and min(output["seconds"].values()) >= 0
    monkeypatch.setattr("forestc.commands.compile.synthesis_figures", lambda *_, **__: output["synthesis"])
    shown = run(f"{command} --verbose")[1]
    assert all(stage in shown for stage in stages) and "Fmax" in shown
    with pytest.raises(OptionError, match=r"device.*a device needs the core.*add the target verilog or vhdl"):
        forestc.compile(model, X, tmp_path / "c", label=y, targets=["c"], device="lut6")
    with pytest.raises(OptionError, match="unknown device 'xc7'"):
        forestc.compile(model, X, tmp_path / "c", label=y, device="xc7")


def test_what_can_not_be_synthesized(designs, tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="unknown device 'xc7'; did you mean vivado:xc7"):
        synth(designs[0], "xc7")
    (tmp_path / "bad.v").write_text("module m (input a; endmodule\n")
    with pytest.raises(ToolError, match=r"ended with exit status 1: .*syntax error"):
        yosys.synthesize([tmp_path / "bad.v"], "m", LUT6.synthesis)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(packaged, "find", lambda name: None)
    with pytest.raises(ToolError, match=r"yosys was not found"):
        synth(designs[0], "lut6")


def test_a_packaged_tool_that_dies_without_a_word_gets_a_second_chance(designs, monkeypatch):
    real, calls = yosys.run_tool, []

    def dies_once(command, folder, **options):
        calls.append(command)
        if len(calls) == 1:
            raise ToolError("python ended with exit status 1", where="Executing ABC9.")
        return real(command, folder, **options)

    monkeypatch.setattr(yosys, "run_tool", dies_once)
    assert synth(designs[0], "lut6")["lut"] > 0 and len(calls) == 2
