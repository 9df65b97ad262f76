"""Tests that whatever can be known at the start is refused at the start, before any pass, synthesis or proof
has run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from models import trained
from sklearn.ensemble import RandomForestClassifier

import forestc
import forestc.commands.check as check_module
import forestc.compilation.level_search as level_search_module
import forestc.compilation.synthesis as synthesis_module
from forestc.commands.bitstream import bitstream
from forestc.costs import fitted as fitted_module
from forestc.costs.devices import DEVICES, ICE40, Device
from forestc.costs.estimate import estimate
from forestc.errors import CheckError, ForestcError, MissingToolError, ModelError, OptionError, ToolError
from forestc.forest.text import print_forest
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.rows.batches import ArrayRows


@pytest.fixture
def no_passes(monkeypatch):
    def run(*_, **__):
        raise AssertionError("a pass has run")

    monkeypatch.setattr(level_search_module, "run_passes", run)


def compile_iris(out, **more):
    model, X, y = trained("forest-text-labels")
    return forestc.compile(model, X, out, label=y, name="m", **more)


def test_a_folder_that_is_not_ours(tmp_path, no_passes):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ForestcError, match=r"holds 'notes.txt', which forestc did not write"):
        compile_iris(tmp_path)
    with pytest.raises(ForestcError, match="is a file"):
        compile_iris(tmp_path / "notes.txt")
    with pytest.raises(ForestcError, match="can't be written"):
        compile_iris(tmp_path / "notes.txt" / "out")
    with pytest.raises(ForestcError, match="/: is the root"):
        compile_iris(Path("/"))
    with pytest.raises(ForestcError, match="too long a name"):
        compile_iris(tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"passes": ["simplify", "round-leaves"]}, "a list of passes holds texts.*give one text.*passes"),
        ({"stream": True}, "give forestc.StreamOptions"),
    ],
)
def test_python_values_of_the_wrong_kind_are_named(tmp_path, no_passes, given, message):
    with pytest.raises(OptionError, match=message):
        compile_iris(tmp_path / "out", **given)


@pytest.mark.parametrize("needed", ["need_yosys", "need_command"])
def test_missing_tools_of_a_device(tmp_path, no_passes, monkeypatch, needed):
    def missing(*_):
        raise MissingToolError("there is no such tool", do="install it")

    monkeypatch.setattr(synthesis_module, needed, missing)
    with pytest.raises(MissingToolError, match="there is no such tool"):
        compile_iris(tmp_path / "out", device="ice40-hx8k")


@pytest.mark.parametrize("made", ["words", "quantized"])
def test_forests_that_passes_have_made(tmp_path, made):
    """Each command that takes a model refuses one whose own thresholds are not known, and says by name what to give."""
    model, X, y = trained("forest-text-labels")
    forest = forestc.quantize(model, X, y)
    if made == "words":
        rows = ArrayRows(np.asarray(X, dtype=float))
        forest = QuantizeInputs().run(forestc.load(model), rows).forest
    text = tmp_path / "made.forest"
    text.write_text(print_forest(forest))
    assert print_forest(forestc.load(text)) == text.read_text()
    forestc.make_engine(tmp_path / "engine", trees=10, nodes=400, features=4, classes=3, walkers=1)
    for taken in (
        lambda: forestc.compile(text, X, tmp_path / "out", label=y),
        lambda: forestc.quantize(text, X, y),
        lambda: forestc.explore(text, X, tmp_path / "study", label=y, cpu="cortex-m0plus", trials=2),
        lambda: forestc.make_image(text, X, engine=tmp_path / "engine"),
        lambda: forestc.model_inputs(text, X, seconds=1),
    ):
        with pytest.raises(ModelError, match=r"^forest '.*': holds words.*model\.forest"):
            taken()


def test_an_image_of_no_model(tmp_path):
    forestc.make_engine(tmp_path / "engine", trees=10, nodes=400, features=4, classes=3, walkers=1)
    with pytest.raises(OptionError, match=r"^the models: there is none; give a model"):
        forestc.make_image([], None, tmp_path / "images", engine=tmp_path / "engine")


def test_categories_and_float_inputs(tmp_path, no_passes):
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 5, 200), random.normal(size=200)])
    y = ((X[:, 0] % 2 == 0) ^ (X[:, 1] > 0)).astype(int)
    model = LGBMClassifier(n_estimators=5, min_data_per_group=2, cat_smooth=0, verbose=-1).fit(
        X, y, categorical_feature=[0]
    )
    with pytest.raises(OptionError, match="can't take the category"):
        forestc.compile(model, X, tmp_path / "out", label=y, c_inputs="float")


def test_passes_that_will_refuse_the_model_or_its_rows(tmp_path, monkeypatch):
    model, X, y = trained("forest-multi")
    ran = []
    monkeypatch.setattr("forestc.passes.simplify.Simplify.run", lambda *_: ran.append(1))
    with pytest.raises(OptionError, match="needs held-out rows"):
        forestc.compile(model, X, tmp_path / "out", label=y, passes="simplify,round-leaves,prune-splits")
    model, X, y = trained("forest-regression")
    with pytest.raises(OptionError, match="no decisions to keep"):
        forestc.compile(
            model, X, tmp_path / "out", label=y, passes="simplify,round-leaves,prune-splits{keep=decisions}"
        )
    assert not ran


def test_a_proof_without_its_solver_or_yosys_ends_before_the_engines_run(tmp_path, monkeypatch):
    design = compile_iris(tmp_path / "out").design
    ran = []
    monkeypatch.setattr(check_module, "vectors", lambda *_: ran.append(1) or iter(()))
    for place in ("importlib.util.find_spec", "forestc.toolchain.packaged.find_command"):
        with monkeypatch.context() as patch:
            patch.setattr(place, lambda *_, **__: None)
            with pytest.raises(MissingToolError) as caught:
                forestc.check(design, trained("forest-text-labels")[1], prove=True)
        assert caught.value.exit_status == 4
    assert not ran


def test_a_design_too_large_for_its_device(tmp_path, monkeypatch):
    monkeypatch.setitem(DEVICES, "ice40-hx8k", replace(DEVICES["ice40-hx8k"], cells=20))
    ran = []
    monkeypatch.setattr(synthesis_module, "synthesize", lambda *_, **__: ran.append(1) or 1 / 0)
    what = r"takes about \d+ LUTs, and ice40-hx8k has 20; .*try_anyway=True"
    with pytest.raises(ForestcError, match=what) as caught:
        compile_iris(tmp_path / "out", device="ice40-hx8k")
    assert caught.value.exit_status == 1 and not (tmp_path / "out").exists()
    design = compile_iris(tmp_path / "out").design
    with pytest.raises(ForestcError, match=what):
        forestc.synth(design, "ice40-hx8k")
    with pytest.raises(ForestcError, match=r"ice40-hx8k has 20; .*choose a larger device$"):
        bitstream(design, "hx8k")
    assert not ran
    with pytest.raises(ZeroDivisionError):
        forestc.synth(design, "ice40-hx8k", try_anyway=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "clock_mhz=: a clock needs a device; give device=DEVICE"),
        ({"device": "ice40-hx8k", "latency": 3}, "for ice40-hx8k the clock chooses the latency; leave latency= out"),
        (
            {"device": "arty-a7-35t", "no_synth": True},
            "estimate of vivado:.* can choose the latency; give latency=3",
        ),
    ],
)
def test_a_clock_without_what_it_needs(given, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        compile_iris(tmp_path / "out", clock_mhz=100.0, **given)


def test_an_engine_has_no_stream_and_no_vendor(tmp_path):
    forestc.make_engine(trees=2, nodes=64, features=4, classes=2, walkers=1, out=tmp_path / "engine")
    with pytest.raises(OptionError, match="an engine has no stream wrapper"):
        forestc.synth(tmp_path / "engine", "lut6", stream=True)
    with pytest.raises(OptionError, match=r"engines are not synthesized for liberty:cells\.lib"):
        forestc.synth(tmp_path / "engine", "liberty:cells.lib")


def test_synthesis_of_edited_verilog_says_so(tmp_path, monkeypatch):
    design = compile_iris(tmp_path / "out").design
    found = SimpleNamespace(lut=1, flip_flops=0, carry=0, memory=0, depth=1, version="Yosys 0.23")
    monkeypatch.setattr(synthesis_module, "synthesize", lambda *_, **__: found)
    assert not forestc.synth(design, "lut6", record=False)["notes"]
    design.path("verilog").write_text(design.path("verilog").read_text() + "// edited\n")
    (note,) = forestc.synth(design, "lut6", record=False)["notes"]
    assert note.endswith(".v changed after forestc wrote it: the figures are those of the changed file")


def test_a_damaged_table_of_costs(tmp_path, no_passes, monkeypatch):
    (tmp_path / "fitted.json").write_text("{}")
    monkeypatch.setattr(fitted_module, "FILE", tmp_path / "fitted.json")
    fitted_module.fitted.cache_clear()
    try:
        with pytest.raises(ForestcError, match=r"damaged: it has no 'LUT_COSTS'; .*reinstall forestc"):
            compile_iris(tmp_path / "out")
    finally:
        fitted_module.fitted.cache_clear()
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_what_does_not_fit_after_all_is_one_line(tmp_path, need_tool, monkeypatch):
    need_tool("nextpnr-ice40")
    monkeypatch.setitem(DEVICES, "ice40-lp384", Device("ice40-lp384", ICE40, 384, ("--lp384", "--package", "qn32")))
    model, X, y = trained("forest-multi")
    model = RandomForestClassifier(2, max_depth=4, random_state=0).fit(X, y)
    design = forestc.compile(model, X, tmp_path / "out", label=y, latency=1, targets="verilog").design
    with pytest.raises(ToolError) as caught:
        forestc.synth(design, "ice40-lp384", native=True, try_anyway=True)
    output = str(caught.value)
    assert (
        output.startswith("nextpnr: the design does not fit on ice40-lp384, where it takes ")
        and "of 384 logic cells" in output
    )
    assert "ERROR" not in output and not isinstance(caught.value, CheckError)


def test_the_up5k_has_a_clock_of_its_own(tmp_path):
    netlist = compile_iris(tmp_path / "out", latency=2).design.netlist
    fast, slow = (estimate(netlist, device)["fmax_mhz"] for device in ("ice40-hx8k", "ice40-up5k"))
    assert 2.58 < fast / slow < 2.91
