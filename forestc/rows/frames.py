"""Data frames and Arrow tables in memory as the numbers the conditions compare.

pandas and pyarrow are not imported: what their columns are is asked of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Float
from forestc.rows.columns import Places, find_columns

WHERE = "the data frame"


def frame_labels(rows: object) -> list[Any] | None:
    """What the columns of a data frame or Arrow table are called; None for rows of any other kind."""
    if isinstance(rows, np.ndarray):
        return None
    labels = getattr(rows, "column_names", None)  # of a table; its `columns` are the columns themselves
    labels = getattr(rows, "columns", None) if labels is None else labels
    return None if labels is None else list(labels)


def frame_numbers(forest: Forest, frame: Any, labels: Sequence[Any]) -> tuple[NDArray[np.float64], Places]:
    """The frame's rows as float64 (rows, columns), and where its columns were found. labels: `frame_labels`.

    Texts become the codes of their categories, other texts of such a column -1; truth values 1 and 0. A pandas column
    of categories that are numbers is taken where these are their own codes 0, 1, 2, ...: of others XGBoost and LightGBM
    take the codes or the numbers, as the model was trained. scikit-learn always takes the numbers. Raises RowsError.
    """
    places = find_columns(forest, labels, WHERE)
    result = np.zeros((len(frame), forest.width))
    text: dict[bool, str] = {}
    for feature, own, place in zip(forest.features, forest.places, places.columns, strict=True):
        values = _values(forest, feature, frame, place, labels[place])
        result[:, own], holds = _numbers(feature, values)
        text |= dict.fromkeys(holds, feature.name) if feature.labels else {}
    if len(text) > 1:
        raise mixed_categories(text[True], text[False], WHERE)
    return result, places


def mixed_categories(named: str, numbered: str, where: str) -> RowsError:
    """The error for rows that name the categories of one column and number those of another."""
    return RowsError(
        f"column {named!r} holds names of categories and {numbered!r} numbers",
        where=where,
        do="give names in both, or codes in both",
    )


def _values(forest: Forest, feature: Feature, frame: Any, place: int, label: Any) -> NDArray[Any]:
    """A column as an array of numbers, or of objects with None or NaN where a value is missing."""
    if hasattr(frame, "column_names"):
        return np.asarray(frame.column(place).to_numpy(zero_copy_only=False))
    column = frame.iloc[:, place] if hasattr(frame, "iloc") else frame[label]
    dtype: Any = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype):
        return np.asarray(column)
    if hasattr(dtype, "categories"):
        _refuse_unclear_categories(forest, feature, list(dtype.categories))
    return np.asarray(column.to_numpy(dtype=object, na_value=np.nan) if hasattr(dtype, "na_value") else column)


def _refuse_unclear_categories(forest: Forest, feature: Feature, categories: list[Any]) -> None:
    if any(isinstance(category, str) for category in categories):
        return  # texts stand for themselves
    codes = categories == list(range(len(categories)))
    by_value = isinstance(feature.number, Float) and forest.provenance.source == "scikit-learn"
    if categories and (feature.labels or not (codes or by_value)):
        shown = ", ".join(map(str, categories[:5]))
        known = ", ".join(feature.labels[:5]) if feature.labels else "their own codes from 0 up"
        raise RowsError(
            f"column {feature.name!r} holds the categories {shown}, which are not {known}",
            where=WHERE,
            do="give the model's own categories, or the codes it was trained on as plain numbers",
        )


def is_absent(value: object) -> bool:
    """Whether an object is a missing value that is no number: None, or pandas' own."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _numbers(feature: Feature, values: NDArray[Any]) -> tuple[NDArray[np.float64], set[bool]]:
    """The column as float64, and whether it holds text (True), numbers (False), both or nothing."""
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return numbers, set() if np.isnan(numbers).all() else {False}
    if values.dtype.kind not in "OUST":
        raise _no_numbers(feature, str(values.dtype))
    codes = {label: float(code) for code, label in enumerate(feature.labels)}
    result, holds = np.full(len(values), np.nan), set()
    for row, value in enumerate(values.tolist()):
        if is_absent(value):
            continue
        if isinstance(value, str) and codes:
            result[row] = codes.get(value, -1.0)
        else:
            result[row] = _number(feature, value)
            if np.isnan(result[row]):
                continue
        holds.add(isinstance(value, str))
    return result, holds


def _number(feature: Feature, value: Any) -> float:
    try:
        if not isinstance(value, str | bytes):  # text may look like a number, and be a name nevertheless
            return float(value)
    except (TypeError, ValueError):
        pass
    raise _no_numbers(feature, repr(value)[:40])


def _no_numbers(feature: Feature, what: str) -> RowsError:
    return RowsError(
        f"the rows are not numbers ({what})",
        where=f"{WHERE}, feature {feature.name!r}",
        do="encode text columns as the model was trained",
    )
