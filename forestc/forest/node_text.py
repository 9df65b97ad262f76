"""Describes features, nodes and conditions as texts, and as dictionaries for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from forestc.forest.conditions import Below, Condition, InSpans, Member, OneOf
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import Float, word_range, word_value


def feature_figures(forest: Forest) -> list[dict[str, Any]]:
    """Returns a list of dictionaries, one for each feature: name, column, number type, missing values, nodes,
    conditions, outermost thresholds and range of words."""
    table = forest.conditions
    uses = np.zeros(len(forest.features), dtype=np.int64)
    for tree in forest.trees:
        np.add.at(uses, tree.feature[tree.inner], 1)
    compared = np.bincount(table.feature[table.comparators], minlength=len(forest.features))
    figures = []
    for index, feature in enumerate(forest.features):
        thresholds = table.thresholds(index)
        word = None if isinstance(feature.number, Float) else word_range(feature.number, feature.missing)
        figures.append(
            {
                "name": feature.name,
                "column": feature.column,
                "type": str(feature.number),
                "missing": feature.missing,
                "uses": int(uses[index]),
                "conditions": int(compared[index]),
                "lowest": thresholds[0].item() if len(thresholds) else None,
                "highest": thresholds[-1].item() if len(thresholds) else None,
                "words": None if word is None else [word.low, word.top],
            }
        )
    return figures


def node_figures(forest: Forest, index: int, node: int, depth: int) -> dict[str, Any]:
    """Returns a node's condition or leaf as a dictionary, with nested dictionaries for `depth` levels of children.
    index: the tree's index."""
    tree = forest.trees[index]
    cover = None if tree.cover is None else float(tree.cover[node])
    if tree.left[node] == LEAF:
        return {"leaf": leaf_text(forest, tree, node), "cover": cover}
    condition = forest.conditions[forest.conditions.node_conditions[index][node]]
    figures = {"condition": condition_text(forest, condition), "cover": cover}
    if depth <= 0:
        return {**figures, "below": _nodes_below(tree, node)}
    sides = {"yes": int(tree.left[node]), "no": int(tree.right[node])}
    return {**figures, **{side: node_figures(forest, index, child, depth - 1) for side, child in sides.items()}}


def _nodes_below(tree: Tree, node: int) -> int:
    count, waiting = 0, [node]
    while waiting:
        here = waiting.pop()
        if tree.left[here] != LEAF:
            waiting += [int(tree.left[here]), int(tree.right[here])]
            count += 2
    return count


def leaf_text(forest: Forest, tree: Tree, node: int) -> str:
    """Returns a leaf's values as text, after the class of the largest value if the only part has a value for each
    class."""
    values = tree.values[tree.leaf[node]].tolist()
    numbers = ", ".join(f"{value:.6g}" for value in values)
    if len(values) > 1 and len(values) == len(forest.classes) and forest.single:
        return f"{forest.classes[values.index(max(values))]}: {numbers}"
    return numbers


def condition_text(forest: Forest, condition: Condition) -> str:
    """Returns a condition as text. If a threshold is a word, the real threshold follows in brackets, unless they are
    equal."""
    feature = forest.features[condition.feature]
    missing = " or missing" if feature.missing and condition.missing_left else ""

    def number(value: Member) -> str:
        if not forest.on_words:
            return f"{value:.9g}"
        real = word_value(int(value), feature.number)
        return f"{value}" if real == value else f"{value} ({real:.6g})"

    match condition.test:
        case Below(threshold):
            return f"{feature.name} < {number(threshold)}{missing}"
        case OneOf(codes):
            names = [feature.labels[code] if code < len(feature.labels) else str(code) for code in codes]
            return f"{feature.name} is one of {', '.join(names)}{missing}"
        case InSpans(cuts):
            ends = [*map(number, cuts), *(["inf"] if len(cuts) % 2 else [])]
            spans = [f"[{low}, {high})" for low, high in zip(ends[::2], ends[1::2], strict=True)]
            return f"{feature.name} in {' or '.join(spans)}{missing}"
