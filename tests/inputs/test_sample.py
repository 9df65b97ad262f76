"""Tests of `forestc sample`: rows that are drawn from an input model, and the mark that compile refuses."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from input_models import MIXED, mixed_rows
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from skops.io import dump

import forestc
from forestc.errors import ForestcError, ModelError, RowsError
from forestc.inputs.text import printed
from forestc.rows.csv_table import SAMPLED, CsvTable
from forestc.rows.given import rows_from


def rows_in(path, forest):
    return np.concatenate([batch.X for batch in rows_from(path, forest).batches()])


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(5, max_depth=6, random_state=0).fit(X[:400], y[:400])
    dump(model, folder / "cancer.skops")
    forestc.compile(model, X[:400], folder / "out", level=0, targets="c")
    inputs, _ = forestc.model_inputs(folder / "out", X[:400], samples=1)
    (folder / "inputs.bn").write_text(printed(inputs))
    return folder


def test_rows_reach_every_leaf_and_carry_a_mark(run, work):
    status, out, err = run("sample", "inputs.bn", "--rows", "50", "--reach", "out", "-o", "rows.csv", "--json")
    figures = json.loads(out)
    assert (status, err, figures["drawn"]) == (0, "", 50)
    assert figures["leaves_reached_by_drawn"] < figures["leaves"] and figures["rows"] > 50
    assert (work / "rows.csv").read_text().startswith(f"{SAMPLED}\n")
    status, out, _ = run("check", "out", "--rows", "rows.csv", "--engines", "c", "--json")
    leaves = json.loads(out)["coverage"]["rows"]["leaves"]
    assert status == 0 and leaves["reached"] == figures["leaves"] - figures["leaves_unreachable"]
    assert json.loads(out)["rows"] == figures["rows"]
    for command in (("activity", "out"), ("report", "out", "-o", "page.html")):
        status, out, _ = run(*command, "--rows", "rows.csv", "--json")
        assert status == 0 and json.loads(out).get("rows", figures["rows"]) == figures["rows"]
    status, out, _ = run("measure", "out", "--cpu", "cortex-m0plus", "--rows", "rows.csv", "--most", "9", "--json")
    assert status == 0 and json.loads(out)["rows_given"] == figures["rows"]


def test_the_same_seed_draws_the_same_rows(work):
    one, two, other = (forestc.sample_rows(work / "inputs.bn", 40, seed=seed)[0] for seed in (0, 0, 1))
    assert one.shape == (40, 30) and np.array_equal(one, two, equal_nan=True)
    assert not np.array_equal(one, other, equal_nan=True)


def test_compile_refuses_invented_rows_unless_told(run, work):
    assert run("sample", "inputs.bn", "--rows", "60", "-o", "drawn.csv")[0] == 0
    asked = ("compile", "cancer.skops", "--rows", "drawn.csv", "--target", "c", "-o", "made")
    status, _, err = run(*asked)
    assert status == 1 and "drawn.csv" in err and "--rows-are-sampled" in err and not (work / "made").exists()
    forestc.make_engine(work / "engine", trees=8, nodes=128, features=30, walkers=1)
    X, y = load_breast_cancer(return_X_y=True)
    np.save(work / "real.npy", np.column_stack([X, y]))
    for words in (
        ("explore", "cancer.skops", "--rows", "drawn.csv", "--device", "lut6"),
        (
            "explore",
            "cancer.skops",
            "--rows",
            "real.npy",
            "--label",
            "-1",
            "--validation",
            "drawn.csv",
            "--device",
            "lut6",
        ),
        ("image", "cancer.skops", "--rows", "drawn.csv", "--engine", "engine"),
        ("compile", "cancer.skops", "--rows", "real.npy", "--label", "-1", "--held-out", "drawn.csv"),
    ):
        status, _, err = run(*words, "-o", "made")
        assert status == 1 and "drawn.csv" in err and "--rows-are-sampled" in err and not (work / "made").exists()
    with pytest.raises(ForestcError, match="rows_are_sampled"):
        forestc.compile(work / "cancer.skops", work / "drawn.csv", work / "made")
    with pytest.raises(ForestcError, match="rows_are_sampled"):
        forestc.quantize(work / "cancer.skops", work / "drawn.csv")
    assert run(*asked, "--rows-are-sampled")[0] == 0
    made = forestc.open_design(work / "made").manifest["made"]
    assert made["options"]["rows_are_sampled"] and "--rows-are-sampled" in made["command"]


def test_what_is_refused(run, work):
    assert run("sample", "inputs.bn", "-o", "rows.parquet")[0] == 2
    assert run("sample", "none.bn", "-o", "rows.csv")[0] == 1
    assert run("sample", "inputs.bn", "-o", "rows.csv", "--reech", "out")[0] == 2
    assert run("sample", "inputs.bn", "-o", "rows.csv", "--reach", "no")[0] == 1
    (work / "damaged.bn").write_text((work / "inputs.bn").read_text()[:-200])
    status, _, err = run("sample", "damaged.bn", "-o", "none.csv")
    assert status == 1 and "damaged.bn" in err and not (work / "none.csv").exists()


def test_a_folder_that_reads_fewer_columns_than_its_model(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    passes = "simplify,quantize-inputs,round-leaves,prune-splits{tolerance=0.05},simplify"
    design = forestc.compile(model, X, tmp_path / "out", label=y, passes=passes, targets="c", held_out=0.2).design
    assert len(design.forest.features) < len(design.model.features)
    inputs, _ = forestc.model_inputs(design, X, samples=1)
    _, figures = forestc.sample_rows(inputs, 50, tmp_path / "s.csv", reach=design)
    checked = forestc.check(design, tmp_path / "s.csv", engines=["c"])
    assert checked.ok and checked.agreement.rows == figures["rows"]
    assert checked.coverage["rows"]["leaves"]["reached"] == figures["leaves"] - figures["leaves_unreachable"]


def test_columns_without_names_are_written_by_position(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = forestc.load(RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y))
    inputs, _ = forestc.model_inputs(model, X, samples=1)
    rows, _ = forestc.sample_rows(inputs, 20, tmp_path / "s.csv")
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 21
    assert np.array_equal(rows_in(tmp_path / "s.csv", model), rows) and rows.shape == (20, 30)


def test_missing_values_and_codes_read_back(tmp_path):
    inputs, _ = forestc.model_inputs(MIXED, mixed_rows(300, 1), samples=1)
    rows, _ = forestc.sample_rows(inputs, 200, tmp_path / "s.csv")
    assert np.isnan(rows).any() and np.array_equal(rows_in(tmp_path / "s.csv", MIXED), rows, equal_nan=True)


def with_categories(names):
    random = np.random.default_rng(0)
    kinds = random.choice(names, 500)
    X = pd.DataFrame({"size": random.random(500), "kind": pd.Categorical(kinds, names)})
    X.loc[random.random(500) < 0.1, "kind"] = np.nan
    y = (X["size"] > 0.5) ^ (kinds == names[1])
    return X, LGBMClassifier(n_estimators=5, min_data_per_group=1, cat_smooth=0.1, verbose=-1).fit(X, y)


@pytest.mark.parametrize("names", [["red", "green", "blue"], ["", "other", 'b,"c'], ["nan", "N/A", "other"]])
def test_categories_are_written_by_name(tmp_path, names):
    X, fitted = with_categories(names)
    inputs, _ = forestc.model_inputs(fitted, X, tmp_path / "inputs.bn", samples=1)
    inputs = forestc.read_inputs(tmp_path / "inputs.bn")
    assert next(column.labels for column in inputs.inputs if column.category) == tuple(names)
    if "" in names:
        with pytest.raises(ModelError, match="'kind'"):
            forestc.sample_rows(inputs, 10, tmp_path / "s.csv")
        return
    design = forestc.compile(fitted, X, tmp_path / "out", targets="c").design
    rows, _ = forestc.sample_rows(inputs, 100, tmp_path / "s.csv", reach=design)
    found = rows_in(tmp_path / "s.csv", design.model)
    known = np.isnan(rows) | (rows < len(names))  # Another category than the model's has no code of its own.
    assert np.isnan(rows[:, 1]).any() and np.array_equal(found[known], rows[known], equal_nan=True)
    assert forestc.check(design, tmp_path / "s.csv", engines=["c"]).ok


def test_the_mark_is_no_row_and_no_header(tmp_path):
    text = "a,b\n1,2\n3,x\n"
    plain, marked = tmp_path / "plain.csv", tmp_path / "marked.csv"
    plain.write_text(text)
    (tmp_path / "marked.csv.gz").write_bytes(gzip.compress(f"{SAMPLED}\n{text}".encode()))
    marked.write_text(f"{SAMPLED}\n{text}")
    (tmp_path / "resaved.csv").write_text(f'\ufeff"{SAMPLED}",\r\n{text}', encoding="utf-8")
    for path in (plain, marked, tmp_path / "marked.csv.gz", tmp_path / "resaved.csv"):
        table = CsvTable.open(path, None, (), ())
        assert table.sampled == (path != plain) and table.names == ("a", "b") and table.whole().num_rows == 2
        assert table.head().num_rows == 2
        with pytest.raises(RowsError, match=f"line {3 + table.sampled}"):
            list(CsvTable.open(path, None, (), ()).batches(["a", "b"], (), 99))
    (tmp_path / "empty.csv").write_text(f"{SAMPLED}\n")
    with pytest.raises(RowsError, match="empty"):
        CsvTable.open(tmp_path / "empty.csv", None, (), ())
