"""The pipeline as `compile` runs it: passes may leave settings open."""

from functools import partial

from forestc.passes import pipeline
from forestc.search.settle import settled

run_passes = partial(pipeline.run_passes, apply=settled)
