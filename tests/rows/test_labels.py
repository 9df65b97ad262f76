"""Tests labels of several targets, as zeros and ones, in a column each, and with names that the model does not know."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

import forestc
from forestc import load
from forestc.cli import app
from forestc.errors import OptionError, RowsError
from forestc.rows.columns import name_classes
from forestc.rows.given import rows_from
from forestc.rows.training_rows import read_table

IRIS, KIND = load_iris(return_X_y=True)
X, Y = load_diabetes(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
FIELDS = [f"f{index}" for index in range(4)]


def truth_in(rows):
    return np.concatenate([batch.truth for batch in rows.batches()])


@pytest.fixture(scope="module")
def iris():
    return RandomForestClassifier(5, max_depth=4, random_state=0).fit(IRIS, KIND)


@pytest.fixture(scope="module")
def two():
    """Returns labels of two targets: names, and numbers."""
    return RandomForestClassifier(5, max_depth=4, random_state=0).fit(IRIS, np.column_stack([NAMES[KIND], KIND % 2]))


def two_frame():
    table = pd.DataFrame(IRIS, columns=FIELDS)
    return table.assign(name=NAMES[KIND], odd=KIND % 2)[["name", *FIELDS, "odd"]]


def save(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "bare.csv", index=False, header=False)
    frame.to_parquet(folder / "t.parquet")
    return folder / "t.csv", folder / "bare.csv", folder / "t.parquet"


def test_one_column_of_labels_may_be_a_table(iris):
    forest = load(iris)
    column = KIND[:, np.newaxis]
    for labels in (column, column.tolist(), pd.DataFrame({"kind": KIND}), pd.Series(KIND)):
        assert np.array_equal(truth_in(rows_from(IRIS, forest, labels)), KIND)
    frame = pd.DataFrame(IRIS, columns=FIELDS).assign(kind=KIND)
    assert np.array_equal(truth_in(rows_from(frame, forest, ["kind"])), KIND)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (["low", "high"] * 75, r"row 0: .*'low'; give a number"),
        ([1, "high"] * 75, r"row 1: .*'high'; give a number"),
        ([[1], [1, 2]] * 75, r"the rows: .*lists.*; give one label per row"),
        (3, r"the rows: .*a single value; give one label per row"),
        ([1] * 149, r"the rows: 149 labels for 150 rows; give one label for each row"),
    ],
    ids=["texts", "mixed", "ragged", "number", "short"],
)
@pytest.mark.parametrize("model", [True, False], ids=["model", "training"])
def test_labels_that_are_no_values_are_refused(label, said, model):
    forest = load(DecisionTreeRegressor(max_depth=2).fit(IRIS, KIND))
    with pytest.raises(RowsError, match=said):
        rows_from(IRIS, forest, label) if model else read_table(IRIS, label, regression=True)


def test_training_takes_one_column_of_labels():
    column = KIND[:, np.newaxis]
    assert np.array_equal(read_table(IRIS, column).y, KIND)
    assert np.array_equal(read_table(IRIS, column.tolist(), regression=True).y, KIND)
    with pytest.raises(RowsError, match=r"2 columns of labels; give one label for each row"):
        read_table(IRIS, np.hstack([column, column]))


def test_a_column_for_each_class_may_hold_zeros_and_ones(iris, tmp_path):
    forest = load(iris)
    hot = np.eye(3, dtype=int)[KIND]
    for labels in (hot, hot.astype(bool), hot.astype(float), pd.DataFrame(hot)):
        assert np.array_equal(truth_in(rows_from(IRIS, forest, labels)), KIND)
    frame = pd.DataFrame(IRIS, columns=FIELDS).assign(**dict(zip(NAMES, hot.T, strict=True)))
    csv, _, _ = save(frame, tmp_path)
    assert np.array_equal(truth_in(rows_from(csv, forest, list(NAMES))), KIND)
    hot[7] = [1, 1, 0]
    with pytest.raises(RowsError, match=r"row 7: .* not a single 1 among zeros"):
        rows_from(IRIS, forest, hot)
    with pytest.raises(RowsError, match=r"2 columns of labels, and the model has one target of 3 classes"):
        rows_from(IRIS, forest, hot[:, :2])


def test_several_targets_have_a_column_each(two, tmp_path):
    forest, frame = load(two), two_frame()
    expected = np.column_stack([KIND, KIND % 2])
    csv, bare, parquet = save(frame, tmp_path)
    np.savez(tmp_path / "t.npz", X=IRIS, name=NAMES[KIND], odd=(KIND % 2).astype(str))
    table = pa.Table.from_pandas(frame)
    for rows, labels in (
        *((csv, label) for label in ("name,odd", "name, odd", ["name", "odd"], ("name", "odd"))),
        (parquet, "name,odd"),
        (bare, "0,-1"),
        (frame, ["name", "odd"]),
        (table, ["name", "odd"]),
        (tmp_path / "t.npz", "name,odd"),
        (frame[FIELDS], frame[["name", "odd"]]),
        (IRIS, frame[["name", "odd"]].to_numpy()),
    ):
        assert np.array_equal(truth_in(rows_from(rows, forest, labels)), expected)
    with pytest.raises(RowsError, match=r"1 columns of labels, and the model has 2 targets.*column for each target"):
        truth_in(rows_from(csv, forest, "name"))
    with pytest.raises(RowsError, match=r"there is no column 'odder'"):
        rows_from(csv, forest, "name,odder")
    with pytest.raises(RowsError, match=r"named twice"):
        rows_from(csv, forest, "odd,odd")


def test_a_column_with_a_comma_in_its_name_is_one_column(iris, tmp_path):
    csv, _, _ = save(pd.DataFrame(IRIS, columns=FIELDS).assign(**{"kind, of iris": KIND}), tmp_path)
    assert np.array_equal(truth_in(rows_from(csv, load(iris), "kind, of iris")), KIND)


def test_a_design_of_several_targets_is_judged_on_all_of_them(two, tmp_path):
    csv, _, _ = save(two_frame(), tmp_path)
    said = two.predict(IRIS)
    right = (said == np.column_stack([NAMES[KIND], (KIND % 2).astype(str)])).all(axis=1).mean()
    done = forestc.compile(two, csv, tmp_path / "out", label="name,odd", held_out=csv)
    assert done.figures["accuracy"] == {"model": right, "compiled": right}
    output = [step["held_out"] for step in done.figures["passes"] if step["held_out"] is not None]
    assert output and all("accuracy" in json.dumps(one) for one in output)
    command = ["check", str(tmp_path / "out"), "--rows", str(csv), "--label", "name,odd", "--engines", "netlist,c"]
    output = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(output.stdout)["accuracy"]["compiled"] == right


@pytest.mark.parametrize(
    "model", [RandomForestRegressor(5, random_state=0), MultiOutputRegressor(GradientBoostingRegressor(n_estimators=5))]
)
def test_values_of_several_outputs_are_judged_together(model, tmp_path):
    from sklearn.metrics import r2_score

    truth = np.column_stack([Y, Y[::-1]])
    model.fit(X, truth)
    frame = pd.DataFrame(X).add_prefix("f").assign(a=truth[:, 0], b=truth[:, 1])
    csv, _, _ = save(frame, tmp_path)
    done = forestc.compile(model, csv, tmp_path / "out", label="a,b")
    # Both outputs have the same spread, so that both have the same weight.
    assert done.figures["accuracy"]["model"] == pytest.approx(r2_score(truth, model.predict(X)), abs=1e-9)


def test_names_of_classes_match_labels_and_stay(iris, tmp_path):
    frame = pd.DataFrame(IRIS, columns=FIELDS).assign(kind=NAMES[KIND])
    csv, _, _ = save(frame, tmp_path)
    with pytest.raises(RowsError, match=r"'setosa'.*the model's classes: 0, 1, 2; compile or explore with classes="):
        forestc.compile(iris, csv, tmp_path / "out", label="kind")
    done = forestc.compile(iris, csv, tmp_path / "out", label="kind", classes=NAMES.tolist())
    assert done.figures["accuracy"]["model"] == iris.score(IRIS, KIND)
    assert done.design.manifest["classes"] == NAMES.tolist()
    assert "setosa" in done.design.path("c").read_text()
    result = forestc.check(done.design, csv, label="kind", engines=("netlist", "c"), prove=True)
    assert result.ok and result.agreement.model == iris.score(IRIS, KIND)


def test_names_of_classes_on_the_command_line(iris, tmp_path):
    import skops.io

    skops.io.dump(iris, tmp_path / "m.skops")
    csv, _, _ = save(pd.DataFrame(IRIS, columns=FIELDS).assign(kind=NAMES[KIND]), tmp_path)
    command = ["compile", str(tmp_path / "m.skops"), "--rows", str(csv), "--label", "kind", "--json"]
    command += ["--classes", "setosa, versicolor,virginica", "--target", "c", "-o", str(tmp_path / "out")]
    output = CliRunner().invoke(app, command)
    assert json.loads(output.stdout)["accuracy"]["model"] == iris.score(IRIS, KIND)


def test_names_that_do_not_fit_the_classes_are_refused(iris, two):
    for names, message in (
        (["a", "b"], r"2 names for 3 classes.*in this order: 0, 1, 2"),
        (["a", "b", "a"], "two classes have one name"),
        (["a", "", "c"], "one has none"),
    ):
        with pytest.raises(OptionError, match=message):
            name_classes(load(iris), names)
    with pytest.raises(OptionError, match="the model has 2 targets"):
        name_classes(load(two), ["a", "b"])
    with pytest.raises(OptionError, match="the model has no classes"):
        name_classes(load(RandomForestRegressor(2).fit(X, Y)), ["a", "b"])


@pytest.mark.parametrize("missing", [np.nan, None])
def test_a_missing_label_is_refused_with_its_row(iris, missing):
    labels = KIND.astype(object)
    labels[7] = missing
    with pytest.raises(RowsError, match="row 7: a label is missing"):
        truth_in(rows_from(IRIS, load(iris), labels.tolist()))


def test_an_empty_label_of_a_file_is_refused(iris, tmp_path):
    frame = two_frame()[[*FIELDS, "name"]]
    frame.loc[3, "name"] = ""
    path, *_ = save(frame, tmp_path)
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(IRIS, NAMES[KIND])
    with pytest.raises(RowsError, match="row 3: a label is missing"):
        truth_in(rows_from(path, load(model), "name"))


def test_labels_that_are_no_class_are_counted_and_said(iris, tmp_path):
    labels = KIND.copy()
    labels[:5] = 9
    compiled = forestc.compile(iris, IRIS, tmp_path / "out", label=labels, targets=["c"])
    said = "5 of 150 rows have a label that is no class of the model: they count as decided wrongly"
    assert said in compiled.figures["notes"]
    assert said in forestc.check(tmp_path / "out", IRIS, label=labels).notes


def test_labels_that_a_guess_would_meet_better_are_doubted(iris, tmp_path):
    forestc.compile(iris, IRIS, tmp_path / "right", label=KIND, targets=["c"])
    assert not any("a guess" in note for note in forestc.check(tmp_path / "right", IRIS, label=KIND).notes)
    compiled = forestc.compile(iris, IRIS, tmp_path / "other", label=(KIND + 1) % 3, targets=["c"])
    notes = compiled.figures["warnings"], forestc.check(tmp_path / "other", IRIS, label=(KIND + 1) % 3).notes
    assert all(any("a guess among its classes 33.33 %" in note for note in said) for said in notes)


def test_a_label_that_is_a_feature_is_named(tmp_path):
    rows = pd.DataFrame({"a": range(20), "b": range(20), "y": [0] * 10 + [1] * 10})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = load(RandomForestClassifier(1, max_depth=1).fit(rows[["a", "b"]], rows["y"]))
    read = model.features[0].name
    with pytest.raises(RowsError, match=f"the label '{read}' is a feature of the model"):
        rows_from(tmp_path / "rows.csv", model, read)
