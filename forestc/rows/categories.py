"""Assigns lists of category names to columns by means of the rows. LightGBM models may store the lists without column
names."""

from __future__ import annotations

import re
from dataclasses import replace

from forestc.forest.builder import changed
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.rows.frames import FrameTable
from forestc.rows.labels import find_labels, label_columns
from forestc.rows.opening import ArrayTable, open_table


def with_categories(forest: Forest, rows: object, label: object) -> Forest:
    """Assigns the forest's lists of category names to features, as the rows suggest. Returns the forest, unchanged if
    no assignment is clear."""
    if not forest.categories:
        return forest
    named = label_columns(label, rows)
    table = open_table(rows, named, forest)
    if isinstance(table, ArrayTable):
        return forest
    if not isinstance(table, FrameTable):
        named = () if named is None else find_labels(named, table.names, table.headed, table.where)
        table = FrameTable(table.head(), table.names)
    others = [(column, str(name)) for column, name in enumerate(table.names) if named is None or name not in named]
    texts = {name: texts_of_column for column, name in others if (texts_of_column := table.texts(column)) is not None}
    names = [name for _, name in others]
    by_order = _all_in_order(forest, names) and len(texts) == len(forest.categories)
    chosen = (_in_order if by_order else _by_content)(forest, names, texts)
    if not chosen:
        return forest
    features = []
    for index, feature in enumerate(forest.features):
        listed = chosen.get(index)
        if isinstance(feature.number, Category):
            count = max(feature.number.count, len(listed or ()))
            feature = replace(feature, labels=listed or (), number=replace(feature.number, count=count))
        features.append(feature)
    return changed(forest, features=tuple(features), categories=())


def _all_in_order(forest: Forest, names: list[str]) -> bool:
    if len(names) != forest.columns:
        return False
    pairs = [(names[feature.column], feature.name) for feature in forest.features if feature.named]
    return all(re.sub(r"\s", "_", name) == re.sub(r"\s", "_", other) for name, other in pairs)


def _in_order(forest: Forest, names: list[str], texts: dict[str, tuple[list[str], bool]]) -> dict[int, tuple[str, ...]]:
    """Returns {feature index: categories}, assigned in the order of columns; empty if the rows' texts contradict it."""
    pairs = dict(zip(texts, forest.categories, strict=True))  # Both are in the order of the columns.
    if not all(not values or set(values) & set(pairs[name]) for name, (values, _) in texts.items()):
        return {}
    return {
        index: pairs[names[feature.column]]
        for index, feature in enumerate(forest.features)
        if names[feature.column] in pairs and isinstance(feature.number, Category)
    }


def _by_content(
    forest: Forest, names: list[str], texts: dict[str, tuple[list[str], bool]]
) -> dict[int, tuple[str, ...]]:
    """Returns {feature index: categories}, assigned by texts in the columns; empty unless each categorical column
    matches one list."""
    chosen: dict[int, tuple[str, ...]] = {}
    for index, feature in enumerate(forest.features):
        if not isinstance(feature.number, Category):
            continue
        name = feature.name if feature.named or len(names) != forest.columns else names[feature.column]
        values, complete = texts.get(name, ([], False))
        alike = {names for names in forest.categories if complete and set(names) == set(values)}
        if len(alike) != 1:
            return {}
        chosen[index] = alike.pop()
    return chosen
