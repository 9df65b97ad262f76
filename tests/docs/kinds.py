"""Compiles ten kinds of models at each level and checks each against its forest. Ends with 1 if any differs.

This runs in an environment without the tests' own packages: see test_environments.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as make
import treelite
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import forestc

X, y = load_iris(return_X_y=True)
REAL = X[:, 0] - 2 * X[:, 1]


def onnx_stump() -> onnx.ModelProto:
    """Makes an ONNX model with one split of the third measurement."""
    node = make.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[2, 0, 0], nodes_values=[2.5, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 3.0],
    )  # fmt: skip
    ends = [
        make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, width]) for name, width in (("x", 4), ("y", 1))
    ]
    graph = make.make_graph([node], "stump", ends[:1], ends[1:])
    opsets = [make.make_opsetid("", 18), make.make_opsetid("ai.onnx.ml", 3)]
    return make.make_model(graph, opset_imports=opsets, ir_version=9)


def models() -> dict[str, tuple[object, np.ndarray | None]]:
    """Returns each kind of model with its labels; None if it has none."""
    forest = RandomForestClassifier(6, max_depth=4, random_state=0).fit(X, y)
    small = {"random_state": 0, "n_estimators": 5}
    return {
        "tree": (DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y), y),
        "random forest": (forest, y),
        "random forest, regression": (RandomForestRegressor(max_depth=4, **small).fit(X, REAL), REAL),
        "extra trees": (ExtraTreesClassifier(max_depth=4, **small).fit(X, y), y),
        "gradient boosting": (GradientBoostingClassifier(max_depth=2, **small).fit(X, y), y),
        "histograms": (HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, y), y),
        "isolation forest": (IsolationForest(n_estimators=5, random_state=0).fit(X), None),
        "XGBoost": (XGBClassifier(max_depth=3, **small).fit(X, y), y),
        "LightGBM": (LGBMClassifier(verbose=-1, **small).fit(X, y), y),
        "LightGBM, regression": (LGBMRegressor(verbose=-1, **small).fit(X, REAL), REAL),
        "CatBoost": (CatBoostClassifier(iterations=5, depth=3, random_seed=0, logging_level="Silent").fit(X, y), y),
        "treelite": (treelite.sklearn.import_model(forest), y),
        "ONNX": (onnx_stump(), None),
    }  # fmt: skip


def main() -> None:
    wrong = []
    for name, (model, labels) in models().items():
        for level in range(4) if labels is not None else range(2):
            out = Path("kinds") / f"{name}-{level}"
            done = forestc.compile(model, X, out, label=labels, level=level, name="model")
            result = forestc.check(done.design, X, label=labels, random_rows=200)
            ran = [engine for engine, each in result.engines.items() if each.differences is not None]
            print(f"{name}, -O{level}: {'ok' if result.ok else 'WRONG'} ({', '.join(ran)})", flush=True)
            if not result.ok or not {"verilator", "c"} <= set(ran):
                wrong.append(f"{name}-{level}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
