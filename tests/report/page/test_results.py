"""Tests results of tools on a design: they are recorded in its folder, and stand first on its page."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.backends.stream.options import StreamOptions
from forestc.commands.report import report
from forestc.commands.synth import synth
from forestc.compilation.synthesis import placement
from forestc.errors import ForestcError, OptionError
from forestc.manifest.results import MEASURED, read_results
from forestc.report.page.design_page import design_page
from forestc.report.page.results import results_of


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streamed")
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    more = StreamOptions(tdata_bits=32, registers=True)
    return forestc.compile(
        model, X, folder / "out", label=y, targets="verilog,c", latency=1, stream=more, cpu="cortex-m0plus"
    ).design


@pytest.fixture
def own(streamed, tmp_path):
    """Copies the design for tests that change it."""
    shutil.copytree(streamed.folder, tmp_path / "out")
    return forestc.open_design(tmp_path / "out")


SYNTH = {
    "device": "ecp5-25k", "lut": 912, "ff": 40, "carry": 0, "bram": 0, "depth": 9, "fmax_mhz": 104.9,
    "tools": ["Yosys 0.70 (pip)", "nextpnr-ecp5 0.11 (pip)"], "latency_cycles": 1,
    "placed": {"used": 900, "available": 24288}, "estimate": None, "stream": False, "seconds": {},
}  # fmt: skip
RUN = {"mean": 200.5, "max": 210, "max_of_all": 233}
ENTRY = {
    "flash": 43530, "ram": 0, "stack": 48, "stack_by": "call graph", "stack_seen": 48, "instructions": RUN,
    "cycles": None, "bound": 240, "differences": 0, "first": "",
}  # fmt: skip
MEASURE = {
    "cpu": "cortex-m0plus", "entry": "predict", "flash": 43530, "ram": 0, "stack": 48, "instructions": RUN,
    "cycles": None, "entries": {"predict": ENTRY}, "rows": 100, "rows_given": 100, "vectors": 50, "optimize": "s",
    "tools": ["gcc 12", "unicorn 2"], "differences": 0,
}  # fmt: skip


def blocks(design):
    return {section.name: section.blocks for section in design_page(design).sections}


def test_results_come_first_and_are_found_again(own):
    assert own.record("synth", SYNTH) == own.record("measure", MEASURE) == ""
    assert own.record("synth", {**SYNTH, "lut": 1500}, stream=True) == ""
    again = forestc.open_design(own.folder)
    assert [result.key for result in again.results()] == [
        ("measure", "cortex-m0plus", False), ("synth", "ecp5-25k", False), ("synth", "ecp5-25k", True)
    ]  # fmt: skip
    parts = blocks(again)
    tiles = [item for item in parts["overview"][0].items if " on " in item[0] or "," in item[0]]
    assert tiles[0] == ("bytes of flash on cortex-m0plus", "43,530", "233 instructions at most in what was run")
    assert tiles[1] == ("LUTs on ecp5-25k", "912", "104.9 MHz, placed and routed; 40 flip-flops")
    assert tiles[2][:2] == ("LUTs with the stream, ecp5-25k", "1,500")
    tables = {block.title: block for block in parts["overview"] if block.kind == "table"}
    device = tables["Measured on devices"].rows[0]
    texts = [cell.text for cell in device]
    assert "Yosys 0.70 (pip), nextpnr-ecp5 0.11 (pip)" in texts and texts[-1] == "of this design"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*", texts[-2])
    said = str(parts)
    assert "exact: forestc measure" not in said and "Not measured yet" not in said


def test_one_figure_of_luts_a_device(own):
    def devices():
        tables = [b for b in blocks(own)["hardware"] if b.kind == "table" and b.title.startswith("Estimated")]
        return {row[0].text for table in tables for row in table.rows}

    assert any("LUTs on" in what and "estimated" in what for what, _, _ in blocks(own)["overview"][0].items)
    assert "ecp5-85k" in devices()
    own.record("synth", {**SYNTH, "device": "ecp5-85k"})
    assert "ecp5-85k" not in devices()
    tiles = blocks(own)["overview"][0].items
    assert [what for what, _, _ in tiles if "LUT" in what] == ["LUTs on ecp5-85k"]
    shares = next(b for b in blocks(own)["hardware"] if b.kind == "table" and b.title == "Shares by part")
    assert shares.head == ("part", "cells of the netlist", "share of LUTs", "share of flip-flops")
    assert "Proportions" in shares.foot


def test_what_changed_since_is_said(own):
    own.record("synth", SYNTH)
    core = own.path("verilog")
    core.write_text(core.read_text() + "\n")
    table = next(block for block in blocks(own)["overview"] if block.kind == "table")
    assert table.rows[0][-1].text == "the design changed since"


def test_what_compile_synthesized_counts_until_synth_runs(own):
    made = {**own.manifest["made"], "synthesis": {**SYNTH, "lut": 7}}
    design = type(own)(own.folder, {**own.manifest, "made": made}, own.model, own.forest)
    assert [(result.on, result.figures["lut"], result.date) for result in results_of(design)] == [
        ("ecp5-25k", 7, "when it was compiled")
    ]
    design.record("synth", SYNTH)
    assert [result.figures["lut"] for result in results_of(design)] == [912]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2}, {"results": 3}, {"results": [{}]}, {"results": [{"command": "<b>"}]},
        {"figures": {**SYNTH, "lut": "x"}}, {"figures": {**SYNTH, "lut": 1e300}}, {"figures": {**SYNTH, "lut": True}},
        {"figures": {**SYNTH, "placed": {"used": 1}}}, {"figures": {**SYNTH, "device": "other"}}, {"figures": []},
        {"files": []}, {"date": 5}, {"command": "measure"}, {"figures": {**SYNTH, "tools": "x"}},
    ],
)  # fmt: skip
def test_damaged_records_are_refused_and_stay(own, change):
    own.record("synth", SYNTH)
    path = own.folder / MEASURED
    record = json.loads(path.read_text())
    assert len(read_results(own.folder)) == 1
    if change.keys() <= {"format", "results"}:
        record |= change
    else:
        record["results"][0] |= change
    path.write_text(json.dumps(record))
    before = path.read_text()
    with pytest.raises(ForestcError, match=r"measured\.json.*(format|results)"):
        read_results(own.folder)
    assert "measured.json was not written" in own.record("synth", SYNTH) and path.read_text() == before
    path.write_text("[" * 100_000)
    with pytest.raises(ForestcError, match=r"measured\.json is damaged"):
        blocks(own)


def test_a_folder_with_results_may_be_compiled_again(own):
    own.record("synth", SYNTH)
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
    assert forestc.compile(model, X, own.folder, label=y, targets="c").design.results() == []


def test_a_page_places_on_the_folders_device_or_a_named_one(own, tmp_path):
    with pytest.raises(
        OptionError, match=r"device.*names no device to place the design on.*add device=, of .*ecp5-25k"
    ):
        placement(own)
    with pytest.raises(OptionError, match="not placed for 'lut6'"):
        placement(own, "lut6")
    with pytest.raises(OptionError, match=r"device=: .*add place=True"):
        report(own.folder, tmp_path / "a.html", device="ecp5-25k")


def test_the_stream_has_a_section(streamed):
    part = blocks(streamed)["stream"]
    figures = {row[0].text: row[1].text for row in part[0].rows}
    described = streamed.manifest["stream"]
    assert figures["module"] == described["module"] and figures["beats of a row"].startswith(f"{described['beats']}, ")
    assert (
        figures["FIFO of results, places"] == "4" and figures["AXI4-Lite registers"] == f"{len(described['registers'])}"
    )
    assert figures["clocks from a row's last beat to its result"] == "4"
    assert "--stream" in part[-1].text


@pytest.mark.long
def test_the_stream_is_synthesized_and_placed(own):
    """The wrapper stores rows and results: it takes more flip-flops than the core, and has its own clock."""
    alone, whole = synth(own, "ice40-hx8k"), synth(own, "ice40-hx8k", stream=True)
    assert whole["ff"] > alone["ff"] + 32 and whole["lut"] > alone["lut"] and whole["fmax_mhz"] > 0
    assert (alone["stream"], whole["stream"]) == (False, True) and whole["latency_cycles"] == alone[
        "latency_cycles"
    ] + 3
    assert [(r.stream, r.figures["lut"]) for r in own.results()] == [(False, alone["lut"]), (True, whole["lut"])]
    table = blocks(own)["stream"][1]
    assert [cell.text for cell in table.rows[0][:2]] == ["ice40-hx8k", f"{whole['lut']:,}"]
    with pytest.raises(OptionError, match="script times the core alone"):
        synth(own, "vivado:xc7a35tcpg236-1", stream=True)


def test_a_design_without_a_stream_is_refused(design):
    with pytest.raises(OptionError, match="no stream wrapper"):
        synth(design, "lut6", stream=True)
    assert "stream" not in {section.name for section in design_page(design).sections if section.blocks}
