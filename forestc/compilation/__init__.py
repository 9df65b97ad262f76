"""Holds the parts of `compile`: the checked request, the search of levels, synthesis, and the records of a run."""
