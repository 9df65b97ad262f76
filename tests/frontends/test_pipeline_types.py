"""Tests steps of pipelines that change the type of columns: later steps compute in that type, as in scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from thinned import thinned
from xgboost import XGBClassifier

from forestc import load
from forestc.errors import ModelError
from forestc.rows.encode import evaluate

RANDOM = np.random.default_rng(0)
X = np.column_stack([RANDOM.integers(0, 9, (300, 2)), RANDOM.normal(size=(300, 2))])
X[::9, 2] = 0.0
Y = ((X[:, 0] > 4) ^ (X[:, 1] == 3) ^ (X[:, 2] > 0.2)).astype(int)


def ordinal(dtype, unknown=90, missing=np.nan):
    return OrdinalEncoder(
        dtype=dtype, handle_unknown="use_encoded_value", unknown_value=unknown, encoded_missing_value=missing
    )


def hot(**options):
    return OneHotEncoder(handle_unknown="ignore", **options)


def beside(encoder, **options):
    return ColumnTransformer([("codes", encoder, [0, 1])], remainder="passthrough", **options)


def differences(steps, last, rows, fit=X):
    model = make_pipeline(*steps, last).fit(fit, Y)
    found = evaluate(load(model), rows)
    if type(last).__module__.startswith("sklearn.ensemble"):
        scores = (
            model.decision_function(rows) if hasattr(last, "decision_function") else model.predict_proba(rows)[:, 1]
        )
        assert np.array_equal(found.scores[:, -1], scores)
    return int((found.decision != model.predict(rows)).sum())


def hist():
    return HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=2, categorical_features=None)


SCALERS = [StandardScaler(), MinMaxScaler((-1.3, 7.1)), MaxAbsScaler(), RobustScaler(), Binarizer(threshold=3.0)]
SCALERS += [QuantileTransformer(n_quantiles=20), SimpleImputer(strategy="constant", fill_value=0.1)]


def new_rows(columns, fit=X):
    """Returns training rows with some unknown categories and missing values."""
    rows = np.array(fit)
    random = np.random.default_rng(1)
    for column in columns:
        rows[:, column] = np.where(random.random(len(rows)) < 0.1, 77.0, rows[:, column])
    return rows


TYPES = [np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]
TYPED = [  # scikit-learn fills 0.1 into floats only.
    (scaler, dtype)
    for scaler in SCALERS
    for dtype in TYPES
    if np.dtype(dtype).kind == "f" or not isinstance(scaler, SimpleImputer)
]


@pytest.mark.parametrize(
    ("scaler", "dtype"), thinned(TYPED, keep=15), ids=lambda one: getattr(one, "__name__", type(one).__name__)
)
def test_an_encoder_gives_its_own_type(scaler, dtype):
    encoders = [ordinal(dtype)] + [hot(dtype=dtype, sparse_output=False)] * (
        dtype != np.float16
    )  # SciPy has no float16.
    for first in encoders:
        rows = new_rows([0, 1])[:, :2]
        assert not differences([first, scaler], hist(), rows, X[:, :2])
        union = FeatureUnion([("a", first), ("b", ordinal(np.int16))])
        assert not differences([union, scaler], RandomForestClassifier(5, random_state=0), rows, X[:, :2])


@pytest.mark.parametrize("framed", [False, True])
def test_columns_side_by_side_are_of_one_type_but_in_a_frame(framed):
    fit = pd.DataFrame(X, columns=list("abcd"))
    inner = ColumnTransformer([("a", ordinal(np.float32), ["a", "b"]), ("b", StandardScaler(), ["c", "d"])])
    names = ["a__a", "a__b"]
    outer = ColumnTransformer([("x", MinMaxScaler((-1.3, 7.1)), names if framed else [0, 1])], remainder="passthrough")
    steps = [inner.set_output(transform="pandas" if framed else "default"), outer]
    rows = pd.DataFrame(new_rows([0, 1]), columns=list("abcd"))
    model = make_pipeline(*steps, hist()).fit(fit, Y)
    assert np.array_equal(evaluate(load(model), rows.to_numpy()).scores[:, 0], model.decision_function(rows))


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
def test_bins_of_rounded_rows(dtype):
    bins = KBinsDiscretizer(9, encode="ordinal", dtype=dtype, quantile_method="averaged_inverted_cdf")
    edges = bins.fit(X).bin_edges_[2][1:-1]
    rows = np.repeat(X[:1], 3 * len(edges), axis=0)
    near = edges.astype(np.float32)
    rows[:, 2] = np.concatenate([edges, near, np.nextafter(near, np.float32(-np.inf)).astype(float) + 1e-12])
    assert not differences([bins, MinMaxScaler((-1.3, 7.1))], hist(), rows)


@pytest.mark.parametrize("scaler", ["passthrough", StandardScaler(with_mean=False), MaxAbsScaler(), Binarizer()])
def test_sparse_columns_are_scaled_as_the_library_scales_them(scaler):
    for dtype in (np.float32, np.float64):
        first = beside(hot(dtype=dtype), sparse_threshold=1.0)
        assert not differences([first, scaler], RandomForestClassifier(9, random_state=0), new_rows([0, 1]))


def test_quantiles_of_sparse_columns_are_refused():
    first = beside(hot(), sparse_threshold=1.0)
    with pytest.raises(ModelError, match=r"step 'quantiletransformer': .*use sparse_threshold=0"):
        differences([first, QuantileTransformer(n_quantiles=9)], RandomForestClassifier(3), abs(X), abs(X))


def test_xgboost_takes_zeros_of_sparse_columns_for_missing():
    for steps in ([hot()], [beside(hot(dtype=np.float32), sparse_threshold=1.0)]):
        assert not differences(steps, XGBClassifier(n_estimators=6), new_rows([0, 1]))
    nested = make_pipeline(beside(hot(), sparse_threshold=1.0), "passthrough")
    assert not differences([nested], make_pipeline("passthrough", XGBClassifier(n_estimators=6)), new_rows([0, 1]))
    with pytest.raises(ModelError, match="XGBoost reads zeros of sparse columns as missing, and they are scaled"):
        differences([beside(hot(), sparse_threshold=1.0), MaxAbsScaler()], XGBClassifier(n_estimators=2), X)


@pytest.mark.parametrize(
    "first",
    [
        FunctionTransformer(),
        beside(ordinal(np.float64, -1, -2)),
        ColumnTransformer([("codes", ordinal(np.float32, -1, -2), [0, 1]), ("rest", "passthrough", [2, 3])]),
    ],
    ids=lambda s: type(s).__name__,
)
def test_what_passes_through_may_be_missing(first):
    holes = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    for last in (hist(), RandomForestClassifier(6, random_state=0)):
        assert not differences([first], last, holes, holes)


def test_a_function_that_validates_refuses_missing_values():
    model = make_pipeline(FunctionTransformer(validate=True), hist()).fit(X, Y)
    assert not any(feature.missing for feature in load(model).features)


@pytest.mark.parametrize("seed", range(6))
def test_rows_on_the_offset_of_an_isolation_forest(seed):
    rows = np.random.default_rng(seed).integers(0, 4, size=(300, 2)).astype(float)
    model = IsolationForest(n_estimators=10, contamination=0.1, random_state=seed).fit(rows)
    found = evaluate(load(model), rows)
    assert np.array_equal(found.decision, model.predict(rows))
    assert np.array_equal(found.values[:, 0], model.decision_function(rows))


def test_missing_values_of_sparse_columns_are_boosters_own():
    holes = np.array(X)
    holes[::5, 3] = np.nan
    first = beside(hot(), sparse_threshold=1.0)
    for last in (LGBMClassifier(n_estimators=5, verbose=-1), XGBClassifier(n_estimators=5)):
        assert not differences([first], last, holes, holes)
    model = make_pipeline(first, RandomForestClassifier(3)).fit(X, Y)
    assert {f.column: f.missing for f in load(model).features}[3] is False  # unknown and missing codes become 0


@pytest.mark.parametrize("zero_as_missing", [False, True])
def test_lightgbm_keeps_small_values_of_sparse_columns(zero_as_missing):
    fit = np.array(X)
    fit[:, 2] = np.where(RANDOM.random(len(X)) < 0.5, 0.0, X[:, 2])
    near = np.float64(np.float32(1e-35))
    rows = np.repeat(fit[:40], 6, axis=0)
    rows[:, 2] = np.tile([near, -near, np.nextafter(near, 1), -np.nextafter(near, 1), 0.0, -5e-324], 40)
    first = beside(hot(), sparse_threshold=1.0)
    last = LGBMClassifier(n_estimators=20, verbose=-1, zero_as_missing=zero_as_missing)
    assert not differences([first], last, rows, fit)
