"""Files of rows: of which kind they are, and how each kind is read, with a model or without one."""

from __future__ import annotations

import csv
import gzip
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from forestc.errors import OptionError, RowsError, check_exists
from forestc.rows.labels import is_number, label_position

MOST_LINE_BYTES = 128 << 20  # of a CSV file's first line
BLOCK_BYTES = 8 << 20  # bytes of a CSV file that pyarrow parses at a time
# The texts of missing values in a CSV file: those that pandas reads as missing.
_NULLS = "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
NULLS = ("", "#N/A N/A", *_NULLS.split())
_FOLDERS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}  # files, or folders of these
_KINDS = {".csv": "csv", ".csv.gz": "csv", **_FOLDERS, ".npy": "numpy", ".npz": "numpy"}
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error)


def kind_of(path: Path) -> str:
    """csv, parquet, ipc (Arrow) or numpy. Raises RowsError for a file that is not there, OptionError for an unknown
    kind."""
    check_exists(path, RowsError)
    for suffix, kind in _KINDS.items():
        if path.name.lower().endswith(suffix):
            return kind
    for suffix, kind in _FOLDERS.items():
        if path.is_dir() and any(path.glob(f"*{suffix}")):
            return kind
    if path.is_dir():
        raise RowsError("the folder holds no .parquet, .arrow or .feather file", where=str(path))
    raise OptionError(f"unknown kind of rows file {path.suffix!r}", where=str(path), do=f"known: {', '.join(_KINDS)}")


@contextmanager
def readable(where: Path | str, what: str = "can't be read", do: str = "") -> Iterator[None]:
    """Raises RowsError for what libraries raise on damaged files."""
    try:
        yield
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RowsError(f"{what} ({reason})", where=str(where), do=do) from None


def read_numpy(
    path: Path, labels: Sequence[str], columns: int = 0, carried: Sequence[int] = ()
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """The rows, as float64, and their labels (rows, labels), None without any. carried: of rows of `columns` columns
    these are read alone, if there are any.

    `.npy` holds the rows, labels are positions of columns; `.npz` holds an array X, or X with a suffix (`X_test`), and
    labels are the names of arrays. Raises RowsError.
    """
    truth = None
    with readable(path, "not a readable NumPy file"), path.open("rb") as file:
        # memory-mapped, so that a header that claims more than the file holds allocates nothing
        mapped = path.suffix.lower() == ".npy"
        loaded = np.load(path if mapped else file, mmap_mode="r" if mapped else None, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            data = loaded
            if labels:
                width = data.shape[1] if data.ndim == 2 else 0
                places = [label_position(text, width, str(path)) for text in labels]
                truth = data[:, places]
                rest = np.setdiff1d(np.arange(width), places)
                data = data[:, rest[list(carried)] if carried and len(rest) == columns else rest]
        else:
            key = "X" + labels[0][1:] if labels and f"X{labels[0][1:]}" in loaded else "X"
            lacking = [name for name in (key, *labels) if name not in loaded]
            if lacking:
                raise RowsError(
                    f"has no array {lacking[0]!r}", where=str(path), do=f"it has: {', '.join(loaded.files)}"
                )
            data = loaded[key]
            truth = np.column_stack([loaded[name] for name in labels]) if labels else None
        if carried and data.ndim == 2 and data.shape[1] == columns:
            data = data[:, list(carried)]
        if data.dtype.kind not in "biuf":
            raise RowsError(f"the array holds {data.dtype}, not numbers", where=str(path))
        return np.asarray(data, dtype=np.float64), truth


def csv_source(path: Path) -> pa.NativeFile:
    """The text of a CSV file, unzipped if need be."""
    return pa.input_stream(str(path), compression="gzip" if path.name.lower().endswith(".gz") else None)


def csv_options(
    headed: bool, types: Mapping[str, pa.DataType | None] | None = None, block: int = BLOCK_BYTES
) -> dict[str, Any]:
    """How pyarrow reads a CSV file. types: of the columns to read, None where the values tell it; without, of all.
    block: bytes to parse at a time."""
    known = {} if types is None else {name: kind for name, kind in types.items() if kind is not None}
    wanted = {} if types is None else {"column_types": known, "include_columns": list(types)}
    return {
        "read_options": pyarrow.csv.ReadOptions(block_size=block, autogenerate_column_names=not headed),
        # text columns keep the texts of missing values: they may be names of categories
        "convert_options": pyarrow.csv.ConvertOptions(null_values=NULLS, strings_can_be_null=False, **wanted),
    }


def wide_names(path: Path, headed: bool) -> tuple[list[str], int]:
    """The names of a CSV file's columns, as pyarrow gives them, from its first line alone, and the bytes to parse at a
    time: some of its lines. pyarrow itself looks at the values of all columns, which takes it seconds for 100,000."""
    with csv_source(path) as file:
        line = bytearray()
        while (part := file.read(1 << 16)) and len(line) < MOST_LINE_BYTES:
            line += part.lstrip(b"\r\n") if not line else part
            if b"\n" in part:
                break
    first = bytes(line).split(b"\n")[0].decode("utf-8-sig")
    cells = next(csv.reader([first.rstrip("\r")]), [])
    names = cells if headed else [f"f{index}" for index in range(len(cells))]
    return names, min(max(BLOCK_BYTES, 8 * len(first)), 1 << 30)


def has_header(
    path: Path, label: str | Sequence[str] | None, names: Collection[str] = (), categories: Collection[str] = ()
) -> bool:
    """Whether the first line of a CSV file is a header: it holds a known name, or 0, 1, 2, ... as data frames
    without names are written, or mostly text. Text in the label column only is not a header, and names that
    could be values count only if the names of all features appear.

    names: of the features. categories: texts that are values. Raises RowsError for a file that is empty or no text.
    """
    zipped = path.name.lower().endswith(".gz")
    with readable(path), path.open("rb") as raw, gzip.open(raw) if zipped else raw as file:
        lines = (line for line in iter(lambda: file.readline(1 << 20), b"") if line.strip())
        line = next(lines, b"").decode("utf-8-sig")
    if not line.strip():
        raise RowsError("the file is empty", where=str(path))
    cells = [cell.strip() for cell in next(csv.reader([line]), [])]
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
