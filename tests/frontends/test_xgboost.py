from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xgboost
from models import BINARY, REGRESSION, trained
from mutations import assert_refused, changed, read_json

from forestc import load
from forestc.errors import ModelError
from forestc.frontends.xgboost.reader import CLASS_1_MARGIN
from forestc.rows.encode import evaluate

CASES = Path(__file__).parents[1] / "cases" / "xgboost"


@pytest.mark.parametrize("path", sorted(CASES.glob("*.npz")), ids=lambda p: p.stem)
@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_models_of_every_version_say_what_their_library_said(path, suffix):
    forest = load(path.with_suffix(suffix))
    output = np.load(path)
    found = evaluate(forest, output["X"])
    assert np.array_equal(found.leaves, output["leaves"])
    assert np.array_equal(found.scores, output["margins"])
    assert np.allclose(found.values, output["values"], rtol=2e-7, atol=0)
    assert forest.provenance.version.startswith(path.stem.split("_")[0])


def test_class_1_starts_at_the_library_s_own_margin():
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix([[0.0], [1.0]], label=[0, 1]), 0)
    at = np.array([np.nextafter(np.float32(CLASS_1_MARGIN), np.float32(0)), CLASS_1_MARGIN], dtype=np.float32)
    data = xgboost.DMatrix(np.zeros((2, 1), dtype=np.float32), base_margin=at)
    assert np.array_equal(booster.predict(data, output_margin=True), at)
    assert (booster.predict(data) > 0.5).tolist() == [False, True]


@pytest.mark.parametrize("objective", ["count:poisson", "reg:gamma", "reg:tweedie", "reg:absoluteerror"])
def test_links_of_regression(objective):
    X, y = REGRESSION(return_X_y=True)
    model = xgboost.XGBRegressor(objective=objective, n_estimators=8).fit(X, y)
    found = evaluate(load(model), X)
    assert np.array_equal(found.scores[:, 0], model.get_booster().predict(xgboost.DMatrix(X), output_margin=True))
    assert np.allclose(found.decision, model.predict(X), rtol=2e-7, atol=0)


def document():
    model, _, _ = trained("xgboost-binary")
    return json.loads(model.get_booster().save_raw("json"))


def change(path, value):
    """Returns the model's document with one value changed."""
    return changed(document(), path, value)


TREE = ("learner", "gradient_booster", "model", "trees", 3)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("learner",), KeyError, "has no 'learner'"),
        (("learner", "objective", "name"), "reg:guess", "objective 'reg:guess' is not known"),
        (("learner", "objective", "name"), 7, "is not text"),
        (("learner", "gradient_booster", "name"), "gblinear", "booster 'gblinear' is not read"),
        (("learner", "gradient_booster", "name"), "dart", "has no 'gbtree'"),
        (("learner", "learner_model_param", "num_target"), "-1", "is -1, outside 0"),
        (("learner", "learner_model_param", "num_class"), "3", "with num_class 3"),
        (("learner", "learner_model_param", "num_feature"), "-1", "is -1, outside 1 to"),
        (("learner", "learner_model_param", "num_feature"), "1", "splits on feature"),
        (("learner", "learner_model_param", "num_feature"), "99999999999999", "outside 1 to"),
        (("learner", "learner_model_param", "base_score"), "many", "is not a number: 'many'"),
        (("learner", "learner_model_param", "base_score"), "[5E-1,5E-1]", "2 finite numbers, the model 1 outputs"),
        (("learner", "learner_model_param", "base_score"), "2", "is not a probability"),
        (("learner", "feature_names"), ["a"], "1 feature names for 30 features"),
        (("learner", "gradient_booster", "model", "tree_info"), [0], "20 trees and 1 entries"),
        (("learner", "gradient_booster", "model", "trees"), [], "has 0 trees"),
        ((*TREE, "left_children"), "x", "trees[3].left_children; "),
        ((*TREE, "left_children", 0), 10**9, "has a child outside"),
        ((*TREE, "left_children", 0), 2**70, "trees[3]"),
        ((*TREE, "left_children", 0), 0, "a cycle"),
        ((*TREE, "left_children", 0), 1.5, "not whole numbers"),
        ((*TREE, "split_indices"), [1, 2], "has 2 split_indices"),
        ((*TREE, "split_conditions", 0), float("nan"), "not a number (NaN)"),
        ((*TREE, "split_conditions", -1), float("inf"), "a leaf value is not finite"),
        ((*TREE, "split_type", 0), 1, "has categories for nodes other than"),
        ((*TREE, "tree_param", "size_leaf_vector"), "4", "has leaves of 4 values for 1 outputs"),
        ((*TREE, "sum_hessian"), [1.0], "has 1 sum_hessian"),
    ],
)
def test_damage_is_named_with_its_place(path, value, message):
    assert_refused(read_json, change(path, value), message.removesuffix("; "))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"model"', "[" * 100_000, '{"learner":' * 5_000])
def test_json_of_something_else(text):
    with pytest.raises(ModelError):
        read_json(text.encode(), "m.json")


def test_an_unfitted_estimator_is_refused():
    with pytest.raises(ModelError, match="not fitted"):
        load(xgboost.XGBClassifier())


def test_a_marker_for_missing_values_is_none_for_categories():
    X = np.random.default_rng(0).integers(0, 5, (100, 2)).astype(float)
    model = xgboost.XGBRegressor(
        n_estimators=2, missing=-1.0, feature_types=["c", "c"], enable_categorical=True, tree_method="hist"
    )
    with pytest.raises(ModelError, match=r"missing=-1.0 in a column of categories; .*use NaN"):
        load(model.fit(X, X[:, 0] % 3))


def frame(seed, n=300):
    import pandas as pd

    random = np.random.default_rng(seed)
    color = pd.Categorical(random.choice(["red", "green", "blue", "dark red"], n))
    return pd.DataFrame({"color": color, "n": random.normal(size=n)})


def test_rows_may_hold_the_names_of_categories(tmp_path):
    X = frame(0)
    model = xgboost.XGBRegressor(n_estimators=5, enable_categorical=True, tree_method="hist")
    model.fit(X, (X.color == "red") * 2.0 + X.n)
    model.save_model(tmp_path / "m.json")
    rows = frame(1)
    for source in (model, tmp_path / "m.json"):
        forest = load(source)
        assert forest.features[0].labels == ("blue", "dark red", "green", "red")
        assert np.array_equal(evaluate(forest, rows).decision, model.predict(rows))
        assert np.array_equal(evaluate(forest, rows.to_numpy()).decision, model.predict(rows))


def test_names_beyond_ascii_are_read_where_offsets_count_bytes(tmp_path):
    X = frame(0)
    model = xgboost.XGBRegressor(n_estimators=5, enable_categorical=True, tree_method="hist")
    model.fit(X, (X.color == "red") * 2.0 + X.n).save_model(tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    encoded = document["learner"]["gradient_booster"]["model"]["cats"]["enc"]
    names = next(entry for entry in encoded if len(entry.get("values", [])))
    names["values"] = [byte - 256 * (byte > 127) for byte in "blueröödgreenred".encode()]
    names["offsets"] = [0, 4, 10, 15, 18]
    for version, labels in (([3, 4, 1], ("blue", "rööd", "green", "red")), ([3, 2, 0], ())):
        document["version"] = version
        (tmp_path / "m.json").write_text(json.dumps(document))
        forest = load(tmp_path / "m.json")
        assert tuple(forest.features[0].labels) == labels
        assert bool(forest.provenance.notes) is not bool(labels)


def test_numbers_as_names_of_categories_are_refused():
    import pandas as pd

    X = pd.DataFrame({"k": pd.Categorical(np.arange(200) % 4 * 10)})
    model = xgboost.XGBRegressor(n_estimators=2, enable_categorical=True, tree_method="hist")
    with pytest.raises(ModelError, match="numbers as categories that are not their codes"):
        load(model.fit(X, np.arange(200) % 4 == 1))


def categorical_document():
    X = np.random.default_rng(0).integers(0, 9, (300, 2)).astype(float)
    data = xgboost.DMatrix(X, label=X[:, 0] % 3, feature_types=["c", "c"], enable_categorical=True)
    model = xgboost.train({"tree_method": "hist", "max_depth": 3, "max_cat_to_onehot": 1}, data, 2)
    return json.loads(model.save_raw("json"))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("categories", [10**6], "outside 0 to 65535"),
        ("categories", [-1] * 100, "a category is outside"),
        ("categories_nodes", [0], "of different lengths"),
        ("categories_segments", lambda old: [10**9] * len(old), "outside the"),
        ("categories_sizes", lambda old: [-1] * len(old), "outside the"),
        ("split_type", lambda old: [0, *old[1:]], "for nodes other than"),
        ("split_type", lambda old: [2, *old[1:]], "for nodes other than"),
        ("split_type", [1], "of different lengths"),
    ],
)
def test_damaged_categories_are_refused(key, value, message):
    document = categorical_document()
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    tree[key] = value(tree[key]) if callable(value) else value
    if key == "categories":
        tree["categories_segments"] = [0 for _ in tree["categories_segments"]]
        tree["categories_sizes"] = [1 for _ in tree["categories_sizes"]]
    assert_refused(read_json, json.dumps(document).encode(), message)


def test_a_column_is_not_a_number_and_a_category():
    document = categorical_document()
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    node = tree["categories_nodes"][-1]
    for key in ("nodes", "segments", "sizes"):
        tree[f"categories_{key}"].pop()
    tree["split_type"][node] = 0
    with pytest.raises(ModelError, match="split as a number and as a category"):
        read_json(json.dumps(document).encode(), "m.json")


def test_the_best_iteration_counts_wherever_it_comes_from(tmp_path):
    X, y = BINARY(return_X_y=True)
    stop = xgboost.callback.EarlyStopping(rounds=3)
    model = xgboost.XGBClassifier(n_estimators=60, learning_rate=0.8, callbacks=[stop])
    model.fit(X[:300], y[:300], eval_set=[(X[300:], y[300:])], verbose=False)
    model.save_model(tmp_path / "m.json")
    again = xgboost.XGBClassifier()
    again.load_model(tmp_path / "m.json")
    rounds = model.get_booster().num_boosted_rounds()
    for source in (model, again, tmp_path / "m.json"):
        assert len(load(source).trees) == model.best_iteration + 1 < rounds
    # A Booster predicts with all of its trees, and so does its file.
    booster = model.get_booster()
    booster.set_attr(scikit_learn=None)
    booster.save_model(tmp_path / "b.ubj")
    for source in (booster, tmp_path / "b.ubj"):
        assert len(load(source).trees) == rounds
        found = evaluate(load(source), X).scores[:, 0]
        assert np.array_equal(found, booster.predict(xgboost.DMatrix(X), output_margin=True))


@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_one_class_give_a_clipped_base_score(label):
    X, _ = BINARY(return_X_y=True)
    data = xgboost.DMatrix(X, label=np.full(len(X), label))
    booster = xgboost.train({"objective": "binary:logistic"}, data, 2)
    assert np.array_equal(evaluate(load(booster), X).scores[:, 0], booster.predict(data, output_margin=True))


def test_a_classifier_with_a_regression_objective_is_refused():
    X, y = BINARY(return_X_y=True)
    with pytest.raises(ModelError, match="a classifier with a regression objective"):
        load(xgboost.XGBClassifier(n_estimators=2, objective="count:poisson").fit(X, y))


def test_a_promised_width_costs_nothing():
    width = ("learner", "learner_model_param", "num_feature")
    assert len(read_json(changed(document(), width, "1000000"), "m.json").features) <= 30
    with pytest.raises(ModelError, match="outside 1 to"):
        read_json(changed(document(), width, "16777216"), "m.json")


def test_more_classes_than_trees_are_refused():
    model, _, _ = trained("xgboost-multi")
    root = json.loads(model.get_booster().save_raw("json"))
    root["learner"]["learner_model_param"]["num_class"] = "65536"
    root["learner"]["learner_model_param"]["base_score"] = "5E-1"
    with pytest.raises(ModelError, match="80 trees and 80 entries in tree_info for 65536 outputs"):
        read_json(json.dumps(root).encode(), "m.json")


@pytest.mark.parametrize("objective", ["reg:logistic", "binary:logitraw", "count:poisson", "reg:gamma", "reg:tweedie"])
def test_base_scores_become_the_library_s_own_margins(objective):
    scores = np.append(np.random.default_rng(0).uniform(0.01, 0.99, 198), [0.48449895, 0.98515123]).astype(np.float32)
    data = xgboost.DMatrix(np.zeros((2, 1)), np.full((2, 2), 0.5))
    document = json.loads(bytes(xgboost.train({"objective": objective, "base_score": 0.5}, data, 1).save_raw("json")))
    learner = document["learner"]
    learner["learner_model_param"] |= {"num_target": "200", "base_score": f"[{','.join(map(repr, scores.tolist()))}]"}
    model = learner["gradient_booster"]["model"]
    tree = model["trees"][0]

    def grown(trees):
        model.update(trees=[tree] * trees, tree_info=list(range(trees)), iteration_indptr=[0, trees][: 1 + (trees > 0)])
        model["gbtree_model_param"]["num_trees"] = str(trees)
        return json.dumps(document).encode()

    booster = xgboost.Booster()
    booster.load_model(bytearray(grown(0)))
    margins = booster.predict(xgboost.DMatrix(np.zeros((1, 1))), output_margin=True)
    assert np.array_equal(read_json(grown(len(scores)), "m.json").bias, margins[0])
