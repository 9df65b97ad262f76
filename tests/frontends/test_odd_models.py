"""Tests models that are easily read wrongly: weights, several targets, random starts, odd objectives, odd markers."""

from __future__ import annotations

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import forestc
from forestc import load
from forestc.errors import ModelError, RowsError
from forestc.rows.encode import evaluate
from forestc.rows.given import rows_from

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 3))
TARGETS = np.column_stack([X[:, 0] + X[:, 1] ** 2, X[:, 2] * 9])
CLASSES = (X[:, 0] > 0.2).astype(int) + (X[:, 1] > 0)


def test_weights_of_a_column_transformer_are_refused():
    steps = ColumnTransformer([("s", StandardScaler(), [0, 1])], transformer_weights={"s": 10.0})
    with pytest.raises(ModelError, match="ColumnTransformer with weights"):
        load(make_pipeline(steps, RandomForestClassifier(3)).fit(X, CLASSES))


def test_bagging_of_several_targets():
    model = BaggingRegressor(DecisionTreeRegressor(max_depth=4), n_estimators=5, random_state=0).fit(X, TARGETS)
    assert np.array_equal(evaluate(load(model), X).decision, model.predict(X))


def test_a_random_start_of_boosting_is_refused():
    start = DummyClassifier(strategy="stratified", random_state=0)
    with pytest.raises(ModelError, match="predicts at random"):
        load(GradientBoostingClassifier(n_estimators=1, init=start).fit(X, CLASSES))


def test_adaboost_of_one_class_scores_nothing():
    model = AdaBoostClassifier(n_estimators=2).fit(X, CLASSES * 0)
    found = evaluate(load(model), X)
    assert np.array_equal(found.scores, model.decision_function(X))
    assert np.array_equal(found.decision, model.predict(X))


def test_a_frame_s_columns_are_found_by_name():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RandomForestClassifier(5, random_state=0).fit(frame, CLASSES)
    forest = load(model)
    expected = model.predict(frame)
    assert np.array_equal(evaluate(forest, frame[["c", "b", "a"]].assign(more=1)).decision, expected)
    assert np.array_equal(evaluate(forest, frame.to_numpy()).decision, expected)
    with pytest.raises(RowsError, match="column 'a' is missing"):
        evaluate(forest, frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("marker", [np.inf, -np.inf, 1e300, -999.0, 0.1])
def test_markers_of_missing_values(marker):
    rows = np.array([[marker], [0.0], [1.0], [0.1], [-5.0]] * 20)
    model = xgboost.XGBRegressor(n_estimators=3, max_depth=2, missing=marker)
    model.fit(rows, [0.0, 0, 5, 0, 2] * 20)
    assert np.array_equal(evaluate(load(model), rows).decision, model.predict(rows))


@pytest.mark.parametrize("kind", ["targets", "classes", "labels"])
def test_dart_rounds_past_each_output_s_own_base_score(kind):
    options = {"booster": "dart", "rate_drop": 0.5, "n_estimators": 6, "max_depth": 3}
    if kind == "targets":
        model = xgboost.XGBRegressor(**options).fit(X, TARGETS)
    else:
        y = np.where(X[:, 0] > 1.2, 2, X[:, 1] > 0).astype(int)
        model = xgboost.XGBClassifier(**options).fit(
            X, y if kind == "classes" else np.column_stack([y > 1, y > 0]).astype(int)
        )
    rows = RANDOM.normal(size=(3000, 3))
    found = evaluate(load(model), rows)
    assert np.array_equal(found.scores, model.predict(rows, output_margin=True))
    assert np.array_equal(found.decision, model.predict(rows))


@pytest.mark.parametrize(
    "objective", ["binary:logistic", "reg:squarederror", "binary:logitraw", "reg:logistic", "binary:hinge"]
)
def test_saved_classifiers_decide_as_live_ones(objective, tmp_path):
    model = xgboost.XGBClassifier(objective=objective, n_estimators=4, max_depth=2).fit(X, (CLASSES > 1).astype(int))
    model.save_model(tmp_path / "m.json")
    again = xgboost.XGBClassifier()
    again.load_model(tmp_path / "m.json")
    for source in (model, tmp_path / "m.json"):
        forest = load(source)
        assert forest.classes == (0, 1)
        assert np.array_equal(evaluate(forest, X).decision, again.predict(X))


def test_small_integers_of_an_encoder_wrap_round():
    codes = RANDOM.integers(0, 200, (2000, 1)).astype(float)
    encoder = OrdinalEncoder(dtype=np.int8, handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(encoder, DecisionTreeClassifier()).fit(codes, codes[:, 0].astype(int) % 3)
    rows = np.arange(-3, 210.0).reshape(-1, 1)
    assert np.array_equal(evaluate(load(model), rows).decision, model.predict(rows))


def test_members_of_float32_are_averaged_in_float32():
    members = [(str(k), xgboost.XGBRegressor(n_estimators=3, max_depth=3, seed=k, subsample=0.5)) for k in range(3)]
    model = VotingRegressor(members).fit(X, TARGETS[:, 0])
    rows = RANDOM.normal(size=(2000, 3))
    assert np.array_equal(evaluate(load(model), rows).decision, model.predict(rows))
    classifiers = [(str(k), xgboost.XGBClassifier(n_estimators=3, seed=k, subsample=0.5)) for k in range(3)]
    soft = VotingClassifier(classifiers, voting="soft").fit(X, CLASSES)
    found = evaluate(load(soft), rows)
    assert found.values.dtype == np.float32
    assert np.array_equal(found.decision, soft.predict(rows))


def test_dense_columns_of_bins_are_refused_by_name():
    with pytest.raises(ModelError, match="KBinsDiscretizer with encode='onehot-dense'"):
        bins = KBinsDiscretizer(3, encode="onehot-dense")
        load(make_pipeline(bins, DecisionTreeClassifier()).fit(X, CLASSES))


def test_numbers_as_categories_of_a_frame_stand_for_themselves():
    frame = pd.DataFrame({"c": pd.Categorical(RANDOM.choice([10, 20, 35], 300)), "n": X[:, 0]})
    model = HistGradientBoostingClassifier(max_iter=5).fit(frame, (frame.c == 20) ^ (frame.n > 0))
    forest = load(model)
    (batch,) = rows_from(frame, forest).batches()
    assert np.array_equal(evaluate(forest, batch.X).decision, model.predict(frame))
    assert np.array_equal(evaluate(forest, frame).decision, model.predict(frame))


def test_a_model_of_one_class_compiles_and_checks(tmp_path):
    model = RandomForestClassifier(3).fit(X, CLASSES * 0)
    done = forestc.compile(model, X, tmp_path / "one", targets=("c", "verilog"))
    assert forestc.check(done.design, X, engines=("netlist", "c")).ok


def test_classes_that_no_row_has_keep_their_labels():
    y = np.array([0, 2, 4])[CLASSES]
    options = {"iterations": 3, "depth": 2, "verbose": 0, "allow_writing_files": False, "loss_function": "MultiClass"}
    with pytest.raises(ModelError, match="5 classes but scores of 3"):
        load(catboost.CatBoostClassifier(classes_count=5, **options).fit(X, y))
    names = catboost.CatBoostClassifier(class_names=[0, 1, 2, 4], **options).fit(X, y)
    assert np.array_equal(evaluate(load(names), X).decision, names.predict(X).ravel())


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_whole_numbers_as_categories_of_lightgbm(form, tmp_path):
    def frame(codes, seed):
        random = np.random.default_rng(seed)
        return pd.DataFrame({"i": pd.Categorical(random.choice(codes, 300)), "v": random.normal(size=300)})

    rows = frame([3, 5, 7, 11, -4], 0)
    options = {"min_child_samples": 5, "max_cat_to_onehot": 1, "min_data_per_group": 5, "verbose": -1}
    model = lightgbm.LGBMClassifier(n_estimators=4, **options).fit(rows, rows.i.isin([5, 11]) ^ (rows.v > 1))
    forest, later = load(model), frame([3.0, 5.0, 7.0, 11.0, -4.0, 2.0, np.nan], 1)
    expected = model.predict(later)
    if form == "frame":
        assert np.array_equal(evaluate(forest, later).decision, expected)
        with pytest.raises(RowsError, match="column 'i' holds numbers, which may be its categories"):
            evaluate(forest, later.astype({"i": float}))
        return
    later.to_csv(tmp_path / "r.csv", index=False)
    whole = later.astype({"i": "Int64"})
    whole.to_parquet(tmp_path / "numbers.parquet")
    whole.astype({"i": "string"}).to_parquet(tmp_path / "r.parquet")
    with pytest.raises(RowsError, match="column 'i' holds numbers, which may be its categories"):
        list(rows_from(tmp_path / "numbers.parquet", forest).batches())
    found = [evaluate(forest, batch.X).decision for batch in rows_from(tmp_path / f"r.{form}", forest).batches()]
    assert np.array_equal(np.concatenate(found), expected)


@pytest.mark.parametrize("weights", [[0.3, 0.2, 0.1], [1, 2, 4]])
def test_soft_votes_are_measured_against_the_model_itself(weights, tmp_path):
    rows = RANDOM.integers(0, 4, (400, 3)).astype(float)
    members = [(str(k), DecisionTreeClassifier(max_features=1, random_state=k)) for k in range(3)]
    model = VotingClassifier(members, voting="soft", weights=weights).fit(rows, RANDOM.integers(0, 2, 400))
    done = forestc.compile(model, rows, tmp_path / "o", passes="simplify,round-leaves{change=0.2},simplify")
    found = forestc.evaluate(done.design.forest, rows).decision
    assert done.figures["agreement"] == (found == model.predict(rows)).mean()


@pytest.mark.parametrize("weights", [[0.5, 0.25, 0.75], [2, 4, 6], [1e306, 1, 1], [0.1, 0.2, 0.3]])
def test_votes_are_worth_their_weights(weights, tmp_path):
    members = [(str(k), DecisionTreeClassifier(max_depth=2, max_features=1, random_state=k)) for k in range(3)]
    model = VotingClassifier(members, weights=weights).fit(X, CLASSES)
    done = forestc.compile(
        model, X, tmp_path / "o", outputs="both", passes="simplify,round-leaves{change=0.2},simplify"
    )
    votes, worth = evaluate(done.design.forest, X).scores, done.design.forest.scale
    assert np.allclose(votes.sum(axis=1) * worth, sum(weights), rtol=2e-3)
    assert forestc.check(done.design, X, engines=("netlist", "c")).ok


def test_targets_have_their_own_scale(tmp_path):
    model = MultiOutputClassifier(GradientBoostingClassifier(n_estimators=2, max_depth=2))
    model.fit(X, np.column_stack([CLASSES > 0, CLASSES > 1]))
    done = forestc.compile(model, X, tmp_path / "o", outputs="both", targets=("c", "verilog"))
    output = done.design.manifest
    assert output["link"] == ["sigmoid", "sigmoid"]
    scales = [field["scale"] for field in output["outputs"] if field["name"].startswith("score")]
    header = done.design.path("c").read_text()
    assert all(f"SCALE_{k} {scale!r}" in header for k, scale in enumerate(scales))
    assert forestc.check(done.design, X, engines=("netlist", "c")).ok


@pytest.mark.parametrize(
    "model",
    [
        xgboost.XGBClassifier(n_estimators=2),
        lightgbm.LGBMClassifier(n_estimators=2, verbose=-1),
        catboost.CatBoostClassifier(iterations=2, depth=2, verbose=0, allow_writing_files=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_names_of_columns_and_classes_come_along(model):
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = load(model.fit(frame, y))
    names = {feature.column: feature.name.replace(" ", "_") for feature in forest.features}
    assert names == {column: frame.columns[column].replace(" ", "_") for column in names}
    assert forest.columns == 30 and forest.classes == (0, 1)


def test_a_width_beyond_all_bounds_is_refused(tmp_path):
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, CLASSES)
    model.steps[0][1].n_features_in_ = 10**15
    skops.io.dump(model, tmp_path / "m.skops")
    with pytest.raises(ModelError, match="columns"):
        load(tmp_path / "m.skops")


def test_categories_that_training_never_saw_are_counted_or_refused(tmp_path):
    def frame(texts):
        return pd.DataFrame({"c": pd.Categorical(RANDOM.choice(list(texts), 300)), "v": RANDOM.normal(size=300)})

    rows, later = frame("abc"), frame("abcd")
    labels = ((rows.c == "b") ^ (rows.v > 0.5)).astype(int)
    model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True).fit(rows, labels)
    done = forestc.compile(model, rows, tmp_path / "out", label=labels, targets=["c"])
    assert not done.figures["notes"]
    count = f"{(later.c == 'd').sum():,} values of column 'c'"
    found = forestc.check(done.design, later, engines=["c"])
    assert found.ok and len(found.notes) == 1 and found.notes[0].startswith(count) and "XGBoost" in found.notes[0]
    with pytest.raises(RowsError, match=count):
        forestc.check(done.design, later, engines=["c"], unseen="error")
    with pytest.raises(RowsError, match=count):
        forestc.compile(model, later, tmp_path / "other", targets=["c"], unseen="error")
