"""Sends rows through the AXI4-Stream wrapper in cocotb with random valid and ready; counts rows that are lost,
repeated, out of order or wrong.

The model is a random forest on scikit-learn's digits; its vectors are random words with their results. The generated
test bench sends them, with the number of each row in tuser: first all of them as whole rows, then a quarter of them in
beats of 64 bits, with an incomplete row before every twentieth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Case, Ledger, Steps
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from tools import arguments

import forestc
from forestc.backends.hdl import vector_lines
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.running import simulated
from forestc.backends.stream.axi_stream import StreamOptions
from forestc.backends.vectors import expected
from forestc.manifest.design import Design
from hw_sim import Simulator

BATCH = 50_000


def write_vectors(design: Design, path: Path, count: int, seed: int) -> None:
    """Writes random words and the simulator's results. The evaluator checks the first rows of each batch."""
    netlist, random = design.netlist, np.random.default_rng(seed)
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    simulator = Simulator(netlist)
    with path.open("w") as file:
        for start in range(0, count, BATCH):
            rows = min(BATCH, count - start)
            words = np.stack([random.integers(0, 1 << f.word.width, rows) for f in inputs], axis=1)
            results = simulated(simulator.run, netlist, words)
            if not np.array_equal(results[:1000], expected(design.forest, netlist, words[:1000])):
                raise SystemExit("the simulator differs from the evaluator")
            file.write(vector_lines(inputs, outputs, pack(inputs, words), pack(outputs, results)))


def run(design: Design, vectors: Path, simulator: str, seed: int, scratch: Path) -> dict[str, Any]:
    """Runs the test random_stalls of the generated test bench; returns its figures, the total seconds and whether it
    passed."""
    result = scratch / "result.json"
    result.unlink(missing_ok=True)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(design.path("cocotb"))],
        env={
            **os.environ,
            "SIM": simulator,
            "AXIS_SEED": str(seed),
            "AXIS_VECTORS": str(vectors),
            "AXIS_RESULT": str(result),
            "COCOTB_TEST_FILTER": "random_stalls",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if not result.is_file():
        raise SystemExit(f"{simulator} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    figures = json.loads(result.read_text())
    seconds = figures.pop("seconds")
    names = ("sent", "received", "lost", "repeated", "out_of_order", "wrong", "unstable", "short_rows", "clocks")
    return {
        **{name: figures[name] for name in names}, "rows_per_s": round(figures["sent"] / seconds),
        "seconds": time.perf_counter() - start, "test": "failed" if done.returncode else "passed",
    }  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, "json")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--sim", choices=("verilator", "icarus"), default="verilator")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.small:
        options.vectors, options.sim = 40, "icarus"  # Icarus builds faster than Verilator.
    tools, depends = ("cocotb", "verilator", "iverilog"), ("vectors", "sim", "seed")
    ledger = Ledger(f"rows through cocotb and {options.sim}", options, tools, depends)
    ledger.fill([{"latency": latency} for latency in (3, 0)[: 1 if options.small else 2]], measured, options)
    ledger.show()
    if any(row["test"] != "passed" for row in ledger.rows):
        sys.exit(1)


def measured(options: Any, case: Case) -> Steps:
    """Sends whole rows with a latency, or a quarter of them in beats of 64 bits without one."""
    X, y = load_digits(return_X_y=True)
    yield [X, y], None
    latency = case["latency"]
    tdata, vectors = (0, options.vectors) if latency else (64, options.vectors // 4)
    model = RandomForestClassifier(10, max_depth=6, random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        done = forestc.compile(
            model, X, scratch / "digits", label=y, targets="verilog", latency=latency, outputs="both",
            name="digits", stream=StreamOptions(tdata_bits=tdata, user_bits=32, registers=True),
        )  # fmt: skip
        write_vectors(done.design, scratch / "vectors.txt", vectors, options.seed)
        stream = done.design.manifest["stream"]
        figures = run(done.design, scratch / "vectors.txt", options.sim, options.seed, scratch)
    yield {"tdata": stream["tdata_bits"], "beats": stream["beats"], **figures}


if __name__ == "__main__":
    main()
