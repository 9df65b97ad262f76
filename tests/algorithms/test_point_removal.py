"""Which points go first, against trying each of them every time."""

from __future__ import annotations

import numpy as np
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc.algorithms.thresholds.node_bounds import FlatTrees, NodeBounds
from forestc.algorithms.thresholds.point_removal import NodeValues, cheapest, removal, settled


def cost(rows, node, point):
    """Rows of a node that change sides at a point, by weight."""
    values = rows.values[rows.start[node] : rows.start[node + 1]]
    return rows.weight[node] * abs(int((values < point).sum()) - int(rows.split[node]))


@settings(max_examples=examples(75), deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_always_the_cheapest_goes(seed):
    random = np.random.default_rng(seed)
    features = random.integers(1, 4)
    counts = random.integers(1, 6, features)
    feature = np.repeat(np.arange(features), counts)
    points = np.concatenate([np.sort(random.choice(40, c, replace=False)) + 0.5 for c in counts])
    nodes = int(random.integers(1, 12))
    of = random.integers(0, len(points), nodes)
    values = [np.sort(random.integers(0, 41, random.integers(0, 9)).astype(float)) for _ in range(nodes)]
    start = np.concatenate([[0], np.cumsum([len(v) for v in values])])
    split = np.array([(v < points[p]).sum() for v, p in zip(values, of, strict=True)])
    rows = NodeValues(start, np.concatenate(values), split, random.integers(1, 4, nodes).astype(float))
    found = removal(points, feature, np.arange(nodes), of, rows)

    def total(kept):
        return sum(min(cost(rows, n, points[p]) for p in kept if feature[p] == feature[of[n]]) for n in range(nodes))

    kept = set(range(len(points)))
    assert len(found.order) == len(points) - features
    for point, loss in zip(found.order.tolist(), found.cost.tolist(), strict=True):
        losses = {p: total(kept - {p}) - total(kept) for p in kept if any(feature[q] == feature[p] for q in kept - {p})}
        assert abs(losses[point] - loss) < 1e-9 and abs(loss - min(losses.values())) < 1e-9
        kept.remove(point)
        assert set(found.kept(len(kept)).tolist()) == kept
    assert len(found.kept(0)) == features


def few_nodes(random, count):
    values = [np.sort(random.integers(0, 30, random.integers(1, 9)).astype(float)) for _ in range(count)]
    threshold = random.integers(1, 30, count).astype(float)
    start = np.concatenate([[0], np.cumsum([len(v) for v in values])])
    split = np.array([(v < t).sum() for v, t in zip(values, threshold, strict=True)])
    low = np.array([max(v[v < t], default=-np.inf) for v, t in zip(values, threshold, strict=True)])
    high = np.array([min(v[v >= t], default=np.inf) for v, t in zip(values, threshold, strict=True)])
    rows = NodeValues(start, np.concatenate(values), split, random.integers(1, 4, count).astype(float))
    none = np.full(count, -1)
    trees = FlatTrees(np.arange(count), none, threshold, none, none, none > 0, none, none, np.zeros(0), none > 0, 1)
    return rows, trees, NodeBounds(low, high, np.diff(start))


@settings(max_examples=examples(75), deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_each_node_takes_the_point_that_changes_least(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 9))
    rows, trees, bounds = few_nodes(random, count)
    points = np.sort(random.choice(60, random.integers(1, 5), replace=False)) / 2
    taken = cheapest(points, np.arange(count), trees, bounds, rows)
    for node, point in enumerate(points[taken].tolist()):
        assert cost(rows, node, point) == min(cost(rows, node, p) for p in points.tolist())
        inside = (bounds.low[node] < points) & (points <= bounds.high[node])
        assert not inside.any() or inside[taken[node]]
    total = sum(cost(rows, node, point) for node, point in enumerate(points[taken].tolist()))
    moved = settled(points, np.arange(count), trees, bounds, rows)
    after = moved[cheapest(moved, np.arange(count), trees, bounds, rows)].tolist()
    assert len(moved) <= len(points) and sum(cost(rows, n, p) for n, p in enumerate(after)) <= total


def test_points_move_to_where_less_changes():
    """Three nodes want 9, one wants 2; one point for all of them goes to 9."""
    values = np.tile(np.arange(12.0), 4)
    threshold = np.array([2.0, 9.0, 9.0, 9.0])
    rows = NodeValues(np.arange(0, 60, 12), values, threshold.astype(int), np.ones(4))
    none = np.full(4, -1)
    trees = FlatTrees(np.arange(4), none, threshold, none, none, none > 0, none, none, np.zeros(0), none > 0, 1)
    bounds = NodeBounds(threshold - 1, threshold, np.full(4, 12))
    assert settled(np.array([4.0]), np.arange(4), trees, bounds, rows).tolist() == [9.0]
