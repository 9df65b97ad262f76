"""Writes switching activity as SAIF (IEEE 1801, annex on SAIF), for power tools that read the Verilog core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forestc.backends.hdl import module_name
from forestc.backends.names import net_name
from forestc.backends.ports import Field, input_fields, output_fields
from forestc.netlist.ir import Const, Net, Netlist
from forestc.netlist.ports import Port
from hw_sim.counts import NetActivity

PERIOD = 10  # ns of a clock cycle, as in waveforms


def saif(netlist: Netlist, counts: NetActivity) -> str:
    """Returns the text of a SAIF file for the core, with one row in each clock cycle of 10 ns."""
    return "".join(f"{line}\n" for line in _lines(netlist, counts))


def _lines(netlist: Netlist, counts: NetActivity) -> Iterator[str]:
    yield '(SAIFILE (SAIFVERSION "2.0") (DIRECTION "backward")'
    yield f'  (DESIGN "{module_name(netlist)}") (PROGRAM_NAME "forestc") (DIVIDER / ) (TIMESCALE 1 ns)'
    yield f"  (DURATION {counts.rows * PERIOD})"
    yield f"  (INSTANCE {module_name(netlist)}"
    yield "    (NET"
    inputs = {cell.port: net for net, cell in netlist.inputs}
    yield from _port("x", input_fields(netlist), inputs, counts)
    if netlist.latency:
        half = counts.rows * PERIOD // 2
        yield _entry("clk", half, half, 2 * counts.rows)
    for name, value in netlist.clocking.ports.items():
        yield _entry(name, 2 * half * (not value), 2 * half * value, 0)
    outputs = dict(netlist.outputs)
    fields = output_fields(netlist)
    yield from _port("y", fields, outputs, counts)
    named = [(port.name, net) for port, net in netlist.outputs if all(field.port != port for field in fields)]
    named += [(net_name(net, cell), net) for net, cell in enumerate(netlist.cells) if not isinstance(cell, Const)]
    for name, net in named:
        width = netlist.types[net].width
        yield from _net([name] if width == 1 else [rf"{name}\[{bit}\]" for bit in range(width)], net, counts)
    yield "    )"
    yield "  )"
    yield ")"


def _port(name: str, fields: Sequence[Field], nets: Mapping[Port, Net], counts: NetActivity) -> Iterator[str]:
    for field in fields:
        bits = range(field.offset, field.offset + field.word.width)
        yield from _net([rf"{name}\[{bit}\]" for bit in bits], nets[field.port], counts)


def _net(names: Sequence[str], net: Net, counts: NetActivity) -> Iterator[str]:
    for name, ones, changes in zip(names, counts.ones[net].tolist(), counts.toggles[net].tolist(), strict=True):
        yield _entry(name, (counts.rows - ones) * PERIOD, ones * PERIOD, changes)


def _entry(name: str, low: int, high: int, changes: int) -> str:
    return f"      ({name} (T0 {low}) (T1 {high}) (TX 0) (TC {changes}) (IG 0))"
