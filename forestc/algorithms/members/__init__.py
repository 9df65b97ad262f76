"""Selects the best members of an ensemble by local search."""
