"""Implements `synth`: size and clock rate of a design on a device, by synthesis and place and route."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from forestc.compilation.synthesis import Circuit, check_fits, known_device, need_tools, synthesis_figures
from forestc.engine.folder import CAPACITY
from forestc.errors import ForestcError, OptionError
from forestc.manifest.design import MANIFEST, Design, open_design
from forestc.options.commands import SynthOptions
from forestc.options.fields import takes
from forestc.report.tables import Shown, synth_tables, table
from forestc.toolchain.vendor import PROGRAMS


@takes(SynthOptions)
def synth(options: SynthOptions) -> Shown:
    """The figures of `forestc synth --json` for a compiled design: a Design or its folder.

    device: lut6 (any 6-input LUTs, no carry chains), xcup (UltraScale+), one that nextpnr supports, vivado:PART or
    quartus:PART if the tool is on the PATH, or a board's name (`forestc.costs.boards`). lut, ff, carry, bram and depth
    count the design itself; fmax_mhz is measured after place and route with registers on all ports. stream: the design
    with its stream wrapper, as it goes on the chip. record: add the figures to measured.json in the folder
    (`Design.results`). native: prefer tools on the PATH to those from PyPI. seed: of the placer. try_anyway: synthesize
    also a design whose estimate exceeds the device. route: whether it is placed and routed; without, fmax_mhz is None
    (vendors' tools always do). Raises OptionError for an unknown device, ToolError for a missing or failing tool,
    ForestcError for a design too large for the device.
    """
    options = replace(options, device=known_device(options.device))
    tool = options.device.partition(":")[0]
    if tool in PROGRAMS and options.stream:
        raise OptionError(
            f"{tool}'s script times the core alone", where="--stream", do="leave --stream out, or give another device"
        )
    need_tools(options.device, options.native)
    design = options.design if isinstance(options.design, Design) else _opened(Path(options.design))
    if "engine" in design.targets and not design.has_hardware:
        raise _of_engine(design.folder)
    if options.stream and "stream" not in design.manifest:
        raise OptionError("the design has no stream wrapper", where=str(design.folder), do="compile with --stream")
    design.path("verilog")  # A design without Verilog raises here.
    circuit = Circuit.of(design)
    if not options.try_anyway:
        check_fits(circuit.netlist, options.device)
    figures = synthesis_figures(circuit, options)
    changed = [path for path in design.changed_files() if path.endswith((".v", ".vhd"))]
    notes = [f"{path} changed after forestc wrote it: the figures are those of the changed file" for path in changed]
    note = design.record("synth", figures, stream=options.stream) if options.record else ""
    name = str(design.manifest["name"])
    figures |= {"notes": [*notes, *([note] if note else [])]}
    return Shown(figures, partial(synth_tables, name, make_table=table))


def _opened(folder: Path) -> Design:
    if (folder / CAPACITY).is_file() and not (folder / MANIFEST).exists():
        raise _of_engine(folder)
    return open_design(folder)


def _of_engine(folder: Path) -> ForestcError:
    return ForestcError(
        "holds an engine, and synth takes unrolled designs alone", where=str(folder),
        do="synthesize its Verilog with your tool, or compile with --target verilog",
    )  # fmt: skip
