"""Tests which column each feature reads: random models, headers and kinds of rows, against the libraries."""

from __future__ import annotations

from collections import Counter

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from example_counts import examples
from random_columns import check_case, random_case
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import forestc
from forestc import load
from forestc.errors import RowsError
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import evaluate
from forestc.rows.given import rows_from


@pytest.mark.filterwarnings("ignore")
def test_rows_are_matched_as_the_rule_says(tmp_path):
    found = Counter(check_case(random_case(seed), tmp_path) for seed in range(examples(120)))
    assert min(found["refused"], found["taken"], found["adopted"]) > 9


def classes_of(forest, rows, label=None):
    return np.concatenate([evaluate(forest, batch.X).decision for batch in rows_from(rows, forest, label).batches()])


@pytest.fixture(scope="module")
def from_array():
    """Trains a model on an array, from which it reads columns 1, 2 and 3 of 4; returns it with its rows under one-based
    names."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(300, 4)).astype(np.float32), columns=["x1", "x2", "x3", "x4"])
    frame["x1"] = np.float32(1)
    y = ((frame.x2 > 0) ^ (frame.x3 > 0.3) ^ (frame.x4 > 0)).astype(int)
    return RandomForestClassifier(10, random_state=0).fit(frame.to_numpy(), y), frame, y


def test_made_up_names_match_nothing(from_array, tmp_path):
    model, frame, y = from_array
    forest = load(model)
    assert [(feature.name, feature.named) for feature in forest.features] == [(f"x{k}", False) for k in (1, 2, 3)]
    expected = model.predict(frame.to_numpy())
    frame.assign(label=y).to_csv(tmp_path / "rows.csv", index=False)
    assert np.array_equal(classes_of(forest, tmp_path / "rows.csv", "label"), expected)
    for rows in (frame, frame.rename(columns=dict(zip(frame, "zyxw", strict=True))), pa.Table.from_pandas(frame)):
        assert np.array_equal(classes_of(forest, rows), expected)
        assert np.array_equal(evaluate(forest, rows).decision, expected)
    frame.set_axis(range(4), axis=1).to_parquet(tmp_path / "numbered.parquet")
    assert np.array_equal(classes_of(forest, tmp_path / "numbered.parquet"), expected)


@pytest.mark.parametrize("names", ["x2 x1 x3 x4", "f3 f2 f1 f0", "column_1 column_10 column_2 column_3", "3 2 1 0"])
def test_names_that_say_another_order_are_refused(from_array, names, tmp_path):
    model, frame, _ = from_array
    rows = frame.set_axis(names.split(), axis=1)
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    of_numbers = names[0].isdigit()  # The first line of such a CSV file may be a row.
    for asked in (rows, pa.Table.from_pandas(rows), tmp_path / "rows.parquet", tmp_path / "rows.csv")[: 4 - of_numbers]:
        with pytest.raises(RowsError, match=r"say another order: .*; put the columns into the order the model was"):
            classes_of(load(model), asked)
    for asked in (rows, rows.set_axis(map(int, names.split()), axis=1) if of_numbers else rows):
        with pytest.raises(RowsError, match="say another order"):
            evaluate(load(model), asked)


def test_evaluate_finds_numbered_names_by_name(from_array):
    _, frame, y = from_array
    frame = frame.set_axis(["x0", "x1", "x2", "x3"], axis=1)
    forest = load(RandomForestClassifier(10, random_state=0).fit(frame, y))
    assert all(feature.named for feature in forest.features)
    assert np.array_equal(evaluate(forest, frame[["x3", "x1", "x0", "x2"]]).decision, evaluate(forest, frame).decision)


def test_libraries_names_for_arrays_are_made_up(from_array):
    _, frame, y = from_array
    models = {
        "xgboost": xgboost.XGBClassifier(n_estimators=3),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=3, verbose=-1),
        "catboost": catboost.CatBoostClassifier(iterations=3, verbose=0, allow_writing_files=False),
    }
    for model in models.values():
        assert not any(feature.named for feature in load(model.fit(frame.to_numpy(), y)).features)
        assert all(feature.named for feature in load(model.fit(frame, y)).features)
        numbered = load(model.fit(frame.set_axis([3, 1, 2, 0], axis=1), y))  # The names of such a frame are kept.
        assert all(feature.named and feature.name == str([3, 1, 2, 0][feature.column]) for feature in numbered.features)


def test_names_that_differ_by_spaces_are_not_taken_twice(from_array):
    _, frame, y = from_array
    frame = frame.set_axis(["c", "a b", "a_b", "d"], axis=1)
    forest = load(RandomForestClassifier(10, random_state=0).fit(frame, y))
    with pytest.raises(RowsError, match="column 'a b' is missing"):
        evaluate(forest, frame.drop(columns="a b"))


def test_unnamed_features_print_and_parse(from_array):
    forest = load(from_array[0])
    text = print_forest(forest)
    assert 'feature "x1" float32 column 1 raw float32 missing unnamed\n' in text
    labeled = text.replace("missing unnamed", 'missing labels ["a] unnamed"] unnamed', 1)
    for source in (text, labeled):
        assert print_forest(parse_forest(source)) == source
        assert not any(feature.named for feature in parse_forest(source).features)


def test_compile_keeps_the_rows_names(from_array, tmp_path):
    model, frame, y = from_array
    rows = frame.set_axis(["site", "age", "mean size", "x9"], axis=1).assign(y=y)
    said = []
    done = forestc.compile(model, rows, tmp_path / "out", label="y", targets=("verilog", "c"), progress=said.append)
    (note,) = done.figures["notes"]
    assert note == "the model has no column names: the rows' columns are taken in their order, site, age, mean size, x9"
    assert said.count(note) == 1
    assert [feature["name"] for feature in done.design.manifest["features"]] == ["age", "mean size", "x9"]
    shuffled = rows[["x9", "y", "mean size", "age"]]  # From here on columns that no condition reads may be left out.
    result = forestc.check(done.design, shuffled, label="y", engines=("netlist", "c"))
    assert result.ok and result.agreement.model == done.figures["accuracy"]["model"] > 0.9
    with pytest.raises(RowsError, match="column 'age' is missing"):
        forestc.check(done.design, frame.assign(y=y), label="y", engines=("netlist",))
    assert forestc.check(done.design, frame.to_numpy(), engines=("netlist",)).ok  # without names: by position
    assert [f.name for f in forestc.quantize(model, rows, "y").features] == ["age", "mean size", "x9"]
    assert forestc.compile(model, frame.to_numpy(), tmp_path / "out", targets=("c",)).figures["notes"] == []


def test_a_column_twice_is_refused(from_array):
    model, frame, y = from_array
    twice = pd.concat([frame, frame["x2"]], axis=1)
    for trained_on in (frame.to_numpy(), frame):
        forest = load(RandomForestClassifier(3, random_state=0).fit(trained_on, y))
        for ask in (evaluate, lambda forest, rows: rows_from(rows, forest), lambda f, rows: rows_from(rows, f, "x1")):
            with pytest.raises(RowsError, match="the data frame: two columns have one name: 'x2'"):
                ask(forest, twice)
    with pytest.raises(RowsError, match="the labels are not a list"):
        rows_from(frame.to_numpy(), load(model), 3)


def test_a_table_has_its_label_by_name(from_array):
    model, frame, y = from_array
    table = pa.Table.from_pandas(frame.assign(ill=y))
    (batch,) = rows_from(table, load(model), "ill").batches()
    assert np.array_equal(batch.truth, y) and np.array_equal(batch.X[:, 1:], frame.to_numpy()[:, 1:])
    with pytest.raises(RowsError, match="the data frame: there is no column 'sick'; it has: x1, x2"):
        rows_from(table, load(model), "sick")
    numbered = frame.set_axis(range(4), axis=1)
    numbered[4] = y
    (batch,) = rows_from(numbered, load(model), 4).batches()
    assert np.array_equal(batch.truth, y)


@pytest.fixture(scope="module")
def countries():
    """Trains a model of text columns, one with a category called NA; returns it with its rows."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "country": pd.Categorical(random.choice(["NA", "DE", "null"], 400)),
            "color": pd.Categorical(random.choice(["red", "blue", None], 400)),
            "z": random.normal(size=400).astype(np.float32),
        }
    )
    y = (frame.color.isna() ^ (frame.country == "DE") ^ (frame.z > 1)).astype(int)
    return xgboost.XGBClassifier(n_estimators=6, max_depth=4, enable_categorical=True).fit(frame, y), frame


@pytest.mark.parametrize("missing", ["", "NA", "null", "nan", "None", "<NA>"])
def test_missing_texts_are_reported_column_by_column(countries, missing, tmp_path):
    model, frame = countries
    frame = frame.copy()
    frame.loc[:20, "z"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False, na_rep=missing)
    assert np.array_equal(classes_of(load(model), tmp_path / "rows.csv"), model.predict(frame))


def test_a_category_s_own_name_is_never_missing(countries, tmp_path):
    model, frame = countries
    frame = frame.copy()
    frame.loc[:50, "country"] = None
    frame.to_csv(tmp_path / "empty.csv", index=False)
    assert np.array_equal(classes_of(load(model), tmp_path / "empty.csv"), model.predict(frame))
    frame.to_csv(tmp_path / "na.csv", index=False, na_rep="NA")
    as_names = frame.assign(country=frame.country.fillna("NA"))
    assert np.array_equal(classes_of(load(model), tmp_path / "na.csv"), model.predict(as_names))


def test_an_empty_name_and_a_missing_value_are_the_same_in_csv(tmp_path):
    frame = pd.DataFrame({"c": ["", "a", "b", "a"] * 30, "n": np.arange(120.0)})
    steps = ColumnTransformer([("c", OrdinalEncoder(), ["c"])], remainder="passthrough")
    model = make_pipeline(steps, RandomForestClassifier(3, random_state=0)).fit(frame, frame.c == "a")
    forest = load(model)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(RowsError, match=r"a field of column 'c' is empty, and so is the name.*write Parquet"):
        classes_of(forest, tmp_path / "rows.csv")
    assert np.array_equal(classes_of(forest, tmp_path / "rows.parquet"), model.predict(frame))


def test_codes_in_a_file_of_names_are_refused(countries, tmp_path):
    model, frame = countries
    frame.assign(color=frame.color.cat.codes).to_csv(tmp_path / "codes.csv", index=False)
    with pytest.raises(RowsError, match=r"column 'color' holds '-?[01]', and its categories have names.*blue, red"):
        classes_of(load(model), tmp_path / "codes.csv")
    mixed = frame.assign(color=frame.color.cat.codes)
    mixed.to_parquet(tmp_path / "mixed.parquet")
    for rows in (mixed, tmp_path / "mixed.parquet"):
        with pytest.raises(RowsError, match="column 'country' holds names of categories and 'color' numbers"):
            classes_of(load(model), rows)


def test_a_first_line_of_categories_is_no_header(tmp_path):
    frame = pd.DataFrame({"a": ["red", "blue"] * 50, "b": ["big", "small", "big", "big"] * 25, "n": np.arange(100.0)})
    steps = ColumnTransformer([("c", OrdinalEncoder(), [0, 1])], remainder="passthrough")
    model = make_pipeline(steps, RandomForestClassifier(3, random_state=0)).fit(frame.to_numpy(), frame.b == "big")
    frame.to_csv(tmp_path / "bare.csv", index=False, header=False)
    assert np.array_equal(classes_of(load(model), tmp_path / "bare.csv"), model.predict(frame.to_numpy()))


def coded(values, categories=None):
    return pd.DataFrame({"kind": pd.Categorical(values, categories), "size": np.linspace(-1, 1, len(values))})


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_categories_that_are_codes_are_taken_everywhere(library, tmp_path):
    kinds = np.random.default_rng(0).integers(0, 3, 300)
    frame = coded(kinds)
    y = ((kinds == 1) ^ (frame["size"] > 0)).astype(int)
    if library == "xgboost":
        model = xgboost.XGBClassifier(n_estimators=4, enable_categorical=True).fit(frame, y)
    else:
        model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, min_data_per_group=1).fit(frame, y)
    forest, expected = load(model), model.predict(frame)
    frame.to_parquet(tmp_path / "rows.parquet")
    plain = frame.assign(kind=kinds)
    for rows in (frame, plain, tmp_path / "rows.parquet", pa.Table.from_pandas(frame)):
        assert np.array_equal(classes_of(forest, rows), expected)
    assert np.array_equal(evaluate(forest, frame).decision, expected)
    assert forestc.compile(model, frame, tmp_path / "out", label=list(y), targets=("c",)).figures["agreement"] == 1.0
    # A model of an array takes their codes, a model of a frame the numbers.
    for other in (coded(np.maximum(kinds, 1)), coded(kinds, [2, 1, 0])):
        for ask in (evaluate, lambda forest, rows: rows_from(rows, forest)):
            with pytest.raises(
                RowsError, match=r"'kind' holds the categories .*, which are not their own codes from 0"
            ):
                ask(forest, other)


def test_truth_values_in_a_file(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"size": random.normal(size=300).astype(np.float32), "flag": random.random(300) < 0.5})
    model = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1).fit(frame, frame.flag ^ (frame["size"] > 0))
    forest, expected = load(model), model.predict(frame)
    for name, rows in (("True", frame), ("true", frame.assign(flag=frame.flag.map({True: "true", False: "false"})))):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        assert np.array_equal(classes_of(forest, tmp_path / f"{name}.csv"), expected)
    frame = frame.astype({"flag": object})
    frame.loc[:9, "flag"] = None
    frame.to_csv(tmp_path / "missing.csv", index=False)
    missing = frame.assign(flag=frame.flag.astype(float))
    assert np.array_equal(classes_of(forest, tmp_path / "missing.csv"), model.predict(missing))
