"""What noise on the rows does for leaves that are fitted together, `quantize{fit=true,leaf_bits=1}`: test accuracy.

    python benchmarks/leaf_fitting.py --data DIR --json FILE

XGBoost of 30 rounds and depth 4 on seven sets, and CatBoost of 50 symmetric trees, each with leaves of ten values, on
MNIST with pixels of 4 bits. A quarter of the rows (of MNIST the official 10,000) are test rows, which choose nothing. A
fifth of the others is held out for the pass, with a tolerance that refuses nothing.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
from data import mnist, read
from designs import right
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from tools import arguments, show

import forestc
from forestc.passes import passes_from
from forestc.passes.pipeline import run_passes
from forestc.rows.batches import ArrayRows

TITLE = "fitted leaves"
SETS = ("bc", "digits", "spambase", "magic04", "pima", "dry_bean", "winequality_red", "mnist")
NOISE = (0.0, 0.02, 0.1)
FITTED = "simplify,quantize{{fit=true,leaf_bits=1,tolerance=inf,noise={noise}}}"


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", metavar="NAMES")
    options = parser.parse_args()
    lines = []
    for name in options.only.split(",") if options.only else SETS:
        lines.append(fitted(name, options.data))
        print(lines[-1], flush=True)
    show(TITLE, lines, options.json)


def fitted(name: str, data: Path) -> dict[str, Any]:
    """A line: accuracy of the model, and with fitted leaves, on rows that chose nothing and on those fitted to."""
    start = time.perf_counter()
    X, y, Xt, yt = split(name, data)
    own = trained(name, X, y)
    model = forestc.load(own)
    fit, held, y_fit, y_held = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    line: dict[str, Any] = {"data": name, "rows": len(fit), "model_test_%": right(model, Xt, yt)}
    line["model_fit_%"] = right(model, fit, y_fit)
    for noise in NOISE:
        passes = passes_from(FITTED.format(noise=noise))
        forest, _ = run_passes(model, passes, ArrayRows(fit, y_fit), ArrayRows(held, y_held))
        line |= {f"test_%_{noise}": right(forest, Xt, yt), f"fit_%_{noise}": right(forest, fit, y_fit)}
    return line | {"s": time.perf_counter() - start}


def split(name: str, data: Path) -> tuple[NDArray[Any], ...]:
    """Training rows and labels, test rows and labels."""
    if name == "mnist":
        return mnist(data)
    X, y = read(name, data)
    X, Xt, y, yt = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    return X, y, Xt, yt


def trained(name: str, X: NDArray[Any], y: NDArray[Any]) -> Any:
    if name == "mnist":
        from catboost import CatBoostClassifier

        settings = {
            "iterations": 50,
            "depth": 6,
            "learning_rate": 0.5,
            "border_count": 15,
            "loss_function": "MultiClass",
        }
        return CatBoostClassifier(**settings, thread_count=2, verbose=0, allow_writing_files=False).fit(X, y)
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=30, max_depth=4, learning_rate=0.3, n_jobs=2, random_state=0).fit(X, y)


if __name__ == "__main__":
    main()
