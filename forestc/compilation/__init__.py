"""Holds the parts of `compile`: checked options, the search of levels, synthesis, and the records of a run."""
