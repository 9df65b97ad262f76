from __future__ import annotations

from dataclasses import replace

import pytest
from random_forests import random_forest

from forestc.compilation.clock import MOST_STAGES, latency_for
from forestc.costs.devices import family_of
from forestc.costs.estimate import estimate
from forestc.errors import OptionError
from forestc.lowering.timing import DELAYS, pipelined
from forestc.lowering.trees import LoweringOptions, unregistered


@pytest.mark.parametrize("device", ["ecp5-85k", "ice40-hx8k", "ice40-up5k"])
@pytest.mark.parametrize("seed", [1, 4])
def test_it_is_the_first_latency_whose_estimate_reaches_the_clock(device, seed):
    """Compares with estimating every latency from one cycle on."""
    forest, options = random_forest(seed, True, "vector"), LoweringOptions(family=family_of(device))
    logic, _ = unregistered(forest, replace(options, latency=1))
    reached = [
        estimate(pipelined(logic, latency, DELAYS[options.family])[0], device)["fmax_mhz"] for latency in range(1, 9)
    ]
    for clock in sorted(set(reached)):
        first = 1 + next(index for index, fmax in enumerate(reached) if fmax >= clock)
        assert latency_for(forest, options, clock, device) == first


def test_progress_says_how_far_it_is_and_what_is_out_of_reach_is_an_error():
    lines: list[str] = []
    forest = random_forest(4, True, "vector")
    with pytest.raises(
        OptionError, match=f"clock_mhz=: no latency up to {MOST_STAGES} reaches 5000 MHz; the estimate reaches"
    ):
        latency_for(forest, LoweringOptions(family="ecp5"), 5000.0, "ecp5-85k", lines.append)
    assert lines
    assert all("MHz, about" in line and line.endswith("s left") for line in lines)


def test_a_device_without_fitted_delays_has_no_clock():
    with pytest.raises(OptionError, match="can't be estimated"):
        latency_for(random_forest(4, True, "vector"), LoweringOptions(), 100.0, "xcup")


def test_the_highest_clock_is_that_of_the_deepest_pipeline():
    forest, found = random_forest(4, True, "vector"), []
    for wanted in (1e9, 2000.0):
        with pytest.raises(OptionError) as caught:
            latency_for(forest, LoweringOptions(family="ecp5"), wanted, "ecp5-85k")
        found.append(caught.value.do)
    assert found[0] == found[1]
