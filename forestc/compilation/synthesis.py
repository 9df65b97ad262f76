"""Synthesizes a design: counts its cells, measures its clock rate, and places its cells on a device."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from forestc.backends.base import Core, Gives
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.project import ProjectOptions
from forestc.backends.stream.axi_stream import stream_of, stream_ports
from forestc.backends.stream.options import StreamOptions
from forestc.backends.table import core_of, cores, file_of, gives
from forestc.costs.boards import LIBERTY, stands_for
from forestc.costs.devices import DEVICES, PORTS, Device
from forestc.costs.estimate import estimate, estimated
from forestc.engine.area import engine_estimate, rows_per_second
from forestc.engine.capacity import Capacity
from forestc.engine.image import image_of
from forestc.engine.verilog import emit
from forestc.errors import ForestcError, OptionError, ToolError, opt
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.netlist.ir import Net, Netlist
from forestc.options.commands import SynthOptions
from forestc.options.shared import Progress, quiet
from forestc.toolchain.ghdl import as_verilog, need_ghdl
from forestc.toolchain.nextpnr import Placed, PlacedCell, place, placed_cells
from forestc.toolchain.packaged import need_command
from forestc.toolchain.vendor import PROGRAMS, known_part, need_vendor, run_vendor
from forestc.toolchain.yosys import map_to_library, need_yosys, synthesize
from hdl_templates import render

TOP = "forestc_registered"  # module with registers on all ports
STREAM_CLOCKS = 3  # cycles from a row's last beat to its result, beside the core's latency


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


class Circuit(Protocol):
    """Hardware to synthesize."""

    @property
    def name(self) -> str: ...
    @property
    def core(self) -> Core | None:
        """The core that is synthesized; None for an engine."""

    def refuse(self, device: str, *, any_size: bool) -> None:
        """Raises an error if the device does not take the circuit. any_size: also takes what the estimate refuses."""

    def written(self, folder: Path) -> Synthesized:
        """Writes Verilog files into a folder."""

    def figures(self, device: str, mhz: float | None) -> dict[str, Any]:
        """Returns the figures that no tool measures. mhz: the measured clock rate."""


@dataclass(frozen=True)
class CoreCircuit:
    """The core of a design, or the stream wrapper around it."""

    design: Design
    stream: bool = False

    @property
    def name(self) -> str:
        return str(self.design.manifest["name"])

    @property
    def core(self) -> Core:
        """The core that is synthesized: one that yosys reads, if there is one."""
        if not cores(self.design.targets):
            file_of(self.design, Gives.VERILOG)  # raises
        return core_of(self.design.targets)

    def refuse(self, device: str, *, any_size: bool) -> None:
        tool = device.partition(":")[0]
        if tool in PROGRAMS and self.stream:
            raise OptionError(
                f"{tool}'s script times the core alone",
                where=opt.stream,
                do=f"leave {opt.stream} out, or give another device",
            )
        if not any_size:
            check_fits(self.design.netlist, device, anyway=True)

    def written(self, folder: Path) -> Synthesized:
        """Writes the Verilog files, or GHDL's translation of the VHDL."""
        core, manifest = self.core, self.design.manifest
        top = str(manifest["stream"]["module"] if self.stream else manifest["core"])
        roles = [core.prefix + role for role in ("axi_lite", "axi_stream") if self.stream]
        roles = [role for role in (core.language, *roles) if role in manifest["files"]]
        texts = {role: self.design.path(role).read_text(encoding="utf-8") for role in roles}
        if not core.yosys:
            texts = {core.language: as_verilog([text.encode() for text in texts.values()], top)}
        paths = [folder / f"{role}.v" for role in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        return Synthesized(top, paths, self._view())

    def _view(self) -> dict[str, Any]:
        netlist, manifest = self.design.netlist, self.design.manifest
        if self.stream:
            stream = stream_of(netlist, StreamOptions(**manifest["options"]["stream"]))
            ports = [("aresetn", False, 1)]
            for bus, channel in stream_ports(stream).items():
                ports += [(f"{bus}_{name}", output, bits) for name, output, bits in channel]
            return _connected(f"{stream.module}_axis", ports)
        x_bits, y_bits = (max(1, width_of(fields(netlist))) for fields in (input_fields, output_fields))
        clocks = {"clocked": bool(netlist.latency), "clocking": netlist.clocking}
        return {"module": str(manifest["core"]), **clocks, "x_bits": x_bits, "y_bits": y_bits}

    def figures(self, device: str, mhz: float | None) -> dict[str, Any]:
        expected = estimate(self.design.netlist, device) if estimated(device) and not self.stream else None
        latency = int(self.design.manifest["latency_cycles"]) + (STREAM_CLOCKS if self.stream else 0)
        return {"estimate": expected, "latency_cycles": latency, "stream": self.stream}


@dataclass(frozen=True)
class EngineCircuit:
    """An engine. forest: the one in its image, if that is known."""

    capacity: Capacity
    forest: Forest | None = None

    @property
    def name(self) -> str:
        return self.capacity.name

    @property
    def core(self) -> None:
        return None

    def refuse(self, device: str, *, any_size: bool) -> None:
        if device not in DEVICES:
            raise OptionError(
                f"engines are not synthesized for {device}", where=opt.device, do="give a device of yosys and nextpnr"
            )

    def written(self, folder: Path) -> Synthesized:
        text, path = emit(self.capacity), folder / "engine.v"
        path.write_text(text, encoding="utf-8")
        view = _connected(self.name, ports_of(text, self.name))
        return Synthesized(self.name, [path], view, self.capacity.memory == "spram")

    def figures(self, device: str, mhz: float | None) -> dict[str, Any]:
        clocks = None if self.forest is None else image_of(self.forest, self.capacity).clocks
        rate = rows_per_second(self.capacity, mhz, clocks)
        expected = engine_estimate(self.capacity, device, clocks)
        return {"estimate": expected, "latency_cycles": 0, "stream": False} | rate


def circuit_of(source: Design | Capacity, *, stream: bool = False) -> Circuit:
    """Returns the hardware of a design (its core or, without one, its engine) or of an engine. Raises ForestcError
    if the design has neither, OptionError if it has no stream wrapper."""
    if isinstance(source, Design) and (source.has_hardware or not gives(source.targets, Gives.WALKERS)):
        if stream and "stream" not in source.manifest:
            raise OptionError(
                "the design has no stream wrapper", where=str(source.folder), do=f"compile with {opt.stream}"
            )
        return CoreCircuit(source, stream)
    if stream:
        raise OptionError("an engine has no stream wrapper", where=opt.stream, do="leave it out")
    if isinstance(source, Capacity):
        return EngineCircuit(source)
    return EngineCircuit(source.engine, source.forest)


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
    circuit = CoreCircuit(design)
    need_tools(device, native, circuit.core)
    check_fits(design.netlist, device, anyway=False)
    target = DEVICES[device]
    with tempfile.TemporaryDirectory() as name:
        progress(f"yosys for {device}")
        files, flows = _registered(circuit.written(Path(name)), target)
        top = Path(name) / "top.json"
        synthesize(files, TOP, flows, netlist=top.name, native=native)
        progress(f"nextpnr for {device}")
        family, written = target.family, "placed.json"
        placed = place(top, family.nextpnr, _options(target, top), family.logic_cell, native=native, written=written)
        cells = placed_cells(Path(name) / written)
    count = len(design.netlist.cells) if circuit.core.yosys else 0  # GHDL gives nets other numbers.
    nets = [int(match[1]) if (match := _NET.match(cell.name)) else None for cell in cells]
    return Placement(
        device,
        placed,
        tuple((cell, n if n is not None and n < count else None) for cell, n in zip(cells, nets, strict=True)),
    )


def _registered(source: Synthesized, device: Device) -> tuple[list[Path], tuple[str, ...]]:
    """Writes a module `TOP` with registers on all ports. Returns its files, and yosys's commands for nextpnr."""
    flows, family, folder = source.flows(device), device.family, source.files[0].parent
    if family.mapped:
        (folder / "cells.v").write_text(render(family.mapped))
        flows = tuple(f"{flow}; techmap -map cells.v" for flow in flows)
    wrapper = folder / "top.v"
    wrapper.write_text(render("verilog/registered.v.j2", top=TOP, serial=family.few_pins, **source.view))
    return [*source.files, wrapper], flows


def _options(device: Device, top: Path) -> tuple[str, ...]:
    """Returns nextpnr's options for a device; writes the file of pins beside the netlist, if it wants one."""
    option, line = device.family.pins
    if not option:
        return device.nextpnr
    pins = top.with_suffix(".pins")
    pins.write_text("".join(f"{line.format(port=p, pin=pin)}\n" for p, pin in zip(PORTS, device.pins, strict=True)))
    return (*device.nextpnr, *option.format(file=pins.name).split())


def _connected(module: str, ports: Sequence[tuple[str, bool, int]]) -> dict[str, Any]:
    """Returns the view of a module with these ports beside `aclk`: (name, True for an output, bits)."""
    widths = {False: 0, True: 0}
    connections = [".aclk(clk)"]
    for name, output, bits in ports:
        low = widths[output]
        widths[output] += bits
        connections.append(f".{name}({'y_core' if output else 'x_held'}[{low + bits - 1}:{low}])")
    sizes = {"x_bits": widths[False], "y_bits": widths[True]}
    return {"module": module, "clocked": False, "connections": connections, **sizes}


_PORT = re.compile(r"^    (input|output) +(?:wire|reg) +(?:\[(\d+):0\] +)?(\w+)", re.M)


def ports_of(verilog: str, module: str) -> list[tuple[str, bool, int]]:
    """Returns the ports of a module beside its clock: (name, True for an output, bits)."""
    head = verilog.partition(f"module {module} (")[2].partition(");")[0]
    ports = [(name, way == "output", int(top or 0) + 1) for way, top, name in _PORT.findall(head)]
    return [port for port in ports if port[0] != "aclk"]


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


def check_fits(netlist: Netlist, device: str, *, anyway: bool) -> None:
    """Raises ForestcError if the device has fewer LUTs than even the lower end of the estimate.
    anyway: True if the user can synthesize it nevertheless."""
    most = DEVICES[device].cells if estimated(device) else None
    if most is None:
        return
    figures = estimate(netlist, device)
    lut, least = figures["lut"], figures["lut_range"][0]
    otherwise = f", or add {opt.try_} to synthesize it anyway" * anyway
    if least > most:
        raise ForestcError(
            f"the design takes about {lut:,} LUTs, and {device} has {most:,}",
            where=opt.device,
            do=f"prune the model, use fewer bits or trees, or choose a larger device{otherwise}",
        )


def synthesis_figures(circuit: Circuit, options: SynthOptions) -> dict[str, Any]:
    """Synthesizes a circuit; places and routes it if device and options allow. Returns the figures of `forestc synth
    --json`, without notes."""
    if options.device.partition(":")[0] in PROGRAMS and isinstance(circuit, CoreCircuit):
        return _vendor_figures(circuit.design, circuit.core, options)
    with tempfile.TemporaryDirectory() as name:
        source = circuit.written(Path(name))
        if options.device.startswith(LIBERTY):
            return _area_figures(circuit, source, options)
        figures = _tool_figures(source, options)
    return figures | circuit.figures(options.device, figures["fmax_mhz"])


def _tool_figures(source: Synthesized, options: SynthOptions) -> dict[str, Any]:
    """Runs yosys and, if device and options allow, nextpnr. Returns their figures."""
    device, native, progress = options.device, options.native, options.progress
    target, folder, seconds = DEVICES[device], source.files[0].parent, dict[str, float]()
    family, top = target.family, folder / "top.json"
    flows, (wrapped, wrapped_flows), chosen = source.flows(target), _registered(source, target), _options(target, top)
    start = time.perf_counter()
    progress(f"yosys for {device}")
    cells = synthesize(list(source.files), source.module, flows, native=native)
    seconds["synthesis"] = round(time.perf_counter() - start, 3)
    figures: dict[str, Any] = {
        "device": device,
        "lut": cells.lut,
        "ff": cells.flip_flops,
        "carry": cells.carry,
        "bram": cells.memory,
        "depth": cells.depth,
        "fmax_mhz": None,
        "tools": [cells.version],
    }
    if target.nextpnr and options.route:
        start = time.perf_counter()
        progress(f"nextpnr for {device}")
        synthesize(wrapped, TOP, wrapped_flows, netlist=top.name, native=native)
        try:
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


def _area_figures(circuit: Circuit, source: Synthesized, options: SynthOptions) -> dict[str, Any]:
    """Returns cells and area on the library of `liberty:FILE`. The library's folder is not recorded."""
    library = Path(options.device.removeprefix(LIBERTY))
    start = time.perf_counter()
    options.progress(f"yosys for {library.name}")
    mapped = map_to_library(source.files, source.module, library, native=options.native)
    seconds = {"synthesis": round(time.perf_counter() - start, 3)}
    figures = circuit.figures(options.device, None)
    del figures["estimate"]
    return {
        "device": LIBERTY + library.name,
        **{"lut": 0, "ff": mapped.flip_flops, "carry": 0, "bram": 0, "depth": None, "fmax_mhz": None},
        "cells": mapped.count,
        "area": round(mapped.area, 3),
        "tools": [mapped.version],
        **figures,
        "seconds": seconds,
    }


def _vendor_figures(design: Design, core: Core, options: SynthOptions) -> dict[str, Any]:
    tool, _, part = options.device.partition(":")
    period = ProjectOptions.of(design.manifest["options"]).period()
    roles = (core.prefix + tool, f"{core.prefix}registered", core.language, f"{core.prefix}xdc")
    with tempfile.TemporaryDirectory() as name:
        script, registered, *_ = paths = [design.path(role) for role in roles]
        for path in paths:
            (Path(name) / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8", newline="\n")
        start = time.perf_counter()
        options.progress(f"{tool} for {part}")
        reported = run_vendor(tool, part, Path(name) / script.name, registered.stem, period_ns=period)
        seconds = round(time.perf_counter() - start, 3)
    return {
        "device": options.device,
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
