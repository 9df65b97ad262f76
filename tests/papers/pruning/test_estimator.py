"""Tests the estimator that prunes ensembles: scikit-learn's checks, all subsets of few members, options and limits."""

import signal
import time
from itertools import combinations

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import forestc
from forestc.errors import ModelError, OptionError, RowsError
from forestc.papers import PrunedEnsemble
from forestc.papers.pruning.baselines import BASELINES

CHECKED = (
    PrunedEnsemble(ensemble.RandomForestClassifier(3, random_state=0), random_state=0),
    PrunedEnsemble(estimators=[("tree", DecisionTreeClassifier(random_state=0)), ("bayes", GaussianNB())]),
)


@pytest.mark.filterwarnings("ignore")  # as scikit-learn's own tests
@parametrize_with_checks(CHECKED)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def hard_rows(seed, rows=120):
    """Makes rows of two overlapping classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 4))
    return X, np.array(["no", "yes"])[((X[:, 0] * X[:, 1] + random.normal(size=rows)) > 0.3).astype(int)]


@pytest.fixture(scope="module")
def fitted():
    X, y = hard_rows(0)
    forest = ensemble.RandomForestClassifier(7, max_depth=3, random_state=0).fit(X[:60], y[:60])
    return forest, X[60:], y[60:]


def test_the_optimum_of_few_members(fitted):
    forest, X, y = fitted
    pruned = PrunedEnsemble(FrozenEstimator(forest), random_state=0).fit(X, y)
    votes = np.stack([member.predict(X) for member in forest.estimators_], axis=1)
    best = max(
        ((votes[:, members].sum(axis=1) > threshold) == (y == "yes")).mean()
        for size in range(1, 8)
        for members in combinations(range(7), size)
        for threshold in range(size + 1)
    )
    assert pruned.objective_ == pytest.approx(best) == pruned.score(X, y) and pruned.gap_ == pytest.approx(0)
    assert pruned.threshold_ < len(pruned.members_) == len(pruned.estimators_)


@pytest.mark.parametrize("method", BASELINES)
def test_baselines_decide_by_the_majority(fitted, method):
    forest, X, y = fitted
    pruned = PrunedEnsemble(FrozenEstimator(forest), method=method).fit(X, y)
    votes = np.stack([member.predict(X) for member in pruned.estimators_], axis=1)
    assert np.array_equal(pruned.predict(X) == "yes", votes.mean(axis=1) > 0.5)
    assert pruned.objective_ == pytest.approx(pruned.score(X, y)) and pruned.bound_ == 1
    if method == "full":
        assert len(pruned.members_) == 7


@pytest.mark.slow
def test_formulations_limit_the_diversity(fitted):
    forest, X, y = fitted
    pruned = PrunedEnsemble(FrozenEstimator(forest), random_state=0)
    plain, mean, each = (clone(pruned).set_params(formulation=form).fit(X, y) for form in ("F1", "F2", "F3"))
    assert plain.objective_ >= mean.objective_ - 1e-9 and mean.objective_ >= each.objective_ - 1e-9
    assert len(mean.members_) >= 2
    none = PrunedEnsemble(FrozenEstimator(forest), formulation="F3", diversity=(0, 0), random_state=0).fit(X, y)
    assert none.objective_ == plain.objective_
    with pytest.raises(OptionError, match="more than the diversity of any two members"):
        PrunedEnsemble(FrozenEstimator(forest), formulation="F2", diversity=(0, 1)).fit(X, y)
    assert len(PrunedEnsemble(FrozenEstimator(forest), max_members=2).fit(X, y).members_) <= 2


def test_weights(fitted):
    forest, X, y = fitted
    recall = PrunedEnsemble(FrozenEstimator(forest), weights="recall").fit(X, y)
    by_numbers = PrunedEnsemble(FrozenEstimator(forest), weights=(1, 0, 0, 0)).fit(X, y)
    assert recall.objective_ == by_numbers.objective_ == pytest.approx((y == "yes").mean())
    balanced = PrunedEnsemble(FrozenEstimator(forest), weights="balanced").fit(X, y)
    assert balanced.objective_ <= balanced.bound_ < 1


SOURCES = {
    "forest": ensemble.RandomForestClassifier(20, random_state=0),
    "bagging": ensemble.BaggingClassifier(n_estimators=10, max_features=0.5, random_state=0),
    "voting": ensemble.VotingClassifier(
        [("a", DecisionTreeClassifier(max_depth=2)), ("b", ensemble.RandomForestClassifier(3, random_state=0))]
    ),
    "list": [
        ensemble.GradientBoostingClassifier(n_estimators=3),
        *(DecisionTreeClassifier(max_depth=depth, random_state=0) for depth in (2, 4, 6)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("kind", SOURCES)
def test_members_compile_with_their_threshold(kind, load, tmp_path):
    X, y = load(return_X_y=True)
    y = np.array(["z", "y", "x"])[y]  # whose order is not that of the indices
    given = {"estimators": SOURCES[kind]} if kind == "list" else {"estimator": SOURCES[kind]}
    pruned = PrunedEnsemble(**given, formulation="F2", random_state=0).fit(X[::2], y[::2])
    assert pruned.score(X, y) > 0.8
    assert np.array_equal(forestc.evaluate(forestc.load(pruned), X).decision, pruned.predict(X))
    forestc.compile(pruned, X, tmp_path / "out", targets="c", level=0)
    assert forestc.check(tmp_path / "out", X).ok


def test_fitted_classifiers_of_any_kind_are_not_trained_again():
    X, y = load_breast_cancer(return_X_y=True)
    members = [
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:200], y[:200]),
        GaussianNB().fit(X[:200], y[:200]),
        DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200]),
    ]
    pruned = PrunedEnsemble(estimators=members).fit(X[200:400], y[200:400])
    assert pruned.candidates_ == members
    assert pruned.score(X[400:], y[400:]) > 0.9
    if any(pruned.members_ < 2):
        with pytest.raises(ModelError, match="PrunedEnsemble, member"):
            forestc.load(pruned)


@pytest.mark.slow
def test_two_fits_are_equal_and_a_warm_start_goes_on(fitted):
    X, y = hard_rows(1, 400)
    pruned = PrunedEnsemble(ensemble.RandomForestClassifier(15, max_depth=4, random_state=0), random_state=3)
    one, other = clone(pruned).fit(X, y), clone(pruned).fit(X, y)
    assert np.array_equal(one.members_, other.members_) and one.bound_ == other.bound_
    warm = one.set_params(warm_start=True, method="search")
    before = one.objective_
    assert warm.fit(X, y).objective_ >= before - 1e-12


@pytest.mark.slow
def test_progress_is_reported(capsys):
    X, y = hard_rows(1, 400)
    seen = []
    pruned = PrunedEnsemble(
        ensemble.RandomForestClassifier(15, max_depth=4, random_state=0), random_state=3, verbose=True,
        callback=lambda *figures: seen.append(figures), time_limit=5,
    )  # fmt: skip
    pruned.fit(X, y)
    values = [value for value, _, _ in seen]
    assert values == sorted(values) and pruned.objective_ >= values[-1] - 1e-9
    assert all(bound >= pruned.objective_ - 1e-9 for _, bound, _ in seen)
    assert all(gap == pytest.approx((bound - value) / value) for value, bound, gap in seen)
    assert capsys.readouterr().out.count("PrunedEnsemble: objective") == len(seen)


def large(rows=3000, members=60):
    X, y = hard_rows(2, rows)
    return ensemble.ExtraTreesClassifier(members, max_depth=6, random_state=0).fit(X[::2], y[::2]), X, y


def test_a_time_limit_holds_and_ctrl_c_gives_the_best_so_far():
    forest, X, y = large()
    PrunedEnsemble(FrozenEstimator(forest), random_state=0, time_limit=0.01).fit(X, y)  # compiles
    begun = time.perf_counter()
    pruned = PrunedEnsemble(FrozenEstimator(forest), random_state=0, time_limit=1).fit(X, y)
    assert time.perf_counter() - begun < 2.5 and pruned.gap_ > 0

    def heard(*figures):
        raise KeyboardInterrupt

    def later(*figures):
        if not started:
            started.append(signal.setitimer(signal.ITIMER_REAL, 1.0))

    started, before = [], signal.signal(signal.SIGALRM, heard)
    try:
        for callback in (heard, later):
            begun = time.perf_counter()
            pruned = PrunedEnsemble(FrozenEstimator(forest), random_state=0, time_limit=60, callback=callback)
            stopped = pruned.fit(X, y)
            assert time.perf_counter() - begun < 30
            assert 0.6 < stopped.objective_ <= stopped.bound_
            assert stopped.score(X, y) == pytest.approx(stopped.objective_)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"formulation": "F4"}, "formulation: 'F4'"),
        ({"method": "best"}, "method: 'best'"),
        ({"weights": "f1"}, "weights: 'f1'"),
        ({"time_limit": 0}, "time_limit: 0"),
        ({"validation_fraction": 1.5}, "validation_fraction: 1.5"),
        ({"max_members": 0}, "max_members: 0"),
        ({"max_members": 2.5}, "max_members=2.5"),
        ({"weights": (1, 2, "a", 4)}, "weights: .*a"),
        ({"diversity": 0.1}, "diversity: 0.1"),
        ({"estimators": ("tree", DecisionTreeClassifier())}, r"estimators\[0\]: is a str"),
        (
            {"estimator": ensemble.BaggingClassifier(DecisionTreeRegressor(), n_estimators=2)},
            "estimator, member 0: is a DecisionTreeRegressor",
        ),
        ({"estimators": []}, "estimators: the list is empty"),
        ({"estimator": GaussianNB(), "estimators": [GaussianNB()]}, "estimator and estimators: both are given"),
        ({"estimator": ensemble.GradientBoostingClassifier()}, "estimator: is a GradientBoostingClassifier"),
        ({"estimators": [LinearRegression()]}, r"estimators\[0\]: is a LinearRegression"),
    ],
)
def test_what_can_not_be_pruned_is_refused(options, words):
    X, y = hard_rows(0)
    with pytest.raises((ModelError, OptionError), match=words) as raised:
        PrunedEnsemble(**options).fit(X, y)
    assert raised.value.do


def test_rows_of_one_class_can_not_choose(fitted):
    forest, X, y = fitted
    with pytest.raises(RowsError, match="no row is of class 0"):
        PrunedEnsemble(FrozenEstimator(forest)).fit(X[y == "yes"], y[y == "yes"])
    with pytest.raises(OptionError, match="for 3 classes"):
        PrunedEnsemble(method="kappa").fit(*load_wine(return_X_y=True))


def test_labels_and_members_belong_together(fitted):
    forest, X, y = fitted
    with pytest.raises(RowsError, match="label 'perhaps' is none of the classes"):
        PrunedEnsemble(FrozenEstimator(forest)).fit(X, np.where(np.arange(len(y)) == 5, "perhaps", y))
    with pytest.raises(ModelError, match=r"estimators\[0\]: has the classes \['no', 'yes'\], and a label is 0"):
        PrunedEnsemble(estimators=[forest]).fit(X, (y == "yes").astype(int))
    X, y = load_wine(return_X_y=True)
    kinds = (DecisionTreeClassifier(random_state=0), ensemble.RandomForestClassifier(3, random_state=0))
    trees, forests = ([clone(kind).fit(X[kept], y[kept]) for kept in (y < 2, y > 0)] for kind in kinds)
    pruned = PrunedEnsemble(estimators=trees).fit(X, y)
    assert list(pruned.classes_) == [0, 1, 2] and pruned.objective_ == pytest.approx(pruned.score(X, y))
    assert np.array_equal(forestc.evaluate(forestc.load(pruned), X).decision, pruned.predict(X))
    with pytest.raises(ModelError, match="has the classes"):
        forestc.load(PrunedEnsemble(estimators=forests).fit(X, y))
