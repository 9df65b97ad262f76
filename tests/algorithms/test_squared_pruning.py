"""Tests that regressions are pruned by their squared error."""

from __future__ import annotations

import numpy as np
import pytest
from split_problems import collapsed, problem, shape_of, state_of

from forestc.algorithms.splits.leaf_fitting import integer_scores, sorted_by_leaf
from forestc.algorithms.splits.squared_pruning import _merged, prune_squared


@pytest.mark.parametrize("wide", [True, False])
def test_what_a_removal_costs_is_what_the_error_then_rises_by(wide):
    for seed in range(20):
        random = np.random.default_rng(seed)
        trees, splits = problem(random, 2, 3, 40, wide)
        if not len(splits.tree):
            continue
        target, bias = random.normal(4, 3, (40, 2)), np.array([1, -2])
        residual = target - integer_scores(trees.leaf, trees.start, trees.value, trees.outputs, bias)
        split = int(random.integers(len(splits.tree)))
        chosen = np.zeros(int(np.diff(trees.outputs[splits.tree[split]])[0]), np.int64)
        shape, state = shape_of(trees, splits), state_of(trees, splits)
        rise = _merged(shape, state, sorted_by_leaf(trees), residual, 3, split, chosen)
        value = collapsed(trees, splits, split, chosen)
        after = target - integer_scores(trees.leaf, trees.start, value, trees.outputs, bias)
        assert rise == pytest.approx((after**2).sum() - (residual**2).sum())


def test_a_rising_price_leaves_ever_less_and_small_prices_fit():
    random = np.random.default_rng(1)
    trees, splits = problem(random, 1, 4, 80, True, largest=7)
    expected = integer_scores(
        trees.leaf, trees.start, random.integers(0, 8, len(trees.value)), trees.outputs, np.array([3])
    )
    before = len(splits.tree)
    found = list(prune_squared(trees, np.zeros(1, np.int64), expected, 7, splits, np.geomspace(1e-6, 1e6, 8)))
    assert found[0].loss < 0.5 < found[-1].loss  # Coordinate descent finds nearly all of the target values.
    for one in found:
        assert one.splits <= before and one.value.min() >= 0 and one.value.max() <= 7
        before = one.splits
    assert before == 0 and found[-1].cost == 0
