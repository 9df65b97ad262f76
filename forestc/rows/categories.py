"""Which lists of categories belong to which columns, where the model does not say it and the rows do.

LightGBM saves the categories of a data frame's columns in their order, but not which columns these are. Rows with the
columns of the training answer it: their columns of text or categories, in order, are those of the lists.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from forestc.forest.builder import changed
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.rows.frames import frame_labels
from forestc.rows.labels import find_labels, label_columns
from forestc.rows.opening import csv_options, csv_source, has_header, kind_of, readable

PREVIEW = 4096  # values of a column of text that are compared with lists of categories


def place_categories(forest: Forest, rows: object, label: object) -> Forest:
    """The forest, whose features have the names of categories that the rows tell; unchanged if they tell nothing.

    The rows tell it where they have all columns of the model in its order, and as many columns of text or categories
    as there are lists; else where the categories of a column are exactly those of one list.
    """
    if not forest.categories:
        return forest
    table = _preview(Path(rows), label, forest) if isinstance(rows, str | Path) else rows
    labels = frame_labels(table)
    if labels is None:
        return forest
    named = label_columns(label, rows) if not isinstance(rows, str | Path) else None
    others = [name for name in labels if named is None or name not in named]
    texts = {str(name): known for name in others if (known := _texts(table, name)) is not None}
    names = [str(name) for name in others]
    whole = _all_in_order(forest, names) and len(texts) == len(forest.categories)
    chosen = (_in_order if whole else _by_content)(forest, names, texts)
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
    """Whether rows have all columns of the model, in its order as far as it has names."""
    if len(names) != forest.columns:
        return False
    pairs = [(names[feature.column], feature.name) for feature in forest.features if feature.named]
    return all(re.sub(r"\s", "_", name) == re.sub(r"\s", "_", other) for name, other in pairs)


def _in_order(forest: Forest, names: list[str], texts: dict[str, tuple[list[str], bool]]) -> dict[int, tuple[str, ...]]:
    """For each feature that is a category its list, by the order of the columns; empty if values say otherwise."""
    pairs = dict(zip(texts, forest.categories, strict=True))  # both in the order of the columns
    if not all(not values or set(values) & set(pairs[name]) for name, (values, _) in texts.items()):
        return {}  # a column of other texts
    return {
        index: pairs[names[feature.column]]
        for index, feature in enumerate(forest.features)
        if names[feature.column] in pairs and isinstance(feature.number, Category)
    }


def _by_content(
    forest: Forest, names: list[str], texts: dict[str, tuple[list[str], bool]]
) -> dict[int, tuple[str, ...]]:
    """The same by the categories of each column; empty if those of one are not exactly one list's."""
    chosen: dict[int, tuple[str, ...]] = {}
    for index, feature in enumerate(forest.features):
        if not isinstance(feature.number, Category):
            continue
        name = feature.name if feature.named or len(names) != forest.columns else names[feature.column]
        values, whole = texts.get(name, ([], False))
        alike = {names for names in forest.categories if whole and set(names) == set(values)}
        if len(alike) != 1:
            return {}
        chosen[index] = alike.pop()
    return chosen


def _texts(table: Any, name: Any) -> tuple[list[str], bool] | None:
    """The categories of a column, or some of its texts, and whether these are its categories; None for numbers."""
    if isinstance(table, pa.Table):
        column = table.column(table.column_names.index(name)).slice(0, PREVIEW)
        if pa.types.is_dictionary(column.type):
            held = column.combine_chunks()
            chunks = held.chunks if isinstance(held, pa.ChunkedArray) else [held]
            return sorted({str(value) for chunk in chunks for value in chunk.dictionary.to_pylist()}), True
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return None
        return sorted({str(value) for value in column.unique().to_pylist() if value is not None}), False
    column = table[name]
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    if categories is not None and hasattr(categories, "tolist") and hasattr(table, "iloc"):
        return [str(value) for value in categories.tolist()], True
    values = [value for value in islice(column, PREVIEW) if isinstance(value, str)]
    return (sorted(set(values)), False) if values else None


def _preview(path: Path, label: object, forest: Forest) -> pa.Table | None:
    """The first rows of a file with names of columns, without the columns of labels; None for NumPy files."""
    kind = kind_of(path)
    if kind == "numpy":
        return None
    headed, named = True, label_columns(label, str(path))
    with readable(path):
        if kind == "csv":
            known = {feature.name for feature in forest.features if feature.named}
            headed = has_header(path, named, known)
            batches = pyarrow.csv.open_csv(csv_source(path), **csv_options(headed))
            table = pa.Table.from_batches(list(islice(batches, 1)))
        else:
            from pyarrow.dataset import dataset  # half a second, and only some formats need it

            table = dataset(path, format=kind).head(PREVIEW)
    truth = () if named is None else find_labels(named, table.column_names, headed, str(path))
    return table.drop_columns(list(truth))
