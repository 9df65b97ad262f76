"""Measures the levels on large models: seconds of a compilation beside those of -O1, and LUTs.

    python benchmarks/level_times.py --data DIR --json FILE        # DIR/mnist as MNIST is distributed

The models are trained on generated rows with noise: 100 boosted trees of depth 6 on 10,000 rows x 50 and on 100,000 x
28, 312 trees of 26 classes on 4,200 rows, and a random forest of 20 full-depth trees on 30,000 rows x 60, which becomes
C. With --data, 300 trees on MNIST (pixels of one bit) are compiled three times: without rows, with the 50,000 training
rows, and at -O2 with 10,000 held-out rows and a tolerance of 0.003. `lost` is the loss of accuracy on the 10,000 test
rows of MNIST. The first run of each model is repeated, so that compiling functions is not timed. LUTs are estimates for
an UltraScale+.
"""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from designs import estimated_luts
from ledger import Case, Ledger, Steps
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from tools import arguments
from xgboost import XGBClassifier

import forestc
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows

Rows = tuple[Any, Any]


def generated(rows: int, columns: int, classes: int, **more: Any) -> Rows:
    X, y = make_classification(rows, columns, n_classes=classes, random_state=0, **more)
    return X.astype(np.float32), y


def boosted(trees: int, depth: int, **options: Any) -> Callable[[], Any]:
    return lambda: XGBClassifier(n_estimators=trees, max_depth=depth, n_jobs=2, random_state=0, **options)


# CASES holds, by name: rows, model, levels, targets.
CASES: dict[str, tuple[Callable[[], Rows], Callable[[], Any], tuple[int, ...], str]] = {
    "100 trees, 10,000 x 50": (
        lambda: generated(10_000, 50, 2, n_informative=12, n_redundant=8, flip_y=0.1), boosted(100, 6), (1, 2, 3),
        "verilog",
    ),
    "100 trees, 100,000 x 28": (
        lambda: generated(100_000, 28, 2, n_informative=10, n_redundant=6, flip_y=0.15), boosted(100, 6), (1, 2, 3),
        "verilog",
    ),
    "26 classes, 312 trees": (
        lambda: generated(4200, 16, 26, n_informative=14, n_redundant=2, n_clusters_per_class=1, class_sep=2.0),
        boosted(12, 5), (1, 2, 3), "verilog",
    ),
    "random forest, C": (
        lambda: generated(30_000, 60, 3, n_informative=20, flip_y=0.3),
        lambda: RandomForestClassifier(20, random_state=0, n_jobs=2), (1,), "c",
    ),
}  # fmt: skip


def main() -> None:
    options = arguments(__doc__, "json", "data", "only")
    given = options.parse_args()
    names = ["26 classes, 312 trees"] if given.small else given.only.split(";") if given.only else list(CASES)
    ledger = Ledger("what the levels take on large models", given, ("numba", "xgboost", "scikit-learn"))
    ledger.fill(({"model": name} for name in names), measured, given.small)
    if given.data is not None and not given.small and not given.only:
        ledger.fill([{"model": "MNIST, 300 trees"}], mnist, given.data / "mnist")
    ledger.show()


def measured(small: bool, case: Case) -> Steps:
    rows_of, model_of, levels, targets = CASES[case["model"]]
    X, y = rows_of()
    X, y = (X[:300], y[:300] % 3) if small else (X, y)
    yield [X, y], None
    runs = [(f"-O{level}", {"level": level, "label": y}, X) for level in levels]
    yield compiled(model_of().fit(X, y), runs, targets)[0]


def compiled(model: Any, runs: list[tuple[str, dict[str, Any], Any]], targets: str) -> tuple[list[dict[str, Any]], Any]:
    """Compiles a model once for each run; the first run comes twice, so that functions are compiled before they are
    timed. Returns a row for each run, and the forest of the last.

    runs: level in words, options, and rows or None.
    """
    rows: list[dict[str, Any]] = []
    for words, options, X in [runs[0], *runs]:
        with tempfile.TemporaryDirectory() as folder:
            wall, processor = time.perf_counter(), time.process_time()
            done = forestc.compile(model, X, Path(folder) / "out", name="m", targets=targets, **options)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
        luts = estimated_luts(done.figures) if targets == "verilog" else None
        row = {"level": words, "s": round(wall, 1), "processor_s": round(processor, 1)}
        rows.append(row | {"passes_s": round(done.figures["seconds"]["passes"], 1), "LUTs": luts})
    return [row | {"s_to_first": round(row["s"] / rows[1]["s"], 1)} for row in rows[1:]], done.design.forest


def mnist(folder: Path, _: Case) -> Steps:
    """Measures 300 trees of MNIST, loaded from a file."""

    def images(name: str) -> Any:
        return (np.frombuffer(gzip.open(folder / name).read(), np.uint8, offset=16).reshape(-1, 784) >> 7) * 1.0

    def labels(name: str) -> Any:
        return np.frombuffer(gzip.open(folder / name).read(), np.uint8, offset=8).astype(int)

    X, y = images("train-images-idx3-ubyte.gz"), labels("train-labels-idx1-ubyte.gz")
    fit, held = (X[:50_000], y[:50_000]), (X[50_000:], y[50_000:])
    yield [X, y], None
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "mnist.json"
        boosted(30, 5, learning_rate=0.8)().fit(*fit).save_model(path)
        runs: list[tuple[str, dict[str, Any], Any]] = [
            ("-O0, no rows", {}, None), ("-O1", {"level": 1, "label": fit[1]}, fit[0]),
            ("-O2", {"level": 2, "label": fit[1], "held_out": held, "tolerance": 0.003}, fit[0]),
        ]  # fmt: skip
        scorer = Scorer(
            forestc.load(path),
            ArrayRows(images("t10k-images-idx3-ubyte.gz"), labels("t10k-labels-idx1-ubyte.gz")),
        )
        rows, smallest = compiled(path, runs, "verilog")
        loss = scorer.of(smallest)
    rows[-1] |= {"accuracy": round(loss.accuracy, 4), "lost": round(loss.lost, 4), "error": round(loss.error, 4)}
    yield rows


if __name__ == "__main__":
    main()
