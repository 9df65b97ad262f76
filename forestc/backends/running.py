"""Engines of `check`: each runs a compiled design in one tool and compares its results with the evaluator's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.backends import hdl
from forestc.backends.base import Written
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.vectors import Vectors, results
from forestc.errors import MissingToolError, ToolError, printable
from forestc.forest.evaluate import Evaluation
from forestc.netlist.ir import Netlist
from forestc.system.compiled import announce
from forestc.toolchain.compilers import version
from forestc.toolchain.run import find, run_tool
from hw_sim import Simulator, evaluate

IntMatrix: TypeAlias = NDArray[np.int64]


_VERDICT, _MISMATCH = re.compile(r"(PASS|FAIL)\b(?: (\d{1,18})\b)?"), re.compile(r"MISMATCH vector (\d{1,18})\b")
MOST_PLAIN = 300_000_000  # limits cells times vectors for the plain simulator; above, it is compiled


@dataclass(frozen=True)
class Difference:
    """The differences between an engine and the evaluator on a batch of vectors."""

    count: int  # number of vectors with different results
    first: int = -1  # index of the first vector with a difference
    got: tuple[int, ...] = ()  # engine's results for vector `first`
    expected: tuple[int, ...] = ()  # evaluator's results for vector `first`
    given: tuple[float, ...] = ()  # raw values of vector `first`; empty if words are the input
    left_out: int = 0  # number of rows outside the C types of the inputs
    why: str = ""  # describes the first row left out


def difference(got: IntMatrix, expected: IntMatrix) -> Difference:
    """Compares results (rows, fields) row by row. Missing and surplus rows count as differences."""
    common = min(len(got), len(expected))
    wrong = np.flatnonzero((got[:common] != expected[:common]).any(axis=1))
    count = len(wrong) + abs(len(got) - len(expected))
    if not count:
        return Difference(0)
    first = int(wrong[0]) if len(wrong) else common
    shown = tuple(got[first].tolist()) if first < len(got) else ()
    return Difference(count, first, shown, tuple(expected[min(first, len(expected) - 1)].tolist()))


def rows_of_numbers(out: bytes, kind: str, columns: int) -> NDArray[Any]:
    """Reads a program's output as (rows, columns) numbers of the NumPy type `kind`. Raises ToolError for an incomplete
    row."""
    if len(out) % (np.dtype(kind).itemsize * columns):
        raise ToolError(
            "the program that runs the design ended within a row of results", where="standard output", do="check again"
        )
    return np.frombuffer(out, dtype=kind).reshape(-1, columns)


def bench_difference(out: bytes, expected: IntMatrix) -> Difference:
    """Reads the verdict in the output of a self-checking test bench. expected: (rows, fields). Raises ToolError unless
    there is exactly one verdict."""
    log = printable(out.decode("utf-8", "replace")).splitlines()
    verdicts = [match for line in log if (match := _VERDICT.match(line))]
    if len(verdicts) != 1:
        raise ToolError(f"it gave {len(verdicts) or 'no'} verdicts: {' | '.join(log[-4:])}", where="test bench")
    passed, number = verdicts[0][1] == "PASS", int(verdicts[0][2] or 0)
    if passed and number == len(expected):
        return Difference(0)
    first = next((match for line in log if (match := _MISMATCH.match(line))), None)
    index = min(int(first[1]), len(expected) - 1) if first else 0
    return Difference(1 if passed else max(1, number), index, (), tuple(expected[index].tolist()))


def netlist_words(netlist: Netlist, words: IntMatrix) -> IntMatrix:
    """Returns the words of the netlist's inputs (rows, ports): the feature words, then ones if the netlist has the port
    in_valid."""
    valid = sum(cell.port.kind == "valid" for _, cell in netlist.inputs)
    return np.concatenate([words, np.ones((len(words), valid), dtype=np.int64)], axis=1) if valid else words


def simulated(run: Callable[[IntMatrix], IntMatrix], netlist: Netlist, words: IntMatrix) -> IntMatrix:
    """Runs a simulator on feature words. Returns (rows, fields): label, score0, ...
    run: the simulator, a function from words of all inputs (rows, inputs) to words of all outputs (rows, outputs)."""
    indices = [index for index, (port, _) in enumerate(netlist.outputs) if port.kind != "valid"]
    return np.asarray(run(netlist_words(netlist, words))[:, indices], dtype=np.int64)


def copied(design: Written, role: str, folder: Path) -> str:
    source = design.path(role)
    (folder / source.name).write_bytes(source.read_bytes())
    return source.name


class NetlistEngine:
    """Simulates the netlist with hw_sim. If cells times vectors exceed `MOST_PLAIN`, the netlist is compiled first."""

    def __init__(self, design: Written, folder: Path) -> None:
        self.tool = "hw_sim"
        self.forest, self.netlist = design.forest, design.netlist
        self.compiled: Simulator | None = None

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        run: Callable[[IntMatrix], IntMatrix] = partial(evaluate, self.netlist)
        if self.compiled is not None or len(self.netlist.cells) * len(vectors.words) > MOST_PLAIN:
            announce()
            self.compiled = self.compiled or Simulator(self.netlist)
            run = self.compiled.run
        return difference(simulated(run, self.netlist, vectors.words), results(self.forest, self.netlist, evaluation))


class BenchEngine:
    """Base of engines that run a core and its self-checking test bench in a simulator."""

    roles: ClassVar[tuple[str, ...]]  # kinds of files to compile, the bench last
    ending: ClassVar[str] = "_tb"  # end of the bench's module name
    programs: ClassVar[tuple[str, ...]]  # programs of the simulator
    title: ClassVar[str]  # name of the simulator

    def __init__(self, design: Written, folder: Path) -> None:
        programs = [path for program in self.programs if (path := find(program))]
        if len(programs) < len(self.programs):
            raise MissingToolError(f"{self.title} was not found", do=f"install {self.programs[0]}")
        self.forest, self.netlist, self.folder = design.forest, design.netlist, folder
        self.inputs, self.outputs = input_fields(self.netlist), output_fields(self.netlist)
        self.bench = hdl.module_name(self.netlist) + self.ending
        files, bench = design.manifest["files"], self.roles[-1]
        sources = [copied(design, role, folder) for role in self.roles if role in files or role == bench]
        self.command = self.build(programs, sources)
        self.tool = version(programs[0])

    def build(self, programs: list[str], sources: list[str]) -> list[str]:
        """Compiles the sources in the folder. Returns the command that runs the bench on vectors.txt."""
        raise NotImplementedError

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        expected = results(self.forest, self.netlist, evaluation)
        lines = hdl.vector_lines(
            self.inputs, self.outputs, pack(self.inputs, vectors.words), pack(self.outputs, expected)
        )
        (self.folder / "vectors.txt").write_text(lines)
        return bench_difference(run_tool(self.command, self.folder, seconds=3600), expected)
