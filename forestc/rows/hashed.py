"""Turns rows with categories into codes, for models that hash their categories (CatBoost).

Texts and whole numbers are categories, as the library takes them. Floats, which it refuses there, are codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.hashing import text_hash
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import FLOAT32


def as_given(forest: Forest) -> Forest:
    """Returns the forest with the columns of the source's rows as features: its own, and those that are only hashed."""
    own = [feature for feature in forest.features if feature.column < forest.own_columns]
    members = {member.column: member.name for hashed in forest.hashed for member in hashed.members}
    for column in sorted(members.keys() - {feature.column for feature in own}):
        name = members[column]
        own.append(Feature(name or f"f{column}", FLOAT32, column, missing=True, named=bool(name)))
    return replace(forest, features=tuple(own), columns=forest.own_columns, hashed=())


def category_columns(forest: Forest) -> set[int]:
    """Returns the source's columns that hold categories."""
    return {member.column for hashed in forest.hashed for member in hashed.members if member.kind != "from"}


def fill_codes(forest: Forest, X: NDArray[np.float64], hashes: Mapping[int, NDArray[np.int64]]) -> None:
    """Writes the codes of all hashed columns into rows of `forest.width` columns that hold the numbers.
    hashes: of each column of categories, by the source's column."""
    for hashed in forest.hashed:
        values = {
            member.column: hashes.get(member.column, X[:, forest.place(member.column)]) for member in hashed.members
        }
        X[:, forest.place(hashed.column)] = hashed.codes_of(values)


def hashes_of(values: Any, name: str, where: str) -> NDArray[np.int64]:
    """Returns the hashes of a column's categories (rows,): an array or an Arrow array. Raises RowsError for what is no
    category."""
    if hasattr(values, "to_pylist"):
        values = np.array(values.to_pylist(), dtype=object)
    known: dict[tuple[type, Any], int] = {}
    result = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values.tolist()):
        key = type(value), value
        if key not in known:
            known[key] = text_hash(_text(value, name, where))
        result[row] = known[key]
    return result


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, str):
        return value
    raise RowsError(
        f"column {name!r} holds {str(value)[:40]!r}, which is no category",
        where=where,
        do="give texts or whole numbers there, as the model's library takes them; write a missing category as a text",
    )


def array_codes(forest: Forest, rows: Any, where: str) -> NDArray[np.float64] | None:
    """Returns rows of the source's columns (rows, own columns), as an array or lists, with codes for categories: (rows,
    width). Returns None if they hold codes already, or have another shape. Raises RowsError for other values."""
    numbers = isinstance(rows, np.ndarray) and rows.dtype.kind == "f"
    try:
        values = rows if numbers else np.asarray(rows, dtype=object)
    except ValueError:
        return None  # The caller refuses lists of different lengths.
    if values.ndim != 2 or values.shape[1] != forest.own_columns:
        return None
    categories = category_columns(forest)
    if numbers or all(isinstance(value, float) for column in categories for value in values[:, column].tolist()):
        if forest.own_columns == forest.columns:
            return None
        raise RowsError(
            "the codes of categories don't tell those of combined columns",
            where=where,
            do=f"give texts or whole numbers as categories, or the codes of all {forest.columns} columns",
        )
    X = np.zeros((len(values), forest.width))
    hashes = {}
    for feature in as_given(forest).features:
        column = values[:, feature.column]
        if feature.column in categories:
            hashes[feature.column] = hashes_of(column, feature.name, where)
            continue
        try:
            X[:, forest.place(feature.column)] = column.astype(np.float64)
        except (TypeError, ValueError) as error:
            what = f"the rows are not numbers ({error})"
            raise RowsError(what, where=f"feature {feature.name!r}", do="give numbers there") from None
    fill_codes(forest, X, hashes)
    return X
