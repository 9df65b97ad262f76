"""When nets are ready, by the model of a device family's delays.

Multiplexers, gates, comparisons of features and small sums become LUTs: those behind one another that read no more bits
together than a LUT has inputs are one level, whatever their number. A LUT absorbs the LUTs before it greedily, the last
to be ready first: a simple form of FlowMap (Cong and Ding, IEEE TCAD 13(1), 1994), which itself finds the least depth.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, assert_never

from forestc.costs.devices import Delays
from forestc.netlist import ir
from forestc.netlist.ir import Net, Netlist, reads

Bit: TypeAlias = tuple[Net, int]  # a net and a place; place 0 of words whose bits a cell chooses alike


class Ready(NamedTuple):
    """When a net is ready in its stage, which is the number of registers before it.

    own: the delay of its LUTs, chain or adder; 0 of wires. last: the net that this waits for, -1 if for none. absorbed:
    the bits that a LUT reads which does the net's work too.
    """

    stage: int
    at: float
    own: float
    last: Net
    absorbed: frozenset[Bit]


class Timing:
    """The nets of a netlist, put into stages one by one, in order. Time O(1) a net.

    ready: of the nets so far.
    """

    def __init__(self, netlist: Netlist, delays: Delays) -> None:
        self.netlist = netlist
        self.delays = delays
        self.ready: list[Ready] = []
        self.tables = [self._bits(net) for net in range(len(netlist.cells))]
        self.below = [[a for a in reads(cell) if not self._constant(a)] for cell in netlist.cells]

    def earliest(self, net: Net) -> Ready:
        """The next net in the first stage in which all that it reads is known."""
        return self.within(net, max((self.ready[a].stage for a in self.below[net]), default=0))

    def within(self, net: Net, stage: int) -> Ready:
        """The next net in a stage, with registers behind what it reads of earlier stages."""
        if bits := self.tables[net]:
            return self._table(bits, stage)
        last = max(self.below[net], key=lambda a: self._at(a, stage), default=-1)
        start = self._at(last, stage) if last >= 0 else 0.0
        alone = frozenset(((net, 0),))
        if isinstance(self.netlist.cells[net], ir.Register):
            return Ready(stage + 1, 0.0, 0.0, -1, alone)
        delay = self._own(net)
        return Ready(stage, start + delay, delay, last, alone)

    def _at(self, net: Net, stage: int) -> float:
        ready = self.ready[net]
        return ready.at if ready.stage == stage else 0.0

    def _constant(self, net: Net) -> bool:
        return isinstance(self.netlist.cells[net], ir.Const)

    def _bits(self, net: Net) -> frozenset[Bit]:
        """What a LUT reads that does the work of a cell alone; nothing for cells that become wires or chains, or that
        read more bits than a LUT has inputs."""
        cell, types = self.netlist.cells[net], self.netlist.types
        match cell:
            case ir.And() | ir.Or() | ir.Mux():
                bits = {(self._inverted(a), 0) for a in reads(cell) if not self._constant(a)}
            case ir.Less(a, threshold, chained=False):
                bits = {(a, place) for place in range(_idle(threshold, types[a].width), types[a].width)}
            case ir.InSet(a):
                bits = {(a, place) for place in range(types[a].width)}
            case ir.Table(words):
                bits = {(a, place) for a, _ in words for place in range(types[a].width)}
            case _:
                return frozenset()
        return frozenset(bits if len(bits) <= self.delays.inputs else ())

    def _inverted(self, net: Net) -> Net:
        """What inverters before a net read: a LUT reads that as well."""
        while isinstance(cell := self.netlist.cells[net], ir.Not):
            net = cell.a
        return net

    def _table(self, bits: frozenset[Bit], stage: int) -> Ready:
        """When the LUT of a cell is ready, which absorbs what it can of the LUTs before it."""
        ready = self.ready
        waits = sorted({(ready[net].at if ready[net].stage == stage else -1.0, net) for net, _ in bits}, reverse=True)
        for at, net in waits:
            if at < 0 or not self.tables[net]:
                break
            more = frozenset([bit for bit in bits if bit[0] != net]) | ready[net].absorbed
            if len(more) > self.delays.inputs:
                break
            bits = more
        start, last = max([(self._at(net, stage), net) for net, _ in bits])
        delay = self._lut(len(bits))
        return Ready(stage, start + delay, delay, last, bits)

    def _lut(self, bits: int) -> float:
        return self.delays.table[0] + self.delays.table[1] * bits

    def _own(self, net: Net) -> float:
        """The delay of a cell that is no single LUT."""
        cell, types, delays = self.netlist.cells[net], self.netlist.types, self.delays
        match cell:
            case ir.Const() | ir.Input() | ir.Register() | ir.Not() | ir.Shift() | ir.Extend():
                return 0.0
            case ir.Less(a, threshold, chained=True):
                width = types[a].width - _idle(threshold, types[a].width)
                return delays.less[0] + delays.less[1] * width if width > 1 else 0.0
            case ir.Less(a) | ir.InSet(a):  # each LUT takes the result of the one before
                idle = _idle(cell.threshold, types[a].width) if isinstance(cell, ir.Less) else 0
                return self._lut(delays.inputs) * -(-(types[a].width - idle - 1) // (delays.inputs - 1))
            case ir.Compare(a, _):
                return delays.compare[0] + delays.compare[1] * types[a].width
            case ir.Add(_, width) | ir.Table(_, _, width):
                return delays.add[0] + delays.add[1] * width
            case ir.And() | ir.Or() | ir.Mux():
                return 0.0  # of constants alone
            case _:
                assert_never(cell)


def _idle(threshold: int, width: int) -> int:
    """The number of low bits of a word that decide nothing: those below the lowest 1 of the threshold. Below 0 is what
    the sign tells alone."""
    return (threshold & -threshold).bit_length() - 1 if threshold else width - 1
