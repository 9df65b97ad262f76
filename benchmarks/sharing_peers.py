"""Threshold sharing on two shared models: comparators, their bits, and synthesized size before and after.

--peers DIR holds NAME.json (XGBoost) with NAME.npz beside it (X_train, y_train, X_test, y_test). Thresholds are shared
on the training rows, of which approximate sharing holds out a fifth to measure its loss; the test rows only measure.
Sizes by yosys for `xcup` and `lut6` (costs/devices.py), with the class decision and without registers. Leaves have 3
bits in all designs.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from data import shared
from designs import yosys_luts
from tools import arguments, show

import forestc

SHARING = {
    "none": "",
    "lossless": "share-thresholds,",
    "lossless, middle": "share-thresholds{prefer=middle},",
    "exceptions 10 %": "share-thresholds{exceptions=0.1,tolerance=0.05},",
    "budget 70 %": "share-thresholds{budget=BUDGET,tolerance=0.05},",
    "tolerance 1 %": "share-thresholds{tolerance=0.01},",
}
# leaves of 3 bits in all designs, so that they differ only in comparators
PASSES = "simplify,SHARINGquantize{leaf_bits=3,change=0.1},simplify"


def measure(name: str, peers: Path, folder: Path) -> list[dict[str, Any]]:
    X, y, X_test, y_test = shared(peers, name)
    rows: list[dict[str, Any]] = []
    for sharing, step in SHARING.items():
        passes = PASSES.replace("SHARING", step)
        start = time.perf_counter()
        if "BUDGET" in passes:
            passes = passes.replace("BUDGET", str(round(0.7 * rows[0]["comparators"])))
        done = forestc.compile(
            peers / f"{name}.json", X, folder / "out", label=y, passes=passes, targets=["verilog"], name=name,
            held_out=0.2 if "{" in step and "middle" not in step else None,
        )  # fmt: skip
        tested = forestc.check(done.design, X_test, label=y_test, engines=["netlist"])
        assert tested.ok
        figures = done.figures
        row: dict[str, Any] = {
            "model": name,
            "sharing": sharing,
            "test_%": 100 * tested.agreement.compiled,
            "comparators": figures["distinct_conditions"],
            "comparator_bits": figures["comparator_bits"],
            "input_bits": sum(feature.number.bits for feature in done.design.forest.features),
        }
        for family in ("xcup", "lut6"):
            row[f"{family}_LUT"] = yosys_luts(done.design, family)
        row["s"] = time.perf_counter() - start
        rows.append(row)
        print(f"{name}, {sharing}: {row['s']:.0f} s", flush=True)
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--peers", type=Path, required=True, metavar="DIR", help="NAME.json and NAME.npz")
    parser.add_argument("--only", default="bc,digits", metavar="NAMES")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for name in options.only.split(",") for row in measure(name, options.peers, Path(folder))]
    show("Threshold sharing on shared models", rows, options.json)


if __name__ == "__main__":
    main()
