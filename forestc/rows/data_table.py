"""What a reader of one format of files offers: names of columns, and the columns batch by batch."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from forestc.errors import RowsError

BATCH_ROWS = 16384  # rows of a batch, at most
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error)


class DataTable(Protocol):
    """The columns of a file of rows.

    where: what messages call it. names: of its columns, in their order. headed: whether these are the file's own; else
    columns go by position. nulls: texts that mean a missing value, unless they are the name of a category.
    """

    @property
    def where(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def headed(self) -> bool: ...
    @property
    def nulls(self) -> tuple[str, ...]: ...

    def batches(self, columns: Sequence[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Some of the columns, from the first row on. texts: those of them that a CSV file holds as text."""

    def head(self) -> pa.Table:
        """Some first rows of all columns."""

    def whole(self) -> pa.Table:
        """All rows of all columns."""


@contextmanager
def readable(where: Path | str, what: str = "can't be read", do: str = "") -> Iterator[None]:
    """Raises RowsError for what libraries raise on damaged files."""
    try:
        yield
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RowsError(f"{what} ({reason})", where=str(where), do=do) from None
