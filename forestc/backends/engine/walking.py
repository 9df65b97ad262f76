"""Checks of a loadable engine: simulators run its Verilog, and a second reader evaluates its image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forestc.backends.base import Written
from forestc.backends.engine.image_reader import row_words
from forestc.backends.engine.reading import capacity_in, image_in
from forestc.backends.running import Difference, bench_difference, copied, difference
from forestc.backends.vectors import Vectors
from forestc.engine.capacity import Capacity
from forestc.engine.image import image_of, packed_rows
from forestc.engine.vectors import image_lines, packed_results, results_of, row_lines
from forestc.engine.verilog import view_of
from forestc.errors import MissingToolError, ToolError, opt, printable
from forestc.forest.evaluate import Evaluation
from forestc.toolchain import verilator
from forestc.toolchain.compilers import version
from forestc.toolchain.run import find, run_tool
from hdl_templates import render

STALLS = 3  # clocks of 16 in which either side of a stream waits


@dataclass(frozen=True)
class Load:
    """An image to load into an engine during a simulation."""

    after: int  # number of rows sent before the image
    words: NDArray[np.uint32]


@dataclass(frozen=True)
class Simulation:
    """An engine's Verilog, compiled by Verilator. The engine must load images as a stream."""

    capacity: Capacity
    program: Path

    @classmethod
    def of(cls, capacity: Capacity, source: str, folder: Path) -> Simulation:
        """Compiles an engine's Verilog. source: the file's name in `folder`. Raises MissingToolError or ToolError."""
        tool = verilator.need_verilator()
        lanes = [-(-bits // 32) for bits in (capacity.tdata_bits, capacity.result_bits)]
        main = render(
            "check/engine_main.cpp.j2",
            **view_of(capacity) | {"load": "top->s_load_"},
            most_clocks=capacity.most_clocks,
            user_mask=(1 << capacity.user_bits) - 1,
            x_lanes=lanes[0],
            y_lanes=lanes[1],
        )
        return cls(capacity, verilator.build(tool, [source], capacity.name, main, folder))

    def run(
        self, loads: Sequence[Load], beats: NDArray[np.uint64], stall: int = 0, seed: int = 1
    ) -> tuple[list[int], str]:
        """Sends rows (rows, beats) to the engine. Returns one integer per row, and the program's messages. Raises
        ToolError for lost or added rows.
        stall: in how many of 16 clocks a side waits."""
        parts = [np.array([len(loads)], dtype="<u4")]
        for load in loads:
            parts += [np.array([load.after, len(load.words)], dtype="<u4"), load.words.astype("<u4")]
        wide = np.ascontiguousarray(beats.astype("<u8")).view("<u4").reshape(-1, 2)
        parts.append(wide[:, : -(-self.capacity.tdata_bits // 32)].ravel())
        data = b"".join(part.tobytes() for part in parts)
        out = run_tool(
            [str(self.program), str(stall), str(seed)], self.program.parent, data=data, errors=True, seconds=7200
        )
        lanes = -(-self.capacity.result_bits // 32)
        size = 4 * lanes * len(beats)
        if len(out) < size + 4 or any(out[size : size + 4]):
            raise ToolError(
                f"the engine lost or added rows: {out[-200:].decode('utf-8', 'replace')}", where="Verilator"
            )
        words = np.frombuffer(out[:size], dtype="<u4").reshape(-1, lanes)
        results = [sum(int(word) << (32 * lane) for lane, word in enumerate(row)) for row in words.tolist()]
        return results, printable(out[size + 4 :].decode("utf-8", "replace"))


class WalkersInVerilator:
    """Runs the engine's Verilog, compiled by Verilator, with random stalls."""

    def __init__(self, design: Written, folder: Path) -> None:
        self.capacity, self.forest = capacity_in(design), design.forest
        if self.capacity.load != "stream":
            raise MissingToolError(
                "Verilator drives engines that take images as a stream", where=opt.engines, do="use engine-icarus"
            )
        self.image = image_of(self.forest, self.capacity)
        self.simulation = Simulation.of(self.capacity, copied(design, "engine", folder), folder)
        self.tool = verilator.need_verilator().version

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        beats = packed_rows(self.forest, self.capacity, vectors.words)
        got, _ = self.simulation.run([Load(0, self.image.words)], beats, stall=STALLS)
        expected = results_of(self.capacity, evaluation)
        return difference(unpacked_results(self.capacity, got), expected)


class WalkersInIcarus:
    """Runs the engine's Verilog and its self-checking test bench in Icarus Verilog, with random stalls."""

    def __init__(self, design: Written, folder: Path) -> None:
        compiler, self.runner = find("iverilog"), find("vvp")
        if compiler is None or self.runner is None:
            raise MissingToolError("Icarus Verilog was not found", do="install iverilog")
        self.capacity, self.forest, self.folder = capacity_in(design), design.forest, folder
        sources = [copied(design, role, folder) for role in ("engine", "engine_testbench")]
        run_tool([compiler, "-g2005", "-o", "bench.vvp", *sources], folder, writes=["bench.vvp"])
        (folder / "images.txt").write_text(image_lines(image_of(self.forest, self.capacity)))
        self.tool = version(compiler)

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        assert self.runner is not None
        expected = results_of(self.capacity, evaluation)
        (self.folder / "rows.txt").write_text(row_lines(self.forest, self.capacity, vectors.words))
        lines = "".join(f"{result:x}\n" for result in packed_results(self.capacity, expected))
        (self.folder / "results.txt").write_text(lines)
        command = [self.runner, "-n", "bench.vvp", f"+stall={STALLS}"]
        return bench_difference(run_tool(command, self.folder, seconds=3600), expected)


class ImageInReader:
    """Evaluates rows with the image, as decoded by `forestc.backends.engine.image_reader`."""

    def __init__(self, design: Written, folder: Path) -> None:
        self.forest, self.capacity, self.tool = design.forest, capacity_in(design), "image_reader"
        self.image = image_in(design)

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        got = self.image.walked(row_words(self.forest, self.image.shape, vectors.words))
        return difference(got, results_of(self.capacity, evaluation))


def unpacked_results(capacity: Capacity, results: Sequence[int]) -> NDArray[np.int64]:
    """Converts integers from m_axis_tdata to an array (rows, 1 or 1 + outputs): the label and, if the engine gives
    them, the scores."""
    bits, first = capacity.score_bits, capacity.label_bits
    columns = [[result & ((1 << first) - 1) for result in results]]
    for output in range(capacity.outputs if capacity.scores else 0):
        values = [result >> (first + output * bits) & ((1 << bits) - 1) for result in results]
        columns.append([value - (value >> (bits - 1) << bits) for value in values])
    return np.array(columns, dtype=np.int64).T.reshape(len(results), len(columns))
