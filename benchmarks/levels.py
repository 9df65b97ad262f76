"""What each level makes of random forests and boosting: LUTs, bytes of C, agreement and accuracy on test rows.

    python benchmarks/levels.py --data DIR --json FILE

Ten data sets, of scikit-learn and of DIR (NAME.csv.gz, the last column `target`). Half of the rows, at most 1,500,
train the model and are given to `compile`; a quarter, at most 1,500, is held out for -O3 alone; the test rows, at most
5,000, choose nothing. LUTs are forestc's estimate for an UltraScale+ before synthesis (latency 0, the decision
included); bytes are text and constants of `arm-none-eabi-gcc -Os -mcpu=cortex-m0plus` for raw float rows in, class or
scores out. Accuracy of a regression is R squared, and its agreement the share of rows off by at most 1 % of the
range.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes

import gzip
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tools import arguments, show
from xgboost import XGBClassifier, XGBRegressor

import forestc
from forestc.passes.levels import LEVELS

BUNDLED = {
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}
REGRESSION = ("diabetes", "airfoil", "winequality_white")
SETS = (
    "breast_cancer", "digits", "pima", "diabetic_retinopathy", "spambase", "magic04", "dry_bean", *REGRESSION
)  # fmt: skip
MOST_FIT, MOST_HELD, MOST_TEST = 1500, 1500, 5000
COMPILER = "arm-none-eabi-gcc"


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", default=",".join(SETS), metavar="NAMES")
    options = parser.parse_args()
    start = time.perf_counter()
    cases = [(name, kind, options.data) for name in options.only.split(",") for kind in ("forest", "boosting")]
    rows = []
    with ProcessPoolExecutor(2) as pool:
        for made in pool.map(measured, cases):
            rows += made
            told = "; ".join(f"{row['level']} {row['LUT']:,} LUT, {row['test_%']:.1f} %" for row in made)
            print(f"{made[0]['set']}, {made[0]['model']}: {told}", flush=True)
    show("levels", rows, options.json, means=means(rows), s=time.perf_counter() - start)


def read(name: str, data: Path) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Rows of numbers and their labels: classes 0, 1, ... or values."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        with gzip.open(data / f"{name}.csv.gz", "rt") as file:
            table = np.array([line.rstrip("\n").split(",") for line in file][1:])
        X, y = table[:, :-1].astype(np.float64), table[:, -1]
        y = y.astype(np.float64) if name in REGRESSION else np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def learner(name: str, kind: str, classes: int) -> Any:
    if kind == "forest":
        made = RandomForestRegressor if name in REGRESSION else RandomForestClassifier
        return made(20, max_depth=6, random_state=0)
    made = XGBRegressor if name in REGRESSION else XGBClassifier
    return made(n_estimators=8 if classes > 2 else 20, max_depth=4, random_state=0, n_jobs=1)


def measured(case: tuple[str, str, Path]) -> list[dict[str, Any]]:
    """One model at all levels."""
    name, kind, data = case
    X, y = read(name, data)
    half, quarter = len(X) // 2, len(X) // 4
    fit, held = slice(0, min(half, MOST_FIT)), slice(half, half + min(quarter, MOST_HELD))
    test = slice(half + quarter, half + quarter + MOST_TEST)
    model = learner(name, kind, 0 if name in REGRESSION else len(np.unique(y))).fit(X[fit], y[fit])
    own = 100 * float(model.score(X[test], y[test]))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for level in range(len(LEVELS)):
            start = time.perf_counter()
            done = forestc.compile(
                model, X[fit], Path(folder) / "out", label=y[fit], level=level, name="m",
                held_out=(X[held], y[held]) if level == 3 else None,
            )  # fmt: skip
            seconds = time.perf_counter() - start
            tested = forestc.check(done.design, X[test], label=y[test], engines=["netlist"], random_rows=0)
            assert tested.ok and tested.agreement.compiled is not None
            rows.append(
                {
                    "set": name, "model": kind, "rows": fit.stop, "level": f"O{level}",
                    "comparators": done.figures["distinct_conditions"],
                    "LUT": next(e["lut"] for e in done.figures["estimate"] if e["device"] == "xcup"),
                    "C_bytes": c_bytes(done.design.path("c"), Path(folder), name in REGRESSION),
                    "agreement_%": 100 * tested.agreement.agreement,
                    "test_%": 100 * tested.agreement.compiled, "model_%": own, "s": round(seconds, 1),
                }
            )  # fmt: skip
    return rows


def c_bytes(header: Path, folder: Path, values: bool) -> int:
    """Text and constants of raw rows to the class, or the scores; the source's length where the compiler is missing."""
    text = header.read_text()
    if shutil.which(COMPILER) is None:
        return len(text)
    kind, of = ("scores", r"void") if values else ("predict", r"\w+")
    found = re.search(rf"static inline ({of}) m_{kind}\(const (\w+) x\[\w+\](?:, (\w+) scores\[\w+\])?\)", text)
    assert found is not None
    result, word, score = found.groups()
    extra = f", {score} scores[]" if values else ""
    give = f"m_{kind}(x{', scores' * values})"
    (folder / "m.c").write_text(
        f'#include "{header}"\n{result} run(const float *row{extra})\n'
        f"{{ {word} x[M_INPUTS]; m_quantise(row, x); {'' if values else 'return '}{give}; }}\n"
    )
    flags = ["-std=c99", "-Os", "-mcpu=cortex-m0plus", "-mthumb", "-c", "m.c", "-o", "m.o"]
    subprocess.run([COMPILER, *flags], cwd=folder, check=True)
    told = subprocess.run(["arm-none-eabi-size", "m.o"], cwd=folder, check=True, capture_output=True, text=True)
    return int(told.stdout.splitlines()[1].split()[0])


def means(rows: list[dict[str, Any]]) -> str:
    """For each kind and level the geometric means of sizes over those of O0, and the mean change of accuracy."""
    told = []
    for kind, level, chosen, first in _levels(rows):
        luts, size = (
            float(np.exp(np.mean([np.log(row[key] / base[key]) for row, base in zip(chosen, first, strict=True)])))
            for key in ("LUT", "C_bytes")
        )
        change = float(np.mean([row["test_%"] - row["model_%"] for row in chosen]))
        told.append(f"{kind} {level}: LUTs {luts:.2f}, bytes {size:.2f}, accuracy {change:+.2f}")
    return "; ".join(told)


def _levels(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, list[dict[str, Any]], list[dict[str, Any]]]]:
    for kind in ("forest", "boosting"):
        of_kind = {level: [row for row in rows if (row["model"], row["level"]) == (kind, level)]
                   for level in (f"O{n}" for n in range(len(LEVELS)))}  # fmt: skip
        for level, chosen in of_kind.items():
            yield kind, level, chosen, of_kind["O0"]


if __name__ == "__main__":
    main()
