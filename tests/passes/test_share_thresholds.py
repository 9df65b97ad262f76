"""Tests share-thresholds: no path of the given rows changes, and there are fewer conditions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from example_counts import examples
from forest_texts import head
from hypothesis import given, settings
from hypothesis import strategies as st
from models import trained
from random_forests import random_forest, troublesome_rows
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc import load
from forestc.algorithms.thresholds.node_bounds import BoundsUpdate
from forestc.errors import CheckError, ModelError, OptionError, RowsError
from forestc.forest.text import parse_forest, print_forest
from forestc.passes import passes_from
from forestc.passes.observation import Observe, columns_of
from forestc.passes.pipeline import run_passes
from forestc.passes.promises import Within
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.scorer import Scorer
from forestc.passes.share_thresholds.drawn_rows import drawn_rows
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds
from forestc.rows.accuracy import Accuracy
from forestc.rows.batches import ArrayRows, Batch, FitAndHeldOut
from forestc.rows.encode import evaluate


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["few-bits", "middle"]))
def test_no_row_s_path_changes(seed, prefer):
    forest = random_forest(seed, False)
    rows = troublesome_rows(forest, seed, 60)
    result = ShareThresholds(prefer=prefer).run(forest, ArrayRows(rows))
    assert [promise.guarantee for promise in result.promises] == ["exact-on-data"]
    assert np.array_equal(evaluate(forest, rows).leaves, evaluate(result.forest, rows).leaves)
    assert len(result.forest.conditions.comparators) <= len(forest.conditions.comparators)


@pytest.mark.parametrize("kind", ["forest-binary", "xgboost-multi", "boosting-regression", "forest-missing"])
def test_conditions_are_shared(kind):
    model, X, _ = trained(kind)
    forest = load(model)
    result = ShareThresholds().run(forest, ArrayRows(X))
    before, after = result.report["distinct_conditions"]
    assert after < before
    assert np.array_equal(evaluate(result.forest, X).leaves, evaluate(forest, X).leaves)
    fewer = held_out_result(
        ShareThresholds(exceptions=0.1, tolerance=math.inf), forest, FitAndHeldOut.every(ArrayRows(X), 5)
    )
    assert fewer.promises == (Within(math.inf),)
    assert fewer.report["distinct_conditions"][1] < after
    task = Observe.of(forest)
    for feature, here in zip(forest.features, task.plain, strict=True):
        assert fewer.report["exceptions_by_feature"].get(feature.name, 0) <= int(0.1 * len(here))
    assert len(result.forest.conditions.comparators) == after and len(forest.conditions.comparators) == before


def test_it_runs_in_the_pipeline(tmp_path):
    model, X, y = trained("xgboost-binary")
    plain = forestc.compile(model, X, tmp_path / "plain", label=y, passes="simplify,round-leaves,simplify")
    shared = forestc.compile(
        model, X, tmp_path / "shared", label=y, passes="simplify,share-thresholds,round-leaves,simplify"
    )
    assert shared.figures["distinct_conditions"] < plain.figures["distinct_conditions"]
    assert shared.figures["comparator_bits"] < plain.figures["comparator_bits"]
    assert forestc.check(shared.design, X, engines=("netlist", "c")).ok


@pytest.mark.parametrize(
    "options",
    [
        {"prefer": "big"},
        {"exceptions": -1},
        {"exceptions": 1.5},
        {"exceptions": True},
        {"exceptions": float("inf")},
        {"tolerance": 2},
        {"tolerance": "1 %"},
        {"path_change": 1.0},
        {"path_change": -0.1},
        {"tolerance": 0.01},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(OptionError, match="share-thresholds"):
        ShareThresholds(**options)


def test_floats_and_rows_are_needed():
    model, X, _ = trained("xgboost-binary")
    forest = load(model)
    with pytest.raises(OptionError, match="needs rows"):
        ShareThresholds().run(forest, None)
    with pytest.raises(OptionError, match="before quantize"):
        ShareThresholds().run(QuantizeInputs().run(forest, ArrayRows(X)).forest, ArrayRows(X))


def test_the_fewest_digits_take_no_more_comparators():
    model, X, _ = trained("forest-binary")
    forest = load(model)
    plain = ShareThresholds(prefer="middle").run(forest, ArrayRows(X)).report
    few = ShareThresholds().run(forest, ArrayRows(X)).report
    assert few["distinct_conditions"] == plain["distinct_conditions"]
    assert few["comparator_bits"][1] < plain["comparator_bits"][1]
    assert few["input_bits"][1] <= plain["input_bits"][1]
    assert set(few["inputs"]) == {feature.name for feature in forest.features}
    assert np.sum(list(few["inputs"].values()), axis=0).tolist() == few["input_bits"]


@pytest.mark.parametrize("kind", ["forest-binary", "forest-regression", "forest-missing"])
def test_each_tree_s_own_rows(kind):
    model, X, _ = trained(kind)
    forest = load(model)
    drawn = drawn_rows(forest, ArrayRows(X))
    own = [np.bincount(samples, minlength=len(X)) for samples in model.estimators_samples_]
    assert np.array_equal(drawn, own)


def test_other_rows_than_the_training_rows_are_found_out():
    model, X, _ = trained("forest-binary")
    forest = load(model)
    with pytest.raises(RowsError, match="568 rows were given, the model was trained on 569"):
        drawn_rows(forest, ArrayRows(X[:-1]))
    with pytest.raises(RowsError, match=r"^tree 0, node 1: .*tree's own rows reach a \w+, not \d+ as in training"):
        drawn_rows(forest, ArrayRows(X[::-1]))
    boosted = load(trained("boosting-binary")[0])
    with pytest.raises(OptionError, match="does not record which rows a tree was trained on"):
        drawn_rows(boosted, ArrayRows(X))


def test_the_text_form_tells_the_draw():
    forest = load(trained("forest-binary")[0])
    again = parse_forest(print_forest(forest))
    assert [tree.drawn for tree in again.trees] == [tree.drawn for tree in forest.trees]
    assert forest.trees[0].drawn is not None
    with pytest.raises(ModelError, match="trained on 5 of 0 rows"):
        parse_forest(print_forest(forest).replace(" drawn 569 of 569", " drawn 5 of 0", 1))


@pytest.mark.parametrize("share", [0.02, 0.2])
@pytest.mark.parametrize("kind", ["forest-binary", "boosting-regression", "forest-missing"])
def test_so_many_rows_of_a_node_change_sides(kind, share):
    """Covers the paper's problem 4: each node is measured on the rows that reached it before."""
    model, X, _ = trained(kind)
    forest, rows = load(model), ArrayRows(X)
    result = held_out_result(ShareThresholds(path_change=share, tolerance=math.inf), forest, FitAndHeldOut(rows, rows))
    assert result.promises == (Within(math.inf),)
    assert (
        result.report["distinct_conditions"][1] < ShareThresholds().run(forest, rows).report["distinct_conditions"][1]
    )
    task = Observe.of(forest)
    x = columns_of(forest, Batch(X))
    order = BoundsUpdate(task.trees).arrange(x)
    new = np.concatenate([tree.threshold for tree in result.forest.trees])
    moved = 0
    for index, nodes in enumerate(task.plain):
        for node in nodes.tolist():
            tree = int(np.searchsorted(task.trees.roots, node, side="right")) - 1
            values = x[index, order.row[tree, order.begin[node] : order.end[node]]]
            changed = int(((values < new[node]) != (values < task.trees.threshold[node])).sum())
            assert changed <= share * len(values)
            moved += changed
    assert moved > 0


def held_out_result(step, forest, rows):
    """Runs a pass on a forest with held-out rows; returns its result."""
    return step.run(forest, rows.fit, Scorer(forest, rows.held_out))


def halves(kind):
    """Returns a model trained on every other row, with these rows, and the rest to score it on."""
    model, X, y = trained(kind)
    forest = load(clone(model).fit(X[::2], y[::2]))
    return forest, FitAndHeldOut(ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2]))


def test_accuracy_past_the_tolerance_is_refused(tmp_path):
    model, X, y = trained("forest-binary")
    forest, rows = halves("forest-binary")
    with pytest.raises(
        CheckError,
        match=r"model's accuracy is lost on 284 .* the loss and 1.5 standard errors are above the tolerance, 0\.0100",
    ):
        run_passes(forest, [ShareThresholds(exceptions=0.9)], *rows)
    done = forestc.compile(
        clone(model).fit(X[::2], y[::2]), X[::2], tmp_path / "out", label=y[::2], held_out=(X[1::2], y[1::2]),
        passes="simplify,share-thresholds{exceptions=1,tolerance=0.1},round-leaves", targets=["c"],
    )  # fmt: skip
    assert done.figures["passes"][1]["held_out"]["rows"] == len(X) // 2
    assert "on the rows held out" in (tmp_path / "out/report.md").read_text()


def test_without_labels_the_model_is_the_truth():
    model, X, _ = trained("forest-regression")
    _, (output,) = run_passes(
        load(model), [ShareThresholds(path_change=0.01, tolerance=0.2)], *FitAndHeldOut.every(ArrayRows(X), 5)
    )
    held_out_result = output.held_out
    assert held_out_result["rows"] == len(X) // 5 and held_out_result["measure"] == "agreement with the model"
    assert held_out_result["before"] == 1.0 and 0.8 <= held_out_result["after"] < 1.0


@pytest.mark.parametrize("option", ["exceptions=1", "path_change=0.1"])
def test_rows_to_judge_on_are_asked_for(option, tmp_path):
    model, X, y = trained("forest-binary")
    passes = f"share-thresholds{{{option}}},round-leaves"
    with pytest.raises(OptionError, match=r"there are none; give rows.*held_out=FILE.*held_out=0\.2"):
        forestc.compile(model, X, tmp_path / "out", passes=passes)
    with pytest.raises(OptionError, match="no rows are held out"):
        forestc.compile(model, X[:3], tmp_path / "out", passes=passes, held_out=0.2)
    for wrong in (0.7, 0, "1.5"):
        with pytest.raises(OptionError, match=r"set a share above 0 and up to 0.5 aside"):
            forestc.compile(model, X, tmp_path / "out", passes=passes, held_out=wrong)
    with pytest.raises(OptionError, match="held_out has none"):
        forestc.compile(model, X, tmp_path / "out", label=y, passes=passes, held_out="rows.csv")
    with pytest.raises(OptionError, match="held_out is a tuple of 3"):
        forestc.compile(model, X, tmp_path / "out", label=y, passes=passes, held_out=(X, y, y))


def test_frames_name_their_label(tmp_path):
    model, X, y = trained("forest-binary")
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(truth=y)
    done = forestc.compile(
        clone(model).fit(X[::2], y[::2]), frame[::2], tmp_path / "out", label="truth", held_out=frame[1::2],
        passes=[ShareThresholds(path_change=0.3, tolerance=np.float32(0.25))], targets=["c"],
    )  # fmt: skip
    assert done.figures["accuracy"]["model"] == 1.0
    assert done.figures["passes"][0]["held_out"]["measure"] == "accuracy"
    assert done.figures["passes"][0]["guarantee"] == "approximate" and done.figures["passes"][0]["change"] > 0
    with pytest.raises(RowsError, match="there is no column 'lies'"):
        forestc.compile(model, frame, tmp_path / "out", label="lies")


def test_rows_held_out_are_not_looked_at():
    model, X, _ = trained("forest-binary")
    forest = load(model)
    other = X.copy()
    other[4::5] = X[:1]  # Every fifth row is replaced.
    for step in (ShareThresholds(), ShareThresholds(exceptions=0.2), QuantizeInputs()):
        same = [held_out_result(step, forest, FitAndHeldOut.every(ArrayRows(of), 5)).forest for of in (X, other)]
        assert np.array_equal(same[0].trees[3].threshold, same[1].trees[3].threshold)


@pytest.mark.parametrize(
    "step",
    [
        ShareThresholds(),
        ShareThresholds(path_change=0.1),
        ShareThresholds(exceptions=0.2),
    ],
)
def test_batches_make_no_difference(step):
    model, X, y = trained("forest-binary")
    forest = load(model)
    whole, parts = (
        held_out_result(step, forest, FitAndHeldOut.every(ArrayRows(X, y, size), 5)) for size in (len(X), 37)
    )
    assert whole.report == parts.report
    for a, b in zip(whole.forest.trees, parts.forest.trees, strict=True):
        assert np.array_equal(a.threshold, b.threshold)


@pytest.mark.parametrize("few_bits", [True, False])
def test_thresholds_that_are_no_numbers_stay(few_bits):
    text = head("x0 float64", bias="0.0", scale="")
    for threshold in ("3.0", "-inf", "inf", "2.0", "7.0", "0.0", "1e-310", "1e+30"):
        text += f"tree outputs 0\n0: 0 < {threshold} ? 1 : 2\n1: leaf 0.0\n2: leaf 1.0\n"
    forest = parse_forest(text)
    for rows in ([[-np.inf], [5.0]], [[1.0], [5.0], [np.inf]], [[-5e-324]], [[-1e-300], [-1.0]], [[1e29], [2e30]]):
        X = np.array(rows * 10)
        step = ShareThresholds(prefer="few-bits" if few_bits else "middle")
        shared, _ = run_passes(forest, [step], ArrayRows(X))  # The pipeline compares leaf by leaf.
        infinite = [tree.threshold[0] for tree in shared.trees if np.isinf(tree.threshold[0])]
        assert infinite == [-np.inf, np.inf]
        lossy = ShareThresholds(exceptions=2, tolerance=math.inf)
        held_out_result(lossy, forest, FitAndHeldOut(ArrayRows(X), ArrayRows(np.array([[1.0], [4.0], [2e30]]))))
        run_passes(
            forest, passes_from("simplify,share-thresholds,round-leaves{leaf_bits=4,change=1},simplify"), ArrayRows(X)
        )


def test_labels_that_judge_nothing_are_refused(tmp_path):
    model, X, y = trained("forest-regression")
    spoilt = y.astype(float)
    spoilt[7] = np.nan
    options = {"passes": "share-thresholds{exceptions=1},round-leaves", "label": y}
    with pytest.raises(RowsError, match="the rows, row 7: a label is missing or infinite"):
        forestc.compile(model, X, tmp_path / "out", held_out=(X, spoilt), **options)
    with pytest.raises(OptionError, match="the held-out rows all have the same label"):
        forestc.compile(model, X, tmp_path / "out", held_out=(X, np.ones(len(y))), **options)


def test_r_squared_keeps_its_digits():
    random = np.random.default_rng(0)
    truth, said = random.normal(size=200), random.normal(size=200)
    shares = []
    for shift in (0.0, 1e9):
        accuracy = Accuracy(False)
        for k in range(0, 200, 9):
            accuracy.add(said[k : k + 9] + shift, Batch(np.zeros((9, 1)), truth[k : k + 9] + shift))
        shares.append(accuracy.share)
    assert abs(shares[0] - shares[1]) < 1e-6


def test_a_forest_without_conditions_goes_through_all_passes(tmp_path):
    X, y = np.arange(20.0)[:, np.newaxis], np.repeat([0, 1], [19, 1])
    model = RandomForestClassifier(3, min_samples_leaf=15, random_state=0).fit(X, y)
    passes = (
        "simplify,share-thresholds,share-thresholds{exceptions=2},round-leaves,prune-splits{keep=decisions},simplify"
    )
    for chosen in ("fit-leaves", passes):
        done = forestc.compile(model, X, tmp_path, label=y, passes=chosen, held_out=0.2, targets=("verilog", "c"))
        assert done.figures["agreement"] == 1
