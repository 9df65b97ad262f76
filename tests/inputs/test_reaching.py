"""Tests boxes of leaves, coverage, and rows that reach every leaf."""

import numpy as np
import pytest
from input_models import MIXED, mixed_forest, mixed_rows
from lightgbm import LGBMClassifier
from random_forests import random_forest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.checks.boxes import Boxes
from forestc.checks.coverage import Coverage, Reachable
from forestc.forest.evaluate import evaluate_words, leaf_nodes
from forestc.forest.numbers import word_range
from forestc.forest.text import parse_forest, print_forest
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


def test_every_leaf_is_reached_or_shown_unreachable(deep, quantized, inputs):
    found = reaching_rows(inputs, deep, quantized, 500)
    rows = inputs.raw_rows(found.values)
    coverage = Coverage.of(quantized)
    coverage.add(evaluate_words(quantized, encode(quantized, rows)).leaves)
    figures = coverage.figures(Reachable.of(quantized))
    for output in figures.values():
        assert output["reached"] + output["unreachable"] == output["all"]
    assert figures["leaves"]["unreachable"] > 20
    assert found.reached_by_drawn < figures["leaves"]["reached"] == found.leaves - found.unreachable
    again = reaching_rows(inputs, deep, quantized, 500)
    assert np.array_equal(found.values, again.values, equal_nan=True)


def test_rows_for_a_leaf_stay_in_the_ranges_where_the_box_allows(deep, quantized, inputs):
    rows = inputs.raw_rows(reaching_rows(inputs, deep, quantized, 200).values)
    age = rows[:, 2]
    assert (age == np.floor(age)).all() and age.min() >= 0 and age.max() <= 19


@pytest.mark.parametrize("seed", range(30))
def test_boxes_against_words(seed):
    forest = random_forest(seed, True)
    random = np.random.default_rng(seed)
    words = (
        np.stack(
            [
                random.integers((w := word_range(f.number, f.missing)).low, w.top, 400, endpoint=True)
                for f in forest.features
            ],
            axis=1,
        )
        if forest.features
        else np.zeros((400, 0), dtype=np.int64)
    )
    for index, feature in enumerate(forest.features):
        near = forest.conditions.thresholds(index)
        if len(near):
            span = word_range(feature.number, feature.missing)
            picked = np.clip(random.choice(near, 400) + random.integers(-1, 2, 400), span.low, span.top)
            words[:, index] = np.where(random.random(400) < 0.7, picked, words[:, index])
    all_boxes = Boxes(forest)
    domains = all_boxes.domains
    for index, tree in enumerate(forest.trees):
        boxes = dict(all_boxes.leaves(index))
        assert len(boxes) == (tree.left == -1).sum()
        for node, word in zip(leaf_nodes(forest, tree, words).tolist(), words, strict=True):
            box = boxes[node]
            if box is None:  # No raw value has this word, such as that of a NaN among ordered floats.
                assert any(not domains[f].inhabited((int(w), int(w) + 1)) for f, w in enumerate(word.tolist()))
                continue
            for feature, values in box.items():
                missing = word_range(forest.features[feature].number, forest.features[feature].missing).missing
                value = int(word[feature])
                inside = values.missing if value == missing else any(a <= value < b for a, b in values.spans)
                assert inside or not domains[feature].inhabited((value, value + 1))


def test_a_leaf_between_two_neighboring_floats_is_unreachable():
    """Real numbers, but no float32, lie between these thresholds."""
    head = print_forest(MIXED).split("tree outputs")[0].replace('"size" float32', '"size" ufixed<60,50>')
    head = head.replace("float64 column 2", "int8 column 2").replace("float32 column 4", "int8 column 4")
    head = head.replace("bias 0.0", "bias 0").replace("0.5 on scores", "1 on scores")
    low = int(np.float32(1000).astype(np.float64) * 2**50) + 1
    tree = f"0: 0 < {low} ? 1 : 2\n1: leaf 0\n2: 0 < {low + 5} ? 3 : 4\n3: leaf 1\n4: leaf 2\n"
    forest = parse_forest(f"{head}scale 1.0\ntree outputs 0\n{tree}")
    boxes = dict(Boxes(forest).leaves(0))
    assert boxes[3] is None and boxes[1] is not None and boxes[4] is not None


def test_coverage_counts_visits():
    forest = forestc.quantize(MIXED, level=0)
    rows = mixed_rows(50, 3)
    found = evaluate_words(forest, encode(forest, rows))
    coverage = Coverage.of(forest)
    coverage.add(found.leaves[:20])
    coverage.add(found.leaves[20:])
    for index, tree in enumerate(forest.trees):
        assert coverage.visits(index)[0] == 50
        nodes = leaf_nodes(forest, tree, encode(forest, rows))
        assert np.array_equal(coverage.leaf_visits[index], np.bincount(nodes, minlength=tree.size))


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
    rows = inputs.raw_rows(reaching_rows(inputs, model, exact, 50).values)
    coverage = Coverage.of(exact)
    coverage.add(evaluate_words(exact, encode(exact, rows)).leaves)
    output = coverage.figures(Reachable.of(exact))["leaves"]
    assert output["reached"] + output["unreachable"] == output["all"]


def test_leaves_and_inner_nodes_may_have_one_number():
    """LightGBM numbers leaves from 0, and inner nodes from 0, too."""
    X, y = load_breast_cancer(return_X_y=True)
    model = LGBMClassifier(n_estimators=5, num_leaves=7, verbose=-1).fit(X, y)
    forest = forestc.load(model)
    coverage = Coverage.of(forest)
    coverage.add(forestc.evaluate(forest, X).leaves)
    reached = np.asarray(model.predict(X, pred_leaf=True)).reshape(len(X), -1)
    expected = sum(len(np.unique(column)) for column in reached.T)
    assert coverage.figures(None)["leaves"]["reached"] == expected > 2 * len(forest.trees)
