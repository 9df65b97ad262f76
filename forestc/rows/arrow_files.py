"""Reads Parquet and Arrow files, and folders of them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from forestc.errors import RowsError
from forestc.rows.frames import PREVIEW

WHOLE = "check that the file is whole, and that its ending names its format"
BATCH_ROWS = 16384  # rows of a batch at most
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error)


@contextmanager
def readable(where: Path | str, what: str = "can't be read", do: str = WHOLE) -> Iterator[None]:
    """Turns errors that libraries raise on damaged files, within a `with`, into RowsError."""
    try:
        yield
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RowsError(f"{what} ({reason})", where=str(where), do=do) from None


@dataclass(frozen=True)
class ArrowFiles:
    """The table of a file or folder, or of one row group of a Parquet file."""

    where: str  # name in messages
    path: str  # absolute, so that other machines find it
    form: str  # parquet or ipc (Arrow)
    names: tuple[str, ...]
    group: int | None = None  # number of the row group; None for all
    headed: ClassVar[bool] = True  # True: the files state names of columns
    nulls: ClassVar[tuple[str, ...]] = ()  # no texts mean a missing value

    @classmethod
    def open(cls, path: Path, form: str) -> ArrowFiles:
        files = cls(str(path), str(path.absolute()), form, ())
        with readable(path, f"not a readable {form} file"):
            return replace(files, names=tuple(files._dataset().schema.names))

    def batches(self, columns: Sequence[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        from pyarrow import dataset  # The import takes half a second.

        options: dict[str, Any] = {"columns": list(columns), "batch_size": BATCH_ROWS}
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
                    yield first, replace(self, where=fragment.path, path=fragment.path, group=own)
                first += rows

    def head(self) -> pa.Table:
        """Returns the first rows, at most `PREVIEW`, with all columns."""
        with readable(self.where):
            return self._dataset().head(PREVIEW)

    def whole(self) -> pa.Table:
        with readable(self.where):
            return self._dataset().to_table()

    def _dataset(self) -> Any:
        from pyarrow import dataset  # The import takes half a second.

        return dataset.dataset(self.path, format=self.form)
