"""Engines of `check`: each runs a compiled design in one tool and compares its results with the evaluator's."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.backends import hdl, hls, verilog
from forestc.backends.c import types as c_types
from forestc.backends.c.inputs import inputs_of, rows_of
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.values import shown
from forestc.backends.names import c_string, feature_name, identifier
from forestc.backends.ports import input_fields, output_fields, pack, packed_bytes, unpacked, width_of
from forestc.checks.vectors import Vectors, disturbed, results, taken
from forestc.errors import PYTHON, MissingToolError, ToolError, printable
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.netlist.ir import Netlist
from forestc.rows.encode import encode
from forestc.toolchain import verilator
from forestc.toolchain.compilers import STRICT, ap_types, c_compiler, cxx_compiler, sanitizers, version
from forestc.toolchain.program_cache import cached_program
from forestc.toolchain.run import find, run_tool
from forestc.toolchain.yosys import run_yosys
from hdl_templates import render
from hw_sim import Simulator, evaluate

IntMatrix: TypeAlias = NDArray[np.int64]
_TO_WORDS = (
    "import importlib, json, sys; sys.path.insert(0, '.'); words = importlib.import_module(sys.argv[1]); "
    "given = json.load(sys.stdin); row = [0.0] * words.COLUMNS\n"
    "for values in given['rows']:\n"
    "    for column, value in zip(given['columns'], values): row[column] = value\n"
    "    print(f'{words.pack(words.quantize(row)):x}')"
)
_TO_RTLIL = (
    "import runpy, sys; from amaranth.back import rtlil; print(runpy.run_path(sys.argv[1])['convert'](rtlil), end='')"
)


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


class Engine(Protocol):
    """Runs one design in one tool. `compare` compares the tool's results with the evaluator's."""

    name: ClassVar[str]
    role: ClassVar[str] = ""  # kind of generated file that runs; empty if none does
    sample: ClassVar[int] = 0  # vectors of each origin that run by default; 0 for all
    stands_in_for: ClassVar[str] = ""  # name of an engine; this one runs if that can't
    tool: str

    def __init__(self, design: Design, folder: Path) -> None:
        """Builds the design in `folder`."""

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference: ...


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


def copied(design: Design, role: str, folder: Path) -> str:
    source = design.path(role)
    (folder / source.name).write_bytes(source.read_bytes())
    return source.name


class NetlistEngine(Engine):
    """Simulates the netlist with hw_sim. If cells times vectors exceed `MOST_PLAIN`, the netlist is compiled first."""

    name: ClassVar[str] = "netlist"

    def __init__(self, design: Design, folder: Path) -> None:
        self.tool = "hw_sim"
        self.netlist = design.netlist
        self.compiled: Simulator | None = None

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        run: Callable[[IntMatrix], IntMatrix] = partial(evaluate, self.netlist)
        if self.compiled is not None or len(self.netlist.cells) * len(vectors.words) > MOST_PLAIN:
            self.compiled = self.compiled or Simulator(self.netlist)
            run = self.compiled.run
        return difference(simulated(run, self.netlist, vectors.words), results(self.netlist, evaluation))


class VerilatorEngine(Engine):
    """Runs the generated Verilog, compiled by Verilator and the host's C++ compiler."""

    name: ClassVar[str] = "verilator"
    role: ClassVar[str] = "verilog"

    def __init__(self, design: Design, folder: Path) -> None:
        tool = verilator.find_verilator()
        if tool is None or cxx_compiler() is None:
            raise MissingToolError("Verilator or a C++ compiler is missing", do=verilator.INSTALL)
        self.netlist = design.netlist
        self.inputs, self.outputs = input_fields(self.netlist), output_fields(self.netlist)
        self.folder = folder
        source = self._source(design)
        self.y_lanes = max(1, -(-width_of(self.outputs) // 32))
        main = render(
            "check/verilator_main.cpp.j2",
            x_lanes=max(1, -(-width_of(self.inputs) // 32)),
            y_lanes=self.y_lanes,
            latency=self.netlist.latency,
        )
        top = hdl.module_name(self.netlist)
        self.program = verilator.build(tool, [source], top, main, folder)
        self.tool = tool.version

    def _source(self, design: Design) -> str:
        return copied(design, "verilog", self.folder)

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        data = packed_bytes(self.inputs, vectors.words).astype("<u4").tobytes()
        out = run_tool([str(self.program)], self.folder, data=data)
        lanes = rows_of_numbers(out, "<u4", self.y_lanes)
        return difference(unpacked(self.outputs, lanes), results(self.netlist, evaluation))


class BenchEngine(Engine):
    """Base of engines that run a core and its self-checking test bench in a simulator."""

    sample: ClassVar[int] = 2000
    roles: ClassVar[tuple[str, ...]]  # kinds of files to compile, the bench last
    ending: ClassVar[str] = "_tb"  # end of the bench's module name
    programs: ClassVar[tuple[str, ...]]  # programs of the simulator
    title: ClassVar[str]  # name of the simulator

    def __init__(self, design: Design, folder: Path) -> None:
        programs = [path for program in self.programs if (path := find(program))]
        if len(programs) < len(self.programs):
            raise MissingToolError(f"{self.title} was not found", do=f"install {self.programs[0]}")
        self.netlist, self.folder = design.netlist, folder
        self.inputs, self.outputs = input_fields(self.netlist), output_fields(self.netlist)
        self.bench = hdl.module_name(self.netlist) + self.ending
        sources = [copied(design, role, folder) for role in self.roles if role in design.manifest["files"]]
        self.command = self.build(programs, sources)
        self.tool = version(programs[0])

    def build(self, programs: list[str], sources: list[str]) -> list[str]:
        """Compiles the sources in the folder. Returns the command that runs the bench on vectors.txt."""
        raise NotImplementedError

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        expected = results(self.netlist, evaluation)
        lines = verilog.vector_lines(
            self.inputs, self.outputs, pack(self.inputs, vectors.words), pack(self.outputs, expected)
        )
        (self.folder / "vectors.txt").write_text(lines)
        return bench_difference(run_tool(self.command, self.folder, seconds=3600), expected)


class IcarusEngine(BenchEngine):
    """Runs the generated Verilog and its self-checking test bench in Icarus Verilog."""

    name: ClassVar[str] = "icarus"
    role: ClassVar[str] = "testbench"
    stands_in_for: ClassVar[str] = "verilator"
    roles: ClassVar[tuple[str, ...]] = ("verilog", "testbench")
    programs: ClassVar[tuple[str, ...]] = ("iverilog", "vvp")
    title: ClassVar[str] = "Icarus Verilog"

    def build(self, programs: list[str], sources: list[str]) -> list[str]:
        compiler, runner = programs
        run_tool([compiler, "-g2005", "-o", "bench.vvp", *sources], self.folder, writes=["bench.vvp"])
        return [runner, "-n", "bench.vvp"]


class GhdlEngine(BenchEngine):
    """Runs the generated VHDL and its self-checking test bench in GHDL."""

    name: ClassVar[str] = "ghdl"
    role: ClassVar[str] = "vhdl"
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

    name: ClassVar[str] = "nvc"
    role: ClassVar[str] = "vhdl_testbench"
    stands_in_for: ClassVar[str] = "ghdl"
    roles: ClassVar[tuple[str, ...]] = ("vhdl", "vhdl_testbench")
    programs: ClassVar[tuple[str, ...]] = ("nvc",)
    title: ClassVar[str] = "NVC"

    def build(self, programs: list[str], sources: list[str]) -> list[str]:
        (nvc,) = programs
        run_tool([nvc, "--std=1993", "-a", *sources, "-e", self.bench], self.folder, seconds=3600)
        return [nvc, "--std=1993", "--ieee-warnings=off", "-r", self.bench]


STREAM_ROLES = ("vhdl", "vhdl_axi_lite", "vhdl_axi_stream", "vhdl_stream_testbench")


class GhdlStreamEngine(GhdlEngine):
    """Runs the VHDL stream wrapper and its self-checking test bench in GHDL."""

    name: ClassVar[str] = "ghdl_stream"
    role: ClassVar[str] = "vhdl_axi_stream"
    roles: ClassVar[tuple[str, ...]] = STREAM_ROLES
    ending: ClassVar[str] = "_axis_tb"


class NvcStreamEngine(NvcEngine):
    """Runs the VHDL stream wrapper and its self-checking test bench in NVC."""

    name: ClassVar[str] = "nvc_stream"
    role: ClassVar[str] = "vhdl_stream_testbench"
    stands_in_for: ClassVar[str] = "ghdl_stream"
    roles: ClassVar[tuple[str, ...]] = STREAM_ROLES
    ending: ClassVar[str] = "_axis_tb"


class CEngine(Engine):
    """Runs the generated C header on the host, with sanitizers if the compiler has them. It also checks quantizer and
    category codes."""

    name: ClassVar[str] = "c"
    role: ClassVar[str] = "c"

    def __init__(self, design: Design, folder: Path) -> None:
        compiler = c_compiler()
        if compiler is None:
            raise MissingToolError("no C compiler was found", do="install gcc or clang, or set CC")
        self.forest: Forest = design.forest
        options = design.c_options
        self.inputs = inputs = inputs_of(self.forest, options.c_inputs, options.c_types)
        self.quantizes, self.seen = options.quantizes, 0
        self.rows = rows_of(self.forest, row_type(self.forest, options.c_quantizer).name) if self.quantizes else inputs
        prefix = identifier(self.forest.name)
        self.shown = shown(self.forest, prefix, options.c_values)
        header = folder / copied(design, "c", folder)
        features = self.forest.features
        operands = [inputs.place(index).replace("->", ".") for index in range(len(features))]
        words = [(operand, inputs.kind(index)) for index, operand in enumerate(operands)]
        main = render(
            "check/c_main.c.j2",
            prefix=prefix,
            macro=prefix.upper(),
            n_words=0 if inputs.raw else len(features),
            words=[] if inputs.raw else words,
            row=self.rows.type if self.quantizes else "",
            n_columns=max(1, self.forest.columns),
            elements=self.rows.elements,
            raw=inputs.raw,
            x_type=inputs.type,
            struct=inputs.struct,
            shown=self.shown,
            codes=_named_codes(self.forest, prefix, inputs.raw),
            score_type=c_types.score_type(self.forest),
            labels=self.forest.decides,
            names=len(self.forest.targets[0].classes),
            targets=len(self.forest.targets),
            label_type=c_types.label_type(self.forest),
        )
        (folder / "main.c").write_text(main)
        command = [compiler, "-O1", *STRICT, *sanitizers(compiler), "main.c", "-o", "program"]

        def make() -> Path:
            run_tool(command, folder, seconds=1800, writes=["program"])
            return folder / "program"

        cached_program([version(compiler), *command, header.read_bytes(), main], folder / "program", make)
        self.folder = folder
        self.tool = f"{version(compiler)}{', sanitized' if sanitizers(compiler) else ''}"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        why, left_out = "", 0
        if self.inputs.raw:
            start = self.seen
            self.seen += len(vectors.raw) * (vectors.origin == "rows")
            vectors, why, left_out = taken(self.forest, vectors, self.inputs, start)
            evaluation = evaluate_words(self.forest, vectors.words)
            parts, rows = [self.inputs.table(vectors.raw)], vectors.raw
        else:
            rows = self.rows.fitted(disturbed(self.forest, vectors.raw)) if self.quantizes else vectors.raw
            parts = [np.ascontiguousarray(vectors.words).view(np.uint8).reshape(len(rows), -1)]
            parts += [self.rows.table(rows)] * self.quantizes
        out = run_tool([str(self.folder / "program")], self.folder, data=np.concatenate(parts, axis=1).tobytes())
        index = evaluation.index.reshape(len(rows), -1)
        expected = [np.zeros((len(rows), 1), dtype=np.int64), index, evaluation.scores]
        expected += [encode(self.forest, rows)] * self.quantizes
        exact = None if self.shown is None else values_of(self.forest, evaluation)
        if exact is not None:
            expected.insert(3, np.zeros(exact.shape, dtype=np.int64))
        joined = np.concatenate(expected, axis=1)
        got = rows_of_numbers(out, "=i8", joined.shape[1]).copy()
        if self.shown is not None and exact is not None:
            first = 1 + index.shape[1] + evaluation.scores.shape[1]
            shown_columns, common = slice(first, first + self.shown.count), min(len(got), len(joined))
            raw, exact = got[:common, shown_columns], exact[:common]
            floats = self.shown.kind == "float"
            values = raw.astype(np.uint32).view(np.float32).astype(np.float64) if floats else raw * self.shown.step
            near = np.abs(values - exact) <= self.shown.bound
            steps = exact.astype(np.float32).view(np.uint32) if floats else np.rint(exact / self.shown.step)
            nearest = steps.astype(np.int64)
            joined[:common, shown_columns] = np.where(near, raw, np.where(nearest == raw, ~raw, nearest))
        result = difference(got, joined)
        row = rows[result.first].tolist() if self.inputs.raw and 0 <= result.first < len(rows) else ()
        return replace(result, given=tuple(row), left_out=left_out, why=why)


def values_of(forest: Forest, evaluation: Evaluation) -> NDArray[np.float64]:
    """Returns the evaluator's values (rows, columns). A column is a class or, for a regression, an output."""
    columns = []
    for part in forest.targets:
        values = evaluation.values[:, part.start : part.stop]
        binary = part.width == 1 and len(part.classes) == 2
        columns.append(np.concatenate([1 - values, values], axis=1) if binary else values)
    return np.asarray(np.concatenate(columns, axis=1), dtype=np.float64)


def _named_codes(forest: Forest, prefix: str, raw: bool) -> list[tuple[str, str, int]]:
    """Returns a list of (C function, category name as C literal, word that the function must return), for known and
    unknown names."""
    codes = []
    for index, feature in enumerate(forest.features):
        if not feature.labels:
            continue
        function = f"{prefix}_{feature_name(index, feature.name)}_code"
        names = [*feature.labels, "", "no such name", feature.labels[0] + " "]
        for name in [*names, None] if feature.missing and not raw else names:
            if name is not None and "\0" in name:
                continue
            table = np.zeros((1, forest.width), dtype=object)
            table[0, forest.row_columns[index]] = name
            codes.append((function, "0" if name is None else c_string(name), int(encode(forest, table)[0, index])))
    return codes


class HlsEngine(Engine):
    """Runs the generated HLS C++, compiled on the host with the open ap_types headers from hls4ml."""

    name: ClassVar[str] = "hls"
    role: ClassVar[str] = "hls"
    # Without the option, g++ would inline all functions into one, which compiles slowly.
    flags: ClassVar[tuple[str, ...]] = ("-std=c++14", "-O1", "-fno-inline-functions-called-once")

    def __init__(self, design: Design, folder: Path) -> None:
        compiler, headers = cxx_compiler(), ap_types()
        if compiler is None:
            raise MissingToolError("no C++ compiler was found", do="install g++, or set CXX")
        if headers is None:
            raise MissingToolError(
                "the ap_types headers are not installed", where=PYTHON, do='pip install "forestc[hls]"'
            )
        self.netlist = design.netlist
        self.folder = folder
        top = hls.top_name(self.netlist)
        for role in ("hls", "hls_header"):
            copied(design, role, folder)
        features = design.forest.features
        main = render(
            "check/hls_main.cpp.j2",
            top=top,
            n_in=max(1, len(features)),
            inputs=[feature_name(index, feature.name) for index, feature in enumerate(features)],
            outputs=[field.name for field in output_fields(self.netlist)],
        )
        (folder / "main.cpp").write_text(main)
        sources = [f"{top}.cpp", "main.cpp"]
        command = [compiler, *self.flags, "-isystem", str(headers), *sources, "-o", "program"]
        run_tool(command, folder, seconds=3600, writes=["program"])
        self.tool = f"{version(compiler)}, ap_types"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        expected = results(self.netlist, evaluation)
        words = vectors.words if vectors.words.shape[1] else np.zeros((len(expected), 1), dtype=np.int64)
        out = run_tool([str(self.folder / "program")], self.folder, data=words.astype("<i8").tobytes(), seconds=3600)
        return difference(rows_of_numbers(out, "<i8", expected.shape[1]), expected)


class AmaranthEngine(VerilatorEngine):
    """Runs the generated Amaranth component, converted to Verilog, in Verilator."""

    name: ClassVar[str] = "amaranth"
    role: ClassVar[str] = "amaranth"

    def __init__(self, design: Design, folder: Path) -> None:
        if importlib.util.find_spec("amaranth") is None:
            raise MissingToolError("Amaranth is not installed", where=PYTHON, do='pip install "forestc[amaranth]"')
        super().__init__(design, folder)
        self.tool = f"Amaranth {importlib.metadata.version('amaranth')}, {self.tool}"

    def _source(self, design: Design) -> str:
        module = copied(design, "amaranth", self.folder)
        text = run_tool([sys.executable, "-c", _TO_RTLIL, module], self.folder, seconds=1800)
        (self.folder / "core.il").write_bytes(text)
        script = "read_rtlil core.il\nproc\nwrite_verilog -noattr core.v"
        run_yosys(script, self.folder, seconds=1800, writes=["core.v"])
        return "core.v"


class WordsEngine(Engine):
    """Runs the generated Python module that turns rows into words, in a Python process of its own."""

    name: ClassVar[str] = "words"
    role: ClassVar[str] = "words"
    sample: ClassVar[int] = 2000

    def __init__(self, design: Design, folder: Path) -> None:
        self.folder, self.module = folder, Path(copied(design, "words", folder)).stem
        self.inputs = input_fields(design.netlist)
        self.columns = list(design.forest.carried or range(design.forest.columns))
        self.tool = f"Python {sys.version.split()[0]}"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        data = json.dumps({"columns": self.columns, "rows": vectors.raw.tolist()}).encode()
        out = run_tool([sys.executable, "-c", _TO_WORDS, self.module], self.folder, data=data)
        try:
            bits = [int(x, 16) for x in out.split()]
        except ValueError:
            raise ToolError(f"{self.module}.py printed what is no word", where=self.tool) from None
        return difference(
            np.array([[x] for x in bits], dtype=object).reshape(-1, 1),
            np.array([[x] for x in pack(self.inputs, vectors.words)], dtype=object),
        )
