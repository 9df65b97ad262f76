"""Tests tiny random CatBoost models with random options: leaves, scores, values and decisions of hard rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import catboost
import numpy as np
from contract.kind import Trained, hard_rows
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc import load
from forestc.rows.encode import evaluate

ROWS = 400
REGRESSIONS = ["RMSE", "MAE", "Quantile:alpha=0.2", "MAPE", "Poisson", "Tweedie:variance_power=1.3", "LogCosh"]
REGRESSIONS += ["RMSEWithUncertainty", "MultiQuantile:alpha=0.2,0.8", "Huber:delta=0.5", "Expectile:alpha=0.7"]
CLASSES = ["Logloss", "MultiClass", "MultiClassOneVsAll", "MultiLogloss", "CrossEntropy"]
SPECIAL = [0.0, -0.0, 1e-45, -1e-45, 1.0, -1.0, 1e30, -1e30, 3.4028234e38, np.nan, np.nan]

options = st.fixed_dictionaries(
    {
        "loss_function": st.sampled_from(REGRESSIONS + CLASSES),
        "grow_policy": st.sampled_from(["SymmetricTree", "SymmetricTree", "Lossguide", "Depthwise"]),
        "depth": st.integers(1, 7),
        "border_count": st.sampled_from([1, 8, 254]),
        "nan_mode": st.sampled_from(["Min", "Max"]),
        "l2_leaf_reg": st.sampled_from([0.5, 3.0]),
        "learning_rate": st.sampled_from([0.03, 0.9]),
        "boost_from_average": st.booleans(),
        "bootstrap_type": st.sampled_from(["No", "Bayesian", "Bernoulli"]),
        "random_strength": st.sampled_from([0.0, 5.0]),
    }
)


def data(random: np.random.Generator, special: bool) -> Any:
    n, columns = int(random.integers(20, 200)), 4
    X = random.normal(size=(n, columns)) * 10.0 ** random.integers(-3, 4, columns)
    X[:, 1] = np.round(X[:, 1])
    if special:
        X = np.where(random.random(X.shape) < 0.15, random.choice(SPECIAL, X.shape), X)
    return X.astype(np.float32), (np.nan_to_num(X[:, 0]) > 0) + random.random(n)


@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(options, st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_random_models(params: dict[str, Any], seed: int, special: bool, from_file: bool, dtype: type) -> None:
    random = np.random.default_rng(seed)
    X, y = data(random, special)
    loss = params["loss_function"]
    target: Any = y
    if loss == "MultiLogloss":
        target = np.column_stack([y > 1, y > 0.5, random.random(len(y)) < 0.5]).astype(int)
    elif loss == "CrossEntropy":
        target = y / 2
    elif loss in CLASSES:
        names: Any = random.choice([0, 1, 2]) + np.arange(3) if seed % 2 else np.array(["no", "yes", "so"])
        target = names[np.digitize(y, [0.6, 1.2] if loss != "Logloss" else [1.0])]
    if loss in ("MAPE", "Poisson") or loss.startswith("Tweedie"):
        target = target + 0.1
    if loss not in ("RMSE", "MAE", "Quantile:alpha=0.2", "MAPE", "Logloss", "CrossEntropy"):
        params = {key: value for key, value in params.items() if key != "boost_from_average"}
    more = {"iterations": 4, "verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": seed % 1000}
    model = (catboost.CatBoostClassifier if loss in CLASSES else catboost.CatBoostRegressor)(**params, **more)
    try:
        model.fit(X, target)
    except catboost.CatBoostError:  # The options leave too little data to learn from.
        return
    output = model
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.json"
        model.save_model(str(path), format="json")
        forest = load(path if from_file else model)
        if from_file:
            output = catboost.CatBoost().load_model(str(path), format="json")
    rows = hard_rows(forest, Trained(model, X, model.predict, dtype=dtype), ROWS, seed % 1000)
    found = evaluate(forest, rows)
    assert np.array_equal(found.leaves, output.calc_leaf_indexes(rows))
    scores = model.predict(rows, prediction_type="RawFormulaVal")
    assert np.array_equal(found.scores, scores.reshape(ROWS, -1))
    decision = model.predict(rows).reshape(found.decision.shape)
    if loss in CLASSES:
        assert np.array_equal(found.decision, decision)
        values = model.predict_proba(rows)
        values = values[:, 1:] if loss in ("Logloss", "CrossEntropy") else values
        assert np.allclose(found.values, values, rtol=2e-15, atol=0)  # CatBoost has its own exp.
    else:
        # CatBoost's own exp(x) is wrong by about |x| units in the last place.
        slack = 2.0**-52 * (4 + 2 * np.abs(found.scores))
        assert (np.abs(found.values - decision.reshape(ROWS, -1)) <= slack * np.abs(found.values)).all()
