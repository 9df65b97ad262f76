"""Tests columns of files as float64 against pyarrow's own conversion, which imports pandas."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from forestc.rows.arrow_files import column_numbers

FLOATS = pa.array([1.0, None, 3.0, float("nan"), -0.0, float("inf"), 5e-324, None, 9.0, 10.0])
EMPTY = pa.array([], pa.float64())
COLUMNS = {
    "nulls": FLOATS,
    "a slice": FLOATS.slice(3),
    "a slice of a byte's bits": FLOATS.slice(8, 2),
    "one null": FLOATS.slice(1, 1),
    "nulls alone": pa.nulls(3, pa.float64()),
    "empty": EMPTY,
    "chunks": pa.chunked_array([FLOATS, EMPTY, FLOATS.slice(2, 7)]),
    "no chunks": pa.chunked_array([], pa.float64()),
    "float32": pa.array([0.1, None], pa.float32()),
    "large integers": pa.array([1, None, 2**60 + 1, -(2**63)]),
    "a slice of integers": pa.array(range(20), pa.uint8()).slice(9),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_numbers_of_a_column_are_those_of_pyarrow(column):
    expected = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    found = column_numbers(column, "a", "rows.csv")
    assert found.dtype == np.float64 and found.tobytes() == np.asarray(expected, np.float64).tobytes()


def test_booleans_are_0_and_1():
    found = column_numbers(pa.array([True, None, False]), "a", "rows.csv")
    assert found[0] == 1 and np.isnan(found[1]) and found[2] == 0
