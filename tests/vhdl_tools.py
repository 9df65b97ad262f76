"""Runs generated VHDL under GHDL, in both standards and with every warning."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends import vhdl
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.verilog import vector_lines
from forestc.netlist.ir import Netlist, evaluate, reads

STANDARDS = ("93", "08")
# -Wall of later versions, warning by warning
WARNINGS = [
    f"-W{name}"
    for name in (
        "library", "default-binding", "binding", "reserved", "nested-comment", "directive", "parenthesis",
        "vital-generic", "delayed-checks", "body", "specs", "universal", "port-bounds", "runtime-error", "shared",
        "hide", "unused", "others", "pure", "analyze-assert", "attribute", "useless", "static", "port",
    )
]  # fmt: skip


def ghdl(folder: Path, *words: str) -> str:
    """What GHDL prints; it must not fail."""
    done = subprocess.run(["ghdl", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def analyzed(folder: Path, files: list[str], standard: str, *options: str) -> None:
    """Analyses files, of which there must be no warning."""
    said = ghdl(folder, "-a", f"--std={standard}", *WARNINGS, *options, *files)
    assert said == "", said


def benched(
    netlist: Netlist, words: NDArray[Any], results: NDArray[Any], folder: Path, standard: str, core: str = ""
) -> str:
    """What a netlist's test bench says in VHDL. words: (rows, features). results: (rows, outputs). core: another text
    of the core."""
    files, inputs, outputs = vhdl.emit(netlist), input_fields(netlist), output_fields(netlist)
    for path, text in files.items():
        (folder / path).write_text(text)
    if core:
        (folder / next(iter(files))).write_text(core)
    (folder / "vectors.txt").write_text(vector_lines(inputs, outputs, pack(inputs, words), pack(outputs, results)))
    analyzed(folder, list(files), standard)
    bench = list(files)[1].removesuffix(".vhd")
    return ghdl(folder, "-r", f"--std={standard}", bench, "--ieee-asserts=disable-at-0", "--assert-level=error")


def by_cells(netlist: Netlist, words: NDArray[Any]) -> NDArray[Any]:
    """A netlist's results by the meaning of its cells, registers taken for wires."""
    results = []
    for row in words.tolist():
        values: list[int] = []
        ports = iter([*row, 1])
        for cell in netlist.cells:
            given = tuple(values[a] for a in reads(cell))
            kind = type(cell).__name__
            values.append(next(ports) if kind == "Input" else given[0] if kind == "Register" else evaluate(cell, given))
        results.append([values[net] for port, net in netlist.outputs if port.kind != "valid"])
    return np.array(results, dtype=np.int64)
