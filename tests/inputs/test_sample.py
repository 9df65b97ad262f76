"""Tests of `forestc sample`: rows that are drawn from an input model, and the mark that compile refuses."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from skops.io import dump

import forestc
from forestc.errors import ForestcError
from forestc.inputs.text import printed
from forestc.rows.csv_table import SAMPLED


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


def test_the_same_seed_draws_the_same_rows(work):
    one, two, other = (forestc.sample_rows(work / "inputs.bn", 40, seed=seed)[0] for seed in (0, 0, 1))
    assert one.shape == (40, 30) and np.array_equal(one, two, equal_nan=True)
    assert not np.array_equal(one, other, equal_nan=True)


def test_compile_refuses_invented_rows_unless_told(run, work):
    assert run("sample", "inputs.bn", "--rows", "60", "-o", "drawn.csv")[0] == 0
    asked = ("compile", "cancer.skops", "--rows", "drawn.csv", "--target", "c", "-o", "made")
    status, _, err = run(*asked)
    assert status == 1 and "drawn.csv" in err and "--rows-are-sampled" in err and not (work / "made").exists()
    assert run("explore", "cancer.skops", "--rows", "drawn.csv", "--device", "xcup", "-o", "study")[0] == 1
    with pytest.raises(ForestcError, match="rows_are_sampled"):
        forestc.compile(work / "cancer.skops", work / "drawn.csv", work / "made")
    assert run(*asked, "--rows-are-sampled")[0] == 0


def test_what_is_refused(run, work):
    assert run("sample", "inputs.bn", "-o", "rows.parquet")[0] == 2
    assert run("sample", "none.bn", "-o", "rows.csv")[0] == 1
    assert run("sample", "inputs.bn", "-o", "rows.csv", "--reech", "out")[0] == 2
    assert run("sample", "inputs.bn", "-o", "rows.csv", "--reach", "no")[0] == 1
    (work / "damaged.bn").write_text((work / "inputs.bn").read_text()[:-200])
    status, _, err = run("sample", "damaged.bn", "-o", "none.csv")
    assert status == 1 and "damaged.bn" in err and not (work / "none.csv").exists()
