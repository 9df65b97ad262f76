"""Tests regrow-trees: the forest gives the grown trees' scores, tables have no more conditions than a LUT, the smallest
forest is taken."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from algorithms.test_priced_boosting import answers
from models import trained
from random_forests import random_forest, troublesome_rows
from settled_passes import run_passes
from sklearn.base import clone

from forestc import load
from forestc.algorithms.boosting.trees import Growth
from forestc.errors import CheckError, ModelError, OptionError
from forestc.passes import passes_from
from forestc.passes.grown_trees import leaf_unit
from forestc.passes.promises import Exact, Within
from forestc.passes.regrow_trees.regrow_trees import GrowingLadder, RegrowTrees
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows, FitAndHeldOut
from forestc.rows.encode import evaluate

START = "simplify,round-leaves{leaf_bits=6,change=1}"


@cache
def halves(kind):
    """Returns a model, rows to fit, and held-out rows that the model was not trained on."""
    model, X, y = trained(kind)
    if kind == "xgboost-multi":  # Four classes are enough.
        X, y = X[y < 4], y[y < 4]
    model = clone(model).fit(X[::2], y[::2])
    return model, (X[::2], y[::2]), (X[1::2], y[1::2])


def regrown(kind, options, with_labels=True):
    model, *both = halves(kind)
    rows = [ArrayRows(X, y if with_labels else None) for X, y in both]
    forest, steps = run_passes(load(model), passes_from(f"{START},regrow-trees{{{options}}}"), *rows)
    return forest, steps[3], rows[1]


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_forest_says_what_was_grown(symmetric):
    """Covers sets, missing values, categories, any aggregate and votes: scores are those of the grown trees."""
    done, others, absent = 0, 0, 0
    for seed in range(60):
        forest = random_forest(seed, True)
        X = troublesome_rows(forest, seed, 120)
        try:
            RegrowTrees().refuse(forest, ArrayRows(X), Scorer(forest, ArrayRows(X)))
        except OptionError:
            assert len(forest.targets) > 1 or forest.n_scores > 1
            continue
        ladder = GrowingLadder(forest, ArrayRows(X), RegrowTrees(copies=0))
        growth = Growth(rounds=3, depth=3, leaves=6, symmetric=symmetric, leaf_bits=1 + seed % 3, unit=0.5, least=0.1)
        grown = ladder.grower.grown(growth)
        result = ladder.rebuilt(grown, growth)
        scores = np.repeat(grown.bias[:, None], len(X), axis=1)
        for tree in grown.trees:
            scores[tree.output] += [answers(tree, ladder.grower.cuts, row) for row in range(len(X))]
        output = evaluate(result, X)
        low = output.scores * growth.unit - scores.T
        assert (np.abs(low) <= growth.unit / 2 + 1e-6).all() and np.ptp(low, axis=0).max() < 1e-6
        assert low.shape[1] > 1 or (low <= 1e-6).all()
        if forest.decides and len(forest.classes) == 2:
            assert (output.index == (scores[0] >= -1e-9)).all()
        done += len(grown.trees) > 0
        others += any(tree.sets for tree in result.trees)
        absent += any(tree.missing_left.any() for tree in result.trees)
    assert done > 10 and others > 3 and absent > 3


@pytest.mark.parametrize(("kind", "tolerance"), [("xgboost-binary", 0.05), ("xgboost-multi", 0.08)])
def test_the_smallest_within_the_tolerance(kind, tolerance):
    forest, step, held_out = regrown(kind, f"tolerance={tolerance},copies=0,sweeps=0,leaf_bits=1,price=0.3")
    assert step.promises == (Within(tolerance),) and step.report["cost"][1] < step.report["cost"][0]
    assert step.report["chosen_on_held_out"] and step.report["scores"] == "log_odds"
    assert all(len(set(tree.threshold[tree.inner].tolist())) <= 6 for tree in forest.trees)
    assert max(int(tree.values.max()) for tree in forest.trees) == 1
    assert Scorer(load(halves(kind)[0]), held_out).of(forest).within(tolerance)


def test_narrow_luts_make_smaller_tables_and_processors_none():
    for cost, most in (("ecp5", 4), ("lut6", 6)):
        forest, _, _ = regrown("xgboost-binary", f"cost={cost},trees=4,price=0.01,leaf_bits=1,tolerance=inf")
        assert max(tree.depth for tree in forest.trees) <= most
        assert all(tree.size == 2 ** (tree.depth + 1) - 1 for tree in forest.trees)
    forest, _, _ = regrown("xgboost-binary", "cost=flash,trees=4,price=0.01,leaf_bits=3,tolerance=inf")
    assert any(tree.size < 2 ** (tree.depth + 1) - 1 for tree in forest.trees)


def test_nothing_within_the_tolerance_and_the_forest_stays():
    forest, step, _ = regrown("xgboost-binary", "tolerance=0,copies=0,sweeps=0,price=30,leaf_bits=1")
    assert step.promises == (Exact(),) and step.report["price"] is None and step.report["scores"] == "unchanged"
    assert step.report["trees"][0] == step.report["trees"][1] == len(forest.trees)


def test_a_given_size_beyond_the_tolerance_is_refused():
    with pytest.raises(CheckError, match="accuracy is lost"):
        regrown("xgboost-multi", "trees=1,price=3,leaf_bits=1,copies=0")


def test_values_and_models_without_labels():
    forest, step, _ = regrown("boosting-regression", "tolerance=0.3,copies=0,price=0.3")
    assert not forest.decides and step.report["leaf_bits"] == 4
    assert step.held_out["measure"] == "R squared" and step.held_out["after"] > step.held_out["before"] - 0.3
    _, step, _ = regrown("xgboost-binary", "tolerance=0.1,copies=0,price=0.3,leaf_bits=1", with_labels=False)
    assert step.held_out["measure"] == "agreement with the model" and step.held_out["after"] > 0.9


def test_same_seed_same_forest():
    (one, *_), (two, *_) = (regrown("xgboost-binary", "trees=3,price=0.1,leaf_bits=2,tolerance=inf") for _ in range(2))
    for a, b in zip(one.trees, two.trees, strict=True):
        assert np.array_equal(a.threshold, b.threshold) and np.array_equal(a.values, b.values)


def test_refusals():
    model, X, y = trained("xgboost-binary")
    forest, rows = load(model), ArrayRows(X, y)
    with pytest.raises(OptionError, match="needs rows"):
        RegrowTrees().refuse(forest, None, None)
    with pytest.raises(OptionError, match="needs held-out rows"):
        run_passes(forest, passes_from("round-leaves,regrow-trees"), rows)
    with pytest.raises(ModelError, match="put quantize-inputs,round-leaves before it"):
        run_passes(forest, passes_from("regrow-trees,round-leaves"), *FitAndHeldOut.every(rows, 3))
    wrong = ("trees=0", "price=-1", "leaf_bits=9", "cost=xc7", "depth=7", "noise=2", "noise=0.1,copies=0")
    for bad in wrong:
        with pytest.raises(OptionError):
            passes_from(f"regrow-trees{{{bad}}}")


def test_noise_and_depth_are_taken():
    options = "trees=3,price=0.1,leaf_bits=1,tolerance=inf,copies=2,depth=3"
    still, moved = (regrown("xgboost-multi", f"{options},noise={noise}")[0] for noise in (0, 0.1))
    assert all(tree.depth <= 3 for forest in (still, moved) for tree in forest.trees)
    alike = [np.array_equal(a.threshold, b.threshold) for a, b in zip(still.trees, moved.trees, strict=False)]
    assert not all(alike)


def test_the_distance_between_levels_is_a_power_of_two_of_the_values_deviation():
    assert leaf_unit(0.5, np.array([-3.0, 3.0])) == 2.0  # By ratio, 1.5 is nearer to 2 than to 1.
    assert leaf_unit(0.5, np.full(4, 7.0)) == 0.5  # All values are the same.
