"""Tests random pipelines of encoders, imputers and scalers before a model of any library, on hard rows."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost
from contract.agree import assert_agrees
from contract.kind import Trained
from contract.kinds_sklearn import scores_of
from example_counts import examples
from sklearn import compose, ensemble, impute, pipeline, preprocessing, tree

from forestc.errors import ModelError

Random = np.random.Generator


def one(random: Random, *choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def columns(random: Random, missing: bool, count: int) -> Any:
    """Draws rows of numbers, rounded numbers, integers and numbers of any size; some missing."""
    shape = int(random.integers(40, 250)), count
    kinds = [
        random.normal(size=shape),
        np.round(random.normal(size=shape), 1),
        random.integers(-3, 5, shape).astype(float),
        random.normal(size=shape) * 10.0 ** random.integers(-6, 7, shape[1]),
        random.normal(size=shape).astype(np.float32).astype(float),
    ]
    X = np.choose(random.integers(0, len(kinds), shape[1]), kinds)
    return np.where(random.random(shape) < 0.1, np.nan, X) if missing else X


def classes(random: Random, X: Any) -> Any:
    """Draws classes from 0 up, each at least once."""
    known, count = np.nan_to_num(X), int(random.integers(2, 5))
    y = np.sin(4 * (known / (np.abs(known).max(axis=0) + 1e-9)) @ random.normal(size=X.shape[1]))
    y += 0.3 * random.normal(size=len(X))
    found = np.digitize(y, np.quantile(y, np.linspace(0, 1, count + 1)[1:-1]))
    found[:count] = np.arange(count)
    return found


def last_step(random: Random) -> Any:
    few, seed = int(random.integers(1, 9)), int(random.integers(100))
    base = tree.DecisionTreeClassifier(max_depth=int(random.integers(1, 5)))
    return one(
        random,
        ensemble.RandomForestClassifier(few, random_state=seed, class_weight=one(random, None, "balanced")),
        ensemble.ExtraTreesClassifier(few, random_state=seed, max_features=one(random, 0.5, 1.0)),
        ensemble.GradientBoostingClassifier(n_estimators=few, init=one(random, None, "zero", base), random_state=seed),
        ensemble.HistGradientBoostingClassifier(max_iter=4, learning_rate=one(random, 0.1, 1.0), random_state=seed),
        ensemble.BaggingClassifier(base, few, max_features=0.5, random_state=seed),
        ensemble.AdaBoostClassifier(base, n_estimators=few, random_state=seed),
        base,
        xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1, min_child_samples=3),
    )


def random_pipeline(random: Random) -> Trained:
    codes, numbers = int(random.integers(1, 3)), int(random.integers(1, 4))
    missing = random.random() < 0.4
    X = columns(random, missing, codes + numbers)
    X[:, :codes] = random.integers(0, int(random.integers(2, 8)), (len(X), codes)) * one(random, 1.0, 0.5)
    if missing and random.random() < 0.5:
        X[:, :codes][random.random((len(X), codes)) < 0.1] = np.nan
    dtype = one(random, np.float32, np.float64, np.int32, np.int64, np.uint8, np.float32)
    absent = {} if np.dtype(dtype).kind == "f" and random.random() < 0.5 else {"encoded_missing_value": 78}
    ordinal = preprocessing.OrdinalEncoder(
        dtype=dtype, handle_unknown="use_encoded_value", unknown_value=one(random, 77, 99), **absent
    )
    sparse, drop = bool(random.integers(2)), one(random, None, None, "if_binary")
    hot = preprocessing.OneHotEncoder(dtype=dtype, handle_unknown="ignore", sparse_output=sparse, drop=drop)
    encoder = one(random, ordinal, hot)
    bins = preprocessing.KBinsDiscretizer(
        4, encode="ordinal", dtype=one(random, None, np.float32), quantile_method="averaged_inverted_cdf"
    )
    scalers: list[Any] = [preprocessing.StandardScaler(), preprocessing.MinMaxScaler((-1.3, 7.1)), "passthrough"]
    scalers += [preprocessing.RobustScaler(), preprocessing.MaxAbsScaler(), preprocessing.FunctionTransformer()]
    scalers += [preprocessing.StandardScaler(with_mean=False), preprocessing.Binarizer(threshold=0.2)]
    scalers += [preprocessing.QuantileTransformer(n_quantiles=9), preprocessing.PowerTransformer(), bins]
    filling = one(random, "mean", "median", "most_frequent", "constant")
    imputer = impute.SimpleImputer(strategy=filling, add_indicator=bool(random.integers(2)))
    inner = one(random, *scalers, imputer, pipeline.make_pipeline(imputer, one(random, *scalers)))
    before: list[Any] = [
        compose.ColumnTransformer(
            [("codes", encoder, list(range(codes)))],
            remainder=one(random, inner, "passthrough", "passthrough"),
            sparse_threshold=one(random, 0.0, 0.3, 1.0),
        )
    ]
    before += [one(random, *scalers) for _ in range(int(random.integers(0, 3)))]
    if random.random() < 0.2:
        before.append(pipeline.FeatureUnion([("a", one(random, *scalers)), ("b", one(random, *scalers))]))
    if random.random() < 0.2:
        before[0].set_params(sparse_threshold=0.0).set_output(transform="pandas")
        hot.set_params(sparse_output=False)
    last, large = last_step(random), 1e4
    # A PowerTransformer gives results beyond all floats for rows that are far larger.
    if any("PowerTransformer" in str(part) for part in (inner, *before)):
        X, large = X / np.nanmax(np.abs(X) + 1e-9, axis=0), 13.0
    rows = np.array(X)
    rows[:, :codes] = np.where(random.random((len(X), codes)) < 0.2, 13.0, rows[:, :codes])
    model = pipeline.make_pipeline(*before, last).fit(X, classes(random, X))
    source: Any = model
    library = type(last).__module__.partition(".")[0]
    if library == "sklearn" and random.random() < 0.3:
        source = Path(tempfile.mkdtemp()) / "m.skops"
        skops.io.dump(model, source)
    raw = {"xgboost": {"output_margin": True}, "lightgbm": {"raw_score": True}}
    scores = partial(scores_of, model) if library == "sklearn" else partial(model.predict, **raw[library])
    return Trained(source, rows, model.predict, scores, dtype=np.float64, infinite=False, large=large)


@pytest.mark.filterwarnings("ignore")
def test_random_pipelines_are_read_exactly():
    read, refused = 0, []
    for seed in range(examples(60)):
        try:
            model = random_pipeline(np.random.default_rng(seed))
        except (ValueError, TypeError):  # These options exclude each other.
            continue
        try:
            assert_agrees(model, 100, seed)
            read += 1
        except ModelError as error:
            refused.append(str(error))
    assert read > 30 and all("; " in why for why in refused)
