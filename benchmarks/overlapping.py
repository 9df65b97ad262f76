"""Pruning where classes overlap: LUTs of XGBoost (20 rounds, depth 4) and of random forests (20 trees, depth 6).

    python benchmarks/overlapping.py --data DIR --json FILE
    python benchmarks/overlapping.py --data DIR --large --json FILE

DIR holds NAME.csv.gz with a header and the last column `target`; text columns are replaced by codes. `five` is made
here: five overlapping classes. 70 % of at most 6,000 rows train the model and are given to the passes; for `within 1 %`
every fifth of them is held out, and where nothing is within it, decisions are kept. The test rows only measure.
Features are scaled to whole numbers of 8 bits. LUTs are those of yosys for xcup, the decision inside, without
registers. same: share of rows with the model's decision, on training and on test rows. mended: rows that added trees
put right.

--large: 300 trees of depth 4 and 25,000 rows instead, for the time of the passes, in seconds and in processor seconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import shuffled, whole_numbers
from designs import decided, share
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from tools import arguments, show
from xgboost import XGBClassifier

import forestc
from forestc.commands.synth import synth
from forestc.errors import CheckError
from forestc.passes import passes_from

SETS = ("spambase", "diabetic_retinopathy", "pima", "magic04", "adult", "dry_bean", "five")
MOST_ROWS = 6_000
LARGE, LARGE_ROWS, LARGE_TREES = ("adult", "unsw_nb15_82k", "five"), 25_000, 300
MODELS: dict[str, Any] = {
    "XGBoost 20 x 4": XGBClassifier(n_estimators=20, max_depth=4, random_state=0, n_jobs=1),
    "forest 20 x 6": RandomForestClassifier(20, max_depth=6, random_state=0),
}
SHARED = "simplify,share-thresholds,quantize"
DESIGNS = {
    "-O1": f"{SHARED},simplify",
    "decisions kept": f"{SHARED},prune-splits{{keep=decisions}},simplify",
    "within 1 %": f"{SHARED},prune-splits{{keep=accuracy-or-decisions,tolerance=0.01}},simplify",
}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", metavar="NAMES")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--designs", default=";".join(DESIGNS), metavar="NAMES", help="separated by semicolons")
    options = parser.parse_args()
    start = time.perf_counter()
    names = options.only.split(",") if options.only else LARGE if options.large else SETS
    if options.large:
        show("300 trees and 25,000 rows", [row for name in names for row in timed(name, options.data)], options.json)
        return
    rows = [
        row
        for name in names
        for kind in MODELS
        for row in measured(name, kind, options.data, options.designs.split(";"))
    ]
    show("overlapping", rows, options.json, s=time.perf_counter() - start)


def measured(name: str, kind: str, data: Path, designs: list[str]) -> list[dict[str, Any]]:
    """A line for each design of a model."""
    X, y = five() if name == "five" else shuffled(name, data, blank=True)
    X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    X, X_test = whole_numbers(X, X_test, 8)
    model = MODELS[kind].fit(X, y)
    source = forestc.load(model)
    own, own_test = decided(source, X), decided(source, X_test)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for design in designs:
            held = {"held_out": (X[4::5], y[4::5])} if design == "within 1 %" else {}
            fit = np.arange(len(X)) % 5 != 4 if held else np.ones(len(X), dtype=np.bool_)
            start = time.perf_counter()
            try:
                done = forestc.compile(
                    model, X[fit], Path(folder) / "out", label=y[fit], name="m", targets=["verilog"],
                    passes=passes_from(DESIGNS[design]), **held,
                )  # fmt: skip
            except CheckError as error:
                print(f"{name}, {kind}, {design}: {error}", flush=True)
                continue
            seconds = done.figures["seconds"]["passes"]
            lut = int(synth(done.design, "xcup", native=True)["lut"])
            pruned = next((step.report for step in done.steps if "mended" in step.report), {})
            answers, answers_test = decided(done.design.forest, X), decided(done.design.forest, X_test)
            row = {
                "set": name, "model": kind, "design": design, "rows": len(X), "LUT": lut,
                "to_O1": round(lut / rows[0]["LUT"], 3) if rows else 1.0,
                "same_on_train_%": share(own, answers), "same_on_test_%": share(own_test, answers_test),
                "test_%": share(answers_test, y_test),
                "leaf_bits": pruned.get("leaf_bits") or "-", "mended": pruned.get("mended", "-"),
                "passes_s": round(seconds, 1),
            }  # fmt: skip
            rows.append(row)
            output = ", ".join(f"{key} {value}" for key, value in row.items())
            print(f"{output} ({time.perf_counter() - start:.0f} s)", flush=True)
    return rows


def timed(name: str, data: Path) -> Iterator[dict[str, Any]]:
    """A line for each way to prune a large model."""
    X, y = five(2 * LARGE_ROWS) if name == "five" else shuffled(name, data, blank=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=LARGE_ROWS, random_state=0, stratify=y)
    X, X_test = whole_numbers(X, X_test, 8)
    classes = int(y.max()) + 1
    outputs = classes if classes > 2 else 1
    rounds = LARGE_TREES // outputs
    model = XGBClassifier(n_estimators=rounds, max_depth=4, random_state=0, n_jobs=1).fit(X, y)
    own_test = decided(forestc.load(model), X_test)
    truth = y_test[1::2]
    for design in list(DESIGNS)[1:]:
        held = {"held_out": (X_test[::2], y_test[::2])} if design == "within 1 %" else {}
        with tempfile.TemporaryDirectory() as folder:
            spent = time.process_time()
            done = forestc.compile(
                model, X, Path(folder) / "out", label=y, name="m", targets=["verilog"],
                passes=passes_from(DESIGNS[design]), **held,
            )  # fmt: skip
            spent = time.process_time() - spent
            answers = decided(done.design.forest, X_test)
            splits = next(step.report["splits"] for step in done.steps if "splits" in step.report)
            row = {
                "set": name, "design": design, "rows": len(X), "features": X.shape[1], "trees": rounds * outputs,
                "splits": "{} -> {}".format(*splits),
                "model_test_%": share(own_test[1::2], truth), "test_%": share(answers[1::2], truth),
                "same_on_test_%": share(own_test[1::2], answers[1::2]),
                "passes_s": round(done.figures["seconds"]["passes"], 1), "compile_CPU_s": round(spent, 1),
            }  # fmt: skip
            print(row, flush=True)
            yield row


def five(rows: int = 4000) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Five overlapping classes."""
    X, y = make_classification(rows, 16, n_informative=8, n_classes=5, class_sep=1.0, flip_y=0.03, random_state=0)
    return X, y


if __name__ == "__main__":
    main()
