"""Tests the pruning of splits: each is priced by its cost and loss, and the result is a forest of fewer leaves."""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from split_problems import collapsed, loss_of, problem, shape_of, state_of

from forestc.algorithms.splits.leaf_fitting import Trees, scores_of, sorted_by_leaf
from forestc.algorithms.splits.logistic import odds_of
from forestc.algorithms.splits.pruning import Splits, _best, prune


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.booleans())
def test_what_a_removal_costs_is_what_the_loss_then_rises_by(seed, classes, wide):
    random = np.random.default_rng(seed)
    trees, splits = problem(random, classes, 3, 40, wide)
    if not len(splits.tree):
        return
    label = random.integers(0, max(2, classes), 40)
    bias, unit = random.integers(-3, 4, classes), 0.7
    before = scores_of(trees.leaf, trees.start, trees.value, trees.outputs, bias)
    split = int(random.integers(len(splits.tree)))
    shape, state = shape_of(trees, splits), state_of(trees, splits)
    change, chosen = _best(shape, state, sorted_by_leaf(trees), odds_of(before, unit, label), unit, split)
    value = collapsed(trees, splits, split, chosen)
    after = scores_of(trees.leaf, trees.start, value, trees.outputs, bias) * unit
    assert change == pytest.approx(40 * (loss_of(after, label) - loss_of(before * unit, label)), abs=1e-9)


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.booleans())
def test_a_rising_price_leaves_ever_less(seed, classes, wide):
    random = np.random.default_rng(seed)
    trees, splits = problem(random, classes, 4, 60, wide)
    label = random.integers(0, max(2, classes), 60)
    widths = trees.outputs[:, 1] - trees.outputs[:, 0]
    slots = np.concatenate([[0], np.cumsum(np.diff(trees.start) // widths)])
    before = len(splits.tree)
    for found in prune(trees, np.zeros(classes, np.int64), label, 3, splits, np.geomspace(0.01, 1000, 8)):
        assert found.splits <= before and found.value.min() >= 0 and found.value.max() <= 3
        before = found.splits
        groups = 0
        for tree, width in enumerate(widths.tolist()):
            own = found.value[trees.start[tree] : trees.start[tree + 1]].reshape(-1, width)
            group = found.group[slots[tree] : slots[tree + 1]]
            assert np.array_equal(own, own[group])  # Leaves joined into one hold one value.
            groups += len(np.unique(group))
        assert groups == found.splits + len(widths)  # A binary tree of k leaves has k - 1 splits.
    assert before == 0 and found.cost == 0


def test_a_split_that_tells_the_class_stays_and_noise_goes():
    random = np.random.default_rng(0)
    label = random.integers(0, 2, 400)
    leaf = np.stack([label, *random.integers(0, 2, (3, 400))]).astype(np.int32)
    trees = Trees(leaf, np.arange(0, 9, 2), random.integers(0, 2, 8), np.tile([0, 1], (4, 1)))
    one = np.ones(4, dtype=np.int64)
    splits = Splits(np.arange(4), one * 0, one, one * 2, one, np.arange(4), np.ones(4), node=0.4, sum=1.0)
    *_, found = prune(trees, np.zeros(1, np.int64), label, 1, splits, np.array([0.1, 1.0, 5.0]))
    assert found.splits == 1 and found.value[0] != found.value[1]
