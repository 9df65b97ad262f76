"""Which points go first, against trying each of them every time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc.algorithms.point_removal import NodeValues, removal


def cost(rows, node, point):
    """Rows of a node that change sides at a point, by weight."""
    values = rows.values[rows.start[node] : rows.start[node + 1]]
    return rows.weight[node] * abs(int((values < point).sum()) - int(rows.split[node]))


@settings(max_examples=150, deadline=None, derandomize=True)
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
