"""Rows of text: categories by name, live, from arrays, data frames, CSV and Parquet files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import forestc
from forestc import load
from forestc.errors import RowsError
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import evaluate
from forestc.rows.files import rows_from

NAMES = ["red", "green", "blue", "dark red", "m\u00e4uve", "3"]


def frame(seed, names=NAMES, n=500):
    random = np.random.default_rng(seed)
    town = random.choice([*names, None], n, p=[0.95 / len(names)] * len(names) + [0.05])
    return pd.DataFrame({"n": random.normal(size=n), "color": town, "m": random.normal(size=n)})


def target(X):
    return (X.color.isin(["red", "blue", "3"]) ^ (X.n > 0.2)).astype(int)


def _pipeline(encoder):
    rest = ("scale", StandardScaler(), ["n", "m"])
    return make_pipeline(
        ColumnTransformer([("codes", encoder, ["color"]), rest]), RandomForestClassifier(8, random_state=0)
    )


MODELS = {
    "hist": lambda: HistGradientBoostingClassifier(max_iter=10, categorical_features=["color"]),
    "ordinal": lambda: _pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)),
    "ordinal-missing": lambda: _pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=99, encoded_missing_value=-5)
    ),
    "one-hot": lambda: _pipeline(OneHotEncoder(handle_unknown="ignore")),
    "one-hot-dense": lambda: _pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop="if_binary")),
}


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_text_is_read_as_the_library_reads_it(kind, tmp_path):
    X = frame(0)
    model = MODELS[kind]().fit(X, target(X))
    forest = load(model)
    forest = parse_forest(print_forest(forest))
    rows = frame(1, [*NAMES, "unseen", ""])
    wanted = model.predict(rows)
    assert len(set(wanted)) == 2
    assert np.array_equal(evaluate(forest, rows).decision, wanted)
    assert np.array_equal(evaluate(forest, rows.to_numpy()).decision, wanted)
    rows = frame(2, [*NAMES, "unseen"])  # an empty cell of a file is a missing value
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for source in (rows, tmp_path / "rows.parquet", tmp_path / "rows.csv"):
        found = [evaluate(forest, batch.X).decision for batch in rows_from(source, forest).batches()]
        assert np.array_equal(np.concatenate(found), model.predict(rows))


def test_a_design_of_text_rows_is_checked(tmp_path):
    X = frame(0)
    model = MODELS["ordinal"]().fit(X, target(X))
    X.assign(target=target(X)).to_csv(tmp_path / "rows.csv", index=False)
    done = forestc.compile(model, tmp_path / "rows.csv", tmp_path / "out", label="target")
    output = {feature["name"]: feature for feature in done.design.manifest["features"]}
    assert output["color"]["labels"] == sorted(NAMES)
    result = forestc.check(done.design, tmp_path / "rows.csv", label="target", engines=("netlist", "c"))
    assert result.ok and done.figures["agreement"] == 1.0


def test_text_in_a_column_of_numbers_is_refused():
    X = frame(0)
    forest = load(MODELS["ordinal"]().fit(X, target(X)))
    rows = X.astype(object)
    rows.loc[3, "n"] = "many"
    with pytest.raises(RowsError, match="feature 'n'"):
        evaluate(forest, rows)
