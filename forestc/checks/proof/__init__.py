"""check --prove: proves that the generated Verilog or VHDL equals the quantized forest, for every input at all times.

The proof has two halves: `netlist` proves the netlist equal to the forest; `verilog` and `vhdl` prove the generated
files equal to the netlist. For an engine, `engine` proves its Verilog module `step` and its image.
"""

from forestc.checks.proof.design import need_provers, prove
from forestc.checks.proof.engine import prove_engine, prove_image
from forestc.checks.proof.netlist import prove_netlist
from forestc.checks.proof.parts import Proof, ProofPart
from forestc.checks.proof.verilog import prove_verilog
from forestc.checks.proof.vhdl import prove_vhdl

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
