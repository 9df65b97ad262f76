"""Proves a core's Verilog equal to the netlist: reads the file strictly, prints it again, and has yosys compare the
print with the netlist."""

from __future__ import annotations

from collections.abc import Callable

from forestc.backends.hdl import module_name
from forestc.checks.proof.core import OutsideError
from forestc.checks.proof.core_simulation import wrong_cycle
from forestc.checks.proof.equality import prove_equal
from forestc.checks.proof.parts import Proof, ProofPart, Running
from forestc.checks.proof.rtlil import rtlil
from forestc.checks.proof.text import read_core
from forestc.errors import CheckError
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist

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
    top = module_name(netlist)
    wrong = None
    with Running(proof, ProofPart("verilog", asked=1)) as part:
        try:
            core = read_core(data)
            if core.name != top:
                raise OutsideError(1, f"the module is not {top}")
            if len(core.wires) * (1 + netlist.latency) <= FEW and (wrong := wrong_cycle(core, forest, netlist, QUICK)):
                raise CheckError(f"the netlist does not equal the Verilog: {wrong}", where="the proof")
            prove_equal(core, rtlil(netlist, top), "the netlist", native=native)
            part.proved = 1
        except OutsideError as error:
            part.why = str(error)
        except CheckError as error:
            part.why = error.what
            if wrong is None and (wrong := wrong_cycle(core, forest, netlist)):
                part.why += f"; {wrong}"
            proof.refuted |= wrong is not None
    return proof
