"""The Verilog backend: writes a core and its self-checking test bench in Verilog-2005."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forestc.backends.base import Artifact, named
from forestc.backends.hdl import CoreWriter, Language, module_name
from forestc.backends.ports import Field, input_fields
from forestc.netlist import ir
from forestc.netlist.ir import Netlist, WordType, reads
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source


def emit(netlist: Netlist) -> dict[str, str]:
    """Returns {file name: text} of the core and its test bench."""
    module, writer = module_name(netlist), CoreWriter(netlist, VERILOG)
    view = writer.view()
    unused = _unused(netlist, writer.names) if input_fields(netlist) else ["x"]
    core = render("verilog/core.v.j2", **view, unused=unused)
    return {f"{module}.v": core, f"{module}_tb.v": render("verilog/bench.v.j2", **view)}


def artifacts(source: Source, *_: object) -> list[Artifact]:
    written = named("verilog", ("verilog", "testbench"), emit(source.netlist))
    return [*written, Artifact("vectors", "verilog/vectors.txt", source.vectors())]


def _range(word: WordType) -> str:
    return f"[{word.width - 1}:0] " if word.width > 1 else ""


def _literal(value: int, word: WordType) -> str:
    width = word.width
    return f"{width}'d{value}" if value >= 0 else f"{width}'h{value & ((1 << width) - 1):x}"


def _less(a: str, b: str, word: WordType) -> str:
    return f"$signed({a}) < $signed({b})" if word.signed else f"{a} < {b}"


def _extended(name: str, narrow: WordType, word: WordType) -> str:
    more = word.width - narrow.width
    if not more:
        return name
    return f"{{{{{more}{{{name}[{narrow.width - 1}]}}}}, {name}}}" if narrow.signed else f"{{{more}'d0, {name}}}"


def _looked_up(tables: list[str], words: list[str]) -> str:
    index = ", ".join(words)
    return f"{{{', '.join(f'{table}[{{{index}}}]' for table in tables)}}}"


def _result(field: Field | None, port: str, name: str, word: WordType) -> str:
    target = port if field is None else f"y[{field.offset + word.width - 1}:{field.offset}]"
    return f"assign {target} = {name};"


VERILOG = Language(
    comment="//",
    cells=lambda spelling: spelling.verilog,
    bit="{0}[{1}]",
    slice="{0}[{1}:{2}]",
    operators=("~", "&", "|"),
    test=("({} == {})", " | ", "{}"),
    test_bit=None,
    literal=_literal,
    part=lambda word, at: f"x[{at + word.width - 1}:{at}]",
    less=_less,
    extended=_extended,
    table=lambda name, size, values: f"localparam [{size - 1}:0] {name} = {size}'h{values:x};",
    looked_up=_looked_up,
    net=lambda name, word, value: ("", f"wire {_range(word)}{name} = {value};"),
    register=lambda name, word: f"reg {_range(word)}{name};",
    zero=lambda word: _literal(0, word),
    result=_result,
)


def _unused(netlist: Netlist, names: list[str]) -> list[str]:
    """Returns the Verilog names of nets, or of bits of nets, that nothing reads, or that a slice leaves out."""
    cells, types = netlist.cells, netlist.types
    idle = [word.width for word in types]  # number of low bits of each net that no cell reads
    for _, net in netlist.outputs:
        idle[net] = 0
    unused = []
    for net in range(len(cells) - 1, -1, -1):
        cell = cells[net]
        for a in reads(cell):
            less = 0
            if isinstance(cell, ir.Register):
                less = idle[net]
            elif isinstance(cell, ir.Less) and not ir.compares_sum(netlist, cell):
                less = min((cell.threshold & -cell.threshold).bit_length() - 1, types[a].width - 1)
                less = max(less, 0) if cell.threshold else types[a].width - 1
            elif isinstance(cell, ir.Slice):
                less, end = cell.low, cell.low + cell.width
                unused += [f"{names[a]}[{types[a].width - 1}:{end}]"] * (end < types[a].width)
            idle[a] = min(idle[a], less)
    for net, cell in enumerate(cells):
        if idle[net] and not isinstance(cell, ir.Const):
            whole = idle[net] == types[net].width
            unused.append(names[net] if whole else f"{names[net]}[{idle[net] - 1}:0]")
    return unused
