"""Estimates compared with synthesis, and the fit that produces forestc/costs/fitted.json.

Small and medium designs (2, 5 and 10 classes, regression; forests, extra trees, boosting by scikit-learn and XGBoost;
depth 2 to 8, 2 to 100 trees, leaves of 1 to 8 bits, latency 0 to 6) are synthesised for every family, and the smaller
ones placed and routed. --cache FILE stores the figures by the SHA-256 of the Verilog, so that a run continues where
the last one ended (`--minutes N` ends it early). Then the costs are fitted. The printed errors, and the ranges that
hold nine of ten designs, are from ten-fold cross-validation: each design is estimated with costs fitted on others.
--write writes forestc/costs/fitted.json.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from scipy.optimize import nnls
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification, make_regression
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tools import arguments, show

import forestc
from forestc.backends import verilog
from forestc.backends.manifest import manifest
from forestc.costs.devices import DEVICES, FAMILIES, XCUP
from forestc.costs.estimate import lut_features, path_features
from forestc.costs.fitted import LUT_FEATURES, PATH_FEATURES, parsed
from forestc.design import Design
from forestc.errors import ToolError
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import Netlist
from forestc.synthesis import synth
from forestc.toolchain.yosys import synthesise

DESIGNS, FEWEST_NODES, MOST_CELLS = 78, 20, 1500
PLACED = {"ecp5-85k": 2000, "ice40-hx8k": 800}  # device -> the most nodes of a forest that is placed on it

FOLDS = 10
FIRST_PATH_COSTS = dict.fromkeys(PATH_FEATURES, 0.1) | {"one": 2.0, "mux": 0.6, "add": 1.0, "compare": 1.0}
FITTED = Path(__file__).parents[1] / "forestc" / "costs" / "fitted.json"


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    match name:
        case "binary":
            return load_breast_cancer(return_X_y=True)
        case "digits":
            return load_digits(return_X_y=True)
        case "diabetes":
            return load_diabetes(return_X_y=True)
        case "made 2" | "made 5" | "made 10":
            classes = int(name.split()[1])
            return make_classification(
                1500, 16, n_informative=10, n_classes=classes, n_clusters_per_class=2, flip_y=0.05, random_state=classes
            )
        case "made values":
            return make_regression(1500, 12, n_informative=8, noise=20.0, random_state=3)
    raise ValueError(name)


def specifications() -> Iterator[dict[str, Any]]:
    """An endless sequence of designs, the same in each run."""
    random = np.random.default_rng(2024)
    while True:
        kind = str(random.choice(["forest", "extra", "boosting", "xgboost"]))
        rows = str(random.choice(["binary", "digits", "diabetes", "made 2", "made 5", "made 10", "made values"]))
        yield {
            "rows": rows,
            "kind": kind,
            "trees": int(random.choice([2, 3, 5, 8, 12, 20, 35, 60, 100])),
            "depth": int(random.integers(2, 9)),
            "leaf_bits": int(random.integers(1, 9)),
            "latency": int(random.choice([0, 0, 1, 2, 3, 4, 6])),
            "sharing": bool(random.integers(0, 2)),
        }


def model_of(spec: dict[str, Any], y: np.ndarray) -> Any:
    trees, depth, decides = spec["trees"], spec["depth"], spec["rows"] not in ("diabetes", "made values")
    match spec["kind"]:
        case "forest":
            kind = RandomForestClassifier if decides else RandomForestRegressor
        case "extra":
            kind = ExtraTreesClassifier if decides else ExtraTreesRegressor
        case "boosting":
            kind = GradientBoostingClassifier if decides else GradientBoostingRegressor
        case _:
            boosted = xgboost.XGBClassifier if decides else xgboost.XGBRegressor
            return boosted(n_estimators=trees, max_depth=depth, random_state=0)
    return kind(n_estimators=trees, max_depth=depth, random_state=0)


def nodes_expected(spec: dict[str, Any]) -> int:
    """A rough estimate of a design's nodes: full trees, for boosting one per class."""
    classes = {"digits": 10, "made 5": 5, "made 10": 10}.get(spec["rows"], 1)
    each = classes if spec["kind"] in ("boosting", "xgboost") else 1
    return int(spec["trees"] * each * (2 ** min(spec["depth"], 7)) * 0.6)


def forests() -> Iterator[tuple[dict[str, Any], Forest, float]]:
    """`DESIGNS` designs: their specifications, quantised forests and approximate LUTs."""
    found = 0
    for spec in specifications():
        if found == DESIGNS:
            return
        if nodes_expected(spec) > 1500:
            continue
        X, y = data(spec["rows"])
        share = "share-thresholds," if spec["sharing"] else ""
        passes = f"simplify,{share}quantize{{leaf_bits={spec['leaf_bits']},change=1}},simplify"
        forest = forestc.quantize(model_of(spec, y).fit(X, y), X, y, passes)
        cells = lut_features(lower(forest, LoweringOptions(latency=spec["latency"])), XCUP)["logic"]
        if forest.n_nodes >= FEWEST_NODES and cells <= MOST_CELLS:
            found += 1
            yield spec, forest, cells


def design_of(forest: Forest, latency: int, folder: Path) -> Design:
    netlist = lower(forest, LoweringOptions(latency=latency))
    files = verilog.emit(netlist)
    core = next(iter(files))
    (folder / core).write_text(files[core])
    options = {"targets": ["verilog"], "latency": latency, "outputs": "auto", "c": {"inputs": "words"}}
    return Design(folder, manifest(forest, netlist, {"verilog": core}, options, {}), forest, forest)


def measure(design: Design, nodes: int, known: dict[str, Any], placed: bool) -> Iterator[None]:
    """Adds the figures of each tool run to `known`."""
    file, core = design.path("verilog"), str(design.manifest["core"])
    for device, most in PLACED.items():
        if placed and nodes <= most and device not in known:
            try:
                figures = synth(design, device)
                known[device] = figures["fmax_mhz"]
                known[DEVICES[device].family.name] = {name: figures[name] for name in ("lut", "ff", "carry", "depth")}
            except ToolError as error:  # too many pins or cells
                known[device] = None
                print(str(error)[:300], flush=True)
            yield
    for family in FAMILIES.values():
        if family.name not in known:
            cells = synthesise([file], core, family.synthesis)
            known[family.name] = {"lut": cells.lut, "ff": cells.flip_flops, "carry": cells.carry, "depth": cells.depth}
            yield


def fitted(features: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Non-negative costs by iteratively reweighted least squares on relative errors; outliers count less."""
    shares = features / wanted[:, None]
    weight = np.ones(len(wanted))
    for _ in range(30):
        costs = nnls(shares * weight[:, None], weight)[0]
        away = np.abs(np.log(np.maximum(shares @ costs, 1e-3)))
        weight = 1 / np.sqrt(np.maximum(away, 0.03))
    return np.round(costs, 4)


def fitted_path(netlists: list[Netlist], luts: np.ndarray, levels: np.ndarray, wanted: np.ndarray) -> dict[str, float]:
    """The costs, in ns, of a path's cells. The slowest path depends on them, so path and costs are found in turn."""
    costs = dict(FIRST_PATH_COSTS)
    for _ in range(12):
        pairs = zip(netlists, luts, levels, strict=True)
        paths = [path_features(netlist, costs, lut, level) for netlist, lut, level in pairs]
        new = fitted(np.array([[path[name] for name in PATH_FEATURES] for path in paths]), wanted)
        costs = {name: (costs[name] + float(cost)) / 2 for name, cost in zip(PATH_FEATURES, new, strict=True)}
    return {name: round(cost, 4) for name, cost in costs.items()}


def folds(count: int) -> Iterator[tuple[list[int], list[int]]]:
    """Designs to fit on and designs to test on, `FOLDS` times. Designs are sorted by size, so each fold has all
    sizes."""
    for fold in range(FOLDS):
        judged = [index for index in range(count) if index % FOLDS == fold]
        yield [index for index in range(count) if index % FOLDS != fold], judged


def fit(measured: list[tuple[Netlist, dict[str, Any]]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The table of fitted.json, and a line of errors for each family and device."""
    lut_costs, path_costs, ranges, lines = {}, {}, {}, []

    def line(target: str, figure: str, estimated: np.ndarray, real: np.ndarray) -> None:
        middle, most = 100 * np.quantile(np.abs(estimated / real - 1), (0.5, 0.9))
        ends = tuple(round(float(end), 3) for end in np.quantile(real / estimated, (0.05, 0.95)))
        errors = {"designs": len(real), "median_error_%": float(middle), "90th_percentile_%": float(most)}
        lines.append({"target": target, "figure": figure, **errors, "nine_of_ten": f"{ends[0]} to {ends[1]}"})
        if figure != "FF":
            ranges[target] = ends

    for family in FAMILIES:
        known = [(netlist, figures[family]) for netlist, figures in measured if family in figures]
        found = [lut_features(netlist, FAMILIES[family]) for netlist, _ in known]
        features = np.array([[cells[name] for name in LUT_FEATURES] for cells in found])
        luts = np.array([float(figures["lut"]) for _, figures in known])
        estimated = np.zeros(len(luts))
        for on, judged in folds(len(luts)):
            estimated[judged] = features[judged] @ fitted(features[on], luts[on])
        lut_costs[family] = dict(zip(LUT_FEATURES, fitted(features, luts).tolist(), strict=True))
        line(family, "LUT", estimated, luts)
        flip_flops = [(cells["ff"], real["ff"]) for cells, (_, real) in zip(found, known, strict=True) if real["ff"]]
        line(family, "FF", *np.array(flip_flops, dtype=float).T)
    for device in PLACED:
        family = DEVICES[device].family.name
        known = [(netlist, figures) for netlist, figures in measured if figures.get(device) and family in figures]
        netlists = [netlist for netlist, _ in known]
        # estimated LUTs, so that their errors are part of the error of Fmax
        cells = [lut_features(netlist, FAMILIES[family]) for netlist in netlists]
        luts = np.array([sum(cost * counts[name] for name, cost in lut_costs[family].items()) for counts in cells])
        levels = np.array([counts["levels"] for counts in cells])
        periods = np.array([1000 / figures[device] for _, figures in known])
        estimated = np.zeros(len(periods))
        for on, judged in folds(len(periods)):
            costs = fitted_path([netlists[i] for i in on], luts[on], levels[on], periods[on])
            for i in judged:
                path = path_features(netlists[i], costs, luts[i], levels[i])
                estimated[i] = sum(costs[name] * path[name] for name in PATH_FEATURES)
        path_costs[device] = fitted_path(netlists, luts, levels, periods)
        line(device, "Fmax", 1000 / estimated, 1000 / periods)
    return {"LUT_COSTS": lut_costs, "PATH_COSTS_NS": path_costs, "NINE_OF_TEN": ranges}, lines


def write(table: dict[str, Any]) -> None:
    """Writes fitted.json, after checking that the package can read it."""
    text = json.dumps(table, indent=1) + "\n"
    parsed(text)
    FITTED.write_text(text)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cache", type=Path, required=True, metavar="FILE", help="figures measured so far")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="N", help="stop measuring after N minutes")
    parser.add_argument("--placed", type=int, default=DESIGNS, metavar="N", help="place and route at most N designs")
    parser.add_argument("--write", action="store_true", help="write forestc/costs/fitted.json")
    options = parser.parse_args()
    cache: dict[str, Any] = json.loads(options.cache.read_text()) if options.cache.exists() else {}
    end = time.monotonic() + 60 * options.minutes
    measured: list[tuple[Netlist, dict[str, Any]]] = []
    with tempfile.TemporaryDirectory() as name:
        smallest_first = sorted(forests(), key=lambda made: made[2])
        for index, (spec, forest, _) in enumerate(smallest_first):
            design = design_of(forest, spec["latency"], Path(name))
            key = hashlib.sha256(design.path("verilog").read_bytes()).hexdigest()
            known = cache.setdefault(key, {"design": spec})
            start = time.perf_counter()
            if time.monotonic() < end:
                for _ in measure(design, forest.n_nodes, known, index < options.placed):
                    options.cache.write_text(json.dumps(cache))
                    if time.monotonic() > end:
                        break
                print(f"{index}: {forest.n_nodes} nodes, {known.get('lut6')}, "
                      f"{known.get('ecp5-85k')} {time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
            measured.append((design.netlist, known))
    table, lines = fit(measured)
    show(f"Estimates of designs outside the fit, {FOLDS}-fold", lines, options.json)
    if options.write:
        write(table)


if __name__ == "__main__":
    main()
