"""Trains scikit-learn models that wrap other models: searches, thresholds set by the user, calibration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from contract.kind import Trained
from contract.kinds_sklearn import BINARY, MULTI, REGRESSION, SMALL, kind
from sklearn import ensemble
from sklearn.calibration import CalibratedClassifierCV
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  scikit-learn asks for it
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.model_selection import TunedThresholdClassifierCV as Tuned
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

DEPTHS = {"max_depth": [3, 5]}
NAMES = (BINARY[0], np.array(["benign", "malignant"])[BINARY[1]])
SHARES = 8  # units in the last place: exp and its roundings once more, divided by the sum


def wide(model: Any, data: Any, ulps: int = 0) -> Callable[[], Trained]:
    """Returns a function that trains a model with float64 rows and no scores. ulps: of its probabilities."""
    return kind(model, data, dtype=np.float64, leaves=False, scores=None, value_ulps=ulps)


_forest = partial(ensemble.RandomForestClassifier, 6, random_state=0)
_search = partial(GridSearchCV, param_grid=DEPTHS, cv=2)
_own = partial(FixedThresholdClassifier, response_method="decision_function")
_calibrated = partial(CalibratedClassifierCV, cv=3)

BASES: dict[str, Callable[[], Any]] = {
    "forest": lambda: _forest(max_depth=4),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "bagging": lambda: ensemble.BaggingClassifier(n_estimators=5, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0),
    "exponential": lambda: ensemble.GradientBoostingClassifier(loss="exponential", n_estimators=5, random_state=0),
    "hist": lambda: ensemble.HistGradientBoostingClassifier(max_iter=5),
    "ada": lambda: ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    "pipeline": lambda: make_pipeline(
        StandardScaler(), ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0)
    ),
}
SELECTED = GridSearchCV(make_pipeline(SelectKBest(), _forest()), {"selectkbest__k": [5, 9]}, cv=2)
SCALED = make_pipeline(StandardScaler(), _forest())
TREE_VOTE = [("a", _search(_forest())), ("b", DecisionTreeClassifier(max_depth=3))]
SOFT_VOTE = [("a", _calibrated(_forest(max_depth=4), ensemble=False)), ("b", BASES["boosting"]())]


class Child(ensemble.RandomForestClassifier):
    """Stands for a forest of another library that trains otherwise and predicts as scikit-learn's."""


def frozen(base: str, outer: Callable[[Any], Any], data: Any = BINARY) -> Callable[[], Trained]:
    """Returns a function that trains a base on half of the rows, and on the other half what wraps it."""
    X, y = data

    def train() -> Trained:
        fitted = FrozenEstimator(BASES[base]().fit(X[::2], y[::2]))
        return wide(outer(fitted), (X[1::2], y[1::2]), SHARES)()

    return train


KINDS: dict[str, Callable[[], Trained]] = {
    "subclass": wide(Child(6, random_state=0), BINARY),
    "subclass-regression": wide(type("Sum", (ensemble.GradientBoostingRegressor,), {})(n_estimators=5), REGRESSION),
    "subclass-pipeline": wide(type("Sampled", (Pipeline,), {})([("s", StandardScaler()), ("f", _forest())]), BINARY),
    "frozen": frozen("forest", lambda model: model),
    "frozen-calibrated": frozen("pipeline", CalibratedClassifierCV),
    "frozen-calibrated-classes": frozen("forest", partial(CalibratedClassifierCV, method="isotonic"), MULTI),
    "frozen-threshold": frozen("hist", partial(FixedThresholdClassifier, threshold=0.4)),
    "frozen-threshold-tuned": frozen("boosting", partial(Tuned, cv="prefit", refit=False)),
    "frozen-in-vote": frozen("forest", lambda model: ensemble.VotingClassifier([("a", model), ("b", _forest())])),
    "frozen-steps": wide(
        make_pipeline(FrozenEstimator(StandardScaler().fit(BINARY[0])), FrozenEstimator(_forest().fit(*BINARY))),
        BINARY,
    ),
    "search-grid": wide(_search(_forest()), MULTI),
    "search-random": wide(
        RandomizedSearchCV(_forest(), DEPTHS, n_iter=2, cv=2, scoring="f1_macro", random_state=0), SMALL
    ),
    "search-halving": wide(HalvingGridSearchCV(_forest(), DEPTHS, cv=2, random_state=0), SMALL),
    "search-regression": wide(_search(ensemble.RandomForestRegressor(5, random_state=0)), REGRESSION),
    "search-pipeline": wide(GridSearchCV(SCALED, {"randomforestclassifier__max_depth": [2, 4]}, cv=2), BINARY),
    "search-in-pipeline": wide(make_pipeline(StandardScaler(), _search(_forest())), BINARY),
    "search-of-pipeline-in-pipeline": wide(make_pipeline(StandardScaler(), SELECTED), BINARY),
    "search-in-vote": wide(ensemble.VotingClassifier(TREE_VOTE), BINARY),
    "threshold-tuned": wide(Tuned(_search(_forest()), scoring=make_scorer(fbeta_score, beta=3), cv=2), BINARY),
    "threshold-decision-function": wide(_own(BASES["boosting"](), threshold=-0.4), BINARY),
    "threshold-decision-function-first": wide(_own(BASES["hist"](), threshold=0.3, pos_label="benign"), NAMES),
    "threshold-auto": wide(FixedThresholdClassifier(BASES["ada"]()), NAMES),
    "calibrated-classes-in-vote": wide(
        ensemble.VotingClassifier(SOFT_VOTE, voting="soft", weights=[1, 2.5]), MULTI, SHARES
    ),
}
for base, make in BASES.items():
    first = FixedThresholdClassifier(make(), threshold=0.6, pos_label="benign")
    KINDS |= {
        f"calibrated-ensemble-sigmoid-{base}": wide(_calibrated(make(), ensemble=True), NAMES, 2),
        f"calibrated-ensemble-isotonic-{base}": wide(_calibrated(make(), method="isotonic", cv=4), BINARY, 2),
        f"threshold-{base}": wide(FixedThresholdClassifier(make(), threshold=0.3), BINARY),
        f"threshold-{base}-first": wide(first, NAMES),
        f"calibrated-sigmoid-{base}": wide(_calibrated(make(), ensemble=False), BINARY),
        f"calibrated-isotonic-{base}": wide(_calibrated(make(), method="isotonic", ensemble=False), NAMES),
    }
for base, several in (("forest", True), ("boosting", False), ("hist", True), ("pipeline", True), ("ada", False)):
    sigmoid = _calibrated(BASES[base](), ensemble=several)
    isotonic = _calibrated(BASES[base](), method="isotonic", ensemble=not several)
    KINDS |= {
        f"calibrated-classes-sigmoid-{base}": wide(sigmoid, MULTI, SHARES),
        f"calibrated-classes-isotonic-{base}": wide(isotonic, SMALL, SHARES),
    }
for base, several in (("boosting", True), ("hist", False)):
    temperature = _calibrated(BASES[base](), method="temperature", ensemble=several)
    KINDS[f"calibrated-classes-temperature-{base}"] = wide(temperature, MULTI, SHARES)
