"""Trains small models of every library with many ties, and compares decisions of -O0 with the library's.

Models of one to six trees are trained on few rows of small integers, of two to four classes; some of XGBoost and
LightGBM then get leaves that are integers or halves. The passes of -O0 run on each without rows. The library and the
integer forest decide every row of the grid of the model's thresholds: on each threshold and beside it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.forest.ir import Forest
from forestc.passes import PASSES
from forestc.passes.base import parse_passes
from forestc.passes.pipeline import run_passes
from forestc.rows.encode import evaluate
from forestc.rows.ranges import Ranges
from forestc.search.levels import EXACT

MOST_ROWS = 20_000
Predict = Callable[[NDArray[np.float64]], NDArray[np.int64]]


def tried(name: str, seed: int) -> dict[str, Any] | None:
    """Runs a model. Returns how many rows the evaluator decides unlike the library, how many -O0 does, and whether
    quantize promises that every decision stays. Returns None if the model's rows have a single class."""
    made = MAKERS[name](np.random.default_rng(seed), seed)
    if made is None:
        return None
    model, predict = made
    source = forestc.load(model)
    forest, steps = run_passes(source, parse_passes(EXACT, PASSES), Ranges())
    step = next(step for step in steps if "score_bound" in step.report)
    X = grid(source)
    expected = predict(X)
    return {
        "unlike_the_reference": int((evaluate(source, X).index != expected).sum()),
        "changed_rows": int((evaluate(forest, X).index != expected).sum()),
        "every_decision": int(step.report["decisions"] == "all"),
    }


def grid(source: Forest) -> NDArray[np.float64]:
    """Returns rows on and beside every threshold, in all combinations; if there are too many, random ones."""
    values = []
    for index in range(len(source.features)):
        thresholds = source.conditions.thresholds(index).astype(np.float64)
        below = np.nextafter(thresholds.astype(np.float32), np.float32(-np.inf)).astype(np.float64)
        values.append(np.unique(np.concatenate([below, thresholds])) if len(thresholds) else np.zeros(1))
    if math.prod(map(len, values)) <= MOST_ROWS:
        table = np.array(list(itertools.product(*values)), dtype=np.float64)
    else:
        random = np.random.default_rng(0)
        table = np.stack([random.choice(own, MOST_ROWS) for own in values], axis=1)
    rows = np.zeros((len(table), source.columns))
    rows[:, [feature.column for feature in source.features]] = table
    return rows.astype(np.float32).astype(np.float64)


def rows_of(random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
    """Draws rows of integers and their classes; returns them with the number of classes."""
    classes = int(random.choice([2, 2, 3, 4]))
    count = int(random.integers(12, 80))
    X = np.round(random.normal(size=(count, int(random.integers(1, 4)))) * 2)
    y = np.unique(random.integers(0, classes, count), return_inverse=True)[1].astype(np.int64)
    return X, y, int(y.max()) + 1


def sklearn(make: Callable[..., Any]) -> Callable[[np.random.Generator, int], tuple[Any, Predict] | None]:
    def made(random: np.random.Generator, seed: int) -> tuple[Any, Predict] | None:
        X, y, classes = rows_of(random)
        if classes < 2:
            return None
        model = make(int(random.integers(1, 7)), int(random.integers(1, 4)), seed).fit(X, y)
        return model, lambda rows: np.asarray(model.predict(rows), dtype=np.int64)

    return made


def halves(random: np.random.Generator, values: Any) -> NDArray[np.float64]:
    return random.integers(-3, 4, np.shape(values)) / 2.0


def xgb(leaves: str) -> Callable[[np.random.Generator, int], tuple[Any, Predict] | None]:
    def made(random: np.random.Generator, seed: int) -> tuple[Any, Predict] | None:
        X, y, classes = rows_of(random)
        if classes < 2:
            return None
        objective = (
            {"objective": "binary:logistic"} if classes == 2 else {"objective": "multi:softprob", "num_class": classes}
        )
        options = {"max_depth": int(random.integers(1, 4)), "seed": seed, "base_score": 0.5, **objective}
        booster = xgboost.train(options, xgboost.DMatrix(X, y), int(random.integers(1, 4)))
        if leaves == "halves":
            output = json.loads(booster.save_raw("json"))
            for tree in output["learner"]["gradient_booster"]["model"]["trees"]:
                own = halves(random, tree["base_weights"])
                inner = np.array(tree["left_children"]) != -1
                tree["base_weights"] = own.tolist()
                tree["split_conditions"] = np.where(inner, tree["split_conditions"], own).tolist()
            booster = xgboost.Booster(model_file=bytearray(json.dumps(output).encode()))

        def predict(rows: NDArray[np.float64]) -> NDArray[np.int64]:
            values = booster.predict(xgboost.DMatrix(rows))
            return np.asarray(values > 0.5 if classes == 2 else values.argmax(axis=1), dtype=np.int64)

        return booster, predict

    return made


def lgb(leaves: str) -> Callable[[np.random.Generator, int], tuple[Any, Predict] | None]:
    def made(random: np.random.Generator, seed: int) -> tuple[Any, Predict] | None:
        X, y, classes = rows_of(random)
        if classes < 2:
            return None
        objective = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
        options = {
            "num_leaves": int(random.integers(2, 6)), "min_data_in_leaf": 2, "seed": seed, "verbose": -1,
            "num_threads": 1, **objective,
        }  # fmt: skip
        booster = lightgbm.train(options, lightgbm.Dataset(X, y), int(random.integers(1, 4)))
        if leaves == "halves":
            lines = booster.model_to_string().split("\n")
            for place, line in enumerate(lines):
                if line.startswith("leaf_value="):
                    values = halves(random, line.removeprefix("leaf_value=").split())
                    lines[place] = "leaf_value=" + " ".join(map(str, values))
            booster = lightgbm.Booster(
                model_str="\n".join(line for line in lines if not line.startswith("tree_sizes="))
            )

        def predict(rows: NDArray[np.float64]) -> NDArray[np.int64]:
            values = np.asarray(booster.predict(rows))
            return np.asarray(values > 0.5 if classes == 2 else values.argmax(axis=1), dtype=np.int64)

        return booster, predict

    return made


def onnx(random: np.random.Generator, seed: int) -> tuple[Any, Predict] | None:
    import onnxruntime
    from skl2onnx import to_onnx

    X, y, classes = rows_of(random)
    if classes < 2:
        return None
    model = RandomForestClassifier(int(random.integers(1, 7)), max_depth=int(random.integers(1, 4)), random_state=seed)
    graph = to_onnx(model.fit(X, y), X[:1].astype(np.float32))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1  # Several threads add trees in an order that depends on the number of rows.
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings)
    name = session.get_inputs()[0].name
    return graph, lambda rows: np.asarray(session.run(None, {name: rows.astype(np.float32)})[0], dtype=np.int64)


MAKERS: dict[str, Callable[[np.random.Generator, int], tuple[Any, Predict] | None]] = {
    "sklearn tree": sklearn(lambda trees, depth, seed: DecisionTreeClassifier(max_depth=depth + 2, random_state=seed)),
    "sklearn forest": sklearn(
        lambda trees, depth, seed: RandomForestClassifier(trees, max_depth=depth, random_state=seed)
    ),
    "sklearn extra trees": sklearn(
        lambda trees, depth, seed: ExtraTreesClassifier(trees, max_depth=depth, random_state=seed)
    ),
    "sklearn boosting": sklearn(
        lambda trees, depth, seed: GradientBoostingClassifier(
            n_estimators=min(trees, 3), max_depth=min(depth, 2), learning_rate=0.5, random_state=seed
        )
    ),
    "sklearn bagging": sklearn(
        lambda trees, depth, seed: BaggingClassifier(DecisionTreeClassifier(max_depth=depth), trees, random_state=seed)
    ),
    "sklearn adaboost": sklearn(
        lambda trees, depth, seed: AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=1), n_estimators=trees, random_state=seed
        )
    ),
    "xgboost": xgb("own"),
    "xgboost, leaves halves": xgb("halves"),
    "lightgbm": lgb("own"),
    "lightgbm, leaves halves": lgb("halves"),
    "onnx forest": onnx,
}
