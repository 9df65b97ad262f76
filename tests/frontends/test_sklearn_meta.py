"""Tests searches, models with the user's own thresholds and calibrated models: messages about them, files, and
refusals."""

from __future__ import annotations

import numpy as np
import pytest
import skops.io
from contract.kinds_meta import BASES, BINARY, KINDS, NAMES, SMALL, _forest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from typer.testing import CliRunner
from xgboost import XGBClassifier

import forestc
from forestc import load
from forestc.cli import app
from forestc.errors import ModelError
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import evaluate


def _search(model=None, **more):
    return GridSearchCV(model or RandomForestClassifier(5, random_state=0), {"max_depth": [2, 4]}, cv=2, **more)


def test_what_a_search_chose_is_said_and_kept(tmp_path):
    X, y = BINARY
    search = _search().fit(X, y)
    depth = search.best_params_["max_depth"]
    expected = f"GridSearchCV: its best estimator is read, a RandomForestClassifier with max_depth={depth}"
    forest = load(search)
    assert forest.provenance.notes == (expected,)
    assert parse_forest(print_forest(forest)).provenance.notes == (expected,)
    done = forestc.compile(search, X, tmp_path / "out", label=y, targets=["verilog", "c"])
    assert done.figures["notes"] == [expected]
    assert forestc.check(done.design, X, label=y, engines=("netlist", "c")).ok
    skops.io.dump(search, tmp_path / "m.skops")
    output = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.skops")], env={"COLUMNS": "300"})
    assert expected in output.stdout


def test_a_search_of_another_librarys_models_is_read():
    X, y = BINARY
    search = _search(XGBClassifier(n_estimators=3)).fit(X, y)
    assert np.array_equal(evaluate(load(search), X).decision, search.predict(X))


def test_a_search_without_a_best_estimator_is_refused():
    with pytest.raises(ModelError, match=r"no best estimator.*refit=True"):
        load(_search(refit=False).fit(*BINARY))


def test_probabilities_that_the_library_alone_can_make_are_refused():
    model = FixedThresholdClassifier(XGBClassifier(n_estimators=3), threshold=0.3).fit(*BINARY)
    with pytest.raises(ModelError, match=r"probabilities that a XGBClassifier makes of a score.*scikit-learn's"):
        load(model)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (CalibratedClassifierCV(XGBClassifier(n_estimators=2), cv=2), "made by a softmax.*has a decision function"),
        (CalibratedClassifierCV(_forest(), method="temperature", cv=2), "logarithms.*use method='sigmoid'"),
        (CalibratedClassifierCV(OneVsRestClassifier(_forest()), cv=2), "one-vs-rest.*trained on all classes"),
        (CalibratedClassifierCV(VotingClassifier([("a", _forest())], voting="soft"), cv=2), "1 part and.*single model"),
        (VotingClassifier([("a", OneVsRestClassifier(_forest()))], voting="soft"), "one-vs-rest.*divided by their sum"),
        (VotingClassifier([("a", CalibratedClassifierCV(_forest(), cv=2))], voting="soft"), "ensemble=False"),
    ],
    ids=["softmax", "temperature", "one-vs-rest", "vote", "one-vs-rest-voting", "nested"],
)
def test_probabilities_of_several_classes_that_are_no_score_are_refused_by_name(model, said):
    with pytest.raises(ModelError, match=said):
        load(model.fit(*SMALL))


def test_a_class_that_falls_with_its_score_and_rows_without_any_probability_are_read():
    """A calibrator may fall with the score, and all may give 0: then each class gets the same share."""
    X, y = SMALL
    model = CalibratedClassifierCV(BASES["boosting"](), cv=3, ensemble=False).fit(X, y)
    (calibrated,) = model.calibrated_classifiers_
    calibrated.calibrators[1].a_ *= -1
    assert evaluate(load(model), X).values == pytest.approx(model.predict_proba(X), rel=1e-13)
    model = CalibratedClassifierCV(BASES["forest"](), cv=3, ensemble=False, method="isotonic").fit(X, y)
    for calibrator in model.calibrated_classifiers_[0].calibrators:
        calibrator.y_thresholds_[:] = np.where(calibrator.y_thresholds_ < 0.97, 0.0, calibrator.y_thresholds_)
        calibrator._build_f(calibrator.X_thresholds_, calibrator.y_thresholds_)
    said = evaluate(load(model), X).values
    assert np.array_equal(said, model.predict_proba(X)) and (said == 1 / 3).all(axis=1).any()


@pytest.mark.parametrize("kind", ["threshold-boosting-first", "calibrated-sigmoid-forest", "calibrated-isotonic-ada"])
def test_they_are_compiled_and_proved(kind, tmp_path):
    model = KINDS[kind]()
    X, y = NAMES if "first" in kind or "isotonic" in kind else BINARY
    done = forestc.compile(model.source, X, tmp_path / "out", label=y)
    result = forestc.check(done.design, X, label=y, engines=("netlist", "c"), prove=True)
    assert result.ok and result.agreement.agreement == 1.0


@pytest.mark.parametrize("outer", [lambda m: VotingClassifier([("a", m)], voting="soft"), OneVsRestClassifier])
def test_probabilities_of_a_calibrated_model_are_refused_and_its_vote_is_read(outer, tmp_path):
    X, y = BINARY
    model = CalibratedClassifierCV(BASES["forest"](), ensemble=False, cv=3)
    with pytest.raises(ModelError, match=r"probabilities of a calibrated model, of which only the decision.*'hard'"):
        load(outer(model).fit(X, y))
    vote = VotingClassifier([("a", model), ("b", BASES["tree"]())]).fit(X, y)
    assert np.array_equal(evaluate(load(vote), X).decision, vote.predict(X))


def test_a_compiled_calibrated_model_shows_no_probabilities(tmp_path):
    X, y = BINARY
    model = CalibratedClassifierCV(BASES["forest"](), ensemble=False, cv=3).fit(X, y)
    done = forestc.compile(model, X, tmp_path / "out", label=y, targets=["c"])
    assert not hasattr(done.design, "predict_proba")
    assert np.array_equal(done.design.predict(X), model.predict(X))


@pytest.mark.parametrize("base", ["forest", "boosting"])
def test_members_of_a_soft_vote_may_have_thresholds(base):
    X, y = BINARY
    own = FixedThresholdClassifier(BASES[base](), threshold=0.6, pos_label=0)
    vote = VotingClassifier([("a", own), ("b", BASES["tree"]())], voting="soft").fit(X, y)
    said = evaluate(load(vote), X)
    assert np.allclose(said.values, vote.predict_proba(X), rtol=0, atol=1e-12)
    assert np.array_equal(said.decision, vote.predict(X))
