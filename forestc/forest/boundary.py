"""Generates inputs that find wrong comparisons: values on the thresholds of nodes and one step to either side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestc.forest.conditions import NO_SET, InSpans, OneOf, Test
from forestc.forest.ir import Forest, Tree
from forestc.forest.numbers import Category, Float, word_range

BATCH = 8192  # rows per batch, at least; only the last batch may be smaller
ROUNDS = 8  # times that each node is used, at most


def boundary_inputs(
    forest: Forest, base: NDArray[Any], seed: int = 0, most: int | None = None
) -> Iterator[NDArray[Any]]:
    """Yields arrays of encoded rows (n, features) with values on and next to thresholds.

    base: encoded rows to start from, at least one.
    most: approximate number of rows; None uses each node once.
    """
    random, columns = np.random.default_rng(seed), _FeatureArrays.of(forest)
    thresholds_of = [_thresholds(forest, index) for index in range(len(forest.trees))]
    once = max(1, 3 * sum(len(nodes) for nodes, _ in thresholds_of))
    share = 1.0 if most is None else most / once
    seen: set[tuple[int, float]] = set()
    waiting: list[NDArray[Any]] = []
    for tree_index in list(range(len(thresholds_of))) * min(ROUNDS, max(1, int(share))):
        tree, (nodes, thresholds) = forest.trees[tree_index], thresholds_of[tree_index]
        if share < 1:
            selected = random.random(len(nodes)) < share
            for position, node in enumerate(nodes.tolist()):
                condition = (int(tree.feature[node]), float(thresholds[position]))
                selected[position] |= condition not in seen
                seen.add(condition)
            nodes, thresholds = nodes[selected], thresholds[selected]
        conditions, above = forest.conditions.node_conditions[tree_index], _parents(tree)
        for start in range(0, len(nodes), BATCH // 4):
            batch = nodes[start : start + BATCH // 4]
            some = base[random.integers(0, len(base), len(batch))]
            rows = _steered(forest, columns, tree, conditions, above, batch, some)
            waiting.append(_around(columns, tree, batch, thresholds[start : start + BATCH // 4], rows))
            if sum(map(len, waiting)) >= BATCH:
                yield np.concatenate(waiting)
                waiting.clear()
    if waiting:
        yield np.concatenate(waiting)


def random_words(forest: Forest, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Returns random words (count, features) of a quantized forest: any code of a category; otherwise a threshold, the
    word below one, or an end of the range."""
    random = np.random.default_rng(seed)
    words = np.empty((count, len(forest.features)), dtype=np.int64)
    for index, feature in enumerate(forest.features):
        span = word_range(feature.number, feature.missing)
        if isinstance(feature.number, Category):
            words[:, index] = random.integers(span.low, span.top, count, endpoint=True)
            continue
        thresholds = forest.conditions.thresholds(index)
        near = np.clip(np.concatenate([thresholds, thresholds - 1]), span.low, span.high)
        words[:, index] = random.choice(np.append(near, [span.low, span.top]), count)
    return words


class _FeatureArrays(NamedTuple):
    """Properties of the features, as arrays (features,)."""

    narrow: NDArray[np.bool_]  # True for a float32
    codes: NDArray[np.int64]  # number of categories; -1 for numbers
    missing: NDArray[np.bool_]  # True if values may be missing
    low: NDArray[np.int64]  # lowest word; empty if thresholds are floats
    top: NDArray[np.int64]  # highest word; empty if thresholds are floats
    on_words: bool

    @staticmethod
    def of(forest: Forest) -> _FeatureArrays:
        numbers = [feature.number for feature in forest.features]
        spans = [word_range(f.number, f.missing) for f in forest.features] if forest.on_words else []
        return _FeatureArrays(
            np.array([isinstance(number, Float) and number.bits == 32 for number in numbers], dtype=np.bool_),
            np.array([number.count if isinstance(number, Category) else -1 for number in numbers], dtype=np.int64),
            np.array([feature.missing for feature in forest.features], dtype=np.bool_),
            np.array([span.low for span in spans], dtype=np.int64),
            np.array([span.top for span in spans], dtype=np.int64),  # the missing word, if there is one
            forest.on_words,
        )

    def stepped(self, feature: NDArray[Any], values: ArrayLike, step: int) -> NDArray[Any]:
        """Returns each value moved to the next number of its feature's type. step: -1 is down, 1 up, 0 no move."""
        values = np.asarray(values)
        if step == 0:
            return values
        if self.on_words:
            end = np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min
            return np.where(values == end, values, values + step)
        way = np.float32(np.inf * step)
        with np.errstate(over="ignore"):
            float32 = np.nextafter(values.astype(np.float32), way)
            return np.where(self.narrow[feature], float32, np.nextafter(values, float(way)))


def _thresholds(forest: Forest, index: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Returns two arrays: inner nodes of a tree, each repeated for its thresholds or cuts, and these thresholds and
    cuts."""
    tree = forest.trees[index]
    inner = tree.inner
    if not tree.sets:
        return inner, tree.threshold[inner]
    tests = [
        forest.conditions.test(condition) for condition in forest.conditions.node_conditions[index][inner].tolist()
    ]
    cuts = [
        list(test.cuts) if isinstance(test, InSpans) else [threshold]
        for test, threshold in zip(tests, tree.threshold[inner].tolist(), strict=True)
    ]
    thresholds = [threshold for node_cuts in cuts for threshold in node_cuts]
    return np.repeat(inner, [len(node_cuts) for node_cuts in cuts]), np.array(thresholds, dtype=tree.threshold.dtype)


def _parents(tree: Tree) -> NDArray[np.int64]:
    parents = np.zeros(tree.size, dtype=np.int64)
    inner = tree.inner
    parents[tree.left[inner]] = inner
    parents[tree.right[inner]] = inner
    return parents


def _steered(
    forest: Forest,
    columns: _FeatureArrays,
    tree: Tree,
    conditions: NDArray[np.int32],
    parents: NDArray[np.int64],
    nodes: NDArray[np.int64],
    rows: NDArray[Any],
) -> NDArray[Any]:
    """Changes rows in place so that row i reaches nodes[i], if possible, and returns them."""
    path = [nodes]
    while path[-1].any():
        path.append(parents[path[-1]])
    for child in reversed(path):
        at = np.flatnonzero(child)  # Shorter paths are at the root already.
        parent = parents[child[at]]
        feature, threshold = tree.feature[parent], tree.threshold[parent]
        goes_left = tree.left[parent] == child[at]
        value = rows[at, feature]
        below = np.minimum(value, columns.stepped(feature, threshold, -1))
        rows[at, feature] = np.where(goes_left, below, np.maximum(value, threshold))
        for index in np.flatnonzero(tree.set_index[parent] != NO_SET).tolist():
            test, side = forest.conditions.test(conditions[parent[index]]), bool(goes_left[index])
            steered: Any = value[index]
            if bool(test.holds(value[index : index + 1])[0]) != side:
                steered = _on_side(forest, columns, int(feature[index]), test, side, steered)
            rows[at[index], feature[index]] = steered
    return rows


def _on_side(forest: Forest, columns: _FeatureArrays, feature: int, test: Test, left: bool, value: object) -> Any:
    """Returns a value that the test sends to the requested side; `value` if none exists. left: True for the left."""
    match test, forest.features[feature].number:
        case OneOf(codes), _ if left:
            return next(iter(codes), value)
        case OneOf(codes), Category(count):
            return next((code for code in range(count + 1) if code not in set(codes)), value)
        case InSpans(cuts), _ if cuts and left:
            return cuts[0]
        case InSpans(cuts), _ if cuts:
            return cuts[1] if len(cuts) > 1 else columns.stepped(np.array([feature]), cuts[:1], -1)[0]
        case _:
            return value


def _around(
    columns: _FeatureArrays, tree: Tree, nodes: NDArray[np.int64], threshold: NDArray[Any], rows: NDArray[Any]
) -> NDArray[Any]:
    """Returns copies of each row with the tested feature one step below, at and above the threshold, or missing. A
    category's code takes steps from the row's own code."""
    feature = tree.feature[nodes]
    by_set = np.flatnonzero((tree.set_index[nodes] != NO_SET) & (columns.codes[feature] >= 0))
    codes, row_numbers = columns.codes[feature[by_set]], np.arange(len(nodes))
    parts = []
    for step in (-1, 0, 1):
        part = np.array(rows)
        part[row_numbers, feature] = columns.stepped(feature, threshold, step)
        part[by_set, feature[by_set]] = np.clip(rows[by_set, feature[by_set]] + step, 0, codes)
        parts.append(part)
    takes_missing = columns.missing[feature]
    if takes_missing.any():
        part = np.array(rows[takes_missing])
        at = feature[takes_missing]
        part[np.arange(len(part)), at] = columns.top[at] if columns.on_words else np.nan
        parts.append(part)
    result = np.concatenate(parts)
    return np.clip(result, columns.low, columns.top) if columns.on_words else result
