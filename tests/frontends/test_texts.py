"""Tests rows of text: categories by name, imputed or not, live, from arrays, data frames, CSV and Parquet files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from thinned import thinned

import forestc
from forestc import load
from forestc.errors import ModelError, RowsError
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import evaluate
from forestc.rows.given import rows_from

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


def same_from_files(forest, rows, expected, folder):
    rows.to_parquet(folder / "rows.parquet")
    rows.to_csv(folder / "rows.csv", index=False)
    for source in (rows, folder / "rows.parquet", folder / "rows.csv"):
        found = [evaluate(forest, batch.X).decision for batch in rows_from(source, forest).batches()]
        assert np.array_equal(np.concatenate(found), expected)


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
    expected = model.predict(rows)
    assert len(set(expected)) == 2
    assert np.array_equal(evaluate(forest, rows).scores, model.predict_proba(rows))
    assert np.array_equal(evaluate(forest, rows.astype(object).to_numpy()).decision, expected)
    rows = rows[rows.town.ne("").fillna(True).astype(bool)]  # An empty cell of a file is a missing value.
    same_from_files(forest, rows, model.predict(rows), tmp_path)


def test_a_text_may_stand_for_a_missing_value():
    X = frame(0, "?")
    for steps in ("textbook", "indicator", "constant-known"):
        model = pipeline(*STEPS[steps](missing_values="?")).fit(X, target(X))
        forest = load(model)
        rows = frame(1, "?", colors=[*COLORS, "unseen"])
        assert np.array_equal(evaluate(forest, rows).scores, model.predict_proba(rows))
        assert not any(feature.missing for feature in forest.features if feature.labels)


def test_missing_texts_of_two_kinds_are_refused():
    X = frame(0).to_numpy()
    X[:40, 2:] = None  # An imputer of NaN leaves None as it is.
    model = make_pipeline(
        ColumnTransformer([("texts", make_pipeline(imputer(), OneHotEncoder(**HOT)), [2, 3])]),
        RandomForestClassifier(3, random_state=0),
    )
    with pytest.raises(ModelError, match="replaces some missing texts, and the encoder knows others"):
        load(model.fit(X, np.arange(len(X)) % 2))


NAMES = ["red", "green", "blue", "dark red", "m\u00e4uve", "3"]


def plain(seed, names=NAMES, missing=0.05, n=500):
    """Makes rows with two columns of numbers around one of text."""
    random = np.random.default_rng(seed)
    color = random.choice([*names, None], n, p=[(1 - missing) / len(names)] * len(names) + [missing])
    return pd.DataFrame({"n": random.normal(size=n), "color": color, "m": random.normal(size=n)})


def beside_numbers(*steps):
    both = ColumnTransformer([("codes", make_pipeline(*steps), ["color"]), ("scale", StandardScaler(), ["n", "m"])])
    return make_pipeline(both, RandomForestClassifier(8, random_state=0))


MODELS = {
    "hist": lambda: HistGradientBoostingClassifier(max_iter=10, categorical_features=["color"]),
    "ordinal": lambda: beside_numbers(OrdinalEncoder(**CODES)),
    "ordinal-scaled": lambda: beside_numbers(OrdinalEncoder(**CODES), StandardScaler()),
    "ordinal-missing": lambda: beside_numbers(OrdinalEncoder(**CODES, encoded_missing_value=-5)),
    "one-hot": lambda: beside_numbers(OneHotEncoder(**HOT)),
    "one-hot-dense": lambda: beside_numbers(OneHotEncoder(sparse_output=False, drop="if_binary", **HOT)),
}


@pytest.mark.parametrize("names", [NAMES, ["10", "20", "30", "1"], ["NA", "EU", "null"]], ids=lambda names: names[0])
@pytest.mark.parametrize("kind", MODELS)
def test_text_is_read_as_the_library_reads_it(kind, names, tmp_path):
    missing = 0.05 if names == NAMES else 0.0  # A name may look like a number, or like a missing value.
    X = plain(0, names, missing)
    model = MODELS[kind]().fit(X, X.color.isin(names[::2]) ^ (X.n > 0.2))
    forest = parse_forest(print_forest(load(model)))
    rows = plain(1, [*names, "unseen", ""], missing)
    expected = model.predict(rows)
    assert len(set(expected)) == 2
    for given in (rows, rows.to_numpy(), rows.to_numpy().tolist()):
        assert np.array_equal(evaluate(forest, given).decision, expected)
    rows = plain(2, [*names, "unseen"], missing)  # An empty cell of a file is a missing value.
    same_from_files(forest, rows, model.predict(rows), tmp_path)
    rows = rows.astype(object)
    rows.loc[3, "n"] = "many"
    with pytest.raises(RowsError, match="feature 'n'"):
        evaluate(forest, rows)


def numbers_filled():
    return pipeline(*STEPS["textbook"](), model=GradientBoostingClassifier(n_estimators=8, random_state=0)), frame(0)


@pytest.mark.parametrize("make", [numbers_filled, lambda: (MODELS["ordinal"](), plain(0))], ids=["filled", "ordinal"])
def test_such_a_design_is_checked_and_proved(make, tmp_path):
    model, X = make()
    labels = X.color.isin(["red", "blue"]).astype(int)
    skops.io.dump(model.fit(X, labels), tmp_path / "m.skops")
    X.assign(target=labels).to_csv(tmp_path / "rows.csv", index=False)
    done = forestc.compile(tmp_path / "m.skops", tmp_path / "rows.csv", tmp_path / "out", label="target")
    known = {feature["name"]: feature for feature in done.design.manifest["features"]}
    assert known["color"]["labels"] == sorted(set(X.color.dropna()))
    result = forestc.check(done.design, tmp_path / "rows.csv", label="target", engines=("netlist", "c"), prove=True)
    assert result.ok and done.figures["agreement"] == 1.0
