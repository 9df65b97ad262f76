"""Writes the core of a netlist in a hardware description language. `Language` holds what differs between languages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from forestc.backends.logic import SPELLINGS, Lookup, Spelling, compared, lookup_of
from forestc.backends.names import identifier, net_name
from forestc.backends.ports import Field, input_fields, input_note, output_fields, output_note, width_of
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, Origin, WordType, reads
from forestc.netlist.ports import Clocking, Reset


def interface(latency: int, clocking: Clocking) -> list[str]:
    """Returns sentences on the core's ports, for the head of its file."""
    if not latency:
        return ["Combinational, without a clock: y follows x."]
    edges = {"sync": "At each edge of clk at which rst is high", "async": "While rst is high"}
    also = ", whatever en is" * clocking.enable
    return [
        "Each clock takes a row. in_valid goes along with it, comes out as out_valid beside y, and halts nothing.",
        "No back pressure: a result stays for one clock. Compile with --stream for a receiver that may have to wait.",
        f"{edges[clocking.reset]}, all registers become 0{also}. They start at 0."
        if clocking.reset != "none"
        else "No reset: all registers start at 0.",
        "While en is low, all registers keep their words." if clocking.enable else "No clock enable.",
    ]


CLOCKINGS = tuple(Clocking(reset, enable) for reset in get_args(Reset) for enable in (False, True))
# all that `interface` returns
SENTENCES = {line for clocking in CLOCKINGS for latency in (0, 1) for line in interface(latency, clocking)}


def module_name(netlist: Netlist) -> str:
    return identifier(netlist.name)


@dataclass(frozen=True)
class Language:
    """The syntax of a hardware language. Functions return text, or pairs of texts."""

    comment: str
    cells: Callable[[Spelling], str]  # selects the language's format in a `Spelling`
    bit: str  # format of one bit, from the word's name and an index
    slice: str  # format of bits of a word, from its name and the indices of the highest and the lowest
    operators: tuple[str, str, str]  # not, and, or of single bits
    test: tuple[str, str, str]  # formats of a set test: one equality, the separator, the whole
    test_bit: tuple[str, str] | None  # formats of the tests that a bit is 0, and is 1; None: as of other words
    literal: Callable[[int, WordType], str]
    part: Callable[[WordType, int], str]  # a word of port x, from its type and first bit
    less: Callable[[str, str, WordType], str]  # the comparison of two words
    extended: Callable[[str, WordType, WordType], str]  # a word in a wider type, from name and both types
    table: Callable[[str, int, int], str]  # a table's declaration, from name, size and bits
    looked_up: Callable[[list[str], list[str]], str]  # a lookup, from tables and index words, highest bits first
    net: Callable[[str, WordType, str], tuple[str, str]]  # (declaration, statement), from name, type and value
    register: Callable[[str, WordType], str]  # a register's declaration, from name and type
    zero: Callable[[WordType], str]  # the word 0 of a type
    result: Callable[[Field | None, str, str, WordType], str]  # assigns an output; the field is None without port y


def table_name(lookup: Lookup, position: int) -> str:
    """Returns the name of the constant for one bit of a table's sums."""
    words = "".join(f"_{bits}" if factor == 1 else f"_{bits}x{factor}" for bits, factor in lookup.words)
    constant = f"_PLUS{lookup.constant}" if lookup.constant else ""
    return f"SUM{words}{constant}_BIT{position}"


class CoreWriter:
    """Writer of a netlist's core in one language."""

    def __init__(self, netlist: Netlist, language: Language) -> None:
        self.netlist, self.language = netlist, language
        self.names = [
            language.literal(cell.value, netlist.types[net]) if isinstance(cell, ir.Const) else net_name(net, cell)
            for net, cell in enumerate(netlist.cells)
        ]

    def view(self) -> dict[str, object]:
        """Returns the variables of the core's template."""
        language, inputs, outputs = self.language, input_fields(self.netlist), output_fields(self.netlist)
        offsets = {field.port: field.offset for field in inputs}
        registers, resets, updates, nets, body = [], [], [], [], []
        for net, cell in enumerate(self.netlist.cells):
            name, word = self.names[net], self.netlist.types[net]
            match cell:
                case ir.Const():
                    continue
                case ir.Register(a):
                    registers.append(language.register(name, word))
                    resets.append(f"{name} <= {language.zero(word)};")
                    updates.append(f"{name} <= {self.names[a]};")
                    continue
                case ir.Input(port):
                    if port not in offsets:
                        continue
                    value = language.part(word, offsets[port])
                case _:
                    value = self.expression(net)
            declared, statement = language.net(name, word, value)
            nets.append(declared)
            body.append(statement + self._note(self.netlist.origins[net], cell))
        results = {field.port: field for field in outputs}
        return {
            "module": module_name(self.netlist),
            "latency": self.netlist.latency,
            "clocking": self.netlist.clocking,
            "interface": interface(self.netlist.latency, self.netlist.clocking),
            "x_bits": max(1, width_of(inputs)),
            "y_bits": width_of(outputs),
            "title": self.netlist.title,
            "x_map": [input_note(field) for field in inputs] or ["none: the result is constant"],
            "y_map": [output_note(field) for field in outputs],
            "tables": self._tables(),
            "registers": registers,
            "nets": nets,
            "body": body,
            "resets": resets,
            "updates": updates,
            "results": [
                language.result(results.get(port), port.name, self.names[net], self.netlist.types[net])
                for port, net in self.netlist.outputs
            ],
        }

    def _tables(self) -> list[str]:
        widths: dict[Lookup, int] = {}
        for cell in self.netlist.cells:
            if isinstance(cell, ir.Table):
                lookup = lookup_of(cell, self.netlist.types)
                widths[lookup] = max(cell.width, widths.get(lookup, 0))
        return [
            self.language.table(table_name(lookup, position), lookup.size, lookup.values(position))
            for lookup, width in sorted(widths.items())
            for position in range(width)
        ]

    def _note(self, origin: Origin, cell: Cell) -> str:
        if not isinstance(cell, ir.Less):
            return ""
        where = f", tree {origin.tree}, node {origin.node}" if origin.tree >= 0 else ""
        return f"  {self.language.comment} {self.names[cell.a]} < {cell.threshold}{where}"

    def expression(self, net: Net) -> str:
        """Returns the text of a cell's value. The cell is no constant, input or register."""
        names, types, language = self.names, self.netlist.types, self.language
        cell, word = self.netlist.cells[net], types[net]
        match cell:
            case ir.Less(a, threshold):
                if ir.compares_sum(self.netlist, cell):
                    return language.less(names[a], language.literal(threshold, types[a]), types[a])
                inverted, *operators = language.operators
                bit = language.bit if types[a].width > 1 else "{0}"
                return compared(
                    types[a],
                    threshold,
                    lambda position, no: (inverted if no else "") + bit.format(names[a], position),
                    (operators[0], operators[1]),
                )
            case ir.InSet(a, members):
                if types[a].width == 1 and len(members) == 1 and language.test_bit is not None:
                    return language.test_bit[members[0] & 1].format(names[a])
                equal, between, whole = language.test
                tests = (equal.format(names[a], language.literal(member, types[a])) for member in members)
                return whole.format(between.join(tests))
            case ir.Add(operands):
                return " + ".join(self._extended(a, word) for a in operands)
            case ir.Extend(a):
                return f"{self._extended(a, word)} + {language.literal(0, word)}"
            case ir.Slice(a, low, width):  # As in `SPELLINGS`, an operation helps yosys.
                if width == 1:
                    return language.bit.format(names[a], low)
                return f"{language.slice.format(names[a], low + width - 1, low)} + {language.literal(0, word)}"
            case ir.Table(words):
                lookup = lookup_of(cell, types)
                tables = [table_name(lookup, position) for position in reversed(range(word.width))]
                return language.looked_up(tables, [names[a] for a, _ in reversed(words)])
            case ir.Compare(a, b):
                return language.less(names[a], names[b], types[a])
            case _:
                return language.cells(SPELLINGS[type(cell)]).format(*(names[a] for a in reads(cell)))

    def _extended(self, net: Net, word: WordType) -> str:
        cell = self.netlist.cells[net]
        if isinstance(cell, ir.Const):
            return self.language.literal(cell.value, word)
        return self.language.extended(self.names[net], self.netlist.types[net], word)


def vector_lines(inputs: list[Field], outputs: list[Field], x: list[int], y: list[int]) -> str:
    """Returns the test bench's file of vectors: a line "x y" in hexadecimal for each packed input and output."""
    x_digits, y_digits = -(-max(1, width_of(inputs)) // 4), -(-width_of(outputs) // 4)
    return "".join(f"{a:0{x_digits}x} {b:0{y_digits}x}\n" for a, b in zip(x, y, strict=True))
