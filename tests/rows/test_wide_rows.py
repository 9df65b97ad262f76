"""Tests models of very many columns: in every command, rows hold only the columns that are read."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.errors import RowsError
from forestc.forest.builder import changed
from forestc.frontends import carrying
from forestc.rows.given import rows_from
from forestc.rows.ranges import Ranges, made_rows

COLUMNS = 30_000
READ = (7, 12_345, 29_999)


@pytest.fixture(scope="module")
def narrow():
    """Makes a tree over three columns, and its rows."""
    X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32).astype(np.float64)
    return forestc.load(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, X.sum(axis=1) > 0)), X


@pytest.fixture(scope="module")
def wide(narrow):
    """Makes the same tree over three of 30,000 columns."""
    forest, X = narrow
    features = [forest.features[k] for k in range(3)]
    moved = tuple(
        type(f)(f"f{at}", f.number, at, f.missing, f.raw, named=True) for f, at in zip(features, READ, strict=True)
    )
    whole = np.zeros((len(X), COLUMNS))
    whole[:, READ] = X
    return carrying(changed(forest, features=moved, columns=COLUMNS)), whole


def test_rows_hold_what_is_read(narrow, wide):
    (small, X), (forest, whole) = narrow, wide
    assert forest.carried == READ and forest.width == 3 and forest.row_columns == (0, 1, 2)
    for rows in (whole, whole.astype(np.float32), scipy.sparse.csr_matrix(whole), whole.tolist()):
        assert np.array_equal(forestc.evaluate(forest, rows).leaves, forestc.evaluate(small, X).leaves)
    with pytest.raises(RowsError, match="an array or a data frame, of 30000 columns"):
        forestc.evaluate(forest, X[:, :2])
    with pytest.raises(RowsError, match="takes rows of 30000 columns"):
        forestc.quantize(forest, X)  # Rows with all columns are given only here.
    made = [made_rows(model, Ranges(), (model,)).X for model in (small, forest)]
    assert np.array_equal(*made, equal_nan=True)  # The values are those of a model of these columns alone.


def test_commands_need_no_array_of_all_columns(tmp_path, narrow, wide):
    (small, X), (forest, whole) = narrow, wide
    y = np.asarray(forestc.evaluate(small, X).decision)
    # This loads compiled code before memory is measured.
    forestc.compile(small, None, tmp_path / "small", targets="c,verilog", name="m")
    tracemalloc.start()
    design = forestc.compile(forest, None, tmp_path / "wide", targets="c,verilog", name="m").design
    assert forestc.check(design, engines=["c", "netlist"]).ok
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6  # Rows of all columns would take 6 GB.
    for file in ("verilog/m.v", "c/m.h"):
        texts = [(tmp_path / name / file).read_text().replace("30000", "3") for name in ("small", "wide")]
        assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    assert np.array_equal(design.predict(whole), y)


def test_rows_of_every_kind(tmp_path, wide):
    forest, whole = wide
    y = np.asarray(forestc.evaluate(forest, whole).decision).astype(int)
    frame = pd.DataFrame(whole, columns=[f"f{k}" for k in range(COLUMNS)])
    np.savez(tmp_path / "rows.npz", X=whole, y=y)
    np.save(tmp_path / "rows.npy", np.column_stack([whole, y]))
    frame.iloc[:4].assign(y=y[:4]).to_csv(tmp_path / "rows.csv", index=False)
    kinds = [
        (whole, y), (scipy.sparse.csc_matrix(whole), y), (frame, y), (str(tmp_path / "rows.npz"), "y"),
        (str(tmp_path / "rows.npy"), "-1"), (str(tmp_path / "rows.csv"), "y"),
    ]  # fmt: skip
    for rows, label in kinds:
        opened = rows_from(rows, forest, label)
        (batch,) = opened.batches()
        assert np.array_equal(batch.X, whole[: len(batch.X), READ])
        assert np.array_equal(np.asarray(forest.classes, int)[batch.truth], y[: len(batch.X)])


def test_sparse_rows_mean_what_the_library_says(wide):
    import xgboost

    X = scipy.sparse.random(200, 40, 0.4, format="csr", random_state=0, dtype=np.float32)
    y = (X[:, [3]].toarray() > 0.5).ravel().astype(int)
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=3).fit(X, y)
    assert np.array_equal(forestc.evaluate(forestc.load(model), X).decision, model.predict(X))


@pytest.mark.parametrize("options", [{"c_inputs": "float"}, {"c_inputs": "raw", "c_types": "*=double"}])
def test_headers_that_take_whole_rows(tmp_path, wide, options):
    forest, whole = wide
    design = forestc.compile(forest, whole, tmp_path / "o", targets="c", **options).design
    assert forestc.check(design, whole, engines=["c"]).ok
    assert sum(file.stat().st_size for file in (tmp_path / "o").rglob("*") if file.is_file()) < 100_000


SCRIPT = """
import json, resource, sys, time
import forestc
start = time.time()
design = forestc.compile(sys.argv[1], None, sys.argv[2], targets=("verilog", "c")).design
seconds = time.time() - start
assert forestc.check(design, engines=["c", "netlist"]).ok
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6]))
"""


@pytest.mark.long
@pytest.mark.parametrize(("columns", "read"), [(100_000, 20), (1_048_330, 113)])
def test_memory_and_time(tmp_path, columns, read):
    import xgboost

    random = np.random.default_rng(0)
    X = random.normal(size=(2000, read)).astype(np.float32)
    y = (X @ random.normal(size=read) > 0).astype(int)
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 4}, xgboost.DMatrix(X, y), 50)
    saved = json.loads(booster.save_raw("json"))
    saved["learner"]["learner_model_param"]["num_feature"] = str(columns)
    places = np.sort(random.choice(columns, read, replace=False)).tolist()
    for tree in saved["learner"]["gradient_booster"]["model"]["trees"]:
        tree["tree_param"]["num_feature"] = str(columns)
        tree["split_indices"] = [places[k] for k in tree["split_indices"]]
    (tmp_path / "wide.json").write_text(json.dumps(saved))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "wide.json"), str(tmp_path / "out")]
    seconds, gigabytes = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"{columns:,} columns, {read} in use: compiled in {seconds:.1f} s, peak {gigabytes:.2f} GB")
    assert gigabytes < 1
