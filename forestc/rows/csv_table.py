"""Reads CSV files, also gzipped: recognizes a header, infers the types of columns, and finds faulty lines."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.rows.arrow_files import FileTable, readable
from forestc.rows.table import as_number, is_number

MOST_LINE_BYTES = 128 << 20  # bytes of the first line at most
BLOCK_BYTES = 8 << 20  # bytes that pyarrow parses at a time; more if a line is long
WIDE = 4096  # columns; with more, types are inferred only for the columns read
LONGEST = 40  # characters of a cell in a message
SAMPLED = "# rows sampled from an input model by forestc"  # the first line of a file of invented rows
# Each of these texts means a missing value, as in pandas.
_NULLS = "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
NULLS = ("", "#N/A N/A", *_NULLS.split())


@dataclass(frozen=True)
class CsvTable(FileTable):
    where: str
    names: tuple[str, ...]
    changed: int
    headed: bool  # False if `names` are not in the file
    kinds: dict[str, pa.DataType]  # types of the columns, as inferred so far
    block: int  # bytes to parse at a time
    sampled: bool = False  # True if the first line is the mark of invented rows
    nulls: ClassVar[tuple[str, ...]] = NULLS

    @classmethod
    def open(
        cls, path: Path, label: str | Sequence[str] | None, names: Collection[str], categories: Collection[str]
    ) -> CsvTable:
        """Opens a CSV file. Raises RowsError if it is empty or can't be read. label, names, categories: as for
        `is_header`."""
        changed, sampled = path.stat().st_mtime_ns, is_sampled(path)
        line = _first_line(path, sampled=sampled)
        cells = next(csv.reader([line]), [])
        headed = is_header([cell.strip() for cell in cells], label, names, categories)
        columns = cells if headed else [f"f{index}" for index in range(len(cells))]
        block = min(max(BLOCK_BYTES, 8 * len(line)), 1 << 30)
        table = cls(str(path), tuple(columns), changed, headed, {}, block, sampled)
        if len(cells) > WIDE:
            return table
        with readable(path, "not a readable CSV file"), table._faults():
            schema = table._reader(None).schema
        kinds = dict(zip(schema.names, schema.types, strict=True))
        return replace(table, names=tuple(schema.names), kinds=kinds)

    def read(self, columns: Sequence[str], texts: Collection[str], most: int) -> Iterator[pa.RecordBatch]:
        with self._faults():
            unseen = [name for name in columns if name not in texts and name not in self.kinds]
            if unseen:
                schema = self._reader(dict.fromkeys(unseen)).schema
                self.kinds.update(zip(schema.names, schema.types, strict=True))
        types = {name: pa.string() if name in texts else self._number(name) for name in columns}
        with self._faults([name for name, kind in types.items() if kind == pa.float64()]):
            yield from self._reader(types)

    def numbers(
        self, column: pa.Array, name: str, labels: tuple[str, ...] = (), unknown: float | None = None
    ) -> tuple[NDArray[np.float64], set[bool]]:
        if labels or unknown is None:
            return super().numbers(column, name, labels)
        distinct = column.dictionary_encode()
        numbers = np.array([_number_in(text, unknown) for text in distinct.dictionary.to_pylist()], dtype=np.float64)
        return numbers[distinct.indices.to_numpy()], set()

    def _number(self, name: str) -> pa.DataType:
        # A column of texts such as True is read as booleans, because these are no numbers.
        return pa.bool_() if pa.types.is_boolean(self.kinds[name]) else pa.float64()

    def head(self) -> pa.Table:
        with readable(self.where):
            return pa.Table.from_batches(list(islice(self._reader(None), 1)))

    def whole(self) -> pa.Table:
        with readable(self.where):
            return pyarrow.csv.read_csv(self._source(), **self._options(None))

    def _reader(self, types: Mapping[str, pa.DataType | None] | None) -> pyarrow.csv.CSVStreamingReader:
        return pyarrow.csv.open_csv(self._source(), **self._options(types))

    def _source(self) -> pa.NativeFile:
        return pa.input_stream(self.where, compression="gzip" if _zipped(self.where) else None)

    def _options(self, types: Mapping[str, pa.DataType | None] | None) -> dict[str, Any]:
        typed = {} if types is None else {name: kind for name, kind in types.items() if kind is not None}
        selection = {} if types is None else {"column_types": typed, "include_columns": list(types)}
        return {
            "read_options": pyarrow.csv.ReadOptions(
                block_size=self.block, autogenerate_column_names=not self.headed, skip_rows=int(self.sampled)
            ),
            # Text columns keep texts such as NA, as they may be names of categories.
            "convert_options": pyarrow.csv.ConvertOptions(null_values=NULLS, strings_can_be_null=False, **selection),
        }

    @contextmanager
    def _faults(self, numbers: Collection[str] = ()) -> Iterator[None]:
        """Turns pyarrow's error into RowsError with the first faulty line. numbers: columns that must hold numbers."""
        try:
            yield
        except pa.ArrowInvalid as error:
            try:
                fault = self._first_fault(numbers)
            except (OSError, EOFError, ValueError, csv.Error):
                fault = None
            if fault is None:
                raise
            line, what, do = fault
            raise RowsError(what, where=f"{self.where}, line {line}", do=do) from error

    def _first_fault(self, numbers: Collection[str]) -> tuple[int, str, str] | None:
        """Returns (line number from 1, fault, remedy) for the first faulty line; None if no fault is found."""
        with _unzipped(Path(self.where)) as file:
            reader = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))
            lines = (cells for cells in reader if cells)
            for _ in range(self.sampled + self.headed):
                next(lines, None)
            for cells in lines:
                if len(cells) != len(self.names):
                    what = f"{len(cells)} cells, and the first line has {len(self.names)}"
                    mark = next((mark for mark in ";\t" if any(mark in name for name in self.names)), "")
                    do = f"cells are separated by {mark!r}: write commas, and points in numbers"
                    return reader.line_num, what, do if mark else "write a cell for each column, separated by commas"
                for name, cell in zip(self.names, cells, strict=True):
                    if name in numbers and cell not in NULLS and not is_number(cell):
                        shown = cell if len(cell) <= LONGEST else cell[:LONGEST] + "..."
                        do = "write a number, or nothing where the value is missing"
                        return reader.line_num, f"column {name!r} holds {shown!r}, which is no number", do
        return None


def _number_in(text: str, unknown: float) -> float:
    """Returns the number in a cell, NaN for a missing value, and `unknown` for another text."""
    number = np.nan if text in NULLS else as_number({"true": 1.0, "false": 0.0}.get(text.lower(), text))
    return unknown if number is None else number


def _zipped(path: Path | str) -> bool:
    return str(path).lower().endswith(".gz")


def _unzipped(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path) if _zipped(path) else path.open("rb"))


def is_sampled(path: Path) -> bool:
    """Returns True if a CSV file's first line marks its rows as invented; a spreadsheet may have quoted it."""
    with readable(path), _unzipped(path) as file:
        return file.readline(200).decode("utf-8-sig", "replace").lstrip('"').startswith(SAMPLED)


def _first_line(path: Path, *, sampled: bool) -> str:
    """Returns the first line of a file that is not blank, after the mark of sampled rows. Raises RowsError if there is
    none."""
    with readable(path), _unzipped(path) as file:
        if sampled:
            file.readline()
        lines = (line for line in iter(lambda: file.readline(MOST_LINE_BYTES), b"") if line.strip())
        line = re.split(r"[\r\n]", next(lines, b"").decode("utf-8-sig").lstrip("\r\n"))[0]
    if not line.strip():
        raise RowsError("the file is empty", where=str(path), do="give a header and rows")
    return line


def is_header(
    cells: Sequence[str], label: str | Sequence[str] | None, names: Collection[str], categories: Collection[str]
) -> bool:
    """Returns True if the cells of a file's first line seem to be names.
    label: names or indices of label columns.
    names: names of features.
    categories: texts that are values."""
    label_names = {label, *label.split(",")} if isinstance(label, str) else set(label or ())
    if {name for name in label_names.union(names) if not is_number(name)} & set(cells):
        return True
    if len(names) > 1 and set(names) <= set(cells):
        return True
    values = {"?", *NULLS, *categories}
    numbers = [cell for cell in cells if is_number(cell) or cell in values]
    if len(numbers) > 2 and numbers == [str(index) for index in range(len(numbers))]:
        return True
    return 2 * len(numbers) < len(cells)
