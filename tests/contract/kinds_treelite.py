"""Makes treelite models, imported from other libraries and by hand, with treelite's reference predictor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm
import numpy as np
import treelite
import xgboost
from contract.kind import Trained
from contract.kinds_sklearn import BINARY, CLASS_TARGETS, MULTI, REGRESSION, TARGETS, with_missing
from contract.kinds_xgboost import CLASSES, CODES, SMALL, TYPES
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)


def of(make: Callable[[], Any], X: Any, decide: str = "none", **more: Any) -> Callable[[], Trained]:
    """Returns a function that makes a model with its answers. decide: none, half (value above 0.5), most (argmax) or
    each (argmax of every target)."""

    def train() -> Trained:
        model = make()
        widths = np.asarray(model.get_header_accessor().get_field("num_class")).tolist()

        def flat(rows: Any, margin: bool) -> Any:
            found = treelite.gtil.predict(model, rows, pred_margin=margin, nthread=1)
            found = found.reshape(len(rows), len(widths), -1)
            return np.concatenate([found[:, target, :width] for target, width in enumerate(widths)], axis=1)

        def decision(rows: Any) -> Any:
            values = flat(rows, False)
            match decide:
                case "half":
                    return (values > 0.5).astype(int)
                case "most":
                    return values.argmax(axis=1)
                case "each":
                    ends = np.cumsum(widths)
                    targets = zip(ends - widths, ends, strict=True)
                    return np.stack([values[:, a:b].argmax(axis=1) for a, b in targets], axis=1)
            return values

        return Trained(
            model,
            X,
            decision,
            lambda rows: flat(rows, True),
            lambda rows: treelite.gtil.predict_leaf(model, rows, nthread=1).astype(np.int64),
            **{"dtype": np.dtype(str(model.input_type)), "value_ulps": 2, **more},
        )

    return train


def _xgboost(params: Any, data: Any, types: Any = None) -> Any:
    matrix = {"feature_types": types, "enable_categorical": types is not None}
    return treelite.frontend.from_xgboost(xgboost.train({**SMALL, **params}, xgboost.DMatrix(*data, **matrix), 6))


def _lightgbm(params: Any, data: Any, **more: Any) -> Any:
    train = lightgbm.Dataset(*data, **more)
    return treelite.frontend.from_lightgbm(lightgbm.train({"verbose": -1, "num_leaves": 12, **params}, train, 6))


def _sklearn(model: Any, data: Any) -> Any:
    return treelite.sklearn.import_model(model.fit(*data))


def _by_hand() -> Any:
    """Builds a tree with every comparison."""
    make = treelite.model_builder
    metadata = make.Metadata(
        num_feature=3, task_type="kRegressor", average_tree_output=False, num_target=1, num_class=[1],
        leaf_vector_shape=(1, 1),
    )  # fmt: skip
    builder = make.ModelBuilder(
        threshold_type="float32", leaf_output_type="float32", metadata=metadata, base_scores=[0.25],
        tree_annotation=make.TreeAnnotation(num_tree=1, target_id=[0], class_id=[0]),
        postprocessor=make.PostProcessorFunc(name="signed_square"),
    )  # fmt: skip

    def leaf(key: int, value: float) -> None:
        builder.start_node(key)
        builder.leaf(value)
        builder.end_node()

    builder.start_tree()
    for node, (column, way) in enumerate(zip([0, 1, 2, 0, 1], [">", ">=", "==", "<=", "<"], strict=True)):
        builder.start_node(2 * node)
        builder.numerical_test(
            feature_id=column, threshold=0.5 * node, default_left=node % 2 == 0, opname=way,
            left_child_key=2 * node + 1, right_child_key=2 * node + 2,
        )  # fmt: skip
        builder.end_node()
        leaf(2 * node + 1, float(node) - 2)
    leaf(10, 7.5)
    builder.end_tree()
    return builder.commit()


FOREST = RandomForestClassifier(10, random_state=0)
COUNTS = (REGRESSION[0], REGRESSION[1] / 99)
CODED = {"objective": "multiclass", "num_class": 3, "min_data_per_group": 1}
COLUMNS = {"categorical_feature": [0, 1, 2]}
# Each name has the function that makes the model, its arguments, and how it decides.
MADE: dict[str, tuple[Any, ...]] = {
    "xgboost": (_xgboost, {"objective": "binary:logistic"}, with_missing(BINARY), "half"),
    "xgboost-multi": (_xgboost, {"objective": "multi:softprob", "num_class": 10}, MULTI, "most"),
    "xgboost-hinge": (_xgboost, {"objective": "binary:hinge"}, BINARY, "half"),
    "xgboost-poisson": (_xgboost, {"objective": "count:poisson"}, COUNTS, "none"),
    "xgboost-categories": (_xgboost, {"max_cat_to_onehot": 1}, CODES, "none", {"types": TYPES}),
    "lightgbm": (_lightgbm, {"objective": "binary", "sigmoid": 2.0}, BINARY, "half"),
    "lightgbm-ova": (_lightgbm, {"objective": "multiclassova", "num_class": 3}, CLASSES, "most"),
    "lightgbm-categories": (_lightgbm, CODED, CLASSES, "most", COLUMNS),
    "sklearn-multi": (_sklearn, FOREST, MULTI, "most"),
    "sklearn-binary": (_sklearn, FOREST, BINARY, "most"),
    "sklearn-boosting": (_sklearn, GradientBoostingClassifier(n_estimators=6), BINARY, "half"),
    "sklearn-hist": (_sklearn, HistGradientBoostingClassifier(max_iter=6), BINARY, "half"),
    "sklearn-regression": (_sklearn, ExtraTreesRegressor(10, random_state=0), REGRESSION, "none"),
    "sklearn-targets": (_sklearn, RandomForestRegressor(10, random_state=0), TARGETS, "none"),
    "sklearn-class-targets": (_sklearn, FOREST, CLASS_TARGETS, "each"),
    "sklearn-isolation": (_sklearn, IsolationForest(n_estimators=10, random_state=0), BINARY, "none"),
}
KINDS: dict[str, Callable[[], Trained]] = {
    f"treelite-{name}": of(partial(make, model, data, **(more[0] if more else {})), data[0], decide)
    for name, (make, model, data, decide, *more) in MADE.items()
} | {"treelite-by-hand": of(_by_hand, np.random.default_rng(0).normal(size=(50, 3)))}
FILES: dict[str, Callable[[], bytes]] = {
    "treelite": lambda: _sklearn(RandomForestClassifier(1, max_depth=2, random_state=0), BINARY).serialize_bytes()
}
