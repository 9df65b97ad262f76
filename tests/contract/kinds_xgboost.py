"""Trains XGBoost's boosters and objectives, live and in files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import xgboost
from contract.kind import Trained
from contract.kinds_sklearn import BINARY, LABELS, MULTI, REGRESSION, TARGETS, with_missing

SMALL = {"max_depth": 4, "eta": 0.3, "seed": 0, "nthread": 1}
POSITIVE = (REGRESSION[0], REGRESSION[1] / 100)


def _categories() -> Any:
    """Makes rows of codes and of numbers; returns them with the types of the columns."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 14, (800, 3)), random.normal(size=(800, 2))]).astype(np.float64)
    X[random.random(X.shape) < 0.04] = np.nan
    y = np.isin(X[:, 0], [1, 4, 7, 12]) * 2.0 + np.isin(X[:, 1], [0, 5, 9]) * X[:, 3] + (X[:, 2] % 3 == 1)
    return X, np.nan_to_num(y), ["c", "c", "c", "q", "q"]


def booster(params: Any, data: Any, rounds: int = 10, types: Any = None, label: Any = None, **more: Any) -> Any:
    """Returns a function that trains a Booster. Its scores are margins, its leaves its own; binary and multi-class
    decisions follow the usual rule."""

    def train() -> Trained:
        X, y = data
        matrix = {"feature_types": types, "enable_categorical": types is not None}
        D = xgboost.DMatrix(X, None if params.get("objective", "").startswith("survival:aft") else y, **matrix)
        for name, values in (label or {}).items():
            D.set_info(**{name: values})
        fitted = xgboost.train({**SMALL, **params}, D, rounds)

        def asked(rows: Any) -> Any:
            return xgboost.DMatrix(rows, **matrix)

        def decision(rows: Any) -> Any:
            found = fitted.predict(asked(rows))
            match params.get("objective", ""):
                case "binary:logistic":
                    return (found > 0.5).astype(int)
                case "multi:softprob":
                    return np.argmax(found, axis=1)
            return found

        return Trained(
            fitted,
            X,
            decision,
            lambda rows: fitted.predict(asked(rows), output_margin=True),
            lambda rows: fitted.predict(asked(rows), pred_leaf=True),
            **{"infinite": False, "value_ulps": 0, **more},
        )

    return train


def estimator(model: Any, data: Any, leaves: bool = True, scores: bool = True, **more: Any) -> Callable[[], Trained]:
    """Returns a function that fits a scikit-learn-style estimator."""

    def train() -> Trained:
        X, y = data
        fitted = model.fit(X, y)
        return Trained(
            fitted,
            X,
            fitted.predict,
            (lambda rows: fitted.predict(rows, output_margin=True)) if scores else None,
            fitted.apply if leaves else None,
            **{"infinite": False, **more},
        )

    return train


def _early() -> Any:
    X, y = REGRESSION
    model = xgboost.XGBRegressor(
        n_estimators=200, max_depth=3, learning_rate=0.5, early_stopping_rounds=3, num_parallel_tree=2
    )
    fitted = model.fit(X[:300], y[:300], eval_set=[(X[300:], y[300:])], verbose=False)
    assert fitted.best_iteration + 1 < fitted.get_booster().num_boosted_rounds()
    return Trained(
        fitted, X, fitted.predict, lambda rows: fitted.predict(rows, output_margin=True), None, infinite=False
    )


X_CODES, Y_CODES, TYPES = _categories()
CODES = (X_CODES, Y_CODES)
CLASSES = (X_CODES, (Y_CODES > 1).astype(int) + (Y_CODES > 2))
KINDS: dict[str, Callable[[], Trained]] = {
    "xgboost-dart": booster({"booster": "dart", "rate_drop": 0.5}, REGRESSION),
    "xgboost-dart-multi": booster(
        {"booster": "dart", "rate_drop": 0.3, "objective": "multi:softprob", "num_class": 10}, MULTI, 4
    ),
    "xgboost-dart-estimator": estimator(
        xgboost.XGBRegressor(booster="dart", rate_drop=0.5, n_estimators=10), REGRESSION
    ),
    "xgboost-forest": booster({"num_parallel_tree": 5, "subsample": 0.5, "objective": "binary:logistic"}, BINARY, 3),
    "xgboost-forest-classifier": estimator(xgboost.XGBRFClassifier(n_estimators=10, max_depth=5), MULTI),
    "xgboost-forest-regressor": estimator(xgboost.XGBRFRegressor(n_estimators=10, max_depth=5), REGRESSION),
    "xgboost-best-iteration": _early,
    "xgboost-missing": booster({"objective": "binary:logistic"}, with_missing(BINARY)),
    "xgboost-marker": estimator(xgboost.XGBRegressor(n_estimators=10, missing=0.0), (MULTI[0], MULTI[1])),
    "xgboost-marker-inside": estimator(xgboost.XGBRegressor(n_estimators=10, missing=7), (MULTI[0], MULTI[1])),
    "xgboost-classifier": estimator(xgboost.XGBClassifier(n_estimators=5), MULTI),
    "xgboost-targets": estimator(xgboost.XGBRegressor(n_estimators=6, max_depth=3), TARGETS),
    "xgboost-vector-leaves": estimator(
        xgboost.XGBRegressor(n_estimators=6, max_depth=3, multi_strategy="multi_output_tree", tree_method="hist"),
        TARGETS,
    ),
    "xgboost-vector-classes": estimator(
        xgboost.XGBClassifier(n_estimators=4, max_depth=3, multi_strategy="multi_output_tree", tree_method="hist"),
        MULTI,
    ),
    "xgboost-labels": estimator(xgboost.XGBClassifier(n_estimators=6, max_depth=3), LABELS),
    "xgboost-vector-labels": estimator(
        xgboost.XGBClassifier(n_estimators=6, max_depth=3, multi_strategy="multi_output_tree", tree_method="hist"),
        LABELS,
    ),
    "xgboost-categories": booster({"max_cat_to_onehot": 1}, CODES, types=TYPES),
    "xgboost-one-hot": booster({"max_cat_to_onehot": 100, "max_depth": 6}, CODES, types=TYPES),
    "xgboost-categories-multi": booster({"objective": "multi:softprob", "num_class": 3}, CLASSES, types=TYPES),
    "xgboost-quantiles": booster({"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}, REGRESSION),
    "xgboost-ranking": booster(
        {"objective": "rank:ndcg"}, (REGRESSION[0], (REGRESSION[1] // 100).clip(0, 4)), label={"group": [142, 300]}
    ),
    "xgboost-aft": booster(
        {"objective": "survival:aft"},
        POSITIVE,
        label={"label_lower_bound": POSITIVE[1], "label_upper_bound": POSITIVE[1] + 1},
        value_ulps=1,
    ),
}
for objective in (
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "count:poisson",
    "reg:gamma",
    "reg:tweedie",
    "survival:cox",
):
    KINDS[f"xgboost-{objective}"] = booster({"objective": objective}, POSITIVE, value_ulps=1)
for objective in ("binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic", "rank:pairwise"):
    KINDS[f"xgboost-{objective}"] = booster({"objective": objective}, BINARY, value_ulps=2)  # the C library's expf
    if not objective.startswith(("rank", "reg")):
        KINDS[f"xgboost-estimator-{objective}"] = estimator(
            xgboost.XGBClassifier(objective=objective, n_estimators=6), BINARY
        )
for objective in ("multi:softmax", "multi:softprob"):
    KINDS[f"xgboost-{objective}"] = booster({"objective": objective, "num_class": 10}, MULTI, 4)


def _saved(form: str) -> bytes:
    rows = xgboost.DMatrix(*BINARY)
    return bytes(xgboost.train({"max_depth": 2, "nthread": 1, "objective": "binary:logistic"}, rows, 2).save_raw(form))


FILES: dict[str, Callable[[], bytes]] = {
    "xgboost-json": lambda: _saved("json"),
    "xgboost-json-indented": lambda: json.dumps(json.loads(_saved("json")), indent=2).encode(),
    "xgboost-ubj": lambda: _saved("ubj"),
}
