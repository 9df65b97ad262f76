"""Synthesizes a design: counts its cells, measures its clock rate, and places its cells on a device."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from forestc.backends.base import Core, Gives
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.project import ProjectOptions
from forestc.backends.stream.axi_stream import stream_of, stream_ports
from forestc.backends.stream.options import StreamOptions
from forestc.backends.table import core_of, cores, file_of
from forestc.costs.boards import LIBERTY, stands_for
from forestc.costs.devices import DEVICES, PORTS, Device
from forestc.costs.estimate import estimate, estimated
from forestc.errors import ForestcError, OptionError, ToolError, opt
from forestc.manifest.design import Design
from forestc.netlist.ir import Net, Netlist
from forestc.options.commands import SynthOptions
from forestc.options.shared import Progress, quiet
from forestc.toolchain.ghdl import as_verilog, need_ghdl
from forestc.toolchain.nextpnr import Placed, PlacedCell, place, placed_cells
from forestc.toolchain.packaged import need_command
from forestc.toolchain.vendor import PROGRAMS, known_part, need_vendor, run_vendor
from forestc.toolchain.yosys import map_to_library, need_yosys, synthesize, yosys_version
from hdl_templates import render

STREAM_CLOCKS = 3  # cycles from a row's last beat to its result, beside the core's latency


@dataclass(frozen=True)
class Circuit:
    """The hardware of a design, for synthesis."""

    manifest: Mapping[str, Any]  # must have the entries that describe hardware
    netlist: Netlist
    file: Callable[[str], tuple[str, str]]  # returns name and text of the file with a role

    @staticmethod
    def of(design: Design) -> Circuit:
        def file(role: str) -> tuple[str, str]:
            path = design.path(role)
            return path.name, path.read_text(encoding="utf-8")

        if not cores(design.targets):
            file_of(design, Gives.VERILOG)  # raises
        return Circuit(design.manifest, design.netlist, file)

    @property
    def core(self) -> Core:
        """The core that is synthesized: one that yosys reads, if there is one."""
        return core_of(self.manifest["options"]["targets"])

    def bits(self, side: Literal["inputs", "outputs"]) -> int:
        """Returns the number of bits of the packed input port, or of the packed output port."""
        return max(1, width_of((input_fields if side == "inputs" else output_fields)(self.netlist)))


@dataclass(frozen=True)
class Placement:
    """A design after place and route."""

    device: str
    placed: Placed
    cells: tuple[tuple[PlacedCell, Net | None], ...]  # each placed cell, and its net of the netlist or None

    def figures(self) -> dict[str, Any]:
        placed = self.placed
        counts = {"used": placed.used, "available": placed.available}
        return {"device": self.device, "fmax_mhz": placed.fmax_mhz, **counts, "tools": [placed.version]}


_NET = re.compile(r"core\.(?!x\d)[a-z]+(\d{1,9})(?![0-9a-zA-Z])")


def placement(
    design: Design,
    device: str | None = None,
    *,
    native: bool = False,
    progress: Progress = quiet,
) -> Placement:
    """Places and routes a design. device: None for the device that the folder records. Raises OptionError for an
    unsupported device, ForestcError for a too large design, ToolError if a tool fails."""
    supported = [name for name, entry in DEVICES.items() if entry.nextpnr]
    synthesized = (result.on for result in design.results() if result.command == "synth" and result.on in supported)
    device = device or design.manifest["options"].get("device") or next(synthesized, None)
    if device is None:
        raise OptionError(
            "the folder names no device to place the design on",
            where=opt.device,
            do=f"add {opt.device}, of {', '.join(supported)}",
        )
    device = known_device(device)
    if device not in supported:
        raise OptionError(
            f"designs are not placed for {device!r}",
            where=opt.device,
            do=f"add {opt.device}, of {', '.join(supported)}",
        )
    circuit = Circuit.of(design)
    need_tools(device, native, circuit.core)
    check_fits(circuit.netlist, device)
    target = DEVICES[device]
    with tempfile.TemporaryDirectory() as name:
        progress(f"yosys for {device}")
        module, files = _sources(circuit, Path(name), stream=False)
        top = _registered(Synthesized(module, files, _view(circuit, stream=False)), target, native)
        progress(f"nextpnr for {device}")
        family, written = target.family, "placed.json"
        placed = place(top, family.nextpnr, _options(target, top), family.logic_cell, native=native, written=written)
        cells = placed_cells(Path(name) / written)
    count = len(circuit.netlist.cells) if circuit.core.yosys else 0  # GHDL gives nets other numbers.
    nets = [int(match[1]) if (match := _NET.match(cell.name)) else None for cell in cells]
    return Placement(
        device,
        placed,
        tuple((cell, n if n is not None and n < count else None) for cell, n in zip(cells, nets, strict=True)),
    )


def _sources(circuit: Circuit, folder: Path, *, stream: bool) -> tuple[str, list[Path]]:
    """Writes the Verilog files, or GHDL's translation of the VHDL; returns the top module's name and their paths."""
    top = str(circuit.manifest["stream"]["module"] if stream else circuit.manifest["core"])
    core = circuit.core
    roles = [core.prefix + role for role in ("axi_lite", "axi_stream") if stream]
    texts = {role: circuit.file(role)[1] for role in (core.language, *roles) if role in circuit.manifest["files"]}
    if not core.yosys:
        texts = {core.language: as_verilog([text.encode() for text in texts.values()], top)}
    paths = [folder / f"{role}.v" for role in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return top, paths


def _registered(source: Synthesized, device: Device, native: bool) -> Path:
    """Synthesizes the design with registers on all ports; returns the netlist's path."""
    top, family, folder = "forestc_registered", device.family, source.files[0].parent
    wrapper = folder / "top.v"
    wrapper.write_text(render("verilog/registered.v.j2", top=top, serial=family.few_pins, **source.view))
    flows = source.flows(device)
    if family.mapped:
        (folder / "cells.v").write_text(render(family.mapped))
        flows = tuple(f"{flow}; techmap -map cells.v" for flow in flows)
    synthesize([*source.files, wrapper], top, flows, netlist="top.json", native=native)
    return folder / "top.json"


def _options(device: Device, top: Path) -> tuple[str, ...]:
    """Returns nextpnr's options for a device; writes the file of pins beside the netlist, if it wants one."""
    option, line = device.family.pins
    if not option:
        return device.nextpnr
    pins = top.with_suffix(".pins")
    pins.write_text("".join(f"{line.format(port=p, pin=pin)}\n" for p, pin in zip(PORTS, device.pins, strict=True)))
    return (*device.nextpnr, *option.format(file=pins.name).split())


def _view(circuit: Circuit, *, stream: bool) -> dict[str, Any]:
    if stream:
        return _stream_view(circuit)
    bits = {"x_bits": circuit.bits("inputs"), "y_bits": circuit.bits("outputs")}
    return {"module": str(circuit.manifest["core"]), "clocked": bool(circuit.manifest["latency_cycles"]), **bits}


def _stream_view(circuit: Circuit) -> dict[str, Any]:
    stream = stream_of(circuit.netlist, StreamOptions(**circuit.manifest["options"]["stream"]))
    ports = [("aresetn", False, 1)]
    for bus, channel in stream_ports(stream).items():
        ports += [(f"{bus}_{name}", output, bits) for name, output, bits in channel]
    return connected(f"{stream.module}_axis", ports)


def connected(module: str, ports: Sequence[tuple[str, bool, int]]) -> dict[str, Any]:
    """Returns the view of a module with these ports beside `aclk`: (name, True for an output, bits)."""
    widths = {False: 0, True: 0}
    connections = [".aclk(clk)"]
    for name, output, bits in ports:
        low = widths[output]
        widths[output] += bits
        connections.append(f".{name}({'y_core' if output else 'x_held'}[{low + bits - 1}:{low}])")
    sizes = {"x_bits": widths[False], "y_bits": widths[True]}
    return {"module": module, "clocked": False, "connections": connections, **sizes}


def known_device(name: str) -> str:
    """Returns the device for the name of a device or board. Raises OptionError for an unknown name."""
    device = stands_for(name, "device", DEVICES)
    tool, _, part = device.partition(":")
    if tool in PROGRAMS:
        known_part(tool, part)
    return device


def need_tools(device: str, native: bool = False, core: Core | None = None) -> None:
    """Raises MissingToolError if a tool that `synth` needs for the device is not installed. GHDL translates cores that
    yosys does not read. core: None for an engine."""
    tool = device.partition(":")[0]
    if tool in PROGRAMS:
        need_vendor(tool)
        return
    need_yosys(native)
    if core is not None and not core.yosys:
        need_ghdl()
    if device.startswith(LIBERTY):
        return
    if DEVICES[device].nextpnr:
        need_command(f"nextpnr-{DEVICES[device].family.nextpnr}", native)


def check_fits(netlist: Netlist, device: str) -> None:
    """Raises ForestcError if the device has fewer LUTs than even the lower end of the estimate."""
    most = DEVICES[device].cells if estimated(device) else None
    if most is None:
        return
    figures = estimate(netlist, device)
    lut, least = figures["lut"], figures["lut_range"][0]
    if least > most:
        raise ForestcError(
            f"the design takes about {lut:,} LUTs, and {device} has {most:,}",
            where=opt.device,
            do=f"prune the model, use fewer bits or trees, choose a larger device, or add {opt.try_} to synthesize it "
            "anyway",
        )


def synthesis_figures(circuit: Circuit, options: SynthOptions) -> dict[str, Any]:
    """Synthesizes a design; places and routes it if device and options allow. Returns the figures of `forestc synth
    --json`, without notes."""
    device, progress, stream = options.device, options.progress, options.stream
    tool, _, part = device.partition(":")
    if tool in PROGRAMS:
        return _vendor_figures(circuit, device, tool, part, progress)
    if device.startswith(LIBERTY):
        return _area_figures(circuit, options)
    with tempfile.TemporaryDirectory() as name:
        module, files = _sources(circuit, Path(name), stream=stream)
        figures = tool_figures(Synthesized(module, files, _view(circuit, stream=stream)), options)
    figures["estimate"] = estimate(circuit.netlist, device) if estimated(device) and not stream else None
    latency = int(circuit.manifest["latency_cycles"]) + (STREAM_CLOCKS if stream else 0)
    return figures | {"latency_cycles": latency, "stream": stream}


@dataclass(frozen=True)
class Synthesized:
    """Verilog files in a folder of their own. view: describes the ports to the template of registers around them."""

    module: str
    files: Sequence[Path]
    view: Mapping[str, Any]
    large_memories: bool = False  # True to put memories into the single-port RAM of an iCE40 UltraPlus

    def flows(self, device: Device) -> tuple[str, ...]:
        """Returns yosys's commands for the device."""
        more = "synth_ice40 -spram " if self.large_memories else "synth_ice40 "
        return tuple(flow.replace("synth_ice40 ", more) for flow in device.family.synthesis)


def tool_figures(source: Synthesized, options: SynthOptions) -> dict[str, Any]:
    """Runs yosys and, if device and options allow, nextpnr. Returns their figures."""
    device, native, progress = options.device, options.native, options.progress
    target, folder, seconds = DEVICES[device], source.files[0].parent, dict[str, float]()
    family = target.family
    start = time.perf_counter()
    progress(f"yosys for {device}")
    cells = synthesize(list(source.files), source.module, source.flows(target), native=native)
    seconds["synthesis"] = round(time.perf_counter() - start, 3)
    figures: dict[str, Any] = {
        "device": device,
        "lut": cells.lut,
        "ff": cells.flip_flops,
        "carry": cells.carry,
        "bram": cells.memory,
        "depth": cells.depth,
        "fmax_mhz": None,
        "tools": [yosys_version(need_yosys(native), folder)],
    }
    if target.nextpnr and options.route:
        start = time.perf_counter()
        progress(f"nextpnr for {device}")
        top = _registered(source, target, native)
        try:
            chosen = _options(target, top)
            placed = place(top, family.nextpnr, chosen, family.logic_cell, native=native, seed=options.seed)
        except ToolError as error:
            what = error.what
            if "does not fit" in what:
                used = f"{cells.lut:,} LUTs and {cells.flip_flops:,} flip-flops of {target.cells:,} logic cells"
                what += f" on {device}, where it takes {used}"
            raise ToolError(what, where=error.where, do=error.do) from None
        seconds["place and route"] = round(time.perf_counter() - start, 3)
        mhz = placed.fmax_mhz if family.timed else None
        figures["fmax_mhz"] = None if mhz is None else round(mhz, 2)
        figures["placed"] = {"used": placed.used, "available": placed.available}
        figures["tools"].append(placed.version)
    return figures | {"seconds": seconds}


def _area_figures(circuit: Circuit, options: SynthOptions) -> dict[str, Any]:
    """Returns cells and area on the library of `liberty:FILE`. The library's folder is not recorded."""
    library = Path(options.device.removeprefix(LIBERTY))
    with tempfile.TemporaryDirectory() as name:
        module, files = _sources(circuit, Path(name), stream=options.stream)
        start = time.perf_counter()
        options.progress(f"yosys for {library.name}")
        mapped = map_to_library(files, module, library, native=options.native)
        seconds = {"synthesis": round(time.perf_counter() - start, 3)}
        version = yosys_version(need_yosys(options.native), Path(name))
    return {
        "device": LIBERTY + library.name,
        **{"lut": 0, "ff": mapped.flip_flops, "carry": 0, "bram": 0, "depth": None, "fmax_mhz": None},
        "cells": mapped.count,
        "area": round(mapped.area, 3),
        "tools": [version],
        "latency_cycles": int(circuit.manifest["latency_cycles"]) + (STREAM_CLOCKS if options.stream else 0),
        "stream": options.stream,
        "seconds": seconds,
    }


def _vendor_figures(circuit: Circuit, device: str, tool: str, part: str, progress: Progress) -> dict[str, Any]:
    period = ProjectOptions(clock_mhz=circuit.manifest["options"].get("clock_mhz")).period()
    with tempfile.TemporaryDirectory() as name:
        prefix = circuit.core.prefix
        script, registered = prefix + tool, f"{prefix}registered"
        files = {role: circuit.file(role) for role in (script, circuit.core.language, registered, f"{prefix}xdc")}
        for file, text in files.values():
            (Path(name) / file).write_text(text, encoding="utf-8", newline="\n")
        start = time.perf_counter()
        progress(f"{tool} for {part}")
        reported = run_vendor(
            tool, part, Path(name) / files[script][0], Path(files[registered][0]).stem, period_ns=period
        )
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
        "latency_cycles": circuit.manifest["latency_cycles"],
        "seconds": {"synthesis, place and route": seconds},
    }
