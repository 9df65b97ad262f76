"""What prune-trees, prune-exact and share-thresholds make of forests of 100 trees, alone, together and in other orders.

    python benchmarks/forest_pruning.py --data DIR --json FILE

Random forests of 100 trees and XGBoost of 100 rounds on data sets of scikit-learn and of DIR (NAME.csv.gz, the last
column `target`). Half of the rows, at most 1,500, train the model and are given to the passes; a quarter, at most
1,500, is held out for those that choose by it; the test rows, at most 5,000, choose nothing. Each line is a list of
passes between `simplify` and `simplify`, with quantize where it is not named. LUTs are the price of prune-splits, and
count trees alone. prune-exact has an effort of `--effort`, and random forests as deep as they grow are left out of it
when they have more than `--most-splits` splits.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import shuffled
from sklearn.ensemble import RandomForestClassifier
from tools import arguments, show
from xgboost import XGBClassifier

from forestc import load
from forestc.forest.ir import Forest
from forestc.passes import passes_from
from forestc.passes.judge import Judge
from forestc.passes.pipeline import run_passes
from forestc.passes.tree_costs import UNITS, bill_of
from forestc.rows.batches import ArrayRows

MOST_FIT, MOST_HELD, MOST_TEST = 1500, 1500, 5000
SETS = ("breast_cancer", "digits", "pima", "diabetic_retinopathy", "spambase", "magic04")
SPLITS = "prune-splits{keep=accuracy-or-decisions,tolerance=0.01,leaf_bits=auto}"
LISTS = {
    "quantize": "quantize",
    "share-thresholds": "share-thresholds,quantize",
    "prune-exact": "quantize,prune-exact{effort=EFFORT}",
    "prune-trees": "quantize,prune-trees",
    "share, trees, exact": "share-thresholds,quantize,prune-trees,simplify,prune-exact{effort=EFFORT}",
    "share, splits": f"share-thresholds,quantize,{SPLITS}",
    "share, splits, trees": f"share-thresholds,quantize,{SPLITS},prune-trees",
    "share, trees, splits": f"share-thresholds,quantize,prune-trees{{tolerance=0.005}},{SPLITS}",
    "share, trees, splits, trees": f"share-thresholds,quantize,prune-trees{{tolerance=0.005}},{SPLITS},prune-trees",
}


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", default=",".join(SETS), metavar="NAMES")
    parser.add_argument("--lists", default=";".join(LISTS), metavar="NAMES", help="separated by semicolons")
    parser.add_argument("--effort", type=int, default=200)
    parser.add_argument("--most-splits", type=int, default=4000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    start = time.perf_counter()
    cases = [(name, kind, options) for name in options.only.split(",") for kind in ("forest", "boosting")]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.processes) as pool:
        for made in pool.map(measured, cases):
            rows += made
            print(f"{made[0]['set']}, {made[0]['model']}: {time.perf_counter() - start:.0f} s", flush=True)
    show("forest_pruning", rows, options.json, means=means(rows), s=time.perf_counter() - start)


def measured(case: tuple[str, str, Any]) -> list[dict[str, Any]]:
    name, kind, options = case
    X, y = shuffled(name, options.data)
    fit = slice(0, min(MOST_FIT, len(X) // 2))
    held = slice(fit.stop, fit.stop + min(MOST_HELD, len(X) // 4))
    test = slice(held.stop, held.stop + MOST_TEST)
    make = RandomForestClassifier if kind == "forest" else XGBClassifier
    model = make(n_estimators=100, random_state=0, n_jobs=1).fit(X[fit].astype(np.float32), y[fit])
    source = load(model)
    rows, held_rows, test_rows = (ArrayRows(X[part], y[part].astype(np.int64)) for part in (fit, held, test))
    judge, lines = Judge(source, test_rows), []
    for title in options.lists.split(";"):
        passes = LISTS[title].replace("EFFORT", str(options.effort))
        splits = sum(len(tree.inner) for tree in source.trees)
        if "prune-exact" in passes and "prune-trees" not in passes and splits > options.most_splits:
            continue
        begun = time.perf_counter()
        forest, steps = run_passes(source, passes_from(f"simplify,{passes},simplify"), rows, held_rows)
        seconds = time.perf_counter() - begun
        held_out = next(step.held_out for step in reversed(steps) if step.held_out is not None)
        own = {unit: total(forest, unit) for unit in UNITS} | {"trees": growing(forest)}
        lines.append(
            {"set": name, "model": kind, "passes": title, **own, "test_%": round(100 * judge.of(forest).accuracy, 2),
             "model_%": round(100 * judge.accuracy, 2), "held_lost_%": round(100 * held_out["lost_in_all"], 2),
             "s": round(seconds, 1)}
        )  # fmt: skip
    return lines


def total(forest: Forest, unit: str) -> int:
    return round(bill_of(forest, unit).of(np.ones(len(forest.trees), dtype=bool)))


def growing(forest: Forest) -> int:
    """Trees that are not a constant."""
    return sum(tree.size > 1 for tree in forest.trees)


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Over the models, for each list of passes: geometric means beside `quantize`, and the mean change of accuracy."""
    base = {(row["set"], row["model"]): row for row in rows if row["passes"] == "quantize"}
    lines = []
    for title in dict.fromkeys(row["passes"] for row in rows):
        own = [(row, base[row["set"], row["model"]]) for row in rows if row["passes"] == title]
        share = {
            unit: round(float(np.exp(np.mean([np.log(max(1, a[unit]) / max(1, b[unit])) for a, b in own]))), 3)
            for unit in UNITS
        }
        change = round(float(np.mean([a["test_%"] - a["model_%"] for a, _ in own])), 2)
        lines.append({"passes": title, "models": len(own), **share, "test_change_points": change})
    return lines


if __name__ == "__main__":
    main()
