"""Pipelines a netlist: adds the same number of registers to every path.

The modeled delays of a device family decide where registers go. Outputs are registered; inputs are not registered.
"""

from __future__ import annotations

import math

from forestc.lowering.timing import Delays, Ready, Timing
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import Const, Input, Net, Netlist, Not, reads, rename


def shortest_stages(timing: Timing, most_stages: int) -> Ready:
    """Assigns nets to at most `most_stages` pipeline stages. Their clock period is within 0.1 % of the shortest that
    greedy assignment reaches."""
    ends = [net for _, net in timing.netlist.outputs]
    best = timing.placed(math.inf)
    high, low = float(best.at.max(initial=0.0)), float(best.own.max(initial=0.0)) * (1 - 1e-3)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        nets = timing.placed(middle)
        if nets.stage[ends].max(initial=0) < most_stages:
            high, best = middle, nets
        else:
            low = middle
    return best


def pipelined(netlist: Netlist, latency: int, delays: Delays, ready: Ready | None = None) -> tuple[Netlist, list[Net]]:
    """Adds `latency` registers to every path of a combinational netlist. Returns the new netlist, and a list of each
    old net's new number, -1 if removed. ready: a result of `shortest_stages`."""
    stages = (ready or shortest_stages(Timing(netlist, delays), latency)).stage.tolist()
    builder = NetlistBuilder(netlist.name, netlist.title)
    new_nets: list[Net] = []
    delayed: dict[tuple[Net, int], Net] = {}
    inverses: dict[Net, Net] = {}  # inverses that are built behind the registers of their operand

    def after(net: Net, registers: int) -> Net:
        cell = netlist.cells[net]
        if registers and isinstance(cell, Not):  # a word and its inverse share registers
            inverses[net] = builder.not_(after(cell.a, registers))
            return inverses[net]
        result = new_nets[net]
        for count in range(1, registers + 1):
            key = (net, count)
            if key not in delayed:
                delayed[key] = builder.register(result, netlist.origins[net])
            result = delayed[key]
        return result

    for net, cell in enumerate(netlist.cells):
        origin = netlist.origins[net]
        if isinstance(cell, Const):
            new_nets.append(builder.const(cell.value, netlist.types[net]))
            continue
        if isinstance(cell, Input):
            new_nets.append(builder.input(cell.port, netlist.types[net]))
            continue
        renamed = {a: after(a, 0 if _constant(netlist, a) else stages[net] - stages[a]) for a in reads(cell)}
        new_nets.append(builder.raw(rename(cell, renamed), origin))
    for port, net in netlist.outputs:
        builder.output(port, new_nets[net] if _constant(netlist, net) else after(net, latency - stages[net]))
    finished, numbers = builder.build_renamed()
    gone = {old for old, net in enumerate(new_nets) if numbers[net] < 0}
    return finished, [numbers[inverses.get(old, net) if old in gone else net] for old, net in enumerate(new_nets)]


def _constant(netlist: Netlist, net: Net) -> bool:
    return isinstance(netlist.cells[net], Const)
