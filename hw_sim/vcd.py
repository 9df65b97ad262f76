"""Writes waveforms as value change dumps (VCD, IEEE 1364-2005 clause 18).

A clock cycle is 10 ns. Registers and inputs change at the rising edge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from vcd import VCDWriter

from forestc.netlist.ir import Compare, Const, Input, InSet, Less, Net, Netlist, Register, SumCell

PERIOD = 10  # ns of a clock cycle
CLOCK = "clk"
MAX_BITS = 64  # bits of a signal at most, as the simulator returns no wider words
NAMED_MEMBERS = 4  # members of a set that its comparator's name shows


class Signal(NamedTuple):
    """A named net in the waveform."""

    scope: str  # "" for ports
    name: str
    net: Net
    width: int  # in bits
    kind: str = "wire"  # or "reg"


def legal(name: str) -> str:
    """Returns the name, changed to an identifier if necessary."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def signals(netlist: Netlist) -> list[Signal]:
    """Returns a list of a netlist's ports, comparators, registers and sums of up to 64 bits, with unique names."""
    names = _names(netlist)
    named = [Signal("", legal(cell.port.name), net, cell.width) for net, cell in netlist.inputs]
    named += [Signal("", legal(port.name), net, netlist.types[net].width) for port, net in netlist.outputs]
    for net, cell in enumerate(netlist.cells):
        width = netlist.types[net].width
        if isinstance(cell, Less | InSet | Compare):
            named.append(Signal("comparators", names[net], net, width))
        elif isinstance(cell, Register):
            named.append(Signal("registers", names[net], net, width, "reg"))
        elif isinstance(cell, SumCell):
            named.append(Signal("sums", names[net], net, width))
    taken = {("", name) for name in (CLOCK, *netlist.clocking.ports)}
    unique: list[Signal] = []
    for signal in named:
        if signal.width > MAX_BITS:
            continue
        name, copies = signal.name, 1
        while (signal.scope, name) in taken:
            copies += 1
            name = f"{signal.name}_{copies}"
        taken.add((signal.scope, name))
        unique.append(signal._replace(name=name))
    return unique


def _names(netlist: Netlist) -> list[str]:
    """Returns a list with a name for each net; a register's name ends with its delay in cycles."""
    names: list[str] = []
    delays: list[tuple[str, int]] = []  # (name without the delay, delay)
    for net, (cell, origin) in enumerate(zip(netlist.cells, netlist.origins, strict=True)):
        delay = 0
        match cell:
            case Const(value):
                name = f"const_{value}"
            case Input(port):
                name = port.name
            case Less(a, threshold):
                name = f"{names[a]}_lt_{threshold}"
            case InSet(a, members):
                shown = "_".join(map(str, members[:NAMED_MEMBERS]))
                name = f"{names[a]}_in_{shown}" + "_etc" * (len(members) > NAMED_MEMBERS)
            case Compare(a, b):
                name = f"{names[a]}_lt_{names[b]}"
            case Register(a):
                name, delay = delays[a][0], delays[a][1] + 1
            case _:
                kind = "sum" if isinstance(cell, SumCell) else "net"
                in_tree = origin.tree >= 0 and kind == "net"
                name = f"tree{origin.tree}_node{origin.node}" if in_tree else f"{kind}_{net}"
        name = legal(name.replace("-", "m"))
        delays.append((name, delay))
        names.append(f"{name}_d{delay}" if delay else name)
    return names


class Waveform:
    """The waveform file of a run; a context manager. Raises OSError if the file can't be written.
    constant: ports that keep their values, with these."""

    def __init__(
        self, path: Path, top: str, signals: Sequence[Signal], clock: bool, constant: Mapping[str, int]
    ) -> None:
        self.nets = [signal.net for signal in signals]
        self._file = path.open("w", encoding="ascii", newline="\n")
        self._writer = VCDWriter(self._file, timescale="1 ns", date="", version="forestc hw_sim")
        scope = (legal(top),)
        self._clock = self._writer.register_var(scope, CLOCK, "wire", 1) if clock else None
        for name, value in constant.items():
            self._writer.register_var(scope, name, "wire", 1, init=value)
        self._variables = []
        for signal in signals:
            inside = (*scope, signal.scope) if signal.scope else scope
            variable = self._writer.register_var(inside, signal.name, signal.kind, signal.width)
            self._variables.append((variable, signal.width))
        self._last: NDArray[np.int64] | None = None
        self._cycles = 0

    def __enter__(self) -> Waveform:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._writer.close(self._cycles * PERIOD)

    def cycle(self, words: NDArray[np.int64]) -> None:
        """Writes one clock cycle. words: the words of `nets`, in that order."""
        changed = np.arange(len(words)) if self._last is None else np.flatnonzero(words != self._last)
        self._last = words.copy()
        start = self._cycles * PERIOD
        if self._clock is not None:
            self._writer.change(self._clock, start, 1)
        for index, word in zip(changed.tolist(), words[changed].tolist(), strict=True):
            variable, width = self._variables[index]
            self._writer.change(variable, start, word % (1 << width))
        if self._clock is not None:
            self._writer.change(self._clock, start + PERIOD // 2, 0)
        self._cycles += 1
