"""Runs the generated C++ on the host."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from forestc.backends.base import Written
from forestc.backends.hls import core as hls
from forestc.backends.names import feature_name
from forestc.backends.ports import output_fields
from forestc.backends.running import Difference, copied, difference, rows_of_numbers
from forestc.backends.vectors import Vectors, results
from forestc.errors import PYTHON, MissingToolError
from forestc.forest.evaluate import Evaluation
from forestc.toolchain.compilers import ap_types, cxx_compiler, version
from forestc.toolchain.run import run_tool
from hdl_templates import render


class HlsEngine:
    """Runs the generated HLS C++, compiled on the host with the open ap_types headers from hls4ml."""

    # Without the option, g++ would inline all functions into one, which compiles slowly.
    flags: ClassVar[tuple[str, ...]] = ("-std=c++14", "-O1", "-fno-inline-functions-called-once")

    def __init__(self, design: Written, folder: Path) -> None:
        compiler, headers = cxx_compiler(), ap_types()
        if compiler is None:
            raise MissingToolError("no C++ compiler was found", do="install g++, or set CXX")
        if headers is None:
            raise MissingToolError(
                "the ap_types headers are not installed", where=PYTHON, do='pip install "forestc[hls]"'
            )
        self.forest, self.netlist = design.forest, design.netlist
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
        expected = results(self.forest, self.netlist, evaluation)
        words = vectors.words if vectors.words.shape[1] else np.zeros((len(expected), 1), dtype=np.int64)
        out = run_tool([str(self.folder / "program")], self.folder, data=words.astype("<i8").tobytes(), seconds=3600)
        return difference(rows_of_numbers(out, "<i8", expected.shape[1]), expected)
