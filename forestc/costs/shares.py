"""Attributes the LUTs and flip-flops of a netlist to comparators, trees, sums and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from forestc.costs.bit_network import BitNetwork
from forestc.costs.devices import DeviceFamily
from forestc.netlist import ir
from forestc.netlist.ir import Net, Netlist, SumCell, behind_registers

PartName = Literal["inputs", "comparators", "trees", "sums", "decision"]
PARTS: tuple[PartName, ...] = ("inputs", "comparators", "trees", "sums", "decision")


@dataclass(frozen=True)
class Share:
    """The amount of hardware in one part of a design, such as its comparators."""

    luts: int = 0  # LUTs in a cover of the logic
    chain_bits: int = 0  # bits of carry chains, each in a cell with a LUT
    flip_flops: int = 0  # bits that registers store
    cells: int = 0  # cells of the netlist

    @property
    def all_luts(self) -> int:
        return self.luts + self.chain_bits


def part_of(netlist: Netlist, net: Net) -> PartName:
    """Returns the part (`comparators`, `trees`, ...) to which a cell belongs. A register belongs to the part that
    computes its value."""
    cell = netlist.cells[net]
    while isinstance(cell, ir.Register):
        net, cell = cell.a, netlist.cells[cell.a]
    if isinstance(cell, SumCell | ir.Slice):
        return "sums"
    if isinstance(cell, ir.Gate):
        return "trees"
    match cell:
        case ir.Input():
            return "inputs"
        case ir.Less(a) | ir.InSet(a) if isinstance(behind_registers(netlist, a), ir.Input):
            return "comparators"
        case ir.Not():
            return "trees"
        case ir.Mux() if netlist.origins[net].tree >= 0:
            return "trees"
        case _:
            return "decision"


def shares(netlist: Netlist, family: DeviceFamily) -> Mapping[PartName, Share]:
    """Returns the amount of hardware of each part, by name. LUTs are counted before later steps of synthesis change
    them."""
    bits = BitNetwork(netlist, family.chained, family.shortest_chain)
    parts = [part_of(netlist, net) for net in range(len(netlist.cells))]
    counts = {part: [0, 0, 0, 0] for part in PARTS}
    for node, cut in bits.cover(family.luts).items():
        counts[parts[bits.cell_of(node)]][0] += 1 << max(0, len(cut) - family.lut_inputs)
    for _, results in bits.chains:
        alive = [edge >> 1 for edge in results if bits.alive[edge >> 1]]
        if alive:
            counts[parts[bits.cell_of(alive[0])]][1] += results.index(alive[-1] * 2) + 1
    for edge in bits.registers:
        if bits.alive[edge >> 1]:
            counts[parts[bits.cell_of(edge >> 1)]][2] += 1
    for net in range(2, len(netlist.cells)):
        counts[parts[net]][3] += 1
    return {part: Share(*counted) for part, counted in counts.items()}
