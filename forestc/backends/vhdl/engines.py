"""Engines that run the generated VHDL."""

from __future__ import annotations

from typing import ClassVar

from forestc.backends.running import BenchEngine
from forestc.toolchain.run import run_tool


class GhdlEngine(BenchEngine):
    """Runs the generated VHDL and its self-checking test bench in GHDL."""

    roles: ClassVar[tuple[str, ...]] = ("vhdl", "vhdl_testbench")
    programs: ClassVar[tuple[str, ...]] = ("ghdl",)
    title: ClassVar[str] = "GHDL"
    standard: ClassVar[str] = "93"  # VHDL version in GHDL's --std

    def build(self, programs: list[str], sources: list[str]) -> list[str]:
        (ghdl,), standard = programs, f"--std={self.standard}"
        run_tool([ghdl, "-a", standard, *sources], self.folder, writes=[f"work-obj{self.standard}.cf"])
        run_tool([ghdl, "-e", standard, self.bench], self.folder)
        # Signals are undefined at time 0, and comparisons of numeric_std would warn.
        return [ghdl, "-r", standard, self.bench, "--ieee-asserts=disable-at-0"]


class NvcEngine(BenchEngine):
    """Runs the generated VHDL and its self-checking test bench in NVC."""

    roles: ClassVar[tuple[str, ...]] = ("vhdl", "vhdl_testbench")
    programs: ClassVar[tuple[str, ...]] = ("nvc",)
    title: ClassVar[str] = "NVC"

    def build(self, programs: list[str], sources: list[str]) -> list[str]:
        (nvc,) = programs
        run_tool([nvc, "--std=1993", "-a", *sources, "-e", self.bench], self.folder, seconds=3600)
        return [nvc, "--std=1993", "--ieee-warnings=off", "-r", self.bench]
