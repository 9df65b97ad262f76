"""Compares estimates with synthesis, and fits the costs in forestc/costs/fitted.json.

    python benchmarks/estimates.py --data DIR --cache FILE --write

The designs come from levels, single passes and searches on twenty data sets. All sets have the same recipes, with
trees, depths, leaf bits and latencies drawn by a fixed seed; the designs of a set do not depend on the other sets. Each
design is synthesized for every family; the smaller ones are placed and routed. --cache FILE stores the figures by the
SHA-256 of the Verilog, so that a run continues where the last one ended (`--minutes N` ends it early). Then the costs
are fitted. The printed errors are of data sets outside the fit: the designs of each set are estimated with costs and
ranges fitted on the other sets. `--targets` names the families and devices to fit; the other costs stay.
`--recipes` names the recipes to make designs by. A range holds nine of ten designs. `worst` is the largest factor
between a design's figure and its estimate, among designs with a figure of at least `SMALL`. --write writes
forestc/costs/fitted.json.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls
from sklearn import datasets, ensemble
from sklearn.tree import DecisionTreeClassifier
from tools import arguments, show
from xgboost import XGBClassifier, XGBRegressor

import forestc
from forestc.backends import hdl
from forestc.backends.verilog import core as verilog
from forestc.commands.synth import synth
from forestc.costs.devices import DEVICES, FAMILIES, XCUP, DeviceFamily
from forestc.costs.estimate import FASTEST_NS, Mapped, lut_range
from forestc.costs.fitted import LUT_FEATURES, PATH_FEATURES, SPARE, parsed
from forestc.errors import ForestcError, ToolError
from forestc.forest.ir import Forest
from forestc.lowering.timing import DEFAULT_FAMILY
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import manifest
from forestc.manifest.design import Design
from forestc.netlist.ir import Netlist
from forestc.toolchain.yosys import synthesize

TITLE = "estimates of designs of data sets outside the fit"
SMALL = 20  # LUTs of a design that is too small for `worst`
# Holds, by device, the LUTs from which a design is not placed on it.
PLACED = {"ecp5-85k": 500, "ice40-hx8k": 400, "gw1nr-9": 900, "gw2ar-18": 900}
# Names the device that lends its path costs, times a factor, to a device with few placed designs.
SCALED = {"gw1nr-9": "ice40-hx8k", "gw2ar-18": "ice40-hx8k"}
OUTLIER = 0.1  # limits the difference of logarithms that counts in full; a larger value gives outliers more weight
ROUNDS = 12  # rounds of finding the slowest path and fitting its costs; more rounds take longer
FIRST_PATH_COSTS = dict.fromkeys(PATH_FEATURES, 0.1) | {"one": 2.0, "lut": 1.0, "add": 1.0, "compare": 1.0}
FITTED = Path(__file__).parents[1] / "forestc" / "costs" / "fitted.json"
Floats = NDArray[np.float64]
Judged = tuple[tuple[float, float], dict[str, Any]]  # the ends of a range, and errors on sets outside the fit


# The designs

BUNDLED = ("breast_cancer", "digits", "wine", "diabetes")
MADE: dict[str, dict[str, Any]] = {
    "made_41": {"n_features": 41, "n_informative": 12, "random_state": 41},
    "made_5": {"n_features": 16, "n_informative": 10, "n_classes": 5, "flip_y": 0.05, "random_state": 5},
}
FILES = (
    "pima", "diabetic_retinopathy", "spambase", "magic04", "dry_bean", "transfusion", "ilpd", "heart_cleveland",
    "parkinsons", "winequality_red", "airfoil", "breast_w", "bupa", "hill_valley_606",
)  # fmt: skip
VALUES = ("diabetes", "airfoil")
MOST_FIT, MOST_HELD = 800, 600
MOST_CELLS = 800  # LUTs above which a design is left out, by the count of mapped LUTs
SHARED = "simplify,share-thresholds,round-leaves"
REGROWN = "leaf_bits={few_bits},price={price},tolerance=inf"
# RECIPES holds, by name: a level, or a list of passes with drawn numbers in braces.
RECIPES: dict[str, int | str] = {
    "O0": 0, "O1": 1, "O2": 2, "O3": 3, "plain": "simplify,round-leaves{{leaf_bits={leaf_bits},change=1}},simplify",
    "shared": "simplify,share-thresholds,round-leaves{{leaf_bits={leaf_bits},change=1}},simplify",
    "fitted": "simplify,share-thresholds,fit-leaves{{leaf_bits={few_bits},tolerance=inf}},simplify",
    "splits": SHARED + ",prune-splits{{price={price},leaf_bits={few_bits},tolerance=inf}},simplify",
    "trees": SHARED + ",prune-trees{{tolerance=0.1,copies=2}},simplify",
    "few regrown": SHARED + ",regrow-trees{{trees={few_trees}," + REGROWN + ",depth={depth}}},simplify",
    "regrown": SHARED + ",regrow-trees{{trees={some_trees}," + REGROWN + "}},simplify",
    "rules": SHARED + ",extract-rules{{complexity={complexity},comparators=40,seconds=20,tolerance=inf}},simplify",
}  # fmt: skip
MODELS: dict[str, tuple[Any, Any]] = {  # a classifier and a regression
    "xgboost": (XGBClassifier, XGBRegressor),
    "boosting": (ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor),
    "extra": (ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor),
    "forest": (ensemble.RandomForestClassifier, ensemble.RandomForestRegressor),
}
LEFT_OUT = 3  # leaves out every third recipe of a set, another one for each set


@dataclass(frozen=True)
class Made:
    """A design. data: the name of its data set. recipe: a name in `RECIPES`. own: lowered with the delays of the family
    that measures it; otherwise with those of the default family."""

    data: str
    recipe: str
    latency: int
    own: bool
    forest: Forest

    @property
    def name(self) -> str:
        return f"{self.data}, {self.recipe}"

    def netlist(self, family: DeviceFamily) -> Netlist:
        delays = family.delays if self.own else DEFAULT_FAMILY
        return lower(self.forest, LoweringOptions(latency=self.latency, family=delays))


def rows_of(name: str, folder: Path | None) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Returns the rows without missing values, and their classes or values, in a fixed random order."""
    X, y = datasets.make_classification(1500, **MADE[name]) if name in MADE else read(name, folder)
    complete = ~np.isnan(np.asarray(X, np.float64)).any(axis=1)
    X, y = X[complete], y[complete]
    order = np.random.default_rng(0).permutation(len(X))[: MOST_FIT + MOST_HELD]
    return np.asarray(X, np.float64)[order], np.asarray(y)[order]


def model_of(kind: str, trees: int, depth: int, values: bool) -> Any:
    """Returns an untrained model. values: a regression instead of a classifier."""
    if kind == "tree" and not values:
        return DecisionTreeClassifier(max_depth=depth, random_state=0)
    more = {"n_jobs": 1} if kind == "xgboost" else {}
    return MODELS.get(kind, MODELS["forest"])[values](n_estimators=trees, max_depth=depth, random_state=0, **more)


def designs(folder: Path | None, recipes: Collection[str]) -> Iterator[Made]:
    """Yields the designs of the bundled sets and, if a folder of NAME.csv.gz is given, of the sets in it."""
    for set_index, name in enumerate((*BUNDLED, *MADE, *(FILES if folder else ()))):
        X, y = rows_of(name, folder)
        for number, recipe in enumerate(RECIPES):
            wanted = recipe in recipes and (set_index + number) % LEFT_OUT
            made = design_of(name, recipe, X, y) if wanted else None
            if made is not None:
                yield made


def design_of(name: str, recipe: str, X: NDArray[Any], y: NDArray[Any]) -> Made | None:
    """Makes the design of a recipe. Returns None if its passes refuse the model, or if it is too large or constant."""
    fit = max(len(X) // 2, min(len(X) * 2 // 3, MOST_FIT))
    random = np.random.default_rng(list(f"{name} {recipe}".encode()))
    values = name in VALUES
    scores = 1 if values or len(np.unique(y)) < 3 else len(np.unique(y))
    kind = str(random.choice(["xgboost", "xgboost", "forest", "extra", "boosting", "tree"]))
    outputs = scores if kind in ("xgboost", "boosting") else 1
    trees = max(1, int(random.choice([4, 6, 10, 20, 30])) // outputs)
    depth = int(random.integers(2, 6 if trees * outputs > 10 else 8))
    drawn = {
        "leaf_bits": int(random.integers(1, 9)), "few_bits": int(random.integers(1, 4)),
        "few_trees": max(1, int(random.choice([1, 2, 3, 4, 6, 8])) // (1 if scores == 1 else 2)),
        "some_trees": int(random.choice([6, 9, 12])) // (1 if scores == 1 else 3), "depth": int(random.integers(4, 7)),
        "price": float(random.choice([3.0, 1.0, 0.3])), "complexity": int(random.choice([8, 16, 30])),
    }  # fmt: skip
    latency = int(random.choice([0, 0, 0, 1, 2, 3, 5]))
    model = model_of(kind, trees, depth, values).fit(X[:fit], y[:fit])
    passes = RECIPES[recipe]
    options: dict[str, Any] = {"level": passes} if isinstance(passes, int) else {"passes": passes.format(**drawn)}
    try:
        forest = forestc.quantize(model, X[:fit], y[:fit], held_out=(X[fit:], y[fit:]), **options)
    except ForestcError:
        return None
    made = Made(name, recipe, latency, bool(random.integers(0, 2)), forest)
    small = forest.n_nodes > 1 and Mapped.of(made.netlist(XCUP), XCUP).lut_features()["lut"] <= MOST_CELLS
    return made if small else None


# What they take, and the fit


@dataclass(frozen=True)
class Measured:
    """A design, its mapping on a family, and its measured figure (LUTs or MHz)."""

    made: Made
    mapped: Mapped
    figure: float


def measure(made: Sequence[Made], cache: Path, targets: Sequence[str], minutes: float, placed: int) -> dict[str, Any]:
    """Returns the figures of all designs by `key`: cached ones, and those of tool runs until `minutes` are over.
    placed: places and routes at most this many designs on each device."""
    cached: dict[str, Any] = json.loads(cache.read_text()) if cache.exists() else {}
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        for family in [FAMILIES[name] for name in targets if name in FAMILIES]:
            for case in made:
                if key(case, family.name) not in cached and time.monotonic() < end:
                    design = written(case, family.name, Path(folder))
                    core = str(design.manifest["core"])
                    cells = synthesize([design.path("verilog")], core, family.synthesis)
                    figures = {"lut": cells.lut, "ff": cells.flip_flops, "carry": cells.carry, "depth": cells.depth}
                    cached[key(case, family.name)] = figures
                    cache.write_text(json.dumps(cached))
        for device, most in [(device, most) for device, most in PLACED.items() if device in targets]:
            family = DEVICES[device].family
            small = [case for case in made if 0 < cached.get(key(case, family.name), {"lut": 0})["lut"] < most]
            for case in sorted(small, key=lambda case: hashlib.sha256(repr(case.name).encode()).digest())[:placed]:
                if key(case, device) not in cached and time.monotonic() < end:
                    try:
                        with patch(
                            "forestc.compilation.synthesis.estimated", lambda device: False
                        ):  # The committed fitted.json may be old, so it must not refuse a design.
                            figures = synth(written(case, family.name, Path(folder)), device, try_anyway=True)
                        cached[key(case, device)] = {"fmax_mhz": figures["fmax_mhz"]}
                    except ToolError as error:  # The design has more pins or cells than the device.
                        cached[key(case, device)] = {"fmax_mhz": None}
                        print(str(error)[:300], flush=True)
                    cache.write_text(json.dumps(cached))
                    print(device, case.name, cached[key(case, device)], flush=True)
    return cached


def key(made: Made, target: str) -> str:
    """Returns the key of a design's figures in the cache. target: a family or a device."""
    family = FAMILIES[target] if target in FAMILIES else DEVICES[target].family
    netlist = made.netlist(family)
    text = verilog.emit(netlist)[f"{hdl.module_name(netlist)}.v"]
    return f"{target} {hashlib.sha256(text.encode()).hexdigest()}"


def written(made: Made, family: str, folder: Path) -> Design:
    netlist = made.netlist(FAMILIES[family])
    files = verilog.emit(netlist)
    core = next(iter(files))
    (folder / core).write_text(files[core])
    options = {"targets": ["verilog"], "latency": made.latency, "outputs": "auto", "c": {"inputs": "words"}}
    record = {**manifest(made.forest, netlist, {"verilog": core}, options, {}), "sha256": {"files": {}}}
    return Design(folder, record, made.forest, made.forest)


def fitted(features: Floats, actual: Floats, spare: float) -> Floats:
    """Fits non-negative costs by least squares on the logarithms of estimates and figures, both with `spare` added.
    Outliers count less."""

    def errors(costs: Floats) -> Floats:
        return np.log((features @ costs + spare) / (actual + spare))

    def slopes(costs: Floats) -> Floats:
        return features / (features @ costs + spare)[:, None]

    first = np.maximum(nnls(features / actual[:, None], np.ones(len(actual)))[0], 0.01)
    fit = least_squares(errors, first, slopes, (0, np.inf), loss="soft_l1", f_scale=OUTLIER)
    return np.round(np.where(features.any(axis=0), fit.x, 0.0), 4)


def lut_costs(samples: Sequence[Measured]) -> Floats:
    features = [[design.mapped.lut_features()[name] for name in LUT_FEATURES] for design in samples]
    return fitted(np.array(features, float), np.array([design.figure for design in samples]), SPARE)


def luts(samples: Sequence[Measured], costs: Floats) -> Floats:
    """Estimates the LUTs of each design."""
    counts = []
    for design in samples:
        features = design.mapped.lut_features()
        plain = float(np.dot(costs, [features[name] for name in LUT_FEATURES]))
        counts.append(max(plain, design.mapped.fewest_luts()))
    return np.array(counts)


def ends(ratios: Floats) -> tuple[float, float]:
    """Returns the range that holds nine of ten further ratios: Weibull quantiles, which are wider if there are few
    ratios."""
    low, high = (round(float(end), 3) for end in np.quantile(ratios, (0.05, 0.95), method="weibull"))
    return low, high


def left_out(samples: Sequence[Measured]) -> Iterator[tuple[list[int], list[int]]]:
    """Yields, for each data set, the indices of the designs to fit on and of its own designs to test on."""
    for name in dict.fromkeys(design.made.data for design in samples):
        of_set = [design.made.data == name for design in samples]
        yield [i for i, own in enumerate(of_set) if not own], [i for i, own in enumerate(of_set) if own]


def judged(
    samples: Sequence[Measured],
    estimated: Callable[[list[int], list[int]], Floats],
    in_range: Callable[[int, float, float, float], bool],
    spare: float = 0.0,
) -> Judged:
    """Estimates the designs of each data set by a fit on the other sets.

    estimated: fits on designs, and estimates others, both given by their indices. in_range: whether the figure of a
    design lies in the range around its estimate, given the ends of the range. spare: is added to both.
    """
    real, outside = np.array([design.figure for design in samples]), np.zeros(len(samples))
    for on, rest in left_out(samples):
        outside[rest] = estimated(on, rest)
    ratios, inside = (real + spare) / (outside + spare), []
    for on, rest in left_out(samples):
        low, high = ends(ratios[on])
        inside += [in_range(i, outside[i], low, high) for i in rest]
    outside = np.maximum(np.round(outside), 1) if spare else outside
    factors = np.maximum(outside / real, real / outside)
    middle, most = 100 * np.quantile(np.abs(outside / real - 1), (0.5, 0.9))
    return ends(ratios), {
        "designs": len(real), "median_error_%": round(float(middle), 1), "90th_percentile_%": round(float(most), 1),
        "in_range_%": round(100 * float(np.mean(inside)), 1), "worst": round(float(factors[real >= SMALL].max()), 2),
    }  # fmt: skip


def fit_luts(samples: Sequence[Measured]) -> tuple[dict[str, float], Judged]:
    """Fits the LUT costs of a family."""

    def estimated(on: list[int], rest: list[int]) -> Floats:
        return luts([samples[i] for i in rest], lut_costs([samples[i] for i in on]))

    def in_range(i: int, estimate: float, low: float, high: float) -> bool:
        least, most = lut_range(estimate, low, high, samples[i].mapped.fewest_luts())
        return least <= samples[i].figure <= most

    costs = dict(zip(LUT_FEATURES, lut_costs(samples).tolist(), strict=True))
    return costs, judged(samples, estimated, in_range, SPARE)


def path_costs(samples: Sequence[Measured], sizes: Floats) -> dict[str, float]:
    """Fits the costs in ns of the elements on a path. The slowest path depends on the costs, so both are found in turn.
    sizes: estimated LUTs, because their errors then count as errors of Fmax."""
    costs = dict(FIRST_PATH_COSTS)
    actual = np.array([1000 / design.figure for design in samples])
    for _ in range(ROUNDS):
        paths = [design.mapped.path_features(costs, size) for design, size in zip(samples, sizes, strict=True)]
        new = fitted(np.array([[path[name] for name in PATH_FEATURES] for path in paths]), actual, 0.0)
        costs = {name: (costs[name] + float(cost)) / 2 for name, cost in zip(PATH_FEATURES, new, strict=True)}
    return {name: round(cost, 4) for name, cost in costs.items()}


def fit_paths(
    samples: Sequence[Measured], costs: Mapping[str, float], lent: Mapping[str, float] | None
) -> tuple[dict[str, float], Judged]:
    """Fits the path costs of a device. costs: of LUTs. lent: another device's path costs, to be multiplied by the
    median ratio of the periods."""
    sizes = luts(samples, np.array([costs[name] for name in LUT_FEATURES]))

    def fit_on(on: Sequence[int]) -> dict[str, float]:
        if lent is None:
            return path_costs([samples[i] for i in on], sizes[on])
        factor = float(np.median([1000 / (samples[i].figure * period(i, lent)) for i in on]))
        return {name: cost * factor for name, cost in lent.items()}

    def period(i: int, paths: Mapping[str, float]) -> float:
        path = samples[i].mapped.path_features(lent or paths, sizes[i])
        return sum(paths[name] * path[name] for name in PATH_FEATURES)

    def estimated(on: list[int], rest: list[int]) -> Floats:
        paths = fit_on(on)
        return np.array([1000 / max(FASTEST_NS, period(i, paths)) for i in rest])

    def in_range(i: int, estimate: float, low: float, high: float) -> bool:
        return low <= samples[i].figure / estimate <= high

    fit_of_all = {name: round(cost, 4) for name, cost in fit_on(range(len(samples))).items()}
    return fit_of_all, judged(samples, estimated, in_range)


def fit(
    made: Sequence[Made], figures: dict[str, Any], targets: Sequence[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the content of fitted.json, and a line of errors for each target. Other targets keep their costs."""
    table: dict[str, Any] = json.loads(FITTED.read_text())
    lines = []
    mapped: dict[tuple[str, int], Mapped] = {}
    for target in targets:
        family = FAMILIES[target] if target in FAMILIES else DEVICES[target].family
        figure = "lut" if target in FAMILIES else "fmax_mhz"
        samples = []
        for index, design in enumerate(made):
            value = figures.get(key(design, target), {}).get(figure)
            # A constant design has no LUTs, and so nothing to estimate.
            if value and figures.get(key(design, family.name), {}).get("lut"):
                mapped_key = (family.name, index)
                mapped[mapped_key] = mapped.get(mapped_key) or Mapped.of(design.netlist(family), family)
                samples.append(Measured(design, mapped[mapped_key], float(value)))
        if len({sample.made.data for sample in samples}) < 2:
            print(f"{target}: too few designs fit on it", flush=True)
            continue
        if figure == "lut":
            table["LUT_COSTS"][target], (ends_of, errors) = fit_luts(samples)
        else:
            lent = table["PATH_COSTS_NS"].get(SCALED.get(target, ""))
            table["PATH_COSTS_NS"][target], (ends_of, errors) = fit_paths(
                samples, table["LUT_COSTS"][family.name], lent
            )
        table["NINE_OF_TEN"][target] = low, high = ends_of
        lines.append({"target": target, "figure": figure, **errors, "nine_of_ten": f"{low} to {high}"})
        print(lines[-1], flush=True)
    return table, lines


def write(table: dict[str, Any]) -> None:
    """Writes fitted.json, after checking that the package can read it."""
    text = json.dumps(table, indent=1) + "\n"
    parsed(text)
    FITTED.write_text(text)


def main() -> None:
    parser = arguments(__doc__, "data", "cache")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="N", help="stop measuring after N minutes")
    parser.add_argument("--placed", type=int, default=70, metavar="N", help="place and route at most N designs")
    parser.add_argument("--write", action="store_true", help="write forestc/costs/fitted.json")
    known = (*FAMILIES, *PLACED)
    parser.add_argument("--targets", nargs="+", default=known, choices=known, metavar="T", help="what to fit")
    parser.add_argument("--recipes", nargs="+", default=tuple(RECIPES), choices=RECIPES, metavar="R")
    options = parser.parse_args()
    made = list(islice(designs(options.data, options.recipes), 2 if options.small else None))
    if options.small:  # Each of the two designs stands for a data set, so that one can be left out.
        made, options.placed = [replace(design, data=f"set {k}") for k, design in enumerate(made)], 2
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder) / "cache.json"
        table, lines = fit(
            made, measure(made, cache, options.targets, options.minutes, options.placed), options.targets
        )
    show(TITLE, lines)
    if options.write:
        write(table)


if __name__ == "__main__":
    main()
