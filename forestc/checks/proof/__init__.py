"""Proves that the generated Verilog and VHDL equal the quantized forest for every input (`check --prove`).

The netlist is proved equal to the forest, then the files to the netlist. `engine` proves a loadable engine.
"""

from forestc.checks.proof.design import need_provers, prove, prove_verilog, prove_vhdl
from forestc.checks.proof.engine import prove_engine, prove_image
from forestc.checks.proof.netlist import prove_netlist
from forestc.checks.proof.parts import Proof, ProofPart

__all__ = [
    "Proof",
    "ProofPart",
    "need_provers",
    "prove",
    "prove_engine",
    "prove_image",
    "prove_netlist",
    "prove_verilog",
    "prove_vhdl",
]
