"""Tests bounds, tails and arrangements of nodes against each node's rows, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows

from forestc.algorithms.thresholds.node_bounds import BoundsUpdate, FlatTrees, Tails
from forestc.forest.conditions import NO_SET
from forestc.passes.observation import Observe, flat_trees
from forestc.passes.share_thresholds.path_change import widened
from forestc.rows.batches import ArrayRows, Batch, reduce_rows
from forestc.rows.encode import encode
from forestc.system.compiled import PLAIN


def visits(forest, x):
    """Returns the rows that reach each node, by the number of the node in the whole forest."""
    found, start = {}, 0
    for tree in forest.trees:
        at = {0: np.arange(len(x))}
        for node in [n for level in tree.levels for n in level.tolist()]:
            rows = at.get(node, np.zeros(0, dtype=int))
            found[start + node] = rows
            if tree.left[node] < 0:
                continue
            values = x[rows, tree.feature[node]]
            left = np.zeros(len(rows), dtype=bool)
            for k, value in enumerate(values.tolist()):
                if np.isnan(value):
                    left[k] = tree.missing_left[node]
                elif tree.set_index[node] == NO_SET:
                    left[k] = value < tree.threshold[node]
                else:
                    members = tree.sets[tree.set_index[node]]
                    number = forest.features[tree.feature[node]].number
                    coded = type(number).__name__ == "Category"
                    left[k] = value in members if coded else sum(m <= value for m in members) % 2 == 1
            at[int(tree.left[node])], at[int(tree.right[node])] = rows[left], rows[~left]
        start += tree.size
    return found


@pytest.fixture(params=[0, PLAIN], ids=["compiled", "python"])
def either(request, monkeypatch):
    """Runs a test with the kernel, and with the Python code that replaces it for few rows."""
    monkeypatch.setattr("forestc.system.compiled.PLAIN", request.param)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.1, 0.45]))
def test_every_node_s_rows(either, seed, some, share):
    forest = random_forest(seed, False)
    x = encode(forest, troublesome_rows(forest, seed, 70))
    trees = flat_trees(forest)
    random = np.random.default_rng(seed)
    drawn = random.integers(0, 3, (len(forest.trees), len(x))).astype(np.uint8) if some else None
    update = BoundsUpdate(trees)
    order = update.arrange(x.T, drawn)
    whole = update.bounds
    parts = [BoundsUpdate(trees) for _ in range(3)]
    for k, rows in enumerate(np.array_split(np.arange(len(x)), 3)):
        parts[k].update(x[rows].T, None if drawn is None else drawn[:, rows])
    parts[2].merge(parts[0])
    parts[2].merge(parts[1])
    for name in ("low", "high", "count"):
        assert np.array_equal(getattr(parts[2].bounds, name), getattr(whole, name))
    tails = Tails.of(np.floor(share * whole.count).astype(np.int64), 64)
    while not tails.done:
        tails.advance(tails.counts(np.ascontiguousarray(x.T), trees, order, drawn))
    low, high = tails.bounds()
    tree_of = np.repeat(np.arange(len(forest.trees)), [tree.size for tree in forest.trees])
    for node, rows in visits(forest, x).items():
        times = np.ones(len(x), dtype=int) if drawn is None else drawn[tree_of[node]].astype(int)
        mine = rows[times[rows] > 0]
        assert set(order.row[tree_of[node], order.begin[node] : order.end[node]].tolist()) == set(mine.tolist())
        assert whole.count[node] == times[mine].sum()
        if trees.left[node] < 0 or trees.set_start[node] >= 0:
            assert whole.low[node] == -np.inf and whole.high[node] == np.inf
            continue
        values = np.repeat(x[mine, trees.feature[node]], times[mine])
        values = np.sort(values[~np.isnan(values)])
        left, right = values[values < trees.threshold[node]][::-1], values[values >= trees.threshold[node]]
        assert whole.low[node] == max(left, default=-np.inf) and whole.high[node] == min(right, default=np.inf)
        free = int(share * whole.count[node])
        assert low[node] == (left[free] if free < len(left) else -np.inf)
        assert high[node] == (right[free] if free < len(right) else np.inf)


@pytest.mark.parametrize("bits", [32, 64])
def test_tails_of_extreme_floats(bits):
    number = np.float32 if bits == 32 else np.float64
    tiny = np.nextafter(number(0), number(1))
    values = np.array([-np.inf, -1.5, -tiny, -0.0, 0.0, tiny, 1.5, np.finfo(number).max, np.inf, np.nan], dtype=number)
    none = np.full(3, -1, dtype=np.int64)
    trees = FlatTrees(
        roots=np.zeros(1, dtype=np.int64), feature=np.array([0, -1, -1], dtype=np.int32),
        threshold=np.array([float(tiny), 0, 0]), left=np.array([1, -1, -1]), right=np.array([2, -1, -1]),
        missing_left=np.zeros(3, dtype=bool), set_start=none, set_end=none, members=np.zeros(0),
        cuts=np.zeros(3, dtype=bool), deepest=1,
    )  # fmt: skip
    for free, expected in enumerate([(0.0, tiny), (0.0, 1.5), (-tiny, np.finfo(number).max), (-1.5, np.inf)]):
        order = BoundsUpdate(trees).arrange(values[np.newaxis])
        tails = Tails.of(np.array([free, 0, 0]), bits)
        while not tails.done:
            tails.advance(tails.counts(values[np.newaxis], trees, order, None))
        low, high = tails.bounds()
        assert (low[0], high[0]) == tuple(map(float, expected))


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6))
def test_observations_of_parts_merge(seed):
    forest = random_forest(seed, False)
    rows = troublesome_rows(forest, seed, 60)
    task = Observe.of(forest)
    whole, parts = reduce_rows(ArrayRows(rows), task), [task.start() for _ in range(3)]
    for part, first in zip(parts, (0, 20, 40), strict=True):
        task.update(part, Batch(rows[first : first + 20]), first)
    task.merge(parts[1], parts[2])
    task.merge(parts[1], parts[0])
    for mine, theirs in zip(parts[1].columns, whole.columns, strict=True):
        for name, value in vars(theirs).items():
            assert np.array_equal(getattr(mine, name), value), name
    x = encode(forest, rows)
    for index, column in enumerate(whole.columns):
        known = np.concatenate([[-np.inf, np.inf], x[:, index][~np.isnan(x[:, index])]])
        for k, cut in enumerate(task.cuts[index].tolist()):
            assert column.low[k] == known[known < cut].max(initial=-np.inf)
            assert column.high[k] == known[known >= cut].min(initial=np.inf)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_widened_bounds_leave_so_many_rows_free(share):
    forest = random_forest(7, False)
    rows = troublesome_rows(forest, 7, 90)
    drawn = np.random.default_rng(0).integers(0, 4, (len(forest.trees), len(rows))).astype(np.uint8)
    task = Observe.of(forest, drawn)
    seen = reduce_rows(ArrayRows(rows), task).nodes.bounds
    wide = widened(ArrayRows(rows, size=11), task, seen, share)
    order = BoundsUpdate(task.trees).arrange(encode(forest, rows).T, drawn)
    tails = Tails.of(np.floor(share * seen.count).astype(np.int64), 64)
    while not tails.done:
        tails.advance(tails.counts(np.ascontiguousarray(encode(forest, rows).T), task.trees, order, drawn))
    low, high = tails.bounds()
    plain = (task.trees.left >= 0) & (task.trees.set_start < 0)
    assert np.array_equal(wide.low[plain], low[plain]) and np.array_equal(wide.high[plain], high[plain])
    assert (wide.high > seen.high).any() and (wide.low <= seen.low).all()
