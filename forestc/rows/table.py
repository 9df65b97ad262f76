"""Defines tables: rows as a user gave them, which know no model. Data frames and Arrow tables in memory are read here,
mostly without importing pandas or pyarrow."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import spmatrix

FRAME = "the data frame"
ROWS = "the rows"  # names arrays without a file in messages
PREVIEW = 4096  # rows to look at to tell what a column holds
MOST_COMPARED = 10_000  # limits the names to compare, because similarity search is slow


class TableBatch(Protocol):
    """Some rows of a table. Columns are of the table's own kind, which has `tolist` and which `Table.numbers` takes."""

    @property
    def num_rows(self) -> int: ...

    def column(self, name: Any) -> Any: ...


class Table(Protocol):
    """Rows in named columns, read in batches."""

    @property
    def where(self) -> str:
        """The rows' name in messages."""

    @property
    def names(self) -> tuple[Any, ...]: ...

    @property
    def headed(self) -> bool:
        """False if the names are not in the rows."""

    @property
    def by_position(self) -> bool:
        """True if a whole number as text is the position of a column."""

    def batches(self, columns: Sequence[Any], texts: Collection[Any], most: int) -> Iterator[TableBatch]:
        """Yields the columns with the given names, from the first row on.
        texts: the columns to read as text.
        most: rows of a batch, if the rows are not in memory."""

    def numbers(
        self, column: Any, name: str, labels: tuple[str, ...] = (), unknown: float | None = None
    ) -> tuple[NDArray[np.float64], set[bool]]:
        """Returns a column as float64 with NaN for missing values, and a set: it contains True if some values are
        texts, and False if some are numbers. Raises RowsError for other values.
        labels: category names, which become their indices.
        unknown: number that stands for other texts; None refuses them, if there are no labels."""

    def texts(self) -> dict[str, tuple[list[str], bool]]:
        """Returns (texts, complete) by name for each column that is not of numbers: all categories of a categorical
        column (True), or some texts of a text column (False)."""

    def whole(self) -> pa.Table: ...


@dataclass(frozen=True)
class FrameTable:
    """A data frame or Arrow table in memory."""

    frame: Any
    names: tuple[Hashable, ...]
    where: ClassVar[str] = FRAME
    headed: ClassVar[bool] = True
    by_position: ClassVar[bool] = False

    @property
    def arrow(self) -> bool:
        return hasattr(self.frame, "column_names")

    @property
    def num_rows(self) -> int:
        return len(self.frame)

    def batches(self, columns: Sequence[Any], texts: Collection[Any], most: int) -> Iterator[FrameTable]:
        yield self

    def column(self, name: Any) -> NDArray[np.generic]:
        """Returns a column as an array of numbers or objects. Missing values are None or NaN."""
        column = self._column(name)
        if self.arrow:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        dtype = getattr(column, "dtype", None)
        pandas_type = hasattr(dtype, "na_value") and not isinstance(dtype, np.dtype)
        return np.asarray(column.to_numpy(dtype=object, na_value=np.nan) if pandas_type else column)

    def numbers(
        self, column: NDArray[Any], name: str, labels: tuple[str, ...] = (), unknown: float | None = None
    ) -> tuple[NDArray[np.float64], set[bool]]:
        if column.dtype.kind in "biuf":
            refuse_numbers_as_names(name, labels, FRAME)
            numbers = column.astype(np.float64)
            return numbers, set() if np.isnan(numbers).all() else {False}
        if column.dtype.kind not in "OUST":
            raise _no_numbers(name, str(column.dtype))
        codes = {label: float(code) for code, label in enumerate(labels)}
        result, holds = np.full(len(column), np.nan), set()
        for row, value in enumerate(column.tolist()):
            if is_absent(value):
                continue
            if isinstance(value, str) and unknown is not None:
                result[row] = codes.get(value, unknown)
            else:
                result[row] = _number(name, value)
                if np.isnan(result[row]):
                    continue
            holds.add(isinstance(value, str))
        return result, holds

    def whole(self) -> pa.Table:
        import pyarrow as pa

        frame = self.frame
        return frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)

    def categories(self, name: Any) -> list[Any]:
        """Returns the values that the type of a column lists, if any."""
        stated = None if self.arrow else getattr(getattr(self._column(name), "dtype", None), "categories", None)
        return [] if stated is None else list(stated)

    def named(self, column: NDArray[Any], name: Any, labels: tuple[str, ...]) -> NDArray[Any]:
        """Returns a column with texts in place of categories that are whole numbers, if the labels are such texts."""
        if not {whole_text(category) for category in self.categories(name)} & set(labels):
            return column
        return np.array([whole_text(value) for value in column.tolist()], dtype=object)

    def texts(self) -> dict[str, tuple[list[str], bool]]:
        texts = {str(name): self._texts(self._column(name)) for name in self.names}
        return {name: found for name, found in texts.items() if found is not None}

    def _texts(self, column: Any) -> tuple[list[str], bool] | None:
        if not self.arrow:
            pandas = hasattr(self.frame, "iloc")
            stated = getattr(getattr(column, "dtype", None), "categories", None) if pandas else None
            if stated is not None:
                return [str(value) for value in stated], True
            texts = {value for value in islice(column, PREVIEW) if isinstance(value, str)}
            return (sorted(texts), False) if texts else None
        column = column.slice(0, PREVIEW)
        if hasattr(column.type, "index_type"):  # The column is a dictionary.
            return sorted({str(value) for chunk in column.chunks for value in chunk.dictionary.to_pylist()}), True
        if str(column.type) not in ("string", "large_string"):
            return None
        return sorted({str(value) for value in column.unique().to_pylist() if value is not None}), False

    def _column(self, name: Any) -> Any:
        index = self.names.index(name)
        if self.arrow:
            return self.frame.column(index)
        return self.frame.iloc[:, index] if hasattr(self.frame, "iloc") else self.frame[name]


@dataclass(frozen=True)
class ArrayTable:
    """Rows without column names."""

    names: ClassVar[tuple[Any, ...]] = ()

    rows: Any  # array-like (rows, columns), or a sparse matrix
    truth: NDArray[np.generic] | None = None  # labels (rows, labels) of a file
    where: str = ROWS
    labels: tuple[int, ...] = ()  # columns of `rows` that are labels


def in_memory(rows: object) -> FrameTable | ArrayTable:
    """Returns the table of a data frame, an Arrow table or an array."""
    names = None
    if not isinstance(rows, np.ndarray):
        names = getattr(rows, "column_names", None)  # An Arrow table's `columns` are the columns themselves, not names.
        names = getattr(rows, "columns", None) if names is None else names
    return ArrayTable(rows) if names is None else FrameTable(rows, tuple(names))


def is_absent(value: object) -> bool:
    """Returns True for None and for the missing values NA and NaT of pandas, but not for NaN."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def whole_text(value: object) -> object:
    """Returns a whole number as text; other values as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return value
    return str(int(value)) if np.isfinite(value) and int(value) == value else value


def are_whole(labels: Sequence[str]) -> bool:
    """Returns True if all names of categories are whole numbers."""
    return bool(labels) and all(label.removeprefix("-").isdecimal() for label in labels)


def refuse_numbers_as_names(name: str, labels: Sequence[str], where: str) -> None:
    """Raises RowsError for a column of plain numbers if the names of its categories are whole numbers, too."""
    if are_whole(labels):
        raise RowsError(
            f"column {name!r} holds numbers, which may be its categories ({', '.join(labels[:5])}) or their codes",
            where=where,
            do="give the categories as a categorical column or as text",
        )


def _number(name: str, value: object) -> float:
    try:
        if not isinstance(value, str | bytes):  # Text that looks like a number may be a name.
            return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    raise _no_numbers(name, repr(value)[:40])


def _no_numbers(name: str, what: str) -> RowsError:
    return RowsError(
        f"the rows are not numbers ({what})",
        where=f"{FRAME}, feature {name!r}",
        do="training saw numbers there: give numbers",
    )


def is_sparse(rows: object) -> TypeGuard[spmatrix]:
    """Returns True for a sparse matrix or array of SciPy, without importing SciPy."""
    return type(rows).__module__.startswith("scipy.sparse") and hasattr(rows, "tocsc")


def label_columns(label: object, rows: object) -> str | tuple[Any, ...] | None:
    """Returns the label columns that `label` names; None if it names no columns. rows: as the user gave them."""
    if isinstance(rows, str | Path):
        if isinstance(label, str | int):
            return str(label)
        return tuple(map(str, label)) if _differ(label) else None
    names = in_memory(rows).names
    if not names:
        return None
    if isinstance(label, str | int):
        return (label,)
    return tuple(label) if _differ(label) and all(isinstance(n, str) and n in names for n in label) else None


def _differ(label: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(label, list | tuple) and len(set(map(str, label))) == len(label)


def find_labels(label: str | Sequence[Any] | None, table: Table) -> tuple[Any, ...]:
    """Returns the names of a table's label columns. Raises RowsError if one does not exist or appears twice, or if two
    columns have one name."""
    unique_names(table.names, table.where)
    if label is None:
        return ()
    if isinstance(label, str):
        label = (label,) if label in table.names else tuple(part.strip() for part in label.split(","))
    columns = tuple(find_label(name, table.names, table.where, table.headed, table.by_position) for name in label)
    if len(set(columns)) < len(columns):
        raise RowsError(
            f"a column of labels is named twice: {', '.join(label)}", where=table.where, do="name each column once"
        )
    return columns


def find_label(label: Any, names: Sequence[Any], where: str, headed: bool = True, by_position: bool = True) -> Any:
    if label in names:
        return label
    if headed and not (by_position and re.fullmatch(r"-?\d+", label)):
        known = some_names([str(name) for name in names], str(label))
        other = next((mark for mark in ";\t" if len(names) == 1 and mark in str(names[0])), None)
        do = f"it has: {known}" if other is None else f"cells are separated by {other!r}: write commas"
        raise RowsError(f"there is no column {label!r}", where=where, do=do)
    return names[label_position(label, len(names), where)]


def label_position(label: str, columns: int, where: str) -> int:
    """Returns the index of a column. label: an index as text; -1 is the last column. Raises RowsError if there is no
    such column."""
    try:
        position = int(label)
    except ValueError:
        raise RowsError(
            f"there is no column {label!r}", where=where, do="the columns have no names: give a position, such as -1"
        ) from None
    if not -columns <= position < columns:
        raise RowsError(
            f"there is no column {position} of {columns}", where=where, do="give the number of a column, from 0 on"
        )
    return position % columns


def unique_names(labels: Sequence[Any], where: str) -> tuple[str, ...]:
    """Returns the names as a tuple of texts. Raises RowsError if two are the same."""
    names = tuple(map(str, labels))
    if len(set(names)) < len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise RowsError(f"two columns have one name: {twice!r}", where=where, do="leave one out, or rename it")
    return names


def some_names(names: Sequence[str], wanted: str = "") -> str:
    """Returns up to eight names as one text for a message. If there are more, the name most similar to `wanted` comes
    first."""
    near = get_close_matches(wanted, names[:MOST_COMPARED], 1) if len(names) > 8 else []
    names = [*near, *(name for name in names if name not in near)]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def as_number(label: object) -> float | None:
    try:
        return float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def is_number(text: str) -> bool:
    return as_number(text) is not None
