"""Files for other tools: scripts for Vivado, Quartus and yosys, clock constraints, a FuseSoC core, of a core in Verilog
or in VHDL. yosys reads no VHDL, so there is no script of it then.

The scripts count the cells of the core alone, and place and route it out of context with registers on all its ports
(`NAME_registered`), so that every tool gives the figures of `forestc synth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forestc.backends.hdl import module_name
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.netlist.ir import Netlist
from forestc.system.version import __version__
from hdl_templates import render

VIVADO_PART, QUARTUS_PART, ECP5 = "xcku5p-ffvb676-2-e", "5CSEBA6U23I7", "85k"
PERIOD_NS = 2.0  # clock period that the scripts ask for where the user gives none
NEXTPNR_MHZ = 500.0  # the same goal in MHz

# Beginning of a part's name -> its family in Quartus. FuseSoC needs both.
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


@dataclass(frozen=True)
class Sources:
    """How tools take files of a language.

    suffix: of files. prefix: of the roles of its scripts. vivado: the command that reads a file. quartus: the
    assignment that names one. fusesoc: the type of a file. ip_xact: the language and the type of a file in IP-XACT.
    simulator: for the test bench, as FuseSoC and cocotb call it.
    """

    suffix: str
    prefix: str
    vivado: str
    quartus: str
    fusesoc: str
    ip_xact: tuple[str, str]
    simulator: str


LANGUAGES: Mapping[str, Sources] = {
    "verilog": Sources(
        "v", "", "read_verilog", "VERILOG_FILE", "verilogSource-2005", ("Verilog", "verilogSource"), "icarus"
    ),
    "vhdl": Sources("vhd", "vhdl_", "read_vhdl", "VHDL_FILE", "vhdlSource-93", ("VHDL", "vhdlSource"), "ghdl"),
}
_TEMPLATES = {
    "vivado": ("vivado.tcl", "synth/vivado.tcl.j2"),
    "quartus": ("quartus.tcl", "synth/quartus.tcl.j2"),
    "yosys": ("yosys.ys", "synth/yosys.ys.j2"),
    "xdc": ("{}.xdc", "synth/clock.xdc.j2"),
    "sdc": ("{}.sdc", "synth/clock.sdc.j2"),
    "fusesoc": ("{}.core", "synth/fusesoc.core.j2"),
}


def roles(language: str) -> tuple[str, ...]:
    """The roles of the files for a language."""
    prefix = LANGUAGES[language].prefix
    return tuple(f"{prefix}{role}" for role in ("registered", *_TEMPLATES) if language == "verilog" or role != "yosys")


@dataclass(frozen=True)
class ProjectOptions:
    """Initial values of the scripts and constraints. device: as for `forestc synth`, such as vivado:PART. clock_mhz:
    the wanted clock. Without these the files hold a default, marked as such."""

    device: str = ""
    clock_mhz: float | None = None

    def period(self, default: float = PERIOD_NS) -> float:
        """The period of the given clock in ns, or the default."""
        return default if self.clock_mhz is None else 1000 / self.clock_mhz

    def part(self, tool: str, default: str) -> str:
        """The given part for a tool, or the default."""
        vendor, _, part = self.device.partition(":")
        return part if vendor == tool else default

    @property
    def ecp5(self) -> str:
        family, _, size = self.device.partition("-")
        return size if family == "ecp5" else ECP5


def emit(
    netlist: Netlist, sources: Mapping[str, str], options: ProjectOptions | None = None, language: str = "verilog"
) -> dict[str, tuple[str, str]]:
    """{role: (path, text)}, for the folder of the files of a language.

    sources: role to file name of the files in this folder, the prefix of the language left out: core and, if present,
    testbench, vectors, axi_stream, axi_lite, stream_testbench, cocotb, words, raw_rows. language: verilog or vhdl.
    Parts and clock are variables in the scripts, which arguments set. Same input, same bytes.
    """
    options = options or ProjectOptions()
    module = module_name(netlist)
    vivado, quartus = options.part("vivado", VIVADO_PART), options.part("quartus", QUARTUS_PART)
    clock = options.clock_mhz
    view = {
        "module": module,
        "core": sources["core"],
        "files": LANGUAGES[language],
        "top": f"{module}_registered",
        "wrapper": [sources[role] for role in ("axi_lite", "axi_stream") if role in sources],
        "bench": [sources[role] for role in ("testbench", "vectors") if role in sources],
        "stream_bench": sources.get("stream_testbench"),
        "cocotb": [sources[role] for role in ("cocotb", "words", "raw_rows") if role in sources],
        "version": __version__,
        "clocked": bool(netlist.latency),
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
    suffix = LANGUAGES[language].suffix
    registered = (f"{module}_registered.{suffix}", f"{language}/registered.{suffix}.j2")
    written = {"registered": registered, **_TEMPLATES}
    return {
        role: (path.format(module), render(template, **view))
        for role in roles(language)
        for path, template in [written[role.removeprefix(LANGUAGES[language].prefix)]]
    }


def _note(what: str, value: str | None) -> str:
    return f"the {what} is a default, as none was given: set yours" if value is None else f"the {what} given: {value}"
