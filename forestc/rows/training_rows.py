"""Reads rows with labels for training; there is no model yet that defines columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forestc.errors import OptionError, RowsError, opt
from forestc.rows.arrow_files import column_numbers
from forestc.rows.batches import Labels
from forestc.rows.given import open_file
from forestc.rows.labels import LabelReader, label_lists
from forestc.rows.table import ROWS, ArrayTable, FrameTable, find_label, in_memory, is_number, unique_names

MOST_CLASSES = 1000  # classes at most; more different labels are probably values of a regression


@dataclass(frozen=True)
class LabeledRows:
    X: NDArray[np.float64]  # (rows, columns), NaN for missing values
    y: Labels  # (rows,) class numbers, or values if `classes` is empty
    names: tuple[str, ...]  # names of the columns
    classes: tuple[str, ...]  # distinct labels as texts, sorted as numbers if possible


def read_table(rows: object, label: object, *, regression: bool = False) -> LabeledRows:
    """Reads rows with labels from a file, an array or a data frame. Raises RowsError for unusable rows, OptionError
    without a label."""
    if label is None:
        raise OptionError("training needs labels", where=opt.label, do=f"add {opt.label:COLUMN}")
    X, y, names, where = _read(rows, label, text=not regression)
    return _labeled(X, y, names, where, regression)


def read_columns(rows: object, label: object) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Returns all columns except the label, as float64 (rows, columns), and their names. Raises RowsError for unusable
    rows."""
    X, _, names, _ = _read(rows, label, text=True)
    return X, names


def _read(rows: object, label: object, *, text: bool) -> tuple[NDArray[np.float64], object, tuple[str, ...], str]:
    """Returns the columns beside the labels, the labels as given, the columns' names and the rows' name in messages."""
    column = str(label) if isinstance(label, str | int) else None
    table = open_file(rows, column) if isinstance(rows, str | Path) else in_memory(rows)
    if isinstance(table, ArrayTable):
        X = np.asarray(table.rows)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise RowsError("the rows are no table of numbers", where=table.where, do="give (rows, columns)")
        y = label if table.truth is None else table.truth[:, 0]
        X = np.delete(np.asarray(X, np.float64), table.labels, axis=1)
        return X, y, tuple(f"x{k}" for k in range(X.shape[1])), table.where
    where = ROWS if isinstance(table, FrameTable) else table.where
    arrow = table.whole()
    names = unique_names(arrow.column_names, where)
    others = list(range(len(names)))
    if column is None:
        y = label
    else:
        index = others.pop(names.index(find_label(column, names, where)))
        truth = arrow.column(index)
        y = np.array(truth.to_pylist(), dtype=object) if text else _numbers(truth, names[index], where)
    X = (
        np.column_stack([_numbers(arrow.column(k), names[k], where) for k in others])
        if others
        else np.zeros((arrow.num_rows, 0))
    )
    return X, y, tuple(names[k] for k in others), where


def _numbers(column: pa.ChunkedArray, name: str, where: str) -> NDArray[np.float64]:
    return column_numbers(column, name, where, do="encode it as numbers")


def _labeled(X: NDArray[np.float64], y: object, names: tuple[str, ...], where: str, regression: bool) -> LabeledRows:
    labels, *others = label_lists(y, len(X), where)
    if others:
        raise RowsError(f"{1 + len(others)} columns of labels", where=where, do="give one label for each row")
    if not len(X) or not X.shape[1]:
        raise RowsError("there are no rows or no columns", where=where, do="give some")
    if regression:
        return LabeledRows(X, LabelReader(((),), where).read([labels]), names, ())
    for row, label in enumerate(labels):
        if label is None or label != label or not str(label).strip():
            raise RowsError("a label is missing", where=f"{where}, row {row}", do="remove that row")
    texts = np.array([_text(label) for label in labels], dtype=object)
    distinct = set(texts.tolist())
    classes = sorted(distinct, key=float) if all(map(is_number, distinct)) else sorted(distinct)
    if len(classes) < 2:
        raise RowsError(f"all labels are {classes[0]!r}: one class alone", where=where, do="give rows of two or more")
    if len(classes) > min(MOST_CLASSES, len(X) // 2):
        raise RowsError(
            f"{len(classes)} different labels in {len(X)} rows",
            where=where,
            do=f"add {opt.regression} if they are values",
        )
    index_by_class = {text: index for index, text in enumerate(classes)}
    return LabeledRows(X, np.array([index_by_class[text] for text in texts.tolist()], np.int64), names, tuple(classes))


def _text(label: object) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
