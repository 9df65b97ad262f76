"""Runs generated VHDL under GHDL, in each standard and with every warning; proves its stream wrapper by yosys."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from forestc.backends.hdl import vector_lines
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.vectors import expected, vectors
from forestc.backends.vhdl import core as vhdl
from forestc.checks.proof import prove_vhdl
from forestc.errors import ToolError
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist, evaluate, reads
from forestc.rows.batches import ArrayRows
from forestc.toolchain.yosys import run_yosys

STANDARDS = ("93c", "93", "08")  # lists GHDL's names of VHDL standards; the first is its default
# These are the warnings of -Wall in later versions, one by one.
WARNINGS = [
    f"-W{name}"
    for name in (
        "library", "default-binding", "binding", "reserved", "nested-comment", "directive", "parenthesis",
        "vital-generic", "delayed-checks", "body", "specs", "universal", "port-bounds", "runtime-error", "shared",
        "hide", "unused", "others", "pure", "analyze-assert", "attribute", "useless", "static", "port",
    )
]  # fmt: skip


def nvc_calls(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Callable[[], list[str]]:
    """Puts a script in NVC's place, since NVC is in no distribution that runs the tests. Returns a function that gives
    its calls."""
    program = folder / "nvc"
    program.write_text('#!/bin/sh\necho "$@" >> "$0.calls"\necho "nvc 1.0"\n')
    program.chmod(0o755)
    monkeypatch.setattr("forestc.backends.running.find", lambda name: str(program))
    return lambda: (folder / "nvc.calls").read_text().splitlines()


def ghdl(folder: Path, *words: str) -> str:
    """Runs GHDL, which must succeed; returns its output."""
    done = subprocess.run(["ghdl", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def analyzed(folder: Path, files: list[str], standard: str, *options: str) -> None:
    """Analyses files, which must cause no warning."""
    said = ghdl(folder, "-a", f"--std={standard}", *WARNINGS, *options, *files)
    assert said == "", said


def benched(
    netlist: Netlist, words: NDArray[Any], results: NDArray[Any], folder: Path, standard: str, core: str = ""
) -> str:
    """Runs a netlist's VHDL test bench; returns its output. words: (rows, features). results: (rows, outputs). core:
    another text of the core."""
    files, inputs, outputs = vhdl.emit(netlist), input_fields(netlist), output_fields(netlist)
    for path, text in files.items():
        (folder / path).write_text(text)
    if core:
        (folder / next(iter(files))).write_text(core)
    (folder / "vectors.txt").write_text(vector_lines(inputs, outputs, pack(inputs, words), pack(outputs, results)))
    analyzed(folder, list(files), standard)
    bench = list(files)[1].removesuffix(".vhd")
    return run_bench(folder, bench, standard)


def run_bench(folder: Path, bench: str, standard: str) -> str:
    """Elaborates an analysed bench, as GHDL's GCC back end needs it, and runs it; returns its output."""
    ghdl(folder, "-e", f"--std={standard}", bench)
    return ghdl(folder, "-r", f"--std={standard}", bench, "--ieee-asserts=disable-at-0")


def by_cells(netlist: Netlist, words: NDArray[Any]) -> NDArray[Any]:
    """Returns a netlist's results by the meaning of its cells, with registers taken for wires."""
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


def words_of(forest: Forest, rows: NDArray[Any], count: int) -> NDArray[Any]:
    """Returns words of given rows, on thresholds, and random ones."""
    return np.concatenate([part.words for part in vectors(forest, ArrayRows(rows), count, 0)])


# --- the stream wrapper -----------------------------------------------------------------------------------

_FLAT = """
{read}
hierarchy -check -top {top}
proc -norom
memory_map
flatten
# The comparison does not look at clock edges, so all state must be registers at the rising edge of aclk.
design -save named
opt_clean -purge
select -assert-any t:$dff
select -assert-none t:$*ff* t:$dlatch* %u t:$sr %u t:$mem* %u t:$dff %d t:$dffe %d
select -assert-none t:$dff* r:CLK_POLARITY=0 %i
select -assert-none t:$dff* %ci1:+[CLK] t:* %d w:aclk %d
design -load named
opt_clean
# Registers may start with any values: the proof holds from equal values on, which a reset gives.
setattr -unset init w:*
rename -top {name}
write_rtlil {name}.il
"""
_SAME = """
read_rtlil gold.il
read_rtlil gate.il
# miter refuses different ports, which later commands would ignore.
miter -equiv gold gate ports
delete ports
equiv_make gold gate equiv
cd equiv
opt_expr
wreduce
opt_merge
opt_clean
equiv_simple -undef
equiv_induct -undef
equiv_status -assert
tee -q -o same.txt equiv_status
"""


def wrappers_differ(top: str, verilog_files: dict[str, str], vhdl_files: dict[str, str]) -> str:
    """Compares a module in Verilog with GHDL's synthesis of its VHDL in yosys. Returns a message if yosys does not
    prove them equal; "" otherwise.

    Registers of the same name are assumed equal, with any values. The proof shows that these registers and the outputs
    are equal after every clock, for all inputs.

    verilog_files, vhdl_files: texts by path, in the order of their use.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in (verilog_files | vhdl_files).items():
            (folder / path).write_text(text)
        command = ["ghdl", "--synth", "--std=93", "--out=verilog", *vhdl_files, "-e", top]
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
        (folder / "synthesized.v").write_text(made)
        sides = (("gold", list(verilog_files)), ("gate", ["synthesized.v"]))
        script = _SAME
        for side, files in reversed(sides):
            read = "\n".join(f"read_verilog {file}" for file in files)
            script = f"{_FLAT.format(read=read, top=top, name=side)}\ndesign -reset\n{script}"
        try:
            run_yosys(script, folder, writes=["same.txt"])
        except ToolError as error:
            return error.where
    return ""


# --- planted edits ----------------------------------------------------------------------------------------

EDITS = (
    (r"(?<= )and(?= )", "or"), (r"(?<= )or(?= )", "and"), (r"(?<=[ (])not (?=[a-z])", ""),
    (r"(?<=[01\"])1(?=[01]*\")", "0"), (r"(?<=[01\"])0(?=[01]*\")", "1"), (r"(?<=<= )'1'(?= when)", "'0'"),
    (r"(?<= = )'1'(?= else)", "'0'"), (r"(?<=[a-z0-9_]\()[1-9](?=\))", "0"), (r" < (?=[\"a-z])", " > "),
    (r" \+ ", " - "),
    (r"rising_edge", "falling_edge"), (r"(?<=:= )'0'", "'1'"), (r"others => '0'", "others => '1'"),
)  # fmt: skip


def edited(text: str, random: Random) -> str:
    """Changes one thing in the architecture of a text."""
    start = text.index("architecture")
    while True:
        pattern, by = random.choice(EDITS)
        found = [
            match for match in re.finditer(pattern, text) if match.start() > start and "--" not in line_of(text, match)
        ]
        if found:
            match = random.choice(found)
            return text[: match.start()] + by + text[match.end() :]


def line_of(text: str, match: re.Match[str]) -> str:
    return text[text.rindex("\n", 0, match.start()) : match.start()]


def survives(forest: Forest, netlist: Netlist, text: str) -> str:
    """Tests an edited core. Returns either the way it was found (by the proof, or refused by tools), or "equal for
    every input" by the proof and the test bench, or that only the bench found it."""
    try:
        if not prove_vhdl(netlist, text.encode()).proved:
            return "found"
    except ToolError:
        return "found"
    words = words_of(forest, np.zeros((1, forest.columns)), 200)
    with tempfile.TemporaryDirectory() as folder:
        said = benched(netlist, words, expected(forest, netlist, words), Path(folder), "93", text)
    return "equal for every input" if "PASS" in said else "missed"
