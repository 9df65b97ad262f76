"""How much of a grid's hypervolume `forestc explore` finds in 50, 100 and 200 trials, beside random search.

    python benchmarks/exploration.py --data DIR --json docs/benchmarks/exploration.json

For each data set an XGBoost model (15 rounds of depth 4, or 6 of many classes) trained on half of the rows; its passes
are searched for LUTs on ecp5-25k and accuracy, all by estimate. A quarter of the rows is for validation, a quarter for
the test of the front. `grid`: every combination of GRID, 2,048 designs. `random`: choices drawn evenly from the same
space as `explore`. Hypervolume: of log2(1 + LUTs) and accuracy, against the design of -O0 and the share of the largest
class; the front of all designs of the run counts as 100 %.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import itertools
import math
import tempfile
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

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
    parser.add_argument("--no-grid", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in (*BUNDLED, *(FILES if options.data else ())):
        if options.only and name not in options.only.split(","):
            continue
        rows.append(of_data(name, options.data, grid=not options.no_grid))
        save(TITLE, rows, options.json)
    show(TITLE, rows, options.json)


def of_data(name: str, data: Path | None, *, grid: bool) -> dict[str, Any]:
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else read_csv(name, data)
    X, y = np.asarray(X, np.float32), np.unique(y, return_inverse=True)[1]
    some = train_test_split(np.arange(len(X)), train_size=min(MOST, len(X) - 10), random_state=0, stratify=y)[0]
    fit, rest = train_test_split(some, test_size=0.5, random_state=0, stratify=y[some])
    judged, tested = train_test_split(rest, test_size=0.5, random_state=0, stratify=y[rest])
    rounds = 15 if len(set(y.tolist())) <= 3 else 6
    model = xgboost.XGBClassifier(n_estimators=rounds, max_depth=4, random_state=0, n_jobs=1).fit(X[fit], y[fit])
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.forest"
        path.write_text(print_forest(forestc.load(model)))
        given = {"label": y[fit], "validation": (X[judged], y[judged]), "device": DEVICE}
        study = forestc.explore(
            path, X[fit], Path(scratch) / "study", test=(X[tested], y[tested]), trials=TRIALS, rungs="estimate",
            prove=False, **given,
        )  # fmt: skip
        asked = Asked(goals_of(None, DEVICE, None), model=path, rows=X[fit], **given)
        material = material_of(asked, Path(scratch) / "other")
        runs = {"explore": list(study.trials), "random": tried(material, list(drawn(material.space)))}
        if grid:
            runs["grid"] = tried(material, list(designs()))
    corner = study.trials[0].figure("lut") or 1.0
    least = float(np.bincount(y[judged]).max() / len(judged))
    whole = hypervolume(itertools.chain(*runs.values()), corner, least)
    row: dict[str, Any] = {"data": name, "rows": len(some)}
    for run in ("explore", "random"):
        row |= {f"{run} {mark} %": share(runs[run][:mark], corner, least, whole) for mark in MARKS}
    if grid:
        row |= {"grid designs": len(runs["grid"]), "grid %": share(runs["grid"], corner, least, whole)}
        row["explore to grid"] = round(row[f"explore {MARKS[-1]} %"] / row["grid %"], 3)
    best = max(trial.figure("accuracy") or 0.0 for trial in study.complete)
    near = [trial for trial in study.front if (trial.figure("accuracy") or 0.0) >= best - 0.01]
    smallest, usual = min(near, key=lambda trial: trial.figure("lut") or 0.0), study.trials[2]
    row |= {"within 1 %: LUTs": smallest.figure("lut"), "test": smallest.test and smallest.test.value}
    return row | {"-O2: LUTs": usual.figure("lut"), "seconds": sum(sum(t.seconds.values()) for t in study.trials)}


def drawn(space: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(0)
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


def _one(options: dict[str, Any]) -> Trial | None:
    try:
        return _bench.run(Job("estimate", Trial(0, "running", options)))
    except Exception:  # noqa: BLE001 - a choice that can't be compiled is no design
        return None


def tried(material: Material, choices: Sequence[dict[str, Any]]) -> list[Trial]:
    """The designs of choices, on all cores."""
    with get_context("spawn").Pool(os.cpu_count(), _begin, (material,)) as pool:
        return [trial for trial in pool.map(_one, choices, chunksize=8) if trial is not None]


def hypervolume(trials: Any, corner: float, least: float) -> float:
    """Of log2(1 + LUTs) below the corner's, and accuracy above the least."""
    points = sorted({(trial.figure("lut"), trial.figure("accuracy")) for trial in trials if trial.state == "complete"})
    area, best, edge = 0.0, least, math.log2(1 + corner)
    for lut, accuracy in points:
        if accuracy > best and lut <= corner:
            area += (edge - math.log2(1 + lut)) * (accuracy - best)
            best = accuracy
    return area


def share(trials: Sequence[Trial], corner: float, least: float, whole: float) -> float:
    return round(100 * hypervolume(trials, corner, least) / whole, 2)


if __name__ == "__main__":
    main()
