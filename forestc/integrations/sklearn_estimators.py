"""Defines scikit-learn estimators that train a model and predict as its compiled form does.

`cross_val_score` on one of them estimates the accuracy of the hardware on unseen rows: in each fold the model is
trained, and its formats and leaves are chosen, without the held-out part.
"""

from __future__ import annotations

from typing import Any, Self

from forestc.commands.compile import quantize
from forestc.errors import MissingExtraError, ModelError
from forestc.forest.ir import Forest
from forestc.frontends import load
from forestc.manifest.fitted_estimator import QuantizedModel

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtraError("scikit-learn", "sklearn") from None


def _has(name: str) -> Any:
    """Makes a method available only if the quantized model has it; before `fit`, only if the estimator has it."""

    def check(self: Any) -> bool:
        return hasattr(getattr(self, "quantized_", self.estimator), name)

    return available_if(check)


class _CompiledEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of both estimators. estimator: any estimator that `forestc.load` reads. passes, level: as for
    `forestc.compile`."""

    def __init__(self, estimator: object, *, passes: str | None = None, level: int | None = None) -> None:
        self.estimator = estimator
        self.passes = passes
        self.level = level

    def fit(self, X: object, y: object, **options: Any) -> Self:
        """Trains a clone of the estimator (options go to its `fit`), then quantizes it on the same rows. Raises
        ForestcError for a model that forestc can't compile."""
        self.estimator_ = clone(self.estimator).fit(X, y, **options)
        model = load(self.estimator_)
        if model.decides != isinstance(self, ClassifierMixin):
            kind, right = ("classifier", "CompiledClassifier") if model.decides else ("regressor", "CompiledRegressor")
            raise ModelError(f"{type(self).__name__} was given a {kind}", do=f"use {right}")
        self.quantized_ = QuantizedModel(model, quantize(model, X, y, self.passes, level=self.level))
        self.n_features_in_ = model.columns
        return self

    @property
    def forest_(self) -> Forest:
        """The quantized forest."""
        check_is_fitted(self)
        return self.quantized_.forest

    def predict(self, X: object) -> Any:
        """Returns the predictions of the compiled model; see `Design.predict`."""
        check_is_fitted(self)
        return self.quantized_.predict(X)


class CompiledClassifier(ClassifierMixin, _CompiledEstimator):  # type: ignore[misc]
    """A classifier that decides as its hardware does.

    estimator: an unfitted classifier that `forestc.load` reads once fitted. passes, level: as for
    `forestc.compile`. After `fit`: estimator_ (the trained model), forest_ (the quantized forest), classes_.
    """

    @property
    def classes_(self) -> Any:
        check_is_fitted(self, "quantized_")
        return self.quantized_.classes_

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> Any:
        """Returns probabilities; see `Design.predict_proba`."""
        check_is_fitted(self)
        return self.quantized_.predict_proba(X)

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: object) -> Any:
        """Returns scores; see `Design.decision_function`."""
        check_is_fitted(self)
        return self.quantized_.decision_function(X)


class CompiledRegressor(RegressorMixin, _CompiledEstimator):  # type: ignore[misc]
    """A regressor that predicts as its hardware does; see `CompiledClassifier`."""
