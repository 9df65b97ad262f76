"""Runs GHDL, which translates VHDL to Verilog."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from forestc.errors import MissingToolError
from forestc.toolchain.run import find, run_tool

_SIGNAL = re.compile(
    r"(  always @\*\n    (?P<signal>\w+) = (\w+); // \(isignal\)\n)  initial\n    (?P=signal) <= ([^;]+);"
)


def need_ghdl() -> str:
    """Returns GHDL's path. Raises MissingToolError without GHDL."""
    ghdl = find("ghdl")
    if ghdl is None:
        raise MissingToolError("GHDL was not found", do="install ghdl")
    return ghdl


def as_verilog(sources: Sequence[bytes], top: str) -> str:
    """Translates VHDL-93 files to Verilog. top: the topmost entity. Raises MissingToolError or ToolError."""
    with tempfile.TemporaryDirectory(prefix="forestc-vhdl-") as scratch:
        names = [f"file{number}.vhd" for number in range(len(sources))]
        for name, data in zip(names, sources, strict=True):
            (Path(scratch) / name).write_bytes(data)
        command = [need_ghdl(), "--synth", "--std=93", "--out=verilog", *names, "-e", top]
        verilog = run_tool(command, Path(scratch), seconds=3600).decode("utf-8", "replace")
        # GHDL 2.0 gives the initial value of a register with an asynchronous reset to the signal behind it, where yosys
        # ignores it.
        verilog = _SIGNAL.sub(r"\1  initial\n    \3 <= \4;", verilog)
        # GHDL 2.0 writes long constants as strings; Verilog needs width and base.
        return re.sub(r'"([01]+)"', lambda bits: f"{len(bits[1])}'b{bits[1]}", verilog)
