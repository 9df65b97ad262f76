"""Checks the rules that every netlist must satisfy. A violation is a bug in forestc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from forestc.errors import InternalError
from forestc.netlist import ir
from forestc.netlist.ir import BIT, Cell, Net, Netlist, SumCell, WordType, reads, result_type

ANY_DELAY = -1  # marks a constant: it has the same value at every clock


def latencies(cells: Sequence[Cell]) -> list[int]:
    """Returns a list of the number of registers before each net; ANY_DELAY for a net that depends only on constants."""
    delays: list[int] = []
    for cell in cells:
        if isinstance(cell, ir.Input):
            delays.append(0)
        elif isinstance(cell, ir.Register):
            delays.append(delays[cell.a] + 1)
        else:
            delays.append(max((delays[net] for net in reads(cell)), default=ANY_DELAY))
    return delays


def verify(netlist: Netlist) -> None:
    """Raises InternalError if a netlist breaks a rule of `forestc.netlist.ir`."""
    cells, types = netlist.cells, netlist.types
    if cells[:2] != (ir.Const(0, 1, False), ir.Const(1, 1, False)):
        raise InternalError("nets 0 and 1 are not the one-bit constants", where=f"netlist {netlist.name}")
    if not len(cells) == len(types) == len(netlist.origins):
        raise InternalError("cells, types and origins differ in number", where=f"netlist {netlist.name}")

    def fail(net: Net, what: str) -> InternalError:
        return InternalError(what, where=f"netlist {netlist.name}, net {net} ({type(cells[net]).__name__})")

    delays: list[int] = []
    names: set[str] = set()
    for net, cell in enumerate(cells):
        below = reads(cell)
        if any(not 0 <= read < net for read in below):
            raise fail(net, f"reads a net that is not below it: {below}")
        problem = _type_problem(cell, types)
        if problem:
            raise fail(net, problem)
        if types[net] != result_type(cell, types):
            raise fail(net, f"has type {types[net]}, should be {result_type(cell, types)}")
        if types[net].width < 1 or (types[net].signed and types[net].width < 2):
            raise fail(net, f"has impossible type {types[net]}")
        if isinstance(cell, ir.Input):
            if cell.port.name in names:
                raise fail(net, f"second input named {cell.port.name!r}")
            names.add(cell.port.name)
            delays.append(0)
            continue
        arrivals = {delays[read] for read in below} - {ANY_DELAY}
        if len(arrivals) > 1:
            raise fail(net, f"reads nets of different latencies: {sorted(arrivals)} cycles")
        arrival = arrivals.pop() if arrivals else ANY_DELAY
        if isinstance(cell, ir.Register):
            if arrival == ANY_DELAY:
                raise fail(net, "registers a constant")
            arrival += 1
        delays.append(arrival)
    if netlist.clocking.ports and not netlist.latency:
        raise InternalError("has a reset or an enable, and no registers", where=f"netlist {netlist.name}")
    if not netlist.outputs:
        raise InternalError("has no output", where=f"netlist {netlist.name}")
    if len({port.name for port, _ in netlist.outputs}) != len(netlist.outputs):
        raise InternalError("two outputs of one name", where=f"netlist {netlist.name}")
    for port, net in netlist.outputs:
        name = port.name
        if not 0 <= net < len(cells):
            raise InternalError(f"output {name!r} is no net: {net}", where=f"netlist {netlist.name}")
        if delays[net] not in (netlist.latency, ANY_DELAY):
            raise fail(net, f"output {name!r} comes after {delays[net]} cycles, not the netlist's {netlist.latency}")


def _type_problem(cell: Cell, types: Sequence[WordType]) -> str:
    if isinstance(cell, ir.Gate):
        return "" if types[cell.a] == types[cell.b] == BIT else "operands are not one bit each"
    match cell:
        case ir.Input() | ir.Register():
            return ""
        case ir.Const(value, width, signed):
            word = WordType(width, signed)
            return "" if word.low <= value <= word.high else f"value {value} does not fit {word}"
        case ir.Less(a, threshold):
            word = types[a]
            return "" if word.low < threshold <= word.high else f"threshold {threshold} decides nothing on {word}"
        case ir.InSet(a, members):
            word = types[a]
            if not members or list(members) != sorted(set(members)):
                return "members are empty, repeated or not sorted"
            return "" if word.low <= members[0] and members[-1] <= word.high else f"member outside {word}"
        case ir.Not(a, width):
            bits = "one bit" if width == 1 else f"{width} unsigned bits"
            return "" if types[a] == WordType(width, False) else f"operand is not {bits}"
        case ir.Slice(a, low, width):
            word = types[a]
            inside = low >= 0 and 0 < width < word.width and low + width <= word.width and not word.signed
            return "" if inside else f"bits {low} to {low + width - 1} are no part of {word}"
        case ir.Mux(select, a, b):
            if types[select] != BIT:
                return "select is not one bit"
            return "" if types[a] == types[b] else f"arms differ in type: {types[a]}, {types[b]}"
        case ir.Compare(a, b):
            return "" if types[a] == types[b] else f"operands differ in type: {types[a]}, {types[b]}"
        case _:
            return _sum_problem(cell, types)


def _sum_problem(cell: SumCell, types: Sequence[WordType]) -> str:
    match cell:
        case ir.Add(operands, width, signed):
            if len(operands) < 2:
                return "fewer than two operands"
            if not signed and any(types[a].signed for a in operands):
                return "unsigned sum of signed operands"
            # Only the operands' width is checked here; the lowering makes a sum wide enough.
            widest = max(types[a].width + (signed and not types[a].signed) for a in operands)
            return "" if width >= widest else f"narrower than an operand ({widest} bits)"
        case ir.Table(words, constant, width):
            if not words or len({a for a, _ in words}) < len(words) or any(types[a].signed for a, _ in words):
                return "words are none, repeated or signed"
            if constant < 0 or any(factor < 1 for _, factor in words):
                return "a constant below 0 or a factor below 1"
            most = constant + sum(factor * types[a].high for a, factor in words)
            return "" if width <= most.bit_length() else f"holds at most {most}"
        case ir.Shift(a):
            return "operand is signed" if types[a].signed else ""
        case ir.Extend(a, width):
            fits = width > types[a].width and not types[a].signed
            return "" if fits else f"{types[a]} is not narrower than {width} bits, or signed"
        case _:
            assert_never(cell)
