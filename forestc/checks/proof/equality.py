"""Proves with yosys that Verilog and RTLIL (yosys's own text form) describe the same netlist.

Nets have the same names in both, so each is proved from the nets that it reads. Only yosys's report counts, not its
exit status. `rtlil` writes a netlist as RTLIL; it shares with the Verilog backend only the names of nets and the layout
of ports.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, assert_never

from forestc.backends import hdl
from forestc.backends.amaranth import core as amaranth
from forestc.backends.names import net_name
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.verilog import core as verilog
from forestc.checks.proof.verilog_text import read_core
from forestc.errors import CheckError, ToolError
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, SumCell, WordType, linear
from forestc.netlist.ports import Reset
from forestc.toolchain.yosys import run_yosys

_SCRIPT = """
read_verilog gold.v
hierarchy -check -top {top}
proc -norom
memory_map -rom-only
# refuses several drivers
check -assert
setundef -anyseq
{unknown}
rename {top} gold
read_rtlil gate.il
proc
rename {top} gate
# refuses different ports, which later commands would ignore
miter -equiv gold gate ports
delete ports
opt_clean
{registers}
equiv_make gold gate equiv
cd equiv
opt_expr
# later commands prove one clock cycle at a time, so all registers must start at 0
simplemap t:$dff
select -assert-none t:$*dff*
select -assert-none t:$_DFF_* %co1:+[Q] t:* %d a:init %d
# all registers must be clocked by the rising edge of the one clock
select -assert-none t:$_DFF_* t:$_DFF_P_ %d
select -assert-none t:$_DFF_P_ %ci1:+[C] t:* %d w:clk_gold %d w:clk_gate %d w:clk %d
zinit
select -assert-none t:$_NOT_
wreduce
opt_merge
opt_clean
equiv_remove
equiv_simple -short
tee -q -o status.txt equiv_status
equiv_status -assert
"""
# Makes logic in front of plain registers of resets and enables. The asynchronous reset of all registers must be `rst`.
_TO_PLAIN: Mapping[Reset, str] = {
    "none": "dffunmap",
    "sync": "dffunmap",
    "async": """
dffunmap -ce-only
simplemap t:$adff
select -assert-none t:$*dff* t:$_*DFF* %u t:$_DFF_PP0_ %d
select -assert-none t:$_DFF_PP0_ %ci1:+[R] t:* %d w:rst %d
async2sync
dffunmap
""",
}
# Matches the end of status.txt: all nets are proved, or none was left to prove.
_PROVED = re.compile(
    r"(?:Found (\d+) \$equiv cells in equiv:\n  Of those cells \1 are proven and 0 are unproven\.\n"
    r"  Equivalence successfully proven!|No \$equiv cells found in equiv\.)\n\Z"
)
_NO_UNKNOWN = "select -assert-none t:$any*"  # yosys command that refuses unknown bits
SHOWN = 3  # limits the nets named in an error message
_REFUSED = ("unproven", "Assertion failed", "No matching port", "problems in 'check -assert'", "selection is not empty")
_LISTED = re.compile(r"(?:\| (?:gold|gate|equiv)/\S+ ){2}")  # a failed assertion's list, if it hides the line before it


def prove_component(netlist: Netlist, *, seconds: float = 3600) -> None:
    """Proves the Amaranth component of a netlist equal to the netlist's Verilog. Raises CheckError if they differ,
    MissingExtraError without Amaranth, ToolError if yosys fails."""
    component = amaranth.module(netlist)
    from amaranth.back import rtlil

    top = hdl.module_name(netlist)
    gate: str = component.convert(rtlil)
    core = read_core(verilog.emit(netlist)[f"{top}.v"].encode())
    prove_equal(core, gate, "the Amaranth component", reset=netlist.clocking.reset, seconds=seconds)


class Described(Protocol):
    @property
    def name(self) -> str: ...

    def text(self) -> str: ...


def prove_equal(
    gold: Described,
    gate: str,
    what: str,
    *,
    than: str = "the Verilog",
    unknown: bool = False,
    reset: Reset = "none",
    native: bool = False,
    seconds: float = 3600,
) -> None:
    """Proves a Verilog module `gold` and an RTLIL module `gate` equal for all inputs. unknown: True if gold may have
    undefined bits. reset: of the registers of both. Raises CheckError if the modules may differ, ToolError if yosys
    fails."""
    # yosys would give a register without an initial value the other side's value.
    if start := re.search(r"attribute \\init \d+'[01]*[^01\s].*", gate):
        raise CheckError(f"{what} does not equal {than}: a register starts unknown: {start.group()}", where="the proof")
    with tempfile.TemporaryDirectory(prefix="forestc-prove-") as scratch:
        folder = Path(scratch)
        (folder / "gold.v").write_text(gold.text())
        (folder / "gate.il").write_text(gate)
        try:
            run_yosys(
                _SCRIPT.format(top=gold.name, unknown="" if unknown else _NO_UNKNOWN, registers=_TO_PLAIN[reset]),
                folder,
                writes=["status.txt"],
                native=native,
                seconds=seconds,
            )
        except ToolError as error:
            if any(text in error.what for text in _REFUSED) or _LISTED.search(error.what):
                why = _unequal(_status(folder)) or error.what
                raise CheckError(f"{what} does not equal {than}: {why}", where="the proof") from None
            raise ToolError(f"yosys could not compare {than} with {what}: {error.what}", where="the proof") from None
        if not _PROVED.search(status := _status(folder)):
            ended = f"it ended with exit status 0 and wrote {status.strip()[-200:]!r}"
            raise ToolError(f"yosys could not compare {than} with {what}: {ended}", where="the proof")


def _status(folder: Path) -> str:
    path = folder / "status.txt"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _unequal(status: str) -> str:
    nets = dict.fromkeys(re.findall(r"Unproven \$equiv .*: \\?(\S+?)(?:_gold)?(?: \[\d+\])? ", status))
    ordered = sorted(nets, key=lambda name: int((re.search(r"\d+", name) or ["0"])[0]))
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return f"at {', '.join(ordered[:SHOWN])}{more}" if ordered else ""


def rtlil(netlist: Netlist, top: str) -> str:
    """Returns the netlist as RTLIL text: a module `top` with the ports and net names of the Verilog core."""
    writer = _RtlilWriter(netlist)
    for net, cell in enumerate(netlist.cells):
        writer.write(net, cell)
    return writer.text(top)


def _bits(value: int, width: int) -> str:
    return f"{width}'{value & ((1 << width) - 1):0{width}b}"


class _RtlilWriter:
    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.names = [net_name(net, cell) for net, cell in enumerate(netlist.cells)]
        self.inputs = {field.port: field for field in input_fields(netlist)}
        self.outputs = {field.port: field for field in output_fields(netlist)}
        self.lines: list[str] = []
        self.made = 0

    def text(self, top: str) -> str:
        x_bits = max(1, width_of(list(self.inputs.values())))
        y_bits = width_of(list(self.outputs.values()))
        ports = [f"wire width {x_bits} input 1 \\x", f"wire width {y_bits} output 2 \\y"]
        if self.netlist.latency:
            names = ["input 3 \\clk", "input 4 \\in_valid", "output 5 \\out_valid"]
            names += [f"input {place} \\{name}" for place, name in enumerate(self.netlist.clocking.ports, 6)]
            ports += [f"wire {name}" for name in names]
        for port, net in self.netlist.outputs:
            field = self.outputs.get(port)
            target = f"\\{port.name}" if field is None else f"\\y {_slice(field.offset, field.word.width)}"
            self.lines.append(f"connect {target} {self.signal(net)}")
        return "\n".join([f"module \\{top}", *(f"  {line}" for line in [*ports, *self.lines]), "end", ""])

    def signal(self, net: Net) -> str:
        cell, word = self.netlist.cells[net], self.netlist.types[net]
        return _bits(cell.value, word.width) if isinstance(cell, ir.Const) else f"\\{self.names[net]}"

    def extended(self, net: Net, width: int) -> str:
        cell, word = self.netlist.cells[net], self.netlist.types[net]
        if isinstance(cell, ir.Const):
            return _bits(cell.value, width)
        more = width - word.width
        if not more:
            return self.signal(net)
        top = f"{self.signal(net)} [{word.width - 1}] " * more if word.signed else f"{_bits(0, more)} "
        return f"{{ {top}{self.signal(net)} }}"

    def fresh(self, width: int) -> str:
        self.made += 1
        self.lines.append(f"wire width {width} $t{self.made}")
        return f"$t{self.made}"

    def cell(self, kind: str, parameters: dict[str, object], ports: dict[str, str]) -> None:
        self.made += 1
        self.lines.append(f"cell ${kind} $c{self.made}")
        self.lines += [f"  parameter \\{name} {value}" for name, value in parameters.items()]
        self.lines += [f"  connect \\{name} {value}" for name, value in ports.items()]
        self.lines.append("end")

    def binary(self, kind: str, a: str, b: str, y: str, width: int, y_width: int, signed: bool = False) -> None:
        sides = {"A_SIGNED": int(signed), "B_SIGNED": int(signed), "A_WIDTH": width, "B_WIDTH": width}
        self.cell(kind, {**sides, "Y_WIDTH": y_width}, {"A": a, "B": b, "Y": y})

    def write(self, net: Net, cell: Cell) -> None:
        word = self.netlist.types[net]
        y = f"\\{self.names[net]}"
        if isinstance(cell, ir.Const) or (isinstance(cell, ir.Input) and cell.port not in self.inputs):
            return
        self.lines += [f"attribute \\init {_bits(0, word.width)}"] * isinstance(cell, ir.Register)
        self.lines.append(f"wire width {word.width} {y}")
        self.connect(net, cell, word, y)

    def connect(self, net: Net, cell: Cell, word: WordType, y: str) -> None:
        types, signal = self.netlist.types, self.signal
        if isinstance(cell, SumCell):
            self.sum(cell, word, y)
            return
        if isinstance(cell, ir.Gate):
            self.binary(type(cell).__name__.lower(), signal(cell.a), signal(cell.b), y, 1, 1)
            return
        match cell:
            case ir.Const():
                pass
            case ir.Input(port):
                self.lines.append(f"connect {y} \\x {_slice(self.inputs[port].offset, word.width)}")
            case ir.Less(a, threshold):
                width = types[a].width
                self.binary("lt", signal(a), _bits(threshold, width), y, width, 1, types[a].signed)
            case ir.InSet(a, members):
                self.in_set(a, members, y)
            case ir.Not(a):
                self.cell(
                    "not", {"A_SIGNED": 0, "A_WIDTH": word.width, "Y_WIDTH": word.width}, {"A": signal(a), "Y": y}
                )
            case ir.Slice(a, low, width):  # as in `sum`, 0 is added
                part = f"{signal(a)} {_slice(low, width)}"
                self.lines.append(f"connect {y} {self.joined('add', [part, _bits(0, width)], width)}")
            case ir.Mux(select, a, b):
                self.cell("mux", {"WIDTH": word.width}, {"A": signal(b), "B": signal(a), "S": signal(select), "Y": y})
            case ir.Compare(a, b):
                self.binary("lt", signal(a), signal(b), y, types[a].width, 1, types[a].signed)
            case ir.Register(a):
                self.register(signal(a), word, y)
            case _:
                assert_never(cell)

    def register(self, d: str, word: WordType, y: str) -> None:
        kind, clocking = "dff", self.netlist.clocking
        parameters: dict[str, object] = {"WIDTH": word.width, "CLK_POLARITY": "1'1"}
        ports = {"CLK": "\\clk", "D": d, "Q": y}
        if clocking.reset != "none":
            kind, pin = ("sdff", "SRST") if clocking.reset == "sync" else ("adff", "ARST")
            parameters |= {f"{pin}_POLARITY": "1'1", f"{pin}_VALUE": _bits(0, word.width)}
            ports[pin] = "\\rst"
        if clocking.enable:
            kind += "e"
            parameters["EN_POLARITY"] = "1'1"
            ports["EN"] = "\\en"
        self.cell(kind, parameters, ports)

    def sum(self, cell: SumCell, word: WordType, y: str) -> None:
        terms, constant = linear(cell)
        addends = [self.extended(a, word.width) for a, factor in terms for _ in range(factor)]
        # yosys does not prove a net that only renames other bits, so 0 is added.
        if constant or len(addends) < 2:
            addends.append(_bits(constant, word.width))
        self.lines.append(f"connect {y} {self.joined('add', addends, word.width)}")

    def joined(self, kind: str, operands: list[str], width: int) -> str:
        total, *others = operands
        for operand in others:
            result = self.fresh(width)
            self.binary(kind, total, operand, result, width, width)
            total = result
        return total

    def in_set(self, a: Net, members: tuple[int, ...], y: str) -> None:
        width, equal = self.netlist.types[a].width, []
        for member in members:
            equal.append(self.fresh(1))
            self.binary("eq", self.signal(a), _bits(member, width), equal[-1], width, 1)
        self.lines.append(f"connect {y} {self.joined('or', equal, 1)}")


def _slice(low: int, width: int) -> str:
    return f"[{low + width - 1}:{low}]"
