"""Tests prune-trees: fewer trees, within the tolerance and the limits; and the values that it sets along with them."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from random_forests import random_forest, troublesome_rows
from settled_passes import run_passes
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from xgboost import XGBClassifier, XGBRegressor

from forestc import load
from forestc.errors import ModelError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.passes import passes_from
from forestc.passes.mixed_rows import rows_to_fit
from forestc.passes.promises import Exact, Within
from forestc.passes.prune_trees.prune_trees import PruneTrees
from forestc.passes.prune_trees.selectable import selectable
from forestc.passes.scorer import Scorer
from forestc.passes.tree_costs import bill_of
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import evaluate
from forestc.search.settle import settled

MODELS = {
    "forest": (RandomForestClassifier(20, max_depth=5, random_state=0), load_breast_cancer),
    "extra": (ExtraTreesClassifier(20, max_depth=5, random_state=0), load_breast_cancer),
    "boosting": (XGBClassifier(n_estimators=25, max_depth=3), load_breast_cancer),
    "forest-multi": (RandomForestClassifier(20, max_depth=7, random_state=0), load_digits),
    "boosting-multi": (XGBClassifier(n_estimators=6, max_depth=3), load_digits),
    "forest-regression": (RandomForestRegressor(20, max_depth=5, random_state=0), load_diabetes),
    "boosting-regression": (XGBRegressor(n_estimators=25, max_depth=3), load_diabetes),
}


@cache
def case(kind):
    """Returns quantized forest, training rows, and a scorer on other rows."""
    model, data = MODELS[kind]
    X, y = data(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    fit, held = order[: len(X) // 2], order[len(X) // 2 :]
    source = load(model.fit(X[fit].astype(np.float32), y[fit]))
    rows, held_out = (ArrayRows(X[part].astype(np.float32).astype(np.float64), y[part]) for part in (fit, held))
    forest = run_passes(source, passes_from("simplify,round-leaves{leaf_bits=8,change=1}"), rows)[0]
    return forest, rows, Scorer(source, held_out)


def total(forest, unit):
    return bill_of(forest, unit).of(np.ones(len(forest.trees), dtype=bool))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.long] * (kind in ("extra", "boosting-multi", "forest-multi")))
        for kind in MODELS
    ],
)
def test_fewer_trees_within_the_tolerance(kind):
    forest, rows, scorer = case(kind)
    tolerance = 0.05 if forest.decides else 0.15
    result = settled(PruneTrees(tolerance=tolerance, copies=0 if kind == "boosting-multi" else 2), forest, rows, scorer)
    after, report = result.forest, result.report
    assert result.promises == (Within(tolerance),) and scorer.of(after).within(tolerance)
    assert report["trees"] == [len(forest.trees), len(after.trees)] and report["luts"][1] < 0.8 * report["luts"][0]
    assert report["comparators"][1] == len(after.conditions.comparators)
    assert report["chosen_on"] == ("rows not trained on" if kind.startswith("forest") else "rows")


def test_the_same_seed_gives_the_same_forest():
    forest, rows, scorer = case("boosting")
    one, other = (
        settled(PruneTrees(tolerance=0.05, price=0.1, copies=2, seed=1), forest, rows, scorer) for _ in range(2)
    )
    assert one.report == other.report and np.array_equal(one.forest.bias, other.forest.bias)


@pytest.mark.parametrize("kind", MODELS)
def test_all_trees_make_the_same_forest(kind):
    forest, rows, _ = case(kind)
    sample = rows_to_fit(forest, rows, 10_000)
    weight = np.where(sample.label == 1, 1.0, -1.0) if forest.n_outputs < 3 else np.ones(len(sample.label))
    trees = selectable(forest, sample, weight)
    times = np.ones(len(forest.trees), dtype=np.int64)
    after, X = trees.rebuilt(times), rows.X
    value = trees.task.value(trees.task.sums(times))[0]
    if not forest.decides:
        old, new = evaluate(forest, X).values[:, 0], evaluate(after, X).values[:, 0]
        errors = [((values - rows.truth) ** 2).sum() for values in (old, new)]
        assert errors[1] <= errors[0] * 1.0001 and np.corrcoef(old, new)[0, 1] > 0.999999
        assert value / trees.task.rows == pytest.approx(
            1 - errors[1] / ((rows.truth - rows.truth.mean()) ** 2).sum(), rel=1e-3
        )
        return
    right = [(evaluate(each, X).index == rows.truth).sum() for each in (forest, after)]
    assert right[1] >= right[0]
    if forest.n_outputs > 2:
        assert right[0] == right[1] == value
    else:
        assert right[1] == value + (rows.truth == 0).sum()


def test_moves_are_worth_what_the_forest_is():
    random = np.random.default_rng(0)
    for kind in ("forest-multi", "boosting-multi"):
        forest, rows, _ = case(kind)
        trees = selectable(forest, rows_to_fit(forest, rows, 10_000), np.ones(len(rows.X)))
        for _ in range(3):
            times = random.integers(0, 3, len(forest.trees))
            steps = np.where(random.random(len(times)) < 0.5, 1, -1)
            sums = trees.task.sums(times)
            after = trees.task.values_after(sums, steps, 0.0)
            for member in random.integers(0, len(times), 3).tolist():
                moved = times.copy()
                moved[member] += steps[member]
                assert after[member] == trees.task.value(trees.task.moved(sums, member, int(steps[member])))[0]
                if moved[member] >= 0 and kind == "forest-multi":  # Dropped trees of this kind leave no mean behind.
                    said = evaluate(trees.rebuilt(moved), rows.X).index
                    assert (said == rows.truth).sum() == after[member]


def test_a_higher_price_keeps_fewer_trees():
    forest, rows, scorer = case("forest")
    expensive = settled(PruneTrees(tolerance=0.3, price=5.0, cost="trees"), forest, rows, scorer)
    cheap = settled(PruneTrees(tolerance=0.3, price=0.01, cost="trees"), forest, rows, scorer)
    assert len(expensive.forest.trees) < len(cheap.forest.trees) < 20
    assert expensive.report["chosen_on_held_out"] is False


@pytest.mark.parametrize("unit", ["trees", "nodes", "comparators", "lut6"])
def test_a_share_of_the_hardware_is_kept(unit):
    forest, rows, scorer = case("forest")
    after = settled(PruneTrees(tolerance=0.3, share=0.3, cost=unit), forest, rows, scorer).forest
    bill = "luts" if unit == "lut6" else unit
    assert 0 < total(after, bill) <= 0.3 * total(forest, bill)


def test_trees_that_count_twice_and_leaves_that_are_fitted_again():
    forest, rows, scorer = case("boosting")
    twice = settled(PruneTrees(tolerance=0.2, times=3, share=0.2, cost="trees", copies=0), forest, rows, scorer).forest
    assert len(twice.trees) <= 5
    multiples = [tree.values * times for tree in forest.trees for times in (1, 2, 3)]
    assert all(any(np.array_equal(tree.values, values) for values in multiples) for tree in twice.trees)
    plain, fitted = (
        settled(PruneTrees(tolerance=0.5, share=0.08, cost="trees", refit=refit, copies=0), forest, rows, scorer).forest
        for refit in (False, True)
    )
    accuracy = [(evaluate(each, rows.X).index == rows.truth).mean() for each in (plain, fitted)]
    assert accuracy[1] >= accuracy[0] - 0.01 and not np.array_equal(plain.trees[0].values, fitted.trees[0].values)


def test_leaves_of_a_regression_are_fitted_again():
    forest, rows, scorer = case("boosting-regression")
    few = {"tolerance": math.inf, "share": 0.16, "cost": "trees"}
    plain, fitted = (settled(PruneTrees(**few, refit=refit), forest, rows, scorer).forest for refit in (False, True))
    errors = [((evaluate(each, rows.X).values[:, 0] - rows.truth) ** 2).sum() for each in (plain, fitted)]
    assert errors[1] < 0.95 * errors[0]
    span = max(tree.values.max() for tree in forest.trees) - min(tree.values.min() for tree in forest.trees)
    assert all(tree.values.max() - tree.values.min() <= span for tree in fitted.trees)


def test_trees_of_one_leaf_are_no_members():
    forest, rows, scorer = case("boosting")
    leaf = {"feature": -1, "threshold": 0, "set_index": -1, "left": -1, "right": -1, "missing_left": False, "leaf": 0}
    arrays = {name: np.array([value], dtype=getattr(forest.trees[0], name).dtype) for name, value in leaf.items()}
    one = changed_tree(forest.trees[0], **arrays, values=np.array([[7]]), cover=None, ids=np.zeros(1, dtype=np.int32))
    longer = changed(forest, trees=(one, *forest.trees), bias=forest.bias - 7)
    options = {"tolerance": 0.3, "share": 0.2, "cost": "trees", "copies": 0}
    plain, found = (settled(PruneTrees(**options), each, rows, scorer).forest for each in (forest, longer))
    assert len(found.trees) <= 5 and all(tree.size > 1 for tree in found.trees)
    assert np.array_equal(evaluate(plain, rows.X).scores, evaluate(found, rows.X).scores)


def test_nothing_to_drop_is_exact():
    forest, rows, scorer = case("forest")
    one = settled(PruneTrees(tolerance=0.4, share=0.05, cost="trees"), forest, rows, scorer).forest
    result = settled(PruneTrees(tolerance=0), one, rows, scorer)
    assert result.promises == (Exact(),) and result.forest is one


def test_any_forest_is_pruned_or_refused():
    done = 0
    for seed in range(25):
        forest = random_forest(seed, True)
        X = troublesome_rows(forest, seed, 60)
        scorer = Scorer(forest, ArrayRows(troublesome_rows(forest, seed + 1, 60)))
        try:
            _ = scorer.accuracy
            result = settled(PruneTrees(tolerance=math.inf, copies=0), forest, ArrayRows(X), scorer)
        except OptionError as error:
            assert "prune-trees" in str(error) or "same label" in str(error)
            continue
        done += 1
        assert len(result.forest.trees) <= len(forest.trees)
    assert done > 5


def test_a_choice_beyond_the_tolerance_is_refused():
    with pytest.raises(OptionError, match="is lost on held-out rows; tolerance=0"):
        settled(PruneTrees(price=30.0, tolerance=0), *case("forest"))


def test_what_is_refused():
    forest, rows, scorer = case("forest")
    for options, words in (
        ({"share": 0}, "share=0; use auto or a share up to 1"),
        ({"times": 0}, "times=0"),
        ({"cost": "gates"}, "unknown cost 'gates'"),
    ):
        with pytest.raises(OptionError, match=words):
            PruneTrees(**options)
    with pytest.raises(OptionError, match="needs held-out rows"):
        settled(PruneTrees(), forest, rows)
    with pytest.raises(OptionError, match="needs rows"):
        settled(PruneTrees(), forest, None, scorer)
    with pytest.raises(ModelError, match="put quantize-inputs,round-leaves before it"):
        settled(PruneTrees(), scorer.model, rows, scorer)
