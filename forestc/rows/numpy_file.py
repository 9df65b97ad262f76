"""Reads NumPy files: an array with its label columns, or an archive with an array of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from forestc.errors import RowsError
from forestc.rows.arrow_files import readable
from forestc.rows.table import ArrayTable, label_position


def open_numpy(path: Path, labels: Sequence[str]) -> ArrayTable:
    """Opens a NumPy file. Raises RowsError if it lacks rows or labels, or can't be read."""
    truth, positions = None, []
    with readable(path, "not a readable NumPy file"), path.open("rb") as file:
        # A memory map allocates nothing, even if the header claims more than the file holds.
        mapped = path.suffix.lower() == ".npy"
        loaded = np.load(path if mapped else file, mmap_mode="r" if mapped else None, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            data, width = loaded, loaded.shape[1] if loaded.ndim == 2 else 0
            positions = [label_position(text, width, str(path)) for text in labels]
            truth = data[:, positions] if labels else None
        else:
            key = "X" + labels[0][1:] if labels and f"X{labels[0][1:]}" in loaded else "X"
            lacking = [name for name in (key, *labels) if name not in loaded]
            if lacking:
                raise RowsError(
                    f"has no array {lacking[0]!r}", where=str(path), do=f"it has: {', '.join(loaded.files)}"
                )
            data = loaded[key]
            truth = np.column_stack([loaded[name] for name in labels]) if labels else None
        if data.dtype.kind not in "biuf":
            raise RowsError(
                f"the array holds {data.dtype}, not numbers", where=str(path), do="give an array of numbers"
            )
    return ArrayTable(data, truth, str(path), tuple(positions))
