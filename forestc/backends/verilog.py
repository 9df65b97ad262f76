"""The Verilog backend: a core module and its self-checking test bench, Verilog-2005."""

from __future__ import annotations

from typing import assert_never

from forestc.backends.logic import Lookup, below, lookup_of
from forestc.backends.names import identifier, net_name
from forestc.backends.ports import Field, input_fields, input_note, output_fields, output_note, width_of
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, Origin, WordType, reads
from hdl_templates import render


def module_name(netlist: Netlist) -> str:
    """The core module's name."""
    return identifier(netlist.name)


def emit(netlist: Netlist) -> dict[str, str]:
    """{relative path: text} of the core and the test bench. Same input, same bytes."""
    module = module_name(netlist)
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    ports = {
        "module": module,
        "latency": netlist.latency,
        "x_bits": max(1, width_of(inputs)),
        "y_bits": width_of(outputs),
    }
    core = render("verilog/core.v.j2", **ports, **_Writer(netlist).view(inputs, outputs))
    return {f"{module}.v": core, f"{module}_tb.v": render("verilog/bench.v.j2", **ports)}


def _range(word: WordType) -> str:
    return f"[{word.width - 1}:0] " if word.width > 1 else ""


def _literal(value: int, width: int) -> str:
    return f"{width}'d{value}" if value >= 0 else f"{width}'h{value & ((1 << width) - 1):x}"


def _table_name(lookup: Lookup, place: int) -> str:
    """The constant that holds a bit of the sums."""
    words = "".join(f"_{bits}" if factor == 1 else f"_{bits}x{factor}" for bits, factor in lookup.words)
    constant = f"_PLUS{lookup.constant}" if lookup.constant else ""
    return f"SUM{words}{constant}_BIT{place}"


class _Writer:
    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.names = [self._name(net, cell) for net, cell in enumerate(netlist.cells)]

    def _name(self, net: Net, cell: Cell) -> str:
        if isinstance(cell, ir.Const):
            return _literal(cell.value, self.netlist.types[net].width)
        return net_name(net, cell)

    def view(self, inputs: list[Field], outputs: list[Field]) -> dict[str, object]:
        """Variables of the core's template: finished lines."""
        body, registers, resets, updates = [], [], [], []
        places = {field.port: field for field in inputs}
        for net, cell in enumerate(self.netlist.cells):
            name, word = self.names[net], self.netlist.types[net]
            match cell:
                case ir.Const():
                    continue
                case ir.Input(port):
                    if port in places:
                        at = places[port].offset
                        body.append(f"wire {_range(word)}{name} = x[{at + word.width - 1}:{at}];")
                case ir.Register(a):
                    registers.append(f"reg {_range(word)}{name};")
                    resets.append(f"{name} = {word.width}'d0;")
                    updates.append(f"{name} <= {self.names[a]};")
                case _:
                    note = self._note(self.netlist.origins[net], cell)
                    body.append(f"wire {_range(word)}{name} = {self.expression(net)};{note}")
        results = []
        for port, net in self.netlist.outputs:
            place = next((field for field in outputs if field.port == port), None)
            target = port.name if place is None else f"y[{place.offset + place.word.width - 1}:{place.offset}]"
            results.append(f"assign {target} = {self.names[net]};")
        unused = self._unused() if inputs else ["x"]
        if unused:
            body.append(f"wire unused = &{{1'b0, {', '.join(unused)}}};")
        return {
            "title": self.netlist.title,
            "x_map": [input_note(field) for field in inputs] or ["none: the result is constant"],
            "y_map": [output_note(field) for field in outputs],
            # registers are declared before the logic that reads them
            "body": self.tables() + registers + body,
            "resets": resets,
            "updates": updates,
            "results": results,
        }

    def tables(self) -> list[str]:
        """Constants that hold the bits of tables, at the place that the words spell."""
        widths: dict[Lookup, int] = {}
        for cell in self.netlist.cells:
            if isinstance(cell, ir.Table):
                lookup = lookup_of(cell, self.netlist.types)
                widths[lookup] = max(cell.width, widths.get(lookup, 0))
        return [
            f"localparam [{lookup.size - 1}:0] {_table_name(lookup, place)} = {lookup.size}'h{lookup.values(place):x};"
            for lookup, width in sorted(widths.items())
            for place in range(width)
        ]

    def _unused(self) -> list[str]:
        """Nets, or their low bits, that no cell reads, which linters report otherwise."""
        cells, types = self.netlist.cells, self.netlist.types
        idle = [word.width for word in types]  # number of low bits of each net that no cell reads
        for _, net in self.netlist.outputs:
            idle[net] = 0
        for net in range(len(cells) - 1, -1, -1):
            cell = cells[net]
            for a in reads(cell):
                less = 0
                if isinstance(cell, ir.Register):
                    less = idle[net]
                elif isinstance(cell, ir.Less) and not cell.chained:
                    less = min((cell.threshold & -cell.threshold).bit_length() - 1, types[a].width - 1)
                    less = max(less, 0) if cell.threshold else types[a].width - 1
                idle[a] = min(idle[a], less)
        unused = []
        for net, cell in enumerate(cells):
            if idle[net] and not isinstance(cell, ir.Const):
                whole = idle[net] == types[net].width
                unused.append(self.names[net] if whole else f"{self.names[net]}[{idle[net] - 1}:0]")
        return unused

    def _note(self, origin: Origin, cell: Cell) -> str:
        if not isinstance(cell, ir.Less):
            return ""
        where = f", tree {origin.tree}, node {origin.node}" if origin.tree >= 0 else ""
        return f"  // {self.names[cell.a]} < {cell.threshold}{where}"

    def expression(self, net: Net) -> str:
        """The right-hand side of a combinational cell."""
        names, types = self.names, self.netlist.types
        cell, word = self.netlist.cells[net], types[net]
        match cell:
            case ir.Less(a, threshold, chained):
                if not chained:
                    return below(names[a], types[a], threshold)
                width = types[a].width
                if types[a].signed:
                    return f"$signed({names[a]}) < $signed({_literal(threshold, width)})"
                return f"{names[a]} < {_literal(threshold, width)}"
            case ir.InSet(a, members):
                width = types[a].width
                return " | ".join(f"({names[a]} == {_literal(member, width)})" for member in members)
            case ir.Not(a):
                return f"~{names[a]}"
            case ir.And(a, b):
                return f"{names[a]} & {names[b]}"
            case ir.Or(a, b):
                return f"{names[a]} | {names[b]}"
            case ir.Mux(select, a, b):
                return f"{names[select]} ? {names[a]} : {names[b]}"
            case ir.Add() | ir.Extend():
                return " + ".join(self.extended(a, word) for a in reads(cell))
            case ir.Table(words):
                lookup, index = lookup_of(cell, types), ", ".join(names[a] for a, _ in reversed(words))
                bits = [f"{_table_name(lookup, place)}[{{{index}}}]" for place in range(word.width)]
                return f"{{{', '.join(reversed(bits))}}}"
            case ir.Shift(a):
                return f"{{{names[a]}, 1'd0}}"
            case ir.Compare(a, b):
                if types[a].signed:
                    return f"$signed({names[a]}) < $signed({names[b]})"
                return f"{names[a]} < {names[b]}"
            case ir.Const() | ir.Input() | ir.Register():
                raise ValueError(f"{type(cell).__name__} has no expression")
            case _:
                assert_never(cell)

    def extended(self, net: Net, word: WordType) -> str:
        """A net's word explicitly extended to the width of a sum, independent of Verilog's rules."""
        cell, narrow = self.netlist.cells[net], self.netlist.types[net]
        if isinstance(cell, ir.Const):
            return _literal(cell.value, word.width)
        more = word.width - narrow.width
        if not more:
            return self.names[net]
        if not narrow.signed:
            return f"{{{more}'d0, {self.names[net]}}}"
        return f"{{{{{more}{{{self.names[net]}[{narrow.width - 1}]}}}}, {self.names[net]}}}"


def vector_lines(inputs: list[Field], outputs: list[Field], x: list[int], y: list[int]) -> str:
    """The test bench's file: a line "x y" in hexadecimal for each vector."""
    x_digits, y_digits = -(-max(1, width_of(inputs)) // 4), -(-width_of(outputs) // 4)
    return "".join(f"{a:0{x_digits}x} {b:0{y_digits}x}\n" for a, b in zip(x, y, strict=True))
