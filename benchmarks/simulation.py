"""hw_sim against Verilator on the same logic: vectors per second on all cores, without the build.

The forest: 100 trees of depth 8 on 16 features of 10 bits, trained on generated data. Verilator runs forestc's Verilog,
compiled with -O2, with one process per core, each with its share of the vectors in memory before the clock starts. The
benchmark stops if the results of any vector differ. Target: at least 10 times as fast.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from tools import arguments, show

import forestc
from forestc.backends import hdl, verilog
from forestc.backends.ports import input_fields, output_fields, packed_bytes, unpacked, width_of
from forestc.checks.engines import simulated
from forestc.toolchain.run import run_tool
from forestc.toolchain.verilator import build, find_verilator
from hdl_templates import render
from hw_sim import Simulator

FEATURES, BITS, ROWS = 16, 10, 20_000


def forest_100(trees: int, depth: int) -> tuple[forestc.Forest, np.ndarray]:
    """The quantized forest and its training rows."""
    X, y = make_classification(
        ROWS, FEATURES, n_informative=12, n_redundant=2, n_clusters_per_class=8, flip_y=0.1, random_state=0
    )
    low, high = X.min(axis=0), X.max(axis=0)
    X = np.rint((X - low) / (high - low) * ((1 << BITS) - 1))
    model = RandomForestClassifier(trees, max_depth=depth, random_state=0, n_jobs=-1).fit(X, y)
    return forestc.quantize(model, X, passes="simplify,quantize{leaf_bits=6,change=1},simplify"), X


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--vectors", type=int, default=4_000_000, help="vectors for hw_sim; Verilator gets a tenth")
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    forest, _ = forest_100(options.trees, options.depth)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        from forestc.lowering.trees import lower

        netlist = lower(forest)
        inputs, outputs = input_fields(netlist), output_fields(netlist)
        random = np.random.default_rng(1)
        words = random.integers(0, 1 << BITS, (options.vectors, len(forest.features)), dtype=np.int64)

        start = time.perf_counter()
        simulator = Simulator(netlist)
        sim_build = time.perf_counter() - start
        simulated(simulator.run, netlist, words[:4096])  # the kernel is compiled once for all designs, and cached
        runs = []
        for _ in range(3):
            start = time.perf_counter()
            result = simulated(simulator.run, netlist, words)
            runs.append(time.perf_counter() - start)
        sim_seconds = min(runs)

        os.environ["FORESTC_CACHE"] = ""  # no cache: the build is timed
        tool = find_verilator()
        if tool is None:
            raise SystemExit("Verilator is not installed")
        for name, text in verilog.emit(netlist).items():
            (folder / name).write_text(text)
        module = hdl.module_name(netlist)
        y_lanes = max(1, -(-width_of(outputs) // 32))
        main_text = render(
            "check/verilator_main.cpp.j2", x_lanes=-(-width_of(inputs) // 32), y_lanes=y_lanes, latency=0
        )
        start = time.perf_counter()
        program = build(tool, [f"{module}.v"], module, main_text, folder, optimize="-O2")
        verilator_build = time.perf_counter() - start
        share = options.vectors // 10 // cores
        parts = [packed_bytes(inputs, words[k * share : (k + 1) * share]).tobytes() for k in range(cores)]
        runs = []
        for _ in range(3):
            start = time.perf_counter()
            with ThreadPoolExecutor(cores) as pool:
                done = list(pool.map(lambda data: run_tool([str(program)], folder, data=data), parts))
            runs.append(time.perf_counter() - start)
        verilator_seconds = min(runs)
        answers = unpacked(outputs, np.frombuffer(b"".join(done), dtype="<u4").reshape(-1, y_lanes))
        if not np.array_equal(answers, result[: share * cores]):
            raise SystemExit("hw_sim and Verilator differ")

    ours, theirs = options.vectors / sim_seconds, share * cores / verilator_seconds
    splits = sum(len(tree.inner) for tree in forest.trees)
    rows = [
        {
            "engine": "hw_sim",
            "vectors": options.vectors,
            "seconds": sim_seconds,
            "vectors_per_s": ours,
            "build_s": sim_build,
        },
        {
            "engine": tool.version,
            "vectors": share * cores,
            "seconds": verilator_seconds,
            "vectors_per_s": theirs,
            "build_s": verilator_build,
        },
    ]
    show(
        f"{options.trees} trees of depth {options.depth}: {splits:,} splits, "
        f"{len(forest.conditions.comparators):,} comparators, {cores} cores",
        rows,
        options.json,
        ratio=ours / theirs,
    )


if __name__ == "__main__":
    main()
