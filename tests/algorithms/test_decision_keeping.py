"""Every row is decided as wanted: leaves move, trees are added, and no split stays that no row needs."""

from __future__ import annotations

import numpy as np
import pytest
from split_problems import outcomes_of, problem, shape_of, state_of

from forestc.algorithms.splits.decision_keeping import RequiredDecisions, keep_decisions
from forestc.algorithms.splits.kept_decisions import (
    Decided,
    MovableLeaves,
    collapse,
    mend_leaves,
    slack_against,
    slack_of,
    slacks,
    visits_for,
)
from forestc.algorithms.splits.leaf_fitting import integer_scores, sorted_by_leaf
from forestc.algorithms.splits.mending_trees import added_by, mend
from forestc.algorithms.splits.pruning import Pruned
from forestc.algorithms.splits.reached_leaves import leaves_on


def decided_class(scores, last=False):
    """The definition: with one score class 1 from 0 on, else the highest, of equals the first or the last."""
    if scores.shape[1] == 1:
        return (scores[:, 0] >= 0).astype(np.int64)
    if last:
        return scores.shape[1] - 1 - scores[:, ::-1].argmax(axis=1)
    return scores.argmax(axis=1)


@pytest.mark.parametrize(("classes", "last"), [(1, False), (3, False), (3, True), (5, True)])
def test_slack_is_how_far_a_decision_is_from_another(classes, last):
    random = np.random.default_rng(classes)
    scores = random.integers(-3, 4, (200, classes))
    label = random.integers(0, max(2, classes), 200)
    found = slacks(Decided(label, scores, last))
    assert np.array_equal(found >= 0, decided_class(scores, last) == label)
    for row in np.flatnonzero(found >= 0)[:50]:
        rival = 1 - label[row] if classes == 1 else (label[row] + 1) % classes
        room = slack_against(scores[row], label[row], rival, last)
        for step, kept in ((room, True), (room + 1, False)):
            moved = scores[row : row + 1].copy()
            moved[0, 0 if classes == 1 else rival] += step if classes > 1 or label[row] == 0 else -step
            assert (slack_of(moved[0], label[row], last) >= 0) == ((kept and found[row] >= 0) or (classes > 1 and kept))


def of(random, classes, rows, wide, largest=3):
    """A random ensemble, its present scores, and labels that agree with most of its decisions."""
    trees, splits = problem(random, classes, 4, rows, wide, largest)
    bias = random.integers(-4, 1, classes)
    scores = integer_scores(trees.leaf, trees.start, trees.value, trees.outputs, bias)
    label = decided_class(scores)
    return trees, splits, bias, scores, label


@pytest.mark.parametrize(("classes", "wide"), [(1, True), (3, True), (3, False)])
def test_leaves_move_until_rows_are_decided_as_wanted(classes, wide):
    mended = 0
    for seed in range(15):
        random = np.random.default_rng(seed)
        trees, _, bias, _, label = of(random, classes, 60, wide)
        # leaves are disturbed: the values that decide as wanted exist
        value = np.clip(trees.value + random.integers(-1, 2, len(trees.value)), 0, 3)
        scores = integer_scores(trees.leaf, trees.start, value, trees.outputs, bias)
        leaves = MovableLeaves(trees.leaf, value, trees.start, trees.outputs, bias, 3)
        decided = Decided(label, scores, False)
        before = int((slacks(decided) < 0).sum())
        after = mend_leaves(leaves, sorted_by_leaf(trees), decided, visits_for(60, 4), 0)
        own = integer_scores(trees.leaf, trees.start, leaves.value, trees.outputs, leaves.bias)
        assert np.array_equal(own, decided.scores) and after == (decided_class(own) != label).sum() <= before
        assert leaves.value.min() >= 0 and leaves.value.max() <= 3
        mended += before - after
    assert mended > 25


@pytest.mark.parametrize(("classes", "wide"), [(1, True), (3, True), (3, False)])
def test_a_subtree_goes_exactly_where_a_value_keeps_all_rows(classes, wide):
    gone = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        trees, splits, bias, scores, label = of(random, classes, 25, wide)
        if not len(splits.tree):
            continue
        shape, state = shape_of(trees, splits), state_of(trees, splits, value=trees.value.copy())
        leaves = MovableLeaves(state.leaf, state.value, shape.start, shape.outputs, bias, 3)
        decided = Decided(label, scores, False)
        split = int(random.integers(len(splits.tree)))
        tree, width = int(splits.tree[split]), int(np.diff(shape.outputs[splits.tree[split]])[0])
        slots = np.arange(splits.first[split], splits.last[split])
        possible = False
        for number in range(4 if width == 1 else 0):  # with several outputs only the mean is tried
            value = trees.value.copy()
            value[shape.start[tree] + slots] = number
            tried = integer_scores(trees.leaf, trees.start, value, trees.outputs, bias)
            possible |= bool((decided_class(tried) == label).all())
        removed = collapse(shape, state, leaves, sorted_by_leaf(trees), decided, np.array([split]))
        if width == 1:
            assert (removed > 0) == possible
        own = integer_scores(trees.leaf, trees.start, state.value, trees.outputs, bias)
        assert np.array_equal(own, decided.scores) and np.array_equal(decided_class(own), label)
        assert state.alive.sum() == len(splits.tree) - removed
        gone += removed
    assert gone > 3


@pytest.mark.parametrize(("classes", "last"), [(1, False), (2, False), (4, True)])
def test_added_trees_put_every_row_right(classes, last):
    random = np.random.default_rng(classes)
    holds = random.random((300, 12)) < 0.5
    scores = random.integers(-6, 7, (300, classes))
    label = decided_class(scores, last)
    flipped = random.choice(300, 12, replace=False)
    label[flipped] = (label[flipped] + 1) % max(2, classes)
    outcomes, used = outcomes_of(holds.astype(np.int64), 12), np.zeros(12, bool)
    decided = Decided(label, scores.copy(), last)
    trees = mend(decided, outcomes, np.ones(12), used)
    assert trees and len(trees) <= max(2, classes)
    after = scores.copy()
    for tree in trees:
        after[:, tree.output] += added_by(tree, outcomes)
        assert used[[at for at in tree.condition if at >= 0]].all()
    assert np.array_equal(decided_class(after, last), label) and np.array_equal(after, decided.scores)


def test_rows_that_no_condition_tells_apart_can_not_be_mended():
    outcomes = outcomes_of(np.ones((4, 2), np.int64), 2)
    decided = Decided(np.array([0, 1, 0, 1]), np.full((4, 1), -1), False)
    assert mend(decided, outcomes, np.ones(2), np.zeros(2, bool)) is None


def test_what_is_kept_decides_as_wanted_and_leaves_what_was_found():
    kept_some = 0
    for seed in range(24):
        random = np.random.default_rng(seed)
        trees, splits, bias, *_ = of(random, 1, 80, True)
        holds = random.integers(0, 2, (80, 6))
        state = state_of(trees, splits)
        leaf = leaves_on(shape_of(trees, splits), state, outcomes_of(holds, 6))
        label = decided_class(integer_scores(leaf, trees.start, trees.value, trees.outputs, bias))
        label[:2] = 1 - label[:2]
        found = Pruned(
            state.group, state.value, bias, state.condition, state.flipped, len(splits.tree), 1.0, 0.0, 0.0, 1.0, state
        )
        before = [array.copy() for array in state]
        wanted = RequiredDecisions(label, False, 3, 40, 0.1, 3.0)
        kept = keep_decisions(trees, shape_of(trees, splits), splits, outcomes_of(holds, 6), found, wanted)
        assert all(np.array_equal(*pair) for pair in zip(before, state, strict=True))
        if kept is None:  # rows with the same outcomes and different labels
            continue
        now = kept.pruned
        after = integer_scores(now.state.leaf, trees.start, now.value, trees.outputs, now.bias)
        for tree in kept.added:
            after[:, tree.output] += added_by(tree, outcomes_of(holds, 6))
        assert np.array_equal(decided_class(after), label) and now.splits <= len(splits.tree)
        kept_some += 1
    assert kept_some > 3
