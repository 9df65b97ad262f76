"""Quantized forests as scikit-learn estimators: predictions of the hardware, in scikit-learn's conventions.

Results equal those of `evaluate` on the quantized forest, bit for bit; compiled code computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest, Part
from forestc.rows.encode import encode

ROWS_AT_ONCE = 65536
# links that yield probabilities
_PROBABILITIES = ("sigmoid", "logistic", "softmax", "softmax-zero", "shares", "step")


class FittedEstimator:
    """The methods of a fitted estimator, for a model and its quantized forest.

    scikit-learn sees a fitted classifier or regressor: `fit` does nothing and `clone` returns the object itself, so
    metrics, displays and `cross_val_score` accept it like the model. X: rows (rows, columns) as an array, nested lists
    or a data frame, in the model's columns. Methods raise RowsError for rows that do not match the model.
    """

    model: Forest
    forest: Forest

    def predict(self, X: object) -> NDArray[Any]:
        """(rows,) class labels or values; (rows, targets) for several targets."""
        return self._evaluated(X).decision

    @property
    def predict_proba(self) -> Callable[[Any], Any]:
        """(rows, classes): probabilities, in the order of `classes_`; for several targets a list of these.

        Their precision is limited by the leaf bits: few bits may keep every decision but give coarse probabilities.
        Raises AttributeError for models whose scores are not probabilities.
        """
        if not has_probabilities(self.model):
            raise AttributeError("the model has no probabilities")
        return self._probabilities

    @property
    def decision_function(self) -> Callable[[Any], NDArray[np.float64]]:
        """For two classes (rows,): the margin of class 1, at least 0 where it is decided (with two scores the tie rule
        decides at 0). For more classes the scores, (rows, classes). Both in the model's units. Raises AttributeError
        for regressions and several targets."""
        if not self.model.decides or len(self.model.targets) > 1:
            raise AttributeError("the model has no decision function")
        return self._decision_function

    @property
    def classes_(self) -> Any:
        """Class labels (classes,); for several targets a list of these."""
        if not self.model.decides:
            raise AttributeError("a regression has no classes")
        labels = [np.asarray(part.classes) for part in self.model.targets]
        return labels[0] if len(labels) == 1 else labels

    @property
    def n_features_in_(self) -> int:
        return self.model.columns

    def score(self, X: object, y: object) -> float:
        """Accuracy; for a regression R squared."""
        from sklearn.metrics import accuracy_score, r2_score

        return float((accuracy_score if self.model.decides else r2_score)(y, self.predict(X)))

    def fit(self, X: object = None, y: object = None) -> Self:
        """Does nothing and returns self: a compiled design is not trained."""
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def set_params(self, **params: object) -> Self:
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
        from forestc.passes.quick_evaluation import walked_trees

        return walked_trees(self.forest)

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
    """A model and its quantized forest, without a compiled folder."""

    model: Forest
    forest: Forest


_FIELDS = ("leaves", "scores", "values", "decision", "index")


def has_probabilities(model: Forest) -> bool:
    """Whether the values of a float forest are probabilities of its classes, or proportional to them."""
    if not model.decides:
        return False
    return model.combine.kind == "vote" or all(_is_probability(model, part) for part in model.parts)


def _is_probability(model: Forest, part: Part) -> bool:
    """Whether a part's link yields probabilities, or its scores always lie in [0, 1]."""
    if part.link.points:
        return all(0 <= value <= 1 for _, value in part.link.points)
    if part.link.kind in _PROBABILITIES:
        return True
    if part.link.kind != "identity" or part.aggregate.kind != "sum":
        return False
    low, high = np.zeros((2, part.stop - part.start))
    for tree in (model.trees[index] for index in model.trees_of(part)):
        for place, output in enumerate(tree.outputs):
            if part.start <= output < part.stop:
                low[output - part.start] += tree.values[:, place].min()
                high[output - part.start] += tree.values[:, place].max()
    bias = model.bias[part.start : part.stop]
    low, high = low / part.aggregate.divisor + bias, high / part.aggregate.divisor + bias
    return bool((low >= -1e-6).all() and (high <= 1 + 1e-6).all())


def _normalized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (rows, classes), or (rows, 1) of class 1, clipped at 0 and scaled to sum to 1 in each row."""
    if values.shape[1] == 1:
        positive = np.clip(values, 0.0, 1.0)
        return np.concatenate([1 - positive, positive], axis=1)
    values = np.maximum(values, 0.0)
    total = values.sum(axis=1, keepdims=True)
    return np.where(total > 0, values / np.where(total > 0, total, 1.0), 1 / values.shape[1])
