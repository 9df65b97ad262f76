"""Turns a netlist into functions of one bit, merges equal ones, and covers them by LUTs."""

from __future__ import annotations

import random
from bisect import bisect_right

from forestc.costs.blasting import BlastedBits
from forestc.costs.devices import Luts
from forestc.costs.lut_cover import Cut, Mapper
from forestc.netlist import ir
from forestc.netlist.ir import Net, Netlist, behind_registers

CHAIN_COUNTS = ("pass", "add", "add_bits", "compare", "compare_bits", "less", "less_bits")
PATTERNS = 4096  # bits of a random pattern; functions with equal patterns are merged
# Functions of more than FEW_LEAVES leaves merge only if their pattern has at least OFTEN zeros and ones.
FEW_LEAVES, OFTEN = 10, 8


def _union(sets: list[frozenset[int] | None]) -> frozenset[int] | None:
    members: frozenset[int] = frozenset()
    for part in sets:
        if part is None:
            return None
        members |= part
    return members if len(members) <= FEW_LEAVES else None


class BitNetwork(BlastedBits):
    """A netlist as one-bit functions; equal functions are merged. alive: True for nodes that an output depends on."""

    def __init__(self, netlist: Netlist, chained: tuple[str, ...], shortest: int = 3) -> None:
        super().__init__(netlist, chained, shortest)
        self.alive = self._alive()
        self._merge_equal()
        self.alive = self._alive()

    def chained_counts(self) -> dict[str, float]:
        """Returns a dictionary: the number of used carry chains of each kind, and of their bits. `pass` counts
        comparison results that a register or output reads directly."""
        counts = dict.fromkeys(CHAIN_COUNTS, 0.0)
        comparisons = {edge >> 1 for kind, results in self.chains if kind != "add" for edge in results[-1:]}
        alive = [register >> 1 for register in self.registers if self.alive[register >> 1]]
        ends = {edge >> 1 for register in alive for edge in self.feeds[register]}
        counts["pass"] = len(comparisons & (ends | {edge >> 1 for edge in self.outputs}))
        for kind, results in self.chains:
            used = max((index + 1 for index, edge in enumerate(results) if self.alive[edge >> 1]), default=0)
            counts[kind] += used > 0
            counts[f"{kind}_bits"] += used
        return counts

    def _alive(self) -> list[bool]:
        alive = [False] * len(self.nodes)
        alive[0] = True
        todo = [edge >> 1 for edge in self.outputs]
        while todo:
            node = todo.pop()
            if not alive[node]:
                alive[node] = True
                todo += [edge >> 1 for edge in self.nodes[node] or self.feeds.get(node, ())]
        return alive

    def _merge_equal(self) -> None:
        """Merges nodes with equal or inverse values in a random simulation, as synthesis merges equal functions."""
        draw = random.Random(0)
        every = (1 << PATTERNS) - 1
        values = [0] * len(self.nodes)
        leaves: list[frozenset[int] | None] = [frozenset()] * len(self.nodes)  # None for more than FEW_LEAVES
        edge_of = {0: 0}
        new = [2 * node for node in range(len(self.nodes))]
        for node, edges in enumerate(self.nodes):
            if node == 0 or not self.alive[node]:
                continue
            read = tuple([new[edge >> 1] ^ (edge & 1) for edge in edges or self.feeds.get(node, ())])
            if not edges:
                if read:
                    self.feeds[node] = read
                values[node], leaves[node] = draw.getrandbits(PATTERNS), frozenset((node,))
                continue
            self.nodes[node] = read
            cell = self.netlist.cells[self.cell_of(node)]
            if isinstance(cell, ir.Less | ir.InSet) and isinstance(behind_registers(self.netlist, cell.a), ir.Input):
                values[node], leaves[node] = draw.getrandbits(PATTERNS), frozenset((node,))
                continue
            bits = [values[edge >> 1] ^ (every if edge & 1 else 0) for edge in read]
            if len(bits) == 3:
                value = bits[0] & bits[1] | bits[2] & ~bits[0]
            else:
                value = bits[0] ^ bits[1] if node in self.xors else bits[0] & bits[1]
            values[node] = value
            leaves[node] = _union([leaves[edge >> 1] for edge in read])
            inverted = value & 1
            if inverted:
                value ^= every
            rarely = min(value.bit_count(), PATTERNS - value.bit_count()) < OFTEN
            if rarely and leaves[node] is None:
                continue
            new[node] = edge_of.setdefault(value, 2 * node ^ inverted) ^ inverted
        self.outputs = [new[edge >> 1] ^ (edge & 1) for edge in self.outputs]

    def flip_flops(self) -> int:
        return sum(self.alive[edge >> 1] for edge in self.registers)

    def cover(self, kind: Luts) -> dict[int, Cut]:
        registers = {edge >> 1 for edge in self.registers}
        fan_ins = [
            tuple([edge >> 1 for edge in edges]) if alive else ()
            for edges, alive in zip(self.nodes, self.alive, strict=True)
        ]
        boxes = {
            node: tuple([edge >> 1 for edge in edges])
            for node, edges in self.feeds.items()
            if edges and self.alive[node] and node not in registers
        }
        return Mapper(fan_ins, boxes, self.roots(), kind).cover()

    def roots(self) -> list[int]:
        alive = [edge >> 1 for edge in self.registers if self.alive[edge >> 1]]
        return [edge >> 1 for edge in [*self.outputs, *(edge for node in alive for edge in self.feeds[node])]]

    def cell_of(self, node: int) -> Net:
        """Returns the number of the cell for which a node was first built."""
        return bisect_right(self.starts, node) - 1

    def gates(self, inputs: int) -> int:
        return sum(len(edges) == inputs for node, edges in enumerate(self.nodes) if self.alive[node])
