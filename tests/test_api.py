from __future__ import annotations

import numpy as np
import pytest
from models import KINDS, rows_near_thresholds, trained
from thinned import thinned

import forestc
from forestc.backends.table import RUNNERS
from forestc.forest.builder import changed
from forestc.frontends.kinds import KINDS as FILE_KINDS
from forestc.frontends.kinds import Training


def test_public_names_are_all_there():
    for name in forestc.__all__:
        assert getattr(forestc, name) is not None
    assert "compile_model" not in dir(forestc)
    with pytest.raises(AttributeError, match="no attribute 'compyle'"):
        forestc.compyle  # noqa: B018


def test_tables_agree_with_what_they_name():
    for kind in FILE_KINDS:
        assert [bool(kind.read), bool(kind.opens), bool(kind.do)].count(True) == 1
        assert all(suffix.startswith(".") for suffix in kind.suffixes)
        assert bool(kind.package) == bool(kind.live) and (kind.package or kind.training == Training())
        assert not kind.do or kind.name.startswith(("a ", "an ", "the "))
    suffixes = [suffix for kind in FILE_KINDS for suffix in kind.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for name, engine in RUNNERS.items():
        assert engine.name == name


def test_the_simulator_can_be_had_without_the_compiler():
    import subprocess
    import sys

    code = "import hw_sim, sys; assert not {'forestc.commands', 'forestc.checks'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_from_a_live_model_to_a_checked_folder(tmp_path):
    model, X, y = trained("boosting-multi")
    forest = forestc.load(model)
    assert np.array_equal(forestc.evaluate(forest, X).decision, model.predict(X))
    assert forestc.quantize(model, X).quantized
    done = forestc.compile(model, X, tmp_path / "out", label=y, name="digits")
    assert done.agreement.agreement == 1.0
    result = forestc.check(done.design, X, label=y, engines=["netlist", "c"], random_rows=500)
    assert result.ok and result.agreement.model == pytest.approx(model.score(X, y))
    again = forestc.open_design(tmp_path / "out")
    assert again.netlist == done.design.netlist


@pytest.mark.parametrize("kind", thinned([kind for kind in sorted(KINDS) if not kind.startswith("extra")], keep=4))
def test_no_difference_on_rows_of_any_kind(kind, tmp_path):
    """Compares simulator and C with the quantized evaluator, on rows on and beside the model's own thresholds.
    benchmarks/exactness.py takes 100,000 of them."""
    model, X, y = trained(kind)
    forest = forestc.load(model)
    forest = changed(forest, trees=forest.trees[: max(4, forest.n_outputs)])  # More trees test nothing new.
    rows = rows_near_thresholds(forest, X, 5_000)
    done = forestc.compile(forest, X, tmp_path / "out", label=y, latency=2, name="m", outputs="scores")
    result = forestc.check(done.design, rows, engines=["netlist", "c"], random_rows=1000)
    assert result.ok
    assert {name: engine.differences for name, engine in result.engines.items()} == {"netlist": 0, "c": 0}
    assert result.vectors["rows"] == 5_000


def test_calls_in_another_order_say_what_goes_where():
    for call in (lambda: forestc.compile("m", "rows", "label", "out"), lambda: forestc.compile("m", out="out")):
        with pytest.raises(TypeError, match=r"compile\(\): .*; it takes model, rows, out by position"):
            call()
