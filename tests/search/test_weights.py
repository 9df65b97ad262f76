"""Tests rows with weights, and the bootstrap by class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier

import forestc
from forestc.errors import OptionError, RowsError
from forestc.passes.quick_evaluation import answers_to
from forestc.passes.scorer import RowErrors, row_errors
from forestc.rows.batches import ArrayRows, RowSelection
from forestc.rows.groups import weighted
from forestc.search.choice import _drawn


@pytest.fixture
def case():
    X, y = make_classification(900, 6, n_informative=4, flip_y=0.1, random_state=0)
    weights = np.where(X[:, 0] > 0, 8.0, 0.5) * (1 + np.arange(900) % 3)
    return X, y, weights


def test_weighted_errors_are_those_of_repeated_rows():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 2)), random.normal(size=200)
    times = random.integers(1, 5, 200)
    forest = forestc.load(DecisionTreeRegressor(max_depth=3).fit(X[:40], y[:40]))
    plain = row_errors(forest, ArrayRows(np.repeat(X, times, axis=0), np.repeat(y, times)))
    own = row_errors(forest, weighted(ArrayRows(X, y, size=17), times, None))
    assert own.accuracy == pytest.approx(plain.accuracy)
    assert own.loss(own.errors * 1.5).lost == pytest.approx(plain.loss(plain.errors * 1.5).lost)


def test_the_scale_of_weights_changes_no_error():
    random = np.random.default_rng(0)
    right, other, weights = random.integers(0, 2, 300), random.integers(0, 2, 300), random.uniform(1, 3, 300)
    losses = []
    for scale in (1.0, 100.0):
        each = scale * weights
        errors = RowErrors(right * each, np.zeros(300, dtype=np.int64), True, weights=each)
        loss = errors.loss(other * each)
        losses.append((loss.lost, loss.error, loss.wide, errors.standard_error))
    assert losses[0] == pytest.approx(losses[1]) and losses[0][2] != losses[0][1]


def test_weights_are_read_from_columns_and_arrays(case, tmp_path):
    X, y, weights = case
    frame = pd.DataFrame(X).rename(columns="c{}".format).assign(w=weights)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for given in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        rows = RowSelection(weighted(ArrayRows(X, y, size=101), "w", given), 5, True)
        found = np.concatenate([batch.weights for batch in rows.batches()])
        assert found.tolist() == pytest.approx(weights[4::5].tolist())
    for wrong in ([1.0] * 899, [0.0, *weights[1:]], ["much"] * 900, [np.nan, *weights[1:]], [np.inf, *weights[1:]]):
        with pytest.raises(RowsError):
            weighted(ArrayRows(X, y), wrong, None)


@pytest.mark.parametrize("file", [False, True])
def test_accuracy_is_weighted(case, tmp_path, file):
    X, y, weights = case
    frame = pd.DataFrame(X).rename(columns="c{}".format)
    model = XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(frame[:400], y[:400])
    frame = frame.assign(y=y, w=weights)
    rows, others = frame[:400], frame[400:]
    if file:
        for part, name in ((rows, "rows.csv"), (others, "others.csv")):
            part.to_csv(tmp_path / name, index=False)
        rows, others = tmp_path / "rows.csv", tmp_path / "others.csv"
    done = forestc.compile(model, rows, tmp_path / "out", label="y", weights="w", held_out=others, level=2, targets="c")
    right = answers_to(done.design.forest, X[400:]) == y[400:]
    accuracy = np.average(right, weights=weights[400:])
    assert accuracy != right.mean()
    assert done.figures["measured"]["held_out"]["compiled"] == pytest.approx(accuracy)
    chosen = next(row for row in done.figures["level"]["table"] if row["chosen"])
    assert chosen["accuracy"] == pytest.approx(accuracy) and done.design.manifest["made"]["options"]["weights"] == "w"
    with pytest.raises(OptionError, match="a cluster reads no weights"):
        forestc.compile(model, rows, tmp_path / "b", label="y", weights="w", scheduler="tcp://none", targets="c")
    with pytest.raises(RowsError, match="no column 'w'"):
        forestc.compile(model, rows, tmp_path / "b", label="y", weights="w", held_out=(X, y), level=2, targets="c")
    with pytest.raises(RowsError, match="5 weights of 900 rows"):
        forestc.compile(model, X, tmp_path / "b", label=y, weights=weights[:5], targets="c")


@pytest.mark.parametrize("prepared", [False, True])
def test_copies_are_trained_with_the_weights(case, tmp_path, prepared):
    X, y, _ = case
    weights = np.where(y == 1, 25.0, 1.0)
    booster = XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1)
    model = make_pipeline(StandardScaler(), booster) if prepared else booster
    model.fit(X, y, **{"xgbclassifier__sample_weight" if prepared else "sample_weight": weights})
    compiled = [
        forestc.compile(model, X, tmp_path / f"{given is None}", label=y, weights=given, level=2, targets="c")
        for given in (weights, None)
    ]
    levels = [done.figures["level"]["level"] for done in compiled]
    assert levels == ["O2", "O1"]  # Copies trained without weights are unlike the model.


def test_draws_have_the_rows_of_each_class():
    classes = np.repeat(np.arange(3), (50, 3, 700))
    order = np.random.default_rng(0).permutation(753)
    truth = np.empty(753, dtype=np.int64)
    truth[order] = classes
    errors = RowErrors(np.zeros(753), truth, True)
    assert truth[errors.by_class[0]].tolist() == classes.tolist() == errors.by_class[1].tolist()
    drawn = _drawn(classes)
    assert [set(drawn[classes == each].sum(axis=0)) for each in range(3)] == [{50}, {3}, {700}]
    assert (drawn[50:53] != 1).any()
