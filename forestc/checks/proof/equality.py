"""Proves with yosys that two descriptions of one netlist are equal: the generated Verilog, and RTLIL of the netlist
itself or of the Amaranth component.

Both use the same names for nets, so equality is proved net by net, each from the nets it reads. Mostly these are equal
cells on equal nets, which need no solver; different cells are a small SAT problem.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from forestc.backends import amaranth, verilog
from forestc.checks.proof.text import Core, read_core
from forestc.errors import CheckError, ToolError
from forestc.netlist.ir import Netlist
from forestc.toolchain.yosys import run_yosys

_SCRIPT = """
read_verilog gold.v
hierarchy -check -top {top}
proc
# refuses several drivers, and unknown bits, which a solver may choose freely
check -assert
setundef -anyseq
select -assert-none t:$any*
rename {top} gold
read_rtlil gate.il
proc
rename {top} gate
# refuses different ports, which later commands would ignore
miter -equiv gold gate ports
delete ports
opt_clean
equiv_make gold gate equiv
cd equiv
opt_expr
# later commands prove steps from one clock cycle to the next; here all registers must start at 0
simplemap t:$dff
select -assert-none t:$*dff*
select -assert-none t:$_DFF_* %co1:+[Q] t:* %d a:init %d
# and all must be clocked by the rising edge of the one clock
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
SHOWN = 3  # nets named in an error
_REFUSED = ("unproven", "Assertion failed", "No matching port", "problems in 'check -assert'", "selection is not empty")


def prove_component(netlist: Netlist, *, seconds: float = 3600) -> None:
    """Proves the Amaranth component of a netlist equal to its Verilog, for all inputs at all times.

    Raises CheckError if they differ, MissingExtraError without Amaranth, ToolError without yosys.
    """
    component = amaranth.module(netlist)
    from amaranth.back import rtlil

    top = verilog.module_name(netlist)
    gate: str = component.convert(rtlil)
    core = read_core(verilog.emit(netlist)[f"{top}.v"].encode())
    prove_equal(core, gate, "the Amaranth component", seconds=seconds)


def prove_equal(gold: Core, gate: str, what: str, *, native: bool = False, seconds: float = 3600) -> None:
    """Proves a core (gold) and RTLIL (gate) equal for all inputs at all times. Both modules have the core's name.

    what: the name of the gate in errors. Raises CheckError if yosys does not find them equal, ToolError if it can't
    run.
    """
    if start := re.search(r"attribute \\init \d+'[01]*[^01\s].*", gate):  # yosys would give it the value of the other
        raise CheckError(f"{what} does not equal the Verilog", where=f"a register starts unknown: {start.group()}")
    with tempfile.TemporaryDirectory(prefix="forestc-prove-") as scratch:
        folder = Path(scratch)
        (folder / "gold.v").write_text(gold.text())
        (folder / "gate.il").write_text(gate)
        try:
            run_yosys(_SCRIPT.format(top=gold.name), folder, native=native, seconds=seconds)
        except ToolError as error:
            if any(text in error.where for text in _REFUSED):
                where = _unequal(folder / "status.txt") or error.where
                raise CheckError(f"{what} does not equal the Verilog", where=where) from None
            raise ToolError(f"yosys could not compare the Verilog with {what}", where=error.where) from None


def _unequal(status: Path) -> str:
    """The first nets that yosys could not prove equal, by their names in the Verilog; "" if there are none."""
    if not status.is_file():
        return ""
    nets = dict.fromkeys(re.findall(r"Unproven \$equiv .*: \\?(\S+?)(?:_gold)?(?: \[\d+\])? ", status.read_text()))
    ordered = sorted(nets, key=lambda name: int((re.search(r"\d+", name) or ["0"])[0]))
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return f"at {', '.join(ordered[:SHOWN])}{more}" if ordered else ""
