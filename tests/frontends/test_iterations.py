"""Tests the option for boosting iterations: a number, or the best ones, replace the library's default."""

from __future__ import annotations

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from models import BINARY
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc import evaluate, load
from forestc.errors import ForestcError, ModelError, OptionError
from forestc.forest.text import print_forest
from forestc.frontends import read_bytes

X, Y = BINARY(return_X_y=True)
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
FIT, HELD_OUT = slice(0, None, 2), slice(1, None, 2)
QUIET = {"verbose": -1, "num_threads": 1, "max_depth": 3}


def stopped(X=X, Y=Y, rounds=40, **params):
    """Trains a Booster with early stopping: it records its best iteration and predicts with all."""
    fit, held_out = (xgboost.DMatrix(X[rows], Y[rows]) for rows in (FIT, HELD_OUT))
    params = {"objective": "binary:logistic", "max_depth": 3, "eta": 1.0, "nthread": 1, **params}
    return xgboost.train(params, fit, rounds, evals=[(held_out, "x")], early_stopping_rounds=3, verbose_eval=False)


def same(forest, expected, X=X):
    found = evaluate(forest, X).values
    return np.allclose(found, np.asarray(expected).reshape(found.shape), rtol=1e-6, atol=1e-12)


def test_a_booster_s_best_iteration_is_noted_and_can_be_asked_for(tmp_path):
    booster = stopped()
    best, total = booster.best_iteration + 1, booster.num_boosted_rounds()
    assert best < total
    for name in ("m.json", "m.ubj"):
        booster.save_model(tmp_path / name)
    rows = xgboost.DMatrix(X)
    for source in (tmp_path / "m.json", tmp_path / "m.ubj", booster):
        whole = load(source)
        assert len(whole.trees) == total and same(whole, booster.predict(rows))
        (note,) = whole.provenance.notes
        assert f"all {total} boosting iterations" in note and f"first {best} are the best: " in note
        for asked, count in (("best", best), (1, 1), ("2", 2), (total, total)):
            forest = load(source, iterations=asked)
            assert len(forest.trees) == count and same(forest, booster.predict(rows, iteration_range=(0, count)))
            assert bool(forest.provenance.notes) == (count < total)
        with pytest.raises(OptionError, match=f"{total + 1} are asked for, and the model has {total}"):
            load(source, iterations=total + 1)


@pytest.mark.parametrize(
    "params",
    [
        {"objective": "multi:softprob", "num_class": 3},
        {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2, "subsample": 0.5},
        {"objective": "reg:squarederror", "booster": "dart", "rate_drop": 0.5},
        {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8], "multi_strategy": "multi_output_tree"},
    ],
)
def test_iterations_of_many_trees(params):
    booster = stopped(IRIS_X, IRIS_Y, rounds=5, **params)
    rows = xgboost.DMatrix(IRIS_X)
    for count in (1, 3):
        expected = booster.predict(rows, iteration_range=(0, count))
        assert same(load(booster, iterations=count), expected, IRIS_X)


def test_an_estimator_predicts_with_its_best_iteration(tmp_path):
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=3, learning_rate=1.0, early_stopping_rounds=3, n_jobs=1)
    model.fit(X[FIT], Y[FIT], eval_set=[(X[HELD_OUT], Y[HELD_OUT])], verbose=False)
    model.save_model(tmp_path / "m.json")
    best, total = model.best_iteration + 1, model.get_booster().num_boosted_rounds()
    for source in (model, tmp_path / "m.json"):
        assert [len(load(source, iterations=n).trees) for n in (None, "best", total)] == [best, best, total]
        assert f"the first {best} of the model's {total}" in load(source).provenance.notes[0]


def test_an_attribute_that_is_no_number_matters_only_where_it_is_asked_for():
    booster = stopped()
    booster.set_attr(best_iteration="soon")
    assert len(load(booster).trees) == booster.num_boosted_rounds()
    with pytest.raises(ModelError, match=r"best_iteration; is not|is not an integer"):
        load(booster, iterations="best")
    booster.set_attr(best_iteration=None)
    with pytest.raises(ModelError, match=r"does not say which iteration is the best.*give the number"):
        load(booster, iterations="best")


@pytest.mark.parametrize(
    "params",
    [
        {"objective": "binary"},
        {"objective": "multiclass", "num_class": 3},
        {"objective": "binary", "boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1},
    ],
)
def test_lightgbm(params, tmp_path):
    X, Y = (IRIS_X, IRIS_Y) if "num_class" in params else BINARY(return_X_y=True)
    booster = lightgbm.train({**QUIET, **params}, lightgbm.Dataset(X, Y), 6)
    booster.save_model(tmp_path / "m.txt")
    for source in (booster, tmp_path / "m.txt"):
        for count in (1, 4, 6):
            assert same(load(source, iterations=count), booster.predict(X, num_iteration=count), X)
        with pytest.raises(ModelError, match=r"does not say which iteration is the best.*save_model then writes"):
            load(source, iterations="best")


def test_lightgbm_after_early_stopping(tmp_path):
    fit, held_out = (lightgbm.Dataset(X[rows], Y[rows]) for rows in (FIT, HELD_OUT))
    params = {**QUIET, "objective": "binary", "learning_rate": 1.0}
    stop = lightgbm.early_stopping(3, verbose=False)
    booster = lightgbm.train(params, fit, 40, valid_sets=[held_out], callbacks=[stop], keep_training_booster=True)
    booster.save_model(tmp_path / "m.txt")
    best, total = booster.best_iteration, booster.current_iteration()
    assert best < total
    assert [len(load(booster, iterations=n).trees) for n in (None, "best", total)] == [best, best, total]
    assert f"the first {best} of the model's {total}" in load(booster).provenance.notes[0]
    assert same(load(booster), booster.predict(X)) and same(load(tmp_path / "m.txt"), booster.predict(X))


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_catboost(policy, tmp_path):
    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "depth": 3, "grow_policy": policy}
    model = catboost.CatBoostClassifier(iterations=30, learning_rate=1.0, use_best_model=False, **quiet)
    model.fit(X[FIT], Y[FIT], eval_set=(X[HELD_OUT], Y[HELD_OUT]))
    model.save_model(tmp_path / "m.json", format="json")
    best = model.get_best_iteration() + 1
    assert best < 30
    for source in (model, tmp_path / "m.json"):
        for count in (1, 5, 30):
            expected = model.predict_proba(X, ntree_end=count)[:, 1]
            assert same(load(source, iterations=count), expected)
    assert len(load(model, iterations="best").trees) == best and len(load(model).trees) == 30
    assert f"first {best} are the best" in load(model).provenance.notes[0]
    with pytest.raises(ModelError, match=r"does not say which iteration is the best.*eval_set"):
        load(tmp_path / "m.json", iterations="best")


@pytest.mark.parametrize("wrong", [0, -1, "", "all", "1.5", True, 2.0, "9" * 30])
def test_what_is_no_number_of_iterations(wrong):
    with pytest.raises(OptionError, match="give a whole number from 1 on, or best"):
        load(stopped(rounds=1), iterations=wrong)


def test_models_without_counted_iterations(tmp_path):
    forest = RandomForestClassifier(2, max_depth=2).fit(X, Y)
    (tmp_path / "m.forest").write_text(print_forest(load(forest)))
    for source in (forest, tmp_path / "m.forest", load(forest)):
        with pytest.raises(OptionError, match=r"^iterations="):
            load(source, iterations=1)


def test_commands_take_it(tmp_path, capsys):
    from forestc.cli import main

    booster = stopped()
    path, best = tmp_path / "m.ubj", booster.best_iteration + 1
    booster.save_model(path)
    assert forestc.inspect(path, iterations="best")["trees"] == best
    design = forestc.compile(path, None, tmp_path / "out", targets="c", level=0, iterations="best").design
    assert len(design.model.trees) == best
    assert design.manifest["made"]["options"]["iterations"] == "best"
    assert "--iterations best" in (tmp_path / "out" / "report.md").read_text()
    with pytest.raises(OptionError, match=r"^iterations="):
        forestc.inspect(design, iterations=1)
    for words, status in ((["inspect", str(tmp_path / "out")], 2), (["print", str(path)], 0)):
        with pytest.raises(SystemExit) as caught:
            main([*words, "--iterations", "1"])
        assert caught.value.code == status
    assert capsys.readouterr().out.count("\ntree ") == 1


def test_a_damaged_best_iteration_of_an_estimator_is_refused():
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(X, Y)
    data = bytes(model.get_booster().save_raw("json"))
    changed = data.replace(b'"attributes":{', b'"attributes":{"best_iteration":"-3",', 1)
    assert changed != data
    assert len(read_bytes(changed.replace(b'"best_iteration":"-3",}', b'"best_iteration":"-3"}'), "m").trees) == 2
    with pytest.raises(ForestcError):
        read_bytes(changed.replace(b'"-3",', b'"-3","scikit_learn":"{}",').replace(b'",}', b'"}'), "m")
