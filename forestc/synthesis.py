"""synth: area and clock rate of a compiled design on a device, by synthesis and place and route."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forestc.costs.devices import DEVICES, Device
from forestc.costs.estimate import estimate, estimated
from forestc.errors import ForestcError, OptionError
from forestc.manifest.design import Design
from forestc.netlist.ir import Net, Netlist
from forestc.toolchain.nextpnr import Placed, PlacedCell, need_nextpnr, place, placed_cells
from forestc.toolchain.vendor import PROGRAMS, known_part, need_vendor
from forestc.toolchain.yosys import need_yosys, synthesize
from hdl_templates import render

PLACED_ON = "ecp5-25k"  # designs for no device, or for one that is not placed


@dataclass(frozen=True)
class Placement:
    """A placed design. cells: each with the net of the design's netlist that it drives, or the nearest behind it that
    has a name; None for the registers on the ports."""

    device: str
    placed: Placed
    cells: tuple[tuple[PlacedCell, Net | None], ...]


_NET = re.compile(r"core\.(?!x\d)[a-z]+(\d{1,9})(?![0-9a-zA-Z])")


def placement(
    design: Design,
    device: str | None = None,
    *,
    native: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Placement:
    """Where place and route puts the cells of a design. device: one that nextpnr supports; by default the design's own,
    else `PLACED_ON`. Raises OptionError, ToolError, and ForestcError for a design too large for the device."""
    given = design.manifest["options"].get("device")
    device = device or (given if given in DEVICES and DEVICES[given].nextpnr else PLACED_ON)
    known_device(device)
    if device not in DEVICES or not DEVICES[device].nextpnr:
        supported = ", ".join(name for name, one in DEVICES.items() if one.nextpnr)
        raise OptionError(f"designs are not placed for {device!r}", do=f"use one of {supported}")
    need_tools(device, native)
    check_fits(design.netlist, device)
    wanted = DEVICES[device]
    with tempfile.TemporaryDirectory() as name:
        progress(f"yosys for {device}")
        (Path(name) / "core.v").write_text(design.path("verilog").read_text(encoding="utf-8"), encoding="utf-8")
        top = registered(design, Path(name), wanted, native)
        progress(f"nextpnr for {device}")
        family, written = wanted.family, "placed.json"
        placed = place(top, family.nextpnr, wanted.nextpnr, family.logic_cell, native=native, written=written)
        cells = placed_cells(Path(name) / written)
    count = len(design.netlist.cells)
    nets = [int(found[1]) if (found := _NET.match(cell.name)) else None for cell in cells]
    return Placement(
        device,
        placed,
        tuple((cell, n if n is not None and n < count else None) for cell, n in zip(cells, nets, strict=True)),
    )


def registered(design: Design, folder: Path, device: Device, native: bool) -> Path:
    """Synthesizes core.v of a folder with registers on all ports; returns the netlist for nextpnr."""
    top, core, family = "forestc_registered", str(design.manifest["core"]), device.family
    bits = {"x_bits": _width(design, "inputs"), "y_bits": _width(design, "outputs")}
    wrapper = folder / "top.v"
    clocked, serial = bool(design.manifest["latency_cycles"]), family.few_pins
    wrapper.write_text(render("verilog/registered.v.j2", module=core, top=top, clocked=clocked, serial=serial, **bits))
    synthesize([folder / "core.v", wrapper], top, family.synthesis, netlist="top.json", native=native)
    return folder / "top.json"


def known_device(device: str) -> None:
    """Raises OptionError for a device that `synth` does not know."""
    tool, _, part = device.partition(":")
    if device not in DEVICES and not (tool in PROGRAMS and part):
        known = ", ".join([*DEVICES, *(f"{tool}:PART" for tool in PROGRAMS)])
        raise OptionError(f"unknown device {device!r}", do=f"known: {known}")
    if tool in PROGRAMS:
        known_part(tool, part)


def need_tools(device: str, native: bool = False) -> None:
    """Raises MissingToolError if a tool that `synth` needs for a device is not installed."""
    tool = device.partition(":")[0]
    if tool in PROGRAMS:
        need_vendor(tool)
        return
    need_yosys(native)
    if DEVICES[device].nextpnr:
        need_nextpnr(DEVICES[device].family.nextpnr, native)


def check_fits(netlist: Netlist, device: str) -> None:
    """Raises ForestcError if even the lower end of the estimate's range exceeds the device."""
    most = DEVICES[device].cells if estimated(device) else None
    if most is None:
        return
    figures = estimate(netlist, device)
    lut, least = figures["lut"], figures["lut_range"][0]
    if least > most:
        raise ForestcError(
            f"the design takes about {lut:,} LUTs, and {device} has {most:,}",
            do="prune the model, use fewer bits or trees, choose a larger device, or add --try to synthesize it anyway",
        )


def _width(design: Design, side: str) -> int:
    from forestc.backends.ports import input_fields, output_fields, width_of

    fields = input_fields(design.netlist) if side == "inputs" else output_fields(design.netlist)
    return max(1, width_of(fields))
