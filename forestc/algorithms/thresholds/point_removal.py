"""Greedy removal of points: exceptions are spent on all features together, where they cost least.

An alternative to Min_IntSet_wExc (Nakamura and Sakurada 2022, algorithm 3), which counts missed intervals, all with
the same weight and feature by feature. Here the cost of a missed interval is the number of its node's rows that change
sides at the nearest point, times the node's weight: how much its two sides differ. Points of all features are removed
one by one, always the one whose intervals lose least by going to its neighbors, so one sweep gives a solution for
every number of points. O(log p) recounts per interval: O(p log p log rows) time in practice, O(p + values) memory.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.compiled import compiled
from forestc.algorithms.thresholds.node_bounds import BoundsUpdate, Columns, FlatTrees, NodeBounds

ROUNDS = 8  # of `settled`
CANDIDATES = 64  # right ends that `settled` tries for each point


@dataclass(frozen=True)
class NodeValues:
    """The values of each node's rows in its feature: values[start[n] : start[n + 1]], ascending. split[n] of them lie
    below the threshold of node n, and a row that changes sides costs weight[n]."""

    start: NDArray[np.int64]
    values: NDArray[Any]
    split: NDArray[np.int64]
    weight: NDArray[np.float64]

    @staticmethod
    def of(
        columns: Columns, trees: FlatTrees, weight: NDArray[np.float64], drawn: NDArray[np.uint8] | None = None
    ) -> NodeValues:
        """columns: (features, rows) of a sample of the rows: memory is O(rows * depth * trees). weight: (nodes,).
        drawn: see `BoundsUpdate.update`."""
        order = BoundsUpdate(trees).arrange(columns, drawn)
        plain = (trees.left >= 0) & (trees.set_start < 0)
        start = np.concatenate([[0], np.cumsum(np.where(plain, order.end - order.begin, 0))]).astype(np.int64)
        values = np.empty(int(start[-1]), dtype=columns.dtype)
        split = np.zeros(len(trees.feature), dtype=np.int64)
        _collect(columns, trees.roots, trees.feature, trees.threshold, order.index, order.begin, start, values, split)
        return NodeValues(start, values, split, weight)


@dataclass(frozen=True)
class Removal:
    """points: (p,) of all features, ascending within each. feature: (p,) of each point. nodes, node_point: (m,) the
    nodes and the point each takes. order: points in the order of removal; the last point of a feature is never removed.
    cost: of each removal, in rows times weight."""

    points: NDArray[np.float64]
    feature: NDArray[np.int64]
    nodes: NDArray[np.int64]
    node_point: NDArray[np.int64]
    order: NDArray[np.int64]
    cost: NDArray[np.float64]

    def kept(self, count: int) -> NDArray[np.int64]:
        """Indices of the `count` points that are removed last or never, at least one per feature."""
        removed = self.order[: max(0, len(self.points) - count)]
        return np.setdiff1d(np.arange(len(self.points)), removed)


def removal(
    points: NDArray[np.float64],
    feature: NDArray[np.int64],
    nodes: NDArray[np.int64],
    node_point: NDArray[np.int64],
    rows: NodeValues,
) -> Removal:
    """The order in which to remove points; see `Removal`. feature: ascending."""
    order, cost = _removed(points, feature, nodes, node_point, *_arrays(rows))
    return Removal(points, feature, nodes, node_point, order, cost)


def cheapest(
    points: NDArray[np.float64], nodes: NDArray[np.int64], trees: FlatTrees, bounds: NodeBounds, rows: NodeValues
) -> NDArray[np.int64]:
    """The point that each node takes, (m,) indices: one within its bounds if there is one, else the one that costs
    least. points: of one feature, ascending."""
    taken = _cheapest(points, nodes, trees.threshold, bounds.low, bounds.high, *_arrays(rows))
    return np.asarray(taken, dtype=np.int64)


def _arrays(rows: NodeValues) -> tuple[Any, ...]:
    return rows.start, rows.values, rows.split, rows.weight


@compiled()
def _collect(
    columns: Any, roots: Any, feature: Any, threshold: Any, index: Any, begin: Any, start: Any, values: Any, split: Any
) -> None:
    for tree in range(len(roots)):
        last = roots[tree + 1] if tree + 1 < len(roots) else len(feature)
        for node in range(roots[tree], last):
            count = 0
            for at in range(start[node + 1] - start[node]):
                value = columns[feature[node], index[tree, begin[node] + at]]
                values[start[node] + at] = value
                count += value < threshold[node]  # NaN, a missing value, is never below and is sorted last
            values[start[node] : start[node + 1]].sort()
            split[node] = count


@compiled()
def _change(node: int, point: float, start: Any, values: Any, split: Any, weight: Any) -> Any:
    """The cost of moving a node's threshold to a point."""
    low, high = start[node], start[node + 1]
    while low < high:
        middle = (low + high) // 2
        if values[middle] < point:
            low = middle + 1
        else:
            high = middle
    return weight[node] * abs(low - start[node] - split[node])


@compiled()
def _loss(
    point: int, before: Any, after: Any, points: Any, head: Any, link: Any, paid: Any,
    start: Any, values: Any, split: Any, weight: Any,
) -> Any:  # fmt: skip
    """The cost of removing a point: its intervals go to its neighbors. inf if it is its feature's last point."""
    left, right = before[point], after[point]
    if left < 0 and right < 0:
        return np.inf
    total = 0.0
    node = head[point]
    while node >= 0:
        least = np.inf
        if left >= 0:
            least = _change(node, points[left], start, values, split, weight)
        if right >= 0:
            least = min(least, _change(node, points[right], start, values, split, weight))
        total += least - paid[node]
        node = link[node]
    return total


@compiled()
def _removed(
    points: Any, feature: Any, nodes: Any, node_point: Any, start: Any, values: Any, split: Any, weight: Any
) -> Any:
    p = len(points)
    head, link = np.full(p, -1), np.full(len(split), -1)  # the intervals of each point, as linked lists
    paid = np.zeros(len(split))
    for i in range(len(nodes)):
        node, point = nodes[i], node_point[i]
        link[node], head[point] = head[point], node
        paid[node] = _change(node, points[point], start, values, split, weight)
    before, after = np.full(p, -1), np.full(p, -1)
    for point in range(1, p):
        if feature[point] == feature[point - 1]:
            before[point], after[point - 1] = point - 1, point
    version = np.zeros(p, dtype=np.int64)
    heap = [
        (_loss(point, before, after, points, head, link, paid, start, values, split, weight), point, version[point])
        for point in range(p)
    ]
    heapq.heapify(heap)
    order, cost = np.empty(p, dtype=np.int64), np.empty(p)
    removed = 0
    while len(heap):
        loss, point, of_version = heapq.heappop(heap)
        if of_version != version[point]:
            continue
        if loss == np.inf:
            break
        left, right = before[point], after[point]
        node = head[point]
        while node >= 0:
            following = link[node]
            to_left = np.inf if left < 0 else _change(node, points[left], start, values, split, weight)
            to_right = np.inf if right < 0 else _change(node, points[right], start, values, split, weight)
            heir = left if to_left <= to_right else right
            paid[node] = min(to_left, to_right)
            link[node], head[heir] = head[heir], node
            node = following
        if left >= 0:
            after[left] = right
        if right >= 0:
            before[right] = left
        order[removed], cost[removed] = point, loss
        removed += 1
        version[point] = -1
        for near in (left, right):
            if near >= 0:
                version[near] += 1
                again = _loss(near, before, after, points, head, link, paid, start, values, split, weight)
                heapq.heappush(heap, (again, near, version[near]))
    return order[:removed], cost[:removed]


@compiled()
def _cheapest(
    points: Any, nodes: Any, threshold: Any, low: Any, high: Any, start: Any, values: Any, split: Any, weight: Any
) -> Any:
    result = np.empty(len(nodes), dtype=np.int64)
    for i in range(len(nodes)):
        node = nodes[i]
        # costs rise on either side of the threshold, so one of the two points beside it is the cheapest
        right = min(np.searchsorted(points, threshold[node]), len(points) - 1)
        left = max(right - 1, 0)
        if low[node] < points[left] <= high[node]:
            result[i] = left
        elif low[node] < points[right] <= high[node]:
            result[i] = right
        else:
            to_left = _change(node, points[left], start, values, split, weight)
            to_right = _change(node, points[right], start, values, split, weight)
            if to_left == to_right:
                to_left, to_right = threshold[node] - points[left], points[right] - threshold[node]
            result[i] = left if to_left <= to_right else right
    return result


def settled(
    points: NDArray[np.float64], nodes: NDArray[np.int64], trees: FlatTrees, bounds: NodeBounds, rows: NodeValues
) -> NDArray[np.float64]:
    """One feature's points moved to where their intervals cost less, as in k-medians: each moves to the best of up to
    `CANDIDATES` right ends of its intervals, in at most `ROUNDS` rounds."""
    for _ in range(ROUNDS):
        taken = cheapest(points, nodes, trees, bounds, rows)
        order = np.argsort(taken, kind="stable")
        starts = np.searchsorted(taken[order], np.arange(len(points) + 1))
        moved = np.asarray(_moved(points, nodes[order], starts, bounds.high, *_arrays(rows)))
        moved = np.unique(moved)
        if np.array_equal(moved, points):
            break
        points = moved
    return points


@compiled()
def _moved(points: Any, nodes: Any, starts: Any, high: Any, start: Any, values: Any, split: Any, weight: Any) -> Any:
    result = points.copy()
    for point in range(len(points)):
        begin, end = starts[point], starts[point + 1]
        least = 0.0
        for i in range(begin, end):
            least += _change(nodes[i], points[point], start, values, split, weight)
        if least == 0.0:
            continue
        ends = np.sort(high[nodes[begin:end]])
        count = min(CANDIDATES, len(ends))
        for k in range(count):
            candidate = ends[k * (len(ends) - 1) // max(1, count - 1)]
            if candidate == np.inf:
                continue
            total = 0.0
            for i in range(begin, end):
                total += _change(nodes[i], candidate, start, values, split, weight)
                if total >= least:
                    break
            if total < least:
                least, result[point] = total, candidate
    return result
