"""Synthesizes the smallest designs of a search, because estimates of their sizes are off by some percent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from forestc.backends import verilog
from forestc.costs.devices import DEVICES
from forestc.lowering.trees import LoweringOptions, lower
from forestc.search.levels import LevelPlan
from forestc.toolchain.yosys import synthesize

NEARLY = 1.3  # times the smallest estimate; larger designs are not synthesized
SYNTHESIZED = 3  # limits the number of designs to synthesize


def synthesized(
    plan: LevelPlan, device: str, lowering: LoweringOptions, *, native: bool, progress: Callable[[str], None]
) -> LevelPlan:
    """Synthesizes the candidates whose estimate is close to the best and returns the plan with the smallest."""
    chosen = plan.chosen
    if chosen is None or device not in DEVICES:
        return plan
    near = [trial for trial in plan.trials if trial.good and trial.measured and trial.size <= NEARLY * chosen.size]
    near = sorted(near, key=lambda trial: (trial is not chosen, trial.size))[:SYNTHESIZED]
    if len(near) < 2:
        return plan
    luts = []
    for number, trial in enumerate(near, 1):
        progress(f"synthesizing {number} of {len(near)} designs: {trial.family}")
        core, text = next(iter(verilog.emit(lower(trial.forest, lowering)).items()))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / core
            path.write_text(text, encoding="utf-8")
            luts.append(synthesize([path], path.stem, DEVICES[device].family.synthesis, native=native).lut)
    best = near[luts.index(min(luts))]
    return replace(plan, passes=best.passes, chosen=best)
