"""Measures how compile time grows with the forest: 100 trees of up to 2,000 nodes each become Verilog, 1,000,000 nodes
become C, and a forest is compiled for a given clock.

XGBoost trains each size and saves it as JSON; a separate process compiles it. The seconds are those of the compiler
alone, from loading the model to writing the files, with all checks; peak memory is that of the whole process. The
clock's case is a forest for 26 classes with `--clock 100 --device ecp5-85k`: `lower_s` is the time in which latencies
are tried, `latency_cycles` the chosen one. `cpu_s` counts processor seconds, which do not depend on other programs. To
compare two versions, run this file in turns with PYTHONPATH set to the folder of each.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Case, Ledger, Steps
from tools import arguments, exponent, in_fresh_process, peak_memory_mb

LEAVES = (125, 250, 500, 1000)
MANY_LEAVES = 5000  # leaves of each tree of the forest that becomes C
CLOCK_MHZ, DEVICE = 100.0, "ecp5-85k"
ROWS = 10_000


def train(folder: Path, leaves: int) -> Path:
    """Writes an XGBoost model of 100 trees with `leaves` leaves each, and its rows as rows.npz."""
    import xgboost

    random = np.random.default_rng(0)
    X = random.normal(size=(60_000, 24)).astype(np.float32)
    y = (np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + random.normal(size=len(X)) > 0).astype(int)
    model = xgboost.train(
        {
            "objective": "binary:logistic", "max_depth": 0, "max_leaves": leaves, "grow_policy": "lossguide",
            "tree_method": "hist", "min_child_weight": 0, "lambda": 0, "eta": 0.1, "nthread": 1,
        },
        xgboost.DMatrix(X, label=y),
        100,
    )  # fmt: skip
    model.save_model(folder / f"{leaves}.json")
    np.savez(folder / "rows.npz", X=X[:ROWS], y=y[:ROWS])
    return folder / f"{leaves}.json"


def to_c(model: Path, out: Path) -> dict[str, Any]:
    import forestc

    start, cpu = time.perf_counter(), time.process_time()
    done = forestc.compile(model, None, out, targets=["c"], name="m")
    return {
        "nodes": done.figures["nodes"], "seconds": round(time.perf_counter() - start, 2),
        "cpu_s": round(time.process_time() - cpu, 2), "peak_memory_mb": round(peak_memory_mb()),
    }  # fmt: skip


def clocked(classes: int, trees: int, _: Path, out: Path) -> dict[str, Any]:
    """Compiles a random forest for CLOCK_MHZ. It is trained in this process, because scikit-learn saves no JSON."""
    from sklearn.ensemble import RandomForestClassifier

    import forestc

    random = np.random.default_rng(0)
    centers, y = random.uniform(0, 15, (classes, 16)), random.integers(0, classes, 5000)
    X = np.clip(np.rint(centers[y] + random.normal(size=(len(y), 16)) * 4), 0, 15).astype(np.float32)
    model = RandomForestClassifier(trees, max_depth=7, random_state=0).fit(X, y)
    start, cpu = time.perf_counter(), time.process_time()
    done = forestc.compile(
        model, X, out, label=y, targets=["verilog"], passes="simplify,round-leaves{leaf_bits=4},simplify",
        clock_mhz=CLOCK_MHZ, device=DEVICE, no_synth=True, try_anyway=True,
    )  # fmt: skip
    return {
        "nodes": done.figures["nodes"], "cells": done.figures["cells"],
        "latency_cycles": done.figures["latency_cycles"], "seconds": round(time.perf_counter() - start, 2),
        "cpu_s": round(time.process_time() - cpu, 2), "lower_s": done.figures["seconds"]["lower"],
    }  # fmt: skip


def to_verilog(model: Path, out: Path) -> dict[str, Any]:
    import forestc

    start, cpu = time.perf_counter(), time.process_time()
    # Leaves of 8 bits rarely become equal, so the netlist stays as large as the forest.
    passes = "simplify,round-leaves{leaf_bits=8},simplify"
    done = forestc.compile(
        model, model.parent / "rows.npz", out, label="y", targets=["verilog"], latency=4, passes=passes
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    nodes = forestc.load(model).n_nodes
    return {
        "nodes": nodes, "seconds": round(seconds, 2), "cpu_s": round(cpu, 2), "peak_memory_mb": round(peak_memory_mb()),
        "comparators": done.figures["distinct_conditions"], "cells": done.figures["cells"],
        "verilog_mb": round(done.design.path("verilog").stat().st_size / 1e6, 1),
    }  # fmt: skip


CASES: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "verilog": to_verilog, "c": to_c, "clock": partial(clocked, 26, 20), "small clock": partial(clocked, 2, 1)
}  # fmt: skip


def main() -> None:
    if len(sys.argv) == 4 and not sys.argv[1].startswith("-"):
        print(json.dumps(CASES[sys.argv[3]](Path(sys.argv[1]), Path(sys.argv[2]))))
        return
    options = arguments(__doc__, "json").parse_args()
    sizes, many = ((2, 3), 4) if options.small else (LEAVES, MANY_LEAVES)
    ledger = Ledger("compile time of 100 trees", options, ("xgboost", "numba"))
    cases = [("Verilog", leaves) for leaves in sizes]
    cases += [("c", many), ("small clock" if options.small else "clock", 0)]
    ledger.fill([{"case": case, "leaves": leaves} for case, leaves in cases], measured, options.small)
    nodes, seconds, memory = zip(
        *((r["nodes"], r["cpu_s"], r["peak_memory_mb"]) for r in ledger.rows if r["case"] == "Verilog"), strict=True
    )
    powers = {"of_seconds": exponent(nodes, seconds), "of_memory": exponent(nodes, memory)}
    ledger.show(exponents_in_nodes=[powers])


def measured(small: bool, case: Case) -> Steps:
    yield [], None
    with tempfile.TemporaryDirectory() as scratch:
        model = train(Path(scratch), case["leaves"]) if case["leaves"] else Path(scratch)
        own, out = case["case"].lower(), Path(scratch) / "out"
        yield CASES[own](model, out) if small else in_fresh_process(__file__, model, out, own)


if __name__ == "__main__":
    main()
