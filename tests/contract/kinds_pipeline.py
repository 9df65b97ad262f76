"""scikit-learn pipelines whose steps are folded into the forest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from contract.kind import Trained
from contract.kinds_sklearn import BINARY, MULTI, REGRESSION, SMALL, categories, kind, with_missing
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

LIKE = {"dtype": np.float64, "leaves": False, "large": 1e4}


def _forest() -> Any:
    return RandomForestClassifier(8, max_depth=7, random_state=0)


def _unknown() -> Any:
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)


def _steps(*steps: Any, data: Any = BINARY, **more: Any) -> Callable[[], Trained]:
    return kind(make_pipeline(*steps, _forest()), data, **{**LIKE, **more})


KINDS: dict[str, Callable[[], Trained]] = {
    "pipeline-standard": _steps(StandardScaler()),
    "pipeline-standard-missing": _steps(StandardScaler(), data=with_missing(BINARY)),
    "pipeline-minmax": _steps(MinMaxScaler((-3, 7.5))),
    "pipeline-minmax-clip": _steps(MinMaxScaler(clip=True)),
    "pipeline-maxabs": _steps(MaxAbsScaler(), data=MULTI),
    "pipeline-robust": _steps(RobustScaler(quantile_range=(10, 80))),
    "pipeline-yeo-johnson": _steps(PowerTransformer(), data=SMALL, large=50.0),
    "pipeline-box-cox": _steps(PowerTransformer("box-cox"), data=SMALL, positive=True, large=50.0),
    "pipeline-quantile": _steps(QuantileTransformer(n_quantiles=50)),
    "pipeline-quantile-normal": _steps(QuantileTransformer(n_quantiles=30, output_distribution="normal")),
    "pipeline-bins": _steps(KBinsDiscretizer(7, encode="ordinal", quantile_method="averaged_inverted_cdf")),
    "pipeline-binarizer": _steps(Binarizer(threshold=0.1)),
    "pipeline-mean": _steps(SimpleImputer(), data=with_missing(BINARY)),
    "pipeline-indicator": _steps(SimpleImputer(strategy="median", add_indicator=True), data=with_missing(BINARY)),
    "pipeline-zero-is-missing": _steps(
        SimpleImputer(missing_values=0, strategy="mean", add_indicator=True), data=MULTI
    ),
    "pipeline-impute-scale": _steps(SimpleImputer(), StandardScaler(), MinMaxScaler(), data=with_missing(BINARY)),
    "pipeline-scale-impute": _steps(
        RobustScaler(), SimpleImputer(strategy="constant", fill_value=0.7), data=with_missing(BINARY)
    ),
    "pipeline-select": _steps(VarianceThreshold(0.01), SelectKBest(k=7), StandardScaler()),
    "pipeline-union": _steps(FeatureUnion([("a", StandardScaler()), ("b", QuantileTransformer(n_quantiles=9))])),
    "pipeline-nothing": _steps("passthrough", FunctionTransformer()),
    "pipeline-regression": kind(
        make_pipeline(StandardScaler(), RandomForestRegressor(8, random_state=0)), REGRESSION, **LIKE
    ),
    "pipeline-boosting": kind(make_pipeline(PowerTransformer(), GradientBoostingRegressor()), REGRESSION, **LIKE),
    "pipeline-hist": kind(
        make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=8)), with_missing(BINARY), **LIKE
    ),
    "pipeline-voting": kind(
        make_pipeline(
            StandardScaler(), VotingClassifier([("f", _forest()), ("h", HistGradientBoostingClassifier(max_iter=4))])
        ),
        BINARY,
        leaves=False,
        scores=None,
        dtype=np.float64,
    ),
    "pipeline-columns": kind(
        Pipeline(
            [
                (
                    "columns",
                    ColumnTransformer(
                        [
                            ("scale", make_pipeline(SimpleImputer(), StandardScaler()), [3, 1, 2]),
                            ("drop", "drop", [0]),
                            ("quantile", QuantileTransformer(n_quantiles=20), slice(4, 8)),
                            ("again", MinMaxScaler(), [1]),
                        ],
                        remainder="passthrough",
                    ),
                ),
                ("forest", _forest()),
            ]
        ),
        BINARY,
        **LIKE,
    ),
    "pipeline-ordinal": kind(
        make_pipeline(ColumnTransformer([("codes", _unknown(), [2, 3, 4])], remainder="passthrough"), _forest()),
        categories(),
        **LIKE,
    ),
    "pipeline-one-hot": kind(
        make_pipeline(
            ColumnTransformer(
                [
                    ("hot", OneHotEncoder(handle_unknown="ignore", drop="first"), [2, 3, 4]),
                    ("scale", StandardScaler(), [0, 1]),
                ]
            ),
            _forest(),
        ),
        categories(),
        **LIKE,
    ),
    "pipeline-ordinal-scaled": kind(
        make_pipeline(
            ColumnTransformer(
                [("codes", make_pipeline(_unknown(), StandardScaler()), [2, 3, 4])],
                remainder=SimpleImputer(strategy="median"),
            ),
            _forest(),
        ),
        categories(),
        **LIKE,
    ),
}
