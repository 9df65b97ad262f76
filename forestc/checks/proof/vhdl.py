"""Proves a core's VHDL equal to the netlist: GHDL translates it to Verilog, and yosys compares the Verilog with the
netlist.

Tools may read some VHDL in different ways, so every line must first match a form that forestc writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from forestc.backends.hdl import module_name
from forestc.checks.proof.equality import prove_equal
from forestc.checks.proof.parts import Proof, ProofPart, Running
from forestc.checks.proof.rtlil import rtlil
from forestc.errors import CheckError
from forestc.netlist.ir import Netlist
from forestc.toolchain.ghdl import as_verilog

_NET = r"(?:x\d+(?:_[A-Za-z0-9_]+)?|[cnr]\d+|sum\d+)"
_TABLE = r"SUM[_x\dPLUS]+_BIT\d+"
_TYPE = r"(?:std_logic|(?:unsigned|signed|std_logic_vector)\(\d+ downto 0\))"
_WORDS = r"x|in_valid|and|or|not|when|else|downto|to_integer|resize|unsigned'|unsigned|signed|std_logic_vector"
_TOKEN = rf"(?:{_NET}|{_TABLE}|{_WORDS}|\d+|'[01]'|\"[01]+\"|[()&+<=,])"
_VALUE = rf"(?:{_TOKEN}(?: |(?=[(),;'\"])|(?<=[(])))+"
_HEAD = (
    r"(?: Entity \w+: \d+ trees, \d+ nodes"
    r"| VHDL-93, no vendor primitives\. Latency \d+ cycle\(s\), initiation interval 1\."
    r"| Written by forestc; change the model and compile again rather than this file\.| [xy], \d+ bits: the [a-z' ]+"
    r"|   \[\d+:\d+\] \w+: [ -~]*|   none: the result is constant)?"
)
_NOTE = rf"(?:  -- {_NET} < -?\d+(?:, tree \d+, node \d+)?)?"
_FORMS = (
    rf"--{_HEAD}",
    r"library ieee;|use ieee\.(?:std_logic_1164|numeric_std)\.all;",
    r"(?P<once>entity \w+ is|architecture rtl of \w+ is|    process \(clk\))",
    r"    port \(|        (?:clk|in_valid) : in std_logic;|        out_valid : out std_logic;",
    r"        (?:x : in|y : out) std_logic_vector\(\d+ downto 0\);?",
    rf"    signal {_NET} : {_TYPE}(?: := (?:'0'|\(others => '0'\)))?;|    constant {_TABLE} : {_TYPE} := \"[01]+\";",
    rf"    (?:        )?(?:{_NET}|out_valid|y\(\d+(?: downto \d+)?\)) <= {_VALUE};{_NOTE}",
    r"begin|    begin|        if rising_edge\(clk\) then|        end if;|    end process;|    \);",
    r"end (?:entity|architecture);|",
)
_LINES = re.compile("|".join(_FORMS))


@dataclass(frozen=True)
class _Synthesized:
    """GHDL's translation of a VHDL file to Verilog. name: the module's name."""

    name: str
    verilog: str

    def text(self) -> str:
        return self.verilog


def outside(data: bytes) -> str:
    """Returns a message on the first line with a form that forestc does not write; "" if there is none."""
    once: set[str] = set()
    for number, line in enumerate(data.split(b"\n"), 1):
        match = _LINES.fullmatch(line.decode("latin-1"))
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
    top = module_name(netlist)
    with Running(proof, ProofPart("vhdl", asked=1)) as part:
        part.why = outside(data)
        if not part.why:
            try:
                gold = _Synthesized(top, as_verilog([data], top))
                # yosys takes the unreachable default of GHDL's tables for unknown bits.
                prove_equal(gold, rtlil(netlist, top), "the netlist", than="the VHDL", unknown=True, native=native)
                part.proved = 1
            except CheckError as error:
                part.why = error.what
    return proof
