"""Tests that estimators refuse parameters of a wrong type by name."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from forestc import papers
from forestc.errors import OptionError

ESTIMATORS = {
    "BinaryMatrixFactorization": ({}, ("n_components", "rho", "max_iter", "time_limit", "callback")),
    "BooleanRuleClassifier": ({}, ("complexity", "quantiles", "longest", "max_iter", "time_limit", "callback")),
    "BoundedTreewidthNetwork": ({}, ("treewidth", "max_parents", "ess", "n_runs", "time_limit", "callback")),
    "PrunedEnsemble": ({}, ("effort", "time_limit", "validation_fraction", "callback", "warm_start")),
    "ThresholdSharing": ({"estimator": DecisionTreeClassifier()}, ("exceptions", "path_changeable", "per_tree_rows")),
}
X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]] * 10)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_wrong_types_are_refused_by_name(name):
    given, parameters = ESTIMATORS[name]
    for parameter in parameters:
        model = getattr(papers, name)(**given).set_params(**{parameter: "2"})
        with pytest.raises(OptionError, match=f"{parameter}='2'"):
            model.fit(X, X[:, 0])


def test_whole_numbers_are_neither_fractions_nor_booleans():
    for value in (2.5, True, None):
        with pytest.raises(OptionError, match="whole number"):
            papers.BinaryMatrixFactorization(value).fit(X)
    assert papers.BinaryMatrixFactorization(np.int64(1), verbose=False).fit(X).components_.shape == (1, 2)


class Plain(papers.BinaryMatrixFactorization):
    """Has an `__init__` without annotations, as users write it."""

    def __init__(self, n_components=1, *, other=2, seconds: int = 3):
        super().__init__(n_components)
        self.other, self.seconds = other, seconds


def test_classes_without_these_annotations_are_not_checked():
    assert Plain().fit(X).components_.shape == (1, 2)
