"""Measures how much slower a device is than the device that its family's path costs were fitted on; both are placed and
routed.

The median of the ratios is the field `slower` of the device in `forestc.costs.devices`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from tools import arguments, show

import forestc

PAIRS = (("ice40-hx8k", "ice40-up5k"), ("ecp5-85k", "ecp5-25k"), ("ecp5-85k", "ecp5-45k"))
DESIGNS: tuple[tuple[Any, Any, int], ...] = (  # lists data, model and latency of each design
    (load_iris, RandomForestClassifier(4, max_depth=4, random_state=0), 2),
    (load_wine, RandomForestClassifier(8, max_depth=5, random_state=0), 3),
    (load_breast_cancer, GradientBoostingClassifier(n_estimators=10, max_depth=3, random_state=0), 2),
    (load_breast_cancer, RandomForestClassifier(10, max_depth=5, random_state=0), 4),
    (load_digits, ExtraTreesClassifier(5, max_depth=5, random_state=0), 3),
    (load_diabetes, GradientBoostingRegressor(n_estimators=10, max_depth=3, random_state=0), 2),
    (load_wine, GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0), 4),
    (load_iris, ExtraTreesClassifier(10, max_depth=4, random_state=0), 1),
)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--native", action="store_true", help="prefer tools on the PATH to those from pip")
    options = parser.parse_args()
    rows, medians = [], []
    for fast, slow in PAIRS[: 1 if options.small else None]:
        ratios = []
        for load, model, latency in DESIGNS[: 1 if options.small else None]:
            X, y = load(return_X_y=True)
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "out"
                done = forestc.compile(model.fit(X, y), X, out, label=y, latency=latency, targets="verilog", name="m")
                figures = [forestc.synth(done.design, device, native=options.native) for device in (fast, slow)]
            ratios.append(figures[0]["fmax_mhz"] / figures[1]["fmax_mhz"])
            row = {"data": load.__name__, "model": type(model).__name__, "latency": latency, "lut": figures[0]["lut"]}
            mhz = {"fast_MHz": figures[0]["fmax_mhz"], "slow_MHz": figures[1]["fmax_mhz"]}
            rows.append(row | {"fast": fast, "slow": slow} | mhz | {"ratio": round(ratios[-1], 2)})
        medians.append({"fast": fast, "slow": slow, "median_ratio": round(float(np.median(ratios)), 2)})
    show("clocks of slower devices", rows, medians=medians)


if __name__ == "__main__":
    main()
