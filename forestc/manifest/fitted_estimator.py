"""Makes scikit-learn estimators of quantized forests, which predict as the hardware does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest, Part
from forestc.forest.outputs import runners_up
from forestc.rows.encode import encode

ROWS_AT_ONCE = 65536
# Lists the links whose values are probabilities.
_PROBABILITIES = ("sigmoid", "logistic", "softmax", "softmax-zero", "shares", "step")


class FittedEstimator:
    """The scikit-learn interface of a compiled model, for metrics and `cross_val_score`: `fit` does nothing, `clone`
    returns the object itself."""

    model: Forest
    forest: Forest

    def predict(self, X: object) -> NDArray[Any]:
        """Predicts with the quantized forest.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Rows with the model's columns.

        Returns
        -------
        array of shape (rows,) or (rows, targets)
            Class labels or values.

        Raises
        ------
        RowsError
            If the rows do not match the model.
        """
        return self._evaluated(X).decision

    @property
    def predict_proba(self) -> Callable[[Any], Any]:
        """The method that returns probabilities (rows, classes); for several targets a list of arrays.

        Classes are in the order of `classes_`. Few leaf bits may keep every decision but give coarse probabilities.

        Raises
        ------
        AttributeError
            If the model's scores are not probabilities.
        """
        if not has_probabilities(self.model):
            raise AttributeError("the model has no probabilities")
        return self._probabilities

    @property
    def decision_function(self) -> Callable[[Any], NDArray[np.float64]]:
        """The method that returns margins or scores, in the model's units.

        For two classes it returns the margin of class 1, (rows,): at least 0 where class 1 is decided. If the forest
        has two scores, equal scores have margin 0 and the tie rule decides. For more classes it returns the scores,
        (rows, classes).

        Raises
        ------
        AttributeError
            If the model is a regression or has several targets.
        """
        if not self.model.decides or len(self.model.targets) > 1:
            raise AttributeError("the model has no decision function")
        return self._decision_function

    def top2(self, X: object) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Returns the two best classes, and the distance of their scores.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Rows with the model's columns.

        Returns
        -------
        labels : array of shape (rows, 2)
            Class labels, the best first.
        distance : float64 array of shape (rows,)
            In the model's units. If one score decides, its distance from the threshold.

        Raises
        ------
        OptionError
            If the model is a regression or has several targets.
        """
        if not self.model.decides or len(self.model.targets) > 1:
            raise OptionError("no single target has classes", where="top2", do="call predict")
        evaluation = self._evaluated(X)
        second, distance = runners_up(self.forest, evaluation)
        labels = np.asarray(self.forest.targets[0].classes)[np.column_stack([evaluation.index, second])]
        return labels, distance[:, 0] * float(self.forest.scale or 1.0)

    @property
    def classes_(self) -> Any:
        """The class labels, (classes,); for several targets a list of arrays.

        Raises
        ------
        AttributeError
            If the model is a regression.
        """
        if not self.model.decides:
            raise AttributeError("a regression has no classes")
        labels = [np.asarray(part.classes) for part in self.model.targets]
        return labels[0] if len(labels) == 1 else labels

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the model's rows."""
        return self.model.own_columns

    def score(self, X: object, y: object) -> float:
        """Scores the predictions on rows.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Rows with the model's columns.
        y : array-like of shape (rows,) or (rows, targets)
            True labels or values.

        Returns
        -------
        float
            Accuracy; R squared for a regression.

        Raises
        ------
        RowsError
            If the rows do not match the model.
        """
        from sklearn.metrics import accuracy_score, r2_score

        return float((accuracy_score if self.model.decides else r2_score)(y, self.predict(X)))

    def fit(self, X: object = None, y: object = None) -> Self:
        """Returns self without training: a compiled design is fitted already.

        Parameters
        ----------
        X, y : object, optional
            Not used.

        Returns
        -------
        self
            The design, unchanged.
        """
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters of the estimator: none.

        Parameters
        ----------
        deep : bool, default=True
            Not used.

        Returns
        -------
        dict
            An empty dictionary.
        """
        return {}

    def set_params(self, **params: object) -> Self:
        """Returns self: a compiled design has no parameters.

        Parameters
        ----------
        **params : dict
            No parameters are accepted.

        Returns
        -------
        self
            The design, unchanged.

        Raises
        ------
        ValueError
            If a parameter is given.
        """
        if params:
            raise ValueError(f"a compiled design has no parameters; got {', '.join(params)}")
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        several = len(self.model.targets) > 1 or (not self.model.decides and self.model.n_scores > 1)
        target = TargetTags(required=False, multi_output=several, single_output=not several)
        inputs = InputTags(allow_nan=any(feature.missing for feature in self.forest.features))
        if self.model.decides:
            classes = max(len(part.classes) for part in self.model.targets)
            tags = ClassifierTags(multi_class=classes > 2)
            return Tags("classifier", target, classifier_tags=tags, input_tags=inputs)
        return Tags("regressor", target, regressor_tags=RegressorTags(), input_tags=inputs)

    def _evaluated(self, X: Any) -> Evaluation:
        from forestc.passes.quick_evaluation import evaluate_quickly

        words = encode(self.forest, X)
        starts = range(0, len(words), ROWS_AT_ONCE) or [0]
        parts = [evaluate_quickly(self.forest, words[start : start + ROWS_AT_ONCE], self._flat) for start in starts]
        return Evaluation(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))

    @cached_property
    def _flat(self) -> Any:
        from forestc.passes.quick_evaluation import concatenated_trees

        return concatenated_trees(self.forest)

    def _probabilities(self, X: object) -> Any:
        values = self._evaluated(X).values
        probabilities = []
        for part in self.forest.targets:
            probabilities.append(_normalized(values[:, part.start : part.stop].astype(np.float64)))
        return probabilities[0] if len(probabilities) == 1 else probabilities

    def _decision_function(self, X: object) -> NDArray[np.float64]:
        scores, scale = self._evaluated(X).scores.astype(np.float64), float(self.forest.scale or 1.0)
        if scores.shape[1] > 2:
            return scores * scale
        if scores.shape[1] == 2:
            return (scores[:, 1] - scores[:, 0]) * scale
        return (scores[:, 0] - float(self.forest.decision.threshold)) * scale


@dataclass(frozen=True, eq=False)
class QuantizedModel(FittedEstimator):
    """A model and its quantized forest as an estimator, without a compiled folder."""

    model: Forest
    forest: Forest


_FIELDS = ("leaves", "scores", "values", "decision", "index")


def has_probabilities(model: Forest) -> bool:
    """Returns True if the values of a float forest are probabilities of its classes, which need not add up to 1."""
    if not model.decides:
        return False
    return model.combine.kind == "vote" or all(_is_probability(model, part) for part in model.parts)


def _is_probability(model: Forest, part: Part) -> bool:
    """Returns True if a member model (part) yields probabilities or scores in [0, 1]."""
    if part.link.points:
        return all(0 <= value <= 1 for _, value in part.link.points)
    if part.link.kind in _PROBABILITIES:
        return True
    if part.link.kind != "identity" or part.aggregate.kind != "sum":
        return False
    low, high = np.zeros((2, part.stop - part.start))
    for tree in (model.trees[index] for index in model.trees_of(part)):
        for column, output in enumerate(tree.outputs):
            if part.start <= output < part.stop:
                low[output - part.start] += tree.values[:, column].min()
                high[output - part.start] += tree.values[:, column].max()
    bias = model.bias[part.start : part.stop]
    low, high = low / part.aggregate.divisor + bias, high / part.aggregate.divisor + bias
    return bool((low >= -1e-6).all() and (high <= 1 + 1e-6).all())


def _normalized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns probabilities (rows, classes) that add up to 1 in each row. A single column of `values` is class 1 of
    two."""
    if values.shape[1] == 1:
        positive = np.clip(values, 0.0, 1.0)
        return np.concatenate([1 - positive, positive], axis=1)
    values = np.maximum(values, 0.0)
    total = values.sum(axis=1, keepdims=True)
    return np.where(total > 0, values / np.where(total > 0, total, 1.0), 1 / values.shape[1])
