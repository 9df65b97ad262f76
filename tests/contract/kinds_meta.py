"""scikit-learn models that choose or judge other models: searches, thresholds of one's own, calibration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from contract.kind import Trained
from contract.kinds_sklearn import BINARY, MULTI, REGRESSION, SMALL, kind
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  scikit-learn asks for it
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

DEPTHS = {"max_depth": [3, 5]}
WIDE = {"dtype": np.float64, "leaves": False, "scores": None}
NAMES = (BINARY[0], np.array(["benign", "malignant"])[BINARY[1]])


def _forest(**more: Any) -> Any:
    return RandomForestClassifier(6, random_state=0, **more)


def _search(model: Any, **more: Any) -> Any:
    return GridSearchCV(model, DEPTHS, cv=2, **more)


BASES: dict[str, Callable[[], Any]] = {
    "forest": lambda: _forest(max_depth=4),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "bagging": lambda: BaggingClassifier(n_estimators=5, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=5, random_state=0),
    "exponential": lambda: GradientBoostingClassifier(loss="exponential", n_estimators=5, random_state=0),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=5),
    "ada": lambda: AdaBoostClassifier(n_estimators=5, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=4, random_state=0)),
}
KINDS: dict[str, Callable[[], Trained]] = {
    "search-grid": kind(_search(_forest()), MULTI, **WIDE),
    "search-random": kind(
        RandomizedSearchCV(_forest(), DEPTHS, n_iter=2, cv=2, scoring="f1_macro", random_state=0), SMALL, **WIDE
    ),
    "search-halving": kind(HalvingGridSearchCV(_forest(), DEPTHS, cv=2, random_state=0), SMALL, **WIDE),
    "search-regression": kind(_search(RandomForestRegressor(5, random_state=0)), REGRESSION, **WIDE),
    "search-pipeline": kind(
        GridSearchCV(make_pipeline(StandardScaler(), _forest()), {"randomforestclassifier__max_depth": [2, 4]}, cv=2),
        BINARY,
        **WIDE,
    ),
    "search-in-pipeline": kind(make_pipeline(StandardScaler(), _search(_forest())), BINARY, **WIDE),
    "search-of-pipeline-in-pipeline": kind(
        make_pipeline(
            StandardScaler(), GridSearchCV(make_pipeline(SelectKBest(), _forest()), {"selectkbest__k": [5, 9]}, cv=2)
        ),
        BINARY,
        **WIDE,
    ),
    "search-in-vote": kind(
        VotingClassifier([("a", _search(_forest())), ("b", DecisionTreeClassifier(max_depth=3))]), BINARY, **WIDE
    ),
    "threshold-tuned": kind(
        TunedThresholdClassifierCV(_search(_forest()), scoring=make_scorer(fbeta_score, beta=3), cv=2), BINARY, **WIDE
    ),
    "threshold-decision-function": kind(
        FixedThresholdClassifier(BASES["boosting"](), threshold=-0.4, response_method="decision_function"),
        BINARY,
        **WIDE,
    ),
    "threshold-decision-function-first": kind(
        FixedThresholdClassifier(
            BASES["hist"](), threshold=0.3, response_method="decision_function", pos_label="benign"
        ),
        NAMES,
        **WIDE,
    ),
    "threshold-auto": kind(FixedThresholdClassifier(BASES["ada"]()), NAMES, **WIDE),
}
WITH_VALUES = WIDE | {"value_ulps": 2}
for base, make in BASES.items():
    KINDS |= {
        f"calibrated-ensemble-sigmoid-{base}": kind(
            CalibratedClassifierCV(make(), cv=3, ensemble=True), NAMES, **WITH_VALUES
        ),
        f"calibrated-ensemble-isotonic-{base}": kind(
            CalibratedClassifierCV(make(), method="isotonic", cv=4, ensemble=True), BINARY, **WITH_VALUES
        ),
    }
WITH_SHARES = WIDE | {"value_ulps": 8}  # exp and its roundings once more, divided by the sum
for base, several in (("forest", True), ("boosting", False), ("hist", True), ("pipeline", True), ("ada", False)):
    KINDS |= {
        f"calibrated-classes-sigmoid-{base}": kind(
            CalibratedClassifierCV(BASES[base](), cv=3, ensemble=several), MULTI, **WITH_SHARES
        ),
        f"calibrated-classes-isotonic-{base}": kind(
            CalibratedClassifierCV(BASES[base](), method="isotonic", cv=3, ensemble=not several), SMALL, **WITH_SHARES
        ),
    }
KINDS |= {
    f"calibrated-classes-temperature-{base}": kind(
        CalibratedClassifierCV(BASES[base](), method="temperature", cv=3, ensemble=several), MULTI, **WITH_SHARES
    )
    for base, several in (("boosting", True), ("hist", False))
}
KINDS["calibrated-classes-in-vote"] = kind(
    VotingClassifier(
        [
            ("a", CalibratedClassifierCV(_forest(max_depth=4), cv=3, ensemble=False)),
            ("b", GradientBoostingClassifier(n_estimators=2, random_state=0)),
        ],
        voting="soft",
        weights=[1, 2.5],
    ),
    MULTI,
    **WITH_SHARES,
)
for base, make in BASES.items():
    KINDS |= {
        f"threshold-{base}": kind(FixedThresholdClassifier(make(), threshold=0.3), BINARY, **WIDE),
        f"threshold-{base}-first": kind(
            FixedThresholdClassifier(make(), threshold=0.6, pos_label="benign"), NAMES, **WIDE
        ),
        f"calibrated-sigmoid-{base}": kind(CalibratedClassifierCV(make(), ensemble=False, cv=3), BINARY, **WIDE),
        f"calibrated-isotonic-{base}": kind(
            CalibratedClassifierCV(make(), method="isotonic", ensemble=False, cv=3), NAMES, **WIDE
        ),
    }
