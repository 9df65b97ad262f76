"""Tests the area and the rate of engines: estimated by `forestc engine`, measured by `synth` of its folder."""

from __future__ import annotations

import json

import pytest
from models import trained
from sklearn.base import clone

import forestc
from forestc.commands.report import report
from forestc.compilation import synthesis
from forestc.compilation.synthesis import ports_of
from forestc.costs.devices import DEVICES, FAMILIES
from forestc.engine.area import COSTS, MHZ, engine_estimate, features_of, rows_per_second
from forestc.engine.capacity import Capacity
from forestc.engine.folder import CAPACITY, open_engine
from forestc.engine.image import image_of
from forestc.engine.verilog import emit
from forestc.manifest.design import open_design

SMALL = {"trees": 2, "nodes": 64, "features": 2, "word_bits": 4, "walkers": 1, "score_bits": 8}


def test_costs_are_whole():
    sizes = features_of(Capacity(2, 64, 2, 4))
    assert COSTS.keys() | MHZ.keys() <= FAMILIES.keys()
    for both in COSTS.values():
        assert len(both) == 2 and all(len(costs) == len(sizes) and min(costs) >= 0 < max(costs) for costs in both)
    capacity, larger = Capacity(2, 64, 2, 4), Capacity(8, 512, 2, 4, word_bits=16)
    for name, device in DEVICES.items():
        estimate = engine_estimate(capacity, name)
        assert (estimate is not None) == (device.family.name in COSTS)
        if estimate is not None:
            assert estimate["lut"] < engine_estimate(larger, name)["lut"] and estimate["blocks"] == 4


def test_rows_a_second():
    capacity = Capacity(2, 64, 3, 4, word_bits=8)
    assert rows_per_second(capacity, 90.0, None) == {"clocks_per_row": 27, "rows_per_second": 3_333_333}
    assert rows_per_second(capacity, 90.0, 9) == {"clocks_per_row": 9, "rows_per_second": 10_000_000}
    assert rows_per_second(capacity, None, 9)["rows_per_second"] is None


@pytest.mark.parametrize("load", ["stream", "axi-lite"])
def test_all_ports_lie_between_registers(load):
    capacity = Capacity(2, 64, 2, 4, load=load)
    ports = {name: (output, bits) for name, output, bits in ports_of(emit(capacity), capacity.name)}
    assert ports["s_axis_tdata"] == (False, capacity.tdata_bits) and ports["m_axis_tdata"] == (
        True,
        capacity.result_bits,
    )
    assert ports["m_axis_tuser"] == (True, 1) and "aclk" not in ports and "aresetn" in ports
    assert len([name for name in ports if name.endswith(("tready", "tvalid"))]) == (6 if load == "stream" else 4)


def test_an_engine_is_estimated_and_synthesized(tmp_path):
    figures = forestc.make_engine(tmp_path / "engine", **SMALL, device="ecp5-25k")
    said = json.loads((tmp_path / "engine" / CAPACITY).read_text())["estimate"]
    assert (
        figures["estimated_lut"] == said["lut"] and figures["estimated_rows_per_second"] == said["rows_per_second"] > 0
    )
    measured = forestc.synth(tmp_path / "engine", "ecp5-25k", route=False)
    assert measured["estimate"] == said and measured["bram"] >= said["blocks"] == 2
    assert 0.5 < measured["lut"] / said["lut"] < 2 and 0.5 < measured["ff"] / said["ff"] < 2
    assert "estimated" in str(measured)
    content = json.loads((tmp_path / "engine" / CAPACITY).read_text())
    assert [one["lut"] for one in content["synthesis"]] == [measured["lut"]]
    assert open_engine(tmp_path / "engine").walkers == 1


def test_large_memories_of_an_up5k(tmp_path, monkeypatch):
    forestc.make_engine(tmp_path / "engine", trees=40, nodes=22_000, features=16, device="ice40-up5k")
    flows = []
    monkeypatch.setattr(synthesis, "synthesize", lambda files, top, given, **_: flows.extend(given) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        forestc.synth(tmp_path / "engine", "ice40-up5k")
    assert flows == ["synth_ice40 -spram -top {top}"]


def test_the_engine_of_a_compiled_folder(tmp_path):
    model, X, y = trained("forest-binary")
    model = clone(model).set_params(n_estimators=2, max_depth=2).fit(X, y)
    forestc.make_engine(tmp_path / "engine", **SMALL | {"features": 30, "classes": 2, "word_bits": 12, "scores": True})
    passes = "simplify,quantize-inputs{input_bits=12},round-leaves{leaf_bits=3,change=1}"
    design = forestc.compile(
        model, X, tmp_path / "out", label=y, targets="engine", engine=tmp_path / "engine", passes=passes
    ).design
    measured = forestc.synth(design, "ecp5-25k", route=False)
    clocks = max(image_of(design.forest, design.engine).clocks, design.engine.beats)
    assert measured["clocks_per_row"] == clocks and measured["rows_per_second"] is None
    (result,) = open_design(tmp_path / "out").results()
    assert result.on == "ecp5-25k" and result.figures["lut"] == measured["lut"] > 0
    report(design.folder, tmp_path / "page.html")
    assert "Measured on devices" in (tmp_path / "page.html").read_text()
