"""Labeled rows for training, where no model says yet which columns there are: from files, arrays and data frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from forestc.errors import OptionError, RowsError
from forestc.rows.columns import unique_names
from forestc.rows.files import column_numbers
from forestc.rows.frames import frame_labels
from forestc.rows.labels import find_label, is_number
from forestc.rows.opening import csv_options, csv_source, has_header, kind_of, read_numpy, readable

MOST_CLASSES = 1000  # more different labels are refused: they are likely values


@dataclass(frozen=True)
class Table:
    """X: (rows, columns) float64, NaN where a value is missing. y: (rows,) of class numbers, or of values if there are
    no classes. names: of the columns. classes: the labels as texts, sorted as the source sorts them."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    names: tuple[str, ...]
    classes: tuple[str, ...]


def read_table(rows: object, label: object, *, regression: bool = False) -> Table:
    """Rows with labels. rows: a file as for `forestc.rows.files`, a 2-D array, a data frame or an Arrow table. label:
    the column of the labels, or the labels. regression: labels are values, not classes. Raises RowsError for what can't
    be read, for columns that are not numbers, and for labels of a single class or without an end of classes."""
    if label is None:
        raise OptionError("training needs labels", do="add --label COLUMN")
    X, y, names, where = _read(rows, label, text=not regression)
    return _table(X, y, names, where, regression)


def read_inputs(rows: object, label: object) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """All columns but the label's: (rows, columns) float64, and their names. Raises RowsError."""
    X, _, names, _ = _read(rows, label, text=True)
    return X, names


def _read(rows: object, label: object, *, text: bool) -> tuple[NDArray[np.float64], NDArray[Any], tuple[str, ...], str]:
    """The columns, the labels (text: as they are, not as numbers), the columns' names, and what rows are called."""
    where = str(rows) if isinstance(rows, str | Path) else "the rows"
    if isinstance(rows, str | Path):
        rows, label = _opened(Path(rows), label)
    if frame_labels(rows) is None:
        X = np.asarray(rows)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise RowsError("the rows are no table of numbers", where=where, do="give (rows, columns)")
        return np.asarray(X, np.float64), np.asarray(label), tuple(f"x{k}" for k in range(X.shape[1])), where
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)
    names = unique_names(table.column_names, where)
    if isinstance(label, str | int):
        place = names.index(find_label(str(label), names, True, where))
        y = _values(table.column(place), names[place], where, text=text)
        kept = [k for k in range(len(names)) if k != place]
    else:
        y, kept = np.asarray(label), list(range(len(names)))
    X = np.column_stack([_values(table.column(k), names[k], where) for k in kept]) if kept else np.zeros((len(y), 0))
    return X, y, tuple(names[k] for k in kept), where


def _opened(path: Path, label: object) -> tuple[Any, Any]:
    """The rows of a file, and the labels or their column."""
    from pyarrow import dataset  # half a second, and only some formats need it

    kind = kind_of(path)
    if kind == "numpy":
        X, labels = read_numpy(path, (str(label),))
        assert labels is not None
        return X, labels[:, 0]
    with readable(path):
        if kind == "csv":
            return pyarrow.csv.read_csv(csv_source(path), **csv_options(has_header(path, str(label)))), label
        return dataset.dataset(path, format=kind).to_table(), label


def _values(column: pa.ChunkedArray, name: str, where: str, *, text: bool = False) -> NDArray[Any]:
    """A column as float64, NaN where a value is missing; with text as it is."""
    if text:
        return np.array(column.to_pylist(), dtype=object)
    return column_numbers(column, name, where, do="encode it as numbers")


def _table(X: NDArray[np.float64], y: NDArray[Any], names: tuple[str, ...], where: str, regression: bool) -> Table:
    if len(y) != len(X) or y.ndim != 1:
        raise RowsError(f"{len(y)} labels for {len(X)} rows", where=where, do="give one for each row")
    if not len(X) or not X.shape[1]:
        raise RowsError("there are no rows or no columns", where=where, do="give some")
    if regression:
        values = np.asarray(y, np.float64)
        if not np.isfinite(values).all():
            raise RowsError("a label is missing or infinite", where=where, do="remove that row")
        return Table(X, values, names, ())
    for row, label in enumerate(y.tolist()):
        if label is None or label != label or not str(label).strip():
            raise RowsError("a label is missing", where=f"{where}, row {row}", do="remove that row")
    texts = np.array([_text(label) for label in y.tolist()], dtype=object)
    distinct = set(texts.tolist())
    classes = sorted(distinct, key=float) if all(map(is_number, distinct)) else sorted(distinct)
    if len(classes) < 2:
        raise RowsError(f"all labels are {classes[0]!r}: one class alone", where=where, do="give rows of two or more")
    if len(classes) > min(MOST_CLASSES, len(X) // 2):
        raise RowsError(
            f"{len(classes)} different labels in {len(X)} rows", where=where, do="add --regression if they are values"
        )
    place = {text: index for index, text in enumerate(classes)}
    return Table(X, np.array([place[text] for text in texts.tolist()], np.int64), names, tuple(classes))


def _text(label: Any) -> str:
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else str(label)
