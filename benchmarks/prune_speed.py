"""The time of prune-splits, by stage, and its result: splits, LUTs as priced by the pass, accuracy on test rows.

Default: 14,000 generated rows with 20 features and 5 classes, XGBoost with 65 trees of up to 31 splits, all prices
(`price=auto`). --sets adds small data sets, for which the result matters more than the time. --data DIR: MNIST instead,
300 trees on 20,000 rows (5,000 more are held out), up to a price of 0.1. A run on a small problem compiles the code
before the clock starts. --passes TEXT replaces the options of prune-splits.

Stages, in CPU seconds of all threads, which other load affects little: fit (leaves are fitted), rewire (splits get
other conditions), prune (splits become leaves), rest. s: wall-clock time.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data import mnist
from numpy.typing import NDArray
from tools import arguments, peak_memory_mb, show

import forestc
from forestc.algorithms.splits import pruning as split_pruning
from forestc.passes import passes_from
from forestc.passes.judge import Judge
from forestc.passes.pipeline import run_passes
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.simplify import Simplify
from forestc.rows.batches import ArrayRows, FitAndHeldOut

STAGES = {"fit_leaves": "fit", "rewire": "rewire", "_round": "prune"}  # functions of split_pruning
START = "simplify,quantize{leaf_bits=4,change=0.5},simplify"
AUTO = "prune-splits{leaf_bits=1,tolerance=0.02}"
PRICED = "prune-splits{leaf_bits=2,price=0.1,copies=0,tolerance=0.5}"


@dataclass(frozen=True)
class Case:
    """A data set with training and test rows, and the settings of XGBoost."""

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    settings: dict[str, Any]
    passes: str = AUTO
    step: int = 1  # the passes see every n-th row


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, default=14_000)
    parser.add_argument("--trees", type=int, default=65)
    parser.add_argument("--sets", action="store_true", help="also small data sets")
    parser.add_argument("--data", type=Path, metavar="DIR", help="MNIST from there instead")
    parser.add_argument("--passes", metavar="TEXT", help="prune-splits with other options")
    options = parser.parse_args()
    if options.data:
        X, y, X_test, y_test = mnist(options.data)
        settings = {"n_estimators": 30, "max_depth": 5, "learning_rate": 0.8, "max_bin": 16, "colsample_bytree": 0.25}
        cases = [Case("mnist", X[10_000:], y[10_000:], X_test, y_test, settings, PRICED, step=2)]
    else:
        cases = [made("made", options.rows, 20, 5, 0.01, 2.0, {"n_estimators": options.trees // 5, "max_depth": 5})]
    if options.sets:
        cases += small_sets()
    measured(small_sets()[0], AUTO)  # compiles
    show("prune-splits", [measured(case, options.passes or case.passes) for case in cases], options.json)


def measured(case: Case, passes: str) -> dict[str, Any]:
    from xgboost import XGBClassifier

    model = XGBClassifier(**case.settings, n_jobs=2, random_state=0).fit(case.X, case.y)
    X, y = case.X[:: case.step], case.y[:: case.step]
    source, _ = run_passes(forestc.load(model), passes_from(START), ArrayRows(X, y))
    seconds: dict[str, float] = defaultdict(float)
    functions = [(name, getattr(split_pruning, name)) for name in STAGES]
    for name, function in functions:
        setattr(split_pruning, name, timed(function, STAGES[name], seconds))
    start, began = time.process_time(), time.perf_counter()
    try:
        fit, held_out = FitAndHeldOut.every(ArrayRows(X, y), 5)
        done = pruning(passes).run(source, fit, Judge(source, held_out))
    finally:
        for name, function in functions:
            setattr(split_pruning, name, function)
    total, passed = time.process_time() - start, time.perf_counter() - began
    report, forest = done.report, Simplify().run(done.forest, None).forest
    both = (source, forest)
    splits = [sum(len(tree.inner) for tree in forest.trees) for forest in both]
    right = [float((forestc.evaluate(forest, case.X_test).index == case.y_test).mean() * 100) for forest in both]
    return {
        "set": case.name, "rows": report["rows"], "copies": report["copies"], "trees": len(source.trees),
        "price": report["price"] or 0.0, **{stage: round(seconds[stage], 2) for stage in STAGES.values()},
        "rest": round(total - sum(seconds.values()), 2), "CPU_s": round(total, 2), "s": round(passed, 2),
        "splits": f"{splits[0]} -> {splits[1]}", "LUTs": f"{report['cost'][0]} -> {report['cost'][1]}",
        "conditions": f"{len(source.conditions.comparators)} -> {len(forest.conditions.comparators)}",
        "test_%": f"{right[0]:.2f} -> {right[1]:.2f}", "peak_MB": round(peak_memory_mb()),
    }  # fmt: skip


def pruning(text: str) -> PruneSplits:
    return next(step for step in passes_from(text) if isinstance(step, PruneSplits))


def timed(function: Callable[..., Any], stage: str, seconds: dict[str, float]) -> Callable[..., Any]:
    def run(*given: Any) -> Any:
        start = time.process_time()
        try:
            return function(*given)
        finally:
            seconds[stage] += time.process_time() - start

    return run


def made(
    name: str, rows: int, features: int, classes: int, noise: float, apart: float, settings: dict[str, Any]
) -> Case:
    """Rows of make_classification with 8 bits per feature. noise: share of random labels. apart: class separation."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n_samples=rows * 2, n_features=features, n_informative=features // 2, n_classes=classes, flip_y=noise,
        class_sep=apart, random_state=0,
    )  # fmt: skip
    low, high = X.min(axis=0), X.max(axis=0)
    X = np.rint((X - low) / (high - low) * 255).astype(np.float32)
    return Case(name, X[:rows], y[:rows], X[rows:], y[rows:], settings)


def small_sets() -> list[Case]:
    from sklearn import datasets

    def split() -> Iterator[Case]:
        for name, load in (
            ("breast cancer", datasets.load_breast_cancer), ("digits", datasets.load_digits),
            ("wine", datasets.load_wine),
        ):  # fmt: skip
            X, y = load(return_X_y=True)
            order = np.random.default_rng(0).permutation(len(y))
            test, train = np.split(order, [len(y) // 3])
            yield Case(name, X[train], y[train], X[test], y[test], {"n_estimators": 10, "max_depth": 4})

    return [
        *split(),
        made("noise", 1500, 16, 2, 0.2, 1.0, {"n_estimators": 20, "max_depth": 4}),
        made("overlap", 1500, 12, 3, 0.0, 0.5, {"n_estimators": 10, "max_depth": 4}),
        made("many classes", 2000, 24, 6, 0.02, 1.5, {"n_estimators": 6, "max_depth": 4}),
    ]


if __name__ == "__main__":
    main()
