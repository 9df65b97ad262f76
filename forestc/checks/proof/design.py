"""Proves a compiled folder's netlist, Verilog, VHDL and loadable engine equal to the quantized forest.

Verilog is read strictly and printed again, and yosys compares the print with the netlist. GHDL translates VHDL to
Verilog; as tools may read some VHDL in different ways, every line must first match a form that forestc writes.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from forestc.backends.base import Gives
from forestc.backends.hdl import SENTENCES, module_name
from forestc.backends.table import file_of, gives
from forestc.checks.proof.core import wrong_cycle
from forestc.checks.proof.engine import prove_engine
from forestc.checks.proof.equality import prove_equal, rtlil
from forestc.checks.proof.netlist import prove_netlist
from forestc.checks.proof.parts import Proof, ProofPart, Running
from forestc.checks.proof.solver import no_bitwuzla
from forestc.checks.proof.verilog_text import OutsideError, read_core
from forestc.errors import CheckError
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.netlist.ir import Netlist
from forestc.netlist.ports import Reset
from forestc.toolchain.ghdl import as_verilog, need_ghdl
from forestc.toolchain.yosys import need_yosys

QUICK = 128  # inputs simulated before yosys runs
FEW = 100_000  # limits wires times clocks; the Verilog of larger designs is not simulated before yosys runs


def prove_verilog(
    forest: Forest,
    netlist: Netlist,
    data: bytes,
    proof: Proof | None = None,
    progress: Callable[[str], None] = lambda _: None,
    native: bool = False,
) -> Proof:
    """Proves a Verilog file equal to the netlist. A wrong result refutes the file; a line that the reader refuses
    leaves the proof undecided. Raises ToolError if yosys fails."""
    proof = proof or Proof()
    progress("proof: the Verilog, net by net")
    top, reset, wrong = module_name(netlist), netlist.clocking.reset, None
    with Running(proof, ProofPart("verilog", asked=1)) as part:
        try:
            core = read_core(data)
            if core.name != top:
                raise OutsideError(1, f"the module is not {top}")
            if len(core.wires) * (1 + netlist.latency) <= FEW and (wrong := wrong_cycle(core, forest, netlist, QUICK)):
                raise CheckError(f"the netlist does not equal the Verilog: {wrong}", where="the proof")
            prove_equal(core, rtlil(netlist, top), "the netlist", reset=reset, native=native)
            part.proved = 1
        except OutsideError as error:
            part.why = str(error)
        except CheckError as error:
            part.why = error.what
            if wrong is None and (wrong := wrong_cycle(core, forest, netlist)):
                part.why += f"; {wrong}"
            proof.refuted |= wrong is not None
    return proof


_NET = r"(?:x\d+(?:_[A-Za-z0-9_]+)?|[cnr]\d+|sum\d+)"
_TABLE = r"SUM[_x\dPLUS]+_BIT\d+"
_TYPE = r"(?:std_logic|(?:unsigned|signed|std_logic_vector)\(\d+ downto 0\))"
_WORDS = r"x|in_valid|and|or|not|when|else|downto|to_integer|resize|unsigned'|unsigned|signed|std_logic_vector"
_TOKEN = rf"(?:{_NET}|{_TABLE}|{_WORDS}|\d+|'[01]'|\"[01]+\"|[()&+<=,])"
_VALUE = rf"(?:{_TOKEN}(?: |(?=[(),;'\"])|(?<=[(])))+"
_SENTENCES = "|".join(f" {re.escape(line)}" for line in sorted(SENTENCES))
_HEAD = (
    r"(?: Entity \w+: \d+ trees, \d+ nodes"
    r"| VHDL-93, no vendor primitives\. Latency \d+ cycle\(s\), initiation interval 1\."
    r"| Written by forestc; change the model and compile again rather than this file\.| [xy], \d+ bits: the [a-z' ]+"
    rf"|   \[\d+:\d+\] \w+: [ -~]*|   none: the result is constant|{_SENTENCES})?"
)
_NOTE = rf"(?:  -- {_NET} < -?\d+(?:, tree \d+, node \d+)?)?"
_ZERO = r"(?:'0'|\(others => '0'\))"
_FORMS = (
    rf"--{_HEAD}",
    r"library ieee;|use ieee\.(?:std_logic_1164|numeric_std)\.all;",
    r"(?P<once>entity \w+ is|architecture rtl of \w+ is|    process \(LIST\))",
    r"    port \(|        (?:clk|rst|en|in_valid) : in std_logic;|        out_valid : out std_logic;",
    r"        (?:x : in|y : out) std_logic_vector\(\d+ downto 0\);?",
    rf"    signal {_NET} : {_TYPE}(?: := {_ZERO})?;|    constant {_TABLE} : {_TYPE} := \"[01]+\";",
    rf"    (?:    ){{2,3}}r\d+ <= {_ZERO};",
    rf"    (?:(?:    ){{2,3}})?(?:{_NET}|out_valid|y\(\d+(?: downto \d+)?\)) <= {_VALUE};{_NOTE}",
    r"begin|    begin|        (?:els)?if rising_edge\(clk\) then|        (?:    )?if rst = '1' then",
    r"            (?:(?:els)?if en = '1' then|else)|        (?:    )?end if;|    end process;|    \);",
    r"end (?:entity|architecture);|",
)


@cache
def _lines(reset: Reset) -> re.Pattern[str]:
    events = "clk, rst" if reset == "async" else "clk"
    return re.compile("|".join(_FORMS).replace("LIST", events))


@dataclass(frozen=True)
class _Synthesized:
    """GHDL's translation of a VHDL file to Verilog. name: the module's name."""

    name: str
    verilog: str

    def text(self) -> str:
        return self.verilog


def outside(data: bytes, reset: Reset = "none") -> str:
    """Returns a message on the first line with a form that forestc does not write; "" if there is none. reset: that of
    the netlist; tools read an asynchronous reset without `rst` in the process's list in different ways."""
    once: set[str] = set()
    lines = _lines(reset)
    for number, line in enumerate(data.split(b"\n"), 1):
        match = lines.fullmatch(line.decode("latin-1"))
        if match is None or not match[0].isascii():
            return f"line {number} is outside the VHDL that the proof reads"
        if match["once"]:
            kind = match["once"].split()[0]
            if kind in once:
                return f"line {number} is outside the VHDL that the proof reads (a second {kind})"
            once.add(kind)
    return ""


def prove_vhdl(
    netlist: Netlist,
    data: bytes,
    proof: Proof | None = None,
    progress: Callable[[str], None] = lambda _: None,
    native: bool = False,
) -> Proof:
    """Proves a VHDL file equal to the netlist; a failure leaves the proof undecided. Raises MissingToolError without
    GHDL, ToolError if GHDL or yosys fails."""
    proof = proof or Proof()
    progress("proof: the VHDL, net by net")
    top, reset = module_name(netlist), netlist.clocking.reset
    with Running(proof, ProofPart("vhdl", asked=1)) as part:
        part.why = outside(data, reset)
        if not part.why:
            try:
                gold = _Synthesized(top, as_verilog([data], top))
                # yosys takes the unreachable default of GHDL's tables for unknown bits.
                gate = rtlil(netlist, top)
                prove_equal(gold, gate, "the netlist", than="the VHDL", unknown=True, reset=reset, native=native)
                part.proved = 1
            except CheckError as error:
                part.why = error.what
    return proof


def need_provers(design: Design, native: bool = False) -> None:
    """Raises MissingToolError if a tool for the design's proof is missing: bitwuzla, yosys or GHDL."""
    if importlib.util.find_spec("bitwuzla") is None:
        raise no_bitwuzla()
    if gives(design.targets, Gives.VERILOG, Gives.VHDL, Gives.WALKERS):
        need_yosys(native)
    if gives(design.targets, Gives.VHDL):
        need_ghdl()


def prove(design: Design, progress: Callable[[str], None] = lambda _: None, *, native: bool = False) -> Proof:
    """Proves a folder's netlist, Verilog, VHDL and engine, if present, equal to the quantized forest. Raises
    MissingToolError or, if yosys or GHDL fails, ToolError."""
    need_provers(design, native)
    proof = Proof()
    if design.has_hardware or not gives(design.targets, Gives.WALKERS):
        proof = prove_netlist(design.forest, design.netlist, design.witness, progress=progress)
    if gives(design.targets, Gives.VERILOG):
        text = file_of(design, Gives.VERILOG).read_bytes()
        prove_verilog(design.forest, design.netlist, text, proof, progress, native)
    if gives(design.targets, Gives.VHDL):
        prove_vhdl(design.netlist, file_of(design, Gives.VHDL).read_bytes(), proof, progress, native)
    if gives(design.targets, Gives.WALKERS):
        prove_engine(design, proof, progress, native)
    return proof
