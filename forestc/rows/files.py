"""Opens rows for a model, from files or from data in memory. CSV, Parquet and Arrow files are read in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.ir import Forest
from forestc.rows.arrow_files import BATCH_ROWS, ArrowFiles, readable
from forestc.rows.batches import ArrayRows, Batch, Labels, Rows
from forestc.rows.columns import find_columns, some_names, unique_names
from forestc.rows.csv_table import CsvTable
from forestc.rows.encode import numeric
from forestc.rows.frames import WHERE, FrameTable, frame_numbers, refuse_mixed_categories
from forestc.rows.labels import (
    Targets,
    columns_in,
    find_labels,
    is_number,
    label_columns,
    refuse_features,
    refuse_number,
    refuse_other_labels,
    targets_of,
    truth_of,
)
from forestc.rows.opening import IN_MEMORY, ArrayTable, open_table

BATCH_VALUES = 1 << 24  # limits the values of a batch: 128 MB as float64


@dataclass(frozen=True)
class TableRows:
    """Rows in a CSV, Parquet or Arrow file."""

    table: CsvTable | ArrowFiles
    read_columns: tuple[str | None, ...]  # names by column; None if no condition reads it
    truth: tuple[str, ...]  # columns with labels
    targets: Targets  # each target's classes; empty for values
    labels: Mapping[int, tuple[str, ...]]  # category names by column of the rows
    names: tuple[str, ...] = ()  # names of the columns; empty if the model has names

    def batches(self) -> Iterator[Batch]:
        """Yields the rows in batches. Raises RowsError for values that are not numbers, or if there are no rows."""
        start = 0
        for table in self._tables():
            X = np.zeros((table.num_rows, len(self.read_columns)))
            text: dict[bool, str] = {}
            for column, name in enumerate(self.read_columns):
                if name is None:
                    continue
                values, labels = table.column(name), self.labels.get(column, ())
                X[:, column] = column_numbers(values, name, self.table.where, labels, self.table.nulls)
                if labels and values.null_count < len(values):
                    text[_is_text(values)] = name
            refuse_mixed_categories(text, self.table.where)
            truth = self._truth(table, start) if self.truth else None
            start += table.num_rows
            yield Batch(X, truth)
        if not start:
            raise RowsError("there are no rows", where=self.table.where, do="give at least one")

    def check_labels(self) -> None:
        if not any(self.targets) or len(self.truth) != len(self.targets):
            return
        counts: list[Counter[object]] = [Counter() for _ in self.truth]
        with readable(self.table.where):
            for table in self.table.batches(self.truth, self.truth):
                for name, counted in zip(self.truth, counts, strict=True):
                    for entry in table.column(name).value_counts().to_pylist():
                        counted[entry["values"]] += entry["counts"]
        refuse_other_labels(counts, self.targets, self.labels_where)

    @property
    def divisible(self) -> bool:
        return isinstance(self.table, ArrowFiles)

    def parts(self) -> list[tuple[int, TableRows]]:
        """Returns a list of (number of the first row, rows), one for each row group or file."""
        assert isinstance(self.table, ArrowFiles)
        with readable(self.table.where):
            parts = [(first, replace(self, table=part)) for first, part in self.table.parts()]
        if not parts:
            raise RowsError("there are no rows", where=self.table.where, do="give at least one")
        return parts

    def _tables(self) -> Iterator[pa.RecordBatch]:
        columns = dict.fromkeys([*(name for name in self.read_columns if name is not None), *self.truth])
        texts = {*self.truth, *(name for column in self.labels if (name := self.read_columns[column]) is not None)}
        size = max(1, min(BATCH_ROWS, BATCH_VALUES // max(1, len(self.read_columns))))
        with readable(self.table.where):
            for table in self.table.batches(list(columns), texts):
                for at in range(0, table.num_rows, size):
                    yield table.slice(at, size)

    def _truth(self, table: pa.RecordBatch, start: int) -> Labels:
        columns = [table.column(name).to_pylist() for name in self.truth]
        return truth_of(columns, self.targets, self.labels_where, start)

    @property
    def labels_where(self) -> str:
        return f"{self.table.where}, column{'s' * (len(self.truth) > 1)} {', '.join(map(repr, self.truth))}"


def column_numbers(
    column: pa.Array | pa.ChunkedArray,
    name: str,
    where: str,
    labels: tuple[str, ...] = (),
    nulls: tuple[str, ...] = (),
    do: str = "encode it as the model was trained",
) -> NDArray[np.float64]:
    """Returns a column as float64, with NaN for missing values. Raises RowsError for other types.
    labels: category names, which become their indices.
    nulls: texts for missing values.
    do: the error's remedy."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if labels and _is_text(column):
        return _codes(column.cast(pa.string()), name, where, labels, nulls)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise RowsError(f"column {name!r} holds {column.type}, not numbers", where=where, do=do)
    return _floats(column.cast(pa.float64(), safe=False))


def _floats(column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """Returns a float64 column as an array, with NaN for nulls. pyarrow's `to_numpy` would import pandas."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    numbers = [np.full(len(chunk), np.nan) for chunk in chunks]
    for chunk, filled in zip(chunks, numbers, strict=True):
        within = slice(chunk.offset, chunk.offset + len(chunk))
        if chunk.null_count < len(chunk):
            present, values = chunk.buffers()
            bits = None if present is None else np.frombuffer(present, np.uint8)
            present_mask = True if bits is None else np.unpackbits(bits, bitorder="little")[within].astype(np.bool_)
            np.copyto(filled, np.frombuffer(values, np.float64)[within], where=present_mask)
    return np.concatenate(numbers) if numbers else np.empty(0)


def _is_text(column: pa.Array) -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _codes(
    text: pa.Array, name: str, where: str, labels: tuple[str, ...], nulls: tuple[str, ...]
) -> NDArray[np.float64]:
    if "" in labels and "" in nulls and pyarrow.compute.any(pyarrow.compute.equal(text, "")).as_py():
        raise RowsError(
            f"a field of column {name!r} is empty, and so is the name of one of its categories",
            where=where,
            do="write Parquet, which tells a missing value from an empty text",
        )
    absent = pyarrow.compute.is_in(
        text, value_set=pa.array([null for null in nulls if null not in labels], pa.string())
    )
    absent = pyarrow.compute.or_(text.is_null(), absent).to_numpy(zero_copy_only=False)
    codes = pyarrow.compute.index_in(text, value_set=pa.array(labels, pa.string()))
    by_code = codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.float64)
    if nulls and not (by_code[~absent] >= 0).any() and not any(map(is_number, labels)):
        _refuse_numbers(text.filter(pa.array(~absent)), name, where, labels)
    return np.where(absent, np.nan, by_code)


def _refuse_numbers(text: pa.Array, name: str, where: str, labels: tuple[str, ...]) -> None:
    """Raises RowsError if all texts are numbers, as these may be codes instead of names."""
    unknown = text.unique().to_pylist()
    if unknown and all(map(is_number, unknown)):
        raise RowsError(
            f"column {name!r} holds {unknown[0]!r}, and its categories have names",
            where=where,
            do=f"write names: {some_names(labels)}",
        )


def rows_from(rows: object, forest: Forest, truth: object = None) -> Rows:
    """Returns rows for a model from a path, an array, or a data frame.
    truth: labels, or names of label columns.

    Raises RowsError or OptionError for unsuitable rows.
    """
    if isinstance(rows, ArrayRows | TableRows):
        return rows
    named = label_columns(truth, rows)
    if truth is not None and named is None and isinstance(rows, str | Path):
        raise RowsError("rows in a file take their labels from the file", where=str(rows), do="name their column")
    table = open_table(rows, named, forest)
    if isinstance(table, FrameTable):
        if named is not None:
            table, truth = table.without(named)
        data, match = frame_numbers(forest, table)
        return replace(_array_rows(data, truth, forest, WHERE), names=match.names)
    if not isinstance(table, ArrayTable):
        opened = _table_rows(table, forest, named)
        opened.check_labels()
        return opened
    if table.where != IN_MEMORY:
        return _array_rows(numeric(forest, table.rows), table.truth, forest, table.where)
    if forest.carried and (shape := np.shape(table.rows)) != (*shape[:1], forest.columns):
        raise _other_width(shape, forest, table.where)
    all_columns = table.rows if isinstance(table.rows, np.ndarray) and forest.carried else None
    return replace(_array_rows(numeric(forest, table.rows), truth, forest, table.where), all_columns=all_columns)


def _table_rows(table: CsvTable | ArrowFiles, forest: Forest, label: str | Sequence[str] | None) -> TableRows:
    unique_names(table.names, table.where)
    targets = targets_of(forest)
    truth = () if label is None else find_labels(label, table.names, table.headed, table.where)
    if truth:
        refuse_number(len(truth), targets, table.where)
    others = [name for name in table.names if name not in truth]
    refuse_features(truth, forest, table.where)
    match = find_columns(forest, others if table.headed else len(others), table.where)
    read_columns: list[str | None] = [None] * forest.width
    labels = {}
    for feature, index, column in zip(forest.features, forest.row_columns, match.columns, strict=True):
        read_columns[index] = others[column]
        if feature.labels:
            labels[index] = feature.labels
    return TableRows(table, tuple(read_columns), truth, targets, labels, match.names)


def _array_rows(data: NDArray[np.float64], truth: object, forest: Forest, where: str) -> ArrayRows:
    if data.ndim != 2 or data.shape[1] != forest.width:
        raise _other_width(data.shape, forest, where)
    if not len(data):
        raise RowsError("there are no rows", where=where, do="give at least one")
    if truth is None:
        return ArrayRows(data)
    columns, targets = columns_in(truth, len(data), where), targets_of(forest)
    labels = truth_of(columns, targets, where)
    refuse_other_labels([_counted(column) for column in columns], targets, where)
    return ArrayRows(data, labels)


def _counted(labels: Sequence[object]) -> Counter[object]:
    try:
        return Counter(labels)
    except TypeError:  # The labels' type has no hash.
        return Counter(map(str, labels))


def _other_width(shape: tuple[int, ...], forest: Forest, where: str) -> RowsError:
    return RowsError(
        f"the array has shape {shape}", where=where, do=f"the model takes rows of {forest.columns} columns"
    )
