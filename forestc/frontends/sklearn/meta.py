"""Reads scikit-learn models made of other models: voting, several prediction targets, one-vs-rest.

Each member is read by the frontend of its library, such as XGBoost's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from forestc.errors import ModelError
from forestc.forest.builder import changed, changed_tree, make_tree
from forestc.forest.ir import LEAF, Combine, Decision, Forest, Label
from forestc.frontends.shared.exact import labels_of
from forestc.frontends.shared.merge import side_by_side
from forestc.frontends.sklearn.trees import (
    TREES,
    Read,
    finished,
    provenance,
    read_bagged_trees,
    sklearn_version,
    width_of,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
MOST_NOTED = 120  # characters of a search's parameters in a note, to keep one line


def read_search(model: object, where: str, read: Read) -> Forest:
    """Reads the best estimator of a search over parameters into a Forest, with a note on it."""
    best = getattr(model, "best_estimator_", None)
    if best is None:
        raise ModelError("holds no best estimator", where=where, do="search with refit=True, or pass the estimator")
    forest = read(best)
    note = chosen_note(model)
    return replace(forest, provenance=replace(forest.provenance, notes=(note, *forest.provenance.notes)))


def chosen_note(model: BaseEstimator) -> str:
    """Returns a note on the best parameters of a search, for `Provenance.notes`."""
    chosen = ", ".join(f"{name}={value!r}" for name, value in (getattr(model, "best_params_", None) or {}).items())
    shown = chosen if len(chosen) <= MOST_NOTED else chosen[: MOST_NOTED - 3] + "..."
    kind = type(model.best_estimator_).__name__
    return f"{type(model).__name__}: its best estimator is read, a {kind}{f' with {shown}' * bool(shown)}"


def _members(models: Sequence[BaseEstimator], where: str, read: Read) -> list[Forest]:
    forests = [read_member(model, f"{where}, member {index}", read) for index, model in enumerate(models)]
    return [
        changed(forest, parts=forest.parts, combine=Combine())
        if len(forest.parts) == 1 and forest.combine.kind == "average"
        else forest
        for forest in forests
    ]


def read_member(model: object, where: str, read: Read) -> Forest:
    """Reads a model within a model into a Forest. Raises ModelError, naming `where`."""
    try:
        return read(model)
    except ModelError as error:
        raise ModelError(error.what, where=f"{where}, {error.where}", do=error.do) from None


def thawed(estimator: Any) -> Any:
    """Returns the estimator in a FrozenEstimator, which predicts as it does; any other as it is."""
    while type(estimator).__name__ == "FrozenEstimator":
        estimator = estimator.estimator
    return estimator


def final_estimator(estimator: BaseEstimator) -> BaseEstimator:
    """Returns the estimator at the end of pipelines and searches."""
    estimator = thawed(estimator)
    while (best := getattr(estimator, "best_estimator_", None)) is not None or type(estimator).__name__ == "Pipeline":
        estimator = thawed(estimator.steps[-1][1] if best is None else best)
    return estimator


def refuse_normalized(estimator: BaseEstimator, where: str) -> None:
    """Raises ModelError for a one-vs-rest member of three classes or more, which divides its probabilities by their
    sum."""
    if type(final_estimator(estimator)).__name__ == "OneVsRestClassifier" and len(estimator.classes_) > 2:
        raise ModelError(
            "takes the probabilities of a one-vs-rest model, which are divided by their sum",
            where=where,
            do="use a model that is trained on all classes",
        )


def _refuse_order(forests: list[Forest], where: str) -> None:
    """Raises ModelError for a member whose scores give only the order of its probabilities."""
    for index, forest in enumerate(forests):
        if any(part.link.kind == "order" for part in forest.parts):
            raise ModelError(
                "takes the probabilities of a calibrated model, of which only the decision is read",
                where=f"{where}, member {index}",
                do="vote with voting='hard', or calibrate the whole",
            )


def as_outer(forest: Forest, model: object) -> Forest:
    """Returns the forest with the column names and provenance of the outer model. The forest keeps its notes."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        named = tuple(replace(feature, name=str(names[feature.column]), named=True) for feature in forest.features)
        forest = replace(forest, features=named)
    return replace(forest, provenance=replace(provenance(), notes=forest.provenance.notes))


def read_voting(model: BaseEstimator, where: str, read: Read) -> Forest:
    """Reads a VotingClassifier or VotingRegressor. Hard voting adds weights; soft voting averages probabilities."""
    members = _members(model.estimators_, where, read)
    weights = model._weights_not_none
    weighted = () if weights is None else tuple(map(float, weights))
    if not hasattr(model, "classes_"):
        return as_outer(side_by_side(members, where, Combine("average", weighted)), model)
    classes = labels_of(model.classes_)
    kind: Literal["vote", "average"] = "vote" if model.voting == "hard" else "average"
    if kind == "average":
        _refuse_order(members, where)
        for index, estimator in enumerate(model.estimators_):
            refuse_normalized(estimator, f"{where}, member {index}")
    return as_outer(side_by_side(members, where, Combine(kind, weighted), Decision("argmax"), classes), model)


def read_multi_output(model: BaseEstimator, where: str, read: Read) -> Forest:
    """Reads a MultiOutputClassifier or MultiOutputRegressor: one model for each prediction target."""
    members = _members(model.estimators_, where, read)
    first = members[0]
    plain = all((m.aggregate, m.link, m.decision) == (first.aggregate, first.link, Decision("none")) for m in members)
    if plain:  # Regressions of one kind become one forest of several outputs.
        return as_outer(side_by_side(members, where, link=first.link), model)
    return as_outer(side_by_side(members, where, Combine("each")), model)


def read_bagging(model: BaseEstimator, where: str, read: Read) -> Forest:
    """Reads a BaggingClassifier or BaggingRegressor: the mean of its members. Each may read some of the columns."""
    estimators = [_without_samplers(estimator) for estimator in model.estimators_]
    if all(type(estimator).__name__ in TREES for estimator in estimators):
        return read_bagged_trees(model, estimators, where)
    members = []
    for forest, chosen in zip(_members(estimators, where, read), model.estimators_features_, strict=True):
        features = tuple(replace(feature, column=int(chosen[feature.column])) for feature in forest.features)
        members.append(replace(forest, features=features, columns=width_of(model)))
    if not hasattr(model, "classes_"):
        return as_outer(side_by_side(members, where, Combine("average")), model)
    classes = labels_of(model.classes_)
    _refuse_order(members, where)
    for index, estimator in enumerate(estimators):
        here = f"{where}, member {index}"
        refuse_normalized(estimator, here)
        if not hasattr(estimator, "predict_proba") or len(estimator.classes_) < len(classes):
            what = f"gives probabilities of {len(members[index].classes)} of {len(classes)} classes"
            what = what if hasattr(estimator, "predict_proba") else "gives no probabilities"
            raise ModelError(what, where=here, do="bag trees, or vote with a VotingClassifier")
    return as_outer(side_by_side(members, where, Combine("average"), Decision("argmax"), classes), model)


def _without_samplers(estimator: BaseEstimator) -> BaseEstimator:
    """Returns what a pipeline of imbalanced-learn's samplers predicts with; other estimators as they are."""
    steps: list[Any] = getattr(estimator, "steps", [(None, estimator)])
    return steps[-1][1] if all(hasattr(step, "fit_resample") for _, step in steps[:-1]) else estimator


def read_constant(model: BaseEstimator, where: str) -> Forest:
    """Reads what one-vs-rest holds for a label that all rows have, or none has: the score is 1 or 0."""
    leaf = make_tree(
        where=where, feature=[LEAF], threshold=[0.0], left=[LEAF], right=[LEAF], values=[model.y_], outputs=(0,)
    )
    return finished(model, where, [leaf], n_outputs=1)


def read_one_vs_rest(model: BaseEstimator, where: str, read: Read) -> Forest:
    forests = _members(model.estimators_, where, read)
    _refuse_order(forests, where)
    members = [
        _score_of_class_1(forest, hasattr(estimator, "decision_function"), f"{where}, member {index}")
        for index, (forest, estimator) in enumerate(zip(forests, model.estimators_, strict=True))
    ]
    if model.label_binarizer_.y_type_ != "multiclass":
        from sklearn.base import is_classifier

        first = model.estimators_[0]  # The library takes its threshold for all labels.
        above = np.nextafter(0.0 if hasattr(first, "decision_function") and is_classifier(first) else 0.5, 1.0)
        classes: tuple[Label, ...] = (0, 1) if model.multilabel_ else labels_of(model.classes_)
        members = [changed(m, decision=_above(m.link.kind, above, where), classes=classes) for m in members]
        return as_outer(side_by_side(members, where, Combine("each")), model)
    same = members[0]
    if any((m.aggregate, m.link) != (same.aggregate, same.link) for m in members):
        raise ModelError("the members add up in different ways", where=where, do="train them with the same options")
    decision = Decision("argmax", 0, "values", _ties())
    return as_outer(side_by_side(members, where, None, decision, labels_of(model.classes_), link=same.link), model)


def _ties() -> Literal["first", "last"]:
    """Returns which of equal classes wins in one-vs-rest, "first" or "last". This depends on scikit-learn's version."""
    major, minor = (int(part) for part in sklearn_version().split(".")[:2])
    return "first" if (major, minor) >= (1, 8) else "last"


def _above(link: str, least: float, where: str) -> Decision:
    if link != "identity" and least != np.nextafter(0.0, 1.0):
        raise ModelError(f"a decision on values after a {link}", where=where, do="pass its estimators_ one by one")
    return Decision("threshold", float(least))


def _score_of_class_1(forest: Forest, by_score: bool, where: str) -> Forest:
    """Returns the forest with a single output: class 1's score (if `by_score`) or probability."""
    if by_score:
        if forest.n_outputs != 1:
            raise ModelError(
                f"has {forest.n_outputs} scores", where=where, do="calibrate a classifier that gives one score"
            )
        return replace(
            forest, link=replace(forest.link, kind="identity", slope=1.0), decision=Decision("none"), classes=()
        )
    if forest.n_outputs == 2:
        trees = tuple(changed_tree(tree, values=tree.values[:, 1:], outputs=(0,)) for tree in forest.trees)
        forest = replace(forest, trees=trees, n_outputs=1, bias=forest.bias[1:])
    return changed(forest, decision=Decision("none"), classes=())
