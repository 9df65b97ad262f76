"""Reads what the user says of rows beside their labels: groups, such as all rows of a patient or a machine, which are
held out together; and weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError, opt
from forestc.rows.batches import ArrayRows, Rows, WeightedRows, count_rows
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
    found = [
        numbers.setdefault(_present(value, row), len(numbers))
        for row, value in enumerate(_values(groups, rows, opt.groups), 1)
    ]
    return np.array(found, dtype=np.int64)


def weighted(rows: Rows, weights: object, given: object) -> Rows:
    """Returns rows with weights; the rows themselves if `weights` is None.
    weights: the name of a column of `given`, or a number for each row.
    given: rows as the user gave them.

    Raises RowsError if there is no such column, or a weight is no positive number."""
    if weights is None:
        return rows
    found = np.array([_weight(value, row) for row, value in enumerate(_values(weights, given, opt.weights), 1)])
    if len(found) != (count := count_rows(rows)):
        raise RowsError(f"{len(found):,} weights of {count:,} rows", where=opt.weights, do="give one for each row")
    return replace(rows, weights=found) if isinstance(rows, ArrayRows) else WeightedRows(rows, found)


def _present(value: Any, row: int) -> Any:
    if is_absent(value) or value != value:
        raise RowsError(f"row {row:,} has no group", where=opt.groups, do="give each row the name of its group")
    return value


def _weight(value: Any, row: int) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight < math.inf:
        raise RowsError(
            f"row {row:,} has the weight {value!r}", where=opt.weights, do="give each row a positive number"
        )
    return weight


def _values(given: object, rows: object, where: Any) -> Iterator[Any]:
    """Returns a value for each row. given: the name of a column of `rows`, or the values."""
    return _column(given, rows, where) if isinstance(given, str) else iter(np.asarray(given).ravel().tolist())


def _column(name: str, rows: object, where: Any) -> Iterator[Any]:
    table: Table | ArrayTable = open_file(rows, name) if isinstance(rows, str | Path) else in_memory(rows)
    if isinstance(table, ArrayTable):
        raise RowsError(
            f"arrays have no column {name!r}",
            where=where,
            do="give a data frame or a file with it; from Python, values for given rows",
        )
    (column,) = find_labels((name,), table)
    for batch in table.batches([column], [column], BATCH):
        values = batch.column(column)
        yield from values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
