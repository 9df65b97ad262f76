"""Proves a compiled folder's netlist, Verilog, VHDL and loadable engine equal to the quantized forest."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from forestc.checks.proof.engine import prove_engine
from forestc.checks.proof.netlist import prove_netlist
from forestc.checks.proof.parts import Proof
from forestc.checks.proof.verilog import prove_verilog
from forestc.checks.proof.vhdl import prove_vhdl
from forestc.errors import PYTHON, MissingToolError
from forestc.manifest.design import Design
from forestc.toolchain.ghdl import need_ghdl
from forestc.toolchain.yosys import need_yosys


def need_provers(design: Design, native: bool = False) -> None:
    """Raises MissingToolError if a tool for the design's proof is missing: bitwuzla, yosys or GHDL."""
    if importlib.util.find_spec("bitwuzla") is None:
        raise MissingToolError("bitwuzla is not installed", where=PYTHON, do='pip install "forestc[prove]"')
    if {"verilog", "vhdl", "engine"} & set(design.targets):
        need_yosys(native)
    if "vhdl" in design.targets:
        need_ghdl()


def prove(design: Design, progress: Callable[[str], None] = lambda _: None, *, native: bool = False) -> Proof:
    """Proves a folder's netlist, Verilog, VHDL and engine, if present, equal to the quantized forest. Raises
    MissingToolError or, if yosys or GHDL fails, ToolError."""
    need_provers(design, native)
    proof = Proof()
    if design.has_hardware or "engine" not in design.targets:
        proof = prove_netlist(design.forest, design.netlist, design.witness, progress=progress)
    if "verilog" in design.targets:
        prove_verilog(design.forest, design.netlist, design.path("verilog").read_bytes(), proof, progress, native)
    if "vhdl" in design.targets:
        prove_vhdl(design.netlist, design.path("vhdl").read_bytes(), proof, progress, native)
    if "engine" in design.targets:
        prove_engine(design, proof, progress, native)
    return proof
