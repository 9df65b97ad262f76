"""What other tools need beside the Verilog: scripts for Vivado, Quartus and yosys, a clock constraint, a FuseSoC core.

The scripts count the cells of the core as it is, and place and route it between registers on all its ports
(`NAME_registered`), out of context, so that every tool gives the figures of `forestc synth`.
"""

from __future__ import annotations

from collections.abc import Mapping

from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.verilog import module_name
from forestc.netlist.ir import Netlist
from hdl_templates import render

VIVADO_PART, QUARTUS_PART, ECP5 = "xcku5p-ffvb676-2-e", "5CSEBA6U23I7", "85k"
PERIOD_NS = 2.0


def emit(netlist: Netlist, sources: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """{role: (path, text)}, for the folder of the Verilog files.

    sources: role to file name of what lies there: verilog, and if there are some
    testbench, vectors, axi_stream, axi_lite. Parts and clock are variables in the scripts,
    which arguments set. Same input, same bytes.
    """
    module = module_name(netlist)
    view = {
        "module": module,
        "core": sources["verilog"],
        "top": f"{module}_registered",
        "wrapper": [sources[role] for role in ("axi_stream", "axi_lite") if role in sources],
        "bench": [sources[role] for role in ("testbench", "vectors") if role in sources],
        "clocked": bool(netlist.latency),
        "x_bits": max(1, width_of(input_fields(netlist))),
        "y_bits": max(1, width_of(output_fields(netlist))),
        "serial": False,
        "period": f"{PERIOD_NS:.3f}",
        "vivado_part": VIVADO_PART,
        "quartus_part": QUARTUS_PART,
        "ecp5": ECP5,
    }
    written = {
        "registered": (f"{module}_registered.v", "synth/registered.v.j2"),
        "vivado": ("vivado.tcl", "synth/vivado.tcl.j2"),
        "quartus": ("quartus.tcl", "synth/quartus.tcl.j2"),
        "yosys": ("yosys.ys", "synth/yosys.ys.j2"),
        "xdc": (f"{module}.xdc", "synth/clock.xdc.j2"),
        "sdc": (f"{module}.sdc", "synth/clock.sdc.j2"),
        "fusesoc": (f"{module}.core", "synth/fusesoc.core.j2"),
    }
    return {role: (path, render(template, **view)) for role, (path, template) in written.items()}
