"""Where a CSV file is wrong: pyarrow, which reads in blocks, does not say in which line."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from forestc.errors import RowsError
from forestc.rows.labels import is_number
from forestc.rows.opening import NULLS

LONGEST = 40  # characters of a cell in a message


@contextmanager
def csv_faults(path: Path, headed: bool, numbers: Collection[str] = ()) -> Iterator[None]:
    """Raises RowsError with the first faulty line for what pyarrow raises on a CSV file. numbers: the columns that hold
    numbers alone."""
    try:
        yield
    except pa.ArrowInvalid as error:
        try:
            fault = _first_fault(path, headed, numbers)
        except (OSError, EOFError, ValueError, csv.Error):
            fault = None
        if fault is None:
            raise
        line, what, do = fault
        raise RowsError(what, where=f"{path}, line {line}", do=do) from error


def _first_fault(path: Path, headed: bool, numbers: Collection[str]) -> tuple[int, str, str] | None:
    """The line, counted from 1, what is wrong there, and what to do. O(cells), in Python."""
    zipped = path.name.lower().endswith(".gz")
    with path.open("rb") as raw, gzip.open(raw) if zipped else raw as file:
        reader = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))
        names: list[str] = []
        for cells in reader:
            if not cells:
                continue
            if not names:
                names = cells if headed else [f"f{place}" for place in range(len(cells))]
                if headed:
                    continue
            if len(cells) != len(names):
                what = f"{len(cells)} cells, and the first line has {len(names)}"
                return reader.line_num, what, "write a cell for each column, separated by commas"
            for name, cell in zip(names, cells, strict=True):
                if name in numbers and cell not in NULLS and not is_number(cell):
                    shown = cell if len(cell) <= LONGEST else cell[:LONGEST] + "..."
                    do = "write a number, or nothing where the value is missing"
                    return reader.line_num, f"column {name!r} holds {shown!r}, which is no number", do
    return None
