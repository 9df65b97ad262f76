"""Tests models trained again from their files: all rows give the same model if the file tells all, otherwise nearly the
same."""

from __future__ import annotations

import json
from functools import cache

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import make_classification

from forestc import load
from forestc.errors import ForestcError
from forestc.forest.text import print_forest
from forestc.frontends import read_training
from forestc.rows.batches import ArrayRows
from forestc.search.folds import folds_of
from forestc.training.again import Original


@cache
def rows(classes=2):
    X, y = make_classification(
        500, 8, n_informative=5, n_classes=classes, flip_y=0.1, class_sep=0.7, random_state=0
    )  # fmt: skip
    return X.astype(np.float32).astype(np.float64), y


def first_way(path, X, y):
    original = Original(load(path), read_training(path), X, y)
    return original, next(original.ways())


def same_trees(one, other):
    return all(a.values.tolist() == b.values.tolist() for a, b in zip(one.trees, other.trees, strict=True))


BINARY = {"objective": "binary:logistic", "max_depth": 5}
XGBOOST = {
    "high rate": {"eta": 0.8}, "low rate": {"eta": 0.04, "lambda": 3}, "stumps": {"max_depth": 1, "eta": 0.6},
    "alpha": {"alpha": 1.5, "lambda": 0}, "min_child_weight": {"min_child_weight": 12},
    "all of the issue": {"min_child_weight": 40, "subsample": 0.5, "alpha": 1, "scale_pos_weight": 3},
    "gamma": {"gamma": 1.5}, "sampled": {"subsample": 0.7, "eta": 0.5}, "columns": {"colsample_bytree": 0.5},
    "columns of nodes": {"colsample_bynode": 0.5}, "leaves": {"grow_policy": "lossguide", "max_leaves": 7},
    "steps": {"max_delta_step": 0.4}, "bins": {"max_bin": 16}, "exact": {"tree_method": "exact", "eta": 0.2},
    "start": {"base_score": 0.2}, "dart": {"booster": "dart"}, "parallel": {"num_parallel_tree": 3, "eta": 0.9},
    "values": {"objective": "reg:squarederror", "subsample": 0.5, "min_child_weight": 9},
    "tweedie": {"objective": "reg:tweedie", "tweedie_variance_power": 1.2},
    "poisson": {"objective": "count:poisson", "max_delta_step": 0.3},
}  # fmt: skip


@pytest.mark.parametrize("rounds, most", [(1, 2), (60, 25)])
def test_estimators_that_stopped_early_train_their_best_rounds_again(rounds, most):
    X, y = rows()
    model = xgboost.XGBClassifier(n_estimators=rounds, learning_rate=0.3, early_stopping_rounds=5, n_jobs=1)
    model.fit(X[:400], y[:400], eval_set=[(X[400:], y[400:])], verbose=False)
    original, way = first_way(model, X, y)
    assert len(original.source.trees) == model.best_iteration + 1 < most
    assert len(way.train(X, y, 0).trees) == len(original.source.trees)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("kind", XGBOOST)
def test_the_sums_of_an_xgboost_file_give_the_same_model_again(kind, suffix, tmp_path):
    X, y = rows()
    settings = BINARY | XGBOOST[kind]
    xgboost.train(settings | {"nthread": 1}, xgboost.DMatrix(X, label=y), 8).save_model(tmp_path / f"m.{suffix}")
    original, way = first_way(tmp_path / f"m.{suffix}", X, y)
    assert "parameters found from the sums" in way.how
    again = way.train(X, y, 0)
    assert same_trees(again, original.source)
    found = original._settings
    for name in ("eta", "lambda", "alpha", "subsample", "max_delta_step"):
        if name in settings and not settings["objective"].startswith("count"):  # poisson has a step of its own
            assert found[name] == pytest.approx(settings[name], rel=1e-3), name


def test_an_xgboost_file_of_several_classes_and_an_unknown_seed_is_trained_alike(tmp_path):
    X, y = rows(4)
    settings = {"objective": "multi:softprob", "num_class": 4, "eta": 0.8, "max_depth": 4, "nthread": 1}
    data = xgboost.DMatrix(X, label=y)
    xgboost.train(settings, data, 16).save_model(tmp_path / "m.json")
    original, way = first_way(tmp_path / "m.json", X, y)
    assert same_trees(way.train(X, y, 0), original.source)
    xgboost.train(settings | {"subsample": 0.6, "seed": 5}, data, 16).save_model(tmp_path / "m.json")
    original, way = first_way(tmp_path / "m.json", X, y)
    assert original._settings["subsample"] == 0.6 and "colsample_bytree" not in original._settings
    assert way.train(X, y, 0).n_leaves == pytest.approx(original.source.n_leaves, rel=0.1)
    found = folds_of(tmp_path / "m.json", original.source, ArrayRows(X, y))
    assert found.widened == 0 and found.how.startswith("boosters trained again with the parameters found")


def test_a_loaded_booster_tells_as_much_as_its_file(tmp_path):
    X, y = rows()
    settings = BINARY | XGBOOST["all of the issue"] | {"nthread": 1}
    xgboost.train(settings, xgboost.DMatrix(X, label=y), 8).save_model(tmp_path / "m.json")
    for model in (xgboost.Booster(model_file=tmp_path / "m.json"), xgboost.XGBClassifier()):
        if isinstance(model, xgboost.XGBClassifier):
            model.load_model(tmp_path / "m.json")
        found = folds_of(model, load(model), ArrayRows(X, y))
        assert found.how == "boosters trained again with the parameters found from the sums in the model"
        fit = found.folds[0].fit
        same = xgboost.train(settings, xgboost.DMatrix(fit.X, label=fit.truth), 8)
        assert same_trees(found.folds[0].model, load(same))


LIGHTGBM = (
    {"num_leaves": 6, "learning_rate": 0.4, "lambda_l1": 1},
    {"bagging_fraction": 0.5, "bagging_freq": 1, "scale_pos_weight": 3, "seed": 9},
    {"extra_trees": True, "boosting": "dart", "max_depth": 3, "feature_fraction": 0.5},
    {"min_data_in_leaf": 60, "max_bin": 12, "is_unbalance": True, "boost_from_average": False},
)


@pytest.mark.parametrize("more", LIGHTGBM)
def test_lightgbm_files_and_boosters_hold_all_parameters(more, tmp_path):
    X, y = rows()
    settings = {"objective": "binary", "verbosity": -1, "num_threads": 1} | more
    model = lightgbm.train(settings, lightgbm.Dataset(X, label=y), 8)
    model.save_model(tmp_path / "m.txt")
    for given in (tmp_path / "m.txt", model, lightgbm.Booster(model_file=tmp_path / "m.txt")):
        original, way = first_way(given, X, y)
        assert way.how == "boosters trained again with the parameters in the model"
        assert same_trees(way.train(X, y, 0), original.source)
    text = (tmp_path / "m.txt").read_text()
    (tmp_path / "m.txt").write_text(text.replace("[max_depth:", "[forcedsplits_filename: /x]\n[max_bin: 9 data=/x]\n["))
    assert read_training(tmp_path / "m.txt").settings.keys() & {"forcedsplits_filename", "data"} == set()
    assert not any(" " in value for value in read_training(tmp_path / "m.txt").settings.values())


CATBOOST = (
    {"depth": 3},
    {"learning_rate": 0.7, "l2_leaf_reg": 9},
    {"class_weights": {0: 1, 1: 6}},
    {"depth": 6, "rsm": 0.5},
)


@pytest.mark.parametrize("more", CATBOOST)
def test_catboost_files_and_objects_hold_all_parameters(more, tmp_path):
    X, y = rows()
    always = {"iterations": 8, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(**always, **more).fit(X, y)
    model.save_model(tmp_path / "m.json", format="json")
    for given in (tmp_path / "m.json", model):
        original, way = first_way(given, X, y)
        assert way.how == "boosters trained again with the parameters in the model"
        again = way.train(X, y, 0)
        assert [tree.size for tree in again.trees] == [tree.size for tree in original.source.trees]
        for tree, other in zip(again.trees, original.source.trees, strict=True):
            assert np.sort(tree.values, axis=None) == pytest.approx(np.sort(other.values, axis=None), rel=1e-5)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
def test_the_learning_rate_of_a_model_that_tells_nothing_is_measured(rate):
    X, y = rows(3)
    settings = {"objective": "multi:softprob", "num_class": 3, "max_depth": 4, "eta": rate, "nthread": 1}
    source = load(xgboost.train(settings, xgboost.DMatrix(X, label=y), 8))
    way = next(Original(source, read_training(source), X, y).ways())
    assert way.kind and print_forest(way.train(X, y, 0)) == print_forest(way.train(X, y, 0))
    assert way.train(X, y, 0).trees[0].values.std() == pytest.approx(source.trees[0].values.std(), rel=0.05)


def test_rows_of_another_training_and_weights_of_rows_are_found(tmp_path):
    X, y = rows()
    xgboost.train(BINARY, xgboost.DMatrix(X[:250], label=y[:250]), 12).save_model(tmp_path / "m.json")
    with pytest.raises(ForestcError, match=r"trained again its accuracy on these rows .*held_out=FILE"):
        folds_of(tmp_path / "m.json", load(tmp_path / "m.json"), ArrayRows(X[250:], y[250:]))
    data = xgboost.DMatrix(X, label=y, weight=np.where(y == 1, 30.0, 1.0))
    xgboost.train(BINARY, data, 12).save_model(tmp_path / "m.json")
    with pytest.raises(ForestcError, match="trained again"):
        folds_of(tmp_path / "m.json", load(tmp_path / "m.json"), ArrayRows(X, y))


DAMAGES = {
    "no gains": lambda learner, tree: tree.pop("loss_changes"),
    "gains of other trees": lambda learner, tree: tree["loss_changes"].pop(),
    "texts": lambda learner, tree: tree.update(base_weights=["x"] * len(tree["base_weights"])),
    "no numbers": lambda learner, tree: tree.update(sum_hessian=[float("nan")] * len(tree["sum_hessian"])),
    "zeros": lambda learner, tree: tree.update(sum_hessian=[0.0] * len(tree["sum_hessian"])),
    "infinite gains": lambda learner, tree: tree.update(loss_changes=[float("inf")] * len(tree["loss_changes"])),
    "trees of a round": lambda learner, tree: learner["gradient_booster"]["model"]["gbtree_model_param"].update(
        num_parallel_tree="1000000"
    ),
    "an objective's value": lambda learner, tree: learner["objective"].update(
        reg_loss_param={"scale_pos_weight": "a;b"}
    ),
    "types": lambda learner, tree: learner.update(feature_types=["c"] * 8),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_sums_end_in_one_clear_error_or_in_folds(kind, tmp_path):
    X, y = rows()
    path = tmp_path / "m.json"
    xgboost.train(BINARY, xgboost.DMatrix(X, label=y), 4).save_model(path)
    document = json.loads(path.read_text())
    learner = document["learner"]
    for tree in learner["gradient_booster"]["model"]["trees"]:
        DAMAGES[kind](learner, tree)
    path.write_text(json.dumps(document))
    try:
        source = load(path)
        found = folds_of(path, source, ArrayRows(X, y))
        assert all(len(fold.model.trees) == len(source.trees) for fold in found.folds)
    except ForestcError as error:
        assert str(error) and "\n" not in error.what


def test_bounds_on_sums_are_scaled_to_the_share_of_the_rows_that_is_given(tmp_path):
    X, y = make_classification(3000, 8, n_informative=5, flip_y=0.1, random_state=0)
    settings = BINARY | {"min_child_weight": 40, "subsample": 0.5, "nthread": 1}
    xgboost.train(settings, xgboost.DMatrix(X, label=y), 8).save_model(tmp_path / "m.json")
    source = load(tmp_path / "m.json")
    original = Original(source, read_training(tmp_path / "m.json"), X[::3], y[::3], share=1 / 3)
    found = original._settings
    assert found["min_child_weight"] == pytest.approx(40 / 3, rel=0.05) and found["subsample"] == pytest.approx(
        0.5, abs=0.03
    )
    assert next(original.ways()).train(X[::3], y[::3], 0).n_leaves == pytest.approx(source.n_leaves, rel=0.2)
