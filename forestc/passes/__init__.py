"""Passes: Forest to Forest, one file a pass. One explicit table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forestc.passes.base import Pass, parse_passes
from forestc.passes.prune_splits import PruneSplits
from forestc.passes.quantize.quantize import Quantize
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds
from forestc.passes.simplify import Simplify

PASSES: dict[str, type[Pass]] = {step.name: step for step in (Simplify, ShareThresholds, Quantize, PruneSplits)}

NOTHING_BUT_NEEDED = "quantize"


def passes_from(named: str | Sequence[Pass], scores: float | None = None) -> list[Pass]:
    """The pipeline a `-p` option or a list of passes means: `none` only what every target needs, which is also added
    where a list leaves it out. scores: what `quantize` keeps scores within, where it does not say. Where no passes are
    named see `forestc.passes.levels`. Raises OptionError."""
    if isinstance(named, str):
        named = parse_passes(NOTHING_BUT_NEEDED if named.strip() in ("none", "") else named, PASSES)
    passes = list(named)
    if not any(isinstance(step, Quantize) for step in passes):
        passes.append(Quantize())
    if scores is not None:
        open_ = [isinstance(step, Quantize) and step.scores is None for step in passes]
        passes = [replace(s, scores=scores) if o else s for s, o in zip(passes, open_, strict=True)]  # type: ignore[type-var]
    return passes
