"""Finds the pipeline stages of a netlist, and the slowest path of each stage."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forestc.lowering.timing import Delays, Ready, Timing
from forestc.netlist.ir import Net, Netlist, Register


@dataclass(frozen=True)
class Stage:
    """One pipeline stage: the logic in front of one row of registers."""

    number: int
    delay: float  # delay of the slowest path
    path: tuple[tuple[Net, float], ...]  # nets and delays on the slowest path, from the inputs on
    registers: int  # bits stored at the end of the stage


def stages_of(netlist: Netlist, delays: Delays) -> list[Stage]:
    """Returns a list of a netlist's pipeline stages, the first behind the inputs; a combinational netlist has one."""
    timing = Timing(netlist, delays)
    ready = timing.placed(math.inf)
    stages = ready.stage.tolist()
    ends: dict[int, Net] = {}
    stored: dict[int, int] = {}
    for net, cell in enumerate(netlist.cells):
        stage = stages[net]
        if isinstance(cell, Register):
            stored[stage - 1] = stored.get(stage - 1, 0) + netlist.types[net].width
        elif stage not in ends or ready.at[net] > ready.at[ends[stage]]:
            ends[stage] = net
    count = max(1, netlist.latency)  # There is no logic behind the last registers.
    return [_stage(number, ends.get(number, -1), ready, stored.get(number, 0)) for number in range(count)]


def _stage(number: int, end: Net, ready: Ready, registers: int) -> Stage:
    path: list[tuple[Net, float]] = []
    net = end
    while net >= 0 and ready.stage[net] == number:
        if ready.own[net]:
            path.append((net, float(ready.own[net])))
        net = int(ready.last[net])
    return Stage(number, float(ready.at[end]) if end >= 0 else 0.0, tuple(reversed(path)), registers)
