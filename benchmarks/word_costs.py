"""What `quantize{cost}` and `share-thresholds` are worth in C: flash, instructions and accuracy on test rows.

    python benchmarks/word_costs.py --data DIR --json FILE

A forest of 20 trees of depth 6 and an XGBoost model of 20 rounds of depth 4 for each data set, trained on 70 % of the
rows, stratified, at most 6,000 of them. All passes see the training rows alone, and at most 1 % of their decisions may
change (`change=0.01`, the default of `quantize`). `plain`: simplify, share-thresholds, quantize, simplify, which is
-O1. `unshared`: without share-thresholds. `narrow`: with quantize{cost=flash}. The least of the layouts `nodes` and
`calls` in flash, and of `branches` and `calls` in instructions, words in, -Os. `agree`: with the model, test rows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
import xgboost
from data import read
from designs import share, with_header
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from tools import arguments, save, show

import forestc
from forestc.backends.c import COptions
from forestc.rows.encode import evaluate

CPUS = {"cortex-m0plus": "M0+", "cortex-m4f": "M4F"}
LAYOUTS = ("nodes", "calls", "branches")
SMALL, FAST = ("nodes", "calls"), ("branches", "calls")
PASSES = {
    "plain": "simplify,share-thresholds,quantize,simplify",
    "unshared": "simplify,quantize,simplify",
    "narrow": "simplify,share-thresholds,quantize{cost=flash},simplify",
}
BUNDLED = ("bc", "digits")
FILES = ("spambase", "magic04", "pima", "winequality_white", "dry_bean")
MOST = 6000
TITLE = "words and thresholds in C"


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, metavar="DIR")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in (*BUNDLED, *(FILES if options.data else ())):
        X, y = read(name, options.data)
        X, Xt, y, yt = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
        X, y = X[:MOST], y[:MOST]
        forest = RandomForestClassifier(20, max_depth=6, random_state=0)
        boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=4, random_state=0)
        for kind, model in (("forest", forest), ("boosted", boosted)):
            rows += of_model(f"{name} {kind}", model.fit(X, y), X, Xt, yt)
            save(TITLE, rows, options.json)
    show(TITLE, rows, options.json, ratios=ratios(rows))


def of_model(name: str, model: Any, X: NDArray[Any], Xt: NDArray[Any], yt: NDArray[Any]) -> list[dict[str, Any]]:
    """One row for each list of passes."""
    rows, said = [], model.predict(Xt)
    for label, passes in PASSES.items():
        with tempfile.TemporaryDirectory() as scratch:
            design = forestc.compile(model, X, Path(scratch) / "d", passes=passes, targets="c").design
            index = evaluate(design.forest, Xt).index
            row: dict[str, Any] = {"model": name, "passes": label, "conditions": len(design.forest.conditions)}
            row |= {"accuracy %": share(index, yt), "agree %": share(index, said)}
            for cpu, title in CPUS.items():
                measured = {}
                for layout in LAYOUTS:
                    header = with_header(design, COptions(c_layout=layout), Path(scratch))
                    measured[layout] = forestc.measure(header, cpu, Xt[:200], entries=["predict"])
                row[f"{title} flash"] = min(measured[small]["flash"] for small in SMALL)
                row[f"{title} instructions"] = min(measured[fast]["instructions"]["mean"] for fast in FAST)
        rows.append(row)
    return rows


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figures to those of `plain`: least, geometric mean and largest over the models."""
    figures = [f"{title} {figure}" for title in CPUS.values() for figure in ("flash", "instructions")]
    plain = {row["model"]: row for row in rows if row["passes"] == "plain"}
    table = []
    for passes in list(PASSES)[1:]:
        row: dict[str, Any] = {"passes": passes}
        for figure in figures:
            shares = np.array([r[figure] / plain[r["model"]][figure] for r in rows if r["passes"] == passes])
            row[figure] = f"{shares.min():.2f} / {np.exp(np.log(shares).mean()):.2f} / {shares.max():.2f}"
        lost = [plain[r["model"]]["accuracy %"] - r["accuracy %"] for r in rows if r["passes"] == passes]
        table.append({**row, "accuracy % lost, mean": float(np.mean(lost)), "most": float(np.max(lost))})
    return table


if __name__ == "__main__":
    main()
