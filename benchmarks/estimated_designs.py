"""The designs on which estimates are fitted and tested: what levels, single passes and searches make of twenty sets.

Each set has the same recipes, with trees, depths, leaf bits and latencies drawn for each. Designs are the same in each
run, and those of a set do not depend on the other sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data import read
from numpy.typing import NDArray
from sklearn import datasets, ensemble
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier, XGBRegressor

import forestc
from forestc.costs.devices import DEFAULT_FAMILY, XCUP, Family
from forestc.costs.estimate import Mapped
from forestc.errors import ForestcError
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import Netlist

BUNDLED = ("breast_cancer", "digits", "wine", "diabetes")
MADE: dict[str, dict[str, Any]] = {
    "made_41": {"n_features": 41, "n_informative": 12, "random_state": 41},
    "made_5": {"n_features": 16, "n_informative": 10, "n_classes": 5, "flip_y": 0.05, "random_state": 5},
}
FILES = (
    "pima", "diabetic_retinopathy", "spambase", "magic04", "dry_bean", "transfusion", "ilpd", "heart_cleveland",
    "parkinsons", "winequality_red", "airfoil", "breast_w", "bupa", "hill_valley_606",
)  # fmt: skip
VALUES = ("diabetes", "airfoil")
MOST_FIT, MOST_HELD = 800, 600
MOST_CELLS = 800  # LUTs of a cover
SHARED = "simplify,share-thresholds,quantize"
REGROWN = "leaf_bits={few_bits},price={price},tolerance=inf"
# passes of a level, or their list, with the numbers that are drawn
RECIPES: dict[str, int | str] = {
    "O0": 0, "O1": 1, "O2": 2, "O3": 3, "plain": "simplify,quantize{{leaf_bits={leaf_bits},change=1}},simplify",
    "shared": "simplify,share-thresholds,quantize{{leaf_bits={leaf_bits},change=1}},simplify",
    "fitted": "simplify,share-thresholds,quantize{{fit=true,leaf_bits={few_bits},tolerance=inf}},simplify",
    "splits": SHARED + ",prune-splits{{price={price},leaf_bits={few_bits},tolerance=inf}},simplify",
    "trees": SHARED + ",prune-trees{{tolerance=0.1,copies=2}},simplify",
    "few regrown": SHARED + ",regrow-trees{{trees={few_trees}," + REGROWN + ",depth={depth}}},simplify",
    "regrown": SHARED + ",regrow-trees{{trees={some_trees}," + REGROWN + "}},simplify",
    "rules": SHARED + ",extract-rules{{complexity={complexity},comparators=40,seconds=20,tolerance=inf}},simplify",
}  # fmt: skip
LEFT_OUT = 3  # of each set one recipe in this many, in turn


@dataclass(frozen=True)
class Made:
    """A design. data: the name of its set. recipe: of `RECIPES`. own: whether it is lowered for the family on which it
    is measured, else for any."""

    data: str
    recipe: str
    latency: int
    own: bool
    forest: Forest

    @property
    def name(self) -> str:
        return f"{self.data}, {self.recipe}"

    def netlist(self, family: Family) -> Netlist:
        delays = family.delays if self.own else DEFAULT_FAMILY
        return lower(self.forest, LoweringOptions(latency=self.latency, family=delays))


def rows_of(name: str, folder: Path | None) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Rows without missing values and their classes or values, in an order drawn once."""
    X, y = datasets.make_classification(1500, **MADE[name]) if name in MADE else read(name, folder)
    whole = ~np.isnan(np.asarray(X, np.float64)).any(axis=1)
    X, y = X[whole], y[whole]
    order = np.random.default_rng(0).permutation(len(X))[: MOST_FIT + MOST_HELD]
    return np.asarray(X, np.float64)[order], np.asarray(y)[order]


def model_of(kind: str, trees: int, depth: int, values: bool) -> Any:
    """An untrained model; values: of a regression."""
    match kind:
        case "xgboost":
            return (XGBRegressor if values else XGBClassifier)(
                n_estimators=trees, max_depth=depth, random_state=0, n_jobs=1
            )
        case "boosting":
            boosting = ensemble.GradientBoostingRegressor if values else ensemble.GradientBoostingClassifier
            return boosting(n_estimators=trees, max_depth=depth, random_state=0)
        case "extra":
            extra = ensemble.ExtraTreesRegressor if values else ensemble.ExtraTreesClassifier
            return extra(n_estimators=trees, max_depth=depth, random_state=0)
        case "tree" if not values:
            return DecisionTreeClassifier(max_depth=depth, random_state=0)
        case _:
            forest = ensemble.RandomForestRegressor if values else ensemble.RandomForestClassifier
            return forest(n_estimators=trees, max_depth=depth, random_state=0)


def designs(folder: Path | None) -> Iterator[Made]:
    """The designs of the bundled sets and, if a folder of NAME.csv.gz is given, of those in it."""
    for place, name in enumerate((*BUNDLED, *MADE, *(FILES if folder else ()))):
        X, y = rows_of(name, folder)
        for number, recipe in enumerate(RECIPES):
            made = design_of(name, recipe, X, y) if (place + number) % LEFT_OUT else None
            if made is not None:
                yield made


def design_of(name: str, recipe: str, X: NDArray[Any], y: NDArray[Any]) -> Made | None:
    """The design of a recipe; None if its passes refuse the model, or if it is large."""
    fit = max(len(X) // 2, min(len(X) * 2 // 3, MOST_FIT))
    random = np.random.default_rng(list(f"{name} {recipe}".encode()))
    values = name in VALUES
    scores = 1 if values or len(np.unique(y)) < 3 else len(np.unique(y))
    kind = str(random.choice(["xgboost", "xgboost", "forest", "extra", "boosting", "tree"]))
    outputs = scores if kind in ("xgboost", "boosting") else 1
    trees = max(1, int(random.choice([4, 6, 10, 20, 30])) // outputs)
    depth = int(random.integers(2, 6 if trees * outputs > 10 else 8))
    drawn = {
        "leaf_bits": int(random.integers(1, 9)), "few_bits": int(random.integers(1, 4)),
        "few_trees": max(1, int(random.choice([1, 2, 3, 4, 6, 8])) // (1 if scores == 1 else 2)),
        "some_trees": int(random.choice([6, 9, 12])) // (1 if scores == 1 else 3), "depth": int(random.integers(4, 7)),
        "price": float(random.choice([3.0, 1.0, 0.3])), "complexity": int(random.choice([8, 16, 30])),
    }  # fmt: skip
    latency = int(random.choice([0, 0, 0, 1, 2, 3, 5]))
    model = model_of(kind, trees, depth, values).fit(X[:fit], y[:fit])
    passes = RECIPES[recipe]
    options: dict[str, Any] = {"level": passes} if isinstance(passes, int) else {"passes": passes.format(**drawn)}
    try:
        forest = forestc.quantize(model, X[:fit], y[:fit], held_out=(X[fit:], y[fit:]), **options)
    except ForestcError:
        return None
    made = Made(name, recipe, latency, bool(random.integers(0, 2)), forest)
    small = forest.n_nodes > 1 and Mapped.of(made.netlist(XCUP), XCUP).lut_features()["lut"] <= MOST_CELLS
    return made if small else None
