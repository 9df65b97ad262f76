"""When nets are ready, by the model of a device family's delays.

Muxes, gates and inverters become LUTs: those behind one another that read no more nets together than a LUT has inputs
are one level, whatever their number. A LUT absorbs the LUTs before it greedily, the last to be ready first: a simple
form of FlowMap (Cong and Ding, IEEE TCAD 13(1), 1994), which finds the least depth.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from forestc.costs.devices import Delays
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
    small_sum,
)


class Ready(NamedTuple):
    """When a net is ready in its stage, which is the number of registers before it.

    own: the delay of its LUT, chain or adder; 0 of wires. last: the net that this waits for, -1 if for none. absorbed:
    the nets that a LUT reads which does the net's work too.
    """

    stage: int
    at: float
    own: float
    last: Net
    absorbed: frozenset[Net]


class Timing:
    """The nets of a netlist, put into stages one by one, in order. Time O(1) a net.

    ready: of the nets so far.
    """

    def __init__(self, netlist: Netlist, delays: Delays) -> None:
        self.netlist = netlist
        self.delays = delays
        self.ready: list[Ready] = []

    def below(self, net: Net) -> list[Net]:
        """What the next net's cell reads, without constants."""
        cells = self.netlist.cells
        return [a for a in reads(cells[net]) if not isinstance(cells[a], Const)]

    def earliest(self, net: Net) -> Ready:
        """The next net in the first stage in which all that it reads is known."""
        return self.within(net, max((self.ready[a].stage for a in self.below(net)), default=0))

    def within(self, net: Net, stage: int) -> Ready:
        """The next net in a stage, with registers behind what it reads of earlier stages."""
        cell, below = self.netlist.cells[net], self.below(net)
        if isinstance(cell, And | Or | Mux):
            return self._table({self._inverted(a) for a in below}, stage)
        last = max(below, key=lambda a: self._at(a, stage), default=-1)
        start = self._at(last, stage) if last >= 0 else 0.0
        if isinstance(cell, Register):
            return Ready(stage + 1, 0.0, 0.0, -1, frozenset((net,)))
        own = self._own(net)
        return Ready(stage, start + own, own, last, frozenset((net,)))

    def _at(self, net: Net, stage: int) -> float:
        ready = self.ready[net]
        return ready.at if ready.stage == stage else 0.0

    def _inverted(self, net: Net) -> Net:
        """What inverters before a net read: a LUT reads that as well."""
        while isinstance(cell := self.netlist.cells[net], Not):
            net = cell.a
        return net

    def _table(self, below: set[Net], stage: int) -> Ready:
        """Of a LUT that absorbs what it can of the LUTs before it."""
        nets = frozenset(below)
        for net in sorted(nets, key=lambda a: (self._at(a, stage), a), reverse=True):
            if self.ready[net].stage < stage:
                break
            more = nets - {net} | self.ready[net].absorbed
            if len(more) > self.delays.inputs:
                break
            nets = more
        last = max(nets, key=lambda a: (self._at(a, stage), a), default=-1)
        start = self._at(last, stage) if last >= 0 else 0.0
        return Ready(stage, start + self.delays.table, self.delays.table, last, nets)

    def _own(self, net: Net) -> float:
        """The delay of a cell that absorbs none."""
        cell, types, delays = self.netlist.cells[net], self.netlist.types, self.delays
        match cell:
            case Const() | Input() | Register() | Not():
                return 0.0
            case Less(a, threshold):
                # the bits below the lowest 1 of the threshold decide nothing
                idle = (threshold & -threshold).bit_length() - 1
                return delays.less[0] + delays.less[1] * max(1, types[a].width - max(0, idle))
            case InSet(a):
                return delays.less[0] + delays.less[1] * types[a].width
            case Compare(a, _):
                return delays.compare[0] + delays.compare[1] * types[a].width
            case Add() if small_sum(self.netlist, net):
                return delays.table
            case Add(operands, width):
                a, b = operands[0], operands[-1]
                if len(operands) == 2 and (a == b or any(_is_zero(self.netlist.cells[net]) for net in operands)):
                    return 0.0  # twice a word, or a wider one: only wires
                return delays.add[0] + delays.add[1] * width
            case And() | Or() | Mux():
                raise TypeError(f"{type(cell).__name__} is a LUT")
            case _:
                assert_never(cell)


def _is_zero(cell: Cell) -> bool:
    return isinstance(cell, Const) and cell.value == 0
