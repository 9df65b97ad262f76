"""Engines that run a stream's files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np

from forestc.backends.base import Written
from forestc.backends.ports import input_fields, pack
from forestc.backends.running import BenchEngine, Difference, copied, difference
from forestc.backends.vectors import Vectors
from forestc.backends.vhdl.engines import GhdlEngine, NvcEngine
from forestc.errors import ToolError
from forestc.forest.evaluate import Evaluation
from forestc.toolchain.run import run_tool

_TO_WORDS = (
    "import importlib, json, sys; sys.path.insert(0, '.'); words = importlib.import_module(sys.argv[1]); "
    "given = json.load(sys.stdin); row = [0.0] * words.COLUMNS\n"
    "for values in given['rows']:\n"
    "    for column, value in zip(given['columns'], values): row[column] = value\n"
    "    print(f'{words.pack(words.quantize(row)):x}')"
)


class _StreamBench(BenchEngine):
    """The VHDL stream wrapper and its self-checking test bench."""

    roles: ClassVar[tuple[str, ...]] = ("vhdl", "vhdl_axi_lite", "vhdl_axi_stream", "vhdl_stream_testbench")
    ending: ClassVar[str] = "_axis_tb"


class GhdlStreamEngine(_StreamBench, GhdlEngine):
    """Runs them in GHDL."""


class NvcStreamEngine(_StreamBench, NvcEngine):
    """Runs them in NVC."""


class WordsEngine:
    """Runs the generated Python module that turns rows into words, in a Python process of its own."""

    def __init__(self, design: Written, folder: Path) -> None:
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
