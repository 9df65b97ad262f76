"""The VHDL beside the Verilog: LUTs by yosys, of the VHDL through GHDL's synthesis; planted edits that are found; rows
through the stream wrapper in VHDL.

The designs are the two shipped models and kinds of the tests, pipelined and not. An edit changes one thing in the
architecture of a small random design: an operator, a bit of a literal, an index, an initial value. It is found if the
proof does not hold; what the proof finds equal for every input must also pass the test bench. The rows are random words
for a small forest on the iris data, sent by the generated test bench under GHDL with valid and ready random, each
result compared in its place, with the number of its row. Needs ghdl.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from streams import write_vectors
from tools import arguments, show

import forestc
from forestc.backends import hdl, verilog, vhdl
from forestc.checks.engines import GhdlStreamEngine
from forestc.checks.proof.vhdl import synthesized
from forestc.costs.devices import DEVICES, family_of
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import Netlist
from forestc.options.stream import StreamOptions
from forestc.toolchain.run import run_tool
from forestc.toolchain.yosys import synthesize

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from models import trained
from random_forests import random_forest
from vhdl_tools import edited, survives

MODELS = Path(__file__).parents[1] / "examples" / "models"
KINDS = ("xgboost-binary", "xgboost-regression", "tree-multi", "forest-binary", "extra-trees-multi", "boosting-multi")


def designs(family: str) -> dict[str, Netlist]:
    """Eight designs: name to netlist."""
    netlists = {}
    for place, name in enumerate(("breast_cancer.json", "digits.skops", *KINDS)):
        if name in KINDS:
            model, X, y = trained(name)
            forest = forestc.quantize(model, X, None if y.dtype.kind in "OU" else y)
        else:
            model = forestc.load(MODELS / name)
            forest = forestc.quantize(model, np.random.default_rng(0).random((200, model.columns)) * 16)
        latency = (0, 3)[place % 2]
        options = LoweringOptions(latency=latency, outputs="label" if forest.decides else "scores", family=family)
        netlists[f"{name}, {latency} cycles"] = lower(forest, options)
    return netlists


def luts(netlist: Netlist, flows: tuple[str, ...], folder: Path) -> tuple[int, int]:
    """LUTs of the Verilog, and of the VHDL as GHDL's Verilog."""
    top, counts = hdl.module_name(netlist), []
    core = next(iter(vhdl.emit(netlist).values()))
    for text in (verilog.emit(netlist)[f"{top}.v"], synthesized(core.encode(), top)):
        (folder / "core.v").write_text(text)
        counts.append(synthesize([folder / "core.v"], top, flows).lut)
    return counts[0], counts[1]


def sizes(device: str) -> list[dict[str, Any]]:
    lines = []
    family = DEVICES[device].family
    for name, netlist in designs(family_of(device)).items():
        with tempfile.TemporaryDirectory() as folder:
            of_verilog, of_vhdl = luts(netlist, family.synthesis, Path(folder))
        lines.append(
            {"device": device, "design": name, "cells": len(netlist.cells), "Verilog": of_verilog, "VHDL": of_vhdl,
             "VHDL / Verilog": of_vhdl / of_verilog}
        )  # fmt: skip
        print(lines[-1], flush=True)
    return lines


def edits(count: int, seed: int) -> dict[str, int]:
    """What became of edits of small designs, until `count` of them changed what is computed."""
    random, figures = Random(seed), {"planted": 0, "found": 0, "equal for every input": 0, "missed": 0}
    while figures["found"] + figures["missed"] < count:
        forest, latency = random_forest(figures["planted"] % 20, True), figures["planted"] % 3
        netlist = lower(forest, LoweringOptions(latency=latency, outputs="both" if forest.decides else "scores"))
        text = edited(next(iter(vhdl.emit(netlist).values())), random)
        figures["planted"] += 1
        figures[survives(forest, netlist, text)] += 1
        if figures["planted"] % 20 == 0:
            print(figures, flush=True)
    return figures


def streamed(vectors: int, tdata: int, latency: int, seed: int) -> dict[str, Any]:
    """Rows through the wrapper: what the test bench in VHDL counts, and the seconds of the simulation."""
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stream = StreamOptions(tdata_bits=tdata, user_bits=32, registers=True)
        design = forestc.compile(
            model, X, folder / "iris", label=y, targets="vhdl", latency=latency, outputs="both", name="iris",
            stream=stream,
        ).design  # fmt: skip
        write_vectors(design, folder / "vectors.txt", vectors, seed)
        engine = GhdlStreamEngine(design, folder)
        start = time.perf_counter()
        said = run_tool([*engine.command, f"-gseed={seed}"], folder, seconds=36_000).decode()
        seconds = time.perf_counter() - start
        form = (
            r"^(PASS|FAIL) .*?(\d+) vectors, of (\d+) sent; (\d+) wrong, (\d+) unstable, (\d+) short rows, "
            r"stalls (\d+) in (\d+) out, (\d+) clocks$"
        )
        if (verdict := re.search(form, said, re.MULTILINE)) is None:
            raise SystemExit(f"the test bench gave no verdict: {said[-2000:]}")
        received, sent, wrong, unstable, short, stalls_in, stalls_out, clocks = map(int, verdict.groups()[1:])
        described = design.manifest["stream"]
    line = {"tdata": described["tdata_bits"], "beats": described["beats"], "latency": latency, "sent": sent}
    line |= {"received": received, "lost": sent - received, "wrong or out of order": wrong, "unstable": unstable}
    line |= {"short_rows": short, "stalls_in": stalls_in, "stalls_out": stalls_out, "clocks": clocks}
    return line | {"seconds": seconds, "rows_per_s": round(sent / seconds), "test": verdict[1]}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--devices", nargs="+", default=["xcup", "ecp5-85k"])
    parser.add_argument("--vectors", type=int, default=1_000_000, help="rows through the stream wrapper")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = [streamed(*case, options.seed + 1) for case in ((options.vectors, 0, 3), (options.vectors // 4, 8, 0))]
    print(*rows, sep="\n", flush=True)
    lines = [line for device in options.devices for line in sizes(device)]
    caught = edits(options.edits, options.seed)
    root = Path(__file__).parents[1]
    files = ("forestc/backends/hdl.py", "forestc/backends/verilog.py", "forestc/backends/vhdl.py")
    files += ("hdl_templates/vhdl/core.vhd.j2", "hdl_templates/vhdl/bench.vhd.j2", "forestc/checks/proof/vhdl.py")
    files += tuple(
        f"hdl_templates/vhdl/{name}.vhd.j2" for name in ("read_word", "axi_stream", "axi_lite", "axi_stream_bench")
    )
    counted = [{"file": file, "lines": len((root / file).read_text().splitlines())} for file in files]
    show("LUTs by yosys", lines, options.json, edits=[caught], streams=rows, lines_of_the_backend=counted)
    if caught["missed"] or any(row["test"] != "PASS" for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
