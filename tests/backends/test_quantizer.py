"""Tests that the written Python module turns rows into the words of the evaluator."""

from __future__ import annotations

import runpy
from dataclasses import replace

import numpy as np
import pytest
from random_forests import random_forest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.backends.ports import Field, input_fields, output_fields, pack
from forestc.backends.stream import quantizer
from forestc.backends.stream.axi_stream import StreamOptions
from forestc.backends.stream.lanes import layout_of
from forestc.backends.table import RUNNERS
from forestc.backends.vectors import expected
from forestc.errors import CheckError
from forestc.forest.ir import Feature
from forestc.forest.numbers import FLOAT32, FLOAT64, Category, Fixed, Ordered, round_to, to_words, word_range
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.builder import width_for
from forestc.rows.encode import encode

NUMBERS = [
    (Fixed(8), FLOAT32, False),
    (Fixed(12, 4, True), FLOAT32, True),
    (Fixed(9, -3), FLOAT64, False),
    (Fixed(40, 60, True), FLOAT64, True),
    (Ordered(32), FLOAT32, True),
    (Ordered(64), FLOAT64, False),
    (Category(5), FLOAT32, True),
    (Category(7, "floor"), FLOAT64, False),
    (Category(7, "trunc"), FLOAT64, True),
]
HARD = [0.0, -0.0, 0.1, -0.1, 0.999999999, 1.5, -1.5, 2.5, 4.0, 5.0, 6.9, 7.0, 1e-45, -1e-320, 255.5, 1e9, -1e18, 1e39,
        -1e308, np.inf, -np.inf, 16777217.0, 0.3333333333333333]  # fmt: skip


def module_of(forest, tmp_path):
    netlist = lower(forest, LoweringOptions(outputs="both" if forest.decides else "scores"))
    path = tmp_path / f"{quantizer.file_name(netlist)}.py"
    row, result = layout_of(input_fields(netlist), 0), layout_of(output_fields(netlist), 0)
    path.write_text(quantizer.emit(forest, netlist, row, result))
    return runpy.run_path(str(path)), netlist


@pytest.mark.parametrize("seed", range(4))
def test_random_forests(seed, tmp_path):
    forest = random_forest(seed, True)
    module, netlist = module_of(forest, tmp_path)
    random = np.random.default_rng(seed)
    rows = random.choice(HARD, (400, forest.columns))
    rows = np.where(random.random(rows.shape) < 0.5, random.normal(0, 300, rows.shape), rows)
    for feature in forest.features:
        if feature.missing:
            rows[random.random(len(rows)) < 0.2, feature.column] = np.nan
    words = encode(forest, rows)
    assert [module["quantize"](row) for row in rows.tolist()] == words.tolist()
    assert [module["pack"](row) for row in words.tolist()] == pack(input_fields(netlist), words)
    results = expected(forest, netlist, words[:1])
    (y,) = pack(output_fields(netlist), results)
    assert list(module["unpack"](y).values()) == results[0].tolist()


def test_every_number_type_on_hard_values(tmp_path):
    module, _ = module_of(random_forest(1, True), tmp_path)
    for number, raw, missing in NUMBERS:
        limits = word_range(number, missing)
        feature = Feature("f", number, 0, missing, raw)
        output = quantizer._feature(feature, *layout_of([Field("x0", 0, width_for(limits.low, limits.top))], 0).lanes)
        values = np.array([*HARD, *([np.nan] if missing else [])])
        wanted = to_words(round_to(values, raw), number, missing)
        assert [module["word_of"](output, value) for value in values.tolist()] == wanted.tolist(), feature


def test_names_of_categories_and_what_is_refused(tmp_path):
    forest = random_forest(1, True)
    module, _ = module_of(forest, tmp_path)
    output = {"name": "c", "labels": ["red", "blue"], "unknown": -1.0, "float32": True, "missing": None,
            "kind": "category", "codes": 2, "rounding": "none"}  # fmt: skip
    assert [module["word_of"](output, value) for value in ("red", "blue", "green", 1)] == [0, 1, 2, 1]
    with pytest.raises(ValueError, match="missing"):
        module["word_of"](output, None)
    with pytest.raises(ValueError, match="is text"):
        module["word_of"]({**output, "labels": [], "unknown": None}, "red")
    with pytest.raises(ValueError, match="columns"):
        module["quantize"]([1.0])


@pytest.mark.slow
def test_check_runs_it(tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, random_state=0).fit(X, y)
    design = forestc.compile(model, X, tmp_path / "out", label=y, targets="verilog", stream=StreamOptions()).design
    result = forestc.check(design, X, engines=["words"], random_rows=500)
    assert result.ok and result.engines["words"].vectors == sum(result.vectors.values())
    monkeypatch.setitem(RUNNERS, "words", replace(RUNNERS["words"], sample=50))
    some = forestc.check(design, X, random_rows=500)
    assert some.ok and 100 < some.engines["words"].vectors <= 3 * 50
    path = design.path("words")
    path.write_text(path.read_text().replace("return min(max(scaled, low), high)", "return min(max(scaled, 1), high)"))
    broken = forestc.check(design, X, engines=["words"], random_rows=500)
    assert broken.engines["words"].differences and isinstance(broken.problem(), CheckError)
