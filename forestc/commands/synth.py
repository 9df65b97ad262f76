"""synth: area and clock rate of a compiled design on a device, by synthesis and place and route."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from forestc.backends.project import ProjectOptions
from forestc.compilation.synthesis import STREAM_CLOCKS, check_fits, known_device, need_tools, registered, sources
from forestc.costs.devices import DEVICES
from forestc.costs.estimate import estimate, estimated
from forestc.engine.folder import CAPACITY
from forestc.errors import ForestcError, OptionError, ToolError
from forestc.manifest.design import MANIFEST, Design, open_design
from forestc.options.commands import SynthOptions
from forestc.options.fields import takes
from forestc.options.shared import Progress
from forestc.report.tables import Shown, synth_tables, table
from forestc.toolchain.nextpnr import place
from forestc.toolchain.vendor import PROGRAMS, run_vendor
from forestc.toolchain.yosys import find_yosys, synthesize, yosys_version


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
    device, native, progress = options.device, options.native, options.progress
    tool, _, part = device.partition(":")
    if tool in PROGRAMS and options.stream:
        raise OptionError(f"{tool}'s script times the core alone", do="leave --stream out, or give another device")
    need_tools(device, native)
    design = options.design if isinstance(options.design, Design) else _opened(Path(options.design))
    if "engine" in design.targets and not design.has_hardware:
        raise _of_engine(design.folder)
    if options.stream and "stream" not in design.manifest:
        raise OptionError("the design has no stream wrapper", where=str(design.folder), do="compile with --stream")
    design.path("verilog")  # a design without it is refused here
    if not options.try_anyway:
        check_fits(design.netlist, device)
    figures = _vendor(design, device, tool, part, progress) if tool in PROGRAMS else _open(design, options)
    changed = [path for path in design.changed_files() if path.endswith((".v", ".vhd"))]
    notes = [f"{path} changed after forestc wrote it: the figures are those of the changed file" for path in changed]
    note = design.record("synth", figures, stream=options.stream) if options.record else ""
    name = str(design.manifest["name"])
    figures |= {"notes": [*notes, *([note] if note else [])]}
    return Shown(figures, partial(synth_tables, name, made=table))


def _opened(folder: Path) -> Design:
    """The design in a folder. Raises ForestcError, also for the folder of an engine."""
    if (folder / CAPACITY).is_file() and not (folder / MANIFEST).exists():
        raise _of_engine(folder)
    return open_design(folder)


def _of_engine(folder: Path) -> ForestcError:
    return ForestcError(
        "holds an engine, and synth takes unrolled designs alone", where=str(folder),
        do="synthesize its Verilog with your tool, or compile with --target verilog",
    )  # fmt: skip


def _open(design: Design, options: SynthOptions) -> dict[str, Any]:
    """The figures of `synth` by yosys and nextpnr."""
    device, native, progress, stream = options.device, options.native, options.progress, options.stream
    wanted = DEVICES[device]
    family = wanted.family
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        module, files = sources(design, Path(name), stream=stream)
        start = time.perf_counter()
        progress(f"yosys for {device}")
        cells = synthesize(files, module, family.synthesis, native=native)
        seconds["synthesis"] = round(time.perf_counter() - start, 3)
        command = find_yosys(native)
        assert command is not None
        figures: dict[str, Any] = {
            "device": device,
            "lut": cells.lut,
            "ff": cells.flip_flops,
            "carry": cells.carry,
            "bram": cells.memory,
            "depth": cells.depth,
            "fmax_mhz": None,
            "tools": [yosys_version(command, Path(name))],
        }
        if wanted.nextpnr and options.route:
            start = time.perf_counter()
            progress(f"nextpnr for {device}")
            top = registered(design, Path(name), files, wanted, native, stream=stream)
            try:
                placed = place(top, family.nextpnr, wanted.nextpnr, family.logic_cell, native=native, seed=options.seed)
            except ToolError as error:
                what = error.what
                if "does not fit" in what:
                    used = f"{cells.lut:,} LUTs and {cells.flip_flops:,} flip-flops of {wanted.cells:,} logic cells"
                    what += f" on {device}, where it takes {used}"
                raise ToolError(what, where=error.where, do=error.do) from None
            seconds["place and route"] = round(time.perf_counter() - start, 3)
            figures["fmax_mhz"] = None if placed.fmax_mhz is None else round(placed.fmax_mhz, 2)
            figures["placed"] = {"used": placed.used, "available": placed.available}
            figures["tools"].append(placed.version)
    figures["estimate"] = estimate(design.netlist, device) if estimated(device) and not stream else None
    latency = int(design.manifest["latency_cycles"]) + (STREAM_CLOCKS if stream else 0)
    return figures | {"latency_cycles": latency, "stream": stream, "seconds": seconds}


def _vendor(design: Design, device: str, tool: str, part: str, progress: Progress) -> dict[str, Any]:
    """The figures of `synth` by the design's vendor script, at its clock rate. The design's folder is not changed."""
    period = ProjectOptions(clock_mhz=design.manifest["options"].get("clock_mhz")).period()
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / design.path(tool).name
        for role in (tool, "verilog", "registered", "xdc"):
            shutil.copy(design.path(role), name)
        start = time.perf_counter()
        progress(f"{tool} for {part}")
        reported = run_vendor(tool, part, script, design.path("registered").stem, period_ns=period)
        seconds = round(time.perf_counter() - start, 3)
    return {
        "device": device,
        "lut": reported.lut,
        "ff": reported.flip_flops,
        "carry": reported.carry,
        "bram": reported.memory,
        "depth": reported.depth,
        "fmax_mhz": round(reported.fmax_mhz, 2),
        "tools": [reported.version],
        "placed": {"used": reported.used, "available": reported.available},
        "latency_cycles": design.manifest["latency_cycles"],
        "seconds": {"synthesis, place and route": seconds},
    }
