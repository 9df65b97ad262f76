"""Reads rows in batches, from files and from data in memory."""
