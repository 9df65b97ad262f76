"""Runs nextpnr, which places and routes for iCE40 and ECP5: from PyPI packages (WebAssembly) or as a native program."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forestc.errors import ToolError, opt, printable
from forestc.toolchain.packaged import need_command, version_of
from forestc.toolchain.run import run_tool

_TOO_LARGE = re.compile(r"no BELs remaining|[Uu]nable to (place|find)|[Ff]ailed to (place|expand)|too large|no more")

_BEL = re.compile(r"X(\d{1,6})/Y(\d{1,6})/(\S{1,80})")


@dataclass(frozen=True)
class PlacedCell:
    """A cell of a placed design, and its location."""

    name: str
    kind: str  # nextpnr's type
    x: int  # column of the tile
    y: int  # row of the tile
    site: str  # location within the tile, such as SLICEA.K0


@dataclass(frozen=True)
class Placed:
    """A placed and routed design."""

    fmax_mhz: float | None  # clock rate; None if nothing is clocked
    used: int  # number of logic cells used
    available: int  # number of logic cells of the device
    version: str


def place(
    netlist: Path,
    family: str,
    options: Sequence[str],
    logic_cell: str,
    *,
    native: bool = False,
    seed: int = 1,
    seconds: float = 3600,
    written: str = "",
) -> Placed:
    """Places and routes a netlist of `synthesize`. family: end of nextpnr's name. options: select the device. written:
    file name for the placed design. Raises ToolError, also for too large designs."""
    command = need_command(f"nextpnr-{family}", native)
    version = version_of(command, netlist.parent)
    report = netlist.with_suffix(".report.json")
    files = ["--json", netlist.name, "--report", report.name]
    files += ["--write", written] if written else []
    writes = [report.name, *([written] if written else [])]
    settings = ["--seed", str(seed), "--freq", "500", "--timing-allow-fail", "--quiet"]
    try:
        run_tool([*command, *options, *files, *settings], netlist.parent, seconds=seconds, writes=writes)
    except ToolError as error:
        if "Failed to route" in error.what:
            raise ToolError("finds no routes with this seed", where="nextpnr", do=f"give another {opt.seed}") from None
        if not _TOO_LARGE.search(error.what):
            raise
        raise ToolError(
            "the design does not fit", where="nextpnr", do=f"prune the model, or choose a larger {opt.device}"
        ) from None
    try:
        figures = json.loads(report.read_text())
        logic = figures["utilization"][logic_cell]
        fmax = min((float(clock["achieved"]) for clock in figures["fmax"].values()), default=None)
        return Placed(fmax, int(logic["used"]), int(logic["available"]), version)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"the report can't be read ({error})", where=str(report)) from None
    finally:
        report.unlink(missing_ok=True)


def placed_cells(path: Path) -> tuple[PlacedCell, ...]:
    """Reads the cells of a placed design that `place` wrote. Raises ToolError if the file can't be read."""
    try:
        (top,) = json.loads(path.read_text(encoding="utf-8"))["modules"].values()
        cells = []
        for name, cell in top["cells"].items():
            bel = _BEL.fullmatch(str(cell["attributes"].get("NEXTPNR_BEL", "")))
            if bel:
                cells.append(
                    PlacedCell(printable(str(name)), printable(str(cell["type"])), int(bel[1]), int(bel[2]), bel[3])
                )
        return tuple(cells)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"nextpnr's placed design can't be read ({error})", where=str(path)) from None
