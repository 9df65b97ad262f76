"""Proves with yosys that Verilog and RTLIL (yosys's own text form) describe the same netlist.

Nets have the same names in both, so each is proved from the nets that it reads. Only yosys's report counts, not its
exit status.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Protocol

from forestc.backends import amaranth, hdl, verilog
from forestc.checks.proof.text import read_core
from forestc.errors import CheckError, ToolError
from forestc.netlist.ir import Netlist
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
# Matches the end of status.txt: all nets are proved, or none was left to prove.
_PROVED = re.compile(
    r"(?:Found (\d+) \$equiv cells in equiv:\n  Of those cells \1 are proven and 0 are unproven\.\n"
    r"  Equivalence successfully proven!|No \$equiv cells found in equiv\.)\n\Z"
)
_NO_UNKNOWN = "select -assert-none t:$any*"  # yosys command that refuses unknown bits
SHOWN = 3  # limits the nets named in an error message
_REFUSED = ("unproven", "Assertion failed", "No matching port", "problems in 'check -assert'", "selection is not empty")


def prove_component(netlist: Netlist, *, seconds: float = 3600) -> None:
    """Proves the Amaranth component of a netlist equal to the netlist's Verilog. Raises CheckError if they differ,
    MissingExtraError without Amaranth, ToolError if yosys fails."""
    component = amaranth.module(netlist)
    from amaranth.back import rtlil

    top = hdl.module_name(netlist)
    gate: str = component.convert(rtlil)
    core = read_core(verilog.emit(netlist)[f"{top}.v"].encode())
    prove_equal(core, gate, "the Amaranth component", seconds=seconds)


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
    native: bool = False,
    seconds: float = 3600,
) -> None:
    """Proves a Verilog module `gold` and an RTLIL module `gate` equal for all inputs. unknown: True if gold may have
    undefined bits. Raises CheckError if the modules may differ, ToolError if yosys fails."""
    # yosys would give a register without an initial value the other side's value.
    if start := re.search(r"attribute \\init \d+'[01]*[^01\s].*", gate):
        raise CheckError(f"{what} does not equal {than}: a register starts unknown: {start.group()}", where="the proof")
    with tempfile.TemporaryDirectory(prefix="forestc-prove-") as scratch:
        folder = Path(scratch)
        (folder / "gold.v").write_text(gold.text())
        (folder / "gate.il").write_text(gate)
        try:
            run_yosys(
                _SCRIPT.format(top=gold.name, unknown="" if unknown else _NO_UNKNOWN),
                folder,
                writes=["status.txt"],
                native=native,
                seconds=seconds,
            )
        except ToolError as error:
            if any(text in error.what for text in _REFUSED):
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
