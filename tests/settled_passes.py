"""Runs the pipeline as `compile` does, where passes may leave settings open."""

from functools import partial

from forestc.passes import passes_from, pipeline
from forestc.search.settle import settled

run_passes = partial(pipeline.run_passes, apply=settled)


def integers(forest, rows):
    """Runs quantize-inputs and round-leaves."""
    for step in passes_from("none"):
        forest = settled(step, forest, rows).forest
    return forest
