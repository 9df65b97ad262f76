"""Counts wrong results of every kind of model in every engine, on 100,000 rows on and beside its thresholds.

The models are those of the tests, on scikit-learn's bundled data. The column `library` counts rows whose leaf numbers,
scores or classes differ from the library's. The columns of the engines count vectors on which the engine and the
quantized forest differ. All must be 0.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Case, Ledger, Steps
from tools import arguments

import forestc
from forestc.forest.text import print_forest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from models import KINDS, full_model, rows_near_thresholds

ENGINES = ("netlist", "verilator", "c", "icarus")
TITLE = "differences; library: rows, engines: vectors"


def margins(kind, model, rows):
    """Returns the library's scores, and its leaf numbers (rows, trees)."""
    if kind.startswith("xgboost"):
        import xgboost

        data = xgboost.DMatrix(rows)
        booster = model.get_booster()
        return booster.predict(data, output_margin=True), booster.predict(data, pred_leaf=True)
    if hasattr(model, "decision_function"):
        return model.decision_function(rows), model.apply(rows)
    return (model.predict_proba if hasattr(model, "classes_") else model.predict)(rows), model.apply(rows)


def against_library(kind: str, model: Any, rows: np.ndarray) -> int:
    """Returns how many rows have leaf numbers, scores or a decision that differ from the library's."""
    evaluation = forestc.evaluate(forestc.load(model), rows)
    scores, leaves = margins(kind, model, rows)
    wrong = (evaluation.leaves != leaves.reshape(len(rows), -1)).any(axis=1)
    wrong |= (evaluation.scores != scores.reshape(len(rows), -1)).any(axis=1)
    if len(evaluation.index) and evaluation.index[0] >= 0:
        wrong |= evaluation.decision != model.predict(rows)
    return int(wrong.sum())


def engines(source: Any, train: Any, labels: Any, rows: np.ndarray, options: Any) -> dict[str, Any]:
    """Returns the wrong vectors of each engine. Icarus gets few of the rows, since it is a thousand times slower."""
    with tempfile.TemporaryDirectory() as folder:
        done = forestc.compile(source, train, f"{folder}/out", label=labels, latency=3, outputs="scores", name="m")
        more: dict[str, Any] = {"require": True, **({"random_rows": 2} if options.small else {})}
        fast = forestc.check(done.design, rows, engines=list(ENGINES[:3]), **more)
        slow = forestc.check(done.design, rows[: options.icarus_rows], engines=["icarus"], **more)
    return {
        "vectors": sum(fast.vectors.values()),
        **{name: result.differences for name, result in (fast.engines | slow.engines).items()},
        "icarus_vectors": sum(slow.vectors.values()),
    }


def measured(options: Any, case: Case) -> Steps:
    model, X, y = full_model(case["model"])
    source = forestc.load(model)
    near = rows_near_thresholds(source, X, options.rows)
    yield [print_forest(source), X, y, near], None
    yield {"library": against_library(case["model"], model, near), **engines(model, X, y, near, options)}


def main() -> None:
    parser = arguments(__doc__, "json", "only")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--icarus-rows", type=int, default=5_000)
    options = parser.parse_args()
    if options.small:
        options.only, options.rows, options.icarus_rows = "extra-tree-b", 2, 2
    ledger = Ledger(TITLE, options, ("verilator", "iverilog", "xgboost", "scikit-learn"), ("rows", "icarus_rows"))
    cases = [{"model": kind} for kind in sorted(KINDS) if options.only in kind]
    ledger.fill(cases, measured, options)
    rows = ledger.rows
    found = {name: sum(row.get(name, 0) for row in rows) for name in ("library", *ENGINES)}
    counts = {name: sum(row[name] for row in rows) for name in ("vectors", "icarus_vectors")}
    ledger.show(summary=[{"models": len(rows), **counts, **found}])
    if any(found.values()):
        sys.exit(3)


if __name__ == "__main__":
    main()
