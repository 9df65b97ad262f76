"""Counts differences: every kind of model in every engine, on 100,000 rows on and beside its thresholds.

The models are those of the tests (scikit-learn's bundled data); `--peers DIR` adds each DIR/NAME.json with the rows of
DIR/NAME.npz beside it (X_train, y_train, X_test, y_test). Columns: rows compared with the library itself (leaf numbers,
scores, classes), and vectors that differ from the quantized forest in each engine. All must be 0.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from data import shared
from tools import arguments, show

import forestc

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from models import KINDS, rows_near_thresholds, whole


def margins(kind, model, rows):
    """The library's scores, and its leaf numbers (rows, trees)."""
    if kind.startswith("xgboost"):
        import xgboost

        data = xgboost.DMatrix(rows)
        booster = model.get_booster()
        return booster.predict(data, output_margin=True), booster.predict(data, pred_leaf=True)
    if hasattr(model, "decision_function"):
        return model.decision_function(rows), model.apply(rows)
    return (model.predict_proba if hasattr(model, "classes_") else model.predict)(rows), model.apply(rows)


def against_library(kind: str, model: Any, rows: np.ndarray) -> int:
    """The number of rows whose leaf numbers, scores or decision differ from the library's."""
    evaluation = forestc.evaluate(forestc.load(model), rows)
    scores, leaves = margins(kind, model, rows)
    wrong = (evaluation.leaves != leaves.reshape(len(rows), -1)).any(axis=1)
    wrong |= (evaluation.scores != scores.reshape(len(rows), -1)).any(axis=1)
    if len(evaluation.index) and evaluation.index[0] >= 0:
        wrong |= evaluation.decision != model.predict(rows)
    return int(wrong.sum())


def engines(source: Any, train: Any, labels: Any, rows: np.ndarray, folder: Path, few: int) -> dict[str, Any]:
    """The differences of each engine; Icarus, a thousand times slower than the others, gets the first `few` rows."""
    done = forestc.compile(source, train, folder / "out", label=labels, latency=3, outputs="scores", name="m")
    fast = forestc.check(done.design, rows, engines=["netlist", "verilator", "c"], require=True)
    slow = forestc.check(done.design, rows[:few], engines=["icarus"], require=True)
    return {
        "vectors": sum(fast.vectors.values()),
        **{name: result.differences for name, result in (fast.engines | slow.engines).items()},
        "icarus_vectors": sum(slow.vectors.values()),
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--icarus-rows", type=int, default=5_000)
    parser.add_argument("--peers", type=Path, help="a folder of NAME.json with NAME.npz")
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for kind in sorted(k for k in KINDS if options.only in k):
        model, X, y = whole(kind)
        near = rows_near_thresholds(forestc.load(model), X, options.rows)
        with tempfile.TemporaryDirectory() as scratch:
            differences = engines(model, X, y, near, Path(scratch), options.icarus_rows)
        rows.append({"model": kind, "library": against_library(kind, model, near), **differences})
        print(rows[-1], flush=True)
    for path in sorted(options.peers.glob("*.json")) if options.peers else ():
        if not path.with_suffix(".npz").is_file():
            continue
        X, y, X_test, y_test = shared(path.parent, path.stem)
        near = np.concatenate([X, X_test, rows_near_thresholds(forestc.load(path), X, options.rows)])
        with tempfile.TemporaryDirectory() as scratch:
            differences = engines(path, X, y, near, Path(scratch), options.icarus_rows)
        differences["test_accuracy"] = float((forestc.evaluate(forestc.load(path), X_test).decision == y_test).mean())
        rows.append({"model": f"peer {path.stem}", "library": "-", **differences})
        print(rows[-1], flush=True)
    show(
        "differences; library: rows, engines: vectors",
        [{**dict.fromkeys(rows[-1], "-"), **row} for row in rows],
        options.json,
    )
    if any(
        row[name] for row in rows for name in ("library", "netlist", "verilator", "c", "icarus") if row[name] != "-"
    ):
        sys.exit(3)


if __name__ == "__main__":
    main()
