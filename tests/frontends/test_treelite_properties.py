"""Tests tiny random models imported by treelite, against its reference predictor."""

from __future__ import annotations

import lightgbm
import numpy as np
import treelite
import xgboost
from contract.agree import assert_agrees
from contract.kinds_treelite import of
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingRegressor, RandomForestRegressor


def rows(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 3))
    X[:, 2] = random.integers(0, random.integers(2, 30), 60)
    return X, random


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["reg:squarederror", "count:poisson", "multi:softprob"]), st.booleans())
def test_xgboost_agrees_with_the_library_through_treelite(seed, objective, coded):
    X, random = rows(seed)
    X[random.random(X.shape) < 0.1] = np.nan
    types = ["q", "q", "c"] if coded else None
    y = random.integers(0, 3, 60)
    D = xgboost.DMatrix(X, y, feature_types=types, enable_categorical=coded)
    params = {"objective": objective, "max_depth": 3, "seed": seed, "max_cat_to_onehot": 1, "nthread": 1}
    multi = {"num_class": 3} if objective.startswith("multi") else {}
    booster = xgboost.train({**params, **multi}, D, 3)
    assert_agrees(of(lambda: treelite.frontend.from_xgboost(booster), X, "most" if multi else "none")(), 300)


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["regression", "binary", "multiclassova", "tweedie"]), st.booleans())
def test_lightgbm_agrees_with_the_library_through_treelite(seed, objective, coded):
    X, random = rows(seed)
    y = random.integers(0, 2, 60) if objective == "binary" else random.integers(0, 3, 60)
    params = {"objective": objective, "verbose": -1, "min_data_in_leaf": 2, "num_threads": 1, "min_data_per_group": 1}
    multi = {"num_class": 3} if objective.startswith("multi") else {}
    train = lightgbm.Dataset(X, y, categorical_feature=[2] if coded else [])
    booster = lightgbm.train({**params, **multi}, train, 3)
    decide = {"binary": "half", "multiclassova": "most"}.get(objective, "none")
    assert_agrees(of(lambda: treelite.frontend.from_lightgbm(booster), X, decide)(), 300)


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([0, 1, 2]), st.integers(1, 5))
def test_sklearn_agrees_with_the_library_through_treelite(seed, kind, depth):
    X, random = rows(seed)
    options = {"n_estimators": 3, "max_depth": depth, "random_state": 0}
    model = [ExtraTreesClassifier, RandomForestRegressor, GradientBoostingRegressor][kind](**options)
    model.fit(X, random.integers(0, 4, 60))
    assert_agrees(of(lambda: treelite.sklearn.import_model(model), X, "none" if kind else "most")(), 300)
