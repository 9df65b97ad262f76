"""Passes from Forest to Forest, one file or folder each, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forestc.passes.base import Pass, parse_passes
from forestc.passes.extract_rules.extract_rules import ExtractRules
from forestc.passes.options import Seeded
from forestc.passes.prune_exact.prune_exact import PruneExact
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.prune_trees.prune_trees import PruneTrees
from forestc.passes.quantize.quantize import Quantize
from forestc.passes.regrow_trees.regrow_trees import RegrowTrees
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds
from forestc.passes.simplify import Simplify

PASSES: dict[str, type[Pass]] = {
    step.name: step
    for step in (
        Simplify,
        ShareThresholds,
        Quantize,
        PruneTrees,
        PruneSplits,
        RegrowTrees,
        ExtractRules,
        PruneExact,
    )
}

REQUIRED = "quantize"


def seeded(step: Pass, seed: int) -> Pass:
    """The pass with the seed of the run, unless it draws nothing or has a seed of its own."""
    return replace(step, seed=seed) if seed and isinstance(step, Seeded) and not step.seed else step


def passes_from(named: str | Sequence[Pass], scores: float | None = None, seed: int = 0) -> list[Pass]:
    """The pipeline of a `-p` option or of a list of passes. `quantize`, which every output language needs, is appended
    if it is missing, and is all that `none` stands for. scores: the option of that name for each `quantize` without
    one. seed: of the run, see `seeded`. If the user names no passes, see `forestc.search.levels`. Raises
    OptionError."""
    if isinstance(named, str):
        named = parse_passes(REQUIRED if named.strip() in ("none", "") else named, PASSES)
    passes = [seeded(step, seed) for step in named]
    if not any(isinstance(step, Quantize) for step in passes):
        passes.append(Quantize())
    if scores is not None:
        unset = [isinstance(step, Quantize) and step.scores is None for step in passes]
        passes = [replace(s, scores=scores) if u else s for s, u in zip(passes, unset, strict=True)]  # type: ignore[type-var]
    return passes
