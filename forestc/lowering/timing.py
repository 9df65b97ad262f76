"""Computes when the value of each net is ready, with the modeled delays of a device family, and pipelines netlists: the
delays decide where registers go, the same number on every path. Outputs are registered; inputs are not registered.

A LUT greedily absorbs the LUTs before it as long as it has enough inputs: a simple form of FlowMap (Cong and Ding, IEEE
TCAD 13(1), 1994).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from forestc.netlist import ir
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import Const, Input, Net, Netlist, Not, Register, reads, rename
from forestc.system.compiled import compiled

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
# Identifies a bit that a LUT reads as (net, bit); for gates and multiplexers the bit is 0.
Bit: TypeAlias = tuple[Net, int]


@dataclass(frozen=True)
class Delays:
    """The largest LUT of a device family, and delays of its cells: each (constant, per bit)."""

    inputs: int  # number of inputs of the largest LUT
    table: tuple[float, float]  # delay of a LUT
    less: tuple[float, float]  # delay of a comparison with a constant, outside of LUTs
    add: tuple[float, float]  # delay of a sum
    compare: tuple[float, float]  # delay of a comparison of two words


# These delays place registers; they stay fixed so that users' designs do not change.
DELAYS: Mapping[str, Delays] = {
    "lut6": Delays(6, (0.7, 0.05), (0.8, 0.05), (1.0, 0.12), (1.0, 0.12)),
    "ecp5": Delays(6, (0.8, 0.06), (0.9, 0.06), (1.2, 0.14), (1.2, 0.14)),
    "ice40": Delays(4, (1.0, 0.05), (0.4, 0.2), (0.6, 0.17), (0.1, 0.3)),
}
DEFAULT_FAMILY = "lut6"


class Ready(NamedTuple):
    """Arrays (nets,) with the pipeline stage, and the time within it, at which each net is ready."""

    stage: Ints  # number of registers before the net
    at: Floats  # time within the stage
    own: Floats  # delay of the cell's LUT, chain or adder; 0 for wires
    last: Ints  # net that arrives last at the cell; -1 for none


class _Lists(NamedTuple):
    """Lists of numbers in one array: the list of net n is values[begins[n]:begins[n + 1]]."""

    begins: Ints
    values: Ints


class Timing:
    """A netlist with the delays of a device family; assigns the nets to pipeline stages."""

    def __init__(self, netlist: Netlist, delays: Delays) -> None:
        self.netlist = netlist
        self.delays = delays
        cells, types = netlist.cells, netlist.types
        self.most_bits = max((word.width for word in types), default=1)
        tables = [self._bits(net) for net in range(len(cells))]
        self._tables = _lists([sorted(a * self.most_bits + bit for a, bit in bits) for bits in tables])
        self._below = _lists([[a for a in reads(cell) if not self._constant(a)] for cell in cells])
        self._registers = np.array([isinstance(cell, ir.Register) for cell in cells], dtype=np.bool_)
        own = [0.0 if bits else self._own(net) for net, bits in enumerate(tables)]
        self._own_delays = np.array(own, dtype=np.float64)
        self._luts = np.array([self._lut(bits) for bits in range(delays.inputs + 1)])

    def placed(self, length: float) -> Ready:
        """Assigns each net to the earliest possible stage. length: the longest allowed delay of a stage, in the unit of
        `Delays`."""
        return Ready(
            *_placed(self._tables, self._below, self._registers, self._own_delays, self._luts, self.most_bits, length)
        )

    def _constant(self, net: Net) -> bool:
        return isinstance(self.netlist.cells[net], ir.Const)

    def _bits(self, net: Net) -> frozenset[Bit]:
        """Returns the bits that a cell reads if one LUT computes the cell; otherwise an empty set."""
        cell, types = self.netlist.cells[net], self.netlist.types
        if isinstance(cell, ir.Gate | ir.Mux):
            return self._fitting({(self._inverted(a), 0) for a in reads(cell) if not self._constant(a)})
        match cell:
            case ir.Less(a, threshold) if not ir.compares_sum(self.netlist, cell):
                return self._fitting({(a, bit) for bit in range(_idle(threshold, types[a].width), types[a].width)})
            case ir.InSet() | ir.Table():
                return self._fitting({(a, bit) for a in reads(cell) for bit in range(types[a].width)})
            case _:
                return frozenset()

    def _fitting(self, bits: set[Bit]) -> frozenset[Bit]:
        return frozenset(bits if len(bits) <= self.delays.inputs else ())

    def _inverted(self, net: Net) -> Net:
        while isinstance(cell := self.netlist.cells[net], ir.Not):
            net = cell.a
        return net

    def _lut(self, bits: int) -> float:
        return self.delays.table[0] + self.delays.table[1] * bits

    def _own(self, net: Net) -> float:
        cell, types, delays = self.netlist.cells[net], self.netlist.types, self.delays
        if isinstance(cell, ir.Gate | ir.Mux):
            return 0.0  # reads constants alone
        match cell:
            case ir.Const() | ir.Input() | ir.Register() | ir.Not() | ir.Shift() | ir.Extend() | ir.Slice():
                return 0.0
            case ir.Less(a, threshold) if ir.compares_sum(self.netlist, cell):
                width = types[a].width - _idle(threshold, types[a].width)
                return delays.less[0] + delays.less[1] * width if width > 1 else 0.0
            case ir.Less(a) | ir.InSet(a):  # each LUT takes the result of the one before
                idle = _idle(cell.threshold, types[a].width) if isinstance(cell, ir.Less) else 0
                return self._lut(delays.inputs) * -(-(types[a].width - idle - 1) // (delays.inputs - 1))
            case ir.Compare(a, _):
                return delays.compare[0] + delays.compare[1] * types[a].width
            case ir.Add(_, width) | ir.Table(_, _, width):
                return delays.add[0] + delays.add[1] * width
            case _:
                assert_never(cell)


def _idle(threshold: int, width: int) -> int:
    """Returns the number of low bits of a word that do not affect its comparison with the threshold."""
    # A comparison with 0 depends only on the sign bit.
    return (threshold & -threshold).bit_length() - 1 if threshold else width - 1


def _lists(lists: Sequence[Sequence[int]]) -> _Lists:
    begins = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(nets) for nets in lists], out=begins[1:])
    values: Iterable[int] = chain.from_iterable(lists)
    return _Lists(begins, np.fromiter(values, dtype=np.int64, count=int(begins[-1])))


@compiled()
def _latest(seen: Ints, first: int, waits: int, stage: Ints, at: Floats, here: int) -> int:
    """Returns the index into `seen`, from `first` on, of the net that is ready last in stage `here`."""
    latest = first
    for other in range(first + 1, waits):
        a, b = seen[other], seen[latest]
        when_a = at[a] if stage[a] == here else -1.0
        when_b = at[b] if stage[b] == here else -1.0
        if when_a > when_b or (when_a == when_b and a > b):
            latest = other
    return latest


@compiled()
def _joined(read: Ints, n_read: int, most_bits: int, a: int, absorbed: Ints, size: int, more: Ints) -> int:
    """Writes to `more` the inputs of a LUT that absorbs net `a`. Returns the number of inputs."""
    joined = 0
    for index in range(n_read):
        if read[index] // most_bits != a:
            more[joined] = read[index]
            joined += 1
    for index in range(size):
        fresh = True
        for other in range(joined):
            fresh = fresh and more[other] != absorbed[index]
        if fresh:
            more[joined] = absorbed[index]
            joined += 1
    return joined


@compiled()
def _absorbing(
    read: Ints,
    n_read: int,
    most_bits: int,
    ready: tuple[Ints, Floats],
    here: int,
    absorbed: Ints,
    size: Ints,
    scratch: Ints,
) -> int:
    """Lets a LUT with inputs `read` absorb LUTs before it, in place. Returns the new number of inputs. ready: stage and
    time of each net."""
    stage, at = ready
    inputs, more, seen = len(read), scratch[0], scratch[1]
    first, waits = 0, 0
    for index in range(n_read):
        a = read[index] // most_bits
        if waits == 0 or seen[waits - 1] != a:  # bits of one net are neighbors
            seen[waits] = a
            waits += 1
    while first < waits:
        latest = _latest(seen, first, waits, stage, at, here)
        a = seen[latest]
        seen[latest] = seen[first]
        first += 1
        if stage[a] != here or size[a] == 0:
            break
        joined = _joined(read, n_read, most_bits, a, absorbed[a], size[a], more)
        if joined > inputs:
            break
        n_read = joined
        for index in range(n_read):
            read[index] = more[index]
    return n_read


@compiled(lambda *given: 10 * len(given[2]))
def _placed(
    tables: _Lists,
    before: _Lists,
    registers: NDArray[np.bool_],
    own_delays: Floats,
    luts: Floats,
    most_bits: int,
    length: float,
) -> tuple[Ints, Floats, Floats, Ints]:
    """Returns the four arrays of `Ready`. tables: the bits that each LUT reads, as net * most_bits + index."""
    (bit_begins, bits), (begins, below) = tables, before
    count, inputs = len(own_delays), len(luts) - 1
    stage, at = np.zeros(count, np.int64), np.zeros(count)
    own, last = np.zeros(count), np.full(count, -1, np.int64)
    # These arrays hold the bits that each net's LUT reads, and their number.
    absorbed, size = np.zeros((count, inputs), np.int64), np.zeros(count, np.int64)
    read, scratch = np.zeros(inputs, np.int64), np.zeros((2, 2 * inputs), np.int64)
    for net in range(count):
        here = 0
        for index in range(begins[net], begins[net + 1]):
            here = max(here, stage[below[index]])
        for attempt in range(2):
            stage[net], at[net], own[net], last[net] = here, 0.0, 0.0, -1
            if bit_begins[net + 1] > bit_begins[net]:
                n_read = bit_begins[net + 1] - bit_begins[net]
                for index in range(n_read):
                    read[index] = bits[bit_begins[net] + index]
                n_read = _absorbing(read, n_read, most_bits, (stage, at), here, absorbed, size, scratch)
                start = -1.0
                for index in range(n_read):
                    a = read[index] // most_bits
                    when = at[a] if stage[a] == here else 0.0
                    if when > start or (when == start and a > last[net]):
                        start, last[net] = when, a
                own[net] = luts[n_read]
                at[net] = start + own[net]
                size[net] = n_read
                for index in range(n_read):
                    absorbed[net, index] = read[index]
            elif registers[net]:
                stage[net] = here + 1
            else:
                start = 0.0
                for index in range(begins[net], begins[net + 1]):
                    a = below[index]
                    when = at[a] if stage[a] == here else 0.0
                    if last[net] < 0 or when > start:
                        start, last[net] = when, a
                own[net] = own_delays[net]
                at[net] = start + own[net]
            if attempt or not (at[net] > length and at[net] > own[net] > 0):
                break
            here += 1
    return stage, at, own, last


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
