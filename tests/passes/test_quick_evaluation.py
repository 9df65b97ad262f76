"""Tests that compiled evaluation answers as the evaluator does: float and quantized forests, thresholds, missing
values."""

from __future__ import annotations

import numpy as np
import pytest
from models import KINDS, rows_near_thresholds, trained
from random_forests import random_forest

import forestc
from forestc.backends.vectors import random_words
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Aggregate, Decision, Link
from forestc.passes import quick_evaluation
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows.encode import encode


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch):
    monkeypatch.setattr(quick_evaluation, "FEW", 0)


def same(forest, words):
    quick, output = evaluate_quickly(forest, words), evaluate_words(forest, words)
    for name in ("leaves", "scores", "values", "decision", "index"):
        a, b = getattr(quick, name), getattr(output, name)
        assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_float_forests_are_evaluated_alike(kind):
    model, X, _ = trained(kind)
    forest = forestc.load(model)
    same(forest, encode(forest, rows_near_thresholds(forest, X, 1000)))


@pytest.mark.parametrize("seed", range(40))
def test_quantized_forests_with_sets_categories_and_missing_words_are_evaluated_alike(seed):
    forest = random_forest(seed, True)
    base = np.zeros((1, len(forest.features)), dtype=np.int64)
    same(forest, random_words(forest, base, 500, np.random.default_rng(seed)))
    same(forest, base[:0])


def test_a_forest_that_reads_no_feature_is_evaluated_alike():
    tree = make_tree(
        where="a leaf", feature=[-1], threshold=[0.0], left=[-1], right=[-1], values=[[2.5]], outputs=[0]
    )  # fmt: skip
    forest = make_forest(
        name="constant", features=[], columns=1, trees=[tree], n_outputs=1, bias=[0.5], aggregate=Aggregate(),
        link=Link(), decision=Decision("none", 0.0, "values"),
    )  # fmt: skip
    same(forest, np.zeros((5, 0)))
