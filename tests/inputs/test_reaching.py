"""Tests rows of an input model that reach every leaf."""

import numpy as np
import pytest
from input_models import mixed_forest, mixed_rows
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.checks.coverage import Coverage, Reachable
from forestc.forest.evaluate import evaluate_words
from forestc.inputs.learn import learned
from forestc.inputs.reaching import reaching_rows
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode


@pytest.fixture(scope="module")
def deep():
    """Makes a forest of complete trees with contradicting conditions on many paths."""
    return mixed_forest(8, 7, 5)


@pytest.fixture(scope="module")
def quantized(deep):
    """Quantizes it without simplify, which removes the leaves of such paths."""
    return forestc.quantize(deep, passes="none")


@pytest.fixture(scope="module")
def inputs(quantized):
    return learned(quantized, ArrayRows(mixed_rows(300, 1)), samples=1)


def covered(forest, rows):
    """Returns counts of leaves, nodes and sides of comparators that raw rows reach."""
    coverage = Coverage.of(forest)
    coverage.add(evaluate_words(forest, encode(forest, rows)).leaves)
    return coverage.figures(Reachable.of(forest))


def test_every_leaf_is_reached_or_shown_unreachable(deep, quantized, inputs):
    found = reaching_rows(inputs, deep, quantized, 500)
    rows = inputs.raw_rows(found.values)
    figures = covered(quantized, rows)
    for output in figures.values():
        assert output["reached"] + output["unreachable"] == output["all"]
    leaves = figures["leaves"]
    assert (found.leaves, found.unreachable) == (leaves["all"], leaves["unreachable"]) and found.unreachable > 20
    assert covered(quantized, rows[:500])["leaves"]["reached"] == found.reached_by_drawn < leaves["reached"]
    assert np.array_equal(rows[:500], inputs.rows(500), equal_nan=True)
    again = reaching_rows(inputs, deep, quantized, 500)
    assert np.array_equal(found.values, again.values, equal_nan=True)
    other = reaching_rows(inputs, deep, quantized, 500, seed=1)
    assert not np.array_equal(found.values[:500], other.values[:500], equal_nan=True)


def test_rows_for_a_leaf_stay_in_the_ranges_where_the_box_allows(deep, quantized, inputs):
    age = inputs.raw_rows(reaching_rows(inputs, deep, quantized, 200).values)[:, 2]
    assert (age == np.floor(age)).all() and age.min() >= 0 and age.max() <= 19


def test_no_value_is_missing_where_the_design_takes_none():
    model = mixed_forest(4, 4, 1)
    gapless = np.nan_to_num(mixed_rows(300, 1))
    design = forestc.quantize(model, gapless)
    assert not any(feature.missing for feature in design.features)
    inputs = learned(model, ArrayRows(mixed_rows(300, 1)), samples=1)
    assert np.isnan(inputs.rows(200)).any()
    found = reaching_rows(inputs, model, design, 200)
    assert not np.isnan(found.values).any()
    leaves = covered(design, inputs.raw_rows(found.values))["leaves"]
    assert leaves["reached"] + leaves["unreachable"] == leaves["all"]


def test_leaves_of_missing_or_infinite_values_alone_are_reached():
    random = np.random.default_rng(0)
    X = random.integers(0, 5, (400, 3)).astype(float)
    # The splits of column 0 are x <= inf: of all numbers only infinity goes with the missing values.
    X[random.random(400) < 0.3, 0] = np.nan
    y = np.isnan(X[:, 0]) ^ (X[:, 1] > 2) ^ (random.random(400) < 0.05)
    model = forestc.load(RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, y))
    exact = forestc.quantize(model, level=0)
    assert np.isinf(model.conditions.thresholds(0)).any()
    inputs = learned(exact, ArrayRows(X), samples=1)
    output = covered(exact, inputs.raw_rows(reaching_rows(inputs, model, exact, 50).values))["leaves"]
    assert output["reached"] + output["unreachable"] == output["all"]


def test_a_missing_value_is_evidence_where_training_rows_missed_it(inputs):
    absent = np.isnan(mixed_rows(300, 1)).any(axis=0)
    assert 0 < absent.sum() < len(absent)
    for k, (column, start) in enumerate(zip(inputs.inputs, inputs.starts[:-1], strict=True)):
        evidence = {start + variable: states for variable, states in column.absent_literals().items()}
        assert bool(evidence) == absent[column.column]
        states = inputs.tree.sample(50, np.random.default_rng(0), evidence)
        values = inputs.values(states, np.random.default_rng(0))
        assert np.isnan(values[:, k]).all() == absent[column.column]
