"""Tests models with one answer for every input, and models with trees of a single leaf: every level decides as the
library does, with rows and without."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import forestc
from forestc.errors import ModelError
from forestc.frontends import load_object
from forestc.passes import passes_from
from forestc.passes.pipeline import run_passes
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import evaluate
from forestc.rows.ranges import Ranges
from forestc.search.levels import EXACT, LEVELS

ROWS = np.random.default_rng(1).normal(size=(40, 3))
OTHERS = np.concatenate([np.random.default_rng(2).normal(size=(100, 3)), [[0.0] * 3], [[1e3] * 3], [[-1e3] * 3]])
SAME = np.ones((15, 3))
TWO, THREE = np.array([0, 1] * 7 + [0]), np.array([0, 1, 2] * 5)

# Each case has rows, classes and values.
DATA = {
    "rows": (ROWS, (ROWS[:, 0] + ROWS[:, 1] / 2 > 0).astype(int), 3 * ROWS[:, 0] + ROWS[:, 1]),
    "three classes": (ROWS, np.digitize(ROWS[:, 0], [-0.4, 0.4]), ROWS[:, 0]),
    "equal rows": (SAME, TWO, np.arange(15.0)),
    "equal rows, halves": (SAME[:14], TWO[:14], np.full(14, 1e-30)),
    "equal rows, three classes": (SAME, THREE, -1e6 + np.arange(15.0)),
    "one class": (ROWS, np.full(40, 7), np.zeros(40)),
    "one row": (ROWS[:1], np.array(["a"]), np.array([0.1])),
    "nearly equal rows": (1 + 1e-9 * ROWS, ROWS[:, 0] > 0, 5 + 1e-9 * ROWS[:, 0]),
}


def voting(kind, **options):
    members = [
        ("stump", DecisionTreeClassifier(max_depth=1)),
        ("leaf", DecisionTreeClassifier(min_samples_leaf=25)),
        ("boosted", GradientBoostingClassifier(n_estimators=2, min_samples_leaf=12, random_state=0)),
        ("forest", RandomForestClassifier(3, max_depth=2, random_state=0)),
    ]
    return VotingClassifier(
        [member for member in members if kind == "soft" or member[0] != "boosted"], voting=kind, **options
    )


FEW = {"n_estimators": 4, "random_state": 0}
LIGHT = {**FEW, "n_jobs": 1, "verbose": -1}
CLASSIFIERS = {
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "leaf": lambda: DecisionTreeClassifier(min_samples_leaf=30),
    "forest": lambda: RandomForestClassifier(**FEW),
    "forest, some leaves": lambda: RandomForestClassifier(min_samples_leaf=12, max_features=1, **FEW),
    "extra trees": lambda: ExtraTreesClassifier(max_depth=2, **FEW),
    "boosting": lambda: GradientBoostingClassifier(**FEW),
    "boosting, some leaves": lambda: GradientBoostingClassifier(min_impurity_decrease=0.2, learning_rate=1.0, **FEW),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3, max_depth=2),
    "adaboost": lambda: AdaBoostClassifier(**FEW),
    "bagging": lambda: BaggingClassifier(DecisionTreeClassifier(min_samples_leaf=8), **FEW),
    "votes": lambda: voting("hard"),
    "soft vote": lambda: voting("soft"),
    "soft vote, weights": lambda: voting("soft", weights=[0.3, 0.7, 0, 1]),
    "xgboost": lambda: xgboost.XGBClassifier(max_depth=2, n_jobs=1, **FEW),
    "xgboost, leaves": lambda: xgboost.XGBClassifier(gamma=1e9, base_score=0.5, n_jobs=1, **FEW),
    "xgboost, leaves of 0": lambda: xgboost.XGBClassifier(learning_rate=0.0, max_depth=2, n_jobs=1, **FEW),
    "lightgbm": lambda: lightgbm.LGBMClassifier(min_child_samples=3, **LIGHT),
    "lightgbm, leaves": lambda: lightgbm.LGBMClassifier(min_child_samples=50, **LIGHT),
}
REGRESSORS = {
    "tree": lambda: DecisionTreeRegressor(max_depth=3),
    "forest": lambda: RandomForestRegressor(**FEW),
    "boosting": lambda: GradientBoostingRegressor(min_samples_leaf=19, min_impurity_decrease=0.5, **FEW),
    "histograms": lambda: HistGradientBoostingRegressor(max_iter=4),
    "adaboost": lambda: AdaBoostRegressor(**FEW),
    "xgboost": lambda: xgboost.XGBRegressor(max_depth=2, n_jobs=1, **FEW),
    "xgboost, leaves": lambda: xgboost.XGBRegressor(gamma=1e9, n_jobs=1, **FEW),
    "lightgbm": lambda: lightgbm.LGBMRegressor(min_child_samples=3, **LIGHT),
}
MODELS = [(False, kind) for kind in CLASSIFIERS] + [(True, kind) for kind in REGRESSORS]
UNTRAINED = (ValueError, TypeError, lightgbm.basic.LightGBMError, xgboost.core.XGBoostError)
QUICK = {"soft vote", "xgboost, leaves", "lightgbm, leaves", "forest, some leaves", "adaboost"}


def trained(values, kind, data):
    """Trains the model; returns None if its library refuses such rows."""
    X, classes, numbers = DATA[data]
    model = (REGRESSORS if values else CLASSIFIERS)[kind]()
    try:
        return model.fit(X, numbers if values else classes)
    except UNTRAINED:
        return None


def read(model):
    """Loads the forest; returns None if it is refused because it has one class only."""
    try:
        return load_object(model)
    except ModelError as error:
        assert "knows one class alone" in str(error) and len(model.classes_) == 1
        return None


def passed(forest, X, level):
    """Runs the passes of a level on the rows, or without rows if X is None."""
    if level is None:
        return run_passes(forest, passes_from(EXACT), Ranges())[0]
    return run_passes(forest, passes_from(LEVELS[level].passes), ArrayRows(X))[0]


def check_answers(model, X, got_of, level):
    """Compares all inputs unless a pass promises less, otherwise the given rows."""
    rows = X if level else np.concatenate([X, OTHERS])
    got, expected = np.asarray(got_of(rows)), np.asarray(model.predict(rows)).ravel()
    if hasattr(model, "classes_") or isinstance(model, IsolationForest):
        assert (got == expected).all()
    else:
        spread, size = np.ptp(expected[: len(X)]), np.abs(expected).max()
        assert np.abs(got - expected).max() <= 0.01 * spread + 1e-6 * size


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    ("values", "kind"), [pytest.param(*model, marks=[] if model[1] in QUICK else pytest.mark.long) for model in MODELS]
)
def test_levels_answer_as_the_library(values, kind, data):
    model = trained(values, kind, data)
    forest = None if model is None else read(model)
    for level in (None, 0, 1) if forest is not None else ():
        result = passed(forest, DATA[data][0], level)
        check_answers(model, DATA[data][0], lambda rows, result=result: evaluate(result, rows).decision, level)


@pytest.mark.long
@pytest.mark.parametrize("target", ["verilog", "vhdl", "c", "hls", "amaranth", "engine"])
@pytest.mark.parametrize(("values", "kind"), MODELS)
def test_targets_answer_as_the_library_and_pass_their_check(values, kind, target, tmp_path):
    for data in ("equal rows", "one class", "one row", "three classes"):
        model = trained(values, kind, data)
        if model is None or read(model) is None or (target == "engine" and ("vote" in kind or kind == "adaboost")):
            continue
        X = DATA[data][0]
        options = {"score_bits": 62} if target == "engine" else {}
        done = forestc.compile(model, X, tmp_path / data, targets=target, **options)
        check_answers(model, X, done.design.predict, 1)
        forestc.check(done.design, X)


@pytest.mark.parametrize("level", [None, 0, 1])
# With 15 and 17 rows the threshold is rounded to a value just beside the score.
@pytest.mark.parametrize("rows", [10, 15, 17, 28])
def test_an_isolation_forest_of_equal_rows(rows, level):
    X = np.ones((rows, 2))
    model = IsolationForest(n_estimators=6, max_samples=rows, contamination=0.3, random_state=0).fit(X)
    result = passed(load_object(model), X, level)
    assert (evaluate(result, X).decision == model.predict(X)).all()


@pytest.mark.parametrize("level", [None, 0, 1])
def test_a_soft_vote_without_ties(level):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(97, 1)), random.integers(0, 3, 97)
    pair = [("a", DecisionTreeClassifier(max_depth=1)), ("b", DecisionTreeClassifier(max_depth=1))]
    model = VotingClassifier(pair, voting="soft").fit(X, y)
    result = passed(load_object(model), X, level)
    assert (evaluate(result, X).decision == model.predict(X)).all()


@pytest.mark.parametrize("kind", ["soft vote", "soft vote, weights", "votes", "forest", "adaboost"])
def test_no_rows_are_evaluated(kind):
    forest = load_object(trained(False, kind, "three classes"))
    result = evaluate(forest, np.zeros((0, 3)))
    assert result.scores.shape == (0, 3) and result.index.shape == (0,)


@pytest.mark.parametrize("level", [None, 0, 1])
def test_a_constant_mean_of_parts_decides_a_near_tie_as_the_library(level):
    """Classes 0 and 3 differ only by the rounding of floats."""
    X, y = np.zeros((9, 2)), np.array([1, 3, 0, 3, 3, 0, 0, 0, 3])
    leaf = {"min_samples_leaf": 11}
    members = [
        ("bagging", BaggingClassifier(DecisionTreeClassifier(**leaf), n_estimators=3, random_state=95)),
        ("boosted", GradientBoostingClassifier(n_estimators=1, random_state=6, **leaf)),
        ("forest", RandomForestClassifier(n_estimators=1, random_state=32, **leaf)),
    ]
    model = VotingClassifier(members, voting="soft").fit(X, y)
    result = passed(load_object(model), X, level)
    assert (evaluate(result, X).decision == model.predict(X)).all()


def test_one_class_alone_is_refused_at_the_start():
    X = ROWS
    models = [
        HistGradientBoostingClassifier(max_iter=2).fit(X, np.full(40, 7)),
        xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(X, np.zeros(40, dtype=int)),
        lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(X, np.full(40, 7)),
    ]
    for model in models:
        with pytest.raises(ModelError, match=r"knows one class alone.*train it on rows of two classes or more"):
            load_object(model)


def test_an_engine_of_a_model_that_reads_no_feature(tmp_path):
    X, y, _ = DATA["one class"]
    model = DecisionTreeClassifier().fit(X, y)
    for rows in (None, X):
        done = forestc.compile(model, rows, tmp_path / str(rows is None), targets="engine")
        assert (done.design.predict(X) == 7).all()
