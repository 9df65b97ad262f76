"""Tests a compiled design as a scikit-learn estimator: the evaluator's answers in scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
from models import KINDS, rows_near_thresholds, trained
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted
from thinned import thinned

import forestc
from forestc.errors import ModelError, RowsError
from forestc.forest.text import print_forest
from forestc.manifest.fitted_estimator import QuantizedModel


def compiled(model, X, y, folder, **options):
    return forestc.compile(model, X, folder / "out", label=y, name="m", **{"targets": ["c"]} | options).design


def quantized(model, X, y, passes=None):
    return QuantizedModel(forestc.load(model), forestc.quantize(model, X, y, passes))


@pytest.mark.parametrize("kind", thinned(sorted(KINDS), keep=7))
def test_predicts_what_the_evaluator_says(kind):
    model, X, y = trained(kind)
    design = quantized(model, X, y)
    rows = rows_near_thresholds(forestc.load(model), X, 2000)
    said = forestc.evaluate(design.forest, rows)
    assert np.array_equal(design.predict(rows), said.decision)
    assert design.predict(rows).dtype == said.decision.dtype
    found = design._evaluated(rows)
    assert np.array_equal(found.leaves, said.leaves) and np.array_equal(found.scores, said.scores)
    assert design.score(X, y) == pytest.approx(model.score(X, y), abs=0.01)
    assert is_classifier(design) == is_classifier(model) and is_regressor(design) == is_regressor(model)
    check_is_fitted(design)


@pytest.mark.parametrize(
    "kind", ["forest-multi", "forest-binary", "boosting-binary", "xgboost-multi", "forest-missing"]
)
def test_probabilities_are_those_of_the_model(kind):
    model, X, y = trained(kind)
    design = quantized(model, X, y, "simplify,quantize-inputs{input=ordered},round-leaves{leaf_bits=16}")
    found, wanted = design.predict_proba(X), model.predict_proba(X)
    assert found.shape == wanted.shape and np.allclose(found.sum(axis=1), 1)
    assert np.abs(found - wanted).max() < 1e-3
    assert np.array_equal(design.classes_, model.classes_)
    side = design.decision_function(X)
    if len(model.classes_) == 2:
        assert side.shape == (len(X),) and np.array_equal(design.classes_[(side >= 0).astype(int)], design.predict(X))
    else:
        assert side.shape == wanted.shape


def test_votes_are_probabilities_and_a_regression_has_none():
    X, y = load_iris(return_X_y=True)
    members = [(str(seed), RandomForestClassifier(3, random_state=seed)) for seed in range(3)]
    design = quantized(VotingClassifier(members).fit(X, y), X, y)
    assert np.allclose(design.predict_proba(X).sum(axis=1), 1)
    assert np.array_equal(design.classes_[design.predict_proba(X).argmax(axis=1)], design.predict(X))
    model, X, y = trained("forest-regression")
    design = quantized(model, X, y)
    for name in ("predict_proba", "decision_function", "classes_"):
        assert not hasattr(design, name)


def test_scikit_learn_takes_it_like_the_model(tmp_path):
    model, X, y = trained("forest-text-labels")
    design = compiled(model, X, y, tmp_path)
    assert clone(design) is design and design.fit(X, y) is design and design.get_params() == {}
    scores = cross_val_score(design, X, y, cv=3)
    assert len(scores) == 3 and scores.mean() == pytest.approx(design.score(X, y))
    import matplotlib

    matplotlib.use("Agg")
    matrix = ConfusionMatrixDisplay.from_estimator(design, X, y).confusion_matrix
    assert matrix.sum() == len(X) and np.trace(matrix) == (design.predict(X) == y).sum()
    with pytest.raises(ValueError, match="no parameters"):
        design.set_params(depth=3)


def test_words_and_bits_are_those_of_the_written_vectors(tmp_path):
    """quantize and pack give the test bench's inputs, and unpack reads its expected outputs."""
    model, X, y = trained("xgboost-missing")
    design = forestc.compile(model, X, tmp_path / "out", label=y, targets=["verilog"], outputs="both").design
    lines = [line.split() for line in design.path("vectors").read_text().split("\n") if line][:200]
    data = design.pack(design.quantize(X[: len(lines)]))
    assert [int.from_bytes(row.tobytes(), "little") for row in data] == [int(x, 16) for x, _ in lines]
    width = -(-sum(field["bits"] for field in design.manifest["outputs"]) // 8)
    results = np.array([list(int(expected, 16).to_bytes(width, "little")) for _, expected in lines], dtype=np.uint8)
    said = forestc.evaluate(design.forest, X[: len(lines)])
    assert np.array_equal(design.unpack(results), np.concatenate([said.index[:, np.newaxis], said.scores], axis=1))


def test_rows_and_words_that_do_not_fit_are_refused(tmp_path):
    model, X, y = trained("forest-multi")
    design = compiled(model, X, y, tmp_path, targets=["verilog"])
    with pytest.raises(RowsError, match="give a table, such as an array or a data frame, of 64 columns"):
        design.predict(X[:, :3])
    words = design.quantize(X[:2])
    with pytest.raises(RowsError, match="shape"):
        design.pack(words[:, :3])
    with pytest.raises(RowsError, match="integers"):
        design.pack(words.astype(float))
    words[1, 0] = 1 << 40
    with pytest.raises(RowsError, match="row 1"):
        design.pack(words)
    with pytest.raises(RowsError, match="bytes"):
        design.unpack(np.zeros((3, 0), dtype=np.uint8))
    assert design.predict(X[:0]).shape == (0,)


def test_cross_validation_of_the_compiled_form():
    """Trains and quantizes in each fold, so the figures differ from the frozen design's."""
    X, y = load_iris(return_X_y=True)
    hardware = forestc.CompiledClassifier(
        RandomForestClassifier(10, random_state=0), passes="simplify,round-leaves{leaf_bits=2}"
    )
    scores = cross_val_score(hardware, X, y, cv=5)
    assert scores.mean() > 0.9
    probabilities = cross_val_predict(hardware, X, y, cv=5, method="predict_proba")
    assert probabilities.shape == (150, 3)
    fitted = clone(hardware).fit(X, y)
    assert np.array_equal(fitted.predict(X), forestc.evaluate(fitted.forest_, X).decision)
    assert list(fitted.classes_) == [0, 1, 2] and fitted.forest_.quantized
    assert repr(hardware).startswith("CompiledClassifier(")
    with pytest.raises(NotFittedError):
        hardware.predict(X)


@pytest.mark.parametrize("level", [2, 3])
def test_estimators_search_as_compile_does(level):
    X, y = load_iris(return_X_y=True)
    model = forestc.CompiledClassifier(RandomForestClassifier(5, max_depth=3, random_state=0), level=level).fit(X, y)
    assert model.score(X, y) > 0.9
    assert print_forest(model.forest_) == print_forest(forestc.quantize(model.estimator_, X, y, level=level))


@parametrize_with_checks(
    [
        forestc.CompiledClassifier(RandomForestClassifier(3, max_depth=3, random_state=0)),
        forestc.CompiledRegressor(RandomForestRegressor(3, max_depth=3, random_state=0)),
    ],
    expected_failed_checks=lambda estimator: {
        "check_classifiers_train": "a margin of 0 is class 1, as at the model's threshold; scikit-learn's is class 0"
    },
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_search_over_the_compiled_form_compiles_to_what_it_predicts(tmp_path):
    X, y = load_iris(return_X_y=True)
    classifier = forestc.CompiledClassifier(RandomForestClassifier(3, random_state=0))
    search = GridSearchCV(classifier, {"estimator__max_depth": [2, 3]}, cv=2).fit(X, y)
    design = forestc.compile(search, X, tmp_path / "out", label=y).design
    rows = rows_near_thresholds(forestc.load(search), X, 500)
    assert np.array_equal(design.predict(rows), search.predict(rows))
    smaller = clone(classifier).set_params(level=0).fit(X, y)
    assert "level=0" in forestc.load(smaller).provenance.notes[-1]


def test_a_regressor_is_no_classifier():
    X, y = load_diabetes(return_X_y=True)
    hardware = forestc.CompiledRegressor(RandomForestRegressor(10, max_depth=4, random_state=0))
    assert hardware.fit(X, y).score(X, y) == pytest.approx(hardware.estimator_.score(X, y), abs=0.05)
    assert not hasattr(hardware, "predict_proba")
    with pytest.raises(ModelError, match="use CompiledRegressor"):
        forestc.CompiledClassifier(RandomForestRegressor(2)).fit(X, y)
