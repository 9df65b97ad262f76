"""Reads scikit-learn models that replace another model's decision: by a tuned threshold or by calibrated probabilities.
For a threshold, bisection with the library's own function finds the score at which the class changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.ir import Combine, Decision, Forest, Link
from forestc.forest.summary import counted
from forestc.frontends.shared.exact import labels_of, least_score
from forestc.frontends.shared.merge import side_by_side
from forestc.frontends.sklearn.meta import as_outer, final_estimator, read_member, refuse_normalized
from forestc.frontends.sklearn.trees import FARTHEST, Read

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.calibration import _CalibratedClassifier

Values: TypeAlias = NDArray[np.float64]


def read_threshold(model: BaseEstimator, where: str, read: Read) -> Forest:
    """Reads a TunedThresholdClassifierCV or FixedThresholdClassifier into a Forest."""
    estimator = getattr(model, "estimator_", model.estimator)  # may be a fitted one, given by the user
    methods = model._get_response_method()
    method = _method_of(estimator, [methods] if isinstance(methods, str) else methods)
    if hasattr(model, "best_threshold_"):
        threshold, positive = model.best_threshold_, model._curve_scorer._get_pos_label()
    else:
        threshold, positive = model.threshold, model.pos_label
        if isinstance(threshold, str):  # The only text is "auto".
            threshold = 0.5 if method == "predict_proba" else 0.0
    classes = np.asarray(model.classes_).tolist()
    if positive is not None and positive not in classes:
        raise ModelError(f"the positive class {positive!r} is none of the model's", where=where, do="train it again")
    column = 1 if positive is None else classes.index(positive)
    forest, response = _response(estimator, method, column, f"{where}, estimator", read)

    def above(scores: Values) -> NDArray[np.bool_]:
        return np.asarray((response(scores) >= threshold) == bool(column))

    return as_outer(_decided_by(forest, above, where), model)


def read_calibrated(model: BaseEstimator, where: str, read: Read) -> Forest:
    """Reads a CalibratedClassifierCV into a Forest. With two classes and one calibrated model the forest decides by a
    threshold on the score; otherwise it averages calibrated probabilities."""
    if len(model.classes_) <= 2 and model.method == "temperature":
        raise ModelError("calibrates two classes by temperature", where=where, do="use method='sigmoid' or 'isotonic'")
    if len(model.classes_) > 2 or len(model.calibrated_classifiers_) > 1:
        return _mean_of_calibrated(model, where, read)
    (calibrated,) = model.calibrated_classifiers_
    (calibrator,) = calibrated.calibrators
    method = _method_of(calibrated.estimator, ["decision_function", "predict_proba"])
    forest, response = _response(calibrated.estimator, method, 1, f"{where}, estimator", read)
    falls = calibrator.a_ > 0 if calibrated.method == "sigmoid" else not calibrator.increasing_
    sign = -1.0 if falls else 1.0

    def above(scores: Values) -> NDArray[np.bool_]:
        with np.errstate(over="ignore"):
            probability = calibrator.predict(response(sign * scores))
        return np.asarray(probability > 1.0 - probability)

    # The forest keeps only the order of the scores, not the calibrated probabilities.
    ordered = changed(_negated(forest) if falls else forest, link=Link("order"))
    return as_outer(_decided_by(ordered, above, where), model)


def _mean_of_calibrated(model: BaseEstimator, where: str, read: Read) -> Forest:
    several = len(model.calibrated_classifiers_) > 1
    parts = []
    for index, calibrated in enumerate(model.calibrated_classifiers_):
        here = f"{where}, calibrated model {index}" if several else f"{where}, estimator"
        if len(model.classes_) > 2:
            parts.append(_calibrated_scores(calibrated, model.classes_, here, read))
        else:
            parts.append(_calibrated_score(calibrated, here, read))
    classes = labels_of(model.classes_)
    return as_outer(side_by_side(parts, where, Combine("average"), Decision("argmax"), classes), model)


def _calibrated_score(calibrated: _CalibratedClassifier, where: str, read: Read) -> Forest:
    """Returns the forest of a calibrated two-class model; its value is class 1's probability."""
    (calibrator,) = calibrated.calibrators
    method = _method_of(calibrated.estimator, ["decision_function", "predict_proba"])
    forest, response = _response(calibrated.estimator, method, 1, where, read)
    probe = np.array([-1.5, 0.0, 0.25, 3.0])
    if not np.array_equal(response(probe), probe):
        raise ModelError("calibrates probabilities that are no sum of the trees", where=where, do="use ensemble=False")
    link, falls = _calibration(calibrated.method, calibrator)
    return changed(_negated(forest) if falls else forest, link=link)


def _calibrated_scores(calibrated: _CalibratedClassifier, classes: NDArray[Any], where: str, read: Read) -> Forest:
    forest = _scores_of_classes(calibrated.estimator, classes, where, read)
    decision = Decision("argmax", 0, "values")
    if calibrated.method == "temperature":
        if not hasattr(calibrated.estimator, "decision_function"):
            do = "use method='sigmoid' or 'isotonic', or boosting with a decision function"
            raise ModelError("calibrates the logarithms of probabilities by temperature", where=where, do=do)
        return changed(forest, link=Link("softmax", float(calibrated.calibrators[0].beta_)), decision=decision)
    links = [_calibration(calibrated.method, calibrator) for calibrator in calibrated.calibrators]
    signs = np.array([-1.0 if falls else 1.0 for _, falls in links])
    trees = tuple(changed_tree(tree, values=tree.values * signs[list(tree.outputs)]) for tree in forest.trees)
    link = Link("shares", each=tuple(link for link, _ in links))
    return changed(forest, trees=trees, bias=forest.bias * signs, link=link, decision=decision)


def _scores_of_classes(estimator: object, classes: NDArray[Any], where: str, read: Read) -> Forest:
    """Returns the forest of a calibrated estimator. Raises ModelError for scores that are no sums."""
    forest = read_member(estimator, where, read)
    if not forest.single or len(forest.classes) != len(classes) or forest.n_outputs != len(classes):
        raise ModelError(
            f"is made of {counted(len(forest.parts), 'part')} and has {len(forest.classes)} of {len(classes)} classes",
            where=where,
            do="use a single model, and folds that hold every class",
        )
    if _method_of(estimator, ["decision_function", "predict_proba"]) == "predict_proba":
        refuse_normalized(estimator, where)
        if forest.link != Link():
            raise ModelError(
                f"calibrates probabilities that are made by a {forest.link.kind} of the trees' sums",
                where=where,
                do="calibrate a forest, or boosting that has a decision function, as scikit-learn's",
            )
    return forest


def _calibration(method: str, calibrator: BaseEstimator) -> tuple[Link, bool]:
    """Returns the link from score to probability, and True if the score must be negated."""
    if method == "sigmoid":
        slope, intercept = -float(calibrator.a_), -float(calibrator.b_)
        return Link("sigmoid", abs(slope), intercept=intercept), slope < 0
    falls = not calibrator.increasing_
    points = zip(calibrator.X_thresholds_.tolist(), calibrator.y_thresholds_.tolist(), strict=True)
    ascending = sorted((-x, y) for x, y in points) if falls else list(points)
    return Link("interpolated", points=tuple((float(x), float(y)) for x, y in ascending)), falls


def _method_of(estimator: object, methods: list[str]) -> str:
    return next(name for name in methods if hasattr(estimator, name))


def _response(
    estimator: object, method: str, column: int, where: str, read: Read
) -> tuple[Forest, Callable[[Values], Values]]:
    """Returns the forest of a two-class estimator, and a function from the forest's scores (n,) to the estimator's
    results for class `column`."""
    forest = read_member(estimator, where, read)
    if not forest.single or len(forest.classes) != 2 or forest.decision.kind == "none":
        raise ModelError(
            f"is made of {counted(len(forest.parts), 'part')} and has {len(forest.classes)} classes",
            where=where,
            do="use a single model of two classes",
        )
    if forest.n_outputs == 2:  # The two outputs are the probabilities themselves.
        if forest.link != Link():
            raise ModelError(f"has two scores and a {forest.link.kind}", where=where, do="use a model with one score")
        trees = tuple(
            changed_tree(tree, values=tree.values[:, [tree.outputs.index(column)]], outputs=(0,))
            for tree in forest.trees
        )
        alone = changed(
            forest, trees=trees, n_outputs=1, bias=forest.bias[[column]], decision=Decision("threshold", 0.5)
        )
        if column:
            return alone, lambda scores: scores
        # The score is minus the probability of class 0; the value adds 1.
        return changed(_negated(alone), link=Link(shift=-1.0)), lambda scores: -scores
    if method == "decision_function":
        return forest, (lambda scores: scores) if column else (lambda scores: -scores)
    probabilities = _probabilities(estimator, where)
    return forest, lambda scores: probabilities(scores)[:, column]


def _probabilities(estimator: BaseEstimator, where: str) -> Callable[[Values], Values]:
    estimator = final_estimator(estimator)
    kind = type(estimator).__name__
    if kind in ("GradientBoostingClassifier", "HistGradientBoostingClassifier"):
        loss = estimator._loss
        return lambda scores: np.asarray(loss.predict_proba(np.array(scores)))
    if kind == "AdaBoostClassifier":
        return lambda scores: np.asarray(estimator._compute_proba_from_decision(np.array(scores), 2))
    raise ModelError(
        f"judges probabilities that a {kind} makes of a score",
        where=where,
        do="use a model of scikit-learn's, or a decision function",
    )


def _negated(forest: Forest) -> Forest:
    trees = tuple(changed_tree(tree, values=-tree.values) for tree in forest.trees)
    return changed(forest, trees=trees, bias=-forest.bias)


def _decided_by(forest: Forest, above: Callable[[Values], NDArray[np.bool_]], where: str) -> Forest:
    """Returns the forest with a threshold as its decision: the least score for which `above` is True."""

    def holds(scores: Values) -> NDArray[np.bool_]:
        return above(np.clip(scores, -FARTHEST, FARTHEST))

    least = float(np.clip(least_score(holds, where), -FARTHEST, FARTHEST))
    return changed(forest, decision=Decision("threshold", least))
