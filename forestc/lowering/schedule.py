"""Pipelining: registers for a wanted latency, so that every path passes the same number of them.

Logic is cut where its depth, in estimated LUT levels, is an equal share of the whole: with N registers on
a path, N stages of logic, each ended by a register. Inputs come in unregistered, outputs leave a register.
"""

from __future__ import annotations

from typing import assert_never

from forestc.netlist.builder import NetlistBuilder, rename
from forestc.netlist.ir import (
    Add,
    And,
    Bits,
    Cell,
    Compare,
    Const,
    Input,
    InSet,
    Join,
    Less,
    Lookup,
    Mux,
    Net,
    Netlist,
    Not,
    Or,
    Register,
    reads,
)


def depth_of(cell: Cell, netlist: Netlist) -> float:
    """Estimated depth of a cell in levels of 6-input LUTs."""
    match cell:
        case Const() | Input() | Register() | Not() | Bits() | Join():
            return 0.0
        case And() | Or():
            return 0.4
        case Mux():
            return 0.5
        case Lookup(inputs):
            return len(inputs) / 6
        case Less(a) | InSet(a):
            return 1.0 + max(0, netlist.types[a].width - 6) / 10
        case Compare(a, _):
            return 1.0 + netlist.types[a].width / 8
        case Add(operands, width):
            if len(operands) == 2 and any(_is_zero(netlist.cells[a]) for a in operands):
                return 0.0  # a widening, wires alone
            return 1.0 + width / 8
        case _:
            assert_never(cell)


def _is_zero(cell: Cell) -> bool:
    return isinstance(cell, Const) and cell.value == 0


def pipelined(netlist: Netlist, latency: int) -> Netlist:
    """The combinational netlist with `latency` registers on every path from an input to an output."""
    arrival: list[float] = []
    for cell in netlist.cells:
        before = max((arrival[net] for net in reads(cell)), default=0.0)
        arrival.append(before + depth_of(cell, netlist))
    share = max((arrival[net] for _, net in netlist.outputs), default=0.0) / latency
    # Stage of a net: how many registers lie before it. Depth (k*share, (k+1)*share] is stage k.
    stages = [0 if share == 0 else min(latency - 1, max(0, _stage(depth, share))) for depth in arrival]

    builder = NetlistBuilder(netlist.name)
    made: list[Net] = []
    delayed: dict[tuple[Net, int], Net] = {}

    def after(net: Net, registers: int) -> Net:
        """An old net, with so many registers behind it."""
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
            made.append(builder.input(cell.name, netlist.types[net]))
            continue
        stage = max([stages[net], *(stage_of[a] for a in reads(cell) if not _constant(netlist, a))])
        stage_of[net] = stage
        renamed = {a: after(a, 0 if _constant(netlist, a) else stage - stage_of[a]) for a in reads(cell)}
        made.append(builder.raw(rename(cell, renamed), origin))
    for name, net in netlist.outputs:
        builder.output(name, made[net] if _constant(netlist, net) else after(net, latency - stage_of[net]))
    return builder.build()


def _stage(depth: float, share: float) -> int:
    stage = int(depth / share)
    return stage - 1 if stage and abs(depth - stage * share) < 1e-9 else stage


def _constant(netlist: Netlist, net: Net) -> bool:
    return isinstance(netlist.cells[net], Const)
