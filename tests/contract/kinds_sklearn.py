"""Trains scikit-learn's tree ensembles, and models made of them."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import skops.io
from contract.kind import Trained
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_multilabel_classification
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

BINARY = load_breast_cancer(return_X_y=True)
MULTI = load_digits(return_X_y=True)
SMALL = load_iris(return_X_y=True)
REGRESSION = load_diabetes(return_X_y=True)


def with_missing(data: Any) -> Any:
    """Removes a tenth of the values."""
    X, y = data
    return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X), y


def categories(n: int = 600) -> Any:
    """Makes rows of two classes: two columns of numbers and three of numeric categories, one of them negative and
    fractional."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 12, (n, 3)).astype(float)
    codes[:, 1] = codes[:, 1] * 0.5 - 2
    codes[:, 2] = np.where(random.random(n) < 0.1, np.nan, codes[:, 2] + 250)
    numbers = random.normal(size=(n, 2))
    y = (np.isin(codes[:, 0], [1, 4, 7]) ^ np.isin(codes[:, 1], [-2, 0, 0.5]) ^ (numbers[:, 0] > 0.3)).astype(int)
    return np.column_stack([numbers, codes]), y


TEXT = np.array(["setosa", 'versi "color"', "virginica\n"])[SMALL[1]]
LABELS = make_multilabel_classification(300, 8, n_classes=4, random_state=0)
TARGETS = (REGRESSION[0], np.column_stack([REGRESSION[1], REGRESSION[0][:, 2], REGRESSION[1] ** 2]))
CLASS_TARGETS = (MULTI[0], np.column_stack([MULTI[1], MULTI[1] % 3 - 1]))


def scores_of(model: Any, rows: Any) -> Any:
    """Returns the library's scores: the decision function, otherwise probabilities, otherwise predictions."""
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, name):
            found = getattr(model, name)(rows)
            return np.concatenate(found, axis=1) if isinstance(found, list) else found
    raise AssertionError


def kind(
    model: Any, data: Any, leaves: bool = True, scores: Any = scores_of, values: str | None = None, **more: Any
) -> Callable[[], Trained]:
    """Returns a function that trains a scikit-learn model. Such a model compares in float32 and refuses infinities.

    values: the method for the results of the link.
    """

    def train() -> Trained:
        X, y = data
        fitted = model.fit(X, y)
        return Trained(
            fitted,
            X,
            fitted.predict,
            None if scores is None else lambda rows: scores(fitted, rows),
            fitted.apply if leaves else None,
            values=None if values is None else lambda rows: getattr(fitted, values)(rows),
            **{"infinite": False, **more},
        )

    return train


TREE, FOREST = {"random_state": 0}, {"n_estimators": 20, "random_state": 0}
KINDS: dict[str, Callable[[], Trained]] = {}
for name, data in {"binary": BINARY, "multi": MULTI, "missing": with_missing(BINARY), "text": (SMALL[0], TEXT)}.items():
    KINDS |= {
        f"sklearn-tree-{name}": kind(DecisionTreeClassifier(**TREE), data),
        f"sklearn-extra-tree-{name}": kind(ExtraTreeClassifier(**TREE), data),
        f"sklearn-forest-{name}": kind(RandomForestClassifier(**FOREST), data),
        f"sklearn-extra-trees-{name}": kind(ExtraTreesClassifier(**FOREST), data),
        f"sklearn-bagging-{name}": kind(BaggingClassifier(random_state=0), data, leaves=False),
        f"sklearn-hist-{name}": kind(
            HistGradientBoostingClassifier(max_iter=10), data, leaves=False, dtype=np.float64, infinite=True
        ),
    }
    if name != "missing":
        KINDS[f"sklearn-boosting-{name}"] = kind(GradientBoostingClassifier(n_estimators=10, random_state=0), data)
        KINDS[f"sklearn-adaboost-{name}"] = kind(
            AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), random_state=0), data, leaves=False
        )
for name, data in {
    "regression": REGRESSION,
    "missing-regression": with_missing(REGRESSION),
    "targets": TARGETS,
}.items():
    KINDS |= {
        f"sklearn-tree-{name}": kind(DecisionTreeRegressor(**TREE), data),
        f"sklearn-extra-tree-{name}": kind(ExtraTreeRegressor(**TREE), data),
        f"sklearn-forest-{name}": kind(RandomForestRegressor(**FOREST), data),
        f"sklearn-extra-trees-{name}": kind(ExtraTreesRegressor(**FOREST), data),
    }
KINDS |= {
    "sklearn-forest-class-targets": kind(RandomForestClassifier(**FOREST), CLASS_TARGETS),
    "sklearn-tree-class-targets": kind(DecisionTreeClassifier(**TREE), CLASS_TARGETS),
    "sklearn-forest-labels": kind(RandomForestClassifier(**FOREST), LABELS),
    "sklearn-bagging-regression": kind(BaggingRegressor(random_state=0), REGRESSION, leaves=False),
    "sklearn-bagging-columns": kind(
        BaggingClassifier(max_features=0.4, max_samples=0.02, random_state=0), MULTI, leaves=False
    ),
    "sklearn-bagging-boosting": kind(
        BaggingClassifier(GradientBoostingClassifier(n_estimators=3), 4, max_features=0.5, random_state=0),
        MULTI,
        leaves=False,
        scores=None,
        values="predict_proba",
        value_ulps=4,
        dtype=np.float64,
    ),
    "sklearn-bagging-boosting-regression": kind(
        BaggingRegressor(
            HistGradientBoostingRegressor(max_iter=4), 5, max_features=0.6, bootstrap_features=True, random_state=0
        ),
        with_missing(REGRESSION),
        leaves=False,
        scores=None,
        dtype=np.float64,
    ),
    "sklearn-bagging-forest": kind(
        BaggingClassifier(RandomForestClassifier(3, max_depth=4), 9, random_state=0),
        BINARY,
        leaves=False,
        scores=None,
        values="predict_proba",
    ),
    "sklearn-adaboost-regression": kind(AdaBoostRegressor(n_estimators=15, random_state=0), REGRESSION, leaves=False),
    "sklearn-boosting-exponential": kind(
        GradientBoostingClassifier(loss="exponential", n_estimators=10, random_state=0), BINARY
    ),
    "sklearn-boosting-zero": kind(GradientBoostingClassifier(init="zero", n_estimators=5, random_state=0), MULTI),
    "sklearn-boosting-init-tree": kind(
        GradientBoostingRegressor(init=DecisionTreeRegressor(max_depth=3), n_estimators=5), REGRESSION, leaves=False
    ),
    "sklearn-boosting-init-mean": kind(
        GradientBoostingRegressor(init=DummyRegressor(strategy="median"), n_estimators=5), REGRESSION
    ),
    "sklearn-boosting-init-forest": kind(
        GradientBoostingRegressor(init=RandomForestRegressor(10, random_state=0), n_estimators=5),
        REGRESSION,
        leaves=False,
        ulps=4,
        value_ulps=4,
    ),
    "sklearn-boosting-init-boosting": kind(
        GradientBoostingRegressor(init=GradientBoostingRegressor(n_estimators=4), n_estimators=5),
        REGRESSION,
        leaves=False,
    ),
    "sklearn-boosting-init-classes": kind(
        GradientBoostingClassifier(init=DecisionTreeClassifier(max_depth=3), n_estimators=5), MULTI, leaves=False
    ),
    "sklearn-boosting-init-binary": kind(
        GradientBoostingClassifier(init=DecisionTreeClassifier(max_depth=3), n_estimators=5), BINARY, leaves=False
    ),
    "sklearn-hist-categories": kind(
        HistGradientBoostingClassifier(max_iter=15, categorical_features=[2, 3, 4], min_samples_leaf=3),
        categories(),
        leaves=False,
        dtype=np.float64,
    ),
    "sklearn-isolation": kind(
        IsolationForest(n_estimators=30, random_state=0, contamination=0.1), BINARY, False, None, "decision_function"
    ),
    "sklearn-isolation-columns": kind(
        IsolationForest(n_estimators=20, max_features=0.3, random_state=0),
        with_missing(BINARY),
        False,
        None,
        "decision_function",
    ),
}
for loss in ("squared_error", "absolute_error", "huber", "quantile"):
    KINDS[f"sklearn-boosting-{loss}"] = kind(
        GradientBoostingRegressor(loss=loss, n_estimators=10, random_state=0), REGRESSION
    )
for loss in ("squared_error", "absolute_error", "gamma", "poisson", "quantile"):
    quantile = 0.3 if loss == "quantile" else None
    KINDS[f"sklearn-hist-{loss}"] = kind(
        HistGradientBoostingRegressor(loss=loss, quantile=quantile, max_iter=10),
        with_missing(REGRESSION),
        False,
        None,
        dtype=np.float64,
        infinite=True,
        value_ulps=1,
    )


def _votes() -> list[Any]:
    return [
        ("forest", RandomForestClassifier(5, max_depth=4, random_state=0)),
        ("extra", ExtraTreesClassifier(4, max_depth=4, random_state=0)),
        ("boosting", GradientBoostingClassifier(n_estimators=3, random_state=0)),
        ("ada", AdaBoostClassifier(n_estimators=5, random_state=0)),
        ("hist", HistGradientBoostingClassifier(max_iter=3)),
    ]


MEMBERS = {"dtype": np.float64, "leaves": False, "scores": None}
for name, data in {"binary": BINARY, "multi": MULTI, "text": (SMALL[0], TEXT)}.items():
    KINDS |= {
        f"sklearn-voting-hard-{name}": kind(VotingClassifier(_votes(), weights=[2, 1, 1, 0.5, 1]), data, **MEMBERS),
        f"sklearn-voting-equal-{name}": kind(VotingClassifier(_votes()[:2]), data, **MEMBERS),
        f"sklearn-voting-soft-{name}": kind(
            VotingClassifier(_votes(), voting="soft", weights=[2, 1, 1, 1, 3]),
            data,
            values="predict_proba",
            value_ulps=4,
            **MEMBERS,
        ),
        f"sklearn-voting-soft-equal-{name}": kind(
            VotingClassifier(_votes()[:2], voting="soft"), data, values="predict_proba", **MEMBERS
        ),
        f"sklearn-one-vs-rest-forest-{name}": kind(
            OneVsRestClassifier(RandomForestClassifier(5, random_state=0)), data, **MEMBERS
        ),
        f"sklearn-one-vs-rest-boosting-{name}": kind(
            OneVsRestClassifier(GradientBoostingClassifier(n_estimators=3, random_state=0)), data, **MEMBERS
        ),
    }
KINDS |= {
    "sklearn-voting-regression": kind(
        VotingRegressor(
            [
                ("f", RandomForestRegressor(5, random_state=0)),
                ("g", GradientBoostingRegressor(n_estimators=5)),
                ("t", DecisionTreeRegressor(max_depth=5)),
            ],
            weights=[3, 2, 1],
        ),
        REGRESSION,
        **MEMBERS,
    ),
    "sklearn-multi-output-classes": kind(
        MultiOutputClassifier(GradientBoostingClassifier(n_estimators=3, random_state=0)), CLASS_TARGETS, **MEMBERS
    ),
    "sklearn-multi-output-regression": kind(
        MultiOutputRegressor(GradientBoostingRegressor(n_estimators=5)), TARGETS, **MEMBERS
    ),
    "sklearn-multi-output-hist": kind(
        MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=5)), TARGETS, **MEMBERS
    ),
    "sklearn-one-vs-rest-labels": kind(OneVsRestClassifier(ExtraTreesClassifier(5, random_state=0)), LABELS, **MEMBERS),
    "sklearn-one-vs-rest-labels-hist": kind(
        OneVsRestClassifier(HistGradientBoostingClassifier(max_iter=5)), LABELS, **MEMBERS
    ),
}


def _full(members: Any, labels: Any) -> Callable[[], Trained]:
    """Returns a function that trains one-vs-rest with labels that all rows have, or none; scikit-learn warns of it."""

    def train() -> Trained:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kind(OneVsRestClassifier(members), (SMALL[0], labels), **MEMBERS)()

    return train


FULL = np.column_stack([SMALL[1] >= 0, SMALL[1] > 0, SMALL[1] > 1, SMALL[1] < 0]).astype(int)
BOOSTING = GradientBoostingClassifier(n_estimators=5)
KINDS |= {
    "sklearn-one-vs-rest-full-label": _full(ExtraTreesClassifier(5, random_state=0), FULL),
    "sklearn-one-vs-rest-full-label-boosting": _full(BOOSTING, FULL[:, 1:]),
    "sklearn-one-vs-rest-full-label-first": _full(BOOSTING, FULL),
}

SMALL_TREE = DecisionTreeClassifier(max_depth=2)
FILES: dict[str, Callable[[], bytes]] = {
    "skops": lambda: bytes(skops.io.dumps(SMALL_TREE.fit(*BINARY))),
    "pickle": lambda: pickle.dumps(SMALL_TREE.fit(*BINARY)),
}
