"""Trains LightGBM models: every objective, boosting and way of missing values, categories, live and in files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from contract.kind import Trained
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

# VALUE_ULPS are units in the last place: LightGBM has the C library's exp and log1p, forestc NumPy's; 2 were seen.
VALUE_ULPS = 4

BASE = {"num_leaves": 12, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "seed": 1}
FOREST = {"boosting": "rf", "bagging_fraction": 0.6, "bagging_freq": 1, "feature_fraction": 0.6}
BINARY, MULTI, REGRESSION = (f(return_X_y=True) for f in (load_breast_cancer, load_digits, load_diabetes))
MULTI = MULTI[0][:900], MULTI[1][:900] % 5


def mixed(n: int = 900) -> Any:
    """Makes rows of two classes: numbers around zero with exact zeros, some missing; a small and a large category; a
    category of codes past 65,535."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 6))
    X[:, 1] = np.where(random.random(n) < 0.4, 0, X[:, 1])
    X[:, 2] = np.round(X[:, 2]) - 3 * (random.random(n) < 0.5)
    X[:, 3] = random.integers(0, 4, n)
    X[:, 4] = random.integers(0, 90, n)
    X[:, 5] = random.choice([0, 1, 3, 65_536, 70_000, 70_001, 2_000_000], n)
    noise = random.normal(size=n) / 2
    score = X[:, 0] + (X[:, 1] == 0) + np.sin(3 * X[:, 2]) + (X[:, 3] == 2) + (X[:, 4] % 3 - 1) + (X[:, 5] % 2) + noise
    X[random.random(X.shape) < 0.08] = np.nan
    return X, (score > 1).astype(float)


def trained(params: dict[str, Any], data: Any, rounds: int = 12, form: str = "", **more: Any) -> Trained:
    """Trains a Booster; returns it, or a file of it, with its answers."""
    X, y = data
    settings = {**BASE, **params}
    dataset = lightgbm.Dataset(X, label=y, params=settings, free_raw_data=False, **more)
    booster = lightgbm.train(settings, dataset, rounds)
    objective = settings.get("objective", "regression")
    iterations = booster.num_trees() // booster.num_model_per_iteration()
    divisor = iterations if settings.get("boosting") == "rf" else 1

    def decision(rows: Any) -> Any:
        values = booster.predict(rows)
        if objective == "binary":
            return (values > 0.5).astype(int)
        return values.argmax(axis=1) if objective in ("multiclass", "multiclassova") else values

    source: Any = booster
    if form:
        source = Path(tempfile.mkdtemp()) / f"model.{form}"
        if form == "json":
            source.write_text(json.dumps(booster.dump_model()))
        else:
            booster.save_model(source)
    return Trained(
        source,
        X,
        decision,
        lambda rows: booster.predict(rows, raw_score=True) / divisor,
        lambda rows: booster.predict(rows, pred_leaf=True),
        dtype=np.float64,
        value_ulps=VALUE_ULPS,
    )


def estimator(model: Any, data: Any, **fit: Any) -> Trained:
    """Fits a scikit-learn-style estimator; returns it with its answers."""
    X, y = data
    model.set_params(num_leaves=12, verbose=-1, n_jobs=1, n_estimators=model.n_estimators)
    model.fit(X, y, **fit)
    raw = {"raw_score": True}
    return Trained(
        model,
        X,
        model.predict,
        lambda rows: model.predict(rows, **raw),
        lambda rows: model.predict(rows, pred_leaf=True),
        dtype=np.float64,
        value_ulps=VALUE_ULPS,
    )


def own_objective(scores: Any, data: Any) -> Any:
    """Computes gradients of a user's own objective over three outputs."""
    return scores - data.get_label()[:, np.newaxis] * [1, 0.5, -1], np.ones_like(scores)


def early() -> Trained:
    X, y = BINARY
    stop = {"eval_X": X[300:], "eval_y": y[300:], "callbacks": [lightgbm.early_stopping(3, verbose=False)]}
    result = estimator(lightgbm.LGBMClassifier(n_estimators=60, learning_rate=0.7), (X[:300], y[:300]), **stop)
    assert result.source.best_iteration_ < 60
    return result


def kind(params: dict[str, Any], data: Any, **more: Any) -> Callable[[], Trained]:
    return lambda: trained(params, data() if callable(data) else data, **more)


POSITIVE = REGRESSION[0], REGRESSION[1] / 100
SHARE = REGRESSION[0], REGRESSION[1] / 400
CATEGORIES: dict[str, Any] = {"categorical_feature": [3, 4, 5]}
GROUPS = {"group": [142, 100, 100, 100]}
RANKS = REGRESSION[0], np.digitize(REGRESSION[1], [80, 140, 220])
TEXT = np.array(["a b", "ä", 'c"'])[MULTI[1] % 3]

KINDS: dict[str, Callable[[], Trained]] = {
    f"lightgbm-{name}": kind({"objective": name}, REGRESSION)
    for name in ("regression", "regression_l1", "huber", "fair", "quantile", "mape")
}
KINDS |= {f"lightgbm-{name}": kind({"objective": name}, POSITIVE) for name in ("poisson", "gamma", "tweedie")}
KINDS |= {f"lightgbm-{name}": kind({"objective": name}, SHARE) for name in ("cross_entropy", "cross_entropy_lambda")}
KINDS |= {f"lightgbm-{name}": kind({"objective": name}, RANKS, **GROUPS) for name in ("lambdarank", "rank_xendcg")}
KINDS |= {
    f"lightgbm-{objective}-{name}": kind({"objective": objective, "num_class": 5, **params}, MULTI, rounds=5)
    for objective in ("multiclass", "multiclassova")
    for name, params in {"plain": {}, "forest": FOREST, "dart": {"boosting": "dart"}}.items()
}
KINDS |= {
    f"lightgbm-mixed-{name}": kind({"objective": "binary", "min_data_per_group": 5, **params}, mixed, **CATEGORIES)
    for name, params in {
        "nan": {},
        "zero": {"zero_as_missing": True},
        "none": {"use_missing": False},
        "forest": FOREST,
        "one-hot": {"max_cat_to_onehot": 100},
        "sets": {"max_cat_to_onehot": 1, "cat_smooth": 0.1, "cat_l2": 0.1, "max_cat_threshold": 60},
        "zero-sets": {"zero_as_missing": True, "max_cat_to_onehot": 1, "num_leaves": 31},
        "linear-order": {"sigmoid": 0.37, "is_unbalance": True},
    }.items()
}
KINDS |= {
    f"lightgbm-binary-{name}": kind({"objective": "binary", **params}, BINARY)
    for name, params in {
        "sigmoid": {"sigmoid": 1.7},
        "goss": {"data_sample_strategy": "goss"},
        "dart": {"boosting": "dart"},
        "forest": FOREST,
        "extra": {"extra_trees": True},
        "monotone": {"monotone_constraints": [1, -1, *[0] * 28], "path_smooth": 1.0},
        "no-average": {"boost_from_average": False},
        "quantized": {"use_quantized_grad": True},
        "stumps": {"num_leaves": 2},
        "leaves-only": {"min_data_in_leaf": 1000},
    }.items()
}
KINDS |= {
    "lightgbm-regression-sqrt": kind({"objective": "regression", "reg_sqrt": True}, REGRESSION),
    "lightgbm-regression-forest": kind({"objective": "regression", **FOREST}, REGRESSION),
    "lightgbm-regression-zero": kind({"zero_as_missing": True}, mixed),
    "lightgbm-regression-deep": kind({"num_leaves": 300, "min_data_in_leaf": 1}, REGRESSION, rounds=5),
    "lightgbm-own-objective": kind({"objective": own_objective, "num_class": 3}, REGRESSION),
    "lightgbm-text": kind({"objective": "multiclass", "num_class": 5}, MULTI, rounds=5, form="txt"),
    "lightgbm-text-mixed": kind({"zero_as_missing": True}, mixed, form="lgb", **CATEGORIES),
    "lightgbm-dump": kind({"objective": "multiclass", "num_class": 5}, MULTI, rounds=5, form="json"),
    "lightgbm-dump-mixed": kind({"zero_as_missing": True}, mixed, form="json", **CATEGORIES),
    "lightgbm-dump-forest": kind({"objective": "binary", **FOREST}, mixed, form="json", **CATEGORIES),
    "lightgbm-dump-leaves-only": kind({"min_data_in_leaf": 1000}, REGRESSION, form="json"),
    "lightgbm-classifier": lambda: estimator(lightgbm.LGBMClassifier(n_estimators=20), BINARY),
    "lightgbm-classifier-multi": lambda: estimator(lightgbm.LGBMClassifier(n_estimators=6), MULTI),
    "lightgbm-classifier-text": lambda: estimator(lightgbm.LGBMClassifier(n_estimators=6), (MULTI[0], TEXT)),
    "lightgbm-classifier-ova": lambda: estimator(
        lightgbm.LGBMClassifier(objective="ova", n_estimators=6, sigmoid=2.5), MULTI
    ),
    "lightgbm-classifier-entropy": lambda: estimator(
        lightgbm.LGBMClassifier(objective="cross_entropy", n_estimators=6), BINARY
    ),
    "lightgbm-classifier-early": early,
    "lightgbm-regressor": lambda: estimator(lightgbm.LGBMRegressor(n_estimators=20), REGRESSION),
    "lightgbm-regressor-binary": lambda: estimator(lightgbm.LGBMRegressor(n_estimators=20, objective="binary"), BINARY),
    "lightgbm-ranker": lambda: estimator(lightgbm.LGBMRanker(n_estimators=20), RANKS, **GROUPS),
}


def _small() -> lightgbm.Booster:
    return lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(*BINARY), 2)


FILES: dict[str, Callable[[], bytes]] = {
    "lightgbm-text": lambda: _small().model_to_string().encode(),
    "lightgbm-dump": lambda: json.dumps(_small().dump_model()).encode(),
}
