"""Makes forests of integers for tests, with the options of all passes that make them."""

from forestc.passes.former import FORMER
from forestc.search.settle import settled


def integers(forest, rows=None, scorer=None, **options):
    """Runs quantize-inputs and round-leaves (with fit=True, fit-leaves) with these options."""
    for step in FORMER["quantize"](options):
        forest = settled(step, forest, rows, scorer).forest
    return forest
