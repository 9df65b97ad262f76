"""The VHDL beside the Verilog: LUTs by yosys, of the VHDL through GHDL's synthesis, and planted edits that are found.

The designs are the two shipped models and kinds of the tests, pipelined and not. An edit changes one thing in the
architecture of a small random design: an operator, a bit of a literal, an index, an initial value. It is found if the
proof does not hold; what the proof finds equal for every input must also pass the test bench. Needs ghdl.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tools import arguments, show

import forestc
from forestc.backends import hdl, verilog, vhdl
from forestc.checks.proof.vhdl import synthesized
from forestc.costs.devices import DEVICES, family_of
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import Netlist
from forestc.toolchain.yosys import synthesize

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from models import trained
from random_forests import random_forest
from vhdl_tools import edited, survives

MODELS = Path(__file__).parents[1] / "examples" / "models"
KINDS = ("xgboost-binary", "xgboost-regression", "tree-multi", "forest-binary", "extra-trees-multi", "boosting-multi")


def designs(family: str) -> dict[str, Netlist]:
    """Eight designs: name to netlist."""
    found = {}
    for place, name in enumerate(("breast_cancer.json", "digits.skops", *KINDS)):
        if name in KINDS:
            model, X, y = trained(name)
            forest = forestc.quantize(model, X, None if y.dtype.kind in "OU" else y)
        else:
            model = forestc.load(MODELS / name)
            forest = forestc.quantize(model, np.random.default_rng(0).random((200, model.columns)) * 16)
        latency = (0, 3)[place % 2]
        options = LoweringOptions(latency=latency, outputs="label" if forest.decides else "scores", family=family)
        found[f"{name}, {latency} cycles"] = lower(forest, options)
    return found


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
            one, other = luts(netlist, family.synthesis, Path(folder))
        lines.append(
            {"device": device, "design": name, "cells": len(netlist.cells), "Verilog": one, "VHDL": other,
             "VHDL / Verilog": other / one}
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


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--devices", nargs="+", default=["xcup", "ecp5-85k"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lines = [line for device in options.devices for line in sizes(device)]
    found = edits(options.edits, options.seed)
    root = Path(__file__).parents[1]
    files = ("forestc/backends/hdl.py", "forestc/backends/verilog.py", "forestc/backends/vhdl.py")
    files += ("hdl_templates/vhdl/core.vhd.j2", "hdl_templates/vhdl/bench.vhd.j2", "forestc/checks/proof/vhdl.py")
    counted = [{"file": file, "lines": len((root / file).read_text().splitlines())} for file in files]
    show("LUTs by yosys", lines, options.json, edits=[found], lines_of_the_backend=counted)
    if found["missed"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
