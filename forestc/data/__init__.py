"""Rows in batches, from any format."""

from forestc.data.rows import open_rows, rows_from

__all__ = ["open_rows", "rows_from"]
