"""Fits the LUTs and flip-flops of engines, as `forestc.engine.area` estimates them, on synthesized engines.

    python benchmarks/engine_costs.py --cache FILE

Each of `COUNT` engines of random sizes is synthesized for each family. The printed errors are of engines outside the
fit: each one is estimated with costs fitted on the others. The printed costs belong in forestc/engine/area.py.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from tools import arguments, show

from forestc.costs.devices import FAMILIES
from forestc.engine.area import features_of
from forestc.engine.capacity import Capacity
from forestc.engine.verilog import emit
from forestc.toolchain.yosys import synthesize

MEASURES = ("forestc/engine", "hdl_templates/engine")
COUNT = 12
FITTED = ("ecp5", "ice40", "gw1n", "gw2a", "machxo", "nexus", "gatemate")
Floats = NDArray[np.float64]


def engines(count: int) -> list[Capacity]:
    """Returns engines of random sizes, the same in each run."""
    random, made = np.random.default_rng(5), list[Capacity]()
    while len(made) < count:
        walkers, word_bits = int(random.choice([1, 2, 3, 4, 6, 8, 10])), int(random.integers(4, 17))
        nodes, outputs = 1 << int(random.integers(6, 10)), int(random.choice([1, 1, 2, 3, 5, 10]))
        made.append(
            Capacity(
                walkers, nodes, int(random.integers(1, 9)), int(random.integers(2, 33)), word_bits, outputs,
                int(random.choice([16, 24, 32])), bool(random.integers(0, 2)), int(random.integers(1, 3)),
            )
        )  # fmt: skip
    return made


def costs(features: Floats, actual: Floats) -> Floats:
    """Fits non-negative costs by least squares on relative errors."""
    return np.round(nnls(features / actual[:, None], np.ones(len(actual)))[0], 2)


def main() -> None:
    parser = arguments(__doc__, MEASURES, "cache")
    options = parser.parse_args()
    made, rows = engines(3 if options.small else COUNT), []
    cached = json.loads(options.cache.read_text()) if options.cache and options.cache.exists() else {}
    features = np.array([features_of(capacity) for capacity in made], float)
    for family in FITTED[1:2] if options.small else FITTED:
        for capacity in made:
            key = f"{family} {capacity}"
            if key not in cached:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "engine.v"
                    path.write_text(emit(capacity))
                    cells = synthesize([path], capacity.name, FAMILIES[family].synthesis)
                cached[key] = {"lut": cells.lut, "ff": cells.flip_flops}
                if options.cache:
                    options.cache.write_text(json.dumps(cached))
        for figure in ("lut", "ff"):
            actual = np.array([cached[f"{family} {capacity}"][figure] for capacity in made], float)
            errors = []
            for k in range(len(made)):
                rest = np.arange(len(made)) != k
                errors.append(abs(features[k] @ costs(features[rest], actual[rest]) / actual[k] - 1))
            middle, most = 100 * np.quantile(errors, (0.5, 0.9))
            row = {"family": family, "figure": figure, "engines": len(made), "median_error_%": round(middle, 1)}
            rows.append({**row, "90th_percentile_%": round(most, 1), "costs": costs(features, actual).tolist()})
            print(rows[-1], flush=True)
    show("LUTs and flip-flops of engines outside the fit", rows, options)


if __name__ == "__main__":
    main()
