"""Thresholds: which may move how far without changing paths, and the fewest points that serve all."""
