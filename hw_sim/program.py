"""Turns a netlist into one-bit logic: every word becomes planes, one for each of its bits. A plane holds one bit of
every simulated vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from forestc.errors import InternalError
from forestc.netlist import ir
from forestc.netlist.builder import width_for
from forestc.netlist.ir import Linear, Net, Netlist, SumCell, WordType, linear, reads
from hw_sim.gates import ONE, ZERO, Gates, Literal

Word: TypeAlias = tuple[Literal, ...]  # one literal for each bit, lowest first
MAX_PORT_BITS = 64  # limits the bits of a port's word, which is an int64


@dataclass
class InputPlanes:
    """The planes of an input word; each plane is one bit of all vectors."""

    name: str
    word: WordType
    # Maps each threshold to a literal that is 1 if the word is below it.
    less: dict[int, Literal] = field(default_factory=dict)
    bits: dict[int, Literal] = field(default_factory=dict)  # for each k, bit k of the word minus its type's least value


@dataclass
class Program:
    """One-bit logic with its inputs and results."""

    gates: Gates
    ports: list[InputPlanes]
    results: list[tuple[Word, WordType]]  # words to return, in the requested order
    registers: list[tuple[Literal, Literal]]  # (state, next) of each bit; no state is overwritten too early
    overflow: Literal  # 1 if some sum does not fit its word


def build_program(netlist: Netlist, results: Sequence[Net], clocked: bool) -> Program:
    """Returns the logic that computes the nets in `results`.
    clocked: True keeps registers; False treats them as wires.

    Raises InternalError for inputs or results of more than 64 bits.
    """
    for net, cell in netlist.inputs:
        _check_width(netlist, net, f"input {cell.port.name!r}")
    for net in results:
        _check_width(netlist, net, "result")
    return _Elaboration(netlist, results, clocked).program()


def _check_width(netlist: Netlist, net: Net, what: str) -> None:
    if netlist.types[net].width > MAX_PORT_BITS:
        raise InternalError(
            f"{what} has {netlist.types[net].width} bits; the simulator takes up to {MAX_PORT_BITS}",
            where=f"netlist {netlist.name}, net {net}",
        )


def value_ranges(netlist: Netlist, clocked: bool) -> list[tuple[int, int]]:
    """Returns a list of bounds (least, greatest) of each net's value. clocked: True if registers are kept and start at
    0."""
    ranges: list[tuple[int, int]] = []
    for cell, word in zip(netlist.cells, netlist.types, strict=True):
        match cell:
            case ir.Const(value):
                low = high = value
            case ir.Mux(_, a, b):
                low, high = min(ranges[a][0], ranges[b][0]), max(ranges[a][1], ranges[b][1])
            case ir.Register(a):
                low, high = ranges[a]
                if clocked:
                    low, high = min(low, 0), max(high, 0)
            case _:
                low, high = sum_range(linear(cell), ranges) if isinstance(cell, SumCell) else (word.low, word.high)
                if low < word.low or high > word.high:
                    low, high = word.low, word.high
        ranges.append((low, high))
    return ranges


def sum_range(added: Linear, ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Returns the least and the greatest possible value of a weighted sum. Factors must not be negative."""
    low, high = (added.constant + sum(factor * ranges[a][end] for a, factor in added.terms) for end in (0, 1))
    return low, high


class _Elaboration:
    """Builder of the planes of all nets that the results need."""

    def __init__(self, netlist: Netlist, results: Sequence[Net], clocked: bool) -> None:
        self.cells, self.types = netlist.cells, netlist.types
        self.gates = Gates()
        self.ports = {net: InputPlanes(cell.port.name, netlist.types[net]) for net, cell in netlist.inputs}
        self.words: list[Word | None] = [None] * len(self.cells)
        self.ranges = value_ranges(netlist, clocked)
        self.overflows: list[Literal] = []
        self.wires = list(range(len(self.cells)))  # by net, the net with the same value after registers are removed
        self.registers: list[tuple[Net, ir.Register]] = []
        for net, cell in enumerate(self.cells):
            if isinstance(cell, ir.Register) and clocked:
                self.registers.append((net, cell))
                self.words[net] = tuple(self.gates.source() for _ in range(self.types[net].width))
            elif isinstance(cell, ir.Register):
                self.wires[net] = self.wires[cell.a]
        self.results = list(results)
        roots = [self.wires[net] for net in results] + [cell.a for _, cell in self.registers]
        self.order = self._order(roots)
        self.readers = Counter(a for net in self.order for a in self._reads(net))
        self.readers.update(roots)
        # Muxes in this set contain no fused mux, so an outer mux may absorb them.
        self.lone_muxes: set[Net] = set()

    def program(self) -> Program:
        for net in self.order:
            self.gates.owner = net
            if self.words[net] is None and not isinstance(self.cells[net], ir.Input):
                self.words[net] = tuple(self._word(net))
        registers: list[tuple[Literal, Literal]] = []
        for net, cell in reversed(self.registers):
            registers += zip(self._planes(net), self._planes(cell.a), strict=True)
        return Program(
            gates=self.gates,
            ports=list(self.ports.values()),
            results=[(self._planes(net), self.types[net]) for net in self.results],
            registers=registers,
            overflow=self.gates.any(self.overflows),
        )

    def _reads(self, net: Net) -> tuple[Net, ...]:
        if self.words[net] is not None:  # the state of a register
            return ()
        return tuple(self.wires[a] for a in reads(self.cells[net]))

    def _order(self, roots: Sequence[Net]) -> list[Net]:
        """Returns the nets from which the roots are computed. Each comes after the nets that it reads."""
        order: list[Net] = []
        seen = [False] * len(self.cells)
        stack = [(net, False) for net in reversed(roots)]
        while stack:
            net, done = stack.pop()
            if done:
                order.append(net)
            elif not seen[net]:
                seen[net] = True
                stack.append((net, True))
                stack += [(a, False) for a in reversed(self._reads(net)) if not seen[a]]
        return order

    def _planes(self, net: Net) -> Word:
        net = self.wires[net]
        word = self.words[net]
        if word is None:  # an input: most are only compared and need no bits
            word = self.words[net] = tuple(self._bit(net, k) for k in range(self.types[net].width))
        return word

    def _bit(self, net: Net, k: int) -> Literal:
        bits, word = self.ports[net].bits, self.types[net]
        bits[k] = self.gates.source()
        return bits[k] ^ (word.signed and k == word.width - 1)

    def _word(self, net: Net) -> Sequence[Literal]:
        gates, cell = self.gates, self.cells[net]
        if isinstance(cell, SumCell):
            return self._sum(net, linear(cell))
        match cell:
            case ir.Const(value, width):
                return [value >> k & 1 for k in range(width)]
            case ir.Less(a, threshold):
                return [self._less(a, threshold)]
            case ir.InSet(a, members):
                return [self._in_set(a, members)]
            case ir.Not(a):
                return [plane ^ 1 for plane in self._planes(a)]
            case ir.Slice(a, low, width):
                return self._planes(a)[low : low + width]
            case ir.And(a, b):
                return [gates.and_(self._planes(a)[0], self._planes(b)[0])]
            case ir.Or(a, b):
                return [gates.or_(self._planes(a)[0], self._planes(b)[0])]
            case ir.Mux():
                return self._mux(net, cell)
            case ir.Compare(a, b):
                return [gates.less(self._planes(a), self._planes(b), self.types[a].signed)]
            case ir.Input() | ir.Register():
                raise AssertionError("inputs are sources, registers wires or sources")
            case _:
                assert_never(cell)

    def _less(self, net: Net, threshold: int) -> Literal:
        net = self.wires[net]
        word = self.types[net]
        if threshold <= word.low or threshold > word.high:
            return ZERO if threshold <= word.low else ONE
        port = self.ports.get(net)
        if port is None:
            planes = self._planes(net)
            limit = [threshold >> k & 1 for k in range(word.width)]
            return self.gates.less(planes, limit, word.signed)
        if threshold not in port.less:
            port.less[threshold] = self.gates.source()
        return port.less[threshold]

    def _in_set(self, net: Net, members: Sequence[int]) -> Literal:
        inside = set(members)
        edges = [m for m in members if m - 1 not in inside] + [m + 1 for m in members if m + 1 not in inside]
        literals = [self._less(net, edge) for edge in sorted(edges)]
        result = ZERO
        for k in range(0, len(literals), 2):
            result = self.gates.xor3(result, literals[k], literals[k + 1])
        return result

    def _sum(self, net: Net, added: Linear) -> Sequence[Literal]:
        word = self.types[net]
        low, high = sum_range(added, self.ranges)
        exact = width_for(low, high)
        addends: list[tuple[Sequence[Literal], bool]] = [
            ([*[ZERO] * bit, *self._planes(a)], self.types[a].signed)
            for a, factor in added.terms
            for bit in range(factor.bit_length())
            if factor >> bit & 1
        ]
        constant = [added.constant >> bit & 1 for bit in range(added.constant.bit_length())]
        planes = self.gates.add([*addends, (constant, False)], exact.width)
        fill = planes[-1] if exact.signed else ZERO
        planes += [fill] * (word.width - exact.width)
        if low < word.low or high > word.high:
            sign = planes[word.width - 1] if word.signed else ZERO
            self.overflows += [self.gates.xor(plane, sign) for plane in [*planes[word.width :], fill]]
        return planes[: word.width]

    def _mux(self, net: Net, cell: ir.Mux) -> Sequence[Literal]:
        """Returns the word of a mux, fused with inner muxes if possible."""
        gates = self.gates
        a, b = self.wires[cell.a], self.wires[cell.b]
        select, first, second = self._planes(cell.select)[0], self._planes(a), self._planes(b)
        word = [gates.mux(select, x, y) for x, y in zip(first, second, strict=True)]
        t, a1, a2 = self._inside(a, select)
        u, b1, b2 = self._inside(b, select)
        if a1 is first and b1 is second:
            if not all(isinstance(self.cells[arm], ir.Const) for arm in (a, b)):
                self.lone_muxes.add(net)
            return word
        for k, plain in enumerate(word):
            work = gates.is_gate(plain) + (a1 is not first and gates.is_gate(first[k]))
            work += b1 is not second and gates.is_gate(second[k])
            if work > 1:
                word[k] = gates.mux4((select, t, u), (a1[k], a2[k]), (b1[k], b2[k]))
        return word

    def _inside(self, net: Net, select: Literal) -> tuple[Literal, Word, Word]:
        """Returns (select, arm, arm) of an inner mux that can be fused; for any other net (`select`, word, word)."""
        cell = self.cells[net]
        if isinstance(cell, ir.Mux) and net in self.lone_muxes and self.readers[net] == 1:
            return self._planes(cell.select)[0], self._planes(cell.a), self._planes(cell.b)
        return select, self._planes(net), self._planes(net)
