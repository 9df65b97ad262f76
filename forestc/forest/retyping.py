"""Changes the number types of a forest's features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.builder import changed_tree
from forestc.forest.conditions import NO_SET, InSpans, Member, OneOf, toggled, tree_arrays
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, NumberType


def retyped(
    forest: Forest, numbers: Sequence[NumberType], thresholds: Sequence[NDArray[Any]], missing: Sequence[bool]
) -> Forest:
    """Returns the forest with other number types and thresholds.

    thresholds: for each feature, a new number for each of `ConditionTable.thresholds`.
    missing: True for each feature that accepts missing values.
    """
    features = tuple(
        replace(feature, number=number, missing=absent)
        for feature, number, absent in zip(forest.features, numbers, missing, strict=True)
    )
    table = forest.conditions
    threshold = np.zeros(len(table), dtype=np.result_type(*thresholds) if thresholds else np.int64)
    sets: dict[int, tuple[Member, ...]] = {}
    for index, new in enumerate(thresholds):
        own, old = table.of(index), table.thresholds(index)
        plain = own[table.set_number[own] == NO_SET]
        threshold[plain] = new[np.searchsorted(old, table.threshold[plain])]
        for condition in np.setdiff1d(own, plain).tolist():
            match table.test(condition):
                case OneOf(codes):
                    sets[condition] = codes
                case InSpans(cuts):
                    sets[condition] = toggled(new[np.searchsorted(old, cuts)].tolist())
    takes = np.array([*missing, False])
    trees = [
        changed_tree(
            tree, **tree_arrays(node_conditions, threshold, sets), missing_left=tree.missing_left & takes[tree.feature]
        )
        for tree, node_conditions in zip(forest.trees, table.node_conditions, strict=True)
    ]
    return replace(forest, features=features, trees=tuple(trees))


def recoded(forest: Forest, labels: Sequence[tuple[str, ...]]) -> Forest:
    """Returns the forest with other codes of categories.

    labels: for each feature, the texts of its new codes; empty if its codes stay. A text that the forest does not know
        is decided as unseen categories are.
    """
    table, sets, features = forest.conditions, dict[int, tuple[Member, ...]](), []
    for index, (feature, texts) in enumerate(zip(forest.features, labels, strict=True)):
        changes = bool(texts and feature.labels)
        codes = {text: code for code, text in enumerate(feature.labels)}
        old = [*(codes.get(text, len(codes)) for text in texts), len(codes)]
        for condition in table.of(index).tolist():
            match table.test(condition):
                case OneOf(members) if changes:
                    sets[condition] = tuple(new for new, code in enumerate(old) if code in members)
                case OneOf(members) | InSpans(members):
                    sets[condition] = members
        features.append(replace(feature, labels=texts, number=Category(len(texts))) if changes else feature)
    trees = [
        changed_tree(tree, **tree_arrays(node_conditions, table.threshold, sets))
        for tree, node_conditions in zip(forest.trees, table.node_conditions, strict=True)
    ]
    return replace(forest, features=tuple(features), trees=tuple(trees))
