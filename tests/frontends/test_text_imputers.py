"""Text that is filled in before it is encoded: the textbook pipeline of numbers and texts with missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from thinned import thinned

import forestc
from forestc import load
from forestc.errors import ModelError
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import evaluate
from forestc.rows.files import rows_from

COLORS = ["red", "green", "blue", "dark red"]
TOWNS = ["Kyiv", "Oslo", "3"]
HOT = {"handle_unknown": "ignore"}
CODES = {"handle_unknown": "use_encoded_value", "unknown_value": -1}


def frame(seed, missing=np.nan, colors=COLORS, towns=TOWNS, n=400, dtype=object):
    random = np.random.default_rng(seed)

    def column(names):
        drawn = random.integers(0, len(names), n)
        texts = [names[code] if draw < 0.85 else missing for code, draw in zip(drawn, random.random(n), strict=True)]
        return pd.Series(texts, dtype=dtype)

    numbers = pd.DataFrame({"a": random.normal(size=n), "b": random.integers(0, 9, n).astype(float)})
    numbers = numbers.mask(random.random((n, 2)) < 0.1)
    return numbers.assign(color=column(colors), town=column(towns))


def target(X):
    texts = X[["color", "town"]].astype(object).fillna("nothing")
    return (texts.color.isin(["red", "nothing"]) ^ texts.town.eq("Oslo") ^ X.a.gt(0.1)).astype(int)


def pipeline(*steps, model=None, columns=("color", "town")):
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    both = ColumnTransformer([("numbers", numbers, ["a", "b"]), ("texts", make_pipeline(*steps), list(columns))])
    return make_pipeline(both, RandomForestClassifier(8, random_state=0) if model is None else model)


def imputer(**options):
    return SimpleImputer(**{"strategy": "most_frequent", **options})


STEPS = {
    "textbook": lambda **more: (imputer(**more), OneHotEncoder(**HOT)),
    "constant": lambda **more: (imputer(strategy="constant", fill_value="nothing", **more), OneHotEncoder(**HOT)),
    "constant-known": lambda **more: (imputer(strategy="constant", fill_value="red", **more), OrdinalEncoder(**CODES)),
    "ordinal-scaled": lambda **more: (imputer(**more), OrdinalEncoder(**CODES), StandardScaler()),
    "dropped": lambda **more: (imputer(**more), OneHotEncoder(drop="if_binary", sparse_output=False, **HOT)),
    "indicator": lambda **more: (imputer(add_indicator=True, **more), OneHotEncoder(**HOT)),
    "indicator-codes": lambda **more: (imputer(add_indicator=True, **more), OrdinalEncoder(**CODES)),
    "twice": lambda **more: (imputer(**more), imputer(missing_values="red"), OneHotEncoder(**HOT)),
}
MISSING = {
    "nan": (np.nan, object, {}),
    "none": (None, object, {"missing_values": None}),
    "none-in-text-columns": (None, "str", {}),
    "pandas": (pd.NA, "string", {"missing_values": pd.NA}),
    "pandas-objects": (pd.NA, object, {"missing_values": pd.NA}),
    "categories": (None, "category", {}),
}


@pytest.mark.parametrize(
    ("missing", "steps"), thinned([(kind, steps) for kind in sorted(MISSING) for steps in sorted(STEPS)], keep=12)
)
def test_text_is_filled_in_as_the_library_fills_it(steps, missing, tmp_path):
    marker, dtype, options = MISSING[missing]
    X = frame(0, marker, dtype=dtype)
    model = pipeline(*STEPS[steps](**options)).fit(X, target(X))
    forest = parse_forest(print_forest(load(model)))
    unseen = {"colors": [*COLORS, "unseen", "nothing"], "towns": [*TOWNS, "red", ""]}
    rows = frame(1, marker, dtype=dtype, **unseen)
    wanted = model.predict(rows)
    assert len(set(wanted)) == 2
    assert np.array_equal(evaluate(forest, rows).scores, model.predict_proba(rows))
    assert np.array_equal(evaluate(forest, rows.astype(object).to_numpy()).decision, wanted)
    rows = rows[rows.town.ne("").fillna(True).astype(bool)]  # an empty cell of a file is a missing value
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for name in ("rows.parquet", "rows.csv"):
        found = [evaluate(forest, batch.X).decision for batch in rows_from(tmp_path / name, forest).batches()]
        assert np.array_equal(np.concatenate(found), model.predict(rows))


def test_a_text_may_stand_for_a_missing_value():
    X = frame(0, "?")
    for steps in ("textbook", "indicator", "constant-known"):
        model = pipeline(*STEPS[steps](missing_values="?")).fit(X, target(X))
        forest = load(model)
        rows = frame(1, "?", colors=[*COLORS, "unseen"])
        assert np.array_equal(evaluate(forest, rows).scores, model.predict_proba(rows))
        assert not any(feature.missing for feature in forest.features if feature.labels)


def test_such_a_design_is_checked_and_proved(tmp_path):
    X = frame(0)
    model = pipeline(*STEPS["textbook"](), model=GradientBoostingClassifier(n_estimators=8, random_state=0))
    model.fit(X, target(X))
    skops.io.dump(model, tmp_path / "m.skops")
    X.assign(target=target(X)).to_csv(tmp_path / "rows.csv", index=False)
    done = forestc.compile(tmp_path / "m.skops", tmp_path / "rows.csv", tmp_path / "out", label="target")
    result = forestc.check(done.design, tmp_path / "rows.csv", label="target", engines=("netlist", "c"), prove=True)
    assert result.ok and done.figures["agreement"] == 1.0


def test_missing_texts_of_two_kinds_are_refused():
    X = frame(0).to_numpy()
    X[:40, 2:] = None  # which an imputer of NaN leaves as it is
    model = make_pipeline(
        ColumnTransformer([("texts", make_pipeline(imputer(), OneHotEncoder(**HOT)), [2, 3])]),
        RandomForestClassifier(3, random_state=0),
    )
    with pytest.raises(ModelError, match="replaces some missing texts, and the encoder knows others"):
        load(model.fit(X, np.arange(len(X)) % 2))
