"""share-thresholds: no path of the given rows changes, and there are fewer conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import trained
from random_forests import random_forest, troublesome_rows

import forestc
from forestc import load
from forestc.errors import ModelError, OptionError
from forestc.forest.evaluate import evaluate
from forestc.forest.rows import ArrayRows
from forestc.passes.quantize import Quantize
from forestc.passes.share_thresholds import ShareThresholds


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["few-bits", "middle"]))
def test_no_row_s_path_changes(seed, prefer):
    forest = random_forest(seed, False)
    rows = troublesome_rows(forest, seed, 60)
    result = ShareThresholds(prefer=prefer).run(forest, ArrayRows(rows))
    assert result.guarantee == "exact-on-data"
    assert np.array_equal(evaluate(forest, rows).leaves, evaluate(result.forest, rows).leaves)
    assert result.forest.distinct_conditions() <= forest.distinct_conditions()


@pytest.mark.parametrize("kind", ["forest-binary", "xgboost-multi", "boosting-regression", "forest-missing"])
def test_conditions_are_shared(kind):
    model, X, _ = trained(kind)
    forest = load(model)
    result = ShareThresholds().run(forest, ArrayRows(X))
    before, after = result.report["distinct_conditions"]
    assert after < before
    assert np.array_equal(evaluate(result.forest, X).leaves, evaluate(forest, X).leaves)
    fewer = ShareThresholds(exceptions=0.1, tolerance=1.0).run(forest, ArrayRows(X))
    assert fewer.guarantee == "approximate"
    assert fewer.report["distinct_conditions"][1] < after


def test_it_runs_in_the_pipeline(tmp_path):
    model, X, y = trained("xgboost-binary")
    plain = forestc.compile(model, X, tmp_path / "plain", label=y)
    shared = forestc.compile(
        model, X, tmp_path / "shared", label=y, passes="simplify,share-thresholds,quantize,simplify"
    )
    assert shared.figures["distinct_conditions"] < plain.figures["distinct_conditions"]
    assert shared.figures["comparator_bits"] < plain.figures["comparator_bits"]
    assert forestc.check(shared.design, X, engines=("netlist", "c")).ok


@pytest.mark.parametrize(
    "options", [{"prefer": "big"}, {"exceptions": -1}, {"exceptions": 1.5}, {"tolerance": 2}, {"exceptions": True}]
)
def test_options_are_checked(options):
    with pytest.raises(OptionError, match="share-thresholds"):
        ShareThresholds(**options)


def test_floats_and_rows_are_needed():
    model, X, _ = trained("xgboost-binary")
    forest = load(model)
    with pytest.raises(OptionError, match="needs rows"):
        ShareThresholds().run(forest, None)
    with pytest.raises(ModelError, match="before quantize"):
        ShareThresholds().run(Quantize().run(forest, ArrayRows(X)).forest, ArrayRows(X))
