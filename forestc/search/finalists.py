"""Measures the smallest designs of a search, because estimates of their sizes are off by some percent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from forestc.backends.verilog import core as verilog
from forestc.costs.devices import DEVICES
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.search.levels import LevelPlan
from forestc.toolchain.yosys import synthesize

NEARLY = 1.3  # times the smallest estimate; larger designs are not measured
MEASURED = 3  # limits the number of designs to measure


def measured_finalists(
    plan: LevelPlan, size_of: Callable[[Forest], float], progress: Callable[[str], None]
) -> LevelPlan:
    """Measures the candidates whose estimate is close to the best and returns the plan with the smallest."""
    chosen, evidence = plan.chosen, plan.evidence
    if chosen is None or evidence is None:
        return plan
    near = [trial for trial in plan.finalists if trial.size <= NEARLY * chosen.size]
    near = sorted(near, key=lambda trial: (trial is not chosen, trial.size))[:MEASURED]
    if len(near) < 2:
        return plan
    sizes = []
    for number, trial in enumerate(near, 1):
        progress(f"measuring {number} of {len(near)} designs: {trial.family}")
        sizes.append(size_of(trial.forest))
    best = near[sizes.index(min(sizes))]
    curve = tuple(dict.fromkeys([*plan.curve[:1], best, *plan.curve])) if plan.curve else ()
    return replace(plan, passes=best.passes, chosen=best, curve=curve, evidence=replace(evidence, loss=best.loss))


def synthesized_luts(forest: Forest, device: str, lowering: LoweringOptions, *, native: bool) -> int:
    """Returns the LUTs of a forest after synthesis for a device."""
    core, text = next(iter(verilog.emit(lower(forest, lowering)).items()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / core
        path.write_text(text, encoding="utf-8")
        return synthesize([path], path.stem, DEVICES[device].family.synthesis, native=native).lut
