"""share-thresholds: no path of the given rows changes, and there are fewer conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import trained
from random_forests import random_forest, troublesome_rows
from sklearn.base import clone

import forestc
from forestc import load
from forestc.algorithms.node_bounds import BoundsUpdate
from forestc.errors import CheckError, ModelError, OptionError, RowsError
from forestc.forest.evaluate import evaluate
from forestc.forest.rows import ArrayRows, Batch, Judged
from forestc.forest.text import parse_forest, print_forest
from forestc.passes import passes_from
from forestc.passes.drawn_rows import drawn_rows
from forestc.passes.observation import Observe, columns_of
from forestc.passes.pipeline import run_passes
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
    assert fewer.guarantee == "approximate" and fewer.measure == "accuracy"
    assert fewer.report["distinct_conditions"][1] < after
    assert result.forest.distinct_conditions() == after and forest.distinct_conditions() == before


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
    "options",
    [
        {"prefer": "big"},
        {"exceptions": -1},
        {"exceptions": 1.5},
        {"exceptions": True},
        {"tolerance": 2},
        {"tolerance": "1 %"},
        {"rows": "some"},
        {"path_change": 1.0},
        {"path_change": -0.1},
        {"kmeans": 1.5},
        {"budget": -3},
        {"budget": 10, "exceptions": 3},
        {"kmeans": 4, "path_change": 0.1},
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
    with pytest.raises(ModelError, match="before quantize"):
        ShareThresholds().run(Quantize().run(forest, ArrayRows(X)).forest, ArrayRows(X))


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
@pytest.mark.parametrize("step", ["share-thresholds{rows=per-tree}", "simplify,share-thresholds{rows=per-tree}"])
def test_each_tree_s_own_rows(kind, step):
    model, X, y = trained(kind)
    forest = load(model)
    drawn = drawn_rows(forest, ArrayRows(X))
    own = [np.bincount(samples, minlength=len(X)) for samples in model.estimators_samples_]
    assert np.array_equal(drawn, own)
    # the pipeline compares leaf by leaf
    shared, steps = run_passes(forest, passes_from(step)[:-1], ArrayRows(X, y))
    assert steps[-1].keeps == "paths of each tree's own rows" and steps[-1].held_out["rows"] > 0
    differs = evaluate(forest, X).leaves != evaluate(shared, X).leaves
    assert differs.any() and not differs[drawn.T > 0].any()
    whole = ShareThresholds().run(forest, ArrayRows(X)).report["distinct_conditions"][1]
    assert steps[-1].report["distinct_conditions"][1] < whole


def test_other_rows_than_the_training_rows_are_found_out():
    model, X, _ = trained("forest-binary")
    forest, step = load(model), ShareThresholds(rows="per-tree")
    with pytest.raises(RowsError, match="568 rows were given, the model was trained on 569"):
        step.run(forest, ArrayRows(X[:-1]))
    with pytest.raises(RowsError, match=r"tree's own rows reach a \w+, not \d+ as in training.*tree \d+, node \d+"):
        step.run(forest, ArrayRows(X[::-1]))
    boosted = load(trained("boosting-binary")[0])
    with pytest.raises(OptionError, match="does not tell which rows a tree was trained on"):
        step.run(boosted, ArrayRows(X))


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
    """Problem 4: each node, judged by the rows that reached it before."""
    model, X, _ = trained(kind)
    forest, rows = load(model), ArrayRows(X)
    result = ShareThresholds(path_change=share, tolerance=1.0).run(forest, Judged(rows, rows))
    assert result.guarantee == "approximate"
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
            values = x[index, order.index[tree, order.begin[node] : order.end[node]]]
            changed = int(((values < new[node]) != (values < task.trees.threshold[node])).sum())
            assert changed <= share * len(values)
            moved += changed
    assert moved > 0


def test_clusters_of_thresholds():
    model, X, _ = trained("forest-binary")
    forest = load(model)
    result = ShareThresholds(kmeans=3, tolerance=1.0).run(forest, ArrayRows(X))
    assert max(len(result.forest.thresholds_of(index)) for index in range(len(forest.features))) == 3
    assert result.report["missed_intervals"] > 0


def halves(kind):
    """A model trained on every other row, and those rows to be judged on the rest."""
    model, X, y = trained(kind)
    forest = load(clone(model).fit(X[::2], y[::2]))
    return forest, Judged(ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2]))


def test_a_budget_is_met_and_a_larger_one_costs_less():
    forest, rows = halves("forest-binary")
    full = ShareThresholds().run(forest, rows).report["distinct_conditions"][1]
    losses = []
    for budget in (full // 3, full // 2, full):
        step = ShareThresholds(budget=budget, tolerance=1.0)
        _, (told,) = run_passes(forest, [step], rows)
        assert told.report["distinct_conditions"][1] <= budget
        assert sum(told.report["exceptions"].values()) == told.report["missed_intervals"]
        losses.append(told.report["missed_intervals"])
    assert losses[0] > losses[1] > losses[2] == 0
    with pytest.raises(OptionError, match=r"budget=3.*one a feature and set is the least"):
        ShareThresholds(budget=3).run(forest, rows)


@pytest.mark.parametrize("kind", ["forest-binary", "forest-regression", "xgboost-multi", "forest-missing"])
def test_the_fewest_comparators_within_a_tolerance(kind):
    forest, rows = halves(kind)
    sizes = []
    for tolerance in (0.02, 0.05, 0.1):
        _, (told,) = run_passes(forest, [ShareThresholds(tolerance=tolerance)], rows)
        before, after = told.held_out["accuracy"]
        assert before - after <= tolerance
        sizes.append(told.report["distinct_conditions"][1])
    assert sizes[0] >= sizes[1] >= sizes[2]
    assert sizes[2] < 0.7 * ShareThresholds().run(forest, rows).report["distinct_conditions"][1]


def test_accuracy_past_the_tolerance_is_refused(tmp_path):
    model, X, y = trained("forest-binary")
    forest, rows = halves("forest-binary")
    with pytest.raises(CheckError, match=r"loses 0\.\d+ of the accuracy on held-out rows; the tolerance is 0.0100"):
        run_passes(forest, [ShareThresholds(kmeans=1)], rows)
    done = forestc.compile(
        clone(model).fit(X[::2], y[::2]), X[::2], tmp_path / "out", label=y[::2], held_out=(X[1::2], y[1::2]),
        passes="simplify,share-thresholds{tolerance=0.01},quantize", targets=["c"],
    )  # fmt: skip
    assert done.figures["passes"][1]["held_out"]["rows"] == len(X) // 2
    assert "held-out rows" in (tmp_path / "out/report.md").read_text()


def test_rows_known_by_heart_leave_what_is_exact():
    """A model judged on its own training rows: nothing may be lost, and sharing on four in five of them loses."""
    model, X, y = trained("forest-regression")
    _, (told,) = run_passes(load(model), [ShareThresholds(tolerance=0.0)], ArrayRows(X, y))
    assert told.guarantee == "exact-on-data"
    assert told.report == ShareThresholds().run(load(model), ArrayRows(X)).report


def test_without_labels_the_model_is_the_truth():
    model, X, _ = trained("forest-regression")
    _, (told,) = run_passes(load(model), [ShareThresholds(tolerance=0.02)], ArrayRows(X))
    before, after = told.held_out["accuracy"]
    assert told.held_out["rows"] == len(X) // 5 and before == 1.0 and 0.98 <= after < 1.0


def test_rows_held_out_are_not_looked_at():
    model, X, _ = trained("forest-binary")
    forest, rows = load(model), ArrayRows(X)
    other = X.copy()
    other[4::5] = X[:1]  # every fifth row is another
    for step in (ShareThresholds(exceptions=0.2), ShareThresholds(path_change=0.1), ShareThresholds(budget=150)):
        same = [step.run(forest, of).forest for of in (rows, ArrayRows(other))]
        assert np.array_equal(same[0].trees[3].threshold, same[1].trees[3].threshold)


@pytest.mark.parametrize(
    "step",
    [
        ShareThresholds(),
        ShareThresholds(rows="per-tree"),
        ShareThresholds(path_change=0.1),
        ShareThresholds(exceptions=0.2),
        ShareThresholds(tolerance=0.02),
        ShareThresholds(rows="per-tree", budget=120),
    ],
)
def test_batches_make_no_difference(step):
    model, X, y = trained("forest-binary")
    forest = load(model)
    whole, parts = (step.run(forest, ArrayRows(X, y, size)) for size in (len(X), 37))
    assert whole.report == parts.report
    for a, b in zip(whole.forest.trees, parts.forest.trees, strict=True):
        assert np.array_equal(a.threshold, b.threshold)
