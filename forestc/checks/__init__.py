"""Checks that every stage of the compiler keeps its promise."""
