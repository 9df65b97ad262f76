"""Measures what designs of -O2 and -O3 truly lose, on thousands of rows that neither trained nor chose them.

    python benchmarks/losses.py --data DIR --draws 2 --json FILE

Of each large set 1,000 rows train two models (as drawn by levels.py). Parts of 100, 300, 1,000 and 5,000 other rows,
drawn anew for each number, are the held-out rows; all that is left, at least 5,000 rows, says what a design truly
loses. One search of -O3 gives four designs: -O2's is what it had taken after the families of -O2, and `sure` takes
shown designs alone. Sizes are estimated LUTs. `width` is that of the interval to one that counts no choice.

In the part `live` there are no other rows: an estimator trained on 1,000 or 4,000 rows is compiled with these alone.
Its sets also hold boosters of several overlapping classes, with few rounds and a low learning rate. `--only live`
measures this part alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from designs import estimated_luts
from ledger import Ledger
from levels import learner
from sklearn.datasets import make_classification
from tools import arguments
from xgboost import XGBClassifier

import forestc
from forestc.lowering.trees import LoweringOptions
from forestc.passes import PASSES
from forestc.passes.base import parse_passes
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows
from forestc.search.cross_validation import Fold
from forestc.search.levels import PATHS, SEARCHING, SearchTerms, climbed
from forestc.search.portfolio import LevelSearch
from forestc.search.sizes import size_of

TITLE = "what the designs of -O2 and -O3 truly lose"
SETS = ("adult", "magic04", "bank_additional_full", "unsw_nb15_82k", "dry_bean", "covertype_15k", "nursery")
FIT, FRESH, HELD = 1000, 40_000, (100, 300, 1000, 5000)
TOLERANCE = 0.01
LIVE = (1000, 4000)  # training rows of estimators without other rows
OVERLAPPING = {4: (4, 6), 6: (5, 5)}  # maps classes to the depths of two boosters


def main() -> None:
    parser = arguments(__doc__, "json", "data!", "only")
    parser.add_argument("--draws", type=int, default=1, metavar="N", help="draws of the held-out rows")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="searches at the same time")
    options = parser.parse_args()
    if options.small:
        options.only = "transfusion"
    alone = options.only == "live"
    names = options.only.split(",") if options.only and not alone else SETS
    overlapping = [f"{classes} overlapping classes" for classes in OVERLAPPING if alone or not options.only]
    numbers, parts = (range(1), (20,)) if options.small else (range(2), HELD)
    cases = [
        {"set": name, "number": number, "draw": draw, "held_out": held}
        for draw in range(0 if alone else options.draws) for name in names for number in numbers for held in parts
    ]  # fmt: skip
    ledger = Ledger(TITLE, options, ("numba", "xgboost", "lightgbm"))
    with nullcontext() if options.small else ProcessPoolExecutor(options.processes) as pool:
        ledger.fill(cases, partial(measured, options), pool=pool)
        live = [
            {"set": name, "number": number, "fit": fit}
            for name in (*names, *overlapping) for number in numbers for fit in LIVE
        ]  # fmt: skip
        ledger.fill(live[:1] if options.small else live, partial(lived, options), part="live", pool=pool)
    rows = ledger.parts["live"]
    ledger.show(summary=summary(ledger.rows), steady=steady(ledger.rows), summary_of_live=summary_of_live(rows))


def rows_of(case: Mapping[str, Any], data: Path, most: int) -> tuple[Any, Any, int]:
    """Returns rows, their labels, and how many of them train: at most `most`. All classes are among these."""
    X, y = read(case["set"], data)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = np.nan_to_num(X[order], nan=-1.0), y[order]
    fit = min(most, len(X) // 2)
    kept = np.isin(y, np.unique(y[:fit]))
    return X[kept], np.searchsorted(np.unique(y[:fit]), y[kept]), fit


def lived(options: Any, case: Mapping[str, Any]) -> Iterator[Any]:
    """Makes a row for a live estimator at -O2."""
    classes = int(case["set"].split()[0]) if "overlapping" in case["set"] else 0
    if classes:
        fit, depth = case["fit"], OVERLAPPING[classes][case["number"]]
        X, y = make_classification(
            fit + FRESH // 2, 12, n_informative=8, n_classes=classes, class_sep=0.6, flip_y=0.05,
            random_state=case["number"],
        )  # fmt: skip
        model: Any = XGBClassifier(n_estimators=12, learning_rate=0.1, max_depth=depth, n_jobs=1)
    else:
        X, y, fit = rows_of(case, options.data, case["fit"])
        model, _ = learner(case["set"], len(np.unique(y)), 0, case["number"])
    yield [X, y], None
    model.fit(X[:fit], y[:fit])
    truth = Scorer(forestc.load(model), ArrayRows(X[fit:][:FRESH].astype(np.float64), y[fit:][:FRESH]))
    done = []
    for level in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            done.append(forestc.compile(model, X[:fit], out, label=y[:fit], level=level, targets="verilog"))
    true, made = truth.of(done[1].design.forest), done[1].figures["level"]
    chosen = next(row for row in made["table"] if row["chosen"]) if "table" in made else {"family": "paths kept"}
    evidence = made.get("evidence") or {"word": "-O1", "lost": 0.0, "interval": [0.0, 0.0], "rows": 0}
    low, high = (round(end, 5) for end in evidence["interval"])
    first, size = (estimated_luts(each.figures) for each in done)
    yield {
        "won": chosen["family"], "word": evidence["word"], "judged_on": evidence["rows"], "size": size,
        "to -O1": round(size / max(first, 1), 4), "lost": round(true.lost, 5), "error": round(true.error, 5),
        "fresh": true.rows, "estimated": round(evidence["lost"], 5), "low": low, "high": high,
    }  # fmt: skip


def summary_of_live(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for word in dict.fromkeys(row["word"] for row in rows):
        own = [row for row in rows if row["word"] == word]
        lines.append({
            "word": word, "designs": len(own),
            "above the tolerance": _share(row["lost"] > TOLERANCE for row in own),
            "above twice": _share(row["lost"] > 2 * TOLERANCE for row in own), "size to -O1": _mean_size(own),
        })  # fmt: skip
    return lines


def measured(options: Any, case: Mapping[str, Any]) -> Iterator[Any]:
    """Makes a row for each level, with and without `sure`."""
    X, y, fit = rows_of(case, options.data, FIT)
    others = fit + np.random.default_rng((case["draw"], case["held_out"])).permutation(len(X) - fit)
    held, fresh = others[: case["held_out"]], others[case["held_out"] :][:FRESH]
    yield [X, y], None
    model, _ = learner(case["set"], len(np.unique(y)), 0, case["number"])
    model.fit(X[:fit], y[:fit])
    source, rows = forestc.load(model), ArrayRows(X[:fit], y[:fit])
    fold = Fold(source, rows, Scorer(source, ArrayRows(X[held], y[held])))
    truth = Scorer(source, ArrayRows(X[fresh], y[fresh]))
    search = LevelSearch(source, rows, (fold,), size_of(["verilog"], None, "", LoweringOptions()), TOLERANCE)
    first = search.plain("paths kept", parse_passes(PATHS, PASSES)).size
    made = []
    for level in SEARCHING:
        climbed(level, search, SearchTerms(TOLERANCE))
        search.smallest()
        for sure in (False, True):
            taken = search.choose(sure)
            evidence, true = taken.evidence, truth.of(taken.trial.forest)
            (low, high), half = evidence.interval, evidence.loss.lost - evidence.interval[0]
            made.append({
                "level": level, "sure": sure, "won": taken.trial.family, "word": evidence.word(TOLERANCE),
                "size": taken.trial.size, "to -O1": round(taken.trial.size / max(first, 1), 4),
                "lost": round(true.lost, 5), "error": round(true.error, 5), "fresh": len(fresh),
                "estimated": round(evidence.lost, 5), "low": round(low, 5), "high": round(high, 5),
                "width": round((high - low) / (2 * half), 3),
            })  # fmt: skip
    yield made


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sums up the rows by level and number of held-out rows; shares in percent."""
    lines = []
    for sure in (False, True):
        for level in (*SEARCHING, 0):
            for held in dict.fromkeys(row["held_out"] for row in rows):
                own = [
                    row for row in rows
                    if row["sure"] == sure and row["held_out"] == held and level in (0, row["level"])
                ]  # fmt: skip
                if not own:
                    continue
                moved = [row for row in own if row["won"] != "paths kept"]
                lines.append({
                    "level": f"-O{level or '2, -O3'}{' --sure' * sure}", "held-out rows": held, "designs": len(own),
                    "above the tolerance": _share(row["lost"] > TOLERANCE for row in own),
                    "above twice": _share(row["lost"] > 2 * TOLERANCE for row in own),
                    "interval holds": _share(row["low"] <= row["lost"] <= row["high"] for row in own),
                    "width to one without a choice": round(float(np.mean([row["width"] for row in moved or own])), 2),
                    "shown": _share(row["word"] == "shown" for row in own),
                    "-O1": _share(row not in moved for row in own),
                    "size to -O1": _mean_size(own),
                })  # fmt: skip
    return lines


def steady(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns, by level and held-out rows, the median over models of the largest size to the smallest of all draws."""
    lines = []
    for level in SEARCHING:
        for held in HELD:
            ratios = []
            for name, number in dict.fromkeys((row["set"], row["number"]) for row in rows):
                sizes = [
                    max(row["size"], 1.0) for row in rows
                    if (row["set"], row["number"], row["level"], row["held_out"], row["sure"])
                    == (name, number, level, held, False)
                ]  # fmt: skip
                ratios += [max(sizes) / min(sizes)] if len(sizes) > 1 else []
            if ratios:
                lines.append(
                    {"level": f"-O{level}", "held-out rows": held, "largest to smallest": float(np.median(ratios))}
                )
    return lines


def _mean_size(rows: list[dict[str, Any]]) -> float:
    """Returns the geometric mean of the sizes to those of -O1."""
    return round(float(np.exp(np.mean(np.log([max(row["to -O1"], 1e-4) for row in rows])))), 3)


def _share(of: Any) -> float:
    return round(100 * float(np.mean(list(of))), 1)


if __name__ == "__main__":
    main()
