"""Searches for the smallest design that is good enough."""
