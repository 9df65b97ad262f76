"""Inputs that find wrong comparisons: at every node, on its threshold and one step to either side.

For each node the row is steered down to it (values clamped by the conditions above), so that the
condition is really asked, and everything the path does not fix is taken from given rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import LEAF, NO_SET, Forest, Tree
from forestc.forest.numbers import Category, Float, word_range

BATCH = 8192
ROUNDS = 8


def boundary_inputs(
    forest: Forest, base: NDArray[Any], seed: int = 0, most: int | None = None
) -> Iterator[NDArray[Any]]:
    """Encoded rows (n, features), in batches of some thousands: what `evaluate_words` takes.

    base: (m, features) encoded rows to start from, m >= 1. most: at most about so many rows in all. Where
    every node asks for more, nodes are left out at random, but never a distinct condition's first; where
    there is room, each node comes up to 8 times, with other values for what its path leaves free.
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
        if len(nodes):
            waiting.append(_around(forest, tree, nodes, _steered(forest, tree, base, random)[nodes]))
        if sum(map(len, waiting)) >= BATCH:
            yield np.concatenate(waiting)
            waiting.clear()
    if waiting:
        yield np.concatenate(waiting)


def _steered(forest: Forest, tree: Tree, base: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    """For every node of the tree a row that reaches it (where one can)."""
    rows = base[random.integers(0, len(base), tree.size)]
    fixed = np.zeros(rows.shape, dtype=bool)
    steered = np.array(rows)
    for level in tree.levels:
        at = level[tree.left[level] != LEAF]
        feature, threshold = tree.feature[at], tree.threshold[at]
        value = np.where(fixed[at, feature], steered[at, feature], rows[at, feature])
        below = np.array([_step(forest, int(f), t, -1) for f, t in zip(feature, threshold, strict=True)])
        to_left, to_right = np.minimum(value, below), np.maximum(value, threshold)
        for position in np.flatnonzero(tree.set_index[at] != NO_SET).tolist():
            members = tree.sets[tree.set_index[at[position]]]
            number = forest.features[int(feature[position])].number
            others = (
                [code for code in range(number.count + 1) if code not in members]
                if isinstance(number, Category)
                else []
            )
            inside = value[position] in members
            to_left[position] = value[position] if inside or not members else members[0]
            to_right[position] = value[position] if not inside or not others else others[0]
        for child, chosen in ((tree.left[at], to_left), (tree.right[at], to_right)):
            steered[child] = np.where(fixed[at], steered[at], steered[child])
            fixed[child] = fixed[at]
            steered[child, feature] = chosen
            fixed[child, feature] = True
    return steered


def _around(forest: Forest, tree: Tree, nodes: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[Any]:
    feature, threshold = tree.feature[nodes], tree.threshold[nodes]
    parts = []
    place = np.arange(len(nodes))
    spans = [word_range(f.number, f.missing) for f in forest.features] if forest.quantised else []
    low = np.array([s.low for s in spans], dtype=np.int64)
    top = np.array([s.top for s in spans], dtype=np.int64)  # the missing word, where there is one
    for step in (-1, 0, 1):
        part = np.array(rows)
        part[place, feature] = [_step(forest, int(f), t, step) for f, t in zip(feature, threshold, strict=True)]
        by_set = np.flatnonzero(tree.set_index[nodes] != NO_SET)
        codes = np.array([_codes(forest, int(f)) for f in feature[by_set]])
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


def _step(forest: Forest, feature: int, value: Any, step: int) -> Any:
    """The value `step` steps of the feature's own number type away."""
    if forest.quantised:
        return min(max(int(value) + step, -(1 << 63)), (1 << 63) - 1)
    if step == 0:
        return value
    number = forest.features[feature].number
    kind = np.float32 if number == Float(32) else np.float64
    return float(np.nextafter(kind(value), kind(np.inf * step)))
