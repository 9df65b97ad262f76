"""The proof of a compiled folder."""

from __future__ import annotations

from collections.abc import Callable

from forestc.checks.proof.netlist import prove_netlist
from forestc.checks.proof.parts import Proof
from forestc.checks.proof.verilog import prove_verilog
from forestc.design import Design


def prove(design: Design, progress: Callable[[str], None] = lambda _: None, *, native: bool = False) -> Proof:
    """Proves what a compiled folder holds equal to its quantised forest: netlist, and Verilog where it is a target.

    Raises MissingExtraError without bitwuzla, ToolError where yosys can't run.
    """
    proof = prove_netlist(design.forest, design.netlist, design.witness, progress=progress)
    if "verilog" in design.targets:
        prove_verilog(design.forest, design.netlist, design.path("verilog").read_bytes(), proof, progress, native)
    return proof
