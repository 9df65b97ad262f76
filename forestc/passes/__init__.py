"""Lists all passes in one table, `PASSES`, and reads the option `-p`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forestc.errors import OptionError, opt
from forestc.passes.base import Pass, parse_passes
from forestc.passes.extract_rules.extract_rules import ExtractRules
from forestc.passes.fit_leaves.fit_leaves import FitLeaves
from forestc.passes.options import Seeded
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.prune_trees.prune_trees import PruneTrees
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.regrow_trees.regrow_trees import RegrowTrees
from forestc.passes.round_leaves.round_leaves import RoundLeaves
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds
from forestc.passes.simplify import Simplify

PASSES: dict[str, type[Pass]] = {
    step.name: step
    for step in (
        Simplify,
        ShareThresholds,
        QuantizeInputs,
        RoundLeaves,
        FitLeaves,
        PruneTrees,
        PruneSplits,
        RegrowTrees,
        ExtractRules,
    )
}


def seeded(step: Pass, seed: int) -> Pass:
    """Returns the pass with this seed. A pass that draws nothing at random, or already has a seed, is returned
    unchanged."""
    return replace(step, seed=seed) if seed and isinstance(step, Seeded) and not step.seed else step


def passes_from(named: str | Sequence[Pass], scores: float | None = None, seed: int = 0) -> list[Pass]:
    """Returns a list of the passes of the option `-p`, and of missing passes that make integers. Raises OptionError.
    scores: the option `scores` for round-leaves.
    seed: the seed of passes without one."""
    if isinstance(named, str):
        named = parse_passes("" if named.strip() == "none" else named.strip(), PASSES)
    if any(isinstance(step, str) for step in named):
        raise OptionError(
            "a list of passes holds texts", where=opt.passes, do="give one text, with commas between the passes"
        )
    passes = [seeded(step, seed) for step in named]
    leaves = next((index for index, step in enumerate(passes) if isinstance(step, RoundLeaves | FitLeaves)), None)
    inputs = next((index for index, step in enumerate(passes) if isinstance(step, QuantizeInputs)), None)
    if leaves is None:
        index = len(passes) if inputs is None else inputs + 1
        passes[index:index] = [QuantizeInputs()] * (inputs is None) + [RoundLeaves()]
    elif inputs is None:
        passes.insert(leaves, QuantizeInputs(exact=getattr(passes[leaves], "exact", False)))
    elif getattr(passes[leaves], "exact", False) and not getattr(passes[inputs], "exact", False):
        raise OptionError(
            "exact=true needs words that are exact", where="pass round-leaves", do="write quantize-inputs{exact=true}"
        )
    if scores is None:
        return passes
    if any(isinstance(step, FitLeaves) for step in passes):
        raise OptionError(
            "fits leaves to classes, which keeps no scores", where="pass fit-leaves", do=f"remove it, or {opt.scores}"
        )
    return [
        replace(step, scores=scores) if isinstance(step, RoundLeaves) and step.scores is None else step
        for step in passes
    ]
