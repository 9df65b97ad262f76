"""Accuracy against flash: small LightGBM models, compiled, at the smallest sizes for which ToaD reports (0.5 to 4 kB).

    python benchmarks/firmware_boosted.py --data DIR --json FILE

Herrmann et al., "Boosted Trees on a Diet" (arXiv 2510.26557), grow LightGBM models for memories of 0.5 to 32 kB by a
training of their own, which is not repeated here: these are LightGBM's models (2 to 40 trees of 2 to 8 leaves,
learning rate 0.2), compiled at -O1 and -O3 from the training rows in the layout `nodes`, and measured on a
Cortex-M0+ (code and tables, words in). 60 % of the rows, stratified, train; of what fits each size the model with the
best accuracy on 20 % is taken, the smallest of equal ones; its accuracy on the last 20 %, which chose nothing, is
reported with its standard error. `floats`: bytes of the same model at 14 a node, as float32 thresholds and leaves,
16-bit features and two pointers of 16 bits.
"""

from __future__ import annotations

import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import lightgbm
import numpy as np
from data import read
from designs import with_header
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from tools import arguments, save, show

import forestc
from forestc.backends.c import COptions
from forestc.rows.encode import evaluate

CPU = "cortex-m0plus"
SIZES = (512, 1024, 2048, 4096)
TREES, LEAVES, RATE = (2, 5, 10, 20, 40), (2, 4, 8), 0.2
MOST_LEAVES = 2600  # of a model, all classes together
BUNDLED = ("bc", "digits")
FILES = ("magic04", "spambase", "mushroom", "winequality_white", "adult")
FLOAT_NODE = 14


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--only", metavar="NAMES")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else (*BUNDLED, *(FILES if options.data else ()))
    rows: list[dict[str, Any]] = []
    for name in names:
        X, y = read(name, options.data)
        rows += of_data(name, np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1])
        save("LightGBM models by flash", rows, options.json)
    show("LightGBM models by flash", rows, options.json)


def of_data(name: str, X: NDArray[np.float64], y: NDArray[np.int64]) -> list[dict[str, Any]]:
    """A row for each size."""
    start = time.perf_counter()
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    X_choose, X_test, y_choose, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
    if len(X_train) > 6000:
        X_train, y_train = X_train[:6000], y_train[:6000]
    designs = []
    with tempfile.TemporaryDirectory() as scratch:
        for trees, leaves in product(TREES, LEAVES):
            if trees * leaves * (len(np.unique(y)) if y.max() > 1 else 1) > MOST_LEAVES:
                continue
            model = lightgbm.LGBMClassifier(
                n_estimators=trees, num_leaves=leaves, learning_rate=RATE, verbose=-1, n_jobs=1, random_state=0
            ).fit(X_train, y_train)
            for level in (1, 3):
                made = forestc.compile(
                    model, X_train, Path(scratch) / "d", label=y_train, level=level, targets="c", name="m"
                ).design
                small = with_header(made, COptions(c_layout="nodes"), Path(scratch) / "header")
                output = forestc.measure(small, CPU, X_test, entries=["predict"], most=50)
                assert output["differences"] == 0, output["first_difference"]
                right = [
                    evaluate(made.forest, some).index == of for some, of in ((X_choose, y_choose), (X_test, y_test))
                ]
                nodes = model.booster_.trees_to_dataframe()["node_index"].size
                designs.append(
                    {"flash": output["flash"], "choose": right[0].mean(), "test": right[1].mean(), "rows": len(y_test),
                     "trees": trees, "leaves": leaves, "level": f"-O{level}",
                     "floats": nodes * FLOAT_NODE, "model": model.score(X_test, y_test),
                     "instructions": output["instructions"]["mean"]}
                )  # fmt: skip
            print(f"{name}: {trees} trees of {leaves} leaves, {time.perf_counter() - start:.0f} s", flush=True)
    rows = []
    for size in SIZES:
        if not (fitting := [design for design in designs if design["flash"] <= size]):
            rows.append({"data": name, "size": size, "test_%": "none fits"})
            continue
        best = max(fitting, key=lambda design: (design["choose"], -design["flash"]))
        error = float(np.sqrt(best["test"] * (1 - best["test"]) / best["rows"]))
        rows.append(
            {"data": name, "size": size, "test_%": f"{100 * best['test']:.1f} +- {100 * error:.1f}",
             "model_%": round(100 * best["model"], 1), "flash": best["flash"], "floats": best["floats"],
             "instructions": round(best["instructions"]), "trees": best["trees"], "leaves": best["leaves"],
             "level": best["level"]}
        )  # fmt: skip
    keys = dict.fromkeys(key for row in rows for key in row)
    return [{key: row.get(key, "") for key in keys} for row in rows]


if __name__ == "__main__":
    main()
