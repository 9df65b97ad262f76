"""Writes files for other tools: scripts for Vivado, Quartus and yosys, clock constraints and a FuseSoC core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from forestc.backends.base import Artifact, Core, Options, artifacts
from forestc.backends.hdl import module_name
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.netlist.ir import Netlist
from forestc.system.version import __version__
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source

VIVADO_PART, QUARTUS_PART, ECP5 = "xcku5p-ffvb676-2-e", "5CSEBA6U23I7", "85k"
PERIOD_NS = 2.0  # ns of a clock cycle in the scripts by default
NEXTPNR_MHZ = 500.0  # MHz that nextpnr is asked for if the user gives no clock

# Maps prefixes of part names to families; FuseSoC needs these for Quartus.
FAMILIES: Mapping[str, str] = {
    "5A": "Arria V",
    "5C": "Cyclone V",
    "5S": "Stratix V",
    "10A": "Arria 10",
    "10CL": "Cyclone 10 LP",
    "10CX": "Cyclone 10 GX",
    "10M": "MAX 10",
    "1S": "Stratix 10",
    "EP4CE": "Cyclone IV E",
    "EP4CGX": "Cyclone IV GX",
}


_TEMPLATES = {
    "vivado": ("vivado.tcl", "synth/vivado.tcl.j2"),
    "quartus": ("quartus.tcl", "synth/quartus.tcl.j2"),
    "yosys": ("yosys.ys", "synth/yosys.ys.j2"),
    "xdc": ("{}.xdc", "synth/clock.xdc.j2"),
    "sdc": ("{}.sdc", "synth/clock.sdc.j2"),
    "fusesoc": ("{}.core", "synth/fusesoc.core.j2"),
}


def roles(core: Core) -> tuple[str, ...]:
    """Returns the roles of a core's scripts."""
    return tuple(f"{core.prefix}{role}" for role in ("registered", *_TEMPLATES) if core.yosys or role != "yosys")


@dataclass(frozen=True)
class ProjectOptions:
    """Initial values in the scripts; each has a default."""

    device: str = ""  # as for `forestc synth`, such as vivado:PART
    clock_mhz: float | None = None  # clock frequency that the tools aim at

    @classmethod
    def of(cls, options: Options) -> ProjectOptions:
        """Returns those of a manifest's options."""
        return cls(options.get("device", ""), options.get("clock_mhz"))

    def period(self, default: float = PERIOD_NS) -> float:
        return default if self.clock_mhz is None else 1000 / self.clock_mhz

    def part(self, tool: str, default: str) -> str:
        """Returns the part name of the device if it is for the tool, such as "vivado"; otherwise the default."""
        vendor, _, part = self.device.partition(":")
        return part if vendor == tool else default

    @property
    def ecp5(self) -> str:
        family, _, size = self.device.partition("-")
        return size if family == "ecp5" else ECP5


def emit(
    netlist: Netlist, sources: Mapping[str, str], core: Core, options: ProjectOptions | None = None
) -> dict[str, tuple[str, str]]:
    """Returns the files of a project as {role: (path, text)}; paths and `sources` are relative to the language's
    folder.
    sources: {role: file name}; the role `core` is required."""
    options = options or ProjectOptions()
    module = module_name(netlist)
    vivado, quartus = options.part("vivado", VIVADO_PART), options.part("quartus", QUARTUS_PART)
    clock = options.clock_mhz
    view = {
        "module": module,
        "core": sources["core"],
        "files": core,
        "top": f"{module}_registered",
        "wrapper": [sources[role] for role in ("axi_lite", "axi_stream") if role in sources],
        "bench": [sources[role] for role in ("testbench", "vectors") if role in sources],
        "stream_bench": sources.get("stream_testbench"),
        "cocotb": [sources[role] for role in ("cocotb", "words", "raw_rows") if role in sources],
        "version": __version__,
        "clocked": bool(netlist.latency),
        "clocking": netlist.clocking,
        "x_bits": max(1, width_of(input_fields(netlist))),
        "y_bits": max(1, width_of(output_fields(netlist))),
        "serial": False,
        "period": f"{options.period():.3f}",
        "clock_note": _note("clock", None if clock is None else f"{clock:g} MHz"),
        "vivado_part": vivado,
        "vivado_note": _note("part", vivado if options.device.startswith("vivado:") else None),
        "quartus_part": quartus,
        "quartus_note": _note("part", quartus if options.device.startswith("quartus:") else None),
        "quartus_family": next((name for start, name in FAMILIES.items() if quartus.upper().startswith(start)), None),
        "ecp5": options.ecp5,
        "ecp5_note": _note("part", f"ecp5-{options.ecp5}" if options.device.startswith("ecp5-") else None),
        "goal_mhz": f"{NEXTPNR_MHZ if clock is None else clock:g}",
    }
    registered = (f"{module}_registered.{core.suffix}", f"{core.language}/registered.{core.suffix}.j2")
    written = {"registered": registered, **_TEMPLATES}
    return {
        role: (path.format(module), render(template, **view))
        for role in roles(core)
        for path, template in [written[role.removeprefix(core.prefix)]]
    }


def written(source: Source, before: Sequence[Artifact], cores: Sequence[Core]) -> list[Artifact]:
    """Returns the scripts of all cores. before: the other files of the design."""
    files = []
    for core in cores:
        beside = {
            "core" if file.role == core.language else file.role.removeprefix(core.prefix): PurePosixPath(file.path).name
            for file in before
            if file.path.startswith(f"{core.language}/")
        }
        files += artifacts(core.language, emit(source.netlist, beside, core, ProjectOptions.of(source.options)))
    return files


def _note(what: str, value: str | None) -> str:
    return f"the {what} is a default: set yours" if value is None else f"the {what} given: {value}"
