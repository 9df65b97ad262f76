"""The latency with which a device reaches a wanted clock."""

from __future__ import annotations

from dataclasses import replace

from forestc.costs.devices import DELAYS
from forestc.costs.estimate import estimate
from forestc.costs.fitted import fitted
from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.lowering.schedule import pipelined
from forestc.lowering.trees import LoweringOptions, unregistered

MOST_STAGES = 24  # latencies tried


def latency_for(forest: Forest, options: LoweringOptions, clock_mhz: float, device: str) -> int:
    """The fewest clock cycles with which a device reaches a clock, by the estimate. Raises OptionError if no latency
    reaches it, or if there are no fitted delays for the device."""
    best = 0.0
    logic, _ = unregistered(forest, replace(options, latency=1))
    for latency in range(1, MOST_STAGES + 1):
        fmax = estimate(pipelined(logic, latency, DELAYS[options.family])[0], device)["fmax_mhz"]
        if fmax is None:
            raise OptionError(
                f"the clock of {device} can't be estimated", do=f"use one of {', '.join(fitted().paths_ns)}"
            )
        if fmax >= clock_mhz:
            return latency
        best = max(best, fmax)
    raise OptionError(
        f"no latency up to {MOST_STAGES} reaches {clock_mhz:g} MHz",
        do=f"the estimate reaches {best:.0f} MHz: ask for no more",
    )
