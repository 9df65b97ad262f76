"""The Verilog of a core equals the netlist, for all time: read strictly, printed anew, compared by yosys."""

from __future__ import annotations

import time
from collections.abc import Callable

from forestc.backends.verilog import module_name
from forestc.checks.proof.core_simulation import wrong_cycle
from forestc.checks.proof.equality import prove_equal
from forestc.checks.proof.parts import Part, Proof
from forestc.checks.proof.rtlil import rtlil
from forestc.checks.proof.text import OutsideError, read_core
from forestc.errors import CheckError
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist

QUICK = 128  # inputs that are tried before yosys is asked
FEW = 100_000  # wires times clocks, for which that takes no time to speak of


def prove_verilog(
    forest: Forest,
    netlist: Netlist,
    data: bytes,
    proof: Proof | None = None,
    progress: Callable[[str], None] = lambda _: None,
    native: bool = False,
) -> Proof:
    """Proves a Verilog file equal to the netlist. It is refuted by inputs, clock by clock, for which it gives another
    result than the forest; what is outside of the Verilog that is read is neither proved nor refuted. Raises ToolError
    where yosys can't run."""
    proof = proof or Proof()
    progress("proof: the Verilog, net by net")
    part = Part("verilog", asked=1)
    proof.parts.append(part)
    start = time.perf_counter()
    top = module_name(netlist)
    told = None
    try:
        core = read_core(data)
        if core.name != top:
            raise OutsideError(1, f"the module is not {top}")
        if len(core.wires) * (1 + netlist.latency) <= FEW and (told := wrong_cycle(core, forest, netlist, QUICK)):
            raise CheckError("the netlist does not equal the Verilog", where=told)
        prove_equal(core, rtlil(netlist, top), "the netlist", native=native)
        part.proved = 1
    except OutsideError as error:
        part.why = str(error)
    except CheckError as error:
        part.why = f"{error.what}; {error.where}"
        if told is None and (told := wrong_cycle(core, forest, netlist)):
            part.why += f"; {told}"
        proof.refuted |= told is not None
    part.seconds = time.perf_counter() - start
    return proof
