"""Estimates compared with synthesis, and the fit that produces forestc/costs/fitted.json.

    python benchmarks/estimates.py --data DIR --cache FILE --json FILE --write

The designs of `estimated_designs.py` are synthesized for every family, and the smaller ones placed and routed. --cache
FILE stores the figures by the SHA-256 of the Verilog, so that a run continues where the last one ended (`--minutes N`
ends it early). Then the costs are fitted. The printed errors, and the ranges that hold nine of ten designs, are of data
sets left out: each set's designs are estimated with costs and ranges that were fitted on the other sets. worst: the
largest factor between a design's figure and its estimate, of designs of at least `SMALL` LUTs. --write writes
forestc/costs/fitted.json.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import a_single_thread  # noqa: F401
import numpy as np
from estimated_designs import Made, designs
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls
from tools import arguments, show

from forestc.backends import hdl, verilog
from forestc.commands.synth import synth
from forestc.costs.devices import DEVICES, FAMILIES
from forestc.costs.estimate import FASTEST_NS, Mapped, lut_range
from forestc.costs.fitted import LUT_FEATURES, PATH_FEATURES, SPARE, parsed
from forestc.errors import ToolError
from forestc.manifest.content import manifest
from forestc.manifest.design import Design
from forestc.toolchain.yosys import synthesize

TITLE = "estimates of designs of data sets outside the fit"
MEASURES = ("forestc/costs", "forestc/lowering", "forestc/netlist", "forestc/backends/verilog.py")
SMALL = 20  # LUTs below which a factor says little
PLACED = {"ecp5-85k": 500, "ice40-hx8k": 400}  # device -> the most LUTs of a design that is placed on it
OUTLIER = 0.1  # difference of logarithms from which it counts less
ROUNDS = 12  # of fitting paths and their costs in turn
FIRST_PATH_COSTS = dict.fromkeys(PATH_FEATURES, 0.1) | {"one": 2.0, "lut": 1.0, "add": 1.0, "compare": 1.0}
FITTED = Path(__file__).parents[1] / "forestc" / "costs" / "fitted.json"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A design, mapped on a family, and a figure of it."""

    made: Made
    mapped: Mapped
    figure: float


def measure(made: Sequence[Made], cache: Path, minutes: float, placed: int) -> dict[str, Any]:
    """The cached figures and those of tool runs, by `key`."""
    known: dict[str, Any] = json.loads(cache.read_text()) if cache.exists() else {}
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES.values():
            for case in made:
                if key(case, family.name) not in known and time.monotonic() < end:
                    design = design_of(case, family.name, Path(folder))
                    core = str(design.manifest["core"])
                    cells = synthesize([design.path("verilog")], core, family.synthesis)
                    figures = {"lut": cells.lut, "ff": cells.flip_flops, "carry": cells.carry, "depth": cells.depth}
                    known[key(case, family.name)] = figures
                    cache.write_text(json.dumps(known))
        for device, most in PLACED.items():
            family = DEVICES[device].family
            small = [case for case in made if 0 < known.get(key(case, family.name), {"lut": 0})["lut"] < most]
            for case in sorted(small, key=lambda case: hashlib.sha256(repr(case.name).encode()).digest())[:placed]:
                if key(case, device) not in known and time.monotonic() < end:
                    try:
                        with patch("forestc.commands.synth.estimated", lambda device: False):  # fitted.json may be old
                            figures = synth(design_of(case, family.name, Path(folder)), device, try_anyway=True)
                        known[key(case, device)] = {"fmax_mhz": figures["fmax_mhz"]}
                    except ToolError as error:  # too many pins or cells
                        known[key(case, device)] = {"fmax_mhz": None}
                        print(str(error)[:300], flush=True)
                    cache.write_text(json.dumps(known))
                    print(device, case.name, known[key(case, device)], flush=True)
    return known


def key(made: Made, target: str) -> str:
    """The key of a design's figures. target: a family or a device."""
    family = FAMILIES[target] if target in FAMILIES else DEVICES[target].family
    netlist = made.netlist(family)
    text = verilog.emit(netlist)[f"{hdl.module_name(netlist)}.v"]
    return f"{target} {hashlib.sha256(text.encode()).hexdigest()}"


def design_of(made: Made, family: str, folder: Path) -> Design:
    netlist = made.netlist(FAMILIES[family])
    files = verilog.emit(netlist)
    core = next(iter(files))
    (folder / core).write_text(files[core])
    options = {"targets": ["verilog"], "latency": made.latency, "outputs": "auto", "c": {"inputs": "words"}}
    return Design(folder, manifest(made.forest, netlist, {"verilog": core}, options, {}), made.forest, made.forest)


def fitted(features: Floats, wanted: Floats, spare: float) -> Floats:
    """Non-negative costs by least squares on the logarithms of estimates and figures, both with `spare` added; outliers
    count less."""

    def errors(costs: Floats) -> Floats:
        return np.log((features @ costs + spare) / (wanted + spare))

    def slopes(costs: Floats) -> Floats:
        return features / (features @ costs + spare)[:, None]

    first = np.maximum(nnls(features / wanted[:, None], np.ones(len(wanted)))[0], 0.01)
    fit = least_squares(errors, first, slopes, (0, np.inf), loss="soft_l1", f_scale=OUTLIER)
    return np.round(np.where(features.any(axis=0), fit.x, 0.0), 4)


def lut_costs(known: Sequence[Measured]) -> Floats:
    features = [[design.mapped.lut_features()[name] for name in LUT_FEATURES] for design in known]
    return fitted(np.array(features, float), np.array([design.figure for design in known]), SPARE)


def luts(known: Sequence[Measured], costs: Floats) -> Floats:
    """The estimates of designs."""
    counts = []
    for design in known:
        features = design.mapped.lut_features()
        plain = float(np.dot(costs, [features[name] for name in LUT_FEATURES]))
        counts.append(max(plain, design.mapped.fewest_luts()))
    return np.array(counts)


def ends(ratios: Floats) -> tuple[float, float]:
    """The range that holds nine of ten further ratios: quantiles that allow for how few are known."""
    low, high = (round(float(end), 3) for end in np.quantile(ratios, (0.05, 0.95), method="weibull"))
    return low, high


def left_out(known: Sequence[Measured]) -> Iterator[tuple[list[int], list[int]]]:
    """Designs to fit on and designs to test on, for each data set."""
    for name in dict.fromkeys(design.made.data for design in known):
        of_set = [design.made.data == name for design in known]
        yield [i for i, own in enumerate(of_set) if not own], [i for i, own in enumerate(of_set) if own]


def judged(known: Sequence[Measured], estimates: Floats, inside: Sequence[bool]) -> dict[str, Any]:
    """The errors of estimates."""
    real = np.array([design.figure for design in known])
    factors = np.maximum(estimates / real, real / estimates)
    middle, most = 100 * np.quantile(np.abs(estimates / real - 1), (0.5, 0.9))
    large = factors[real >= SMALL]
    return {
        "designs": len(real), "median_error_%": round(float(middle), 1), "90th_percentile_%": round(float(most), 1),
        "in_range_%": round(100 * float(np.mean(inside)), 1), "worst": round(float(large.max()), 2),
    }  # fmt: skip


def fit_luts(known: Sequence[Measured]) -> tuple[dict[str, float], tuple[float, float], dict[str, Any]]:
    """The costs of a family, the ends of its range, and the errors outside the fit."""
    real = np.array([design.figure for design in known])
    outside = np.zeros(len(known))
    for on, rest in left_out(known):
        outside[rest] = luts([known[i] for i in rest], lut_costs([known[i] for i in on]))
    ratios = (real + SPARE) / (outside + SPARE)
    inside = [False] * len(known)
    for on, rest in left_out(known):
        low, high = ends(ratios[on])
        for i in rest:
            least, most = lut_range(outside[i], low, high, known[i].mapped.fewest_luts())
            inside[i] = least <= real[i] <= most
    costs = dict(zip(LUT_FEATURES, lut_costs(known).tolist(), strict=True))
    return costs, ends(ratios), judged(known, np.maximum(np.round(outside), 1), inside)


def path_costs(known: Sequence[Measured], sizes: Floats) -> dict[str, float]:
    """The costs, in ns, of what is on a path. The slowest path depends on them: path and costs are found in turn.
    sizes: LUTs, as estimated, so that their errors are part of those of Fmax."""
    costs = dict(FIRST_PATH_COSTS)
    wanted = np.array([1000 / design.figure for design in known])
    for _ in range(ROUNDS):
        paths = [design.mapped.path_features(costs, size) for design, size in zip(known, sizes, strict=True)]
        new = fitted(np.array([[path[name] for name in PATH_FEATURES] for path in paths]), wanted, 0.0)
        costs = {name: (costs[name] + float(cost)) / 2 for name, cost in zip(PATH_FEATURES, new, strict=True)}
    return {name: round(cost, 4) for name, cost in costs.items()}


def fit_paths(
    known: Sequence[Measured], costs: dict[str, float]
) -> tuple[dict[str, float], tuple[float, float], dict[str, Any]]:
    """The same as `fit_luts` for the clock of a device. costs: of LUTs."""
    sizes = luts(known, np.array([costs[name] for name in LUT_FEATURES]))
    real = np.array([design.figure for design in known])
    outside = np.zeros(len(known))
    for on, rest in left_out(known):
        path_cost = path_costs([known[i] for i in on], sizes[on])
        for i in rest:
            path = known[i].mapped.path_features(path_cost, sizes[i])
            outside[i] = 1000 / max(FASTEST_NS, sum(path_cost[name] * path[name] for name in PATH_FEATURES))
    ratios = real / outside
    inside = [False] * len(known)
    for on, rest in left_out(known):
        low, high = ends(ratios[on])
        for i in rest:
            inside[i] = low <= ratios[i] <= high
    return path_costs(known, sizes), ends(ratios), judged(known, outside, inside)


def fit(made: Sequence[Made], figures: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The table of fitted.json, and a line of errors for each family and device."""
    table: dict[str, Any] = {"LUT_COSTS": {}, "PATH_COSTS_NS": {}, "NINE_OF_TEN": {}}
    lines = []
    mapped: dict[tuple[str, int], Mapped] = {}
    for target in (*FAMILIES, *PLACED):
        family = FAMILIES[target] if target in FAMILIES else DEVICES[target].family
        figure = "lut" if target in FAMILIES else "fmax_mhz"
        known = []
        for index, design in enumerate(made):
            value = figures.get(key(design, target), {}).get(figure)
            # of constants there is nothing to estimate
            if value and figures.get(key(design, family.name), {}).get("lut"):
                place = (family.name, index)
                mapped[place] = mapped.get(place) or Mapped.of(design.netlist(family), family)
                known.append(Measured(design, mapped[place], float(value)))
        if figure == "lut":
            table["LUT_COSTS"][target], table["NINE_OF_TEN"][target], errors = fit_luts(known)
        else:
            costs = table["LUT_COSTS"][family.name]
            table["PATH_COSTS_NS"][target], table["NINE_OF_TEN"][target], errors = fit_paths(known, costs)
        low, high = table["NINE_OF_TEN"][target]
        lines.append({"target": target, "figure": figure, **errors, "nine_of_ten": f"{low} to {high}"})
        print(lines[-1], flush=True)
    return table, lines


def write(table: dict[str, Any]) -> None:
    """Writes fitted.json, after checking that the package can read it."""
    text = json.dumps(table, indent=1) + "\n"
    parsed(text)
    FITTED.write_text(text)


def main() -> None:
    parser = arguments(__doc__, MEASURES, "data", "cache")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="N", help="stop measuring after N minutes")
    parser.add_argument("--placed", type=int, default=70, metavar="N", help="place and route at most N designs")
    parser.add_argument("--write", action="store_true", help="write forestc/costs/fitted.json")
    options = parser.parse_args()
    made = list(islice(designs(options.data), 2 if options.small else None))
    if options.small:  # each stands for a data set
        made, options.placed = [replace(design, data=f"set {k}") for k, design in enumerate(made)], 2
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder) / "cache.json"
        table, lines = fit(made, measure(made, cache, options.minutes, options.placed))
    show(TITLE, lines, options)
    if options.write:
        write(table)


if __name__ == "__main__":
    main()
