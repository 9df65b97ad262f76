"""The stages of a pipelined netlist, and the slowest path of each by the model of a device family's delays."""

from __future__ import annotations

from dataclasses import dataclass

from forestc.costs.devices import Delays
from forestc.lowering.schedule import delay_of
from forestc.netlist.ir import Const, Net, Netlist, Register, reads


@dataclass(frozen=True)
class Stage:
    """The logic between two rows of registers. delay: of its slowest path, in the unit of the delays. path: the cells
    on it with their delays, from the inputs on. registers: bits that are stored behind it."""

    number: int
    delay: float
    path: tuple[tuple[Net, float], ...]
    registers: int


def stages_of(netlist: Netlist, delays: Delays) -> list[Stage]:
    """The stages, from the inputs on; one of a combinational netlist. Time O(cells)."""
    stage: list[int] = []
    arrival: list[float] = []
    before: list[Net] = []
    own: list[float] = []
    ends: dict[int, Net] = {}
    stored: dict[int, int] = {}
    for net, cell in enumerate(netlist.cells):
        below = [a for a in reads(cell) if not isinstance(netlist.cells[a], Const)]
        last = max(below, key=lambda a: (stage[a], arrival[a]), default=-1)
        delay = delay_of(cell, netlist, delays)
        own.append(delay)
        if isinstance(cell, Register):
            held = 0 if last < 0 else stage[last]
            stored[held] = stored.get(held, 0) + netlist.types[net].width
            stage.append(held + 1)
            arrival.append(0.0)
            before.append(-1)
            continue
        here = 0 if last < 0 else stage[last]
        stage.append(here)
        arrival.append(delay + (arrival[last] if last >= 0 else 0.0))
        before.append(last)
        if here not in ends or arrival[net] > arrival[ends[here]]:
            ends[here] = net
    count = max(1, netlist.latency)  # behind the last registers there is no logic
    return [_stage(number, ends.get(number, -1), arrival, before, own, stored) for number in range(count)]


def _stage(
    number: int, end: Net, arrival: list[float], before: list[Net], own: list[float], stored: dict[int, int]
) -> Stage:
    path: list[tuple[Net, float]] = []
    net = end
    while net >= 0:
        if own[net]:
            path.append((net, own[net]))
        net = before[net]
    return Stage(number, arrival[end] if end >= 0 else 0.0, tuple(reversed(path)), stored.get(number, 0))
