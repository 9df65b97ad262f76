"""The parts of `compile`: what was asked, the search of levels, and the records of what was done."""
