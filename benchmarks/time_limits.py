"""Measures whether `--effort Ns` and explore's `--seconds N` end in time, on four models.

    python benchmarks/time_limits.py --json docs/benchmarks/time_limits.json

The models are a random forest of full depth, XGBoost with eight classes, LightGBM with two, and a regression. N grows
in five steps from the time of -O1 to 420 s. The first, third and fifth run `compile -O3 --effort Ns` and count the
seconds of its passes; the others run `explore --seconds N` and count all seconds. Each must end within N + 10 s or 1.1
N, whichever is larger. `--most 60` takes N up to 60 s. Twenty runs take about 50 minutes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from tools import arguments, earlier_rows, save, show

import forestc
from forestc.forest.text import print_forest

ROWS, STEPS, MOST = 6_000, 5, 420.0
TITLE = "time limits"
MEASURES = ("forestc/compilation", "forestc/passes", "forestc/algorithms", "forestc/exploration")
SLACK, SHARE = 10.0, 1.1  # seconds beyond N, and factor of N; the larger bound is allowed


def _classes(count: int) -> tuple[Any, Any]:
    X, y = make_classification(
        ROWS, 20, n_informative=10, n_redundant=4, n_classes=count, flip_y=0.05, class_sep=0.8, random_state=0
    )
    return X.astype(np.float32), y


def _values() -> tuple[Any, Any]:
    X, y = make_friedman1(ROWS, 20, noise=1.0, random_state=0)
    return X.astype(np.float32), y


MODELS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "forest": lambda: (RandomForestClassifier(20, random_state=0, n_jobs=2), *_classes(4)),
    "xgboost": lambda: (xgboost.XGBClassifier(n_estimators=40, max_depth=6, random_state=0, n_jobs=2), *_classes(8)),
    "lightgbm": lambda: (LGBMClassifier(n_estimators=150, num_leaves=31, random_state=0, verbose=-1), *_classes(2)),
    "regression": lambda: (ExtraTreesRegressor(40, max_depth=12, random_state=0, n_jobs=2), *_values()),
}


def runs(name: str, most: float, scratch: Path, small: bool) -> list[dict[str, Any]]:
    """Runs a model with each N; returns a row for each run."""
    model, X, y = MODELS[name]()
    X, y = X[: 60 if small else None], y[: 60 if small else None]
    model.fit(X, y)
    file = scratch / f"{name}.forest"
    file.write_text(print_forest(forestc.load(model)))

    def passes(level: int, **more: Any) -> tuple[float, Any]:
        with tempfile.TemporaryDirectory() as out:
            done = forestc.compile(model, X, Path(out, "d"), label=y, level=level, targets="c", **more)
        return float(done.figures["seconds"]["passes"]), done

    passes(1)  # The first run compiles functions with numba, which keeps them.
    least, _ = passes(1)
    rows = []
    for step, seconds in enumerate(np.geomspace(max(1.0, least), MOST, STEPS).tolist()[: 1 if small else None]):
        if seconds > most:
            break
        seconds, found = round(seconds, 1), ""
        row: dict[str, Any] = {"model": name, "-O1_s": round(least, 1), "limit_s": seconds}
        if step % 2 == 0:
            taken, done = passes(3, effort=f"{seconds}s")
            level = done.figures["level"]
            found = f"{level['level']}, {level.get('tried', 0)} settings"
            row |= {"what": "--effort", "took_s": taken}
        else:
            begin = time.perf_counter()
            study = forestc.explore(
                file, X, scratch / f"{name}-{step}", label=y, device="ecp5-85k", rungs="estimate", seconds=seconds,
                trials=200,
            )  # fmt: skip
            found = f"{len(study.complete)} trials"
            row |= {"what": "--seconds", "took_s": time.perf_counter() - begin}
        allowed = max(seconds + SLACK, SHARE * seconds)
        rows.append(row | {"allowed_s": round(allowed, 1), "kept": row["took_s"] <= allowed, "found": found})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = arguments(__doc__, MEASURES, "only")
    parser.add_argument("--most", type=float, default=MOST, help="seconds: no larger N is run")
    options = parser.parse_args()
    if options.small:
        options.only = "regression"
    rows = earlier_rows(options)
    done = {row["model"] for row in rows}
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.only.split(",") if options.only else MODELS:
            if name not in done:
                rows += runs(name, options.most, Path(scratch), options.small)
                save(TITLE, rows, options)
    show(TITLE, rows, options)


if __name__ == "__main__":
    main()
