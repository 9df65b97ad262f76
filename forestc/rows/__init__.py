"""Reads rows in batches, from any format."""
