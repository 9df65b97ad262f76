"""treelite models imported from other libraries and built by hand, against treelite's reference predictor."""

from __future__ import annotations

from collections.abc import Callable
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


def of(make: Callable[[], Any], X: Any, decide: str = "none", file: bool = False, **more: Any) -> Callable[[], Trained]:
    """decide: none, half (value above 0.5), most (argmax), each (argmax of every target)."""

    def train() -> Trained:
        model = make()
        source = model
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
            source,
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
    """A tree of every comparison."""
    builder = treelite.model_builder.ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=treelite.model_builder.Metadata(
            num_feature=3,
            task_type="kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=treelite.model_builder.TreeAnnotation(num_tree=1, target_id=[0], class_id=[0]),
        postprocessor=treelite.model_builder.PostProcessorFunc(name="signed_square"),
        base_scores=[0.25],
    )
    builder.start_tree()
    for node, (column, way) in enumerate(zip([0, 1, 2, 0, 1], [">", ">=", "==", "<=", "<"], strict=True)):
        builder.start_node(2 * node)
        builder.numerical_test(
            feature_id=column,
            threshold=0.5 * node,
            default_left=node % 2 == 0,
            opname=way,
            left_child_key=2 * node + 1,
            right_child_key=2 * node + 2,
        )
        builder.end_node()
        builder.start_node(2 * node + 1)
        builder.leaf(float(node) - 2)
        builder.end_node()
    builder.start_node(10)
    builder.leaf(7.5)
    builder.end_node()
    builder.end_tree()
    return builder.commit()


FORESTS = {"n_estimators": 10, "random_state": 0}
KINDS: dict[str, Callable[[], Trained]] = {
    "treelite-xgboost": of(lambda: _xgboost({"objective": "binary:logistic"}, with_missing(BINARY)), BINARY[0], "half"),
    "treelite-xgboost-multi": of(
        lambda: _xgboost({"objective": "multi:softprob", "num_class": 10}, MULTI), MULTI[0], "most"
    ),
    "treelite-xgboost-hinge": of(lambda: _xgboost({"objective": "binary:hinge"}, BINARY), BINARY[0], "half"),
    "treelite-xgboost-poisson": of(
        lambda: _xgboost({"objective": "count:poisson"}, (REGRESSION[0], REGRESSION[1] / 99)), REGRESSION[0]
    ),
    "treelite-xgboost-categories": of(lambda: _xgboost({"max_cat_to_onehot": 1}, CODES, TYPES), CODES[0]),
    "treelite-lightgbm": of(lambda: _lightgbm({"objective": "binary", "sigmoid": 2.0}, BINARY), BINARY[0], "half"),
    "treelite-lightgbm-ova": of(
        lambda: _lightgbm({"objective": "multiclassova", "num_class": 3}, CLASSES), CLASSES[0], "most"
    ),
    "treelite-lightgbm-categories": of(
        lambda: _lightgbm(
            {"objective": "multiclass", "num_class": 3, "min_data_per_group": 1}, CLASSES, categorical_feature=[0, 1, 2]
        ),
        CLASSES[0],
        "most",
    ),
    "treelite-sklearn-multi": of(lambda: _sklearn(RandomForestClassifier(**FORESTS), MULTI), MULTI[0], "most"),
    "treelite-sklearn-binary": of(lambda: _sklearn(RandomForestClassifier(**FORESTS), BINARY), BINARY[0], "most"),
    "treelite-sklearn-boosting": of(
        lambda: _sklearn(GradientBoostingClassifier(n_estimators=6), BINARY), BINARY[0], "half"
    ),
    "treelite-sklearn-hist": of(
        lambda: _sklearn(HistGradientBoostingClassifier(max_iter=6), BINARY), BINARY[0], "half"
    ),
    "treelite-sklearn-regression": of(lambda: _sklearn(ExtraTreesRegressor(**FORESTS), REGRESSION), REGRESSION[0]),
    "treelite-sklearn-targets": of(lambda: _sklearn(RandomForestRegressor(**FORESTS), TARGETS), TARGETS[0]),
    "treelite-sklearn-class-targets": of(
        lambda: _sklearn(RandomForestClassifier(**FORESTS), CLASS_TARGETS), MULTI[0], "each"
    ),
    "treelite-sklearn-isolation": of(
        lambda: treelite.sklearn.import_model(IsolationForest(n_estimators=10, random_state=0).fit(BINARY[0])),
        BINARY[0],
    ),
    "treelite-by-hand": of(_by_hand, np.random.default_rng(0).normal(size=(50, 3))),
}
