"""Tests that leaves fitted together keep their bits, are never worse than at the start, and stop where no
step helps."""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from split_problems import loss_of, problem

from forestc.algorithms.splits.leaf_fitting import Trees, fit_leaves, scores_of
from forestc.algorithms.splits.logistic import STEEPNESS, change_of, odds_of


def best_loss(trees, value, bias, label):
    scores = scores_of(trees.leaf, trees.start, value, trees.outputs, bias)
    return min(loss_of(scores * unit, label) for unit in STEEPNESS.tolist())


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.booleans())
def test_never_worse_and_within_their_bits(seed, classes, wide):
    random = np.random.default_rng(seed)
    trees, _ = problem(random, classes, int(random.integers(1, 6)), 30, wide)
    label = random.integers(0, max(2, classes), 30)
    bias = random.integers(-3, 4, classes)
    value, moved = fit_leaves(trees, bias, label, 3)
    assert value.min() >= 0 and value.max() <= 3 and value.shape == trees.value.shape
    assert best_loss(trees, value, moved, label) <= best_loss(trees, trees.value, bias, label) + 1e-9


@pytest.mark.parametrize("classes", [1, 3])
def test_the_scores_are_those_of_the_forest(classes):
    random = np.random.default_rng(1)
    trees, _ = problem(random, classes, 4, 20, True)
    bias = np.arange(classes)
    scores = scores_of(trees.leaf, trees.start, trees.value, trees.outputs, bias)
    for row in range(20):
        for k in range(classes):
            own = bias[k] + sum(
                trees.value[trees.start[t] + trees.leaf[t, row] * classes + k] for t in range(len(trees.leaf))
            )
            assert scores[row, k] == own + (0.5 if classes == 1 else 0)


def test_one_bit_tells_what_rounding_lost():
    """Uses four trees of two leaves, all leaves equal at the start: the first tree tells the class, the others are
    noise."""
    random = np.random.default_rng(0)
    label = random.integers(0, 2, 200)
    leaf = np.stack([label, *random.integers(0, 2, (3, 200))]).astype(np.int32)
    trees = Trees(leaf, np.arange(0, 9, 2), np.zeros(8, dtype=np.int64), np.tile([0, 1], (4, 1)))
    value, bias = fit_leaves(trees, np.zeros(1, dtype=np.int64), label, 1)
    scores = scores_of(leaf, trees.start, value, trees.outputs, bias)
    assert ((scores[:, 0] > 0) == label).all()


@pytest.mark.parametrize("step", [-2, -1, 1, 2])
@pytest.mark.parametrize("unit", [1e-4, 1.0, 8.0, 16.0])
def test_what_a_step_changes_is_what_the_loss_then_differs_by(step, unit):
    """Covers odds so steep that a row has all probability in one class."""
    random = np.random.default_rng(2)
    scores, label = random.integers(-6, 7, (200, 1)) + 0.5, random.integers(0, 2, 200)
    rows = np.arange(200, dtype=np.int32)
    change = change_of(odds_of(scores, unit, label), rows, 0, 200, 0, unit * step)
    expected = 200 * (loss_of((scores + step) * unit, label) - loss_of(scores * unit, label))
    assert change == pytest.approx(expected, rel=0.003, abs=1e-9)
