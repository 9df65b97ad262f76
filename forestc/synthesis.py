"""synth: what a compiled design takes on a device, by real synthesis, place and route."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forestc.backends.project import ProjectOptions
from forestc.design import Design
from forestc.errors import OptionError
from forestc.estimate import estimate
from forestc.toolchain.nextpnr import DEVICES, place
from forestc.toolchain.vendor import PROGRAMS, known_part, run_vendor
from forestc.toolchain.yosys import SYNTHESIS, find_yosys, synthesise, yosys_version
from hdl_templates import render

COUNTED = ("lut6", "xcup")  # synthesised, not placed


def synth(
    design: Design,
    device: str,
    *,
    native: bool = False,
    seed: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The figures of `forestc synth --json`.

    device: lut6 (any 6-input LUTs, no carry chains), xcup (UltraScale+), one nextpnr places, or vivado:PART and
    quartus:PART where those are on the PATH. lut, ff, carry, bram and depth are of the design as it is; fmax_mhz of the
    design between registers on all its ports, placed and routed. native: tools on the PATH before those from PyPI.
    Raises OptionError, ToolError.
    """
    known_device(device)
    tool, _, part = device.partition(":")
    if tool in PROGRAMS:
        return _vendor(design, device, tool, part, progress)
    source, core = design.path("verilog"), str(design.manifest["core"])
    target = device if device in SYNTHESIS else DEVICES[device][0]
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "core.v"
        file.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        start = time.perf_counter()
        progress(f"yosys for {device}")
        cells = synthesise([file], core, target, native=native)
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
        if device in DEVICES:
            start = time.perf_counter()
            progress(f"nextpnr for {device}")
            top = "forestc_registered"
            bits = {"x_bits": _width(design, "inputs"), "y_bits": _width(design, "outputs")}
            wrapper = Path(name) / "top.v"
            clocked, serial = bool(design.manifest["latency_cycles"]), target == "ice40"
            wrapper.write_text(
                render("synth/registered.v.j2", module=core, top=top, clocked=clocked, serial=serial, **bits)
            )
            synthesise([file, wrapper], top, target, netlist="top.json", native=native)
            placed = place(Path(name) / "top.json", device, native=native, seed=seed)
            seconds["place and route"] = round(time.perf_counter() - start, 3)
            figures["fmax_mhz"] = round(placed.fmax_mhz, 2)
            figures["placed"] = {"used": placed.used, "available": placed.available}
            figures["tools"].append(placed.version)
    figures["estimate"] = estimate(design, device)
    return figures | {"latency_cycles": design.manifest["latency_cycles"], "seconds": seconds}


def known_device(device: str) -> None:
    """Raises OptionError for a device that `synth` does not know."""
    tool, _, part = device.partition(":")
    if device not in COUNTED and device not in DEVICES and not (tool in PROGRAMS and part):
        known = ", ".join([*COUNTED, *DEVICES, *(f"{tool}:PART" for tool in PROGRAMS)])
        raise OptionError(f"unknown device {device!r}", do=f"known: {known}")
    if tool in PROGRAMS:
        known_part(tool, part)


def _vendor(design: Design, device: str, tool: str, part: str, progress: Callable[[str], None]) -> dict[str, Any]:
    """The same figures by the design's own script, at its clock. The design's folder stays as it is."""
    period = ProjectOptions(clock_mhz=design.manifest["options"].get("clock_mhz")).period_ns
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / design.path(tool).name
        for role in (tool, "verilog", "registered", "xdc"):
            shutil.copy(design.path(role), name)
        start = time.perf_counter()
        progress(f"{tool} for {part}")
        told = run_vendor(tool, part, script, design.path("registered").stem, period_ns=period)
        seconds = round(time.perf_counter() - start, 3)
    return {
        "device": device,
        "lut": told.lut,
        "ff": told.flip_flops,
        "carry": told.carry,
        "bram": told.memory,
        "depth": told.depth,
        "fmax_mhz": round(told.fmax_mhz, 2),
        "tools": [told.version],
        "placed": {"used": told.used, "available": told.available},
        "latency_cycles": design.manifest["latency_cycles"],
        "seconds": {"synthesis, place and route": seconds},
    }


def _width(design: Design, side: str) -> int:
    from forestc.backends.ports import input_fields, output_fields, width_of

    fields = input_fields(design.netlist) if side == "inputs" else output_fields(design.netlist)
    return max(1, width_of(fields))
