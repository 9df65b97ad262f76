"""Defines scikit-learn estimators that train a model and predict as its compiled form does.

With cross_val_score they estimate the hardware's accuracy on unseen rows.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

from forestc.commands.compile import quantize
from forestc.errors import MissingExtraError, ModelError, RowsError
from forestc.forest.ir import Forest
from forestc.frontends import load
from forestc.manifest.fitted_estimator import QuantizedModel

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
    from sklearn.utils import get_tags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "sklearn") from None


def _has(name: str) -> Any:
    """Returns a decorator: the method is available only if the quantized model, or the unfitted estimator, has it."""

    def check(self: Any) -> bool:
        return hasattr(getattr(self, "quantized_", self.estimator), name)

    return available_if(check)


class _CompiledEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of both estimators: trains a model, then quantizes it."""

    def __init__(self, estimator: object, *, passes: str | None = None, level: int | None = None) -> None:
        self.estimator = estimator
        self.passes = passes
        self.level = level

    def fit(self, X: object, y: object, **options: Any) -> Self:
        """Trains a clone of the estimator, then quantizes it on the same rows.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Training rows.
        y : array-like of shape (rows,) or (rows, targets)
            Labels or values.
        **options : dict
            Passed to the estimator's `fit`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ModelError
            If forestc can't read the trained model, or it is a classifier in place of a regressor or the reverse.
        OptionError
            If `passes` or `level` is invalid.
        """
        self.estimator_ = clone(self.estimator).fit(X, y, **options)
        model = load(self.estimator_)
        if model.decides != isinstance(self, ClassifierMixin):
            kind, right = ("classifier", "CompiledClassifier") if model.decides else ("regressor", "CompiledRegressor")
            raise ModelError(f"{type(self).__name__} was given a {kind}", where="estimator", do=f"use {right}")
        self.quantized_ = QuantizedModel(model, quantize(self.estimator_, X, y, self.passes, level=self.level))
        validate_data(self, X, skip_check_array=True)
        return self

    @property
    def forest_(self) -> Forest:
        """The quantized forest."""
        check_is_fitted(self)
        return self.quantized_.forest

    def as_forest(self) -> Forest:
        """Reads the trained model, as `forestc.load` and `forestc.compile` do.

        `compile` makes the design that this estimator predicts with if it is given the same rows, passes and level.

        Returns
        -------
        Forest
            The trained model. A note names the passes and the level that are not the default.
        """
        check_is_fitted(self)
        model = self.quantized_.model
        given = {"passes": self.passes, "level": self.level}
        options = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        if not options:
            return model
        note = f"{type(self).__name__}: it predicts with the design that `compile` makes with {options}"
        return replace(model, provenance=replace(model.provenance, notes=(*model.provenance.notes, note)))

    def predict(self, X: object) -> Any:
        """Predicts with the quantized forest.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Rows with the columns of the training rows.

        Returns
        -------
        array of shape (rows,) or (rows, targets)
            Class labels or values.

        Raises
        ------
        RowsError
            If the rows do not match the model.
        """
        return self._quantized_for(X).predict(X)

    def _quantized_for(self, X: object) -> QuantizedModel:
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1:
            raise RowsError(
                "they have one dimension",
                where="the rows",
                do="Reshape your data to (rows, columns): one row by X.reshape(1, -1)",
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.quantized_

    def __sklearn_tags__(self) -> Any:
        tags = deepcopy(get_tags(self.estimator))
        tags._skip_test = tags.array_api_support = False
        return tags


class CompiledClassifier(ClassifierMixin, _CompiledEstimator):  # type: ignore[misc]
    """Classifier that decides as its hardware does.

    Cross-validation estimates the hardware's accuracy on unseen rows: for each fold, the model is trained and
    quantized on the other folds alone.

    Parameters
    ----------
    estimator : classifier
        An unfitted classifier that `load` reads once it is fitted.
    passes : str, optional
        Passes to run instead of the level's, as in `compile`.
    level : int, optional
        0 (exact) to 3 (smallest), as in `compile`. Default: 1.

    Attributes
    ----------
    estimator_ : classifier
        The trained model.
    forest_ : Forest
        The quantized forest.
    classes_ : array of shape (classes,)
        Class labels; a list of arrays for several targets.
    n_features_in_ : int
        Number of columns of the training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from forestc import CompiledClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CompiledClassifier(RandomForestClassifier(10, max_depth=4, random_state=0)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    @property
    def classes_(self) -> Any:
        """The class labels, (classes,); for several targets a list of these."""
        check_is_fitted(self, "quantized_")
        return self.quantized_.classes_

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> Any:
        """Returns probabilities of the quantized forest.

        Few leaf bits may keep every decision but give coarse probabilities.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Rows with the columns of the training rows.

        Returns
        -------
        float64 array of shape (rows, classes)
            Probabilities in the order of `classes_`; a list of arrays for several targets.

        Raises
        ------
        RowsError
            If the rows do not match the model.
        """
        return self._quantized_for(X).predict_proba(X)

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: object) -> Any:
        """Returns margins or scores of the quantized forest, in the model's units.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Rows with the columns of the training rows.

        Returns
        -------
        float64 array of shape (rows,) or (rows, classes)
            For two classes the margin of class 1; otherwise the score of each class.

        Raises
        ------
        RowsError
            If the rows do not match the model.
        """
        return self._quantized_for(X).decision_function(X)


class CompiledRegressor(RegressorMixin, _CompiledEstimator):  # type: ignore[misc]
    """Regressor that predicts as its hardware does.

    Parameters
    ----------
    estimator : regressor
        An unfitted regressor that `load` reads once it is fitted.
    passes : str, optional
        Passes to run instead of the level's, as in `compile`.
    level : int, optional
        0 (exact) to 3 (smallest), as in `compile`. Default: 1.

    Attributes
    ----------
    estimator_ : regressor
        The trained model.
    forest_ : Forest
        The quantized forest.
    n_features_in_ : int
        Number of columns of the training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from forestc import CompiledRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CompiledRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0)).fit(X, y)
    >>> model.predict(X[:5]).shape
    (5,)
    """
