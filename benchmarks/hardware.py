"""Hardware of shared models: accuracy, LUTs, depth and Fmax beside what a peer's designs took with the same tools.

--peers DIR holds NAME.json (XGBoost) with NAME.npz beside it (X_train, y_train, X_test, y_test). All passes work on the
training rows; leaf_bits are given, so nothing is chosen by the test rows, which measure alone. xcup and lut6 count LUTs
(yosys), ecp5-85k is placed and routed between registers (nextpnr). TreeLUT's figures were recorded with the same tools
and options, its class decision included.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from tools import over_peers

import forestc
from forestc.synthesis import synth

DESIGNS = {
    "lossless": "simplify,share-thresholds,quantize,simplify",
    "lossless, 3-bit leaves": "simplify,share-thresholds,quantize{leaf_bits=3,tolerance=0.1},simplify",
    "fitted, 1-bit leaves": "simplify,share-thresholds,quantize{fit=true,leaf_bits=1,tolerance=0.1},simplify",
    "fitted, 2-bit leaves": "simplify,share-thresholds,quantize{fit=true,leaf_bits=2,tolerance=0.1},simplify",
}
TREELUT = {  # test accuracy, latency, xcup LUT, FF, lut6 LUT, depth, ECP5 MHz
    "bc": [("TreeLUT", 95.91, 0, 187, 0, 178, 8, 78.6), ("TreeLUT", 95.91, 2, 177, 45, 185, 3, 152.6)],
    "digits": [("TreeLUT", 95.00, 0, 998, 0, 990, 15, 42.1), ("TreeLUT", 95.00, 2, 1010, 319, 1012, 11, 69.0)],
}
COLUMNS = ("design", "test_%", "latency", "xcup_LUT", "FF", "lut6_LUT", "lut6_depth", "ECP5_MHz")


def measure(name: str, peers: Path, folder: Path) -> list[dict[str, Any]]:
    with np.load(peers / f"{name}.npz") as data:
        X, y, X_test, y_test = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    rows: list[dict[str, Any]] = [
        {"model": name, **dict(zip(COLUMNS, peer, strict=True)), "LUTs_to_TreeLUT": 1.0} for peer in TREELUT[name]
    ]
    for what, passes in DESIGNS.items():
        for latency in (0, 2):
            start = time.perf_counter()
            done = forestc.compile(
                peers / f"{name}.json", X, folder / "out", label=y, held_out=(X_test, y_test), passes=passes,
                latency=latency, targets=["verilog"], name=name,
            )  # fmt: skip
            tested = forestc.check(done.design, X_test, label=y_test, engines=["netlist"])
            assert tested.ok
            xcup, lut6, ecp5 = (synth(done.design, device) for device in ("xcup", "lut6", "ecp5-85k"))
            figures = (what, 100 * tested.agreement.compiled, latency, xcup["lut"], xcup["ff"], lut6["lut"],
                       lut6["depth"], ecp5["fmax_mhz"])  # fmt: skip
            peer = rows[latency // 2]
            row = {"model": name, **dict(zip(COLUMNS, figures, strict=True))}
            rows.append({**row, "LUTs_to_TreeLUT": row["xcup_LUT"] / peer["xcup_LUT"]})
            print(f"{name}, {what}, latency {latency}: {time.perf_counter() - start:.0f} s", flush=True)
    return rows


if __name__ == "__main__":
    over_peers(__doc__, "Shared models on hardware", measure)
