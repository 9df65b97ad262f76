"""Shares the branching conditions of scikit-learn's tree ensembles.

The method is that of A. Nakamura and K. Sakurada, "Simplification of forest classifiers and regressors by sharing
branching conditions", 2022. Problem 1 asks for the fewest distinct conditions (feature, threshold) if no row changes
its path. Algorithm 2 (Min_DBN) solves it feature by feature, by algorithm 1 (Min_IntSet).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np

from forestc.errors import MissingExtraError
from forestc.forest.ir import Forest
from forestc.frontends import load_object
from forestc.papers.parameter_types import check_types
from forestc.papers.sharing import threshold_arrays
from forestc.papers.sharing.delegation import own_method
from forestc.passes.observation import Observe
from forestc.passes.quick_evaluation import other_paths
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds, missed
from forestc.rows.batches import ArrayRows, Rows, reduce_rows
from forestc.rows.given import rows_for_model

try:
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import check_array, get_tags
    from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None


@dataclass(eq=False, repr=False)
class ThresholdSharing(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Tree ensemble with as few distinct branching conditions as its training rows allow (Min_DBN).

    `fit` trains the ensemble, then moves its thresholds: thresholds of one feature become equal if no row that counts
    changes its path. With the defaults these are the rows of a tree's own bootstrap sample, or all rows without such
    samples. `estimator_` stays an estimator of the same class, with all of its methods; `forestc.compile` takes it.

    Parameters
    ----------
    estimator : classifier or regressor
        A tree, forest, bagging or boosting of scikit-learn. `fit` trains a clone. Of a fitted one inside
        a `FrozenEstimator`, `fit` changes the thresholds in a copy and trains nothing.
    exceptions : int or float, default=0
        Number of a feature's nodes, or share if below 1, that may miss every shared threshold and then take the nearest
        one (c of problem 5, by algorithm 3).
    path_changeable : float, default=0.0
        Share of a node's rows that may change sides, in either direction (sigma of problem 4).
    per_tree_rows : bool, default=True
        Whether only the rows of a tree's own bootstrap sample keep their paths in it (section 6 of the paper).
    prefer : {"middle", "few-bits"}, default="middle"
        Threshold to take within an interval: the middle, as in the paper, or the number with the fewest binary digits,
        so that comparators in hardware are narrower.

    Attributes
    ----------
    estimator_ : classifier or regressor
        The trained ensemble with shared thresholds.
    n_conditions_before_, n_conditions_ : int
        Numbers of distinct pairs of feature and threshold before and after sharing.
    changed_rows_ : bool array of shape (rows,)
        True for each given row with another path in at least one tree.
    n_missed_ : int
        Number of nodes with a threshold outside of the interval of problem 1.
    classes_ : array of shape (classes,)
        Class labels of a classifier.

    Notes
    -----
    Time is O(rows * trees * depth) for the intervals and O(p log p) for p nodes of a feature. With exceptions it is
    O(p log^3 p), independent of their number, where algorithm 3 takes O(p c^2).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from forestc.papers import ThresholdSharing
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(20, random_state=0)
    >>> shared = ThresholdSharing(forest, per_tree_rows=False).fit(X, y)
    >>> shared.n_conditions_ < 0.6 * shared.n_conditions_before_, shared.changed_rows_.any()
    (True, np.False_)
    >>> (shared.predict(X) == forest.fit(X, y).predict(X)).all()
    np.True_
    """

    estimator: Any
    _: KW_ONLY
    exceptions: int | float = 0
    path_changeable: float = 0.0
    per_tree_rows: bool = True
    prefer: Literal["middle", "few-bits"] = "middle"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Trains the ensemble, then shares its thresholds.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            Training rows. If the ensemble is frozen, its own training rows, or others that keep their paths.
        y : array-like of shape (rows,) or (rows, targets), optional
            Labels or values.
        sample_weight : array-like of shape (rows,), optional
            Weights for training. Rows of weight 0 do not keep their paths.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ModelError
            If the estimator does not consist of trees, or forestc cannot read it.
        OptionError
            If a parameter is invalid.
        RowsError
            If per_tree_rows needs the rows of the training, and others are given.
        """
        check_types(self)
        method = ShareThresholds(self.exceptions, self.path_changeable, prefer=self.prefer)
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            model = deepcopy(self.estimator.estimator)
        else:
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            model = clone(self.estimator).fit(X, y, **weights)
        before, arrays = load_object(model), threshold_arrays.threshold_arrays(model)
        threshold_arrays.refuse_other_trees(before, arrays, model)
        validate_data(self, X, skip_check_array=True)
        rows = _rows(X, before, hasattr(model, "feature_names_in_"))
        drawn = threshold_arrays.times_drawn(model, _num_samples(X)) if self.per_tree_rows else None
        if sample_weight is not None:
            positive = np.asarray(_check_sample_weight(sample_weight, X) > 0, dtype=np.uint8)
            drawn = positive * (np.ones((len(arrays), 1), dtype=np.uint8) if drawn is None else drawn)
        task = Observe.of(before, drawn)
        seen = reduce_rows(rows, task)
        after = method.shared(task, seen, rows)
        self.n_conditions_before_ = threshold_arrays.count_conditions(before, arrays)
        threshold_arrays.write_thresholds(after, arrays)
        self.n_conditions_ = threshold_arrays.count_conditions(before, arrays)
        self.n_missed_ = int(missed(task, seen.nodes.bounds, after).sum())
        self.changed_rows_ = np.concatenate([other_paths(before, after, batch.X) for batch in rows.batches()])
        self.estimator_ = model
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        return self

    def as_forest(self) -> Forest:
        """Reads the ensemble with shared thresholds, as `forestc.load` and `forestc.compile` do.

        Returns
        -------
        Forest
            The ensemble.
        """
        check_is_fitted(self)
        return load_object(self.estimator_)

    predict = own_method("predict", "Predicts labels or values with the shared thresholds.")
    predict_proba = own_method("predict_proba", "Predicts probabilities with the shared thresholds.")
    predict_log_proba = own_method("predict_log_proba", "Predicts log-probabilities with the shared thresholds.")
    decision_function = own_method("decision_function", "Computes scores with the shared thresholds.")
    score = own_method("score", "Computes the accuracy of a classifier, R squared of a regressor.", scores=True)

    def __sklearn_tags__(self) -> Any:
        tags = deepcopy(get_tags(self.estimator))
        tags._skip_test = tags.array_api_support = False
        return tags


def _rows(X: Any, forest: Forest, named: bool) -> Rows:
    if named:  # a frame, perhaps with categories
        return rows_for_model(X, forest)[0]
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    return ArrayRows(X.toarray() if issparse(X) else X)
