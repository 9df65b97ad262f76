"""The HLS backend: writes C++ for Vitis HLS, one statement for each cell. Plain C++ types are used up to 64 bits,
because they compile many times faster than ap_int."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forestc.backends.base import Artifact, named
from forestc.backends.hls import ROLES
from forestc.backends.logic import SPELLINGS, compared, lookup_of
from forestc.backends.names import identifier, net_name, port_name
from forestc.backends.ports import Field, input_fields, output_fields, result_meaning, width_of
from forestc.backends.project import ProjectOptions
from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.forest.numbers import Fixed, word_range
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, WordType, reads
from forestc.netlist.ports import Port
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source

BLOCK = 1024  # statements at most in one function; more make a compiler disproportionately slow
PART, PERIOD_NS = "xc7a100tcsg324-1", 5.0  # default device and clock period (ns) in the scripts


@dataclass(frozen=True)
class HlsOptions:
    """Initial values in the project scripts. Raises OptionError for invalid values."""

    part: str = PART  # name of the device
    clock: float = PERIOD_NS  # period in ns

    def __post_init__(self) -> None:
        if not self.part.replace("-", "").replace("_", "").isalnum():
            raise OptionError(f"{self.part!r} is no device", where="part", do="give a device such as xc7a100tcsg324-1")
        if not 0.1 <= self.clock <= 1e6:
            raise OptionError(f"{self.clock:g} ns is no clock period", where="clock", do="give 0.1 to 1e6 nanoseconds")


def top_name(netlist: Netlist) -> str:
    """Returns the name of the top function, also the stem of its files. The ending `_hls` avoids names in included
    headers."""
    return f"{identifier(netlist.name)}_hls"


def emit(forest: Forest, netlist: Netlist, options: HlsOptions | None = None) -> dict[str, str]:
    """Returns {file name: text} of header, source, test bench and two project scripts."""
    options = options or HlsOptions()
    top = top_name(netlist)
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    members = [_feature(forest, field) for field in inputs]
    body = cpp_body(netlist, top, f"const {top}_x &x", "x", lambda x: f"x.{port_name(x)}", lambda y: f"y.{y.name}")
    view = {
        "top": top,
        "title": netlist.title,
        "inputs": members,
        "outputs": [_result(field) for field in outputs],
        "x_bits": max(1, width_of(inputs)),
        "y_bits": width_of(outputs),
        "body": body,
        "part": options.part,
        "clock": f"{options.clock:g}",
    }
    return {
        path: render(f"hls/{template}.j2", **view)
        for path, template in (
            (f"{top}.h", "top.h"),
            (f"{top}.cpp", "top.cpp"),
            (f"{top}_tb.cpp", "bench.cpp"),
            ("run_hls.tcl", "run_hls.tcl"),
            ("hls_config.cfg", "hls_config.cfg"),
        )
    }


def artifacts(source: Source, *_: object) -> list[Artifact]:
    project = ProjectOptions.of(source.options)
    options = HlsOptions(project.part("vivado", PART), project.period(PERIOD_NS))
    return named("hls", ROLES, emit(source.forest, source.netlist, options) | {"vectors.txt": source.vectors()})


def ap_type(word: WordType) -> str:
    """Returns the HLS type of a word, such as `ap_uint<5>`."""
    return f"ap_{'' if word.signed else 'u'}int<{word.width}>"


def _feature(forest: Forest, field: Field) -> dict[str, object]:
    feature = forest.features[field.port.index]
    number, raw = feature.number, feature.raw
    # The port converts numbers as the model does, unless words have fewer bits than its own type.
    typed = isinstance(number, Fixed) and (not isinstance(raw, Fixed) or raw.grid == number)
    modes = (raw.rounding, raw.overflow) if isinstance(raw, Fixed) else ("AP_TRN", "AP_SAT")
    missing = word_range(number, feature.missing).missing
    return {
        "name": field.identifier,
        "type": ap_type(field.word),
        "note": field.port.meaning,
        "fixed": number.fixed_point(*modes) if isinstance(number, Fixed) and typed else None,
        "missing": None if missing is None else _literal(missing),
        "high": field.offset + field.word.width - 1,
        "low": field.offset,
    }


def _result(field: Field) -> dict[str, object]:
    return {
        "name": field.name,
        "type": ap_type(field.word),
        "note": result_meaning(field),
        "high": field.offset + field.word.width - 1,
        "low": field.offset,
    }


@dataclass(frozen=True)
class Body:
    """The logic of a netlist as C++."""

    nets: list[str]  # declarations of nets that several functions share
    blocks: list[tuple[str, list[str]]]  # (head, lines) of the functions that the top function calls
    statements: list[str]  # body of the top function


def cpp_body(
    netlist: Netlist,
    prefix: str,
    parameters: str,
    arguments: str,
    source: Callable[[Port], str],
    result: Callable[[Port], str],
) -> Body:
    """Returns the netlist as C++.
    prefix: begins names of helper functions.
    parameters, arguments: C++ that passes inputs to helpers.
    source: returns C++ that reads an input port.
    result: returns an output's C++ variable."""
    return _CppWriter(netlist, source).body(prefix, parameters, arguments, result)


def _c_type(word: WordType) -> str:
    if word.width == 1:
        return "bool"
    size = next((size for size in (8, 16, 32, 64) if word.width <= size), None)
    return ap_type(word) if size is None else f"{'' if word.signed else 'u'}int{size}_t"


def _literal(value: int) -> str:
    if -(1 << 31) < value < 1 << 31:
        return str(value)
    if value == -(1 << 63):
        return f"({value + 1}LL - 1)"
    return f"{value}LL" if value < 1 << 63 else f"{value}ULL"


class _CppWriter:
    def __init__(self, netlist: Netlist, word: Callable[[Port], str]) -> None:
        self.netlist = netlist
        self.word = word
        self.source = self._sources()
        self.shown = [(port, self.source[net]) for port, net in netlist.outputs if port.kind != "valid"]

    def _sources(self) -> list[Net]:
        """Returns a list with an entry for each net: the net itself or, for a register, its chain's start."""
        source: list[Net] = []
        for net, cell in enumerate(self.netlist.cells):
            source.append(source[cell.a] if isinstance(cell, ir.Register) else net)
        return source

    def live(self) -> list[Net]:
        """Returns the nets that get a statement, in order."""
        needed = {net for _, net in self.shown}
        for net in range(len(self.netlist.cells) - 1, -1, -1):
            if net in needed:
                needed.update(self.source[a] for a in reads(self.netlist.cells[net]))
        return sorted(net for net in needed if not isinstance(self.netlist.cells[net], ir.Const | ir.Register))

    def body(self, prefix: str, parameters: str, arguments: str, result: Callable[[Port], str]) -> Body:
        live = self.live()
        logic = [net for net in live if not isinstance(self.netlist.cells[net], ir.Input)]
        blocks = [logic[start : start + BLOCK] for start in range(0, len(logic), BLOCK)]
        if len(blocks) <= 1:
            lines = self.block(live, set(), set())
            return Body([], [], lines + self.results(result, set()))
        home = {net: number for number, block in enumerate(blocks) for net in block}
        shared = {net for _, net in self.shown if net in home}
        for net in logic:
            shared.update(a for a in self.reads(net) if a in home and home[a] != home[net])
        functions, statements = [], [f"{prefix}_nets n;"]
        for number, block in enumerate(blocks):
            nets_here = set(block)
            read = {a for net in block for a in self.reads(net)}
            inputs = sorted(a for a in read if isinstance(self.netlist.cells[a], ir.Input))
            lines = self.block([*inputs, *block], shared & nets_here, shared)
            handed = f"{parameters}, {prefix}_nets &n" if inputs else f"{prefix}_nets &n"
            functions.append((f"static void {prefix}_part{number}({handed})", lines))
            statements.append(f"{prefix}_part{number}({f'{arguments}, ' if inputs else ''}n);")
        passed = [net for _, net in self.shown if isinstance(self.netlist.cells[net], ir.Input)]
        statements += self.block(sorted(set(passed)), set(), shared)
        nets = [f"{_c_type(self.netlist.types[net])} {self.name(net, set())};" for net in sorted(shared)]
        return Body(nets, functions, statements + self.results(result, shared))

    def reads(self, net: Net) -> tuple[Net, ...]:
        return tuple(self.source[a] for a in reads(self.netlist.cells[net]))

    def block(self, nets: list[Net], stored: set[Net], shared: set[Net]) -> list[str]:
        """Returns one C++ statement for each net.
        stored: nets that need no declaration, as they are members of the struct.
        shared: all members of the struct."""
        lines = []
        for net in nets:
            target = self.name(net, shared)
            declared = "" if net in stored else f"const {_c_type(self.netlist.types[net])} "
            lines.append(f"{declared}{target} = {self.expression(net, shared)};")
        return lines

    def results(self, result: Callable[[Port], str], shared: set[Net]) -> list[str]:
        return [f"{result(port)} = {self.name(net, shared)};" for port, net in self.shown]

    def name(self, net: Net, shared: set[Net]) -> str:
        cell = self.netlist.cells[net]
        match cell:
            case ir.Const(value):
                word = self.netlist.types[net]
                return ("true" if value else "false") if word.width == 1 else _literal(value)
            case ir.Input(port):
                return port.name
            case _:
                name = net_name(net, cell)
        return f"n.{name}" if net in shared else name

    def expression(self, net: Net, shared: set[Net]) -> str:
        cell: Cell = self.netlist.cells[net]
        types, word = self.netlist.types, self.netlist.types[net]
        names = {a: self.name(self.source[a], shared) for a in reads(cell)}
        match cell:
            case ir.Input(port):
                return self.word(port)
            case ir.Less(a, threshold):
                if ir.compares_sum(self.netlist, cell):
                    return f"{names[a]} < {_literal(threshold)}"
                return compared(types[a], threshold, lambda bit, no: f"({'~' * no}{names[a]} >> {bit} & 1)")
            case ir.InSet(a, members):
                return " || ".join(f"{names[a]} == {_literal(member)}" for member in members) or "false"
            case ir.Not(a):
                return f"!{names[a]}" if word.width == 1 else f"{_literal(word.high)} - {names[a]}"
            case ir.Add(operands):
                # C++ adds operands of mixed signs as unsigned numbers, so casts are needed.
                kind = _c_type(word)
                return " + ".join(names[a] if types[a] == word else f"({kind}){names[a]}" for a in operands)
            case ir.Table(words):
                lookup, index, low = lookup_of(cell, types), [], 0
                for a, _ in words:
                    index.append(f"{names[a]} << {low}" if low else names[a])
                    low += types[a].width
                at = " | ".join(index)
                bits = [f"(0x{lookup.values(bit):x}ULL >> ({at}) & 1) << {bit}" for bit in range(word.width)]
                return " | ".join(bits)
            case ir.Slice(a, low):
                return f"({_c_type(word)})({names[a]} >> {low} & {_literal(word.high)})"
            case ir.Shift(a):
                return f"({_c_type(word)}){names[a]} << 1"
            case _:
                return SPELLINGS[type(cell)].hls.format(*(names[a] for a in reads(cell)))
