"""Tests files of older versions of the libraries: forestc says what the version that trained them said."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from forestc import load
from forestc.errors import ModelError
from forestc.rows.encode import evaluate

VERSIONS = Path(__file__).parents[1] / "cases" / "versions"
FILES = sorted(path for path in VERSIONS.glob("*/*") if path.suffix != ".npz")


@pytest.mark.each_case
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_older_versions_say_what_their_library_said(path):
    if path.parent.name == "sklearn-1.3.2" and path.stem in ("boosting", "binary"):
        with pytest.raises(ModelError, match=r"the module sklearn\.ensemble\._gb_losses.*skl2onnx"):
            load(path)
        return
    answers = np.load(path.parent / "answers.npz")
    rows, scores, values = (answers[f"{path.stem}_{what}"] for what in ("rows", "scores", "values"))
    forest = load(path)
    found = evaluate(forest, rows)
    if path.suffix == ".skops":
        assert np.array_equal(found.decision, scores)
    else:
        divisor = forest.aggregate.divisor if path.parent.name.startswith("lightgbm") else 1.0
        assert np.array_equal(found.scores, scores.reshape(found.scores.shape) / divisor)
    close = {"treelite": 1e-6, "xgboost": 2e-7}.get(path.parent.name.partition("-")[0], 1e-15)
    values = values.reshape(len(rows), -1)[:, -found.values.shape[1] :]
    assert np.allclose(found.values, values, rtol=close, atol=1e-15)


def test_xgboost_before_1_6_does_not_say_how_many_trees_are_parallel(tmp_path):
    held = json.loads((VERSIONS / "xgboost-1.7.6" / "stopped.json").read_text())
    del held["learner"]["gradient_booster"]["model"]["gbtree_model_param"]["num_parallel_tree"]
    (tmp_path / "m.json").write_text(json.dumps({**held, "version": [1, 5, 0]}))
    assert len(load(tmp_path / "m.json", iterations="best").trees) == 2


def test_the_scikit_learn_that_saved_a_file_is_named_once(tmp_path):
    X, y = load_iris(return_X_y=True)
    with mock.patch("sklearn.base.__version__", "1.5.2"):
        (tmp_path / "m.pkl").write_bytes(
            pickle.dumps(make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, y))
        )
        (tmp_path / "bad.pkl").write_bytes(pickle.dumps(StandardScaler().fit(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        origin = load(tmp_path / "m.pkl", trust_pickle=True).provenance
        assert origin.version == "1.5.2" and len(origin.notes) == 1 and "scikit-learn 1.5.2" in origin.notes[0]
        with pytest.raises(ModelError, match=r"saved by scikit-learn 1\.5\.2: StandardScaler is not read"):
            load(tmp_path / "bad.pkl", trust_pickle=True)


def test_boosting_by_samme_r_is_refused():
    model = AdaBoostClassifier(n_estimators=2).fit(*load_iris(return_X_y=True))
    model.algorithm = "SAMME.R"
    with pytest.raises(ModelError, match="SAMME"):
        load(model)
