"""Runs the pipeline as `compile` does, where passes may leave settings open."""

from functools import partial

from forestc.passes import pipeline
from forestc.search.settle import settled

run_passes = partial(pipeline.run_passes, apply=settled)
