"""Inputs that find wrong comparisons: at every node, on its threshold and one step to either side.

For each node the row is steered down to it (values clamped by the conditions above), so that the
condition is really asked, and everything the path does not fix is taken from given rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import NO_SET, Forest, Tree
from forestc.forest.numbers import Category, Float, word_range

BATCH = 8192
ROUNDS = 8


def boundary_inputs(
    forest: Forest, base: NDArray[Any], seed: int = 0, most: int | None = None
) -> Iterator[NDArray[Any]]:
    """Encoded rows (n, features), in batches of some thousands: what `evaluate_words` takes.

    base: (m, features) encoded rows to start from, m >= 1. most: about how many rows in all. Where every
    node asks for more, nodes are left out at random, but never a distinct condition's first; where there
    is room, each node comes up to 8 times, with other values for what its path leaves free.
    """
    random = np.random.default_rng(seed)
    once = max(1, 3 * sum(len(tree.inner) for tree in forest.trees))
    share = 1.0 if most is None else most / once
    seen: set[tuple[int, float]] = set()
    waiting: list[NDArray[Any]] = []
    for tree in forest.trees * min(ROUNDS, max(1, int(share))):
        nodes = tree.inner
        if share < 1:
            kept = random.random(len(nodes)) < share
            for position, node in enumerate(nodes.tolist()):
                condition = (int(tree.feature[node]), float(tree.threshold[node]))
                kept[position] |= condition not in seen
                seen.add(condition)
            nodes = nodes[kept]
        above = _parents(tree)
        for start in range(0, len(nodes), BATCH // 4):
            some = nodes[start : start + BATCH // 4]
            rows = base[random.integers(0, len(base), len(some))]
            waiting.append(_around(forest, tree, some, _steered(forest, tree, above, some, rows)))
            if sum(map(len, waiting)) >= BATCH:
                yield np.concatenate(waiting)
                waiting.clear()
    if waiting:
        yield np.concatenate(waiting)


def _parents(tree: Tree) -> NDArray[np.int64]:
    """Each node's parent; the root's is the root."""
    parents = np.zeros(tree.size, dtype=np.int64)
    inner = tree.inner
    parents[tree.left[inner]] = inner
    parents[tree.right[inner]] = inner
    return parents


def _steered(
    forest: Forest, tree: Tree, parents: NDArray[np.int64], nodes: NDArray[np.int64], rows: NDArray[Any]
) -> NDArray[Any]:
    """The rows, one a node, changed so that each reaches its node (where any row can): from the root down,
    each condition on the way clamps its feature to the side that the path takes."""
    path = [nodes]
    while path[-1].any():
        path.append(parents[path[-1]])
    for child in reversed(path):
        at = np.flatnonzero(child)  # a shorter path has reached the root already
        parent = parents[child[at]]
        feature, threshold = tree.feature[parent], tree.threshold[parent]
        goes_left = tree.left[parent] == child[at]
        value = rows[at, feature]
        below = np.minimum(value, _stepped(forest, feature, threshold, -1))
        rows[at, feature] = np.where(goes_left, below, np.maximum(value, threshold))
        for place in np.flatnonzero(tree.set_index[parent] != NO_SET).tolist():
            known = tree.sets[tree.set_index[parent[place]]]
            inside = value[place] in known
            number = forest.features[int(feature[place])].number
            codes = range(number.count + 1) if isinstance(number, Category) else range(0)
            kept: Any = value[place]
            if goes_left[place] and not inside and known:
                kept = known[0]
            elif not goes_left[place] and inside:
                kept = next((code for code in codes if code not in set(known)), kept)
            rows[at[place], feature[place]] = kept
    return rows


def _around(forest: Forest, tree: Tree, nodes: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[Any]:
    """The rows on their node's threshold and one step to either side, and with the feature missing."""
    feature, threshold = tree.feature[nodes], tree.threshold[nodes]
    by_set = np.flatnonzero(tree.set_index[nodes] != NO_SET)
    codes = np.array([_codes(forest, int(f)) for f in feature[by_set]])
    place = np.arange(len(nodes))
    spans = [word_range(f.number, f.missing) for f in forest.features] if forest.quantised else []
    low = np.array([s.low for s in spans], dtype=np.int64)
    top = np.array([s.top for s in spans], dtype=np.int64)  # the missing word, where there is one
    parts = []
    for step in (-1, 0, 1):
        part = np.array(rows)
        part[place, feature] = _stepped(forest, feature, threshold, step)
        part[by_set, feature[by_set]] = np.clip(rows[by_set, feature[by_set]] + step, 0, codes)
        parts.append(part)
    takes_missing = np.array([f.missing for f in forest.features])[feature]
    if takes_missing.any():
        part = np.array(rows[takes_missing])
        at = feature[takes_missing]
        part[np.arange(len(part)), at] = top[at] if forest.quantised else np.nan
        parts.append(part)
    result = np.concatenate(parts)
    return np.clip(result, low, top) if forest.quantised else result


def _codes(forest: Forest, feature: int) -> int:
    number = forest.features[feature].number
    return number.count if isinstance(number, Category) else 0


def _stepped(forest: Forest, feature: NDArray[Any], values: NDArray[Any], step: int) -> NDArray[Any]:
    """The values that many steps of their feature's own number type away (-1, 0 or 1)."""
    if step == 0:
        return values
    if forest.quantised:
        end = np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min
        return np.where(values == end, values, values + step)
    narrow = np.array([f.number == Float(32) for f in forest.features])[feature]
    way = np.float32(np.inf * step)
    with np.errstate(over="ignore"):
        return np.where(narrow, np.nextafter(values.astype(np.float32), way), np.nextafter(values, float(way)))
