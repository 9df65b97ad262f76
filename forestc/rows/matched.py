"""Matches a table with a model: finds the columns that the model reads, and the labels, and reads them in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Float
from forestc.rows.batches import ArrayRows, Batch, Rows
from forestc.rows.columns import find_columns, refuse_features
from forestc.rows.labels import LabelReader, counted
from forestc.rows.table import ROWS, ArrayTable, FrameTable, Table, frame_table, is_absent, is_sparse

if TYPE_CHECKING:
    from scipy.sparse import spmatrix

BATCH_ROWS = 16384  # rows of a batch at most
BATCH_VALUES = 1 << 24  # limits the values of a batch: 128 MB as float64


@dataclass(frozen=True)
class TableRows:
    """Rows of a table for one model."""

    table: Table
    read_columns: tuple[Any, ...]  # names by column; None if no condition reads it
    truth: tuple[Any, ...]  # columns with labels
    reader: LabelReader
    labels: Mapping[int, tuple[str, ...]]  # category names by column of the rows
    names: tuple[str, ...] = ()  # names of the columns; empty if the model has names

    def batches(self) -> Iterator[Batch]:
        """Yields the rows in batches. Raises RowsError for values that are not numbers, or if there are no rows."""
        count = 0
        for batch in self.read():
            count += len(batch.X)
            yield batch
        if not count:
            raise no_rows(self.table.where)

    def read(self) -> Iterator[Batch]:
        """Yields the rows in batches, if there are any."""
        columns = dict.fromkeys([*(name for name in self.read_columns if name is not None), *self.truth])
        texts = {*self.truth, *(self.read_columns[column] for column in self.labels)}
        most, start = max(1, min(BATCH_ROWS, BATCH_VALUES // max(1, len(self.read_columns)))), 0
        for batch in self.table.batches(list(columns), texts, most):
            X = np.zeros((batch.num_rows, len(self.read_columns)))
            text: dict[bool, str] = {}
            for column, name in enumerate(self.read_columns):
                if name is not None:
                    labels = self.labels.get(column, ())
                    X[:, column], holds = self.table.numbers(batch.column(name), str(name), labels)
                    text |= dict.fromkeys(holds, str(name)) if labels else {}
            if len(text) > 1:
                raise RowsError(
                    f"column {text[True]!r} holds names of categories and {text[False]!r} numbers",
                    where=self.table.where,
                    do="give names in both, or codes in both",
                )
            labels_of_batch = [batch.column(name).tolist() for name in self.truth]
            yield Batch(X, self.reader.read(labels_of_batch, start) if self.truth else None)
            start += batch.num_rows

    def check_labels(self) -> None:
        if not any(self.reader.targets) or len(self.truth) != len(self.reader.targets):
            return
        counts = [counted(()) for _ in self.truth]
        for batch in self.table.batches(self.truth, self.truth, BATCH_ROWS):
            for name, count in zip(self.truth, counts, strict=True):
                count.update(counted(batch.column(name)))
        self.reader.refuse_others(counts)


def matched(table: Table | ArrayTable, forest: Forest, truth: tuple[Any, ...], labels: object) -> Rows:
    """Returns a table's rows for a model; those of arrays and data frames are read at once.
    truth: names of label columns.
    labels: the labels themselves, if no column holds them.

    Raises RowsError if the table or the labels do not match the model.
    """
    if isinstance(table, ArrayTable):
        return _array_rows(table, forest, labels)
    rows = _match(table, forest, truth)
    rows.check_labels()
    if not isinstance(table, FrameTable):
        return rows
    [batch] = rows.batches()
    given = None if labels is None or truth else rows.reader.read_values(labels, len(batch.X))
    return ArrayRows(batch.X, batch.truth if given is None else given, names=rows.names)


def _match(table: Table, forest: Forest, truth: tuple[Any, ...]) -> TableRows:
    reader = LabelReader.of(forest, table.where)
    if truth:
        reader.refuse_number(len(truth))
        reader = replace(reader, where=f"{table.where}, column{'s' * (len(truth) > 1)} {', '.join(map(repr, truth))}")
    refuse_features(truth, forest, table.where)
    others = [name for name in table.names if name not in truth]
    match = find_columns(forest, others if table.headed else len(others), table.where)
    read_columns: list[Any] = [None] * forest.width
    labels = {}
    for feature, index, column in zip(forest.features, forest.row_columns, match.columns, strict=True):
        read_columns[index] = others[column]
        _refuse_unclear_categories(forest, feature, table, others[column])
        if feature.labels:
            labels[index] = feature.labels
    return TableRows(table, tuple(read_columns), truth, reader, labels, match.names)


def _array_rows(table: ArrayTable, forest: Forest, labels: object) -> ArrayRows:
    in_memory = table.where == ROWS
    if in_memory and forest.carried and (shape := np.shape(table.rows)) != (*shape[:1], forest.columns):
        raise _other_width(shape, forest, table.where)
    X = _array_numbers(forest, table.inputs(forest.carried, forest.columns))
    if X.ndim != 2 or X.shape[1] != forest.width:
        raise _other_width(X.shape, forest, table.where)
    if not len(X):
        raise no_rows(table.where)
    labels = labels if in_memory else table.truth
    truth = None if labels is None else LabelReader.of(forest, table.where).read_values(labels, len(X))
    keeps_all = in_memory and isinstance(table.rows, np.ndarray) and forest.carried
    return ArrayRows(X, truth, all_columns=table.rows if keeps_all else None)


def numeric(forest: Forest, rows: object) -> NDArray[np.float64]:
    """Returns rows as float64, (rows, columns), with codes for category names. Raises RowsError if a data frame lacks a
    column, or if a column without category names holds text."""
    table = frame_table(rows)
    if table is not None:
        return next(_match(table, forest, ()).read()).X
    return _array_numbers(forest, rows)


def _array_numbers(forest: Forest, rows: Any) -> NDArray[np.float64]:
    labeled = any(feature.labels for feature in forest.features)
    if is_sparse(rows):
        return _dense(forest, rows)
    if forest.carried and isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == forest.columns:
        rows = rows[:, list(forest.carried)]
    dtype = rows.dtype if isinstance(rows, np.ndarray) else None
    if not labeled or (dtype is not None and dtype.kind in "biuf"):
        with suppress(TypeError, ValueError):  # Columns that no condition reads may hold text.
            return np.asarray(rows, dtype=np.float64)
    try:
        values = np.asarray(rows, dtype=object)  # Text that looks like a number may be a name.
    except ValueError as error:  # The lists have different lengths.
        raise RowsError(f"the rows are no table ({error})", where="the rows", do="give rows of one length") from None
    if values.ndim != 2 or values.shape[1] not in (forest.width, forest.columns):
        return np.zeros(values.shape)  # The caller will refuse this shape.
    only_read_columns = values.shape[1] == forest.width
    result = np.zeros((len(values), forest.width))
    for feature, index in zip(forest.features, forest.row_columns, strict=True):
        codes = {label: float(code) for code, label in enumerate(feature.labels)}
        try:
            result[:, index] = [
                np.nan if is_absent(value) else codes.get(value, -1.0) if codes and isinstance(value, str) else value
                for value in values[:, index if only_read_columns else feature.column]
            ]
        except (TypeError, ValueError) as error:
            raise RowsError(
                f"the rows are not numbers ({error})", where=f"feature {feature.name!r}", do="encode text columns first"
            ) from None
    return result


def _dense(forest: Forest, rows: spmatrix) -> NDArray[np.float64]:
    """Returns a sparse matrix as a dense array. Values that are not stored become 0; for an XGBoost model they become
    NaN."""
    if rows.ndim != 2 or rows.shape[1] != forest.columns:
        return np.zeros((0, *rows.shape))  # The caller will refuse this shape.
    chosen = rows.tocsc()[:, list(forest.carried)] if forest.carried else rows.tocsc()
    result = np.asarray(chosen.toarray(), dtype=np.float64)
    if forest.provenance.source == "xgboost":
        stored = chosen.copy()
        stored.data = np.ones(len(stored.data), dtype=bool)
        result[~stored.toarray()] = np.nan
    return result


def _refuse_unclear_categories(forest: Forest, feature: Feature, table: Table, name: Any) -> None:
    categories = table.categories(name) if isinstance(table, FrameTable) else []
    if any(isinstance(category, str) for category in categories):
        return  # Texts are names of categories.
    codes = categories == list(range(len(categories)))
    by_value = isinstance(feature.number, Float) and forest.provenance.source == "scikit-learn"
    if categories and (feature.labels or not (codes or by_value)):
        shown = ", ".join(map(str, categories[:5]))
        accepted = ", ".join(feature.labels[:5]) if feature.labels else "their own codes from 0 up"
        raise RowsError(
            f"column {str(name)!r} holds the categories {shown}, which are not {accepted}",
            where=table.where,
            do="give the model's own categories, or the codes it was trained on as plain numbers",
        )


def no_rows(where: str) -> RowsError:
    return RowsError("there are no rows", where=where, do="give at least one")


def _other_width(shape: tuple[int, ...], forest: Forest, where: str) -> RowsError:
    return RowsError(
        f"the array has shape {shape}", where=where, do=f"the model takes rows of {forest.columns} columns"
    )
