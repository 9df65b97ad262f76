"""Runs Vivado or Quartus, if they are on the PATH, on a design's scripts, and reads their reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forestc.errors import MissingToolError, OptionError, ToolError, opt, printable
from forestc.toolchain.run import find, run_tool

PROGRAMS: Mapping[str, str] = {"vivado": "vivado", "quartus": "quartus_sh"}
FOLDER = "reports"
_VIVADO = ("utilization.rpt", "placed.rpt", "timing.rpt")
SECONDS = 7200  # seconds before a run of the tool is stopped
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Reported:
    """Figures from the tool's reports."""

    lut: int  # cells of the design itself, like the three fields below
    flip_flops: int
    carry: int
    memory: int
    depth: int | None  # logic levels of the slowest path; None if not reported
    fmax_mhz: float
    used: int  # logic cells of the design placed between registers
    available: int  # logic cells of the device
    version: str


def known_part(tool: str, part: str) -> None:
    if not _PART.fullmatch(part):
        raise OptionError(f"{part!r} is not a part name", where=opt.device, do=f"write {opt.device:{tool}:PART}")


def need_vendor(tool: str) -> str:
    program = find(PROGRAMS[tool])
    if program is None:
        name = tool.capitalize()
        do = (
            f"install {name}, choose another {opt.device}, or compile with {opt.no_synth} and run "
            f"verilog/{tool}.tcl where {name} is"
        )
        raise MissingToolError(f"{PROGRAMS[tool]} was not found", do=do)
    return program


def run_vendor(tool: str, part: str, script: Path, top: str, *, period_ns: float) -> Reported:
    """Runs Vivado or Quartus on a design's script. top: the module to place. Raises OptionError for an invalid part
    name, ToolError if the tool fails."""
    known_part(tool, part)
    program = need_vendor(tool)
    arguments = [part, f"{period_ns:.3f}", FOLDER]
    if tool == "vivado":
        command = [program, "-mode", "batch", "-nojournal", "-nolog", "-notrace", "-source", script.name]
        _run([*command, "-tclargs", *arguments], script.parent, _VIVADO)
        return read_vivado(script.parent / FOLDER, period_ns)
    core = top.removesuffix("_registered")
    _run([program, "-t", script.name, *arguments], script.parent, _quartus(core, top))
    return read_quartus(script.parent / FOLDER, core, top, period_ns)


def _run(command: list[str], folder: Path, reports: tuple[str, ...]) -> None:
    run_tool(command, folder, seconds=SECONDS, writes=[f"{FOLDER}/{name}" for name in reports])


def read_vivado(folder: Path, period_ns: float) -> Reported:
    """Reads Vivado's reports. Raises ToolError if a report or a needed figure is missing."""
    cells, placed, timing = (_text(folder / name) for name in _VIVADO)
    where = str(folder / "utilization.rpt")

    def used(text: str, *names: str) -> list[float] | None:
        """Returns the numbers in the row of the table that begins with the first name found; None if there is no such
        row."""
        for name in names:
            row = re.search(rf"^\|\s*{name}\*?\s*\|(.*)\|\s*$", text, re.MULTILINE)
            if row:
                return [_number(cell) for cell in row[1].split("|") if _is_number(cell)]
        return None

    lut, registers = used(cells, "CLB LUTs", "Slice LUTs"), used(cells, "CLB Registers", "Slice Registers")
    site = used(placed, "CLB LUTs", "Slice LUTs")
    slack = re.search(r"WNS\(ns\).*\n[\s-]+\n\s*(-?[\d.]+|NA)\s", timing)
    if not lut or not registers or not site or len(site) < 2 or slack is None or slack[1] == "NA":
        raise ToolError("vivado's reports lack figures", where=where)
    levels = re.search(r"Logic Levels:\s+(\d+)", timing)
    version = re.search(r"Tool Version\s*:\s*Vivado v\.?(\S+)", cells)
    return Reported(
        lut=int(lut[0]),
        flip_flops=int(registers[0]),
        carry=int((used(cells, "CARRY8", "CARRY4") or [0])[0]),
        memory=int((used(cells, "Block RAM Tile") or [0])[0]),
        depth=int(levels[1]) if levels else None,
        fmax_mhz=1000 / (period_ns - float(slack[1])),
        used=int(site[0]),
        available=int(site[-2]),
        version=f"Vivado {version[1]}" if version else "Vivado",
    )


def read_quartus(folder: Path, core: str, top: str, period_ns: float) -> Reported:
    """Reads Quartus's reports. Raises ToolError if a report or a needed figure is missing."""
    cells, placed, timing = (_text(folder / name) for name in _quartus(core, top))

    def used(name: str) -> int | None:
        row = re.search(rf"^;\s*{name}\s*;\s*([\d,]+)", cells, re.MULTILINE)
        return None if row is None else int(_number(row[1]))

    lut = used("Combinational ALUT usage for logic")
    if lut is None:
        lut = used("Total combinational functions")
    registers = used("Dedicated logic registers")
    site = re.search(r"^\s*(?:Logic utilization \(in ALMs\)|Total logic elements) : ([\d,]+) / ([\d,]+)", placed, re.M)
    slacks = re.findall(r"^Type\s*: .*Setup 'clk'\s*\nSlack\s*: (-?[\d.]+)", timing, re.MULTILINE)
    if lut is None or registers is None or site is None or not slacks:
        raise ToolError("quartus's reports lack figures", where=str(folder))
    memory = re.search(r"^\s*Total RAM Blocks : ([\d,]+)", placed, re.MULTILINE)
    version = re.search(r"Quartus Prime Version : (\S+)", placed)
    return Reported(
        lut=lut,
        flip_flops=registers,
        carry=0,  # carry chains are part of the ALUTs
        memory=int(_number(memory[1])) if memory else 0,
        depth=None,
        fmax_mhz=1000 / (period_ns - min(map(float, slacks))),
        used=int(_number(site[1])),
        available=int(_number(site[2])),
        version=f"Quartus {version[1]}" if version else "Quartus",
    )


def _quartus(core: str, top: str) -> tuple[str, ...]:
    return f"{core}.map.rpt", f"{top}.fit.summary", f"{top}.sta.summary"


def _text(path: Path) -> str:
    try:
        return printable(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        raise ToolError("the script wrote no report", where=str(path)) from None


def _number(text: str) -> float:
    return float(text.replace(",", "").strip().lstrip("<"))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*<?[\d,]+(\.\d+)?\s*", text) is not None
