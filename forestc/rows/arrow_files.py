"""Reads Parquet and Arrow files, and folders of them; turns Arrow columns of any file into numbers."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.rows.table import PREVIEW, FrameTable, are_whole, is_number, refuse_numbers_as_names, some_names

WHOLE = "check that the file is whole, and that its ending names its format"
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error)


@contextmanager
def readable(where: Path | str, what: str = "can't be read", do: str = WHOLE) -> Iterator[None]:
    """Turns errors that libraries raise on damaged files, within a `with`, into RowsError."""
    try:
        yield
    except RowsError:
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RowsError(f"{what} ({reason})", where=str(where), do=do) from None


class FileTable:
    """The table of a file, whose columns are Arrow arrays."""

    where: str  # name in messages
    names: tuple[str, ...]
    changed: int  # when the file was changed last, in ns, as it was opened
    nulls: ClassVar[tuple[str, ...]] = ()  # texts that mean a missing value
    by_position: ClassVar[bool] = True

    def batches(self, columns: Sequence[str], texts: Collection[str], most: int) -> Iterator[pa.RecordBatch]:
        with readable(self.where):
            for batch in self.read(columns, texts, most):
                if Path(self.where).stat().st_mtime_ns != self.changed:
                    raise RowsError(
                        "the file changes while it is read", where=self.where, do="give a copy that nothing writes to"
                    )
                for start in range(0, batch.num_rows, most):
                    yield batch.slice(start, most)

    def numbers(
        self, column: pa.Array, name: str, labels: tuple[str, ...] = (), unknown: float | None = None
    ) -> tuple[NDArray[np.float64], set[bool]]:
        holds = {_is_text(column)} if column.null_count < len(column) else set()
        return column_numbers(column, name, self.where, labels, self.nulls), holds

    def texts(self) -> dict[str, tuple[list[str], bool]]:
        return FrameTable(self.head(), self.names).texts()

    def read(self, columns: Sequence[str], texts: Collection[str], most: int) -> Iterator[pa.RecordBatch]:
        """Yields batches as `batches` does, of any size."""
        raise NotImplementedError

    def head(self) -> pa.Table:
        """Returns some first rows, with all columns."""
        raise NotImplementedError


@dataclass(frozen=True)
class ArrowFiles(FileTable):
    """The table of a file or folder, or of one row group of a Parquet file."""

    where: str  # name in messages
    path: str  # absolute, so that other machines find it
    form: str  # parquet or ipc (Arrow)
    names: tuple[str, ...]
    changed: int
    group: int | None = None  # number of the row group; None for all
    headed: ClassVar[bool] = True  # True: the files state names of columns

    @classmethod
    def open(cls, path: Path, form: str) -> ArrowFiles:
        files = cls(str(path), str(path.absolute()), form, (), path.stat().st_mtime_ns)
        with readable(path, f"not a readable {form} file"):
            return replace(files, names=tuple(files._dataset().schema.names))

    def read(self, columns: Sequence[str], texts: Collection[str], most: int) -> Iterator[pa.RecordBatch]:
        from pyarrow import dataset  # The import takes half a second.

        options: dict[str, Any] = {"columns": list(columns), "batch_size": most}
        if self.form == "parquet":
            # Without read-ahead, only one row group is in memory at a time.
            options["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(pre_buffer=False)
        for fragment in self._dataset().get_fragments():
            with readable(fragment.path, do="write the file again"):
                lacking = [name for name in columns if name not in fragment.physical_schema.names]
                if lacking:
                    raise RowsError(
                        f"has no column {lacking[0]!r}", where=fragment.path, do="give files with the same columns"
                    )
                for part in fragment.split_by_row_group() if self.form == "parquet" else [fragment]:
                    if self.group is None or self.group == part.row_groups[0].id:
                        yield from part.to_batches(**options)

    def parts(self) -> Iterator[tuple[int, ArrowFiles]]:
        """Yields (number of the first row, part) for each part with rows: a row group of Parquet, or an Arrow file."""
        first = 0
        for fragment in self._dataset().get_fragments():
            for group in fragment.row_groups if self.form == "parquet" else [None]:
                rows = fragment.count_rows() if group is None else group.num_rows
                if rows:
                    own = None if group is None else group.id
                    changed = Path(fragment.path).stat().st_mtime_ns
                    yield first, replace(self, where=fragment.path, path=fragment.path, changed=changed, group=own)
                first += rows

    def head(self) -> pa.Table:
        with readable(self.where):
            return self._dataset().head(PREVIEW)

    def whole(self) -> pa.Table:
        with readable(self.where):
            return self._dataset().to_table()

    def _dataset(self) -> Any:
        from pyarrow import dataset  # The import takes half a second.

        return dataset.dataset(self.path, format=self.form)


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
    refuse_numbers_as_names(name, labels, where)
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
    if are_whole(labels):  # A column of integers that misses some is written as 3.0.
        text = pyarrow.compute.replace_substring_regex(text, r"^(-?\d+)\.0+$", r"\1")
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
