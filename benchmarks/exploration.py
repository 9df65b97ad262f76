"""How much of a grid's hypervolume `forestc explore` finds in 50, 100 and 200 trials, beside random search.

    python benchmarks/exploration.py --data DIR --json docs/benchmarks/exploration.json

For each data set an XGBoost model (15 rounds of depth 4, or 2 of many classes) trained on half of the rows, at most
3,000; its passes are searched for LUTs on ecp5-25k and accuracy, all by estimate. A quarter of the rows is for
validation, a quarter for the test of the front. `grid`: every combination of GRID, 2,048 designs. `random`: choices
drawn evenly from the same space as `explore`, without its first trials. Hypervolume: of log2(1 + LUTs) and accuracy,
against the LUTs of -O0 and the share of the largest class; that of the grid counts as 100 %. Medians of some seeds.
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
from typing import Any, TypeAlias

import numpy as np
import xgboost
from firmware import read_csv
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from tools import arguments, save, show

import forestc
from forestc.exploration.asked import Asked
from forestc.exploration.candidate import Bench, Job
from forestc.exploration.goals import goals_of
from forestc.exploration.material import Material, material_of
from forestc.forest.text import print_forest
from forestc.parameters import Choice, Parameter, Whole, used
from forestc.studies import Trial

TITLE = "explore against random search and a grid, by estimate"
BUNDLED = {"breast_cancer": load_breast_cancer, "digits": load_digits}
FILES = ("magic04", "spambase", "dry_bean", "unsw_nb15_82k")
MOST, TRIALS, MARKS, DEVICE = 6000, 200, (50, 100, 200), "ecp5-25k"
Point: TypeAlias = tuple[float, float]  # LUTs, accuracy
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


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--only", default="", help="data sets, separated by commas")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="searches of each kind; the median counts")
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="keeps the grid's designs there, and reads them again"
    )
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in (*BUNDLED, *(FILES if options.data else ())):
        if options.only and name not in options.only.split(","):
            continue
        rows.append(of_data(name, options.data, options.seeds, options.cache))
        save(TITLE, rows, options.json)
    show(TITLE, rows, options.json)


def of_data(name: str, data: Path | None, seeds: int, cache: Path | None) -> dict[str, Any]:
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else read_csv(name, data)
    X, y = np.asarray(X, np.float32), np.unique(y, return_inverse=True)[1]
    some = train_test_split(np.arange(len(X)), train_size=min(MOST, len(X) - 10), random_state=0, stratify=y)[0]
    fit, rest = train_test_split(some, test_size=0.5, random_state=0, stratify=y[some])
    judged, tested = train_test_split(rest, test_size=0.5, random_state=0, stratify=y[rest])
    rounds = 15 if len(set(y.tolist())) <= 3 else 2
    model = xgboost.XGBClassifier(n_estimators=rounds, max_depth=4, random_state=0, n_jobs=1).fit(X[fit], y[fit])
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.forest"
        forest = forestc.load(model)
        path.write_text(print_forest(forest))
        given = {"label": y[fit], "validation": (X[judged], y[judged]), "device": DEVICE}
        asked = Asked(goals_of(None, DEVICE, None), model=path, rows=X[fit], **given)
        material = material_of(asked, Path(scratch) / "other")
        grid, spent = of_grid(material, cache and cache / f"{name}.json")
        drawn_at_random = [points(tried(material, list(drawn(material.space, seed)))[0]) for seed in range(seeds)]
        studies, seconds = [], []
        for seed in range(seeds):
            start = processor_seconds()
            folder = Path(scratch) / f"study-{seed}"
            more = {"test": (X[tested], y[tested]), "trials": TRIALS, "seed": seed, "rungs": "estimate", "prove": False}
            studies.append(forestc.explore(path, X[fit], folder, **more, **given))
            seconds.append(processor_seconds() - start)
    explored = [points(study.trials) for study in studies]
    corner = studies[0].trials[0].figure("lut") or 1.0
    least = float(np.bincount(y[judged]).max() / len(judged))
    whole = hypervolume(grid, corner, least)
    row: dict[str, Any] = {"data": name, "rows": len(some), "trees": len(forest.trees), "seeds": seeds}
    for run, found in (("explore", explored), ("random", drawn_at_random)):
        for mark in MARKS:
            row[f"{run} {mark}, % of grid"] = percent([hypervolume(one[:mark], corner, least) for one in found], whole)
    study = studies[0]
    best = max(trial.figure("accuracy") or 0.0 for trial in study.complete)
    near = [trial for trial in study.front if (trial.figure("accuracy") or 0.0) >= best - 0.01]
    smallest, usual = min(near, key=lambda trial: trial.figure("lut") or 0.0), study.trials[2]
    row |= {"grid designs": len(grid), "grid CPU seconds": round(spent), "within 1 %: LUTs": smallest.figure("lut")}
    row |= {"its test accuracy": smallest.test and round(smallest.test.value, 4), "-O2: LUTs": usual.figure("lut")}
    return row | {"CPU seconds a trial": round(float(np.median(seconds)) / TRIALS, 2)}


def percent(volumes: Sequence[float], whole: float) -> float:
    """The median as a share of the grid's."""
    return round(100 * float(np.median(volumes)) / whole, 1)


def processor_seconds() -> float:
    """Of this process and of those that it has awaited."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def points(trials: Iterable[Trial]) -> list[Point]:
    """LUTs and accuracy; of a trial that failed, nothing is gained."""
    return [
        (trial.figures["estimate"]["lut"], trial.figure("accuracy") or 0.0) if trial.state == "complete" else NOTHING
        for trial in trials
    ]


def of_grid(material: Material, cache: Path | None) -> tuple[list[Point], float]:
    """The grid's designs and what they took, from the cache if it has them."""
    if cache is not None and cache.exists():
        kept = json.loads(cache.read_text())
        return [(lut, accuracy) for lut, accuracy in kept["points"]], kept["seconds"]
    trials, seconds = tried(material, list(designs()))
    found = points(trials)
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps({"points": found, "seconds": seconds}))
    return found, seconds


def drawn(space: Sequence[Parameter], seed: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(seed)
    for _ in range(TRIALS):
        chosen: dict[str, Any] = {}
        for one in space:
            if not used(one, chosen):
                continue
            if isinstance(one, Choice):
                chosen[one.name] = one.values[int(random.integers(len(one.values)))]
                continue
            low, high = (math.log(end) if one.log else end for end in (one.low, one.high))
            value = float(random.uniform(low, high))
            value = math.exp(value) if one.log else value
            chosen[one.name] = round(value) if isinstance(one, Whole) else value
        yield chosen


def designs() -> Iterator[dict[str, Any]]:
    for values in itertools.product(*GRID.values()):
        chosen = dict(zip(GRID, values, strict=True))
        yield chosen | FIXED | (OF_TREES if "trees" in chosen["shrink"] else {})


_bench: Bench


def _begin(material: Material) -> None:
    global _bench
    _bench = Bench(material)


def _one(options: dict[str, Any]) -> Trial:
    trial = Trial(0, "running", options)
    try:
        return _bench.run(Job("estimate", trial))
    except Exception:  # noqa: BLE001 - a choice that can't be compiled is no design
        return replace(trial, state="failed")


def tried(material: Material, choices: Sequence[dict[str, Any]]) -> tuple[list[Trial], float]:
    """The designs of choices, on all cores, and the processor seconds that they took. Neighbours go to one process, as
    they have most passes in common."""
    start, found = processor_seconds(), list[Trial]()
    workers = get_context("spawn").Pool(os.cpu_count(), _begin, (material,))
    with workers as pool:
        for trial in pool.imap(_one, choices, chunksize=min(64, -(-len(choices) // 8))):
            found.append(trial)
            if len(found) % 100 == 0:
                print(f"{len(found)} of {len(choices)} designs", flush=True)
        pool.close()
        pool.join()
    return found, processor_seconds() - start


def hypervolume(found: Sequence[Point], corner: float, least: float) -> float:
    """Of log2(1 + LUTs) below the corner's, and accuracy above the least."""
    area, best, edge = 0.0, least, math.log2(1 + corner)
    for lut, accuracy in sorted(found):
        if accuracy > best and lut <= corner:
            area += (edge - math.log2(1 + lut)) * (accuracy - best)
            best = accuracy
    return area


if __name__ == "__main__":
    main()
