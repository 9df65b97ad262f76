"""check --prove: the written Verilog equals the quantised forest, for every input at all times.

Two halves meet at the netlist: `netlist` proves it equal to the forest, `verilog` proves the file equal to it.
"""

from forestc.checks.proof.design import need_provers, prove
from forestc.checks.proof.netlist import prove_netlist
from forestc.checks.proof.parts import Part, Proof
from forestc.checks.proof.verilog import prove_verilog

__all__ = ["Part", "Proof", "need_provers", "prove", "prove_netlist", "prove_verilog"]
