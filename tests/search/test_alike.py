"""Tests that copies unlike the given model are refused, faithful ones are not, and both are reproducible."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xgboost
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from forestc import load
from forestc.errors import ForestcError
from forestc.forest.text import print_forest
from forestc.passes.quick_evaluation import answers_to
from forestc.rows.batches import ArrayRows
from forestc.search.folds import folds_of, why_unlike
from forestc.training.seeds import seeded, seeded_numpy


@cache
def rows():
    """Draws overlapping rows of two classes, one of them rare."""
    X, y = make_classification(600, 8, n_informative=4, weights=[0.85], flip_y=0.1, class_sep=0.7, random_state=0)
    return X.astype(np.float32).astype(np.float64), y


def folds(model):
    X, y = rows()
    return folds_of(model, load(model), ArrayRows(X, y))


FAITHFUL = {
    "forest": RandomForestClassifier(10),
    "shallow": ExtraTreesClassifier(8, max_depth=3),
    "balanced": RandomForestClassifier(8, max_depth=4, class_weight="balanced"),
    "boosting": GradientBoostingClassifier(n_estimators=8, subsample=0.5),
    "stopped": GradientBoostingClassifier(n_estimators=60, n_iter_no_change=2),
    "histograms": HistGradientBoostingClassifier(max_iter=8, early_stopping=True),
    "bagging": BaggingClassifier(n_estimators=6),
    "vote": VotingClassifier([("a", RandomForestClassifier(4, max_depth=4)), ("b", RandomForestClassifier(4))]),
    "xgboost": xgboost.XGBClassifier(n_estimators=8, max_depth=3, subsample=0.5),
    "lightgbm": LGBMClassifier(n_estimators=8, num_leaves=8, subsample=0.5, subsample_freq=1, verbose=-1),
}


@pytest.mark.parametrize("kind", FAITHFUL)
def test_a_model_that_says_how_it_was_trained_has_faithful_folds(kind):
    with seeded_numpy(0):  # The models have no seed of their own.
        model = clone(FAITHFUL[kind]).fit(*rows())
    found = folds(model)
    assert found.how == "models trained again with the same parameters"
    again = [print_forest(fold.model) for fold in folds(model).folds]
    assert again == [print_forest(fold.model) for fold in found.folds]  # No seed is left to chance.


def weighted(model):
    X, y = rows()
    return clone(model).fit(X, y, sample_weight=np.where(y == 1, 20.0, 1.0))


def changed():
    return clone(FAITHFUL["balanced"]).fit(*rows()).set_params(max_depth=9, n_estimators=30)


def warm():
    model = RandomForestClassifier(10, max_depth=2, warm_start=True).fit(*rows())
    return model.set_params(n_estimators=20, max_depth=None).fit(*rows())


UNFAITHFUL = {
    "weighted forest": lambda: weighted(RandomForestClassifier(10, max_depth=4)),
    "weighted xgboost": lambda: weighted(xgboost.XGBClassifier(n_estimators=8, max_depth=3)),
    "weighted lightgbm": lambda: weighted(LGBMClassifier(n_estimators=8, num_leaves=8, verbose=-1)),
    "changed": changed,
    "warm start": warm,
}


@pytest.mark.parametrize("kind", UNFAITHFUL)
def test_a_model_that_was_trained_otherwise_is_refused(kind):
    with seeded_numpy(0):
        model = UNFAITHFUL[kind]()
    with pytest.raises(ForestcError, match=r"trained again.*held_out=FILE"):
        folds(model)


def flipped(model, leaves):
    """Returns a model of one tree with some leaves decided the other way, those of the fewest rows first."""
    tree = model.trees[0]
    values, rows_of = tree.values.copy(), np.zeros(len(tree.values))
    rows_of[tree.leaf[tree.leaf >= 0]] = tree.cover[tree.leaf >= 0]
    few = np.argsort(rows_of, kind="stable")[:leaves]
    values[few] = values[few, ::-1]
    return replace(model, trees=(replace(tree, values=values),))


def test_what_seeds_do_not_explain_is_told():
    X, y = rows()
    given, model = ArrayRows(X, y), load(DecisionTreeClassifier(random_state=0).fit(X, y))
    assert not why_unlike(model, given, lambda seed: model)
    other = flipped(model, 15)
    accuracy = float((answers_to(other, X) == y).mean())
    why = why_unlike(model, given, lambda seed: other)
    assert f"its accuracy on these rows is {accuracy:.4f}, and the model's 1.0000" in why
    small = load(DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y))
    assert "trained again it has 4 leaves" in why_unlike(model, given, lambda seed: small)
    assert not why_unlike(model, given, lambda seed: (other, model, model)[seed])  # Seeds differ as much.


def test_seeds_of_nested_estimators_and_splitters_are_numbers_of_their_own():
    nested = make_pipeline(MinMaxScaler(), BaggingClassifier(RandomForestClassifier(2), 3, random_state=5))
    copy = seeded(nested, 0)
    seeds = {name: value for name, value in copy.get_params().items() if name.endswith("random_state")}
    assert seeds["baggingclassifier__random_state"] == 5  # This is the user's seed.
    assert None not in seeds.values() and len(set(seeds.values())) == len(seeds)
    assert nested.get_params()["baggingclassifier__estimator__random_state"] is None
    votes = seeded(FAITHFUL["vote"], 0).get_params()
    assert votes["a__random_state"] != votes["b__random_state"]
    other = seeded(nested, 1).get_params()
    assert all(other[name] != value for name, value in seeds.items())
    from sklearn.calibration import CalibratedClassifierCV

    shuffled = CalibratedClassifierCV(RandomForestClassifier(2), cv=StratifiedKFold(3, shuffle=True))
    assert isinstance(seeded(shuffled, 0).cv.random_state, int) and shuffled.cv.random_state is None
    assert seeded(xgboost.XGBClassifier(n_jobs=4), 0).n_jobs == 1
    assert seeded(LGBMClassifier(), 0).get_params()["deterministic"] is True
