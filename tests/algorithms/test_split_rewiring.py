"""Tests that a split gets the best condition for its rows, against a trial of all conditions."""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from split_problems import loss_of, outcomes_of, problem, shape_of, state_of

from forestc.algorithms.splits.leaf_fitting import scores_of
from forestc.algorithms.splits.logistic import odds_of
from forestc.algorithms.splits.rewiring import LEAST, Fitted, rewire

ROWS, POOL = 50, 6


def walked(splits, alive, condition, flipped, holds, trees):
    """Returns the leaf of every row in every tree, found from the root down by the splits' intervals."""
    leaf = np.zeros((trees, len(holds)), dtype=np.int32)
    places = zip(splits.tree.tolist(), splits.first.tolist(), splits.last.tolist(), strict=True)
    by_place = {place: split for split, place in enumerate(places)}
    for tree in range(trees):
        end = max([int(z) for t, z in zip(splits.tree, splits.last, strict=True) if t == tree], default=1)
        for row in range(len(holds)):
            first, last = 0, end
            while last - first > 1:
                split = by_place[tree, first, last]
                if not alive[split]:
                    break
                left = bool(holds[row, condition[split]]) != bool(flipped[split])
                first, last = (first, int(splits.middle[split])) if left else (int(splits.middle[split]), last)
            leaf[tree, row] = first
    return leaf


def called(trees, splits, holds, state, bias, label, unit, price, doubt, pool=POOL, sample=0):
    leaf, condition, flipped, alive, uses = state
    scores = scores_of(leaf, trees.start, trees.value, trees.outputs, bias)
    state = state_of(trees, splits, leaf=leaf, condition=condition, flipped=flipped, alive=alive, uses=uses)
    odds = odds_of(scores, unit, label)
    fitted = Fitted(shape_of(trees, splits), state, outcomes_of(holds, pool), odds, unit)
    return rewire(fitted, price, doubt, sample)


@pytest.mark.slow
@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.booleans(), st.sampled_from([0.0, 0.3]))
def test_each_split_takes_the_best_condition(seed, classes, wide, price):
    random = np.random.default_rng(seed)
    trees, splits = problem(random, classes, 2, ROWS, wide)
    if not len(splits.tree):
        return
    holds = random.integers(0, 2, (ROWS, POOL)).astype(np.uint8)
    splits = type(splits)(**{**vars(splits), "cost": random.random(POOL)})
    count = len(splits.tree)
    # All other splits keep their conditions, so that one choice can be tried completely.
    only = int(random.integers(count))
    condition, flipped = splits.condition.copy(), random.random(count) < 0.5
    alive = np.ones(count, dtype=bool)
    for split in range(count):
        if random.random() < 0.2:  # This subtree is a leaf.
            alive[split - splits.size[split] + 1 : split + 1] = False
    condition[np.arange(count) != only] += POOL
    outcomes = np.concatenate([holds, holds], axis=1)
    splits = type(splits)(**{**vars(splits), "cost": np.concatenate([splits.cost, splits.cost])})
    # The leaves of a dead subtree hold the value of its first leaf.
    value = trees.value.copy()
    label, bias, unit = random.integers(0, max(2, classes), ROWS), random.integers(-2, 3, classes), 0.6

    def price_and_loss(condition, flipped):
        leaf = walked(splits, alive, condition, flipped, outcomes, 2)
        loss = ROWS * loss_of(scores_of(leaf, trees.start, value, trees.outputs, bias) * unit, label)
        used = np.unique(condition[alive])
        return loss + price * float(splits.cost[used].sum())

    uses = np.bincount(condition[alive], minlength=2 * POOL).astype(np.int64)
    leaf = walked(splits, alive, condition, flipped, outcomes, 2)
    before = price_and_loss(condition, flipped)
    best = before
    if alive[only]:
        for c in range(POOL):
            for turned in (False, True):
                tried, way = condition.copy(), flipped.copy()
                tried[only], way[only] = c, turned
                best = min(best, price_and_loss(tried, way))
    called(trees, splits, outcomes, (leaf, condition, flipped, alive, uses), bias, label, unit, price, 0.0)
    assert price_and_loss(condition, flipped) == pytest.approx(best, abs=3e-6)
    assert np.array_equal(leaf, walked(splits, alive, condition, flipped, outcomes, 2))
    assert np.array_equal(uses, np.bincount(condition[alive], minlength=2 * POOL))


def test_doubt_keeps_splits_as_they_are():
    random = np.random.default_rng(1)
    trees, splits = problem(random, 1, 3, ROWS, False)
    holds = random.integers(0, 2, (ROWS, POOL)).astype(np.uint8)
    changed = []
    for doubt in (0.0, 100.0):
        condition, flipped = splits.condition.copy(), np.zeros(len(splits.tree), dtype=bool)
        alive = np.ones(len(splits.tree), dtype=bool)
        leaf = walked(splits, alive, condition, flipped, holds, 3)
        uses = np.bincount(condition, minlength=POOL).astype(np.int64)
        label = random.integers(0, 2, ROWS)
        state = (leaf, condition, flipped, alive, uses)
        changed.append(called(trees, splits, holds, state, np.zeros(1, np.int64), label, 0.5, 0.0, doubt))
    assert changed[0] > 0 and changed[1] == 0


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.booleans())
def test_rows_that_choose_are_overruled_by_all(seed, classes, wide):
    """Chooses conditions with a few rows, and checks that changes still serve all rows better."""
    random = np.random.default_rng(seed)
    trees, splits = problem(random, classes, 2, ROWS, wide)
    if not len(splits.tree):
        return
    holds = random.integers(0, 2, (ROWS, POOL)).astype(np.uint8)
    condition, flipped = splits.condition.copy(), random.random(len(splits.tree)) < 0.5
    alive = np.ones(len(splits.tree), dtype=bool)
    uses = np.bincount(condition, minlength=POOL).astype(np.int64)
    leaf = walked(splits, alive, condition, flipped, holds, 2)
    label, bias, unit = random.integers(0, max(2, classes), ROWS), random.integers(-2, 3, classes), 0.6

    def price_and_loss():
        scores = scores_of(walked(splits, alive, condition, flipped, holds, 2), trees.start, trees.value, trees.outputs,
                           bias)  # fmt: skip
        return ROWS * loss_of(scores * unit, label) + 0.3 * len(np.unique(condition))

    before, state = price_and_loss(), (leaf, condition, flipped, alive, uses)
    changed = called(trees, splits, holds, state, bias, label, unit, 0.3, 0.0, sample=5)
    assert price_and_loss() <= before - LEAST * changed + 1e-9
    assert np.array_equal(leaf, walked(splits, alive, condition, flipped, holds, 2))
    assert np.array_equal(uses, np.bincount(condition, minlength=POOL))
