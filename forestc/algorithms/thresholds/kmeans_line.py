"""Computes exact one-dimensional k-means, a baseline for threshold sharing (Jinguji, Sato, Nakahara 2018): a threshold
becomes the center of its cluster."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.system.compiled import compiled


def kmeans_line(values: Floats, clusters: int) -> tuple[Floats, Ints]:
    """Returns at most `clusters` centers, ascending, and the index of each value's center, with the least sum of
    squared distances."""
    distinct, index, weight = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) <= clusters:
        return distinct, index.astype(np.int64)
    scale = math.frexp(float(np.abs(distinct).max()))[1]  # so that squares don't overflow
    scaled = np.ldexp(distinct, -scale)
    shifted = scaled - scaled.mean()  # so that sums of squares lose fewer digits
    sums = [np.concatenate([[0.0], np.cumsum(weight * shifted**power)]) for power in range(3)]
    cluster = _clustered(*sums, clusters)
    mass = np.bincount(cluster, weight)
    center = np.ldexp(np.bincount(cluster, weight * scaled) / mass, scale)
    return center, cluster[index].astype(np.int64)


@compiled()
def _spread(mass: Floats, first: Floats, second: Floats, begin: int, end: int) -> Any:
    """Returns the squared distances of values[begin:end] from their mean, summed."""
    total = first[end] - first[begin]
    return max(0.0, second[end] - second[begin] - total * total / (mass[end] - mass[begin]))


@compiled()
def _clustered(mass: Floats, first: Floats, second: Floats, clusters: int) -> Any:
    """Returns the cluster of each value, given prefix sums of weights, values and squares."""
    n = len(mass) - 1
    cost = np.empty(n + 1)
    cost[0] = 0.0
    for end in range(1, n + 1):
        cost[end] = _spread(mass, first, second, 0, end)
    begins = np.zeros((clusters, n + 1), dtype=np.int32)
    waiting = np.empty((64 + n, 4), dtype=np.int64)
    for k in range(1, clusters):
        better = np.full(n + 1, np.inf)
        waiting[0] = np.array([k + 1, n, k, n - 1])  # first and last end, first and last start to try
        depth = 1
        while depth > 0:
            depth -= 1
            low, high, least, most = waiting[depth]
            if low > high:
                continue
            end = (low + high) // 2
            best = least
            for begin in range(least, min(most, end - 1) + 1):
                value = cost[begin] + _spread(mass, first, second, begin, end)
                if value < better[end]:
                    better[end], best = value, begin
            begins[k, end] = best
            waiting[depth] = np.array([low, end - 1, least, best])
            waiting[depth + 1] = np.array([end + 1, high, best, most])
            depth += 2
        cost = better
    cluster = np.empty(n, dtype=np.int64)
    end = n
    for k in range(clusters - 1, -1, -1):
        begin = begins[k, end]
        cluster[begin:end] = k
        end = begin
    return cluster
