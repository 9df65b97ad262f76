"""The Amaranth backend: writes a Python module with two components, the core alone and the core between two streams."""

from __future__ import annotations

import linecache
from types import ModuleType
from typing import TYPE_CHECKING

from forestc.backends.base import Artifact, named
from forestc.backends.hdl import module_name
from forestc.backends.logic import SPELLINGS, below, lookup_of
from forestc.backends.names import class_name, net_name
from forestc.backends.ports import input_fields, input_note, output_fields, output_note
from forestc.errors import MissingExtraError
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, WordType
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source


def core_name(netlist: Netlist) -> str:
    """Returns the name of the core's class. The class with streams has this name followed by `Stream`."""
    return class_name(netlist.name)


def file_name(netlist: Netlist) -> str:
    """Returns the file name of the module. The ending `_amaranth` keeps it from hiding another Python module."""
    return f"{core_name(netlist)}_amaranth.py"


def emit(netlist: Netlist) -> dict[str, str]:
    """Returns {file name: text} of the module. Amaranth itself is not needed."""
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    text = render(
        "amaranth/component.py.j2",
        module=module_name(netlist),
        core=core_name(netlist),
        latency=netlist.latency,
        clocking=netlist.clocking,
        title=netlist.title,
        x_map=[input_note(field) for field in inputs] or ["none: the result is constant"],
        y_map=[output_note(field) for field in outputs],
        x_fields=[(field.identifier, _shape(field.word)) for field in inputs] or [("unused", "unsigned(1)")],
        y_fields=[(field.name, _shape(field.word)) for field in outputs],
        body=_AmaranthWriter(netlist).body(),
    )
    return {file_name(netlist): text}


def artifacts(source: Source, *_: object) -> list[Artifact]:
    return named("amaranth", ("amaranth",), emit(source.netlist))


def module(netlist: Netlist) -> ModuleType:
    """Returns the generated module, imported from its text. Raises MissingExtraError if Amaranth is not installed."""
    try:
        import amaranth  # noqa: F401
    except ImportError:
        raise MissingExtraError("Amaranth", "amaranth") from None
    ((name, text),) = emit(netlist).items()
    loaded = ModuleType(name.removesuffix(".py"))
    loaded.__file__ = f"<forestc {name}>"
    exec(compile(text, loaded.__file__, "exec", dont_inherit=True), loaded.__dict__)
    linecache.cache[loaded.__file__] = (len(text), None, text.splitlines(keepends=True), loaded.__file__)
    return loaded


def _shape(word: WordType) -> str:
    return f"{'signed' if word.signed else 'unsigned'}({word.width})"


class _AmaranthWriter:
    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.names = [self._name(net, cell) for net, cell in enumerate(netlist.cells)]

    def _name(self, net: Net, cell: Cell) -> str:
        if isinstance(cell, ir.Const):
            return str(cell.value)
        if isinstance(cell, ir.Input) and cell.port.kind == "valid":
            return f"self.{cell.port.name}"
        return net_name(net, cell)

    def body(self) -> list[str]:
        lines = []
        valid: set[Net] = set()  # nets whose registers have a reset in any case; the words of rows need none
        every = self.netlist.clocking.reset != "none"
        for net, cell in enumerate(self.netlist.cells):
            name, shape = self.names[net], _shape(self.netlist.types[net])
            match cell:
                case ir.Const():
                    continue
                case ir.Input(port):
                    if port.kind != "valid":
                        lines.append(f'{name} = _word(m, "{name}", {shape}, self.x.{name})')
                    else:
                        valid.add(net)
                case ir.Register(a):
                    reset = ""
                    if a in valid or every:
                        valid.add(net)
                        reset = ", reset_less=False"
                    lines.append(f'{name} = _register(m, "{name}", {shape}, {self.names[a]}{reset})')
                case _:
                    lines.append(f'{name} = _word(m, "{name}", {shape}, {self.expression(cell)})')
        for port, net in self.netlist.outputs:
            target = port.name if port.kind == "valid" else f"y.{port.name}"
            lines.append(f"m.d.comb += self.{target}.eq({self.names[net]})")
        return lines

    def expression(self, cell: Cell) -> str:
        names = self.names
        match cell:
            case ir.Less(a, threshold):
                if ir.compares_sum(self.netlist, cell):
                    return f"{names[a]} < {threshold}"
                return below(names[a], self.netlist.types[a], threshold)
            case ir.InSet(a, members):
                return f"{self.value(a)}.matches({', '.join(map(str, members))})"
            case ir.Add(operands):
                return " + ".join(names[a] for a in operands)
            case ir.Slice(a, low, width):
                return f"{names[a]}[{low}:{low + width}] + 0"
            case ir.Table(words):
                index = f"Cat({', '.join(names[a] for a, _ in words)})"
                lookup = lookup_of(cell, self.netlist.types)
                bits = [
                    f"Const(0x{lookup.values(bit):x}, {lookup.size}).bit_select({index}, 1)"
                    for bit in range(cell.width)
                ]
                return f"Cat({', '.join(bits)})"
            case _:
                return SPELLINGS[type(cell)].amaranth.format(*(names[a] for a in ir.reads(cell)))

    def value(self, net: Net) -> str:
        """Returns a net's name; for a constant, an Amaranth `Const` with its width."""
        cell = self.netlist.cells[net]
        return (
            f"Const({cell.value}, {_shape(self.netlist.types[net])})" if isinstance(cell, ir.Const) else self.names[net]
        )
