"""Each error says what is wrong, where, and what to do: of all calls in the code, and of errors that pass through."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.errors import ForestcError, InternalError, MissingExtraError, MissingToolError, OptionError, located
from forestc.inputs.learn import learned
from forestc.passes import passes_from
from forestc.passes.pipeline import run_passes
from forestc.rows.batches import ArrayRows

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def collected():
    spec = importlib.util.spec_from_file_location("messages", ROOT / "docs" / "_messages.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module, list(module.messages())


def test_each_error_of_the_code_has_a_place_and_a_remedy(collected):
    module, messages = collected
    assert len(messages) > 1000
    assert not [f"{m.file}:{m.line} {m.what}" for m in messages if not m.what]
    assert not [f"{m.file}:{m.line} {m.what}" for m in messages if not module.place_of(m)]
    assert not [f"{m.file}:{m.line} {m.what}" for m in messages if not m.do]


def test_the_table_sees_an_error_that_lacks_them(collected):
    module, _ = collected
    assert not module.place_of(module.Message("forestc/x.py", 1, "OptionError", "'is too large'", "", ""))
    assert module.place_of(module.Message("forestc/x.py", 1, "OptionError", "f'--trials {count}'", "", "")) == "text"
    assert module.place_of(module.Message("forestc/frontends/x.py", 1, "ModelError", "'no'", "", "")) == "load"
    assert not module.place_of(module.Message("forestc/passes/x.py", 1, "OptionError", "'no'", "", ""))


def small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, X[:, 0] > 0), X


def test_errors_of_a_model_name_its_file_or_its_type(tmp_path):
    (tmp_path / "damaged.forest").write_text('forest "x"\nnothing')
    with pytest.raises(ForestcError) as raised:
        forestc.load(tmp_path / "damaged.forest")
    assert raised.value.where.startswith(str(tmp_path / "damaged.forest")) and raised.value.do
    model, _ = small()
    changed = type("Mine", (DecisionTreeClassifier,), {})()
    changed.__dict__.update(model.__dict__)
    with pytest.raises(ForestcError) as raised:
        forestc.load(changed)
    assert raised.value.where == "model of type Mine" and raised.value.do


def test_errors_of_a_pass_name_it():
    model, X = small()
    forest = forestc.load(model)
    for named in ("quantize-inputs", "share-thresholds", "prune-splits"):
        with pytest.raises(ForestcError) as raised:
            run_passes(forest, passes_from(named), None)
        assert "needs rows" in raised.value.what or named == "quantize-inputs"
        assert any(step.name in raised.value.what + raised.value.where for step in passes_from(named))
        assert raised.value.do
    with pytest.raises(ForestcError) as raised:  # the second finds the forest quantized
        run_passes(forest, passes_from("quantize-inputs,round-leaves{leaf_bits=8},quantize-inputs"), ArrayRows(X))
    assert "quantize-inputs" in raised.value.what + raised.value.where and raised.value.do


def test_errors_of_learning_inputs_name_the_rows():
    model, _ = small()
    with pytest.raises(ForestcError) as raised:
        learned(forestc.load(model), ArrayRows(np.empty((0, 3))), seconds=1)
    assert raised.value.where and raised.value.do


def test_a_place_is_added_once():
    with pytest.raises(OptionError) as raised, located("pass b"), located("pass a"):
        raise OptionError("too few", do="give more")
    assert str(raised.value) == "too few; pass a; give more"
    with pytest.raises(OptionError) as raised, located("pass a", "a"):
        raise OptionError("a needs rows", do="give some")
    assert str(raised.value) == "a needs rows; give some"


@pytest.mark.parametrize(
    "error, where",
    [
        (MissingExtraError("skops", "skops"), f"Python in {sys.prefix}"),
        (MissingToolError("yosys was not found", do="install it"), "the PATH"),
        (InternalError("no output", where="netlist x"), "netlist x"),
    ],
)
def test_classes_of_errors_have_a_usual_place_and_remedy(error, where):
    assert error.where == where and error.do
