"""Tests tiny random XGBoost models with random options: leaves, margins and decisions of hard rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import xgboost
from contract.agree import assert_agrees
from contract.kind import Trained
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

OBJECTIVES = [
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:logistic",
    "binary:logistic",
    "binary:hinge",
    "count:poisson",
]
OBJECTIVES += ["multi:softprob", "multi:softmax", "survival:cox", "rank:pairwise", "reg:quantileerror", "reg:tweedie"]
OBJECTIVES += ["binary:logitraw", "reg:pseudohubererror", "reg:squaredlogerror"]

options = st.fixed_dictionaries(
    {
        "objective": st.sampled_from(OBJECTIVES),
        "booster": st.sampled_from(["gbtree", "gbtree", "dart"]),
        "tree_method": st.sampled_from(["hist", "exact", "approx"]),
        "max_depth": st.integers(1, 5),
        "eta": st.sampled_from([0.1, 0.3, 1.0]),
        "num_parallel_tree": st.sampled_from([1, 1, 3]),
        "subsample": st.sampled_from([1.0, 0.6]),
        "gamma": st.sampled_from([0.0, 0.5]),
        "min_child_weight": st.sampled_from([0.0, 1.0, 5.0]),
        "rate_drop": st.sampled_from([0.0, 0.5]),
        "max_cat_to_onehot": st.sampled_from([1, 4, 100]),
        "multi_strategy": st.sampled_from(["one_output_per_tree", "multi_output_tree"]),
        "base_score": st.sampled_from([None, 0.3, 0.5]),
    }
)


@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(options, st.integers(0, 2**31), st.booleans(), st.sampled_from(["", "json", "ubj"]), st.integers(1, 3))
def test_random_models(params, seed, coded, form, targets):
    random = np.random.default_rng(seed)
    n = int(random.integers(10, 120))
    X = random.normal(size=(n, 4)) * 10.0 ** random.integers(-3, 4, 4)
    X[:, 1] = np.round(X[:, 1])
    X[:, 3] = random.integers(0, random.integers(2, 40), n)
    X[random.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num((X[:, 0] > 0) + X[:, 3] % 3 + random.random(n))
    objective = params["objective"]
    params = {key: value for key, value in params.items() if value is not None}
    if params["booster"] != "dart":
        del params["rate_drop"]
    elif targets > 1:
        params["multi_strategy"] = "one_output_per_tree"
    types = ["q", "q", "q", "c"] if coded and params["tree_method"] != "exact" else None
    if objective.startswith("multi:"):
        y = np.digitize(y, [0.8, 1.9])
        params["num_class"] = 3
        params.pop("base_score", None)
    elif objective.startswith(("binary", "reg:logistic")):
        y = (y > 1.2).astype(float)
    elif objective == "reg:quantileerror":
        params["quantile_alpha"] = [0.2, 0.7][: 1 + seed % 2]
    elif objective == "reg:squarederror":
        y = np.column_stack([y * (k + 1) for k in range(targets)])
    if (
        objective != "reg:squarederror"
        or targets == 1
        or params["tree_method"] != "hist"
        or params["num_parallel_tree"] > 1
    ):
        params["multi_strategy"] = "one_output_per_tree"
    matrix = {"feature_types": types, "enable_categorical": types is not None}
    booster = xgboost.train({**params, "nthread": 1, "seed": seed % 1000}, xgboost.DMatrix(X, y, **matrix), 3)

    def asked(rows):
        return xgboost.DMatrix(rows, **matrix)

    def decision(rows):
        found = booster.predict(asked(rows))
        if objective == "binary:logistic":
            return (found > 0.5).astype(int)
        return np.argmax(found, axis=1) if objective == "multi:softprob" else found

    with tempfile.TemporaryDirectory() as name:
        source = booster
        if form:
            source = Path(name) / f"m.{form}"
            booster.save_model(source)
            booster.load_model(source)  # The model is reloaded because a file rounds base_score.
        model = Trained(
            source, X, decision, lambda rows: booster.predict(asked(rows), output_margin=True),
            lambda rows: booster.predict(asked(rows), pred_leaf=True), infinite=False, value_ulps=4,
        )  # fmt: skip
        forest = assert_agrees(model, 300)
    assert forest.trees and forest.columns == 4
