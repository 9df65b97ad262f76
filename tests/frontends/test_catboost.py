from __future__ import annotations

import json
import tracemalloc

import catboost
import numpy as np
import pytest
from mutations import assert_refused, changed
from sklearn.datasets import load_breast_cancer, load_iris

from forestc import load
from forestc.errors import ModelError
from forestc.frontends import read_bytes
from forestc.rows.encode import evaluate

QUIET = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "iterations": 4, "depth": 3}
CLASSIFIER, REGRESSOR = catboost.CatBoostClassifier, catboost.CatBoostRegressor
BINARY, MULTI = load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)
LOSSGUIDE = {"grow_policy": "Lossguide", "max_leaves": 12, "depth": 6}


def exported(tmp_path, model):
    model.save_model(str(tmp_path / "m.json"), format="json")
    return json.loads((tmp_path / "m.json").read_text())


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("catboost")
    made = {"binary": CLASSIFIER(**QUIET).fit(*BINARY), "multi": CLASSIFIER(**QUIET).fit(*MULTI)}
    made["nested"] = CLASSIFIER(**QUIET | LOSSGUIDE).fit(*MULTI)
    made["regression"] = REGRESSOR(**QUIET | LOSSGUIDE).fit(*BINARY)
    return {name: exported(folder, model) for name, model in made.items()}


def test_a_file_says_what_the_model_said_and_not_what_the_library_makes_of_it(tmp_path):
    """CatBoost's own JSON reader is off by a unit in the last place for some leaf values."""
    model = REGRESSOR(**QUIET | {"iterations": 40}).fit(*BINARY)
    exported(tmp_path, model)
    found = evaluate(load(tmp_path / "m.json"), BINARY[0]).scores[:, 0]
    again = catboost.CatBoost().load_model(str(tmp_path / "m.json"), format="json").predict(BINARY[0])
    assert np.array_equal(found, model.predict(BINARY[0]))
    assert np.allclose(found, again, rtol=0, atol=1e-13)


def test_trees_of_a_single_leaf_are_read(tmp_path):
    X, y = np.random.default_rng(0).random((60, 3)), np.arange(60) % 2
    model = CLASSIFIER(**QUIET | {"iterations": 40, "rsm": 0.3, "random_seed": 0}).fit(X, y)
    assert any(tree["splits"] is None for tree in exported(tmp_path, model)["oblivious_trees"])
    assert np.array_equal(evaluate(load(model), X).scores[:, 0], model.predict(X, prediction_type="RawFormulaVal"))


@pytest.mark.parametrize("policy", ["Lossguide", "Depthwise"])
def test_leaves_are_numbered_as_the_model_at_hand_does(tmp_path, policy):
    model = CLASSIFIER(**QUIET | {"grow_policy": policy, "depth": 6}).fit(*MULTI)
    exported(tmp_path, model)
    model.save_model(str(tmp_path / "m.cbm"))
    for form in ("json", "cbm"):
        again = CLASSIFIER().load_model(str(tmp_path / f"m.{form}"), format=form)
        assert np.array_equal(evaluate(load(again), MULTI[0]).leaves, again.calc_leaf_indexes(MULTI[0]))
    assert np.array_equal(evaluate(load(model), MULTI[0]).leaves, model.calc_leaf_indexes(MULTI[0]))


@pytest.mark.parametrize("probability", [None, 0.5, 0.3, 0.7, 0.999, 1e-6, 0.0, 0.25])
def test_class_1_starts_at_the_library_s_own_score(probability):
    model = CLASSIFIER(**QUIET | {"iterations": 1, "depth": 1}).fit(*BINARY)
    model.set_probability_threshold(probability)
    at = load(model).decision.threshold
    for score, label in ((at, 1), (float(np.nextafter(at, -1e308)), 0)):
        model.set_leaf_values(np.array([score, score]))
        assert model.copy().predict(BINARY[0][:1])[0] == (1 if probability == 0.0 else label)
        assert evaluate(load(model), BINARY[0][:1]).decision[0] == (1 if probability == 0.0 else label)


def test_ties_between_classes_go_to_the_first():
    model = CLASSIFIER(**QUIET | {"iterations": 1, "depth": 1}).fit(*MULTI)
    for values in ([0, 0, 0], [1, 1, 0], [0, 1, 1], [0, 1e-300, 0]):
        model.set_leaf_values(np.array(values * 2, dtype=float))
        assert evaluate(load(model), MULTI[0][:1]).decision[0] == model.copy().predict(MULTI[0][:1]).ravel()[0]


@pytest.mark.parametrize(("scale", "bias"), [(0.5, 1.0), (2.0, 0.1), (0.25, -3.0)])
def test_scales_that_are_powers_of_two(scale, bias):
    model = REGRESSOR(**QUIET).fit(*BINARY)
    model.set_scale_and_bias(scale, bias)
    assert np.array_equal(evaluate(load(model), BINARY[0]).scores[:, 0], model.copy().predict(BINARY[0]))


@pytest.mark.parametrize(("scale", "bias"), [(0.3, 0.1), (7.0, -2.25), (1e-3, 1e3)])
def test_scales_that_are_no_powers_of_two(scale, bias):
    for make in (CLASSIFIER, REGRESSOR):
        model = make(**QUIET).fit(*BINARY)
        model.set_scale_and_bias(scale, bias)
        found, model = evaluate(load(model), BINARY[0]), model.copy()
        assert np.array_equal(found.decision, model.predict(BINARY[0]))
        raw = model.predict(BINARY[0], prediction_type="RawFormulaVal")
        assert make is CLASSIFIER or np.array_equal(found.values[:, 0], raw)


def test_sums_of_models_predict_scores():
    models = [REGRESSOR(**QUIET | {"random_seed": seed}).fit(*BINARY) for seed in (0, 1)]
    both = catboost.sum_models(models, weights=[0.3, 0.7])
    assert np.array_equal(evaluate(load(both), BINARY[0]).decision, both.predict(BINARY[0]))


def test_a_category_that_no_tree_reads_is_a_column_like_others():
    X = np.column_stack([MULTI[0], np.repeat(["a"], 150)]).astype(object)[:, [4, 0, 1, 2, 3]]
    forest = load(CLASSIFIER(**QUIET, ignored_features=[0]).fit(X, MULTI[1], cat_features=[0]))
    assert forest.columns == 5 and all(feature.column for feature in forest.features)


def test_embeddings_are_refused():
    rows = [[list(map(float, row))] for row in MULTI[0]]
    model = CLASSIFIER(**QUIET).fit(catboost.Pool(rows, MULTI[1] > 0, embedding_features=[0]))
    with pytest.raises(ModelError, match="CatBoost can't write it as JSON"):
        load(model)


def test_an_unfitted_model_is_refused():
    with pytest.raises(ModelError, match="not fitted"):
        load(CLASSIFIER())


TREE = ("oblivious_trees", 1)
NODE = ("trees", 1, "left")


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("binary", ("features_info", "float_features"), 3, "float_features; is not a list"),
        ("binary", ("features_info", "float_features", 0, "flat_feature_index"), 2**40, "outside 0 to"),
        ("binary", ("features_info", "float_features", 0, "flat_feature_index"), 1, "column 1 is another feature's"),
        ("binary", ("features_info", "float_features", 0, "nan_value_treatment"), "AsOne", "'AsOne' is not known"),
        ("binary", ("features_info", "float_features", 0, "borders"), [2, 1], "does not ascend"),
        ("binary", ("features_info", "float_features", 0, "borders"), [1e300], "not finite"),
        ("binary", ("features_info", "float_features", 0, "borders"), ["1"], "is not an array of numbers"),
        ("binary", ("scale_and_bias",), KeyError, "has no 'scale_and_bias'"),
        ("binary", ("scale_and_bias",), [1], "is not a scale and a bias"),
        ("multi", ("scale_and_bias", 0), 0.3, "the scale is 0.3"),
        ("binary", ("scale_and_bias", 0), 0, "the scale is 0.0"),
        ("binary", ("scale_and_bias", 0), -1, "the scale is -1.0"),
        ("binary", ("scale_and_bias", 0), float("nan"), "the scale is nan"),
        ("binary", ("scale_and_bias", 1), [], "has 0 biases"),
        ("binary", ("scale_and_bias", 1), [1, 2], "has 8 leaf_values for 3 levels and 2 outputs"),
        ("binary", ("oblivious_trees",), [], "the forest has no trees"),
        ("binary", ("oblivious_trees",), KeyError, "has no 'trees'"),
        ("binary", (*TREE, "leaf_values"), [1, 2], "has 2 leaf_values for 3 levels and 1 outputs"),
        ("binary", (*TREE, "leaf_values", 0), float("inf"), "a leaf value is not finite"),
        ("binary", (*TREE, "leaf_values", 0), "1", "is not an array of numbers"),
        ("binary", (*TREE, "leaf_weights"), [1], "has 1 leaf_weights for 8 leaves"),
        ("binary", (*TREE, "splits"), 7, "split 0 is on None"),
        ("binary", (*TREE, "splits"), [{}] * 3, "split 0 is on None"),
        ("binary", (*TREE, "splits", 0, "split_index"), -1, "split 0 has split_index -1 of"),
        ("binary", (*TREE, "splits", 0, "split_index"), 2**70, "has split_index 11805916207174113"),
        ("binary", (*TREE, "splits", 0, "split_index"), "1", "has split_index 1 of"),
        ("binary", (*TREE, "splits", 0, "border"), 7.5, "is not the one of its split_index"),
        ("binary", (*TREE, "splits", 0, "border"), None, "is not the one of its split_index"),
        ("binary", (*TREE, "splits", 0, "float_feature_index"), 29, "is not the one of its split_index"),
        ("binary", (*TREE, "splits", 0, "split_type"), "OnlineCtr", "is not the one of its split_index"),
        ("binary", ("model_info", "params", "loss_function", "type"), "Guess", "loss function 'Guess' is not known"),
        ("binary", ("model_info", "params", "loss_function", "type"), "RMSEWithUncertainty", "with 1 outputs"),
        ("binary", ("model_info", "class_params", "class_names"), [1], "does not fit 1 class_names"),
        ("binary", ("model_info", "class_params", "class_names"), [1, "a"], "class_names are not of type Integer"),
        ("binary", ("model_info", "class_params", "class_label_type"), "Complex", "class_label_type 'Complex'"),
        ("binary", ("model_info", "binclass_probability_threshold"), "x", "is not a number"),
        ("binary", ("model_info", "binclass_probability_threshold"), 1, "choose at least 0 and less than 1"),
        ("binary", ("model_info", "binclass_probability_threshold"), "nan", "choose at least 0 and less than 1"),
        ("multi", ("model_info", "params", "loss_function", "type"), "Logloss", "Logloss with 3 outputs"),
        ("multi", ("model_info", "class_params", "class_names"), ["a"], "class_names are not of type Integer"),
        ("nested", NODE, [], "does not have either a split or a value"),
        ("nested", (*NODE, "value"), 3, "does not have either a split or a value"),
        ("nested", (*NODE, "left"), KeyError, "does not have either a split or a value"),
        ("nested", (*NODE, "right"), {"value": 1}, "has 1 values for 3 outputs"),
        ("nested", (*NODE, "right"), {"value": [1, 2, "x"]}, "is not an array of numbers"),
        ("nested", (*NODE, "right"), {"value": [1, 2, 3], "weight": "w"}, "weights"),
        ("regression", (*NODE, "right"), {"value": float("nan")}, "a leaf value is not finite"),
    ],
)
def test_damage_is_named_with_its_place(documents, name, path, value, message):
    assert_refused(read_bytes, changed(documents[name], path, value), message)


def test_trees_are_bounded(documents):
    root = json.loads(json.dumps(documents["binary"]))
    splits = root["oblivious_trees"][1]["splits"]
    root["oblivious_trees"][1]["splits"] = splits[:1] * 60
    tracemalloc.start()
    with pytest.raises(ModelError, match=r"m.json, oblivious_trees\[1\]: has 60 levels"):
        read_bytes(json.dumps(root).encode(), "m.json")
    root["oblivious_trees"][1]["splits"] = splits[:1] * 16
    with pytest.raises(ModelError, match="has 8 leaf_values for 16 levels"):
        read_bytes(json.dumps(root).encode(), "m.json")
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_deep_nesting_is_refused(documents):
    for text in ('{"features_info":{},"trees":[' + '{"left":' * 100_000, '{"features_info":' * 5000):
        with pytest.raises(ModelError, match="not readable JSON"):
            read_bytes(text.encode(), "m.json")
    root = json.loads(json.dumps(documents["nested"]))
    tree = root["trees"][0]
    for _ in range(400):
        tree = {"split": tree["split"], "left": tree, "right": {"value": [1, 2, 3], "weight": 1}}
    root["trees"][0] = tree
    assert read_bytes(json.dumps(root).encode(), "m.json").depth > 400
