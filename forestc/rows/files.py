"""Rows for a model from CSV (also gzipped), Parquet, Arrow or NumPy files, or from arrays in memory.

`forestc.rows.columns` matches columns to features. Files are read in batches, once per pass over the rows, and are
never loaded whole.

Missing values of a CSV file are empty fields and the texts that pandas reads as missing (NA, null, nan, None, ...). A
text that is the name of one of the column's categories is that category, not missing; an empty field is always missing.
So in a column with a category called NA, missing values must be empty fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.ir import Forest
from forestc.rows.batches import ArrayRows, Batch, Rows
from forestc.rows.columns import Places, find_columns, some_names, unique_names
from forestc.rows.csv_faults import csv_faults
from forestc.rows.encode import numeric
from forestc.rows.frames import frame_labels, frame_numbers, mixed_categories
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
from forestc.rows.opening import (
    BLOCK_BYTES,
    NULLS,
    csv_options,
    csv_source,
    has_header,
    kind_of,
    read_numpy,
    readable,
    wide_names,
)

BATCH_ROWS = 16384  # rows of a batch, at most
BATCH_VALUES = 1 << 24  # values of a batch, at most: 128 MB as float64


@dataclass(frozen=True)
class TableRows:
    """Rows of a file with named or numbered columns.

    open: opens the file and yields Arrow batches of the wanted columns.
    wanted: the file's column for each column of the rows (`Forest.width`), None if no condition reads it.
    truth, targets: the columns with labels, and the targets they are for (`forestc.rows.labels`).
    labels: category names by column of the rows, for columns that may hold text.
    names: as in ArrayRows. nulls: texts that mean a missing value unless they are a category's name. labels_alone: as
    `open`, for the columns with labels.
    """

    open: Callable[[], Iterator[pa.RecordBatch]]
    wanted: tuple[str | None, ...]
    truth: tuple[str, ...]
    targets: Targets
    where: str
    labels: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    labels_alone: Callable[[], Iterator[pa.RecordBatch]] | None = None

    def batches(self) -> Iterator[Batch]:
        """The rows in batches. Raises RowsError, naming the column, for values that are not numbers."""
        start = 0
        for table in self._tables():
            if not table.num_rows:
                continue
            X = np.zeros((table.num_rows, len(self.wanted)))
            text: dict[bool, str] = {}
            for column, name in enumerate(self.wanted):
                if name is None:
                    continue
                values, labels = table.column(name), self.labels.get(column, ())
                X[:, column] = column_numbers(values, name, self.where, labels, self.nulls)
                if labels and values.null_count < len(values):
                    text[_is_text(values)] = name
            if len(text) > 1:
                raise mixed_categories(text[True], text[False], self.where)
            truth = self._truth(table, start) if self.truth else None
            start += table.num_rows
            yield Batch(X, truth)
        if not start:
            raise RowsError("there are no rows", where=self.where, do="give at least one")

    def check_labels(self) -> None:
        """Raises RowsError for labels that are others than the model's classes; reads all labels, and nothing else."""
        if self.labels_alone is None or not any(self.targets) or len(self.truth) != len(self.targets):
            return
        counts: list[Counter[Any]] = [Counter() for _ in self.truth]
        with readable(self.where):
            for table in self.labels_alone():
                for name, counted in zip(self.truth, counts, strict=True):
                    for entry in table.column(name).value_counts().to_pylist():
                        counted[entry["values"]] += entry["counts"]
        refuse_other_labels(counts, self.targets, self.labels_where)

    @property
    def divisible(self) -> bool:
        """Whether the rows lie in parts that other processes can read."""
        return isinstance(self.open, _Files)

    def parts(self) -> list[tuple[int, TableRows]]:
        """The parts, each with the number of its first row; they can be pickled. Raises RowsError."""
        assert isinstance(self.open, _Files)
        with readable(self.where):
            parts = [(first, replace(self, open=part, where=part.path)) for first, part in self.open.parts()]
        if not parts:
            raise RowsError("there are no rows", where=self.where, do="give at least one")
        return parts

    def _tables(self) -> Iterator[pa.RecordBatch]:
        with readable(self.where):
            for table in self.open():
                size = max(1, min(BATCH_ROWS, BATCH_VALUES // max(1, len(self.wanted))))
                for at in range(0, table.num_rows, size):
                    yield table.slice(at, size)

    def _truth(self, table: pa.RecordBatch, start: int) -> NDArray[Any]:
        columns = [table.column(name).to_pylist() for name in self.truth]
        return truth_of(columns, self.targets, self.labels_where, start)

    @property
    def labels_where(self) -> str:
        """The file and its columns of labels, for messages."""
        return f"{self.where}, column{'s' * (len(self.truth) > 1)} {', '.join(map(repr, self.truth))}"


def _labels(forest: Forest) -> dict[int, tuple[str, ...]]:
    """The category names by column, for features that have some."""
    return {
        place: feature.labels for feature, place in zip(forest.features, forest.places, strict=True) if feature.labels
    }


def column_numbers(
    column: pa.Array | pa.ChunkedArray,
    name: str,
    where: str,
    labels: tuple[str, ...] = (),
    nulls: tuple[str, ...] = (),
    do: str = "encode it as the model was trained",
) -> NDArray[np.float64]:
    """A column as float64, NaN where a value is missing. labels: names of categories, which become their codes, and
    any other text -1, or NaN where it is one of `nulls`. Categories that are numbers stand for themselves. Raises
    RowsError, with the advice `do`, for a column of another type."""
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
    """A column of float64, NaN where it has nulls. pyarrow's own `to_numpy` imports pandas: half a second."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    numbers = [np.full(len(chunk), np.nan) for chunk in chunks]
    for chunk, filled in zip(chunks, numbers, strict=True):
        own = slice(chunk.offset, chunk.offset + len(chunk))
        if chunk.null_count < len(chunk):
            present, values = chunk.buffers()
            bits = None if present is None else np.frombuffer(present, np.uint8)
            known = True if bits is None else np.unpackbits(bits, bitorder="little")[own].astype(np.bool_)
            np.copyto(filled, np.frombuffer(values, np.float64)[own], where=known)
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
    known = codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.float64)
    if nulls and not (known[~absent] >= 0).any() and not any(map(is_number, labels)):
        _refuse_numbers(text.filter(pa.array(~absent)), name, where, labels)
    return np.where(absent, np.nan, known)


def _refuse_numbers(text: pa.Array, name: str, where: str, labels: tuple[str, ...]) -> None:
    """Raises RowsError if all unknown texts are numbers: a text file can't tell codes from unknown names."""
    unknown = text.unique().to_pylist()
    if unknown and all(map(is_number, unknown)):
        raise RowsError(
            f"column {name!r} holds {unknown[0]!r}, and its categories have names",
            where=where,
            do=f"write names: {some_names(labels)}",
        )


def open_rows(path: str | Path, forest: Forest, label: str | Sequence[str] | None = None) -> Rows:
    """Rows of a file for a model. label: the column with the true labels (a name, or a position such as -1), or the
    columns of several targets: a list, or comma-separated names.

    For NumPy see `forestc.rows.opening.read_numpy`. Raises RowsError for a file that can't be read or does not match
    the model, OptionError for an unknown file type.
    """
    path = Path(path)
    kind = kind_of(path)
    if kind == "numpy":
        columns = () if label is None else tuple(label.split(",")) if isinstance(label, str) else tuple(label)
        data, truth = read_numpy(path, columns, forest.columns, forest.carried)
        return _array_rows(data, truth, forest, str(path))
    return _csv_rows(path, forest, label) if kind == "csv" else _dataset_rows(path, kind, forest, label)


def rows_from(rows: object, forest: Forest, truth: object = None) -> Rows:
    """Rows from a path, a 2-D array, or a data frame with the features' names.

    truth: labels as in the model, one per row, or a column for each target; for a path or a data frame the name of
    their column, or a list of names. Raises RowsError.
    """
    named = label_columns(truth, rows)
    if isinstance(rows, str | Path):
        if truth is not None and named is None:
            raise RowsError("rows in a file take their labels from the file", where=str(rows), do="name their column")
        opened = open_rows(rows, forest, named)
        if isinstance(opened, TableRows):
            opened.check_labels()
        return opened
    if isinstance(rows, ArrayRows | TableRows):
        return rows
    labels = frame_labels(rows)
    if labels is None:
        given: Any = rows
        if forest.carried and (shape := np.shape(given)) != (*shape[:1], forest.columns):
            raise _other_width(shape, forest, "the rows")
        whole = rows if isinstance(rows, np.ndarray) and forest.carried else None
        return replace(_array_rows(numeric(forest, rows), truth, forest, "the rows"), whole=whole)
    if named is not None:
        rows, labels, truth = _without(rows, labels, named)
    data, places = frame_numbers(forest, rows, labels)
    return replace(_array_rows(data, truth, forest, "the data frame"), names=places.names)


def _without(frame: Any, labels: list[Any], named: Sequence[Any]) -> tuple[Any, list[Any], NDArray[Any]]:
    """A frame or table without its label columns, the names of the other columns, and the labels (rows, columns)."""
    where = "the data frame"
    unique_names(labels, where)
    for label in named:
        if label not in labels:
            raise RowsError(
                f"there is no column {label!r}", where=where, do=f"it has: {some_names([str(name) for name in labels])}"
            )
    kept = [index for index, label in enumerate(labels) if label not in named]
    others = [labels[index] for index in kept]
    truth = np.empty((len(frame), len(named)), dtype=object)
    for place, label in enumerate(named):
        table = isinstance(frame, pa.Table)
        truth[:, place] = frame.column(labels.index(label)).to_pylist() if table else list(frame[label])
    rest = frame.select(kept) if isinstance(frame, pa.Table) else frame.drop(columns=list(named))
    return rest, others, truth


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


def _counted(labels: Sequence[Any]) -> Counter[Any]:
    """How often each label occurs."""
    try:
        return Counter(labels)
    except TypeError:  # of a type that has no hash
        return Counter(map(str, labels))


def _other_width(shape: tuple[int, ...], forest: Forest, where: str) -> RowsError:
    return RowsError(
        f"the array has shape {shape}", where=where, do=f"the model takes rows of {forest.columns} columns"
    )


def _csv_rows(path: Path, forest: Forest, label: str | Sequence[str] | None) -> Rows:
    named = {feature.name for feature in forest.features if feature.named}
    headed = has_header(path, label, named, [text for feature in forest.features for text in feature.labels])
    with readable(path, "not a readable CSV file"), csv_faults(path, headed):
        if forest.carried:
            present, block = wide_names(path, headed)
        else:
            schema = pyarrow.csv.open_csv(csv_source(path), **csv_options(headed)).schema
            present, block = schema.names, BLOCK_BYTES
    wanted, truth, names = _columns(present, forest, label, str(path), headed)
    if forest.carried:
        with readable(path, "not a readable CSV file"), csv_faults(path, headed):
            read = dict.fromkeys(name for name in wanted if name is not None)
            schema = pyarrow.csv.open_csv(csv_source(path), **csv_options(headed, read, block)).schema
    labels = _labels(forest)
    types = {
        name: pa.string()
        if column in labels
        else pa.bool_()  # True and False
        if pa.types.is_boolean(schema.field(name).type)
        else pa.float64()
        for column, name in enumerate(wanted)
        if name is not None
    }
    types |= dict.fromkeys(truth, pa.string())

    numbers = [name for name, kind in types.items() if pa.types.is_floating(kind)]

    def opened() -> Iterator[pa.RecordBatch]:
        with csv_faults(path, headed, numbers):
            yield from pyarrow.csv.open_csv(csv_source(path), **csv_options(headed, types, block))

    def labels_alone() -> Iterator[pa.RecordBatch]:
        with csv_faults(path, headed):
            alone = dict.fromkeys(truth, pa.string())
            yield from pyarrow.csv.open_csv(csv_source(path), **csv_options(headed, alone, block))

    return TableRows(opened, wanted, truth, targets_of(forest), str(path), labels, names, NULLS, labels_alone)


def _dataset_rows(path: Path, form: str, forest: Forest, label: str | Sequence[str] | None) -> Rows:
    from pyarrow import dataset  # half a second, and only some formats need it

    with readable(path, f"not a readable {form} file"):
        names_of = dataset.dataset(path, format=form).schema.names
    wanted, truth, names = _columns(names_of, forest, label, str(path), True)
    needed = [name for name in wanted if name is not None] + list(truth)
    files = _Files(str(path.absolute()), form, tuple(needed))
    labels_alone = replace(files, columns=truth)
    return TableRows(files, wanted, truth, targets_of(forest), str(path), _labels(forest), names, (), labels_alone)


@dataclass(frozen=True)
class _Files:
    """Opens a Parquet or Arrow file or folder, or one row group of a Parquet file. It can be pickled."""

    path: str
    form: str
    columns: tuple[str, ...]
    group: int | None = None

    def __call__(self) -> Iterator[pa.RecordBatch]:
        from pyarrow import dataset  # half a second, and only some formats need it

        options: dict[str, Any] = {"columns": list(self.columns), "batch_size": BATCH_ROWS}
        if self.form == "parquet":
            # no read-ahead: one row group at a time, or memory grows with the file
            options["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(pre_buffer=False)
        for fragment in dataset.dataset(self.path, format=self.form).get_fragments():
            with readable(fragment.path, do="write the file again"):
                lacking = [name for name in self.columns if name not in fragment.physical_schema.names]
                if lacking:
                    raise RowsError(
                        f"has no column {lacking[0]!r}", where=fragment.path, do="give files with the same columns"
                    )
                for part in fragment.split_by_row_group() if self.form == "parquet" else [fragment]:
                    if self.group is None or self.group == part.row_groups[0].id:
                        yield from part.to_batches(**options)

    def parts(self) -> Iterator[tuple[int, _Files]]:
        """Files or row groups, each with the number of its first row."""
        from pyarrow import dataset  # half a second, and only some formats need it

        first = 0
        for fragment in dataset.dataset(self.path, format=self.form).get_fragments():
            groups = fragment.row_groups if self.form == "parquet" else [None]
            for group in groups:
                rows = fragment.count_rows() if group is None else group.num_rows
                if rows:
                    yield first, replace(self, path=fragment.path, group=None if group is None else group.id)
                first += rows


def _columns(
    names: list[str], forest: Forest, label: str | Sequence[str] | None, where: str, headed: bool
) -> tuple[tuple[str | None, ...], tuple[str, ...], tuple[str, ...]]:
    """The file's column for each of the model's columns, the label columns, and the names for TableRows."""
    unique_names(names, where)
    truth = () if label is None else find_labels(label, names, headed, where)
    if truth:
        refuse_number(len(truth), targets_of(forest), where)
    others = [name for name in names if name not in truth]
    refuse_features(truth, forest, where)
    places: Places = find_columns(forest, others if headed else len(others), where)
    wanted: list[str | None] = [None] * forest.width
    for own, place in zip(forest.places, places.columns, strict=True):
        wanted[own] = others[place]
    return tuple(wanted), truth, places.names
