"""Trains scikit-learn pipelines with steps that are folded into the forest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from contract.kind import Trained
from contract.kinds_sklearn import BINARY, MULTI, REGRESSION, SMALL, categories, kind, with_missing
from sklearn import preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)  # fmt: skip
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, QuantileTransformer, RobustScaler, StandardScaler

LIKE = {"dtype": np.float64, "leaves": False, "large": 1e4}
HOLES = with_missing(BINARY)


def _forest() -> Any:
    return RandomForestClassifier(8, max_depth=7, random_state=0)


def _steps(*steps: Any, data: Any = BINARY, last: Any = None, **more: Any) -> Callable[[], Trained]:
    return kind(make_pipeline(*steps, _forest() if last is None else last), data, **{**LIKE, **more})


def _codes() -> Any:
    return preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)


def _rare(**options: Any) -> Any:
    return preprocessing.OneHotEncoder(**{"handle_unknown": "infrequent_if_exist", **options})


def _columns(*steps: Any, rest: Any = "passthrough", data: Any = None) -> Callable[[], Trained]:
    """Returns a function that trains a forest behind steps for some of the columns. steps: pairs of (step, columns)."""
    named = [(str(place), *step) for place, step in enumerate(steps)]
    return _steps(ColumnTransformer(named, remainder=rest), data=data or categories())


BINS = preprocessing.KBinsDiscretizer(7, encode="ordinal", quantile_method="averaged_inverted_cdf")
HOT = preprocessing.OneHotEncoder(handle_unknown="ignore", drop="first")
ZEROS = SimpleImputer(missing_values=0, strategy="mean", add_indicator=True)
VOTE = VotingClassifier([("f", _forest()), ("h", HistGradientBoostingClassifier(max_iter=4))])
KINDS: dict[str, Callable[[], Trained]] = {
    "pipeline-standard": _steps(StandardScaler()),
    "pipeline-standard-missing": _steps(StandardScaler(), data=HOLES),
    "pipeline-minmax": _steps(MinMaxScaler((-3, 7.5))),
    "pipeline-minmax-clip": _steps(MinMaxScaler(clip=True)),
    "pipeline-maxabs": _steps(preprocessing.MaxAbsScaler(), data=MULTI),
    "pipeline-robust": _steps(RobustScaler(quantile_range=(10, 80))),
    "pipeline-yeo-johnson": _steps(PowerTransformer(), data=SMALL, large=50.0),
    "pipeline-box-cox": _steps(PowerTransformer("box-cox"), data=SMALL, positive=True, large=50.0),
    "pipeline-quantile": _steps(QuantileTransformer(n_quantiles=50)),
    "pipeline-quantile-normal": _steps(QuantileTransformer(n_quantiles=30, output_distribution="normal")),
    "pipeline-bins": _steps(BINS),
    "pipeline-binarizer": _steps(preprocessing.Binarizer(threshold=0.1)),
    "pipeline-mean": _steps(SimpleImputer(), data=HOLES),
    "pipeline-indicator": _steps(SimpleImputer(strategy="median", add_indicator=True), data=HOLES),
    "pipeline-zero-is-missing": _steps(ZEROS, data=MULTI),
    "pipeline-impute-scale": _steps(SimpleImputer(), StandardScaler(), MinMaxScaler(), data=HOLES),
    "pipeline-scale-impute": _steps(RobustScaler(), SimpleImputer(strategy="constant", fill_value=0.7), data=HOLES),
    "pipeline-select": _steps(VarianceThreshold(0.01), SelectKBest(k=7), StandardScaler()),
    "pipeline-union": _steps(FeatureUnion([("a", StandardScaler()), ("b", QuantileTransformer(n_quantiles=9))])),
    "pipeline-nothing": _steps("passthrough", preprocessing.FunctionTransformer()),
    "pipeline-regression": _steps(
        StandardScaler(), last=RandomForestRegressor(8, random_state=0), data=REGRESSION
    ),
    "pipeline-boosting": _steps(PowerTransformer(), last=GradientBoostingRegressor(), data=REGRESSION),
    "pipeline-hist": _steps(StandardScaler(), last=HistGradientBoostingClassifier(max_iter=8), data=HOLES),
    "pipeline-voting": _steps(StandardScaler(), last=VOTE, scores=None, large=1e30),
    "pipeline-columns": _columns(
        (make_pipeline(SimpleImputer(), StandardScaler()), [3, 1, 2]), ("drop", [0]),
        (QuantileTransformer(n_quantiles=20), slice(4, 8)), (MinMaxScaler(), [1]), data=BINARY,
    ),
    "pipeline-ordinal": _columns((_codes(), [2, 3, 4])),
    "pipeline-one-hot": _columns((HOT, [2, 3, 4]), (StandardScaler(), [0, 1]), rest="drop"),
    "pipeline-one-hot-rare": _columns((_rare(min_frequency=45), [2, 3, 4])),
    "pipeline-one-hot-most": _columns((_rare(max_categories=5, handle_unknown="ignore", drop="first"), [2, 3, 4])),
    "pipeline-one-hot-rare-first": _columns((_rare(max_categories=4, drop="first"), [2, 3, 4])),
    "pipeline-ordinal-rare": _columns((_codes().set_params(min_frequency=0.08), [2, 3, 4])),
    "pipeline-ordinal-most": _columns((_codes().set_params(max_categories=3), [2, 3, 4])),
    "pipeline-indicators": _steps(
        FeatureUnion([("a", SimpleImputer()), ("b", MissingIndicator(features="all"))]), StandardScaler(), data=HOLES
    ),
    "pipeline-zero-indicator": _steps(
        FeatureUnion([("a", MinMaxScaler()), ("b", MissingIndicator(missing_values=0, sparse=True))]), data=MULTI
    ),
    "pipeline-ordinal-scaled": _columns(
        (make_pipeline(_codes(), StandardScaler()), [2, 3, 4]), rest=SimpleImputer(strategy="median")
    ),
}  # fmt: skip
