"""Tests that the bench finds small changes of the engine's Verilog: a few of those in tests/verilog_mutants.py."""

from __future__ import annotations

import pytest
from verilog_mutants import CAPACITIES, mutants, outcome, sampled

from forestc.engine.verilog import emit

SEED = 5


# Engines of one bank take long here, so tests/engine/test_walkers.py and test_images.py run them.
@pytest.mark.long
@pytest.mark.parametrize("name", ["two banks", "registers", "one bank"])
def test_the_engine_itself_passes_all_trials(name, tmp_path, need_tool):
    need_tool("iverilog")
    assert outcome(emit(CAPACITIES[name]), name, tmp_path) == ""


@pytest.mark.long
def test_mutants_are_found(tmp_path, need_tool):
    need_tool("iverilog")
    everything = mutants()
    modules = {mutant.module for mutant in everything}
    assert {"controller", "loader", "step", "sum", "walker"} == modules and len(everything) > 1000
    for mutant in sampled(everything, 12, SEED):
        assert outcome(mutant.source(), mutant.capacity, tmp_path) or mutant.harmless, mutant
