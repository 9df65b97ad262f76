"""synth: area and clock rate of a compiled design on a device, by synthesis and place and route."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forestc.backends.axi_stream import stream_of, stream_ports
from forestc.costs.boards import stands_for
from forestc.costs.devices import DEVICES, Device
from forestc.costs.estimate import estimate, estimated
from forestc.errors import ForestcError, OptionError
from forestc.manifest.design import Design
from forestc.netlist.ir import Net, Netlist
from forestc.options.stream import StreamOptions
from forestc.toolchain.nextpnr import Placed, PlacedCell, need_nextpnr, place, placed_cells
from forestc.toolchain.vendor import PROGRAMS, known_part, need_vendor
from forestc.toolchain.yosys import need_yosys, synthesize
from hdl_templates import render

STREAM_CLOCKS = 3  # from a row's last beat to its result, beside the core's latency


@dataclass(frozen=True)
class Placement:
    """A placed design. cells: each with the net of the design's netlist that it drives, or the nearest behind it that
    has a name; None for the registers on the ports."""

    device: str
    placed: Placed
    cells: tuple[tuple[PlacedCell, Net | None], ...]

    def figures(self) -> dict[str, Any]:
        """For measured.json."""
        placed = self.placed
        counts = {"used": placed.used, "available": placed.available}
        return {"device": self.device, "fmax_mhz": placed.fmax_mhz, **counts, "tools": [placed.version]}


_NET = re.compile(r"core\.(?!x\d)[a-z]+(\d{1,9})(?![0-9a-zA-Z])")


def placement(
    design: Design,
    device: str | None = None,
    *,
    native: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Placement:
    """Where place and route puts the cells of a design. device: one that nextpnr supports; by default that of the
    folder. Raises OptionError, ToolError, and ForestcError for a design too large for the device."""
    supported = [name for name, entry in DEVICES.items() if entry.nextpnr]
    device = device or design.manifest["options"].get("device") or next(_synthesized_for(design, supported), None)
    if device is None:
        raise OptionError(
            "the folder names no device to place the design on", do=f"add --device, of {', '.join(supported)}"
        )
    device = known_device(device)
    if device not in supported:
        raise OptionError(f"designs are not placed for {device!r}", do=f"add --device, of {', '.join(supported)}")
    need_tools(device, native)
    check_fits(design.netlist, device)
    wanted = DEVICES[device]
    with tempfile.TemporaryDirectory() as name:
        progress(f"yosys for {device}")
        _, files = sources(design, Path(name), stream=False)
        top = registered(design, Path(name), files, wanted, native, stream=False)
        progress(f"nextpnr for {device}")
        family, written = wanted.family, "placed.json"
        placed = place(top, family.nextpnr, wanted.nextpnr, family.logic_cell, native=native, written=written)
        cells = placed_cells(Path(name) / written)
    count = len(design.netlist.cells)
    nets = [int(match[1]) if (match := _NET.match(cell.name)) else None for cell in cells]
    return Placement(
        device,
        placed,
        tuple((cell, n if n is not None and n < count else None) for cell, n in zip(cells, nets, strict=True)),
    )


def _synthesized_for(design: Design, supported: Sequence[str]) -> Iterator[str]:
    """Devices that the folder's design was synthesized for."""
    return (result.on for result in design.results() if result.command == "synth" and result.on in supported)


def sources(design: Design, folder: Path, *, stream: bool) -> tuple[str, list[Path]]:
    """The top module, and its files copied to a folder. stream: with the wrapper. Raises ForestcError if the design has
    none."""
    roles = ["verilog", *(["axi_stream"] if stream else [])]
    roles += ["axi_lite"] if stream and "axi_lite" in design.manifest["files"] else []
    paths = []
    for role in roles:
        paths.append(folder / f"{role}.v")
        paths[-1].write_text(design.path(role).read_text(encoding="utf-8"), encoding="utf-8")
    return str(design.manifest["stream"]["module"] if stream else design.manifest["core"]), paths


def registered(
    design: Design, folder: Path, files: Sequence[Path], device: Device, native: bool, *, stream: bool
) -> Path:
    """Synthesizes the files of `sources` with registers on all ports; returns the netlist for nextpnr."""
    top, family = "forestc_registered", device.family
    wrapper = folder / "top.v"
    view = _stream_view(design) if stream else _core_view(design)
    wrapper.write_text(render("verilog/registered.v.j2", top=top, serial=family.few_pins, **view))
    synthesize([*files, wrapper], top, family.synthesis, netlist="top.json", native=native)
    return folder / "top.json"


def _core_view(design: Design) -> dict[str, Any]:
    bits = {"x_bits": _width(design, "inputs"), "y_bits": _width(design, "outputs")}
    return {"module": str(design.manifest["core"]), "clocked": bool(design.manifest["latency_cycles"]), **bits}


def _stream_view(design: Design) -> dict[str, Any]:
    """The wrapper's ports, but for its clock, as parts of one input and of one output."""
    stream = stream_of(design.netlist, StreamOptions(**design.manifest["options"]["stream"]))
    ports = [("aresetn", False, 1)]
    for bus, channel in stream_ports(stream).items():
        ports += [(f"{bus}_{name}", output, bits) for name, output, bits in channel]
    widths = {False: 0, True: 0}
    connections = [".aclk(clk)"]
    for name, output, bits in ports:
        low = widths[output]
        widths[output] += bits
        connections.append(f".{name}({'y_core' if output else 'x_held'}[{low + bits - 1}:{low}])")
    sizes = {"x_bits": widths[False], "y_bits": widths[True]}
    return {"module": f"{stream.module}_axis", "clocked": False, "connections": connections, **sizes}


def known_device(name: str) -> str:
    """The device that a name, also a board's, stands for. Raises OptionError for one that `synth` does not know."""
    device = stands_for(name, "device", DEVICES)
    tool, _, part = device.partition(":")
    if tool in PROGRAMS:
        known_part(tool, part)
    return device


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
