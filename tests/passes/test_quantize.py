from __future__ import annotations

import math

import numpy as np
import pytest
from example_counts import examples
from forestc.passes.quantize.quantize import Quantize
from hypothesis import given, settings
from hypothesis import strategies as st
from models import rows_near_thresholds, trained
from random_forests import random_forest, troublesome_rows
from settled_passes import run_passes
from sklearn.base import clone
from thinned import only, thinned

import forestc
from forestc import load
from forestc.errors import CheckError, ModelError, OptionError, RowsError
from forestc.forest.numbers import Fixed, Ordered, word_range
from forestc.passes.judge import Judge
from forestc.passes.promises import Within
from forestc.passes.quantize import fit_leaves
from forestc.rows.batches import ArrayRows, FitAndHeldOut
from forestc.rows.encode import encode, evaluate
from forestc.search.settle import settled


def quantized(forest, X, truth=None, **options):
    result, steps = run_passes(forest, [Quantize(**options)], ArrayRows(np.asarray(X, dtype=float), truth))
    return result, steps[0]


@pytest.mark.parametrize("kind", ["xgboost-binary", "xgboost-multi", "forest-binary", "forest-multi", "boosting-multi"])
def test_no_decision_and_no_path_of_the_rows_changes(kind):
    model, X, _ = trained(kind)
    forest = load(model)
    result, step = quantized(forest, X)
    assert step.guarantee == "exact-on-data"
    before, after = evaluate(forest, X), evaluate(result, X)
    assert np.array_equal(before.leaves, after.leaves)
    assert np.array_equal(before.index, after.index)
    assert step.report["paths_changed"] == step.report["decisions_changed"] == 0
    fewer, _ = quantized(forest, X, leaf_bits=max(1, step.report["leaf_bits"] - 1), change=1.0)
    if step.report["leaf_bits"] > 1:  # one bit less does change a decision: the bits are the fewest
        assert (evaluate(fewer, X).index != before.index).any()


def test_ordered_inputs_keep_every_path_of_every_row():
    model, X, _ = trained("forest-binary")
    forest = load(model)
    result, _ = quantized(forest, X, input="ordered")
    assert all(feature.number == Ordered(32) for feature in result.features)
    rows = rows_near_thresholds(forest, X, 20_000)
    assert np.array_equal(evaluate(forest, rows).leaves, evaluate(result, rows).leaves)


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(0, 10**6))
def test_ordered_inputs_keep_every_path_of_any_forest(seed):
    forest = random_forest(seed, False)
    rows = troublesome_rows(forest, seed)
    result = Quantize(input="ordered", leaf_bits=12, missing="always").run(forest, None).forest
    assert np.array_equal(evaluate(forest, rows).leaves, evaluate(result, rows).leaves)


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10**6))
def test_fixed_point_keeps_every_path_of_its_rows(seed):
    forest = random_forest(seed, False)
    rows = troublesome_rows(forest, seed, 60)
    result = Quantize().run(forest, ArrayRows(rows))
    assert result.report["paths_changed"] == 0
    assert np.array_equal(evaluate(forest, rows).leaves, evaluate(result.forest, rows).leaves)


def test_whole_numbers_saturate_at_the_outer_thresholds():
    model, X, _ = trained("xgboost-multi")
    result, step = quantized(load(model), X)
    used = [feature for feature in result.features if "whole" in step.report["inputs"][feature.name]]
    assert used
    for feature in used:
        assert isinstance(feature.number, Fixed) and feature.number.fraction == 0
    numbers = np.repeat(np.arange(-70_000.0, 70_000.0, 7)[:, None], X.shape[1], axis=1)
    numbers[:200] = np.arange(-100, 100)[:, None]
    words = encode(result, numbers)
    for index, feature in enumerate(result.features):
        if feature not in used:
            continue
        thresholds, span = result.conditions.thresholds(index), word_range(feature.number, feature.missing)
        assert thresholds.min() - 1 >= span.low and thresholds.max() <= span.high
        assert (
            max(thresholds.max(), 1 - thresholds.min()) > span.high // 2
        )  # no bit that only values beyond all thresholds would need
        assert np.array_equal(words[:, index], np.clip(numbers[:, 0], span.low, span.high))
        sides = words[:, index, None] < thresholds
        assert np.array_equal(sides, numbers[:, :1] < thresholds)


def test_wide_fractions_become_the_ordered_key():
    model, X, _ = trained("tree-regression")
    exact = np.nextafter(X, np.inf)
    result, _ = quantized(load(model), np.concatenate([X, exact]), change=1.0)
    assert evaluate(load(model), exact).leaves.tolist() == evaluate(result, exact).leaves.tolist()


def test_input_bits_bound_the_words_and_the_change_is_measured():
    model, X, y = trained("forest-binary")
    forest = load(model)
    result, step = quantized(forest, X, y, input_bits=6, change=0.2)
    assert max(feature.number.bits for feature in result.features) <= 6
    assert step.guarantee in ("approximate", "exact-on-data")
    changed = (evaluate(forest, X).index != evaluate(result, X).index).mean()
    assert step.change == pytest.approx(changed)


@pytest.mark.parametrize("cost", ["flash-avr", "lut6"])
@pytest.mark.parametrize("kind", only(["forest-binary", "xgboost-binary", "tree-regression"], 1, 2))
def test_words_give_up_bits_that_few_decisions_need(kind, cost):
    model, X, y = trained(kind)
    forest = load(model)
    wide, _ = quantized(forest, X, y)
    narrow, step = quantized(forest, X, y, cost=cost, change=0.2)
    before = [feature.number.bits for feature in wide.features]
    after = [feature.number.bits for feature in narrow.features]
    assert sum(after) < sum(before)
    assert all(new <= old for new, old in zip(after, before, strict=True))
    assert step.change <= 0.2
    if cost == "flash-avr":  # a whole byte saved, or nothing
        assert all(new == old or -(-new // 8) < -(-old // 8) for new, old in zip(after, before, strict=True))


def test_no_decision_changes_for_narrower_words_if_none_may():
    model, X, y = trained("forest-binary")
    forest = load(model)
    narrow, step = quantized(forest, X, y, cost="lut6", change=0)
    assert (evaluate(forest, X).index == evaluate(narrow, X).index).all()
    assert step.guarantee == "exact-on-data"
    wide, _ = quantized(forest, X, y)
    assert sum(each.number.bits for each in narrow.features) < sum(each.number.bits for each in wide.features)


def test_words_are_narrowed_within_the_tolerance_and_given_formats_stay():
    model, X, y = trained("forest-binary")
    forest = load(model)
    first = forest.features[0].name
    halves = FitAndHeldOut(ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2]))
    options = {"tolerance": 0.05, "formats": {first: "fixed<20,12>"}}
    judge = Judge(forest, halves.held_out)
    narrow = Quantize(cost="flash", **options).run(forest, halves.fit, judge).forest
    wide = Quantize(**options).run(forest, halves.fit, judge).forest
    assert narrow.features[0].number == wide.features[0].number == Fixed(20, 12, signed=True)
    assert sum(each.number.bits for each in narrow.features) < sum(each.number.bits for each in wide.features)
    assert judge.of(narrow).within(0.05)


def test_a_cost_goes_with_rows_and_with_rounded_thresholds():
    with pytest.raises(OptionError, match="unknown cost 'gates'"):
        Quantize(cost="gates")
    for options in ({"exact": True}, {"input": "ordered"}, {"scores": 0.1}):
        with pytest.raises(OptionError, match="cost rounds thresholds"):
            Quantize(cost="flash", **options)
    model, _, _ = trained("forest-binary")
    with pytest.raises(OptionError, match="rounds thresholds where rows allow it"):
        run_passes(load(model), [Quantize(cost="flash")], None)


def test_past_the_tolerance_it_is_refused():
    model, X, _ = trained("xgboost-multi")
    with pytest.raises(
        CheckError, match=r"quantize\{leaf_bits=1.*\} changes .* of the decisions on the given rows; 0.10% is allowed"
    ):
        quantized(load(model), X, leaf_bits=1, change=0.001)


def test_regression_is_approximate_and_within_its_tolerance():
    model, X, _ = trained("boosting-regression")
    forest = load(model)
    result, step = quantized(forest, X, change=0.002)
    assert step.guarantee == "approximate"
    before = evaluate(forest, X).scores[:, 0]
    error = np.abs(evaluate(result, X).values[:, 0] - before).max() / (before.max() - before.min())
    assert error <= 0.002
    assert step.change == pytest.approx(error, rel=1e-6)


def test_formats_given_by_hand():
    model, X, _ = trained("forest-multi")
    forest = load(model)
    result, step = quantized(forest, X, formats={"x21": "uint5", "x36": "ufixed<9,4>", "x42": "ordered32"})
    by_name = {feature.name: str(feature.number) for feature in result.features}
    assert (by_name["x21"], by_name["x36"], by_name["x42"]) == ("uint5", "ufixed<9,4>", "ordered32")
    assert step.report["paths_changed"] == 0
    with pytest.raises(OptionError, match="formats names 'age'"):
        quantized(forest, X, formats={"age": "uint8"})
    with pytest.raises(ModelError, match="unknown number type 'u8'"):
        quantized(forest, X, formats={"x21": "u8"})


def test_missing_values_are_kept_where_the_rows_have_some():
    model, X, _ = trained("xgboost-missing")
    forest = load(model)
    result, step = quantized(forest, X)
    assert any(feature.missing for feature in result.features)
    assert np.array_equal(evaluate(forest, X).leaves, evaluate(result, X).leaves)
    assert step.report["paths_changed"] == 0
    full, _ = quantized(forest, np.nan_to_num(X))
    assert not any(feature.missing for feature in full.features)
    with pytest.raises(RowsError, match="missing"):
        evaluate(full, X)
    kept, _ = quantized(forest, np.nan_to_num(X), missing="always", change=1.0)
    assert all(feature.missing for feature in kept.features)
    with pytest.raises(RowsError, match="missing"):
        quantized(forest, X, missing="never")


def test_two_class_probabilities_become_one_output():
    model, X, _ = trained("forest-binary")
    result, _ = quantized(load(model), X)
    assert result.n_outputs == 1
    found = evaluate(result, X)
    assert np.abs(found.values[:, 0] - model.predict_proba(X)[:, 1]).max() < 0.5
    assert np.array_equal(found.decision, model.predict(X))


def test_rows_are_needed_to_choose():
    forest = load(trained("forest-binary")[0])
    with pytest.raises(OptionError, match="quantize needs rows"):
        Quantize().run(forest, None)
    result = Quantize(input="ordered", leaf_bits=8).run(forest, None)
    assert result.forest.quantized
    with pytest.raises(ModelError, match="already quantized"):
        Quantize().run(result.forest, None)


def test_models_of_constants_keep_their_score():
    import xgboost
    from sklearn.tree import DecisionTreeRegressor

    X = np.random.default_rng(0).normal(size=(300, 4))
    for scale in (1.0, 1e-30, 1e12):
        forest = load(DecisionTreeRegressor().fit(X, np.full(300, 0.3 * scale)))
        result, _ = quantized(forest, X)
        assert np.allclose(evaluate(result, X).values[:, 0], 0.3 * scale, rtol=1e-4, atol=0)
    labels = np.arange(300) % 3
    stumps = xgboost.XGBClassifier(n_estimators=2, min_child_weight=1e9).fit(X, labels)
    result, step = quantized(load(stumps), X)
    assert step.guarantee == "exact-on-data"
    assert np.array_equal(evaluate(result, X).decision, stumps.predict(X))


def test_scores_too_far_from_zero_are_refused():
    from dataclasses import replace

    model, X, _ = trained("xgboost-binary")
    far = replace(load(model), bias=np.array([1e20]))  # beside it the trees count for nothing, in float32 too
    assert quantized(far, X)[1].guarantee == "exact-on-data"
    with pytest.raises(ModelError, match="too large for integers; look for a leaf"):
        quantized(replace(far, bias=np.array([1e9])), X, leaf_bits=32)


def test_small_features_use_their_bits():
    _, X, y = trained("forest-binary")
    from sklearn.ensemble import RandomForestClassifier

    low, high = X.min(axis=0), X.max(axis=0)
    changes = []
    for scale in (1.0, 0.01):
        rows = (X - low) / (high - low) * scale
        forest = load(RandomForestClassifier(20, random_state=0).fit(rows, y))
        changes.append(quantized(forest, rows, input_bits=6, change=1.0)[1].change)
    assert changes[1] <= changes[0] + 0.02


@pytest.mark.parametrize(
    "kind", thinned(["xgboost-binary", "xgboost-multi", "forest-binary", "forest-multi", "boosting-binary"], keep=1)
)
def test_fitted_leaves_need_a_bit_or_two(kind, tmp_path):
    """Half of the rows to train and fit, half to judge; what is written equals the fitted forest."""
    model, X, y = trained(kind)
    trees = {"n_estimators": 20} if kind == "forest-multi" else {}  # of fewer each vote counts too much
    model = clone(model).set_params(**trees).fit(X[::2], y[::2])
    options = {"label": y[::2], "held_out": (X[1::2], y[1::2])}
    done = forestc.compile(
        model, X[::2], tmp_path / "fitted", passes="simplify,quantize{fit=true,leaf_bits=1,tolerance=0.1},simplify",
        **options,
    )  # fmt: skip
    rounded = forestc.compile(
        model, X[::2], tmp_path / "rounded", passes="simplify,quantize{leaf_bits=1,change=1},simplify", **options
    )
    fitted_, rounded_ = (of.figures["passes"][1] for of in (done, rounded))
    kept = ", paths of the rows kept" * (fitted_["paths_changed"] == 0)
    assert fitted_["guarantee"] == f"approximate{kept}" and fitted_["leaf_bits"] == 1
    assert not fitted_["chosen_on_held_out"]  # there was no choice
    assert fitted_["held_out"]["lost"] <= min(0.1, rounded_["held_out"]["lost"] + 0.01)
    assert max(int(tree.values.max()) for tree in done.design.forest.trees) <= 1
    engines = ("netlist", "c") if kind.endswith("binary") else ("netlist",)
    assert forestc.check(done.design, X, engines=engines).ok


def test_fitting_finds_the_bits_that_are_enough():
    model, X, y = trained("xgboost-multi")
    forest = load(clone(model).fit(X[::2], y[::2]))
    rows = FitAndHeldOut(ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2]))
    tight, loose = (
        run_passes(forest, [Quantize(fit=True, tolerance=tolerance)], *rows)[1][0] for tolerance in (0.02, 0.3)
    )
    assert tight.held_out["lost"] <= 0.02 and loose.report["leaf_bits"] == 1 <= tight.report["leaf_bits"] <= 4
    # without labels the model is what leaves are fitted to
    plain = FitAndHeldOut(ArrayRows(X[::2]), ArrayRows(X[1::2]))
    _, (output,) = run_passes(forest, [Quantize(fit=True, leaf_bits=2, tolerance=0.1)], *plain)
    assert output.held_out["measure"] == "agreement with the model" and output.held_out["lost"] < 0.1


@pytest.mark.parametrize("kind", ["xgboost-multi", "boosting-regression"])
def test_the_tolerance_finds_the_fewest_leaf_bits_on_held_out_rows(kind):
    model, X, y = trained(kind)
    forest = load(clone(model).fit(X[::2], y[::2]))
    rows, held_out = ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2])
    plain = run_passes(forest, [Quantize()], rows)[1][0]
    result, (step,) = run_passes(forest, [Quantize(tolerance=0.03)], rows, held_out)
    bits = step.report["leaf_bits"]
    assert step.promises[0] == Within(0.03) and bits < plain.report["leaf_bits"] and step.report["chosen_on_held_out"]
    assert Judge(forest, held_out).of(result).within(0.03)
    with pytest.raises(CheckError, match=r"held-out rows, with a standard error of"):  # a bit less is not
        run_passes(forest, [Quantize(tolerance=0.03, leaf_bits=bits - 1)], rows, held_out)
    if not forest.decides:  # some of the R squared is always lost, so the given rows alone decide
        _, (step,) = run_passes(forest, [Quantize(tolerance=0.0)], rows, ArrayRows(X[1::2]))
        assert step.promise == plain.promise and step.report["leaf_bits"] == plain.report["leaf_bits"]
    with pytest.raises(OptionError, match="quantize needs held-out rows"):
        run_passes(forest, [Quantize(tolerance=0.1)], rows)


def test_fewer_rows_to_fit_on_where_there_are_too_many(monkeypatch):
    model, X, y = trained("xgboost-binary")
    forest = load(model)
    monkeypatch.setattr(fit_leaves, "MOST_LEAVES", 20 * 100)
    for size in (len(X), 33):
        judge = Judge(forest, ArrayRows(X, y))
        result = settled(Quantize(fit=True, leaf_bits=2, tolerance=0.1), forest, ArrayRows(X, y, size), judge)
        assert result.report["rows"] == -(-len(X) // -(-len(X) * 20 // 2000))


def test_what_can_not_be_fitted(tmp_path):
    model, X, y = trained("xgboost-binary")
    with pytest.raises(OptionError, match="quantize needs held-out rows"):
        settled(Quantize(fit=True), load(model), ArrayRows(X, y))
    with pytest.raises(OptionError, match="quantize: fit=1; use true or false"):
        Quantize(fit=1)
    numbers, X, y = trained("xgboost-regression")
    with pytest.raises(OptionError, match="fit=true needs a model that decides on one class"):
        settled(Quantize(fit=True), load(numbers), ArrayRows(X, y), Judge(load(numbers), ArrayRows(X, y)))


def value_error(before, after, X):
    """The error of class 1's probability where there are two classes; else of every value, of regressions a share."""
    wanted, got = evaluate(before, X).values.astype(float), evaluate(after, X).values
    wanted = wanted[:, -1:] if got.shape[1] == 1 else wanted
    error = np.abs(wanted - got).max()
    return error if before.decides else error / np.ptp(wanted)


@pytest.mark.parametrize(
    "kind",
    only(
        ["xgboost-binary", "xgboost-multi", "shallow-binary", "shallow-multi", "boosting-multi", "boosting-regression"],
        0,
        3,
        5,
    ),
)
def test_scores_are_kept_with_the_fewest_bits(kind):
    model, X, y = trained(kind.replace("shallow", "forest"))
    if kind.startswith("shallow"):  # leaves of shares: a full tree's are 0 and 1
        model = clone(model).set_params(max_depth=4).fit(X, y)
    forest = load(model)
    free, _ = quantized(forest, X)
    moved = value_error(forest, free, X)  # by default, which keeps decisions alone
    assert moved > (0.02 if kind.startswith("xgboost") else 0)
    scores = float(f"{moved / 5:.1g}")
    result, step = quantized(forest, X, scores=scores)
    error = value_error(forest, result, X)
    assert 0 < error <= scores
    assert step.report["scores_error"] == pytest.approx(error, rel=1e-6)
    assert step.promise.endswith(f"scores within {scores:g} on the rows")
    assert step.report.get("decisions_changed", 0) == 0
    bits = step.report["leaf_bits"]
    try:  # a bit less moves scores too far, or a decision
        fewer, _ = quantized(forest, X, scores=scores, leaf_bits=bits - 1, change=1.0)
    except CheckError as error:
        assert f"at worst; {scores:g} is allowed" in str(error)
    else:
        assert forest.decides and (evaluate(fewer, X).index != evaluate(forest, X).index).any()


def test_scores_of_votes_and_of_a_link_with_exp_are_kept():
    from sklearn.ensemble import HistGradientBoostingRegressor, VotingClassifier

    _, X, y = trained("xgboost-regression")
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=20).fit(X, y)
    for scores in (0.01, 0.0001):
        result, step = quantized(load(poisson), X, scores=scores)
        assert step.report["scores_error"] == pytest.approx(value_error(load(poisson), result, X), rel=1e-6)
        assert step.report["scores_error"] <= scores
    _, X, y = trained("forest-multi")
    members = [(f"m{k}", clone(trained("tree-multi")[0]).set_params(random_state=k)) for k in range(3)]
    votes = VotingClassifier(members).fit(X, y)
    _, step = quantized(load(votes), X, scores=0.01)
    assert step.report["scores_error"] == 0


def test_scores_out_of_reach_or_range_are_refused():
    model, X, _ = trained("xgboost-binary")
    with pytest.raises(CheckError, match=r"changes scores by .* at worst; 1e-12 is allowed; raise scores"):
        quantized(load(model), X, scores=1e-12)
    for options, said in (
        ({"scores": 0}, "scores=0; use an error above 0"),
        ({"scores": "no"}, "scores=no; use an error above 0"),
        ({"scores": 0.1, "fit": True}, "can't keep scores; remove fit or scores"),
    ):
        with pytest.raises(OptionError, match=said):
            Quantize(**options)
    with pytest.raises(OptionError, match="quantize needs rows"):
        Quantize(input="ordered", leaf_bits=8, scores=0.1).run(load(model), None)


def test_scores_are_asked_of_compile_and_reported_in_the_manifest(tmp_path):
    model, X, y = trained("xgboost-binary")
    done = forestc.compile(model, X, tmp_path / "d", label=y, scores=0.01, name="m")
    output = next(entry for entry in done.figures["passes"] if "scores_error" in entry)
    assert 0 < output["scores_error"] <= 0.01
    promised = next(iter(text for name, text in done.design.manifest["guarantees"].items() if "quantize" in name))
    assert promised == "exact-on-data (paths), scores within 0.01 on the rows"
    assert "quantize{change=auto,scores=0.01}" in done.design.manifest["passes"]


def test_noise_moves_the_rows_that_leaves_are_fitted_to():
    """Noise of no rank changes nothing; leaves fitted to moved rows differ, and have memorized fewer rows."""
    model, X, y = trained("xgboost-multi")
    rows, other = ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2])
    right = []
    for noise in (0.0, 1e-9, 0.2):
        passes = [Quantize(fit=True, leaf_bits=1, tolerance=math.inf, noise=noise)]
        forest, _ = run_passes(load(model), passes, rows, other)
        right.append((evaluate(forest, X[::2]).index == y[::2]).mean())
    assert right[0] == right[1] > right[2] > 0.8


def test_noise_is_for_fitted_leaves_alone():
    with pytest.raises(OptionError, match=r"noise is for leaves that are fitted; add fit=true, or remove noise"):
        Quantize(noise=0.1)
    with pytest.raises(OptionError, match="noise"):
        Quantize(fit=True, noise=2)
