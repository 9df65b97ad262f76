"""Models and compiled designs that several benchmarks use: passes that return a given forest, sizes, accuracies."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import forestc
from forestc.backends.c import COptions, emit
from forestc.costs.devices import FAMILIES
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.passes.base import PassResult
from forestc.passes.judge import Judge
from forestc.passes.promises import FewChanges
from forestc.passes.quantize.quantize import Quantize
from forestc.rows.batches import Rows
from forestc.toolchain.yosys import synthesize

# TreeLUT's designs of two shared models, combinational and of two stages: test accuracy in %, latency, LUTs of xcup,
# flip-flops, LUTs of lut6, depth, LUTs of ECP5, MHz
TREELUT = {
    "bc": [(95.91, 0, 187, 0, 178, 8, 234, 78.6), (95.91, 2, 177, 45, 185, 3, 115, 152.6)],
    "digits": [(95.00, 0, 998, 0, 990, 15, 1343, 42.1), (95.00, 2, 1010, 319, 1012, 11, 1165, 69.0)],
}


def given(forest: Forest) -> Quantize:
    """A pass that returns an already quantized forest."""

    class Given(Quantize):
        def run(self, source: Forest, rows: Rows | None, judge: Judge | None = None) -> PassResult:
            return PassResult(forest, (FewChanges(1.0),))

    return Given()


def with_header(design: Design, options: COptions, folder: Path) -> Design:
    """A design with the same forest and another header."""
    for path, text in emit(design.forest, options).items():
        at = folder / design.manifest["files"]["c"]
        assert at.name == path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text, encoding="utf-8")
    manifest = {**design.manifest, "options": {**design.manifest["options"], "c": options.c_record()}}
    return replace(design, folder=folder, manifest=manifest)


def estimated_luts(figures: Mapping[str, Any]) -> int:
    """The estimate for an UltraScale+ among the figures of `compile`."""
    return next(int(estimate["lut"]) for estimate in figures["estimate"] if estimate["device"] == "xcup")


def yosys_luts(design: Design, family: str = "xcup") -> int:
    """LUTs by yosys, without registers on the ports."""
    return synthesize([design.path("verilog")], str(design.manifest["core"]), FAMILIES[family].synthesis).lut


def object_bytes(header: Path, body: str, cpu: str) -> int:
    """Text and constants of a header's code behind one function, `body`, by `arm-none-eabi-gcc -Os`."""
    flags = [f"-mcpu={cpu}", "-mthumb", "-std=c99", "-Os", "-c", "f.c", "-o", "f.o"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "f.c").write_text(f'#include "{header}"\n{body}\n')
        subprocess.run(["arm-none-eabi-gcc", *flags], cwd=folder, check=True)
        size = ["arm-none-eabi-size", "f.o"]
        text = subprocess.run(size, cwd=folder, capture_output=True, text=True, check=True).stdout
    return int(text.splitlines()[1].split()[0])


def decided(forest: Forest, X: NDArray[Any]) -> NDArray[Any]:
    """The class index of each row."""
    index = forestc.evaluate(forest, X).index
    assert index is not None
    return index


def right(forest: Forest, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The accuracy in percent, of classes 0, 1, ..."""
    return 100 * float((decided(forest, X) == np.asarray(y)).mean())


def share(first: NDArray[Any], second: NDArray[Any]) -> float:
    """How often two arrays of class indices agree, in percent; all models here have the classes 0, 1, ..."""
    return round(100 * float((first == second).mean()), 2)
