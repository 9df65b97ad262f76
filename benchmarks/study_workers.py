"""The wall time of a study: 200 trials on a Dask cluster of one worker and of two, and on two processes.

    python benchmarks/study_workers.py --json docs/benchmarks/study_workers.json

Breast cancer: an XGBoost model of 15 rounds and depth 4, searched for LUTs on ecp5-25k and accuracy by estimate. Half
of the rows are for the search, cross-validated in five parts, a quarter for the test of the front, as `forestc explore`
does with --rows and --test. The machine should have two idle cores; the front is compiled and checked within the time.

    python benchmarks/study_workers.py --large 24

takes a larger model instead, an XGBoost model of 60 rounds and depth 6 on 6,300 rows of 28 columns, with 2,100 rows to
judge on, and that many trials on two processes. It prints the wall time, the processor seconds of all processes and the
hypervolume of the front (log2 of LUTs below 2^15, accuracy above 0.5).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from distributed import LocalCluster
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.model_selection import train_test_split
from tools import arguments, show

import forestc
from forestc.forest.text import print_forest

TRIALS = 200
CORNER, LEAST = 1 << 15, 0.5  # LUTs and accuracy from which the hypervolume counts


def large(trials: int) -> dict[str, Any]:
    """A search on 6,300 rows and 60 trees, on two processes."""
    from exploration import hypervolume, processor_seconds  # here, as workers import this file and need none of that

    X, y = make_classification(
        8400, 28, n_informative=12, n_redundant=4, n_clusters_per_class=6, flip_y=0.05, random_state=0
    )
    X = X.astype(np.float32)
    X, other, y, truth = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=6, random_state=0, n_jobs=1).fit(X, y)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "model.forest")
        file.write_text(print_forest(forestc.load(model)))
        start = time.perf_counter()
        before = processor_seconds()
        study = forestc.explore(
            file, X, Path(scratch, "study"), label=y, validation=(other, truth), device="ecp5-25k", trials=trials,
            rungs="estimate", seed=0, jobs=2, trial_seconds=3600.0,
        )  # fmt: skip
        wall, cpu = time.perf_counter() - start, processor_seconds() - before
    front = [(trial.figures["estimate"]["lut"], trial.validation.value) for trial in study.front if trial.validation]
    return {
        "trials": len(study.complete), "seconds": wall, "processor seconds": cpu, "front": len(front),
        "hypervolume": hypervolume(front, CORNER, LEAST),
    }  # fmt: skip


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--large", type=int, metavar="TRIALS", help="a larger model, and that many trials")
    options = parser.parse_args()
    if options.large:
        show("a larger study", [large(options.large)], options.json)
        return
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    X, test_X, y, test_y = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    model = xgboost.XGBClassifier(n_estimators=15, max_depth=4, random_state=0, n_jobs=1).fit(X, y)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "model.forest").write_text(print_forest(forestc.load(model)))

        def timed(name: str, trials: int, **where: Any) -> dict[str, Any]:
            start = time.perf_counter()
            study = forestc.explore(
                folder / "model.forest", X, folder / name, label=y, test=(test_X, test_y), device="ecp5-25k",
                trials=trials, rungs="estimate", seed=0, **where,
            )  # fmt: skip
            seconds = time.perf_counter() - start
            row = {"workers": name, "trials": len(study.trials), "complete": len(study.complete), "seconds": seconds}
            print(row, flush=True)
            return row | {"trials a minute": 60 * len(study.trials) / seconds, "of one Dask worker": None}

        timed("first", 20, jobs=2)  # numba keeps what it compiles
        rows = []
        for workers in (1, 2):
            with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as dask:
                rows.append(timed(f"Dask, {workers}", TRIALS, scheduler=dask.scheduler_address))
        rows.append(timed("processes, 2", TRIALS, jobs=2))
    for row in rows:
        row["of one Dask worker"] = row["trials a minute"] / rows[0]["trials a minute"]
    show("a study's workers", rows, options.json)


if __name__ == "__main__":
    main()
