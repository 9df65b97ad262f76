"""Trains CatBoost models: every loss function and way to grow trees, live and in JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import numpy as np
from contract.kind import Trained
from contract.kinds_lightgbm import BINARY, GROUPS, MULTI, RANKS, REGRESSION, TEXT

BASE = {"iterations": 12, "depth": 4, "verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": 1}
VALUE_ULPS = 4  # units in the last place: CatBoost's own exp(x) is off by about |x| units, NumPy's by one; 2 were seen


def missing(data: Any) -> Any:
    """Removes a tenth of the values."""
    X, y = data
    return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X), y


def kind(model: type, params: dict[str, Any], data: Any, json: bool = False, **more: Any) -> Callable[[], Trained]:
    """Returns a function that trains a model, or writes it as JSON, and gives its answers."""

    def train() -> Trained:
        X, y = data
        groups = np.repeat(np.arange(4), GROUPS["group"]) if "Rank" in model.__name__ else None
        fitted = model(**{**BASE, **params}).fit(catboost.Pool(X, y, group_id=groups))
        source: Any = fitted
        output = fitted
        if json:
            source = Path(tempfile.mkdtemp()) / "model.json"
            fitted.save_model(str(source), format="json")
            if "grow_policy" in params:  # The leaves of such trees are numbered anew.
                output = catboost.CatBoost().load_model(str(source), format="json")
        return Trained(
            source,
            X,
            fitted.predict,
            lambda rows: fitted.predict(rows, **({} if model is RANKER else {"prediction_type": "RawFormulaVal"})),
            lambda rows: output.calc_leaf_indexes(rows),
            **{"value_ulps": VALUE_ULPS, **more},
        )

    return train


CLASSIFIER, REGRESSOR, RANKER = catboost.CatBoostClassifier, catboost.CatBoostRegressor, catboost.CatBoostRanker
POSITIVE = REGRESSION[0], REGRESSION[1] / 100
SHARE = BINARY[0], np.random.default_rng(0).random(len(BINARY[1]))
TARGETS = REGRESSION[0], np.column_stack([REGRESSION[1], REGRESSION[1] ** 0.5, REGRESSION[0][:, 3]])
LABELS = BINARY[0], np.column_stack([BINARY[1], BINARY[0][:, 0] > 14, BINARY[0][:, 1] > 20]).astype(int)
LOSSGUIDE, DEPTHWISE = {"grow_policy": "Lossguide", "depth": 8, "max_leaves": 20}, {"grow_policy": "Depthwise"}

KINDS: dict[str, Callable[[], Trained]] = {
    f"catboost-{loss.partition(':')[0]}": kind(REGRESSOR, {"loss_function": loss}, POSITIVE)
    for loss in (
        *("RMSE", "MAE", "Quantile:alpha=0.3", "LogLinQuantile", "MAPE", "Lq:q=3", "Huber:delta=1", "LogCosh"),
        *("Expectile:alpha=0.3", "Poisson", "Tweedie:variance_power=1.5", "RMSEWithUncertainty"),
        "MultiQuantile:alpha=0.1,0.5,0.9",
    )
}
KINDS |= {
    f"catboost-{loss}": kind(RANKER, {"loss_function": loss}, RANKS)
    for loss in ("YetiRank", "QueryRMSE", "QuerySoftMax", "PairLogit")
}
for name, growth in {"plain": {}, "lossguide": LOSSGUIDE, "depthwise": DEPTHWISE}.items():
    KINDS |= {
        f"catboost-binary-{name}": kind(CLASSIFIER, growth, BINARY),
        f"catboost-regression-{name}": kind(REGRESSOR, growth, missing(REGRESSION)),
        f"catboost-multi-{name}": kind(CLASSIFIER, {"loss_function": "MultiClass", **growth}, MULTI),
        f"catboost-json-{name}": kind(CLASSIFIER, {"loss_function": "MultiClass", **growth}, missing(MULTI), json=True),
        f"catboost-json-regression-{name}": kind(
            REGRESSOR, {"loss_function": "Poisson", **growth}, POSITIVE, json=True
        ),
    }
KINDS |= {
    "catboost-one-vs-all": kind(CLASSIFIER, {"loss_function": "MultiClassOneVsAll"}, MULTI),
    "catboost-labels": kind(CLASSIFIER, {"loss_function": "MultiLogloss"}, LABELS),
    "catboost-labels-entropy": kind(CLASSIFIER, {"loss_function": "MultiCrossEntropy"}, LABELS),
    "catboost-entropy": kind(CLASSIFIER, {"loss_function": "CrossEntropy"}, SHARE),
    "catboost-focal": kind(CLASSIFIER, {"loss_function": "Focal:focal_alpha=0.3;focal_gamma=1"}, BINARY),
    "catboost-targets": kind(REGRESSOR, {"loss_function": "MultiRMSE"}, TARGETS),
    "catboost-text": kind(CLASSIFIER, {}, (MULTI[0], TEXT)),
    "catboost-text-json": kind(CLASSIFIER, {}, (MULTI[0], TEXT), json=True),
    "catboost-booleans": kind(CLASSIFIER, {}, (BINARY[0], BINARY[1] > 0)),
    "catboost-floats": kind(CLASSIFIER, {}, (MULTI[0], MULTI[1] * 0.25 - 1), json=True),
    "catboost-max": kind(REGRESSOR, {"nan_mode": "Max"}, missing(REGRESSION)),
    "catboost-max-lossguide": kind(REGRESSOR, {"nan_mode": "Max", **LOSSGUIDE}, missing(REGRESSION), json=True),
    "catboost-deep": kind(REGRESSOR, {"depth": 11, "iterations": 3}, REGRESSION),
    "catboost-stumps": kind(CLASSIFIER, {"depth": 1}, missing(BINARY)),
    "catboost-ordered": kind(CLASSIFIER, {"boosting_type": "Ordered"}, BINARY),
    "catboost-no-average": kind(REGRESSOR, {"boost_from_average": False, "border_count": 12}, REGRESSION),
    "catboost-shrunk": kind(REGRESSOR, {"langevin": True, "model_shrink_rate": 0.05}, REGRESSION),
    "catboost-float64": kind(REGRESSOR, {}, missing(REGRESSION), dtype=np.float64),
}


def _export() -> bytes:
    path = Path(tempfile.mkdtemp()) / "m"
    CLASSIFIER(**{**BASE, "iterations": 2, "depth": 2}).fit(*BINARY).save_model(str(path), format="json")
    return path.read_bytes()


FILES: dict[str, Callable[[], bytes]] = {"catboost": _export}
