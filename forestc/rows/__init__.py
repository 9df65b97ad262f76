"""Rows in batches, from any format."""
