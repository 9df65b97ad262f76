"""Compares hw_sim with Verilator on the same logic: vectors per second on all cores, without the build.

The forest has 100 trees of depth 8 on 16 features of 10 bits, trained on generated data. Verilator runs forestc's
Verilog, compiled with -O2, in one process per core; each process has its share of the vectors in memory before the
clock starts. The benchmark stops if the results of any vector differ.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from ledger import Case, Ledger, Steps
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from tools import arguments

import forestc
from forestc.backends import hdl
from forestc.backends.ports import input_fields, output_fields, packed_bytes, unpacked, width_of
from forestc.backends.running import simulated
from forestc.backends.verilog import core as verilog
from forestc.lowering.trees import lower
from forestc.toolchain.run import run_tool
from forestc.toolchain.verilator import build, find_verilator
from hdl_templates import render
from hw_sim import Simulator

FEATURES, BITS, ROWS = 16, 10, 20_000


def forest_of(trees: int, depth: int, rows: int) -> forestc.Forest:
    X, y = make_classification(
        rows, FEATURES, n_informative=12, n_redundant=2, n_clusters_per_class=8, flip_y=0.1, random_state=0
    )
    low, high = X.min(axis=0), X.max(axis=0)
    X = np.rint((X - low) / (high - low) * ((1 << BITS) - 1))
    model = RandomForestClassifier(trees, max_depth=depth, random_state=0, n_jobs=-1).fit(X, y)
    return forestc.quantize(model, X, passes="simplify,round-leaves{leaf_bits=6,change=1},simplify")


def best_of_three(run: Callable[[], Any]) -> tuple[float, Any]:
    """Runs a function three times; returns the least seconds, and the result."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def main() -> None:
    parser = arguments(__doc__, "json")
    parser.add_argument("--vectors", type=int, default=4_000_000, help="vectors for hw_sim; Verilator gets a tenth")
    options = parser.parse_args()
    if options.small:
        options.vectors = 20 * (os.cpu_count() or 1)
    ledger = Ledger("simulation of 100 trees of depth 8", options, ("verilator", "numba"), ("vectors",))
    ledger.fill([{}], measured, options)
    ours, theirs = (row["vectors_per_s"] for row in ledger.rows)
    ledger.show(times_as_fast=ours / theirs)


def measured(options: Any, _: Case) -> Steps:
    yield [], None
    cores = os.cpu_count() or 1
    forest = forest_of(2, 2, 200) if options.small else forest_of(100, 8, ROWS)
    netlist = lower(forest)
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    random = np.random.default_rng(1)
    words = random.integers(0, 1 << BITS, (options.vectors, len(forest.features)), dtype=np.int64)
    start = time.perf_counter()
    simulator = Simulator(netlist)
    ours_build = time.perf_counter() - start
    # This run compiles the simulator's kernel, which is cached and serves all designs.
    simulated(simulator.run, netlist, words[:4096])
    ours_s, result = best_of_three(lambda: simulated(simulator.run, netlist, words))

    tool = find_verilator()
    if tool is None:
        raise SystemExit("Verilator is not installed")
    share = options.vectors // 10 // cores
    y_lanes = max(1, -(-width_of(outputs) // 32))
    # Without a cache the build is timed.
    with tempfile.TemporaryDirectory() as name, patch.dict(os.environ, FORESTC_CACHE=""):
        folder = Path(name)
        for file, text in verilog.emit(netlist).items():
            (folder / file).write_text(text)
        module = hdl.module_name(netlist)
        lanes = {"x_lanes": -(-width_of(inputs) // 32), "y_lanes": y_lanes}
        main_text = render("check/verilator_main.cpp.j2", **lanes, latency=0)
        start = time.perf_counter()
        program = build(tool, [f"{module}.v"], module, main_text, folder, optimize="-O2")
        theirs_build = time.perf_counter() - start
        parts = [packed_bytes(inputs, words[k * share : (k + 1) * share]).tobytes() for k in range(cores)]

        def run() -> list[bytes]:
            with ThreadPoolExecutor(cores) as pool:
                return list(pool.map(lambda data: run_tool([str(program)], folder, data=data), parts))

        theirs_s, done = best_of_three(run)
    answers = unpacked(outputs, np.frombuffer(b"".join(done), dtype="<u4").reshape(-1, y_lanes))
    if not np.array_equal(answers, result[: share * cores]):
        raise SystemExit("hw_sim and Verilator differ")
    yield [
        {"engine": engine, "vectors": count, "seconds": s, "vectors_per_s": round(count / s), "build_s": took}
        for engine, count, s, took in (
            ("hw_sim", options.vectors, ours_s, ours_build), ("Verilator", share * cores, theirs_s, theirs_build),
        )
    ]  # fmt: skip


if __name__ == "__main__":
    main()
