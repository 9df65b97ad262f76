"""check --prove: proves that the generated Verilog equals the quantized forest, for every input at all times.

The proof has two halves: `netlist` proves the netlist equal to the forest, `verilog` the Verilog equal to the netlist.
"""

from forestc.checks.proof.design import need_provers, prove
from forestc.checks.proof.netlist import prove_netlist
from forestc.checks.proof.parts import Proof, ProofPart
from forestc.checks.proof.verilog import prove_verilog

__all__ = ["Proof", "ProofPart", "need_provers", "prove", "prove_netlist", "prove_verilog"]
