"""What each level makes of forests and boosting, and whether it keeps its word on rows that nobody has seen.

    python benchmarks/levels.py --data DIR --seeds 3 --json FILE
    python benchmarks/levels.py --data DIR --seeds 3 --levels 3 --cases FILE   # of another version, in its checkout
    python benchmarks/levels.py --data DIR --seeds 3 --against FILE

Twelve data sets of scikit-learn and of DIR (NAME.csv.gz, the last column `target`); of six the classes overlap. Three
fifths of the rows, at most 1,000, train the model and are given to `compile`; a fifth, at most 1,000, is held out in
one half of the runs; the test rows, the last fifth, at most 5,000, choose nothing. LUTs are those of yosys for an
UltraScale+ (latency 0, the decision included); of designs of more than 600 LUTs, the estimate. A level breaks its
word where it loses more on the test rows than the tolerance, 0.01, and one standard error of the difference there.
Accuracy of a regression is R squared.
"""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from designs import estimated_luts, yosys_luts
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tools import arguments, show
from xgboost import XGBClassifier, XGBRegressor

import forestc
from forestc.passes.judge import Judge
from forestc.rows.batches import ArrayRows

TITLE = "what each level makes of twelve data sets: -O0 / -O1 / -O2 / -O3"
MEASURES = ("forestc/passes", "forestc/algorithms", "forestc/compilation", "forestc/lowering", "forestc/costs")
REGRESSION = ("airfoil", "winequality_white")
OVERLAPPING = ("pima", "diabetic_retinopathy", "magic04", "transfusion", "heart_statlog", "winequality_white")
SETS = ("breast_cancer", "digits", "spambase", "dry_bean", "musk1", "airfoil", *OVERLAPPING)
MOST_FIT, MOST_HELD, MOST_TEST, MOST_SYNTHESIZED = 1000, 1000, 5000, 600
TOLERANCE = 0.01
WAYS = ("held-out rows", "training rows alone")


def main() -> None:
    parser = arguments(__doc__, MEASURES, "data!", "only")
    parser.add_argument("--seeds", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--levels", default="0,1,2,3", metavar="LIST")
    parser.add_argument("--cases", type=Path, metavar="FILE", help="write every design's figures there, as JSON")
    parser.add_argument("--against", type=Path, metavar="FILE", help="such a file of another version")
    options = parser.parse_args()
    kinds = ("forest", "boosting")
    if options.small:
        options.only, kinds = "pima", kinds[:1]
    levels = tuple(map(int, options.levels.split(",")))
    cases = [
        (name, kind, seed, levels, options.data)
        for seed in range(options.first, options.first + options.seeds)
        for name in (options.only.split(",") if options.only else SETS)
        for kind in kinds
    ]
    designs: list[dict[str, Any]] = []
    with nullcontext() if options.small else ProcessPoolExecutor(2) as pool:
        for made in (pool.map if pool else map)(measured, cases):
            designs += made
            for row in made:
                print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)
            if options.cases:
                options.cases.write_text(json.dumps(designs))
    others = json.loads(options.against.read_text()) if options.against else []
    if levels == tuple(range(4)):
        show(TITLE, shown(designs), options, **summary(designs, others))


def learner(name: str, kind: str, classes: int, seed: int) -> Any:
    if kind == "forest":
        made = RandomForestRegressor if name in REGRESSION else RandomForestClassifier
        return made(20, max_depth=6, random_state=seed)
    made = XGBRegressor if name in REGRESSION else XGBClassifier
    return made(n_estimators=8 if classes > 2 else 20, max_depth=4, random_state=seed, n_jobs=1)


def measured(case: tuple[str, str, int, tuple[int, ...], Path]) -> list[dict[str, Any]]:
    """One model at all levels, with held-out rows and without."""
    name, kind, seed, levels, data = case
    X, y = read(name, data, values=name in REGRESSION)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    first, second = int(0.6 * len(X)), int(0.8 * len(X))
    fit, held = slice(0, min(first, MOST_FIT)), slice(first, min(second, first + MOST_HELD))
    test = slice(second, second + MOST_TEST)
    model = learner(name, kind, 0 if name in REGRESSION else len(np.unique(y)), seed).fit(X[fit], y[fit])
    judge = Judge(forestc.load(model), ArrayRows(X[test], y[test]))
    rows = []
    for level in levels:
        for way in WAYS if level > 1 else ("",):
            held_out = (X[held], y[held]) if way == WAYS[0] else None
            start = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    done = forestc.compile(
                        model, X[fit], Path(folder) / "out", label=y[fit], level=level, name="m", held_out=held_out,
                        targets="verilog",
                    )  # fmt: skip
                except forestc.ForestcError as error:
                    print(f"{name} {kind} {seed} -O{level} {way}: {error}", flush=True)
                    continue
                seconds = time.perf_counter() - start
                estimate = estimated_luts(done.figures)
                luts = estimate if estimate > MOST_SYNTHESIZED else yosys_luts(done.design)
                loss = judge.of(done.design.forest)
            rows.append(
                {
                    "set": name, "model": kind, "seed": seed, "level": level, "way": way, "luts": luts,
                    "estimate": estimate, "lost": round(loss.lost, 5), "error": round(loss.error, 5),
                    "accuracy": round(loss.accuracy, 5), "s": round(seconds, 1),
                }
            )  # fmt: skip
    return rows


def broken(row: dict[str, Any]) -> bool:
    """Whether more is lost on the test rows than the tolerance and a standard error."""
    return bool(row["lost"] > TOLERANCE + row["error"])


def shown(designs: list[dict[str, Any]]) -> list[dict[str, str]]:
    """A row for each set, model and way: means over the seeds."""
    lines = []
    for name, kind in dict.fromkeys((row["set"], row["model"]) for row in designs):
        for way in WAYS:
            own = [row for row in designs if (row["set"], row["model"]) == (name, kind) and row["way"] in ("", way)]
            of = {level: [row for row in own if row["level"] == level] for level in range(4)}
            if not all(of.values()):
                continue

            def means(key: str, form: str, of: dict[int, list[dict[str, Any]]] = of) -> str:
                return " / ".join(format(float(np.mean([row[key] for row in rows])), form) for rows in of.values())

            lost = {level: [{"points": -100 * row["lost"]} for row in rows] for level, rows in of.items()}
            lines.append(
                {
                    "data set": name.replace("_", " "), "model": kind, "judged on": way,
                    "LUTs": means("luts", ",.0f"), "change on test rows, points": means("points", "+.1f", lost),
                    "seconds": means("s", ".0f"),
                }
            )  # fmt: skip
    return lines


def summary(designs: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, Any]:
    """How often the word is broken, whether sizes fall from level to level, and sizes and times beside another
    version's."""
    known = {(row["set"], row["model"], row["seed"], row["level"], row["way"]): row for row in designs}
    figures: dict[str, Any] = {}
    for level in (2, 3):
        for way in WAYS:
            rows = [row for row in designs if (row["level"], row["way"]) == (level, way)]
            if rows:
                figures[f"O{level}_{way}_word_broken".replace(" ", "_")] = f"{sum(map(broken, rows))} of {len(rows)}"
    larger = []
    for (name, kind, seed, level, way), row in known.items():
        before = known.get((name, kind, seed, level - 1, way if level > 2 else ""))
        if before is not None and row["luts"] > 1.02 * before["luts"]:
            larger.append(f"{name} {kind} {seed} -O{level} {way}: {row['luts']} behind {before['luts']}")
    figures["larger_than_the_level_before"] = "; ".join(larger) or "none"
    pairs = [(known[key], row) for row in others if (key := _key(row)) in known and row["level"] == 3]
    if pairs:
        for what, values in (("luts", 1.0), ("s", 0.1)):
            ratios = [np.log(max(own[what], values) / max(other[what], values)) for own, other in pairs]
            figures[f"O3_{what}_against_the_other_version"] = float(np.exp(np.mean(ratios)))
        figures["word_broken_by_the_other_version"] = f"{sum(broken(other) for _, other in pairs)} of {len(pairs)}"
    return figures


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["set"], row["model"], row["seed"], row["level"], row["way"]


if __name__ == "__main__":
    main()
