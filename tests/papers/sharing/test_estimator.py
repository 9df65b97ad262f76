"""Tests the estimator that shares thresholds: scikit-learn's checks, the paper's counts, and which rows keep their
paths."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import ensemble, tree
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import forestc
from forestc.errors import ModelError, OptionError, RowsError
from forestc.papers import ThresholdSharing

OF_THE_FOREST = "bootstrap samples of weighted and of repeated rows differ: RandomForestRegressor alone fails it, too"
FAILS = {
    "check_sample_weight_equivalence_on_dense_data": OF_THE_FOREST,
    "check_sample_weight_equivalence_on_sparse_data": OF_THE_FOREST,
}
CHECKED = (
    ThresholdSharing(tree.DecisionTreeClassifier(random_state=0), exceptions=0.1),
    ThresholdSharing(ensemble.RandomForestRegressor(3, random_state=0)),
)


def expected(estimator):
    return FAILS if hasattr(estimator.estimator, "bootstrap") else {}


@pytest.mark.filterwarnings("ignore")  # as scikit-learn's own tests
@parametrize_with_checks(CHECKED, expected_failed_checks=expected)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


KINDS = {
    "tree": tree.ExtraTreeClassifier(random_state=0),
    "forest": ensemble.RandomForestClassifier(10, random_state=0),
    "extra trees": ensemble.ExtraTreesClassifier(5, bootstrap=True, random_state=0),
    "adaboost": ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=3), n_estimators=5, random_state=0),
    "bagging": ensemble.BaggingClassifier(n_estimators=5, max_features=0.5, random_state=0),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0),
    "hist": ensemble.HistGradientBoostingClassifier(max_iter=5),
    "voting": ensemble.VotingClassifier(
        [("a", ensemble.RandomForestClassifier(3, random_state=0)), ("b", tree.DecisionTreeClassifier(random_state=0))],
        voting="soft",
    ),
    "initial tree": ensemble.GradientBoostingClassifier(
        n_estimators=3, init=tree.DecisionTreeClassifier(max_depth=4, random_state=0), random_state=0
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_changes_its_path_and_conditions_become_fewer(kind):
    X, y = load_breast_cancer(return_X_y=True)
    plain = clone(KINDS[kind]).fit(X, y)
    shared = ThresholdSharing(KINDS[kind], per_tree_rows=False).fit(X, y)
    assert type(shared.estimator_) is type(plain)
    assert shared.n_conditions_ < shared.n_conditions_before_ + (kind == "initial tree") and shared.n_missed_ == 0
    assert not shared.changed_rows_.any()
    assert np.array_equal(shared.predict(X), plain.predict(X))
    assert np.array_equal(shared.predict_proba(X), plain.predict_proba(X))
    assert len(forestc.load(shared).conditions.comparators) == shared.n_conditions_


def test_each_tree_keeps_the_paths_of_its_own_rows():
    X, y = load_breast_cancer(return_X_y=True)
    plain = ensemble.RandomForestClassifier(10, random_state=0).fit(X, y)
    every = ThresholdSharing(FrozenEstimator(plain), per_tree_rows=False).fit(X, y)
    own = ThresholdSharing(FrozenEstimator(plain)).fit(X, y)
    assert own.n_conditions_ < every.n_conditions_ and own.n_missed_ == 0
    assert own.changed_rows_.any()
    changed = own.estimator_.apply(X) != plain.apply(X)
    assert np.array_equal(changed.any(axis=1), own.changed_rows_)
    for drawn, some in zip(plain.estimators_samples_, changed.T, strict=True):
        assert not some[drawn].any()


def test_the_example_of_figure_1():
    """Figure 1 of the paper: (1, 4), (1, 5), (2, 4), (2, 5) become two conditions."""
    X = np.array([[1, 1], [2, 7], [7, 2], [8, 8]])
    forest = ensemble.BaggingRegressor(tree.DecisionTreeRegressor(), n_estimators=2, random_state=0)
    forest.fit(X, [1, 0, 0, 1])
    line = tree.DecisionTreeRegressor(max_leaf_nodes=3).fit([[0, 0], [9, 1], [8, 2]], [5, 1, 0])
    for member, conditions in enumerate(([(0, 4), (1, 5)], [(1, 4), (0, 5)])):
        forest.estimators_[member] = deepcopy(line)
        for node, (feature, threshold) in zip((0, 2), conditions, strict=True):
            forest.estimators_[member].tree_.feature[node] = feature
            forest.estimators_[member].tree_.threshold[node] = threshold
    shared = ThresholdSharing(FrozenEstimator(forest), per_tree_rows=False).fit(X)
    assert (shared.n_conditions_before_, shared.n_conditions_) == (4, 2) and not shared.changed_rows_.any()


@pytest.mark.parametrize("options", [{"exceptions": 3}, {"exceptions": 0.1}, {"path_changeable": 0.05}], ids=str)
def test_relaxations_share_more_and_show_the_rows(options):
    X, y = load_diabetes(return_X_y=True)
    model = FrozenEstimator(ensemble.RandomForestRegressor(10, random_state=0).fit(X, y))
    exact = ThresholdSharing(model, per_tree_rows=False).fit(X, y)
    relaxed = ThresholdSharing(model, per_tree_rows=False, **options).fit(X, y)
    assert relaxed.n_conditions_ < exact.n_conditions_ and relaxed.n_missed_ > 0
    assert np.array_equal(relaxed.changed_rows_, (relaxed.estimator_.apply(X) != exact.estimator_.apply(X)).any(axis=1))
    if options == {"exceptions": 3}:
        assert relaxed.n_missed_ <= 3 * X.shape[1]


def test_few_bits_share_as_much():
    X, y = load_iris(return_X_y=True)
    model = FrozenEstimator(ensemble.RandomForestClassifier(10, random_state=0).fit(X, y))
    middle, bits = (ThresholdSharing(model, prefer=prefer).fit(X, y) for prefer in ("middle", "few-bits"))
    assert middle.n_conditions_ == bits.n_conditions_


def test_frames_sparse_rows_categories_and_weights():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ThresholdSharing(ensemble.RandomForestClassifier(5, random_state=0))
    by_frame, by_array = clone(model).fit(X, y), clone(model).fit(X.to_numpy(), y)
    assert list(by_frame.feature_names_in_) == list(X.columns)
    assert np.array_equal(by_frame.predict_proba(X), by_array.predict_proba(X.to_numpy()))
    rows = csr_array(np.maximum(X.to_numpy() - 2, 0))
    assert clone(model).fit(rows, y).n_conditions_ == clone(model).fit(rows.toarray(), y).n_conditions_
    X["kind"] = pd.Categorical(np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    boosting = ensemble.HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype")
    shared = ThresholdSharing(boosting).fit(X, y)
    assert np.array_equal(shared.predict(X), boosting.fit(X, y).predict(X)) and not shared.changed_rows_.any()
    weight = (np.arange(len(y)) % 2).astype(float)
    half = ThresholdSharing(tree.DecisionTreeClassifier(random_state=0)).fit(X.iloc[:, :4], y, sample_weight=weight)
    kept = weight > 0
    other = ThresholdSharing(tree.DecisionTreeClassifier(random_state=0)).fit(X.iloc[kept, :4], y[kept])
    assert np.array_equal(half.estimator_.tree_.threshold, other.estimator_.tree_.threshold)


def test_a_frozen_model_is_not_changed_and_other_rows_are_refused():
    X, y = load_iris(return_X_y=True)
    plain = ensemble.RandomForestClassifier(5, random_state=0).fit(X, y)
    before = [member.tree_.threshold.copy() for member in plain.estimators_]
    ThresholdSharing(FrozenEstimator(plain)).fit(X, y)
    assert all(np.array_equal(a, member.tree_.threshold) for a, member in zip(before, plain.estimators_, strict=True))
    with pytest.raises(RowsError, match="149 rows are given, and the estimator was trained on 150"):
        ThresholdSharing(FrozenEstimator(plain)).fit(X[1:], y[1:])
    assert ThresholdSharing(FrozenEstimator(plain), per_tree_rows=False).fit(X[1:]).n_missed_ == 0


def test_what_has_no_trees_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ModelError, match="LogisticRegression is not read"):
        ThresholdSharing(LogisticRegression(max_iter=1000)).fit(X, y)
    scaled = make_pipeline(StandardScaler(), tree.DecisionTreeClassifier())
    with pytest.raises(ModelError, match="a Pipeline does not compare its rows as they are given"):
        ThresholdSharing(scaled).fit(X, y)
    with pytest.raises(OptionError, match="exceptions"):
        ThresholdSharing(tree.DecisionTreeClassifier(), exceptions=-1).fit(X, y)
