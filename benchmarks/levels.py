"""Compares the levels on drawn models: size, seconds, their promise on test rows that chose nothing, and what won.

    python benchmarks/levels.py --data DIR --seeds 3 --json FILE

The thirteen data sets come from scikit-learn and from DIR (NAME.csv.gz, the label last): clean and overlapping ones,
two to ten classes, four regressions. Of each split, three fifths of the rows (at most 1,000) train two models drawn by
a fixed seed. Each model is compiled in two ways: with its training rows alone, and with held-out rows (a fifth, at most
1,000). The last fifth (at most 5,000) are test rows. LUTs are yosys's for an UltraScale+ (latency 0, the decision
included); above 600 estimated LUTs, the estimate counts. Seconds are those of the processor, so that other work on the
machine counts little. A level breaks its word if its loss on the test rows exceeds the tolerance, 0.01, plus a standard
error of the difference. A level that refuses a model counts as -O1. The family with the smallest design
won.
"""

from __future__ import annotations

import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from designs import estimated_luts, yosys_luts
from ledger import Case, Ledger, Steps
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tools import arguments
from xgboost import XGBClassifier, XGBRegressor

import forestc
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows
from forestc.search.levels import DEFAULT_EFFORT

TITLE = "what each level makes of drawn models"
REGRESSION = ("airfoil", "winequality_white", "winequality_red", "real_estate")
# SEVERAL lists sets of many overlapping classes; their first model has many trees at a high learning rate
SEVERAL = ("covertype_15k",)
SETS = (
    "breast_cancer",
    "spambase",
    "musk1",
    "digits",
    "dry_bean",
    "pima",
    "magic04",
    "transfusion",
    *SEVERAL,
    *REGRESSION,
)
MOST_FIT, MOST_HELD, MOST_TEST, MOST_SYNTHESIZED = 1000, 1000, 5000, 600
TOLERANCE = 0.01
LIVE, HELD_OUT = WAYS = ("training rows", "held-out rows")
LEVELS = (1, 2, 3)


def main() -> None:
    parser = arguments(__doc__, "json", "data!", "only")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="splits of each set")
    parser.add_argument("--effort", type=int, default=DEFAULT_EFFORT, metavar="N", help="effort of -O2 and -O3")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="models compiled at the same time")
    options = parser.parse_args()
    if options.small:
        options.only = "pima"
    names = options.only.split(",") if options.only else SETS
    drawn = product(range(options.seeds), names, range(1 if options.small else 2))
    cases = [{"set": name, "seed": seed, "number": number} for seed, name, number in drawn]
    ledger = Ledger(TITLE, options, ("numba", "xgboost", "lightgbm", "yosys"), ("effort",))
    with nullcontext() if options.small else ProcessPoolExecutor(options.processes) as pool:
        ledger.fill(cases, measured, options, pool=pool)
    ledger.show(summary=summary(ledger.rows), won=won(ledger.rows))


def learner(name: str, classes: int, seed: int, number: int) -> tuple[Any, str]:
    """Draws an untrained model by data set, seed and number; returns it with its parameters in words."""
    random = np.random.default_rng((zlib.crc32(name.encode()), seed, number))
    rounds = 1 if classes <= 2 else max(2, 20 // classes)

    def one(*values: Any) -> Any:
        return values[int(random.integers(len(values)))]

    kind = "xgboost" if number == 0 else one("xgboost", "lightgbm", "forest")
    if kind == "forest":
        own = {"n_estimators": 20, "max_depth": one(6, 10, None), "min_samples_leaf": one(1, 3, 10)}
        own |= {"max_features": one("sqrt", 0.5, 1.0), "random_state": seed}
        return (RandomForestClassifier if classes else RandomForestRegressor)(**own), _words(kind, own)
    if kind == "lightgbm":
        own = {"n_estimators": one(10, 20, 40) if rounds == 1 else rounds * 3, "num_leaves": one(7, 15, 31)}
        own |= {"learning_rate": one(0.05, 0.1, 0.3), "min_child_samples": one(5, 20), "verbosity": -1}
        return (LGBMClassifier if classes else LGBMRegressor)(**own, n_jobs=1, random_state=seed), _words(kind, own)
    own = {"learning_rate": one(0.05, 0.1, 0.3, 0.8, 1.0), "max_depth": one(2, 3, 4, 6, 8)}
    own |= {"n_estimators": one(20, 40, 65) if rounds == 1 else rounds * 3}
    for option, values in (("subsample", (1.0, 0.5)), ("min_child_weight", (1, 5, 20)), ("reg_alpha", (0.0, 0.5))):
        own[option] = one(*values)
    if classes == 2:
        own["scale_pos_weight"] = one(1.0, 3.0)
    if name in SEVERAL and number == 0:
        own = {"learning_rate": 0.8, "max_depth": 5, "n_estimators": 65 // classes + 4}
    return (XGBClassifier if classes else XGBRegressor)(**own, n_jobs=1, random_state=seed), _words(kind, own)


def _words(kind: str, own: Mapping[str, Any]) -> str:
    return " ".join([kind, *(f"{key}={value}" for key, value in own.items() if key != "random_state")])


def measured(options: Any, case: Case) -> Steps:
    """Compiles one model at all levels, in all ways; yields a row for each."""
    name, seed, number = case["set"], case["seed"], case["number"]
    X, y = read(name, options.data, values=name in REGRESSION)
    yield [X, y], None
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    first, second = int(0.6 * len(X)), int(0.8 * len(X))
    fit, held = slice(0, min(first, MOST_FIT)), slice(first, min(second, first + MOST_HELD))
    test = slice(second, second + MOST_TEST)
    y = y if name in REGRESSION else np.searchsorted(np.unique(y[fit]), y)
    classes = 0 if name in REGRESSION else len(np.unique(y[fit]))
    model, words = learner(name, classes, seed, number)
    model.fit(X[fit], y[fit])
    scorer = Scorer(forestc.load(model), ArrayRows(X[test], y[test]))
    rows: list[dict[str, Any]] = []
    for level in LEVELS:
        for way in WAYS if level > 1 else ("",):
            row = {"model": words, "level": level, "way": way}
            rows.append(row | _figures(model, X, y, fit, held if way == HELD_OUT else None, level, scorer, options))
    yield rows


def _figures(
    model: Any, X: Any, y: Any, fit: slice, held: slice | None, level: int, scorer: Scorer, options: Any
) -> dict[str, Any]:
    """Compiles a model at a level. Returns its size, the accuracy lost on the test rows, seconds, and what won."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        done = forestc.compile(
            model, X[fit], Path(folder) / "out", label=y[fit], level=level, name="m",
            held_out=None if held is None else (X[held], y[held]), effort=options.effort if level > 1 else None,
            targets="verilog",
        )  # fmt: skip
        seconds, level_record = time.process_time() - start, done.figures["level"] or {}
        estimate = estimated_luts(done.figures)
        size = estimate if estimate > MOST_SYNTHESIZED else yosys_luts(done.design)
        loss = scorer.of(done.design.forest)
    chosen = next((trial for trial in level_record.get("table", []) if trial["chosen"]), {})
    return {
        "size": size, "own": chosen.get("size"), "won": chosen.get("family"),
        "lost": round(loss.lost, 5), "error": round(loss.error, 5), "accuracy": round(loss.accuracy, 5),
        "s": round(seconds, 2), "refused": level_record.get("level") != f"O{level}",
    }  # fmt: skip


def broken(row: Mapping[str, Any]) -> bool:
    """Returns True if the loss on the test rows exceeds the tolerance plus a standard error."""
    return bool(row["lost"] > TOLERANCE + row["error"])


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sums up the rows by level and way: broken words, refusals, sizes and seconds beside those of -O1."""
    by_key = {_key(row): row for row in rows}
    lines = []
    for level in (2, 3):
        for way in WAYS:
            own = [row for row in rows if (row["level"], row["way"]) == (level, way)]
            if not own:
                continue
            first = [by_key[_key(row | {"level": 1, "way": ""})] for row in own]
            before = [by_key[_key(row | {"level": 2})] for row in own]
            times = [max(row["s"], 0.1) / max(one["s"], 0.1) for row, one in zip(own, first, strict=True)]
            lines.append({
                "level": f"-O{level}", "way": way, "models": len(own),
                "word broken": sum(map(broken, own)),
                "refused": sum(row["refused"] for row in own),
                "size to -O1": _mean(own, first),
                "seconds to -O1, summed": round(sum(row["s"] for row in own) / sum(row["s"] for row in first), 2),
                "worst": round(max(times), 1), "most seconds": max(row["s"] for row in own),
                "larger than the level before": sum(
                    row["own"] is not None and one["own"] is not None and row["own"] > one["own"]
                    for row, one in zip(own, before, strict=True)
                ),
            })  # fmt: skip
    return lines


def won(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Counts how often each family won, by level."""
    wins = {level: Counter(row["won"] for row in rows if row["level"] == level and row["won"]) for level in (2, 3)}
    families = sorted(set().union(*wins.values()), key=lambda family: (-wins[3][family], -wins[2][family]))
    return [
        {"family": family} | {f"-O{level}": f"{counts[family]} of {counts.total()}" for level, counts in wins.items()}
        for family in families
    ]


def _mean(rows: Any, others: Any) -> float:
    """Returns the geometric mean of the ratios of sizes."""
    ratios = [max(row["size"], 1) / max(one["size"], 1) for row, one in zip(rows, others, strict=True)]
    return round(float(np.exp(np.mean(np.log(ratios)))), 3)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["set"], row["seed"], row["number"], row["level"], row["way"]


if __name__ == "__main__":
    main()
