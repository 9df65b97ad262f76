"""How much of a grid's hypervolume `forestc explore` finds in 50, 100 and 200 trials, beside random search.

    python benchmarks/exploration.py --data DIR --json docs/benchmarks/exploration.json
    python benchmarks/exploration.py --data DIR --flash --json docs/benchmarks/exploration_flash.json

For each data set an XGBoost model (15 rounds of depth 4, or 2 of many classes) trained on half of the rows, at most
1,200 (MNIST: 600); its passes are searched for LUTs on ecp5-25k and accuracy, all by estimate. A quarter of the rows is
for validation, a quarter for the test of the front. `grid`: every combination of GRID, 2,048 designs. `random`: choices
drawn evenly from the same space as `explore`, without its first trials. Hypervolume: of log2(1 + cost) and accuracy,
against the cost of -O0 and the share of the largest class; that of the grid counts as 100 %. Medians of some seeds.

--flash: bytes on a Cortex-M0+ instead, at most 600 rows to train: of a scikit-learn forest (15 trees of depth 6) beside
the smallest C that emlearn makes of it, and of a LightGBM model (15 rounds of 8 leaves) beside its nodes at 14 bytes
each. ToaD's own points are of Covertype and others that are not among the data.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import itertools
import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import lightgbm
import numpy as np
import xgboost
from data import pixels, read
from designs import TREELUT
from firmware import Case, beside, generated, theirs
from firmware_peers import Model
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from tools import arguments, save, show

import forestc
from forestc.commands.explore import COMMANDS
from forestc.exploration.asked import Asked
from forestc.exploration.candidate import Bench, Job
from forestc.exploration.goals import goals_of
from forestc.exploration.material import Material, material_of
from forestc.exploration.study import Study, Trial
from forestc.forest.text import print_forest
from forestc.parameters import Choice, Parameter, Whole, used
from forestc.toolchain.firmware import CPUS

TITLE = "explore against random search and a grid, by estimate"
BUNDLED = ("breast_cancer", "digits")
FILES = ("magic04", "spambase", "dry_bean", "unsw_nb15_82k", "mnist")
TRIALS, MARKS = 200, (50, 100, 200)
SAMPLED = {"mnist": 1200}  # rows of sets with many columns
RECORDED = {"breast_cancer": "bc", "digits": "digits"}  # TreeLUT's designs of other models of the same data
FLOAT_NODE = 14  # bytes: a float32 threshold or leaf, a feature of 16 bits, two pointers of 16 bits
Point: TypeAlias = tuple[float, float]  # cost, accuracy
NOTHING = (math.inf, 0.0)
GRID: dict[str, Sequence[Any]] = {
    "shrink": ("prune-splits", "prune-trees+prune-splits"),
    "share-thresholds.exceptions": (0, 0.05, 0.1, 0.2),
    "quantize.input_bits": ("auto", 3, 4, 6),
    "prune-splits.price": tuple(np.geomspace(0.03, 20, 16).tolist()),
    "prune-splits.leaf_bits": (1, 2),
    "prune-splits.copies": (0, 8),
}
FIXED = {"share-thresholds.prefer": "few-bits", "prune-splits.rewire": True, "prune-splits.mix": 0.1}
OF_TREES = {"prune-trees.price": 0.3, "prune-trees.times": 1, "prune-trees.refit": False}


class Target(NamedTuple):
    """figure: what is to be small. given: arguments that say what to build for. models: kinds of models. rows: at
    most."""

    figure: str
    unit: str
    given: dict[str, Any]
    models: tuple[str, ...]
    data: tuple[str, ...]
    rows: int


LUTS = Target("lut", "LUTs", {"device": "ecp5-25k"}, ("xgboost",), (*BUNDLED, *FILES), 2400)
FLASH = Target("flash", "bytes", {"cpu": "cortex-m0plus"}, ("forest", "lightgbm"), ("magic04", "dry_bean"), 1200)


class Parts(NamedTuple):
    """Rows and labels: to fit, to judge candidates, to test the front."""

    fit: tuple[NDArray[Any], NDArray[np.int64]]
    judge: tuple[NDArray[Any], NDArray[np.int64]]
    test: tuple[NDArray[Any], NDArray[np.int64]]


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--only", default="", help="data sets, separated by commas; others in the file stay")
    parser.add_argument("--flash", action="store_true")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="searches of each kind; the median counts")
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="keeps the grid's designs there, and reads them again"
    )
    options = parser.parse_args()
    target = FLASH if options.flash else LUTS
    known = [name for name in target.data if name in BUNDLED or options.data]
    wanted = [name for name in known if not options.only or name in options.only.split(",")]
    rows: list[dict[str, Any]] = []
    if options.only and options.json and options.json.exists():
        rows = [row for row in json.loads(options.json.read_text())["rows"] if row["data"] not in wanted]
    for name, kind in itertools.product(wanted, target.models):
        cache = options.cache and options.cache / f"{name}-{kind}.json"
        rows.append(of_data(name, kind, target, parts_of(name, options.data, target.rows), options.seeds, cache))
        save(TITLE, rows, options.json)
    show(TITLE, rows, options.json)


def parts_of(name: str, data: Path | None, most: int) -> Parts:
    if name == "mnist":
        assert data is not None
        X, y = pixels(data)[:2]
    else:
        X, y = read(name, data)
    X, y = np.asarray(X, np.float32), np.unique(y, return_inverse=True)[1]
    some = train_test_split(
        np.arange(len(X)), train_size=min(SAMPLED.get(name, most), len(X) - 10), random_state=0, stratify=y
    )[0]
    fit, rest = train_test_split(some, test_size=0.5, random_state=0, stratify=y[some])
    judged, tested = train_test_split(rest, test_size=0.5, random_state=0, stratify=y[rest])
    return Parts((X[fit], y[fit]), (X[judged], y[judged]), (X[tested], y[tested]))


def fitted(kind: str, parts: Parts) -> Any:
    rounds = 15 if parts.fit[1].max() < 3 else 2
    if kind == "xgboost":
        return xgboost.XGBClassifier(n_estimators=rounds, max_depth=4, random_state=0, n_jobs=1).fit(*parts.fit)
    if kind == "forest":
        return RandomForestClassifier(15, max_depth=6, random_state=0).fit(*parts.fit)
    return lightgbm.LGBMClassifier(n_estimators=15, num_leaves=8, random_state=0, n_jobs=1, verbose=-1).fit(*parts.fit)


def of_data(name: str, kind: str, target: Target, parts: Parts, seeds: int, cache: Path | None) -> dict[str, Any]:
    model = fitted(kind, parts)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.forest"
        forest = forestc.load(model)
        path.write_text(print_forest(forest))
        X, y = parts.fit
        given = {"label": y, "validation": parts.judge, **target.given}
        goals = goals_of(None, given.get("device"), given.get("cpu"))
        material = material_of(Asked(path, X, goals=goals, **given), Path(scratch) / "other")
        grid, spent = of_grid(material, target.figure, cache)
        random = [tried(material, list(drawn(material.space, seed)))[0] for seed in range(seeds)]
        studies, seconds = [], []
        for seed in range(seeds):
            start = processor_seconds()
            more = {"test": parts.test, "trials": TRIALS, "seed": seed, "rungs": "estimate", "prove": False}
            studies.append(forestc.explore(path, X, Path(scratch) / f"study-{seed}", **more, **given))
            seconds.append(processor_seconds() - start)
        corner = studies[0].trials[0].figure(target.figure) or 1.0
        least = float(np.bincount(parts.judge[1]).max() / len(parts.judge[1]))
        whole = hypervolume(grid, corner, least)
        row: dict[str, Any] = {"data": name, "rows": sum(len(y) for _, y in parts), "model": kind}
        row |= {"trees": len(forest.trees), "seeds": seeds}
        for run, runs in (("explore", [study.trials for study in studies]), ("random", random)):
            for mark in MARKS:
                some = [hypervolume(points(trials, target.figure)[:mark], corner, least) for trials in runs]
                row[f"{run} {mark}, % of grid"] = percent(some, whole)
        row |= {"grid designs": len(grid), "grid CPU seconds": round(spent)}
        row |= smallest(studies[0], target)
        if target is LUTS:
            row["TreeLUT: LUTs"] = TREELUT[RECORDED[name]][0][-2] if name in RECORDED else None
        if target is FLASH:
            row["floats: bytes"] = forest.n_nodes * FLOAT_NODE
            row["emlearn: bytes"] = of_emlearn(model, parts, Path(scratch)) if kind == "forest" else None
    return row | {"CPU seconds a trial": round(float(np.median(seconds)) / TRIALS, 2)}


def smallest(study: Study, target: Target) -> dict[str, Any]:
    """The smallest design within 1 % of the best accuracy, beside that of -O2."""
    best = max(trial.figure("accuracy") or 0.0 for trial in study.complete)
    near = [trial for trial in study.front if (trial.figure("accuracy") or 0.0) >= best - 0.01]
    least, usual = min(near, key=lambda trial: trial.figure(target.figure) or 0.0), study.trials[2]
    return {
        f"within 1 %: {target.unit}": least.figure(target.figure),
        "its test accuracy": least.test and round(least.test.value, 4),
        f"-O2: {target.unit}": usual.figure(target.figure),
    }


def of_emlearn(model: Any, parts: Parts, folder: Path) -> int | None:
    """The flash of the smallest C that emlearn makes of a forest; None where it is not installed."""
    X = np.asarray(parts.test[0], np.float64)[:100]
    rows = np.asarray(parts.fit[0], np.float64)
    case = Case(Model("forest", model, rows, parts.fit[1]), X, parts.test[1][:100], beside(model, X, whole=False))
    makers = [(peer, source) for peer, source in generated(case) if peer.name == "emlearn" and not peer.smaller]
    output = [theirs(case, peer, source, CPUS["cortex-m0plus"], folder, None)["flash"] for peer, source in makers]
    return min((flash for flash in output if flash), default=None)


def percent(volumes: Sequence[float], whole: float) -> float:
    """The median as a share of the grid's."""
    return round(100 * float(np.median(volumes)) / whole, 1)


def processor_seconds() -> float:
    """Processor seconds of this process and of those that it has awaited."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def points(trials: Iterable[Trial], figure: str) -> list[Point]:
    """Cost and accuracy; of a trial that failed, nothing is gained."""
    return [
        (trial.figures["estimate"][figure], trial.figure("accuracy") or 0.0) if trial.state == "complete" else NOTHING
        for trial in trials
    ]


def of_grid(material: Material, figure: str, cache: Path | None) -> tuple[list[Point], float]:
    """The grid's designs and what they took, from the cache if it has them."""
    if cache is not None and cache.exists():
        kept = json.loads(cache.read_text())
        return [(cost, accuracy) for cost, accuracy in kept["points"]], kept["seconds"]
    trials, seconds = tried(material, list(designs()))
    grid_points = points(trials, figure)
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps({"points": grid_points, "seconds": seconds}))
    return grid_points, seconds


def drawn(space: Sequence[Parameter], seed: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(seed)
    for _ in range(TRIALS):
        chosen: dict[str, Any] = {}
        for parameter in space:
            if not used(parameter, chosen):
                continue
            if isinstance(parameter, Choice):
                chosen[parameter.name] = parameter.values[int(random.integers(len(parameter.values)))]
                continue
            low, high = (math.log(end) if parameter.log else end for end in (parameter.low, parameter.high))
            value = float(random.uniform(low, high))
            value = math.exp(value) if parameter.log else value
            chosen[parameter.name] = round(value) if isinstance(parameter, Whole) else value
        yield chosen


def designs() -> Iterator[dict[str, Any]]:
    for values in itertools.product(*GRID.values()):
        chosen = dict(zip(GRID, values, strict=True))
        yield chosen | FIXED | (OF_TREES if "trees" in chosen["shrink"] else {})


_bench: Bench


def _begin(material: Material) -> None:
    global _bench
    _bench = Bench(material, COMMANDS)


def _one(options: dict[str, Any]) -> Trial:
    trial = Trial(0, "running", options)
    try:
        return _bench.run(Job("estimate", trial))
    except Exception:  # noqa: BLE001 - a choice that can't be compiled is no design
        return replace(trial, state="failed")


def tried(material: Material, choices: Sequence[dict[str, Any]]) -> tuple[list[Trial], float]:
    """The designs of choices, on all cores, and the processor seconds that they took. Neighbors go to one process, as
    they have most passes in common."""
    start, trials = processor_seconds(), list[Trial]()
    workers = get_context("spawn").Pool(os.cpu_count(), _begin, (material,))
    with workers as pool:
        for trial in pool.imap(_one, choices, chunksize=min(64, -(-len(choices) // 8))):
            trials.append(trial)
            if len(trials) % 100 == 0:
                print(f"{len(trials)} of {len(choices)} designs", flush=True)
        pool.close()
        pool.join()
    return trials, processor_seconds() - start


def hypervolume(points: Sequence[Point], corner: float, least: float) -> float:
    """The hypervolume of log2(1 + cost) below the corner's, and accuracy above the least."""
    area, best, edge = 0.0, least, math.log2(1 + corner)
    for cost, accuracy in sorted(points):
        if accuracy > best and cost <= corner:
            area += (edge - math.log2(1 + cost)) * (accuracy - best)
            best = accuracy
    return area


if __name__ == "__main__":
    main()
