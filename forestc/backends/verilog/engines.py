"""Engines that run the generated Verilog."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from forestc.backends import hdl
from forestc.backends.base import Written
from forestc.backends.ports import input_fields, output_fields, packed_bytes, unpacked, width_of
from forestc.backends.running import BenchEngine, Difference, copied, difference, rows_of_numbers
from forestc.backends.vectors import Vectors, results
from forestc.forest.evaluate import Evaluation
from forestc.toolchain import verilator
from forestc.toolchain.run import run_tool
from hdl_templates import render


class VerilatorEngine:
    """Runs the generated Verilog, compiled by Verilator and the host's C++ compiler."""

    def __init__(self, design: Written, folder: Path) -> None:
        tool = verilator.need_verilator()
        self.forest, self.netlist = design.forest, design.netlist
        self.inputs, self.outputs = input_fields(self.netlist), output_fields(self.netlist)
        self.folder = folder
        source = self._source(design)
        self.y_lanes = max(1, -(-width_of(self.outputs) // 32))
        main = render(
            "check/verilator_main.cpp.j2",
            x_lanes=max(1, -(-width_of(self.inputs) // 32)),
            y_lanes=self.y_lanes,
            latency=self.netlist.latency,
            clocking=self.netlist.clocking,
        )
        top = hdl.module_name(self.netlist)
        self.program = verilator.build(tool, [source], top, main, folder)
        self.tool = tool.version

    def _source(self, design: Written) -> str:
        return copied(design, "verilog", self.folder)

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        data = packed_bytes(self.inputs, vectors.words).astype("<u4").tobytes()
        out = run_tool([str(self.program)], self.folder, data=data)
        lanes = rows_of_numbers(out, "<u4", self.y_lanes)
        return difference(unpacked(self.outputs, lanes), results(self.forest, self.netlist, evaluation))


class IcarusEngine(BenchEngine):
    """Runs the generated Verilog and its self-checking test bench in Icarus Verilog."""

    roles: ClassVar[tuple[str, ...]] = ("verilog", "testbench")
    programs: ClassVar[tuple[str, ...]] = ("iverilog", "vvp")
    title: ClassVar[str] = "Icarus Verilog"

    def build(self, programs: list[str], sources: list[str]) -> list[str]:
        compiler, runner = programs
        run_tool([compiler, "-g2005", "-o", "bench.vvp", *sources], self.folder, writes=["bench.vvp"])
        return [runner, "-n", "bench.vvp"]
