"""Shares the branching conditions of scikit-learn's tree ensembles.

The method is that of A. Nakamura and K. Sakurada, "Simplification of forest classifiers and regressors by sharing
branching conditions", 2022. Problem 1 asks for the fewest distinct conditions (feature, threshold) if no row changes
its path. Algorithm 2 (Min_DBN) solves it feature by feature, by algorithm 1 (Min_IntSet).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from forestc.errors import MissingExtraError, RowsError
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Forest
from forestc.frontends import load_object
from forestc.frontends.sklearn.threshold_arrays import (
    count_conditions,
    refuse_other_trees,
    threshold_arrays,
    write_thresholds,
)
from forestc.passes.observation import Observe
from forestc.passes.quick_evaluation import nodes_reached
from forestc.passes.share_thresholds.path_change import widened
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds, with_thresholds
from forestc.rows.batches import ArrayRows, Rows, reduce_rows
from forestc.rows.encode import encode
from forestc.rows.given import rows_for_model

try:
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import check_array, get_tags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None


def _has(name: str) -> Any:
    """Makes a method available only if the estimator has it."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), name))


class ThresholdSharing(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Tree ensemble with as few distinct branching conditions as its training rows allow (Min_DBN).

    `fit` trains the ensemble, then moves its thresholds: thresholds of one feature become equal if no row that counts
    changes its path. `estimator_` stays an estimator of the same class, with all of its methods, and
    `forestc.compile` takes it.

    With the defaults a row may change its path only in a tree with a bootstrap sample that lacks the row. Without
    bootstrap samples no training row changes any path. `exceptions` and `path_changeable` allow more changes;
    `changed_rows_` shows them.

    Parameters
    ----------
    estimator : classifier or regressor
        A tree, forest, bagging or boosting of scikit-learn. `fit` trains a clone. A fitted one inside a
        `FrozenEstimator` is not trained again; a copy gets the new thresholds.
    exceptions : int or float, default=0
        Number of a feature's nodes, or share if below 1, that may miss every shared threshold and then take the nearest
        one (c of problem 5, by algorithm 3).
    path_changeable : float, default=0.0
        Share of a node's rows that may change sides, in either direction (sigma of problem 4).
    per_tree_rows : bool, default=True
        Whether only the rows of a tree's own bootstrap sample keep their paths in it (section 6 of the paper).
        Ensembles without bootstrap samples keep the paths of all rows.
    prefer : {"middle", "few-bits"}, default="middle"
        Threshold to take within an interval: the middle, as in the paper, or the number with the fewest binary digits,
        so that comparators in hardware are narrower.

    Attributes
    ----------
    estimator_ : classifier or regressor
        The trained ensemble with shared thresholds.
    n_conditions_before_ : int
        Number of distinct pairs of feature and threshold after training.
    n_conditions_ : int
        The same number after sharing.
    changed_rows_ : bool array of shape (rows,)
        True for each given row with another path in at least one tree.
    n_missed_ : int
        Number of nodes with a threshold outside of the interval of problem 1.
    n_features_in_ : int
        Number of columns of the training rows.
    feature_names_in_ : array of shape (columns,)
        Names of the columns, if all are text.
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

    def __init__(
        self,
        estimator: Any,
        *,
        exceptions: int | float = 0,
        path_changeable: float = 0.0,
        per_tree_rows: bool = True,
        prefer: Literal["middle", "few-bits"] = "middle",
    ) -> None:
        self.estimator = estimator
        self.exceptions = exceptions
        self.path_changeable = path_changeable
        self.per_tree_rows = per_tree_rows
        self.prefer = prefer

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
        method = ShareThresholds(self.exceptions, self.path_changeable, prefer=self.prefer)
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            model = deepcopy(self.estimator.estimator)
        else:
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            model = clone(self.estimator).fit(X, y, **weights)
        forest = load_object(model)
        arrays = threshold_arrays(model)
        refuse_other_trees(forest, arrays, model)
        validate_data(self, X, skip_check_array=True)
        rows = _rows(X, forest, hasattr(model, "feature_names_in_"))
        task = Observe.of(forest, self._counted(model, forest, X, sample_weight))
        exact = reduce_rows(rows, task).nodes.bounds
        bounds = widened(rows, task, exact, float(self.path_changeable)) if self.path_changeable else exact
        after = with_thresholds(forest, method.thresholds(task, bounds))
        self.n_conditions_before_ = count_conditions(forest, arrays)
        write_thresholds(after, arrays)
        self.n_conditions_ = count_conditions(forest, arrays)
        moved = np.concatenate([tree.threshold for tree in after.trees])
        plain = (task.trees.left != LEAF) & (task.trees.set_start == NO_SET)
        self.n_missed_ = int((plain & ~((exact.low < moved) & (moved <= exact.high))).sum())
        self.changed_rows_ = np.concatenate([_differing(forest, after, batch.X) for batch in rows.batches()])
        self.estimator_ = model
        return self

    def _counted(self, model: Any, forest: Forest, X: Any, sample_weight: Any) -> NDArray[np.uint8] | None:
        """Returns (trees, rows) how often each row counts for a tree's intervals; None for once each. Raises
        RowsError."""
        rows = _num_samples(X)
        counted = None
        if self.per_tree_rows and hasattr(model, "estimators_samples_") and len(model.estimators_) == len(forest.trees):
            trained = getattr(model, "_n_samples", rows)
            if trained != rows:
                raise RowsError(
                    f"per_tree_rows: {rows} rows are given, and the estimator was trained on {trained}",
                    where="X",
                    do="give the training rows in their order, or set per_tree_rows=False",
                )
            times = (np.bincount(drawn, minlength=rows) for drawn in model.estimators_samples_)
            counted = np.stack([np.minimum(drawn, 255) for drawn in times]).astype(np.uint8)
        if sample_weight is not None:
            positive = np.asarray(_check_sample_weight(sample_weight, X) > 0, dtype=np.uint8)
            counted = positive * (np.ones((len(forest.trees), 1), dtype=np.uint8) if counted is None else counted)
        return counted

    def as_forest(self) -> Forest:
        """Reads the ensemble with shared thresholds, as `forestc.load` and `forestc.compile` do.

        Returns
        -------
        Forest
            The ensemble.
        """
        check_is_fitted(self)
        return load_object(self.estimator_)

    @property
    def classes_(self) -> Any:
        """The class labels, (classes,)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.classes_

    @_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predicts labels or values with the shared thresholds; see the estimator's own method."""
        return self._answer("predict", X)

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Predicts probabilities with the shared thresholds; see the estimator's own method."""
        return self._answer("predict_proba", X)

    @_has("predict_log_proba")  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Predicts log-probabilities with the shared thresholds; see the estimator's own method."""
        return self._answer("predict_log_proba", X)

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Computes scores with the shared thresholds; see the estimator's own method."""
        return self._answer("decision_function", X)

    @_has("score")  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Computes the estimator's own score: the accuracy of a classifier, R squared of a regressor."""
        check_is_fitted(self)
        return self.estimator_.score(X, y, sample_weight=sample_weight)

    def _answer(self, name: str, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)(X)

    def __sklearn_tags__(self) -> Any:
        tags = deepcopy(get_tags(self.estimator))
        tags._skip_test = tags.array_api_support = False
        return tags


def _rows(X: Any, forest: Forest, named: bool) -> Rows:
    if named:  # a frame, perhaps with categories
        return rows_for_model(X, forest)[0]
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    return ArrayRows(X.toarray() if issparse(X) else X)


def _differing(before: Forest, after: Forest, X: NDArray[np.float64]) -> NDArray[np.bool_]:
    words = encode(before, X)
    return np.asarray((nodes_reached(before, words) != nodes_reached(after, words)).any(axis=1), dtype=bool)
