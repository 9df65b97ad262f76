"""Runs the generated Amaranth component."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

from forestc.backends.base import Written
from forestc.backends.running import copied
from forestc.backends.verilog.engines import VerilatorEngine
from forestc.errors import PYTHON, MissingToolError
from forestc.toolchain.run import run_tool
from forestc.toolchain.yosys import run_yosys

_TO_RTLIL = (
    "import runpy, sys; from amaranth.back import rtlil; print(runpy.run_path(sys.argv[1])['convert'](rtlil), end='')"
)


class AmaranthEngine(VerilatorEngine):
    """Runs the generated Amaranth component, converted to Verilog, in Verilator."""

    def __init__(self, design: Written, folder: Path) -> None:
        if importlib.util.find_spec("amaranth") is None:
            raise MissingToolError("Amaranth is not installed", where=PYTHON, do='pip install "forestc[amaranth]"')
        super().__init__(design, folder)
        self.tool = f"Amaranth {importlib.metadata.version('amaranth')}, {self.tool}"

    def _source(self, design: Written) -> str:
        module = copied(design, "amaranth", self.folder)
        text = run_tool([sys.executable, "-c", _TO_RTLIL, module], self.folder, seconds=1800)
        (self.folder / "core.il").write_bytes(text)
        script = "read_rtlil core.il\nproc\nwrite_verilog -noattr core.v"
        run_yosys(script, self.folder, seconds=1800, writes=["core.v"])
        return "core.v"
