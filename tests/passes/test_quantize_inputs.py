from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models import trained
from random_forests import random_forest, troublesome_rows
from sklearn.ensemble import RandomForestClassifier
from thinned import only

from forestc import load
from forestc.errors import ModelError, OptionError, RowsError
from forestc.forest.numbers import Fixed, word_range
from forestc.forest.text import parse_forest, print_forest
from forestc.passes.pipeline import run_passes
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows, FitAndHeldOut
from forestc.rows.encode import encode, evaluate


def on_words(forest, X, truth=None, **options):
    result, steps = run_passes(forest, [QuantizeInputs(**options)], ArrayRows(np.asarray(X, dtype=float), truth))
    return result, steps[0]


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10**6), st.booleans())
def test_paths_and_scores_are_kept_of_the_rows_or_with_ordered_words_of_any_row(seed, ordered):
    forest = random_forest(seed, False)
    rows = troublesome_rows(forest, seed, 60)
    if ordered:
        result = QuantizeInputs(input="ordered", missing="always").run(forest, None)
    else:
        result = QuantizeInputs().run(forest, ArrayRows(rows))
        assert result.report["paths_changed"] == 0
    assert result.forest.on_words and not result.forest.quantized
    assert print_forest(parse_forest(print_forest(result.forest))) == print_forest(result.forest)
    expected, got = evaluate(forest, rows), evaluate(result.forest, rows)
    assert np.array_equal(expected.leaves, got.leaves) and np.array_equal(expected.scores, got.scores, equal_nan=True)


def test_whole_numbers_saturate_at_the_outer_thresholds():
    model, X, _ = trained("xgboost-multi")
    result, step = on_words(load(model), X)
    used = [feature for feature in result.features if "whole" in step.report["inputs"][feature.name]]
    assert used and step.promise == "exact-on-data (paths)"
    numbers = np.repeat(np.arange(-70_000.0, 70_000.0, 7)[:, None], X.shape[1], axis=1)
    numbers[:200] = np.arange(-100, 100)[:, None]
    words = encode(result, numbers)
    for index, feature in enumerate(result.features):
        if feature not in used:
            continue
        assert isinstance(feature.number, Fixed) and feature.number.fraction == 0
        thresholds, span = result.conditions.thresholds(index), word_range(feature.number, feature.missing)
        assert thresholds.min() - 1 >= span.low and thresholds.max() <= span.high
        # No bit serves only values beyond all thresholds.
        assert max(thresholds.max(), 1 - thresholds.min()) > span.high // 2
        assert np.array_equal(words[:, index], np.clip(numbers[:, 0], span.low, span.high))
        assert np.array_equal(words[:, index, None] < thresholds, numbers[:, :1] < thresholds)


def test_input_bits_bound_the_words_and_the_change_is_measured():
    model, X, y = trained("forest-binary")
    forest = load(model)
    result, step = on_words(forest, X, y, input_bits=4, change=0.2)
    assert max(feature.number.bits for feature in result.features) <= 4
    assert step.guarantee == "approximate" and step.report["paths_changed"] > 0
    assert step.change == pytest.approx((evaluate(forest, X).index != evaluate(result, X).index).mean())
    low, high = X.min(axis=0), X.max(axis=0)
    changes = []
    for scale in (1.0, 0.01):  # Small features use their bits as well.
        rows = (X - low) / (high - low) * scale
        forest = load(RandomForestClassifier(20, random_state=0).fit(rows, y))
        changes.append(on_words(forest, rows, input_bits=6, change=1.0)[1].change)
    assert changes[1] <= changes[0] + 0.02


@pytest.mark.parametrize("cost", ["flash-avr", "lut6"])
@pytest.mark.parametrize("kind", only(["forest-binary", "xgboost-binary", "tree-regression"], 1, 2))
def test_words_give_up_bits_that_few_decisions_need(kind, cost):
    model, X, y = trained(kind)
    forest = load(model)
    wide, _ = on_words(forest, X, y)
    before = [feature.number.bits for feature in wide.features]
    for most in (0.2, 0.0):
        narrow, step = on_words(forest, X, y, cost=cost, change=most)
        after = [feature.number.bits for feature in narrow.features]
        assert all(new <= old for new, old in zip(after, before, strict=True)) and step.change <= most
        if cost == "flash-avr":  # Bits are saved as complete bytes only.
            assert all(new == old or -(-new // 8) < -(-old // 8) for new, old in zip(after, before, strict=True))
        if most or (cost == "lut6" and forest.decides):
            assert sum(after) < sum(before)
    if forest.decides:
        assert step.guarantee == "exact-on-data" and (evaluate(forest, X).index == evaluate(narrow, X).index).all()


def test_words_are_narrowed_within_the_tolerance_and_given_formats_stay():
    model, X, y = trained("forest-binary")
    forest = load(model)
    halves = FitAndHeldOut(ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2]))
    options = {"tolerance": 0.05, "formats": {forest.features[0].name: "ap_fixed<20,8>"}}
    scorer = Scorer(forest, halves.held_out)
    narrow, wide = (
        QuantizeInputs(cost=cost, **options).run(forest, halves.fit, scorer).forest for cost in ("flash", None)
    )
    assert narrow.features[0].number == wide.features[0].number == Fixed(20, 12, signed=True)
    assert sum(each.number.bits for each in narrow.features) < sum(each.number.bits for each in wide.features)
    assert scorer.of(narrow).within(0.05)


def test_formats_given_by_hand():
    model, X, _ = trained("forest-multi")
    forest = load(model)
    result, step = on_words(forest, X, formats={"x21": "uint5", "x36": "ap_ufixed<9,5>", "x42": "ordered32"})
    by_name = {feature.name: str(feature.number) for feature in result.features}
    assert (by_name["x21"], by_name["x36"], by_name["x42"]) == ("uint5", "ap_ufixed<9,5>", "ordered32")
    assert step.report["paths_changed"] == 0
    with pytest.raises(OptionError, match="formats names 'age'"):
        on_words(forest, X, formats={"age": "uint8"})
    with pytest.raises(ModelError, match="unknown number type 'u8'"):
        on_words(forest, X, formats={"x21": "u8"})


def test_missing_values_are_kept_where_the_rows_have_some():
    model, X, _ = trained("xgboost-missing")
    forest = load(model)
    result, step = on_words(forest, X)
    assert any(feature.missing for feature in result.features) and step.report["paths_changed"] == 0
    full, _ = on_words(forest, np.nan_to_num(X))
    assert not any(feature.missing for feature in full.features)
    with pytest.raises(RowsError, match="missing"):
        evaluate(full, X)
    kept, _ = on_words(forest, np.nan_to_num(X), missing="always")
    assert all(feature.missing for feature in kept.features)
    with pytest.raises(RowsError, match="missing"):
        on_words(forest, X, missing="never")


@pytest.mark.parametrize(("options", "said"), [
    ({"cost": "gates"}, "unknown cost 'gates'"),
    ({"cost": "flash", "exact": True}, "cost rounds thresholds"),
    ({"cost": "flash", "input": "ordered"}, "cost rounds thresholds"),
    ({"cost": "flash"}, "rounds thresholds where rows allow it"),
    ({}, "quantize-inputs: needs rows"),
])  # fmt: skip
def test_what_needs_rows_or_rounds_thresholds_is_refused(options, said):
    with pytest.raises(OptionError, match=said):
        QuantizeInputs(**options).run(load(trained("forest-binary")[0]), None)


def test_words_are_not_quantized_again():
    forest = load(trained("forest-binary")[0])
    step = QuantizeInputs(input="ordered")
    with pytest.raises(ModelError, match=r"^pass quantize-inputs: the forest is already quantized"):
        step.run(step.run(forest, None).forest, None)
