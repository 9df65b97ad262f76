"""Numbers the groups of rows, such as all rows of a patient or a machine, which are held out together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError, opt
from forestc.rows.given import open_file
from forestc.rows.table import ArrayTable, Table, find_labels, in_memory, is_absent

BATCH = 32768  # rows read at a time


def groups_of(groups: object, rows: object) -> NDArray[np.int64] | None:
    """Returns the number of each row's group, (rows,), in the order of their first rows; None without groups.
    groups: the name of a column of `rows`, or a value for each row.
    rows: as the user gave them.

    Raises RowsError if there is no such column, or a row has no group."""
    if groups is None:
        return None
    numbers: dict[Any, int] = {}
    values = _column(groups, rows) if isinstance(groups, str) else iter(np.asarray(groups).ravel().tolist())
    found = [numbers.setdefault(_present(value, row), len(numbers)) for row, value in enumerate(values, 1)]
    return np.array(found, dtype=np.int64)


def _present(value: Any, row: int) -> Any:
    if is_absent(value) or value != value:
        raise RowsError(f"row {row:,} has no group", where=opt.groups, do="give each row the name of its group")
    return value


def _column(name: str, rows: object) -> Iterator[Any]:
    table: Table | ArrayTable = open_file(rows, name) if isinstance(rows, str | Path) else in_memory(rows)
    if isinstance(table, ArrayTable):
        raise RowsError(
            "arrays have no column names", where=opt.groups, do="give a value for each row, from Python: groups=array"
        )
    (column,) = find_labels((name,), table)
    for batch in table.batches([column], [column], BATCH):
        values = batch.column(column)
        yield from values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
