"""Tests copies of estimators: trained again on all rows they are the same model."""

from __future__ import annotations

from functools import cache

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder

from forestc import load
from forestc.errors import ForestcError
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import evaluate
from forestc.rows.given import rows_for_model
from forestc.search.folds import folds_of
from forestc.training.again import trained_again
from forestc.training.seeds import seeded


@cache
def rows(classes=2):
    X, y = make_classification(
        500, 8, n_informative=5, n_classes=classes, flip_y=0.1, class_sep=0.7, random_state=0
    )  # fmt: skip
    return X.astype(np.float32).astype(np.float64), y


def same_trees(one, other):
    """Whether two forests have the same leaves in each tree, up to their order."""
    pairs = zip(one.trees, other.trees, strict=True)
    return all(np.allclose(np.sort(a.values, axis=None), np.sort(b.values, axis=None), rtol=1e-6) for a, b in pairs)


XGBOOST, LIGHTGBM = {"n_estimators": 60, "n_jobs": 1}, {"n_estimators": 60, "n_jobs": 1, "verbose": -1}
QUIET = [lightgbm.log_evaluation(0)]
STOPPED = {
    "xgboost": (xgboost.XGBClassifier(**XGBOOST, early_stopping_rounds=5), {"verbose": False}),
    "xgboost, callback": (
        xgboost.XGBClassifier(**XGBOOST, callbacks=[xgboost.callback.EarlyStopping(rounds=5)]),
        {"verbose": False},
    ),
    "lightgbm": (lightgbm.LGBMClassifier(**LIGHTGBM, early_stopping_round=5), {"callbacks": QUIET}),
    "lightgbm, rounds": (lightgbm.LGBMClassifier(**LIGHTGBM, early_stopping_rounds=5), {"callbacks": QUIET}),
    "lightgbm, callback": (
        lightgbm.LGBMClassifier(**LIGHTGBM),
        {"callbacks": [lightgbm.early_stopping(5, verbose=False), *QUIET]},
    ),
    "catboost": (
        catboost.CatBoostClassifier(
            iterations=60, early_stopping_rounds=5, use_best_model=True, thread_count=1, allow_writing_files=False
        ),
        {"verbose": False},
    ),
}


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("kind", STOPPED)
def test_estimators_that_stopped_early_train_their_best_rounds_again(kind):
    X, y = rows()
    model, more = STOPPED[kind]
    model.fit(X[:400], y[:400], eval_set=[(X[400:], y[400:])], **more)
    source = load(model)
    assert 1 < len(source.trees) < 60
    assert same_trees(trained_again(model, source, X[:400], y[:400], None, 0), source)


def test_a_model_of_a_single_round_is_trained_again():
    X, y = rows()
    model = xgboost.XGBClassifier(n_estimators=1, early_stopping_rounds=5, n_jobs=1)
    model.fit(X[:400], y[:400], eval_set=[(X[400:], y[400:])], verbose=False)
    source = load(model)
    assert len(source.trees) == 1 and same_trees(trained_again(model, source, X[:400], y[:400], None, 0), source)


CATBOOST = (
    {"depth": 3},
    {"learning_rate": 0.7, "l2_leaf_reg": 9, "silent": True},
    {"class_weights": {0: 1, 1: 6}, "logging_level": "Silent"},
    {"class_weights": [1, 6], "monotone_constraints": [1, 0, 0, 0, 0, 0, 0, 0]},
    {"depth": 6, "rsm": 0.5, "cat_features": []},
)


@pytest.mark.parametrize("more", CATBOOST)
def test_catboost_is_copied_by_its_parameters(more, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    X, y = rows()
    given = {"iterations": 8, "allow_writing_files": False, "thread_count": 1, "random_seed": 3}
    model = catboost.CatBoostClassifier(**given, **more)
    model.fit(X, y, **({} if more.keys() & {"silent", "logging_level"} else {"verbose": False}))
    parameters = model.get_params()
    model.save_model("m.cbm")
    for live in (model, catboost.CatBoostClassifier().load_model("m.cbm")):
        source = load(live)
        assert same_trees(trained_again(live, source, X, y, None, 0), source)
        assert folds_of(live, source, ArrayRows(X, y)).how == "models trained again with the same parameters"
    assert model.get_params() == parameters and [path.name for path in tmp_path.iterdir()] == ["m.cbm"]
    assert capfd.readouterr().out == ""


def test_catboost_is_copied_in_a_pipeline_and_as_the_general_class():
    X, y = rows()
    quiet = {"iterations": 8, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    steps = make_pipeline(MinMaxScaler(), catboost.CatBoostClassifier(**quiet, class_weights=[1, 3])).fit(X, y)
    general = catboost.CatBoost(quiet | {"loss_function": "Logloss"}).fit(X, y)
    for model in (steps, general):
        assert same_trees(trained_again(model, load(model), X, y, None, 0), load(model))
    assert seeded(steps, 0)[1].get_params()["class_weights"] == [1, 3]


@pytest.mark.parametrize("iterations", [3, "3"])
def test_as_many_rounds_are_read_of_copies_as_of_the_model(iterations):
    X, y = rows()
    quiet = {"iterations": 8, "verbose": False, "allow_writing_files": False}
    for model in (xgboost.XGBClassifier(n_estimators=8), catboost.CatBoostClassifier(**quiet)):
        source = load(model.fit(X, y), iterations=iterations)
        found = folds_of(model, source, ArrayRows(X, y), iterations=iterations)
        assert [len(fold.model.trees) for fold in found.folds] == [3] * 5


CATEGORIES = (
    lightgbm.LGBMClassifier(n_estimators=8, num_leaves=6, min_child_samples=5, verbose=-1, n_jobs=1),
    xgboost.XGBClassifier(n_estimators=8, max_depth=3, enable_categorical=True, n_jobs=1),
    HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype", random_state=0),
)


@pytest.mark.parametrize("model", CATEGORIES, ids=lambda model: type(model).__name__)
def test_columns_of_categories_are_trained_as_such(model):
    random = np.random.default_rng(0)
    kinds = pd.Categorical(random.choice(list("stuvw"), 800))
    frame = pd.DataFrame({"a": random.random(800), "kind": kinds, "b": random.random(800)})
    y = ((frame.a > 0.5) ^ frame.kind.isin(["t", "w"])).astype(int).to_numpy()
    given, source, _ = rows_for_model(frame, load(model.fit(frame, y)), y)
    (batch,) = given.batches()
    assert same_trees(trained_again(model, source, batch.X, y, None, 0), source)


@pytest.mark.parametrize(
    "steps",
    [
        [SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")],
        [SimpleImputer(strategy="constant", fill_value="k"), OneHotEncoder(categories=[list("wvutsk")])],
        [OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)],
    ],
    ids=["most frequent", "constant", "without imputer"],
)
@pytest.mark.parametrize("dtype", [object, "category"])
def test_missing_texts_of_a_pipeline_are_trained_as_such(steps, dtype):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.random(800), "kind": random.choice(list("stuvw"), 800)})
    y = ((frame.a > 0.5) ^ frame.kind.isin(["t", "w"])).astype(int).to_numpy()
    frame.loc[random.random(800) < 0.2, "kind"] = np.nan
    frame["kind"] = frame.kind.astype(dtype)
    columns = ColumnTransformer([("kind", make_pipeline(*steps), ["kind"])], remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(5, max_depth=4, random_state=0)).fit(frame, y)
    given, source, _ = rows_for_model(frame, load(model), y)
    (batch,) = given.batches()
    copy = trained_again(model, source, batch.X, y, None, 0)
    assert same_trees(copy, source)
    assert np.array_equal(evaluate(copy, batch.X).index, evaluate(source, batch.X).index)
    few = np.isin(batch.X[:, 1], [0, 1, np.nan], invert=True)  # a copy that knows fewer texts keeps the codes
    part = trained_again(model, source, batch.X[few], y[few], None, 0)
    again = clone(model).fit(frame[few], y[few])
    assert np.array_equal(evaluate(part, batch.X[few]).index, again.predict(frame[few]))


def test_libraries_that_refuse_the_rows_are_named():
    X, y = rows()
    model = xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(X, y)
    source = load(model)
    with pytest.raises(ForestcError, match=r"XGBClassifier can't be trained again .*held_out=FILE"):
        trained_again(model.set_params(booster="none of them"), source, X, y, None, 0)
