"""Rows for a model from CSV (gzip too), Parquet, Arrow, NumPy, or arrays in memory.

Columns are matched to features by name where the file and the model both have names, else by
position. Files are read in batches, again and again, and never whole.
"""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.dataset
from numpy.typing import NDArray

from forestc.errors import OptionError, RowsError
from forestc.forest.evaluate import found_names, generic, numeric
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.forest.rows import ArrayRows, Batch, Rows

BLOCK_BYTES = 8 << 20
BATCH_ROWS = 16384
BATCH_VALUES = 1 << 24
_NULLS = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))


@dataclass(frozen=True)
class TableRows:
    """Rows of a file of named or numbered columns.

    open: starts reading afresh and gives Arrow batches of the wanted columns.
    wanted: file column of each of the model's columns, None where no condition reads it.
    names: of the model's columns that take text, the names of their categories.
    """

    open: Callable[[], Iterator[pa.RecordBatch]]
    wanted: tuple[str | None, ...]
    label: str | None
    classes: tuple[Any, ...]
    where: str
    names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def batches(self) -> Iterator[Batch]:
        """Raises RowsError, naming column and row, for what is no number."""
        start = 0
        for table in self._tables():
            if not table.num_rows:
                continue
            X = np.zeros((table.num_rows, len(self.wanted)))
            for column, name in enumerate(self.wanted):
                if name is not None:
                    X[:, column] = _numbers(table.column(name), name, self.where, self.names.get(column, ()))
            truth = None if self.label is None else self._truth(table.column(self.label), start)
            start += table.num_rows
            yield Batch(X, truth)
        if not start:
            raise RowsError("there are no rows", where=self.where, do="give at least one")

    @property
    def divisible(self) -> bool:
        """Whether the rows lie in parts that others can read."""
        return isinstance(self.open, _Files)

    def parts(self) -> list[tuple[int, TableRows]]:
        """The parts, each with the number of its first row. They pickle. Raises RowsError."""
        assert isinstance(self.open, _Files)
        try:
            parts = [(first, replace(self, open=part, where=part.path)) for first, part in self.open.parts()]
        except (pa.ArrowException, OSError) as error:
            raise RowsError(f"can't be read ({_first_line(error)})", where=self.where) from None
        if not parts:
            raise RowsError("there are no rows", where=self.where, do="give at least one")
        return parts

    def _tables(self) -> Iterator[pa.RecordBatch]:
        try:
            for table in self.open():
                size = max(1, min(BATCH_ROWS, BATCH_VALUES // max(1, len(self.wanted))))
                for at in range(0, table.num_rows, size):
                    yield table.slice(at, size)
        except (pa.ArrowException, OSError) as error:
            raise RowsError(f"can't be read ({_first_line(error)})", where=self.where) from None

    def _truth(self, column: pa.Array, start: int) -> NDArray[Any]:
        return truth_of(column.to_pylist(), self.classes, f"{self.where}, column {self.label!r}", start)


def truth_of(labels: Sequence[Any], classes: tuple[Any, ...], where: str, start: int = 0) -> NDArray[Any]:
    """Labels as class indices (-1: none of the model's), or as values where there are no classes."""
    if not classes:
        try:
            values = np.array([float(label) for label in labels])
        except (TypeError, ValueError) as error:
            raise RowsError(f"a label is no number ({error})", where=f"{where}, from row {start}") from None
        if not np.isfinite(values).all():
            row = start + int(np.flatnonzero(~np.isfinite(values))[0])
            raise RowsError("a label is missing or infinite", where=f"{where}, row {row}", do="leave that row out")
        return values
    known: dict[Any, int] = {}
    for index, label in enumerate(classes):
        known.setdefault(str(label), index)
        number = _as_number(label)
        if number is not None:
            known.setdefault(number, index)
    found = [known.get(str(label), known.get(_as_number(label), -1)) for label in labels]
    if labels and max(found) < 0:
        raise RowsError(
            f"no label is a class of the model: {str(labels[0])[:40]!r}",
            where=f"{where}, row {start}",
            do=f"the model's classes: {', '.join(str(c) for c in classes[:8])}",
        )
    return np.array(found, dtype=np.int64)


def _as_number(label: Any) -> float | None:
    try:
        return float(label)
    except (TypeError, ValueError):
        return None


def _names(forest: Forest) -> dict[int, tuple[str, ...]]:
    """The names of categories, by column, of the features that have some."""
    return {feature.column: feature.labels for feature in forest.features if feature.labels}


def _numbers(column: pa.Array, name: str, where: str, names: tuple[str, ...] = ()) -> NDArray[np.float64]:
    """A column as float64, NaN where a value is missing. names: of categories, which become their codes, and
    any other text -1."""
    if names and pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if names and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        text = column.cast(pa.string())
        codes = pyarrow.compute.index_in(text, value_set=pa.array(names, pa.string()))
        known = codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.float64)
        return np.where(text.is_null().to_numpy(zero_copy_only=False), np.nan, known)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise RowsError(
            f"column {name!r} holds {column.type}, not numbers",
            where=where,
            do="encode it as the model was trained",
        )
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def open_rows(path: str | Path, forest: Forest, label: str | None = None) -> Rows:
    """Rows of a file for a model. label: the column that holds the truth (a name, or a position such as -1).

    For NumPy: `.npy` holds the rows, label is a position; `.npz` holds an array X, or X with a suffix
    (`X_test`), and label names the array of labels. Raises RowsError, OptionError.
    """
    path = Path(path)
    try:
        there = path.exists()
    except OSError:  # a name too long to ask about
        there = False
    if not there:
        raise RowsError("there is no such file", where=str(path), do="check the path")
    name = path.name.lower()
    if name.endswith((".npy", ".npz")):
        return _numpy_rows(path, forest, label)
    if name.endswith((".csv", ".csv.gz")):
        return _csv_rows(path, forest, label)
    for suffix, form in ((".parquet", "parquet"), (".arrow", "ipc"), (".feather", "ipc")):
        if name.endswith(suffix) or (path.is_dir() and any(path.glob(f"*{suffix}"))):
            return _dataset_rows(path, form, forest, label)
    if path.is_dir():
        raise RowsError("the folder holds no .parquet, .arrow or .feather file", where=str(path))
    raise OptionError(
        f"unknown kind of rows file {path.suffix!r}",
        where=str(path),
        do="known: .csv, .csv.gz, .parquet, .arrow, .feather, .npy, .npz",
    )


def rows_from(rows: Any, forest: Forest, truth: Any = None) -> Rows:
    """Rows from what people hold in Python: a path, a 2-D array, or a data frame with the features' names.

    truth: labels as the model knows them, one a row; of a path or a data frame the name of their column. Raises
    RowsError.
    """
    if isinstance(rows, str | Path):
        return open_rows(rows, forest, None if truth is None else str(truth))
    if isinstance(rows, ArrayRows | TableRows):
        return rows
    if hasattr(rows, "columns") and not isinstance(rows, np.ndarray):
        if isinstance(truth, str):
            if truth not in rows.columns:
                raise RowsError(f"there is no column {truth!r}", where="the data frame", do="name the label column")
            rows, truth = rows.drop(columns=truth), rows[truth]
        data = _frame(rows, forest)
    else:
        data = numeric(forest, rows)
    return _array_rows(data, truth, forest, "the rows")


def _frame(frame: Any, forest: Forest) -> NDArray[np.float64]:
    where = "the data frame"
    try:
        table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise RowsError(f"not a table of numbers ({_first_line(error)})", where=where) from None
    if len(set(table.column_names)) != len(table.column_names):
        raise RowsError("two columns have one name", where=where)
    data = np.zeros((table.num_rows, forest.columns))
    labels = _names(forest)
    coded = {feature.column for feature in forest.features if isinstance(feature.number, Category)}
    for column, name in enumerate(_match(list(table.column_names), forest, where)):
        if name is not None:
            values = table.column(name).combine_chunks()
            if pa.types.is_dictionary(values.type) and column not in coded:
                values = values.cast(values.type.value_type)  # a categorical column of numbers stands for its values
            data[:, column] = _numbers(values, name, where, labels.get(column, ()))
    return data


def _array_rows(data: NDArray[np.float64], truth: Any, forest: Forest, where: str) -> ArrayRows:
    if data.ndim != 2 or data.shape[1] != forest.columns:
        raise RowsError(
            f"the array has shape {data.shape}",
            where=where,
            do=f"the model takes rows of {forest.columns} columns",
        )
    if not len(data):
        raise RowsError("there are no rows", where=where, do="give at least one")
    if truth is not None and len(truth) != len(data):
        raise RowsError(f"{len(truth)} labels for {len(data)} rows", where=where)
    labels = None if truth is None else truth_of(list(np.asarray(truth).tolist()), forest.classes, where)
    return ArrayRows(data, labels)


def _numpy_rows(path: Path, forest: Forest, label: str | None) -> Rows:
    truth = None
    try:
        # mapped, so that a header that promises more than the file holds costs nothing
        loaded = np.load(path, mmap_mode="r" if path.suffix.lower() == ".npy" else None, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            data = loaded
            if label is not None:
                place = _position(label, data.shape[1] if data.ndim == 2 else 0, str(path))
                truth, data = data[:, place], np.delete(data, place, axis=1)
        else:
            key = "X" + label[1:] if label is not None and f"X{label[1:]}" in loaded else "X"
            if key not in loaded or (label is not None and label not in loaded):
                raise RowsError(
                    f"has no array {key if key not in loaded else label!r}",
                    where=str(path),
                    do=f"it has: {', '.join(loaded.files)}",
                )
            data, truth = loaded[key], None if label is None else loaded[label]
        if data.dtype.kind not in "biuf":
            raise RowsError(f"the array holds {data.dtype}, not numbers", where=str(path))
        data = np.asarray(data, dtype=np.float64)
    except (ValueError, OSError, EOFError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise RowsError(f"not a readable NumPy file ({_first_line(error)})", where=str(path)) from None
    return _array_rows(data, truth, forest, str(path))


def _position(label: str, columns: int, where: str) -> int:
    try:
        place = int(label)
    except ValueError:
        raise RowsError(
            f"there is no column {label!r}",
            where=where,
            do="the columns have no names: give a position, such as -1",
        ) from None
    if not -columns <= place < columns:
        raise RowsError(f"there is no column {place} of {columns}", where=where)
    return place % columns


def _csv_rows(path: Path, forest: Forest, label: str | None) -> Rows:
    try:
        zipped = path.name.lower().endswith(".gz")
        with path.open("rb") as raw, gzip.open(raw) if zipped else raw as file:
            lines = (line for line in iter(lambda: file.readline(1 << 20), b"") if line.strip())
            first = next(lines, b"").decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise RowsError(f"can't be read ({_first_line(error)})", where=str(path)) from None
    if not first.strip():
        raise RowsError("the file is empty", where=str(path))
    headed = _is_header(first, forest, label)
    options = pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, autogenerate_column_names=not headed)

    def opened(convert: pyarrow.csv.ConvertOptions | None = None) -> Any:
        source = pa.input_stream(str(path), compression="gzip" if zipped else None)
        return pyarrow.csv.open_csv(source, read_options=options, convert_options=convert)

    try:
        names = opened().schema.names
    except (pa.ArrowException, OSError) as error:
        raise RowsError(f"not a readable CSV file ({_first_line(error)})", where=str(path)) from None
    wanted, label = _columns(names, forest, label, str(path), headed)
    labels = _names(forest)
    types = {
        name: pa.string() if column in labels else pa.float64()
        for column, name in enumerate(wanted)
        if name is not None
    }
    if label is not None:
        types[label] = pa.string()
    known = {name for names_ in labels.values() for name in names_}  # a category may be called NA
    nulls = [text for text in pyarrow.csv.ConvertOptions().null_values if text not in known]
    convert = pyarrow.csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=nulls, strings_can_be_null=True
    )
    return TableRows(lambda: iter(opened(convert)), wanted, label, forest.classes, str(path), labels)


def _is_header(line: str, forest: Forest, label: str | None) -> bool:
    """Whether a CSV's first line names the columns: it holds a name that is known, or 0, 1, 2, ... as data
    frames without names are written, or mostly text. Text in a label column alone makes no header, and a
    name (or a label's position) that could be a value counts only if all features' names are there."""
    cells = [cell.strip() for cell in next(csv.reader([line]), [])]
    names = {feature.name for feature in forest.features}
    if {name for name in (label, *names) if name is not None and _as_number(name) is None} & set(cells):
        return True
    if len(names) > 1 and names <= set(cells):
        return True
    numbers = [cell for cell in cells if _as_number(cell) is not None or cell.lower() in _NULLS]
    if len(numbers) > 2 and numbers == [str(index) for index in range(len(numbers))]:
        return True
    return 2 * len(numbers) < len(cells)


def _dataset_rows(path: Path, form: str, forest: Forest, label: str | None) -> Rows:
    try:
        dataset = pyarrow.dataset.dataset(path, format=form)
    except (pa.ArrowException, OSError) as error:
        raise RowsError(f"not a readable {form} file ({_first_line(error)})", where=str(path)) from None
    wanted, label = _columns(dataset.schema.names, forest, label, str(path), True)
    needed = [name for name in wanted if name is not None] + ([label] if label is not None else [])
    files = _Files(str(path.absolute()), form, tuple(needed))
    return TableRows(files, wanted, label, forest.classes, str(path), _names(forest))


@dataclass(frozen=True)
class _Files:
    """Opens a Parquet or Arrow file or folder, or one row group of a Parquet file. Pickles."""

    path: str
    form: str
    columns: tuple[str, ...]
    group: int | None = None

    def __call__(self) -> Iterator[pa.RecordBatch]:
        options: dict[str, Any] = {"columns": list(self.columns), "batch_size": BATCH_ROWS}
        if self.form == "parquet":
            # one row group at a time, not read ahead: else memory grows with the file
            options["fragment_scan_options"] = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=False)
        for fragment in pyarrow.dataset.dataset(self.path, format=self.form).get_fragments():
            try:
                lacking = [name for name in self.columns if name not in fragment.physical_schema.names]
                if lacking:
                    raise RowsError(f"has no column {lacking[0]!r}", where=fragment.path, do="give files of one form")
                for part in fragment.split_by_row_group() if self.form == "parquet" else [fragment]:
                    if self.group is None or self.group == part.row_groups[0].id:
                        yield from part.to_batches(**options)
            except (pa.ArrowException, OSError) as error:
                raise RowsError(
                    f"can't be read ({_first_line(error)})", where=fragment.path, do="write the file again"
                ) from None

    def parts(self) -> Iterator[tuple[int, _Files]]:
        """Files or row groups, each with the number of its first row."""
        first = 0
        for fragment in pyarrow.dataset.dataset(self.path, format=self.form).get_fragments():
            groups = fragment.row_groups if self.form == "parquet" else [None]
            for group in groups:
                rows = fragment.count_rows() if group is None else group.num_rows
                if rows:
                    yield first, replace(self, path=fragment.path, group=None if group is None else group.id)
                first += rows


def _columns(
    names: list[str], forest: Forest, label: str | None, where: str, headed: bool
) -> tuple[tuple[str | None, ...], str | None]:
    """The file's column for each of the model's, and the label's."""
    if len(set(names)) != len(names):
        raise RowsError("two columns have one name", where=where)
    if label is not None and label not in names:
        if headed and not re.fullmatch(r"-?\d+", label):
            raise RowsError(f"there is no column {label!r}", where=where, do=f"it has: {_some(names)}")
        label = names[_position(label, len(names), where)]
    return _match([name for name in names if name != label], forest, where, headed), label


def _match(names: list[str], forest: Forest, where: str, named: bool = True) -> tuple[str | None, ...]:
    """By name if the file has every feature's, by position if either side has no real names."""
    result: list[str | None] = [None] * forest.columns
    said = [feature.name for feature in forest.features]
    matched = found_names(said, names)
    missing = [name for name, found in zip(said, matched, strict=True) if found is None]
    unique = len(set(said)) == len(said)  # two features of one name can only go by position
    if named and not missing and unique:
        for feature, found in zip(forest.features, matched, strict=True):
            result[feature.column] = found
        return tuple(result)
    if named and unique and not any(generic(side) for side in (said, names)):
        raise RowsError(
            f"column {missing[0]!r} is missing" + (f" and {len(missing) - 1} more" if missing[1:] else ""),
            where=where,
            do=f"it has: {_some(names)}",
        )
    if len(names) != forest.columns:
        raise RowsError(
            f"has {len(names)} columns beside the label",
            where=where,
            do=f"the model takes {forest.columns}; name the label column, if there is one",
        )
    for feature in forest.features:
        result[feature.column] = names[feature.column]
    return tuple(result)


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
