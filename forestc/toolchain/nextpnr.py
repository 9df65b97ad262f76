"""nextpnr: place and route for iCE40 and ECP5, from the PyPI packages (WebAssembly) or native programs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forestc.errors import MissingToolError, ToolError
from forestc.toolchain.run import find, run_tool

_TOO_LARGE = re.compile(r"no BELs remaining|[Uu]nable to (place|find)|[Ff]ailed to (place|expand)|too large|no more")


@dataclass(frozen=True)
class Placed:
    """fmax_mhz: after routing. used, available: logic cells of the device."""

    fmax_mhz: float
    used: int
    available: int
    version: str


def find_nextpnr(family: str, native: bool = False) -> tuple[str, ...] | None:
    """The command: the PyPI package's nextpnr for a family, else one on the PATH; the other way round if `native`."""
    module = f"yowasp_nextpnr_{family}"
    run = f"import sys, {module}; sys.exit({module}.run_nextpnr_{family}(sys.argv[1:]))"
    packaged = (sys.executable, "-c", run) if importlib.util.find_spec(module) else None
    path = find(f"nextpnr-{family}")
    on_path = None if path is None else (path,)
    return (on_path or packaged) if native else (packaged or on_path)


def need_nextpnr(family: str, native: bool = False) -> tuple[str, ...]:
    """The command for a family. Raises MissingToolError."""
    command = find_nextpnr(family, native)
    if command is None:
        raise MissingToolError(f"there is no nextpnr-{family}", do='pip install "forestc[synth]", or install nextpnr')
    return command


def place(
    netlist: Path,
    family: str,
    options: Sequence[str],
    logic_cell: str,
    *,
    native: bool = False,
    seed: int = 1,
    seconds: float = 3600,
) -> Placed:
    """Places and routes what yosys wrote (`synthesise`, netlist=).

    family: nextpnr's name of it. options: which say the device. logic_cell: what its report calls a cell with a LUT.
    Raises ToolError, also where it does not fit.
    """
    command = need_nextpnr(family, native)
    report = netlist.with_suffix(".report.json")
    wanted = ["--json", netlist.name, "--report", report.name, "--seed", str(seed), "--freq", "500"]
    wanted += ["--timing-allow-fail", "--quiet"]
    try:
        run_tool([*command, *options, *wanted], netlist.parent, seconds=seconds)
    except ToolError as error:
        if not _TOO_LARGE.search(error.where):
            raise
        raise ToolError("the design does not fit", do="prune it, or take a larger device") from None
    try:
        told = json.loads(report.read_text())
        logic = told["utilization"][logic_cell]
        fmax = min(float(clock["achieved"]) for clock in told["fmax"].values())
        return Placed(fmax, int(logic["used"]), int(logic["available"]), _version(command, netlist.parent))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolError(f"nextpnr reported no figures ({error})", where=str(report)) from None
    finally:
        report.unlink(missing_ok=True)


def _version(command: tuple[str, ...], folder: Path) -> str:
    packaged = command[0] == sys.executable
    if packaged:
        name = command[-1].split()[2].rstrip(";")
        return f"{name.replace('yowasp_', '').replace('_', '-')} {importlib.metadata.version(name)} (pip)"
    told = run_tool([*command, "--version"], folder, errors=True).decode("utf-8", "replace")
    version = re.search(r"Version ([^\s)]+)", told)
    return f"{Path(command[0]).name} {version[1] if version else ''}".rstrip()
