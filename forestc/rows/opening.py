"""Opens rows of any kind as a table: CSV, Parquet, Arrow and NumPy files, data frames, arrays, sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, RowsError, check_exists
from forestc.forest.ir import Forest
from forestc.rows.arrow_files import ArrowFiles, readable
from forestc.rows.csv_table import CsvTable
from forestc.rows.frames import FrameTable, frame_table
from forestc.rows.labels import label_position

# Maps suffixes of files that a folder of rows may hold to formats.
_FOLDERS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_FORMATS = {".csv": "csv", ".csv.gz": "csv", **_FOLDERS, ".npy": "numpy", ".npz": "numpy"}
IN_MEMORY = "the rows"  # names rows without a file in messages


@dataclass(frozen=True)
class ArrayTable:
    """Rows without column names: an array, lists, or a sparse matrix."""

    rows: Any
    truth: NDArray[np.generic] | None = None  # labels (rows, labels) of a file
    where: str = IN_MEMORY


def open_table(
    rows: object, label: str | Sequence[str] | None = None, forest: Forest | None = None
) -> CsvTable | ArrowFiles | FrameTable | ArrayTable:
    """Opens a path, a data frame, an Arrow table or an array as a table. Raises RowsError or OptionError for an
    unreadable file."""
    if not isinstance(rows, str | Path):
        return frame_table(rows) or ArrayTable(rows)
    path = Path(rows)
    match format_of(path):
        case "csv":
            features = () if forest is None else forest.features
            lists = [feature.labels for feature in features] + list(forest.categories if forest else ())
            named = {feature.name for feature in features if feature.named}
            return CsvTable.open(path, label, named, [text for texts in lists for text in texts])
        case "numpy":
            return _numpy_table(path, label.split(",") if isinstance(label, str) else label or (), forest)
        case form:
            return ArrowFiles.open(path, form)


def format_of(path: Path) -> str:
    """Returns the format of a file or folder: csv, parquet, ipc (Arrow) or numpy. Raises RowsError or OptionError for
    other paths."""
    check_exists(path, RowsError)
    for suffix, form in _FORMATS.items():
        if path.name.lower().endswith(suffix):
            return form
    for suffix, form in _FOLDERS.items():
        if path.is_dir() and any(path.glob(f"*{suffix}")):
            return form
    if path.is_dir():
        raise RowsError(
            "the folder holds no .parquet, .arrow or .feather file", where=str(path), do="give a folder of such files"
        )
    raise OptionError(f"unknown kind of rows file {path.suffix!r}", where=str(path), do=f"known: {', '.join(_FORMATS)}")


def _numpy_table(path: Path, labels: Sequence[str], forest: Forest | None) -> ArrayTable:
    """Returns a NumPy file's rows and labels as a table. Raises RowsError if the file lacks them or can't be read."""
    truth = None
    with readable(path, "not a readable NumPy file"), path.open("rb") as file:
        # A memory map allocates nothing, even if the header claims more than the file holds.
        mapped = path.suffix.lower() == ".npy"
        loaded = np.load(path if mapped else file, mmap_mode="r" if mapped else None, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            data = loaded
            width = data.shape[1] if data.ndim == 2 else 0
            positions = [label_position(text, width, str(path)) for text in labels]
            columns = np.setdiff1d(np.arange(width), positions)
            truth = data[:, positions] if labels else None
        else:
            key = "X" + labels[0][1:] if labels and f"X{labels[0][1:]}" in loaded else "X"
            lacking = [name for name in (key, *labels) if name not in loaded]
            if lacking:
                raise RowsError(
                    f"has no array {lacking[0]!r}", where=str(path), do=f"it has: {', '.join(loaded.files)}"
                )
            data = loaded[key]
            columns = np.arange(data.shape[1] if data.ndim == 2 else 0)
            truth = np.column_stack([loaded[name] for name in labels]) if labels else None
        if forest is not None and forest.carried and len(columns) == forest.columns:
            columns = columns[list(forest.carried)]
        if data.ndim == 2 and len(columns) < data.shape[1]:
            data = data[:, columns]
        if data.dtype.kind not in "biuf":
            raise RowsError(
                f"the array holds {data.dtype}, not numbers", where=str(path), do="give an array of numbers"
            )
        return ArrayTable(np.asarray(data, dtype=np.float64), truth, str(path))
