"""Tests boxes of leaves, and coverage."""

import numpy as np
import pytest
from input_models import MIXED, mixed_rows
from lightgbm import LGBMClassifier
from random_forests import random_forest
from sklearn.datasets import load_breast_cancer

import forestc
from forestc.checks.boxes import Boxes
from forestc.checks.coverage import Coverage
from forestc.forest.evaluate import evaluate_words, leaf_nodes
from forestc.forest.numbers import word_range
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import encode


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
    head = print_forest(MIXED).split("tree outputs")[0].replace('"size" float32', '"size" ap_ufixed<60,10>')
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
