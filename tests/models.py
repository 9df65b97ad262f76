"""Trains models on scikit-learn's bundled data, and makes rows on and beside their thresholds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from forestc.forest.ir import Forest

BINARY, MULTI, REGRESSION = load_breast_cancer, load_digits, load_diabetes
XGB = {"max_depth": 4, "n_estimators": 20, "random_state": 0}
FEW = 8  # trees of kinds with large trees, or with several trees for each class


def _kinds() -> dict[str, tuple[Callable[[], Any], Callable[..., Any]]]:
    kinds: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
        "xgboost-binary": (lambda: xgboost.XGBClassifier(**XGB), BINARY),
        "xgboost-multi": (lambda: xgboost.XGBClassifier(**{**XGB, "n_estimators": FEW}), MULTI),
        "xgboost-regression": (lambda: xgboost.XGBRegressor(**XGB), REGRESSION),
        "xgboost-forest": (lambda: xgboost.XGBRFClassifier(max_depth=5, n_estimators=20, random_state=0), BINARY),
        "xgboost-logistic": (lambda: xgboost.XGBRegressor(objective="reg:logistic", **XGB), BINARY),
        "tree-regression": (lambda: DecisionTreeRegressor(random_state=0), REGRESSION),
        "extra-tree-regression": (lambda: ExtraTreeRegressor(random_state=0), REGRESSION),
        "forest-regression": (lambda: RandomForestRegressor(FEW, random_state=0), REGRESSION),
        "extra-trees-regression": (lambda: ExtraTreesRegressor(FEW, random_state=0), REGRESSION),
        "boosting-regression": (lambda: GradientBoostingRegressor(n_estimators=25, random_state=0), REGRESSION),
        "boosting-huber": (
            lambda: GradientBoostingRegressor(loss="huber", n_estimators=25, random_state=0),
            REGRESSION,
        ),
    }
    for name, data, trees in (("binary", BINARY, 20), ("multi", MULTI, FEW)):
        kinds |= {
            f"tree-{name}": (lambda: DecisionTreeClassifier(random_state=0), data),
            f"extra-tree-{name}": (lambda: ExtraTreeClassifier(random_state=0), data),
            f"forest-{name}": (lambda trees=trees: RandomForestClassifier(trees, random_state=0), data),
            f"extra-trees-{name}": (lambda trees=trees: ExtraTreesClassifier(trees, random_state=0), data),
            f"boosting-{name}": (lambda: GradientBoostingClassifier(n_estimators=FEW, random_state=0), data),
        }
    kinds["boosting-exponential"] = (
        lambda: GradientBoostingClassifier(loss="exponential", n_estimators=12, random_state=0),
        BINARY,
    )
    kinds["forest-missing"] = (lambda: RandomForestClassifier(20, random_state=0), _with_missing)
    kinds["xgboost-missing"] = (lambda: xgboost.XGBClassifier(**XGB), _with_missing)
    kinds["forest-text-labels"] = (lambda: RandomForestClassifier(10, random_state=0), _text_labels)
    return kinds


def _with_missing(return_X_y: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_breast_cancer(return_X_y=return_X_y)
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X, y


def _text_labels(return_X_y: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_iris(return_X_y=return_X_y)
    return X, np.array(["setosa", 'versi "color"', "virginica\n"])[y]


KINDS = _kinds()


@cache
def trained(kind: str) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """Returns a fitted model, its rows and labels."""
    make, data = KINDS[kind]
    X, y = data(return_X_y=True)
    return make().fit(X, y), X, y


def full_model(kind: str) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """Returns a fitted model, its rows and labels for benchmarks: at least 20 trees (or rounds), if a kind
    has several."""
    model, X, y = trained(kind)
    if getattr(model, "n_estimators", 20) >= 20:
        return model, X, y
    return clone(model).set_params(n_estimators=20).fit(X, y), X, y


def rows_near_thresholds(forest: Forest, X: NDArray[Any], count: int, seed: int = 0) -> NDArray[np.float32]:
    """Returns float32 rows from X; about half of all values lie on a threshold of their feature or one step
    beside it."""
    random = np.random.default_rng(seed)
    rows = X[random.integers(0, len(X), count)].astype(np.float32)
    for index, feature in enumerate(forest.features):
        thresholds = forest.conditions.thresholds(index)
        thresholds = thresholds[np.isfinite(thresholds)].astype(np.float32)
        if not len(thresholds):
            continue
        chosen = random.choice(thresholds, count)
        step = random.integers(-1, 2, count)
        beside = np.where(
            step == 0, chosen, np.nextafter(chosen, np.where(step < 0, -np.inf, np.inf).astype(np.float32))
        )
        rows[:, feature.column] = np.where(random.random(count) < 0.5, beside, rows[:, feature.column])
        if feature.missing and np.isnan(X).any():
            rows[random.random(count) < 0.1, feature.column] = np.nan
    return rows
