"""Switching activity as SAIF (IEEE 1801, annex on SAIF), which vendors' power tools take for the Verilog core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from forestc.backends.names import net_name
from forestc.backends.ports import Field, input_fields, output_fields
from forestc.backends.verilog import module_name
from forestc.netlist.ir import Const, Netlist
from hw_sim.counts import Activity

PERIOD = 10  # ns of a clock cycle, as in waveforms


def saif(netlist: Netlist, counts: Activity) -> str:
    """The text of a file for the core as the top instance, under its module's name, one row a clock cycle of 10 ns.

    T0 and T1: time at 0 and 1 in ns; TX: unknown, never; TC: changes; IG: glitches, which are not counted.
    """
    return "".join(f"{line}\n" for line in _lines(netlist, counts))


def _lines(netlist: Netlist, counts: Activity) -> Iterator[str]:
    yield '(SAIFILE (SAIFVERSION "2.0") (DIRECTION "backward")'
    yield f'  (DESIGN "{module_name(netlist)}") (PROGRAM_NAME "forestc") (DIVIDER / ) (TIMESCALE 1 ns)'
    yield f"  (DURATION {counts.rows * PERIOD})"
    yield f"  (INSTANCE {module_name(netlist)}"
    yield "    (NET"
    nets = {port: net for net, cell in netlist.inputs for port in (cell.port,)}
    yield from _port("x", input_fields(netlist), [nets[field.port] for field in input_fields(netlist)], counts)
    if netlist.latency:
        half = counts.rows * PERIOD // 2
        yield _entry("clk", half, half, 2 * counts.rows)
    outputs = dict(netlist.outputs)
    fields = output_fields(netlist)
    yield from _port("y", fields, [outputs[field.port] for field in fields], counts)
    for port, net in netlist.outputs:
        if all(field.port != port for field in fields):
            yield from _net(port.name, counts.ones[net], counts.toggles[net], counts.rows)
    for net, cell in enumerate(netlist.cells):
        if not isinstance(cell, Const):
            yield from _net(net_name(net, cell), counts.ones[net], counts.toggles[net], counts.rows)
    yield "    )"
    yield "  )"
    yield ")"


def _port(name: str, fields: Sequence[Field], nets: Sequence[int], counts: Activity) -> Iterator[str]:
    """The bits of a port that joins several words."""
    for field, net in zip(fields, nets, strict=True):
        for bit in range(field.word.width):
            ones = int(counts.ones[net][bit])
            yield _counted(rf"{name}\[{field.offset + bit}\]", ones, int(counts.toggles[net][bit]), counts.rows)


def _net(name: str, ones: NDArray[np.int64], toggles: NDArray[np.int64], rows: int) -> Iterator[str]:
    for bit in range(len(ones)):
        shown = name if len(ones) == 1 else rf"{name}\[{bit}\]"
        yield _counted(shown, int(ones[bit]), int(toggles[bit]), rows)


def _counted(name: str, ones: int, toggles: int, rows: int) -> str:
    return _entry(name, (rows - ones) * PERIOD, ones * PERIOD, toggles)


def _entry(name: str, low: int, high: int, changes: int) -> str:
    return f"      ({name} (T0 {low}) (T1 {high}) (TX 0) (TC {changes}) (IG 0))"
