"""Chooses the latency with which a device reaches a requested clock rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forestc.costs.estimate import estimate
from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest
from forestc.lowering.timing import DELAYS, Ready, Timing, pipelined, shortest_stages
from forestc.lowering.trees import LoweringOptions, unregistered

MOST_STAGES = 24  # limits the latencies tried, in clock cycles


def latency_for(
    forest: Forest,
    options: LoweringOptions,
    clock_mhz: float,
    device: str,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Returns the fewest clock cycles with an estimated clock rate of at least `clock_mhz`. Raises OptionError if there
    are none, or if the device's clock rate can't be estimated."""
    delays = DELAYS[options.family]
    logic, _ = unregistered(forest, replace(options, latency=1))
    timing = Timing(logic, delays)
    best, least, before, start, estimated = 0.0, 1, None, time.perf_counter(), 0
    for latency in range(1, MOST_STAGES + 1):
        if 1 < latency < least:
            continue
        ready = shortest_stages(timing, latency)
        if before is not None and _same(ready, before):
            continue
        before = ready
        fmax = estimate(pipelined(logic, latency, delays, ready)[0], device)["fmax_mhz"]
        if fmax is None:
            raise OptionError(
                f"the clock of {device} can't be estimated",
                where=opt.clock,
                do=f"give {opt.latency:3} or so, without a clock",
            )
        if fmax >= clock_mhz:
            return latency
        best, estimated = max(best, fmax), estimated + 1
        least = max(least, min(math.ceil(clock_mhz / fmax), MOST_STAGES) if latency == 1 else 1)
        # The remaining time is predicted as if the clock rate grew in proportion to the latency.
        likely = min(MOST_STAGES, math.ceil(latency * clock_mhz / fmax))
        left = (likely - max(latency, least - 1)) * (time.perf_counter() - start) / estimated
        progress(f"clock: {latency} cycles for {fmax:.0f} of {clock_mhz:g} MHz, about {max(1, left):.0f} s left")
    raise OptionError(
        f"no latency up to {MOST_STAGES} reaches {clock_mhz:g} MHz",
        where=opt.clock,
        do=f"the estimate reaches {math.floor(best)} MHz: ask for no more",
    )


def _same(ready: Ready, before: Ready) -> bool:
    return np.array_equal(ready.stage, before.stage)
