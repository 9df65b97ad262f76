"""Identifies rows by a hash, so that anyone can tell whether figures were measured on the same rows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.rows.batches import ArrayRows, Rows
from forestc.rows.columns import TableRows


def fingerprint(given: object, opened: Rows) -> dict[str, Any]:
    """Returns a dictionary that identifies rows, with the SHA-256 of the file or of the arrays. given: the rows as the
    user gave them. Raises RowsError for an unreadable file."""
    path = opened.table.where if isinstance(opened, TableRows) and not isinstance(given, str | Path) else given
    if isinstance(path, str | Path):
        return {"file": Path(path).name, "sha256": _hash_of(Path(path))}
    assert isinstance(opened, ArrayRows)
    figures = {"shape": list(opened.X.shape), "sha256": _hash_of_array(opened.X)}
    return figures if opened.truth is None else figures | {"labels_sha256": _hash_of_array(opened.truth)}


def _hash_of_array(array: NDArray[np.generic]) -> str:
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    return hashlib.sha256(np.ascontiguousarray(array, dtype=kind).tobytes()).hexdigest()


def _hash_of(path: Path) -> str:
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        files = sorted((file.relative_to(path).as_posix(), file) for file in path.rglob("*") if file.is_file())
    except OSError as error:
        raise RowsError(
            f"can't be read ({error.strerror})", where=str(path), do="check the path and its permissions"
        ) from None
    return hashlib.sha256("".join(f"{_hash_of(file)} {name}\n" for name, file in files).encode()).hexdigest()
