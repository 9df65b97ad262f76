"""What prune-exact removes from random forests and boosting without changing any decision, and how far proofs go.

    python benchmarks/exact_pruning.py --data DIR --json FILE

Data sets of scikit-learn and of DIR (NAME.csv.gz, the last column `target`). At most 1,500 rows train each model:
random forests of 10, 30 and 100 trees of depth 6, and XGBoost of as many rounds of depth 4 (digits: 10 alone). First
`simplify,quantize,simplify` makes the integer forest (its formats keep the decision of every training row), then
prune-exact prunes it, and `simplify` removes what is redundant then. Trees that are a constant are not counted. LUTs
are forestc's estimate for an UltraScale+ before synthesis, decision included; designs that are too large for it have a
dash. `undecided`: changes that one proof's share of the effort neither proved nor refuted. `--passes` compares other
options.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import shuffled
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from tools import arguments, show
from xgboost import XGBClassifier

from forestc import load
from forestc.costs.estimate import estimates
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.passes import passes_from
from forestc.passes.pipeline import run_passes
from forestc.rows.batches import ArrayRows

SETS = (
    "iris", "wine", "breast_cancer", "pima", "heart_statlog", "magic04", "nursery", "mushroom", "votes", "digits"
)  # fmt: skip
SIZES = (10, 30, 100)
LARGE = ("digits",)
MOST_ROWS, MOST_SPLITS = 1500, 4000
PASSES = "prune-exact"


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", default=",".join(SETS), metavar="NAMES")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), metavar="TREES")
    parser.add_argument("--passes", default=PASSES, metavar="PASSES", help="what stands between quantize and simplify")
    options = parser.parse_args()
    start = time.perf_counter()
    rows = []
    for name in options.only.split(","):
        X, y = shuffled(name, options.data, MOST_ROWS)
        for kind in ("forest", "boosting"):
            for size in map(int, options.sizes.split(",")):
                if name in LARGE and size > SIZES[0]:
                    continue
                rows.append(measured(name, kind, size, X, y, options.passes))
                print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    show("exact pruning", rows, options.json, means=means(rows), s=time.perf_counter() - start)


def measured(
    name: str, kind: str, size: int, X: NDArray[np.float64], y: NDArray[np.int64], passes: str
) -> dict[str, Any]:
    """One model before and after."""
    model: Any = (
        RandomForestClassifier(size, max_depth=6, random_state=0)
        if kind == "forest"
        else XGBClassifier(n_estimators=size, max_depth=4, random_state=0, n_jobs=1)
    )
    source, given = load(model.fit(X, y)), ArrayRows(X)
    before, _ = run_passes(source, passes_from("simplify,quantize,simplify"), given)
    start = time.perf_counter()
    after, steps = run_passes(before, passes_from(f"quantize,{passes},simplify")[1:], given)
    seconds = time.perf_counter() - start
    output = steps[0].report["proof"]
    assert steps[0].change == 0 or "margin" in passes  # of the decisions of the training rows
    sizes = {
        "trees": lambda forest: sum(tree.size > 1 for tree in forest.trees),  # the others are constants
        "nodes": lambda forest: forest.n_nodes,
        "comparators": lambda forest: len(forest.conditions.comparators),
        "LUT": luts,
    }
    row: dict[str, Any] = {"set": name, "model": kind, "size": size}
    for key, of in sizes.items():
        row |= {key: of(before), f"{key}_after": of(after)}
    return row | {
        "leaf_bits": steps[0].report["leaf_bits"][1],
        **{key: output[key] for key in ("changes", "refuted", "undecided", "not_examined", "proofs", "state")},
        "changed_%": round(100 * steps[0].change, 1),
        "s": round(seconds, 1),
    }


def luts(forest: Forest) -> int | str:
    """The LUTs of the forest as logic."""
    if sum(len(tree.inner) for tree in forest.trees) > MOST_SPLITS:
        return "-"
    figures = estimates(lower(forest, LoweringOptions(0)))
    return next((int(figure["lut"]) for figure in figures if figure["device"] == "xcup"), "-")


def means(rows: list[dict[str, Any]]) -> str:
    """The geometric means of sizes after over before, for each kind and size of model."""
    output = []
    for kind, size in dict.fromkeys((row["model"], row["size"]) for row in rows):
        own = [row for row in rows if (row["model"], row["size"]) == (kind, size)]
        ratios = []
        for key in ("trees", "nodes", "comparators", "LUT"):
            both = [(row[f"{key}_after"], row[key]) for row in own if row[key] != "-"]
            if both:
                ratios.append(f"{key} {np.exp(np.mean([np.log(max(1, a) / max(1, b)) for a, b in both])):.2f}")
        proved = sum(row["state"] == "proved" for row in own)
        output.append(f"{kind} {size}: {', '.join(ratios)}, all decided for {proved} of {len(own)}")
    return "; ".join(output)


if __name__ == "__main__":
    main()
