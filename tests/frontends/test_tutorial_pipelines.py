"""Tests pipelines as tutorials on churn data train them: blocks of text, 0/1, boolean and numeric columns, with rows on
and one step beside the thresholds, missing values and unseen categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn import ensemble
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import forestc

ROWS = 500
TEXT = ["gender", "Partner", "InternetService", "Contract", "PaymentMethod"]
FLAGS = ["SeniorCitizen", "PaperlessBilling"]  # 0 or 1; boolean
NUMBERS = ["tenure", "MonthlyCharges", "TotalCharges"]
PAYMENTS = ["Electronic check", "Mailed check", "Bank transfer (automatic)", "Credit card (automatic)", "Cash", "Other"]


def churn(seed: int, count: int = ROWS) -> tuple[pd.DataFrame, Any]:
    random = np.random.default_rng(seed)
    tenure = random.integers(0, 73, count)
    monthly = np.round(random.uniform(18, 119, count), 2)
    rows = pd.DataFrame(
        {
            "gender": random.choice(["Male", "Female"], count),
            "SeniorCitizen": random.integers(0, 2, count),
            "Partner": random.choice(["Yes", "No"], count),
            "tenure": tenure,
            "InternetService": random.choice(["DSL", "Fiber optic", "No"], count),
            "Contract": random.choice(["Month-to-month", "One year", "Two year"], count, p=[0.55, 0.25, 0.2]),
            "PaperlessBilling": random.random(count) < 0.6,
            "PaymentMethod": random.choice(PAYMENTS, count, p=[0.34, 0.23, 0.2, 0.2, 0.02, 0.01]),
            "MonthlyCharges": monthly,
            "TotalCharges": np.where(tenure == 0, np.nan, np.round(monthly * tenure, 2)),
        }
    )
    score = 1.5 * (rows["Contract"] == "Month-to-month") + 0.8 * (rows["InternetService"] == "Fiber optic")
    score += 0.6 * (rows["PaymentMethod"] == "Electronic check") + 0.5 * rows["SeniorCitizen"] - tenure / 30
    score += 0.5 * rows["PaperlessBilling"]
    return rows, (score + random.normal(size=count) > 0.6).astype(int).to_numpy()


def hard(forest: Any, missing: list[str]) -> pd.DataFrame:
    """Returns rows with values on and one step beside the forest's thresholds, missing values and unseen texts."""
    rows, _ = churn(1, 2_000)
    random = np.random.default_rng(2)
    for index, feature in enumerate(forest.features):
        cuts = forest.conditions.thresholds(index)
        cuts = cuts[np.isfinite(cuts)].astype(float)
        if feature.name in NUMBERS and len(cuts):
            beside = random.choice(cuts, len(rows))
            beside = np.nextafter(beside, beside + random.integers(-1, 2, len(rows)))
            rows[feature.name] = np.where(random.random(len(rows)) < 0.5, beside, rows[feature.name])
    for name in missing:
        rows[name] = rows[name].mask(random.random(len(rows)) < 0.05)
    for name in TEXT:
        rows[name] = rows[name].mask(random.random(len(rows)) < 0.05, "never seen")
    return rows


def forest(**options: Any) -> Any:
    return ensemble.RandomForestClassifier(8, max_depth=6, random_state=0, **options)


def hot(**options: Any) -> OneHotEncoder:
    return OneHotEncoder(**{"handle_unknown": "ignore", **options})


def codes(**options: Any) -> OrdinalEncoder:
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, **options)


def told(fill: str = "missing") -> SimpleImputer:
    return SimpleImputer(strategy="constant", fill_value=fill)


def often() -> SimpleImputer:
    return SimpleImputer(strategy="most_frequent")


def scaled() -> Pipeline:
    return Pipeline([("imputer", SimpleImputer(strategy="median")), ("scaler", StandardScaler())])


def columns(categorical: Any, numeric: Any = None, names: list[str] = TEXT + FLAGS, **options: Any) -> Any:
    numeric = scaled() if numeric is None else numeric
    return ColumnTransformer([("num", numeric, NUMBERS), ("cat", categorical, names)], **options)


class Resampled(Pipeline):
    """Stands for imbalanced-learn's pipeline, which leaves out its samplers when it predicts."""

    def predict(self, X: Any) -> Any:
        for _, step in self.steps[:-1]:
            X = X if hasattr(step, "fit_resample") else step.transform(X)
        return self.steps[-1][1].predict(X)


class Sampler:
    """Stands for one of imbalanced-learn's samplers, such as SMOTE."""

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def fit_resample(self, X: Any, y: Any) -> Any:
        return X, y

    def transform(self, X: Any) -> Any:
        return X


def frozen(rows: Any, labels: Any, outer: Callable[[Any], Any]) -> Any:
    inner = make_pipeline(columns(make_pipeline(told(), hot())), forest()).fit(rows, labels)
    return outer(FrozenEstimator(inner)).fit(rows, labels)


SELECTED = make_column_transformer(
    (make_pipeline(SimpleImputer(), MinMaxScaler()), make_column_selector(dtype_include=np.number)),
    (make_pipeline(often(), hot(drop="if_binary")), make_column_selector(dtype_exclude=np.number)),
)
INDICATED = make_union(SimpleImputer(strategy="median"), MissingIndicator())
EACH = ColumnTransformer(
    [("hot", hot(sparse_output=False), TEXT), ("impute", SimpleImputer(), NUMBERS)],
    remainder="passthrough", verbose_feature_names_out=False,
).set_output(transform="pandas")  # fmt: skip
VOTE = ensemble.VotingClassifier(
    [("a", forest()), ("b", ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0))], voting="soft"
)
SEARCH = GridSearchCV(
    make_pipeline(columns(make_pipeline(told(), hot())), forest()), {"randomforestclassifier__max_depth": [3, 5]}, cv=2
)
BOOSTED = ensemble.GradientBoostingClassifier(n_estimators=12, random_state=0)
PIPELINES: dict[str, Any] = {
    "constant, one-hot": make_pipeline(columns(make_pipeline(told(), hot())), forest()),
    "constant, one-hot without the first": make_pipeline(columns(make_pipeline(told(), hot(drop="first"))), BOOSTED),
    "constant, codes": make_pipeline(columns(make_pipeline(told("Unknown"), codes())), BOOSTED),
    "constant with an indicator": make_pipeline(
        columns(make_pipeline(SimpleImputer(strategy="constant", fill_value="?", add_indicator=True), codes())),
        forest(),
    ),
    "most frequent, one-hot": make_pipeline(columns(make_pipeline(often(), hot())), forest(class_weight="balanced")),
    "selectors": make_pipeline(SELECTED, ensemble.ExtraTreesClassifier(8, max_depth=6, random_state=0)),
    "codes, histograms": make_pipeline(
        columns(codes(encoded_missing_value=-2), "passthrough"),
        ensemble.HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=5),
    ),
    "one-hot, XGBoost": make_pipeline(
        columns(make_pipeline(told(), hot(sparse_output=False))), XGBClassifier(n_estimators=12, max_depth=3)
    ),
    "codes, LightGBM": make_pipeline(
        columns(make_pipeline(told(), codes())), LGBMClassifier(n_estimators=12, num_leaves=7, verbose=-1)
    ),
    "resampled": Resampled(
        [("columns", columns(make_pipeline(often(), hot()))), ("smote", Sampler()), ("model", forest())]
    ),
    "search": SEARCH,
    "rare categories": make_pipeline(
        columns(make_pipeline(told(), hot(min_frequency=25, handle_unknown="infrequent_if_exist"))), forest()
    ),
    "most categories": make_pipeline(columns(make_pipeline(told(), hot(max_categories=3, drop="first"))), forest()),
    "codes of rare categories": make_pipeline(columns(make_pipeline(told(), codes(min_frequency=0.05))), BOOSTED),
    "bins": make_pipeline(
        columns(
            make_pipeline(told(), hot()),
            make_pipeline(SimpleImputer(), KBinsDiscretizer(6, encode="ordinal", quantile_method="linear")),
        ),
        forest(),
    ),
    "calibrated": lambda rows, labels: frozen(rows, labels, CalibratedClassifierCV),
    "threshold": lambda rows, labels: frozen(
        rows, labels, lambda model: TunedThresholdClassifierCV(model, cv="prefit", refit=False)
    ),
    "vote": make_pipeline(columns(make_pipeline(told(), hot(sparse_output=False)), sparse_threshold=0), VOTE),
    "indicators": make_pipeline(columns(make_pipeline(often(), hot()), INDICATED), forest()),
    "frames": make_pipeline(EACH, ensemble.AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8)),
    "selection": make_pipeline(
        columns(make_pipeline(told(), hot())),
        SelectKBest(k=8),
        ensemble.BaggingClassifier(ensemble.GradientBoostingClassifier(n_estimators=4), 3, random_state=0),
    ),
    "blocks beside each other": make_pipeline(
        FeatureUnion(
            [
                ("flags", ColumnTransformer([("flags", make_pipeline(told(), codes()), ["Partner", *FLAGS])])),
                ("rest", columns(make_pipeline(told(), hot()), names=TEXT)),
            ]
        ),
        forest(),
    ),
}
# Columns that may miss values: an indicator refuses those where training missed none.
MISSING = {"frames": ["TotalCharges"], "indicators": [*TEXT, "TotalCharges"]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.each_case
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_of_tutorials_decide_as_scikit_learn(name):
    rows, labels = churn(0)
    model = PIPELINES[name]
    model = model(rows, labels) if callable(model) else model.fit(rows, labels)
    read = forestc.load(model)
    later = hard(read, MISSING.get(name, [*TEXT, *NUMBERS]))
    found = forestc.evaluate(read, later)
    assert int((found.decision != model.predict(later)).sum()) == 0
    if name not in ("calibrated", "threshold"):
        ours = found.values[:, -1] if found.values.ndim > 1 else found.values
        assert np.allclose(ours, model.predict_proba(later)[:, 1], rtol=1e-6, atol=1e-9)
