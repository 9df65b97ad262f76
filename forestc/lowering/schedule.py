"""Pipelining: places registers for a wanted latency, the same number on every path.

Each cell has a delay by the model of a device family. The logic is packed into stages from the inputs on, with the
shortest stage length that needs no more than the wanted number of stages. N registers on a path end N stages of logic:
inputs are not registered, outputs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from forestc.costs.devices import Delays
from forestc.netlist.builder import NetlistBuilder, rename
from forestc.netlist.ir import (
    Add,
    And,
    Cell,
    Compare,
    Const,
    Input,
    InSet,
    Less,
    Mux,
    Net,
    Netlist,
    Not,
    Or,
    Register,
    reads,
)


def delay_of(cell: Cell, netlist: Netlist, delays: Delays) -> float:
    """The delay of a cell."""
    match cell:
        case Const() | Input() | Register() | Not():
            return 0.0
        case And() | Or():
            return delays.gate
        case Mux():
            return delays.mux
        case Less(a) | InSet(a):
            return delays.less[0] + delays.less[1] * netlist.types[a].width
        case Compare(a, _):
            return delays.compare[0] + delays.compare[1] * netlist.types[a].width
        case Add(operands, width):
            if len(operands) == 2 and any(_is_zero(netlist.cells[a]) for a in operands):
                return 0.0  # an extension: only wires
            return delays.add[0] + delays.add[1] * width
        case _:
            assert_never(cell)


def _is_zero(cell: Cell) -> bool:
    return isinstance(cell, Const) and cell.value == 0


def stages_within(netlist: Netlist, delays: Sequence[float], length: float) -> list[int]:
    """The number of registers before each net if logic is packed from the inputs on into stages of this length."""
    stages: list[int] = []
    ends: list[float] = []
    for cell, delay in zip(netlist.cells, delays, strict=True):
        below = [a for a in reads(cell) if not _constant(netlist, a)]
        stage = max((stages[a] for a in below), default=0)
        start = max((ends[a] for a in below if stages[a] == stage), default=0.0)
        if start and start + delay > length:
            stage, start = stage + 1, 0.0
        stages.append(stage)
        ends.append(start + delay)
    return stages


def shortest_stages(netlist: Netlist, delays: Sequence[float], wanted: int) -> list[int]:
    """The stages of the shortest length that needs no more than `wanted`. Time O(cells * log(precision))."""
    high = sum(sorted(delays)[-1:]) * max(1, len(netlist.cells))
    low, best = max(delays, default=0.0), stages_within(netlist, delays, high)
    for _ in range(40):
        middle = (low + high) / 2
        stages = stages_within(netlist, delays, middle)
        if max((stages[net] for _, net in netlist.outputs), default=0) < wanted:
            high, best = middle, stages
        else:
            low = middle
        if high - low <= 1e-3 * high:
            break
    return best


def pipelined(netlist: Netlist, latency: int, delays: Delays) -> tuple[Netlist, list[Net]]:
    """The combinational netlist with `latency` registers on every path from an input to an output; and for each old net
    its number in the result, before any registers, or -1 if it was removed.

    delays: of the cells, in the device family.
    """
    stages = shortest_stages(netlist, [delay_of(cell, netlist, delays) for cell in netlist.cells], latency)
    stages = [min(stage, latency - 1) for stage in stages]

    builder = NetlistBuilder(netlist.name, netlist.title)
    made: list[Net] = []
    delayed: dict[tuple[Net, int], Net] = {}

    def after(net: Net, registers: int) -> Net:
        """An old net, followed by so many registers."""
        result = made[net]
        for count in range(1, registers + 1):
            key = (net, count)
            if key not in delayed:
                delayed[key] = builder.register(result, netlist.origins[net])
            result = delayed[key]
        return result

    stage_of = list(stages)
    for net, cell in enumerate(netlist.cells):
        origin = netlist.origins[net]
        if isinstance(cell, Const):
            made.append(builder.const(cell.value, netlist.types[net]))
            continue
        if isinstance(cell, Input):
            stage_of[net] = 0
            made.append(builder.input(cell.port, netlist.types[net]))
            continue
        stage = max([stages[net], *(stage_of[a] for a in reads(cell) if not _constant(netlist, a))])
        stage_of[net] = stage
        renamed = {a: after(a, 0 if _constant(netlist, a) else stage - stage_of[a]) for a in reads(cell)}
        made.append(builder.raw(rename(cell, renamed), origin))
    for port, net in netlist.outputs:
        builder.output(port, made[net] if _constant(netlist, net) else after(net, latency - stage_of[net]))
    finished, numbers = builder.build_renamed()
    return finished, [numbers[net] for net in made]


def _constant(netlist: Netlist, net: Net) -> bool:
    return isinstance(netlist.cells[net], Const)
