"""Rows in batches, from any format."""

from forestc.rows.files import open_rows, rows_from

__all__ = ["open_rows", "rows_from"]
