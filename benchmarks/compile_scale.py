"""How compile time grows with the forest: 100 trees of up to 2,000 nodes each, from model file to Verilog.

Each size is trained with XGBoost, saved as JSON, and compiled in a separate process: load, simplify, quantize, lower,
pipeline, write Verilog, and the checks in between. Seconds are those of the compiler only; peak memory is that of the
whole process.
Target: 200,000 nodes in under 30 s and 4 GB, and an exponent near 1.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tools import arguments, exponent, in_fresh_process, peak_memory_mb, show

LEAVES = (125, 250, 500, 1000)
ROWS = 10_000


def train(folder: Path, leaves: int) -> Path:
    """Writes a model of 100 trees with `leaves` leaves each, and the rows it is compiled on."""
    import xgboost

    random = np.random.default_rng(0)
    X = random.normal(size=(60_000, 24)).astype(np.float32)
    y = (np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + random.normal(size=len(X)) > 0).astype(int)
    model = xgboost.train(
        {
            "objective": "binary:logistic", "max_depth": 0, "max_leaves": leaves, "grow_policy": "lossguide",
            "tree_method": "hist", "min_child_weight": 0, "lambda": 0, "eta": 0.1, "nthread": 2,
        },
        xgboost.DMatrix(X, label=y),
        100,
    )  # fmt: skip
    model.save_model(folder / f"{leaves}.json")
    np.savez(folder / "rows.npz", X=X[:ROWS], y=y[:ROWS])
    return folder / f"{leaves}.json"


def measure(model: Path, out: Path) -> None:
    """Compiles in this process and prints the figures as one JSON line."""
    import forestc

    start = time.perf_counter()
    # 8 bits per leaf, so that few leaves become equal and the netlist is as large as the forest
    passes = "simplify,quantize{leaf_bits=8},simplify"
    done = forestc.compile(
        model, model.parent / "rows.npz", out, label="y", targets=["verilog"], latency=4, passes=passes
    )
    seconds = time.perf_counter() - start
    nodes = forestc.load(model).n_nodes
    print(
        json.dumps(
            {
                "nodes": nodes,
                "seconds": round(seconds, 2),
                "peak_memory_mb": round(peak_memory_mb()),
                "seconds_per_100k_nodes": round(seconds / nodes * 1e5, 2),
                "nodes_lowered": done.figures["nodes"],
                "comparators": done.figures["distinct_conditions"],
                "cells": done.figures["cells"],
                "verilog_mb": round(done.design.path("verilog").stat().st_size / 1e6, 1),
                **{f"{stage}_s": figure for stage, figure in done.figures["seconds"].items()},
            }
        )
    )


def main() -> None:
    if len(sys.argv) == 3 and not sys.argv[1].startswith("-"):
        measure(Path(sys.argv[1]), Path(sys.argv[2]))
        return
    options = arguments(__doc__ or "").parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for leaves in LEAVES:
            model = train(Path(scratch), leaves)
            rows.append(in_fresh_process(__file__, model, Path(scratch) / f"out{leaves}"))
            print(f"{rows[-1]['nodes']:,} nodes: {rows[-1]['seconds']} s", flush=True)
    show(
        f"from a model file to Verilog, 100 trees, {ROWS:,} rows",
        rows,
        options.json,
        exponent_of_seconds_in_nodes=exponent([r["nodes"] for r in rows], [r["seconds"] for r in rows]),
        exponent_of_memory_in_nodes=exponent([r["nodes"] for r in rows], [r["peak_memory_mb"] for r in rows]),
    )


if __name__ == "__main__":
    main()
