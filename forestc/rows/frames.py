"""Turns data frames and Arrow tables in memory into numbers, mostly without importing pandas or pyarrow."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Float
from forestc.rows.columns import ColumnMatch, find_columns, some_names, unique_names

if TYPE_CHECKING:
    import pyarrow as pa

WHERE = "the data frame"
PREVIEW = 4096  # rows to look at to tell what a column holds


@dataclass(frozen=True)
class FrameTable:
    """A data frame or Arrow table in memory."""

    frame: Any
    names: tuple[Hashable, ...]

    @property
    def arrow(self) -> bool:
        return hasattr(self.frame, "column_names")

    def without(self, labels: Sequence[Hashable]) -> tuple[FrameTable, NDArray[np.object_]]:
        """Returns the table without its label columns, and the labels (rows, label columns). Raises RowsError if one is
        missing."""
        unique_names(self.names, WHERE)
        for label in labels:
            if label not in self.names:
                names_in_table = some_names([str(name) for name in self.names])
                raise RowsError(f"there is no column {label!r}", where=WHERE, do=f"it has: {names_in_table}")
        rest_indices = [index for index, name in enumerate(self.names) if name not in labels]
        truth = np.empty((len(self.frame), len(labels)), dtype=object)
        for index, label in enumerate(labels):
            column = self.frame.column(self.names.index(label)).to_pylist() if self.arrow else list(self.frame[label])
            truth[:, index] = column
        rest = self.frame.select(rest_indices) if self.arrow else self.frame.drop(columns=list(labels))
        return FrameTable(rest, tuple(self.names[index] for index in rest_indices)), truth

    def whole(self) -> pa.Table:
        import pyarrow as pa

        frame = self.frame
        return frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)

    def values(self, index: int) -> NDArray[np.generic]:
        """Returns a column as an array of numbers or objects. Missing values are None or NaN."""
        if self.arrow:
            return np.asarray(self.frame.column(index).to_numpy(zero_copy_only=False))
        column = self._column(index)
        dtype = getattr(column, "dtype", None)
        pandas_type = hasattr(dtype, "na_value") and not isinstance(dtype, np.dtype)
        return np.asarray(column.to_numpy(dtype=object, na_value=np.nan) if pandas_type else column)

    def categories(self, index: int) -> list[Any] | None:
        stated = None if self.arrow else getattr(getattr(self._column(index), "dtype", None), "categories", None)
        return None if stated is None else list(stated)

    def texts(self, index: int) -> tuple[list[str], bool] | None:
        """Returns (texts, complete) for a column: all categories of a categorical column (True), or some texts of a
        text column (False). Returns None for numbers."""
        if not self.arrow:
            stated = self.categories(index) if hasattr(self.frame, "iloc") else None
            if stated is not None:
                return [str(value) for value in stated], True
            texts = {value for value in islice(self._column(index), PREVIEW) if isinstance(value, str)}
            return (sorted(texts), False) if texts else None
        column = self.frame.column(index).slice(0, PREVIEW)
        if hasattr(column.type, "index_type"):  # The column is a dictionary.
            return sorted({str(value) for chunk in column.chunks for value in chunk.dictionary.to_pylist()}), True
        if str(column.type) not in ("string", "large_string"):
            return None
        return sorted({str(value) for value in column.unique().to_pylist() if value is not None}), False

    def _column(self, index: int) -> Any:
        return self.frame.iloc[:, index] if hasattr(self.frame, "iloc") else self.frame[self.names[index]]


def frame_table(rows: object) -> FrameTable | None:
    """Returns the table of a data frame or Arrow table; None for other rows."""
    if isinstance(rows, np.ndarray):
        return None
    names = getattr(rows, "column_names", None)  # An Arrow table's `columns` are the columns themselves, not names.
    names = getattr(rows, "columns", None) if names is None else names
    return None if names is None else FrameTable(rows, tuple(names))


def frame_numbers(forest: Forest, table: FrameTable) -> tuple[NDArray[np.float64], ColumnMatch]:
    """Returns the rows as float64 (rows, columns), with codes for category names, and the matched columns. Raises
    RowsError for columns that do not match the model."""
    match = find_columns(forest, table.names, WHERE)
    result = np.zeros((len(table.frame), forest.width))
    text: dict[bool, str] = {}
    for feature, index, column in zip(forest.features, forest.row_columns, match.columns, strict=True):
        _refuse_unclear_categories(forest, feature, table.categories(column) or [])
        result[:, index], holds = _numbers(feature, table.values(column))
        text |= dict.fromkeys(holds, feature.name) if feature.labels else {}
    refuse_mixed_categories(text, WHERE)
    return result, match


def refuse_mixed_categories(held: Mapping[bool, str], where: str) -> None:
    """Raises RowsError if one column has names of categories and another has numbers. held: {True: a column with names,
    False: a column with numbers}."""
    if len(held) > 1:
        raise RowsError(
            f"column {held[True]!r} holds names of categories and {held[False]!r} numbers",
            where=where,
            do="give names in both, or codes in both",
        )


def _refuse_unclear_categories(forest: Forest, feature: Feature, categories: list[Any]) -> None:
    if any(isinstance(category, str) for category in categories):
        return  # Texts are names of categories.
    codes = categories == list(range(len(categories)))
    by_value = isinstance(feature.number, Float) and forest.provenance.source == "scikit-learn"
    if categories and (feature.labels or not (codes or by_value)):
        shown = ", ".join(map(str, categories[:5]))
        accepted = ", ".join(feature.labels[:5]) if feature.labels else "their own codes from 0 up"
        raise RowsError(
            f"column {feature.name!r} holds the categories {shown}, which are not {accepted}",
            where=WHERE,
            do="give the model's own categories, or the codes it was trained on as plain numbers",
        )


def is_absent(value: object) -> bool:
    """Returns True for None and for the missing values NA and NaT of pandas, but not for NaN."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _numbers(feature: Feature, values: NDArray[Any]) -> tuple[NDArray[np.float64], set[bool]]:
    """Returns the column as float64, and a set. The set contains True if some values are text, and False if some are
    numbers."""
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


def _number(feature: Feature, value: object) -> float:
    try:
        if not isinstance(value, str | bytes):  # Text that looks like a number may be a name.
            return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    raise _no_numbers(feature, repr(value)[:40])


def _no_numbers(feature: Feature, what: str) -> RowsError:
    return RowsError(
        f"the rows are not numbers ({what})",
        where=f"{WHERE}, feature {feature.name!r}",
        do="encode text columns as the model was trained",
    )
