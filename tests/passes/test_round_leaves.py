from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xgboost
from models import trained
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, VotingClassifier
from sklearn.tree import DecisionTreeRegressor
from thinned import only

import forestc
from forestc import load
from forestc.errors import CheckError, ModelError, OptionError
from forestc.passes.pipeline import run_passes
from forestc.passes.promises import Within
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.round_leaves.round_leaves import RoundLeaves
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import evaluate


def rounded(forest, X, truth=None, held_out=None, **options):
    """Returns the forest with rounded leaves, and the step that rounded them. Its words keep all paths."""
    rows = ArrayRows(np.asarray(X, dtype=float), truth)
    result, steps = run_passes(forest, [QuantizeInputs(), RoundLeaves(**options)], rows, held_out)
    return result, steps[1]


@pytest.mark.parametrize("kind", ["xgboost-binary", "xgboost-multi", "forest-binary", "forest-multi", "boosting-multi"])
def test_no_decision_and_no_path_of_the_rows_changes(kind):
    model, X, _ = trained(kind)
    forest = load(model)
    result, step = rounded(forest, X)
    assert step.guarantee == "exact-on-data"
    before, after = evaluate(forest, X), evaluate(result, X)
    assert np.array_equal(before.leaves, after.leaves)
    assert np.array_equal(before.index, after.index)
    assert step.report["decisions_changed"] == 0
    fewer, _ = rounded(forest, X, leaf_bits=max(1, step.report["leaf_bits"] - 1), change=1.0)
    if step.report["leaf_bits"] > 1:  # One bit less changes a decision, so the bits are the fewest.
        assert (evaluate(fewer, X).index != before.index).any()


def test_past_the_tolerance_it_is_refused():
    model, X, _ = trained("xgboost-multi")
    with pytest.raises(
        CheckError,
        match=r"round-leaves\{leaf_bits=1.*\}: changes .* of the decisions on the given rows; 0.10% is allowed",
    ):
        rounded(load(model), X, leaf_bits=1, change=0.001)


def test_regression_is_approximate_and_within_its_tolerance():
    model, X, _ = trained("boosting-regression")
    forest = load(model)
    result, step = rounded(forest, X, change=0.002)
    assert step.guarantee == "approximate"
    before = evaluate(forest, X).scores[:, 0]
    error = np.abs(evaluate(result, X).values[:, 0] - before).max() / (before.max() - before.min())
    assert error <= 0.002
    assert step.change == pytest.approx(error, rel=1e-6)


def test_two_class_probabilities_become_one_output():
    model, X, _ = trained("forest-binary")
    result, _ = rounded(load(model), X)
    assert result.n_outputs == 1
    found = evaluate(result, X)
    assert np.abs(found.values[:, 0] - model.predict_proba(X)[:, 1]).max() < 0.5
    assert np.array_equal(found.decision, model.predict(X))


def test_rows_are_needed_to_choose():
    forest = load(trained("forest-binary")[0])
    words = QuantizeInputs(input="ordered").run(forest, None).forest
    for options in ({}, {"leaf_bits": 8, "scores": 0.1}):
        with pytest.raises(OptionError, match="round-leaves: needs rows"):
            RoundLeaves(**options).run(words, None)
    with pytest.raises(ModelError, match="round-leaves: works on words; put quantize-inputs before it"):
        RoundLeaves(leaf_bits=8).run(forest, None)
    result = RoundLeaves(leaf_bits=8).run(words, None).forest
    assert result.quantized
    with pytest.raises(ModelError, match="already quantized"):
        RoundLeaves(leaf_bits=8).run(result, None)


def test_change_counts_words_and_leaves_together():
    model, X, _ = trained("xgboost-multi")
    forest, words = load(model), QuantizeInputs(input_bits=2, change=1.0)
    after, (_, step) = run_passes(forest, [words, RoundLeaves(leaf_bits=2, change=1.0)], ArrayRows(X))
    both = (evaluate(forest, X).index != evaluate(after, X).index).mean()
    assert 0 < step.change < both
    with pytest.raises(CheckError, match=rf"changes {both:.2%} of the decisions on the given rows"):
        run_passes(forest, [words, RoundLeaves(leaf_bits=2, change=step.change)], ArrayRows(X))


def test_models_of_constants_keep_their_score():
    X = np.random.default_rng(0).normal(size=(300, 4))
    for scale in (1.0, 1e-30, 1e12):
        forest = load(DecisionTreeRegressor().fit(X, np.full(300, 0.3 * scale)))
        result, _ = rounded(forest, X)
        assert np.allclose(evaluate(result, X).values[:, 0], 0.3 * scale, rtol=1e-4, atol=0)
    labels = np.arange(300) % 3
    stumps = xgboost.XGBClassifier(n_estimators=2, min_child_weight=1e9).fit(X, labels)
    result, step = rounded(load(stumps), X)
    assert step.guarantee == "exact-on-data"
    assert np.array_equal(evaluate(result, X).decision, stumps.predict(X))


def test_scores_too_far_from_zero_are_refused():
    model, X, _ = trained("xgboost-binary")
    far = replace(load(model), bias=np.array([1e20]))  # Beside this bias the trees count for nothing, also in float32.
    assert rounded(far, X)[1].guarantee == "exact-on-data"
    with pytest.raises(ModelError, match=r"^pass round-leaves: .*too large for integers"):
        rounded(replace(far, bias=np.array([1e9])), X, leaf_bits=32)


@pytest.mark.parametrize("kind", ["xgboost-multi", "boosting-regression"])
def test_the_tolerance_finds_the_fewest_leaf_bits_on_held_out_rows(kind):
    model, X, y = trained(kind)
    forest = load(clone(model).fit(X[::2], y[::2]))
    held_out = ArrayRows(X[1::2], y[1::2])
    _, plain = rounded(forest, X[::2], y[::2])
    result, step = rounded(forest, X[::2], y[::2], held_out, tolerance=0.03)
    bits = step.report["leaf_bits"]
    assert step.promises[0] == Within(0.03) and bits < plain.report["leaf_bits"] and step.report["chosen_on_held_out"]
    assert Scorer(forest, held_out).of(result).within(0.03)
    with pytest.raises(CheckError, match=r"held-out rows, with a standard error of"):  # a smaller one is broken
        rounded(forest, X[::2], y[::2], held_out, tolerance=0.03, leaf_bits=bits - 1)
    if not forest.decides:  # A regression always loses some R squared, so the given rows alone decide.
        _, step = rounded(forest, X[::2], y[::2], ArrayRows(X[1::2]), tolerance=0.0)
        assert step.promise == plain.promise and step.report["leaf_bits"] == plain.report["leaf_bits"]
    with pytest.raises(OptionError, match="round-leaves: needs held-out rows"):
        rounded(forest, X[::2], y[::2], tolerance=0.1)


def value_error(before, after, X):
    """Returns the error of class 1's probability for two classes, otherwise of every value; for regressions
    as a share."""
    expected, got = evaluate(before, X).values.astype(float), evaluate(after, X).values
    expected = expected[:, -1:] if got.shape[1] == 1 else expected
    error = np.abs(expected - got).max()
    return error if before.decides else error / np.ptp(expected)


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
    if kind.startswith("shallow"):  # The leaves hold shares; those of a full tree would be 0 and 1.
        model = clone(model).set_params(max_depth=4).fit(X, y)
    forest = load(model)
    free, _ = rounded(forest, X)
    moved = value_error(forest, free, X)  # By default only decisions are kept.
    assert moved > (0.02 if kind.startswith("xgboost") else 0)
    scores = float(f"{moved / 5:.1g}")
    result, step = rounded(forest, X, scores=scores)
    error = value_error(forest, result, X)
    assert 0 < error <= scores
    assert step.report["scores_error"] == pytest.approx(error, rel=1e-6)
    assert step.promise.endswith(f"scores within {scores:g} on the rows")
    assert step.report.get("decisions_changed", 0) == 0
    bits = step.report["leaf_bits"]
    try:  # One bit less moves scores too far, or changes a decision.
        fewer, _ = rounded(forest, X, scores=scores, leaf_bits=bits - 1, change=1.0)
    except CheckError as error:
        assert f"at worst; {scores:g} is allowed" in str(error)
    else:
        assert forest.decides and (evaluate(fewer, X).index != evaluate(forest, X).index).any()


def test_scores_of_votes_and_of_a_link_with_exp_are_kept():
    _, X, y = trained("xgboost-regression")
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=20).fit(X, y)
    for scores in (0.01, 0.0001):
        result, step = rounded(load(poisson), X, scores=scores)
        assert step.report["scores_error"] == pytest.approx(value_error(load(poisson), result, X), rel=1e-6)
        assert step.report["scores_error"] <= scores
    _, X, y = trained("forest-multi")
    members = [(f"m{k}", clone(trained("tree-multi")[0]).set_params(random_state=k)) for k in range(3)]
    votes = VotingClassifier(members).fit(X, y)
    _, step = rounded(load(votes), X, scores=0.01)
    assert step.report["scores_error"] == 0


def test_scores_out_of_reach_or_range_are_refused():
    model, X, _ = trained("xgboost-binary")
    with pytest.raises(CheckError, match=r"changes scores by .* at worst; 1e-12 is allowed; raise scores"):
        rounded(load(model), X, scores=1e-12)
    for options, said in (
        ({"scores": 0}, "scores=0; use an error above 0"),
        ({"scores": "no"}, "scores=no; use an error above 0"),
    ):
        with pytest.raises(OptionError, match=said):
            RoundLeaves(**options)


def test_scores_are_asked_of_compile_and_reported_in_the_manifest(tmp_path):
    model, X, y = trained("xgboost-binary")
    done = forestc.compile(model, X, tmp_path / "d", label=y, scores=0.01, name="m")
    output = next(entry for entry in done.figures["passes"] if "scores_error" in entry)
    assert 0 < output["scores_error"] <= 0.01
    promised = next(iter(text for name, text in done.design.manifest["guarantees"].items() if "round" in name))
    assert promised == "exact-on-data, scores within 0.01 on the rows"
    assert "round-leaves{change=auto,scores=0.01}" in done.design.manifest["passes"]
