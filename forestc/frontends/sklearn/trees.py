"""Reads scikit-learn's tree ensembles: trees, forests, gradient boosting, AdaBoost, bagging, isolation forests.

The Forest keeps these semantics of the library: rows are converted to float32; thresholds are float64 and compared with
`<=`. Scores are summed in float64, tree by tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from forestc.errors import DAMAGED, HERE, ModelError
from forestc.forest.builder import changed_tree, make_tree
from forestc.forest.ir import LEAF, Aggregate, Combine, Decision, Feature, Forest, Link, Part, Provenance, Tree
from forestc.forest.numbers import FLOAT32, Category, Float
from forestc.forest.tree import Draw
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.shared.assemble import ScoreMeaning, assembled
from forestc.frontends.shared.exact import labels_of, least_score, next_above

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.tree._tree import Tree as FittedTree

Read: TypeAlias = Callable[[object], Forest]  # reads a model of any library that is part of another

SOURCE = "scikit-learn"
FARTHEST = 1e300  # stands for an infinite threshold; no score reaches it
TREES = {"DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"}
JUST_ABOVE_ZERO = float(np.nextafter(0.0, 1.0))  # bounds the score of a class that needs a positive score


def finished(
    model: object,
    where: str,
    trees: Sequence[Tree],
    missing: bool = True,
    number: Float = FLOAT32,
    categories: Mapping[int, tuple[str, ...]] | None = None,
    **meaning: Unpack[ScoreMeaning],
) -> Forest:
    """Builds the Forest of a scikit-learn model.
    trees: trees with columns of the rows as features.
    missing: True if the model accepts missing values.
    categories: column -> names of its categories."""
    names = getattr(model, "feature_names_in_", None)

    def feature(column: int) -> Feature:
        name = f"x{column}" if names is None else str(names[column])
        labels = (categories or {}).get(column)
        kind = number if labels is None else Category(len(labels))
        return Feature(name, kind, column, missing, number, labels or (), names is not None)

    return assembled(trees, width_of(model), feature, provenance(), where, **meaning)


def width_of(model: BaseEstimator) -> int:
    """Returns the number of columns that a fitted model or step takes. Raises ModelError for a number out of range."""
    width = int(model.n_features_in_)
    if not 0 <= width <= MAX_COLUMNS:
        raise ModelError(f"{width} columns", where=HERE, do=f"train on {MAX_COLUMNS} columns at most")
    return width


def sklearn_version() -> str:
    import sklearn

    return str(sklearn.__version__)


def provenance() -> Provenance:
    return Provenance(SOURCE, sklearn_version())


def read_tree(
    tree: FittedTree,
    where: str,
    outputs: Sequence[int],
    values: NDArray[np.float64] | None = None,
    *,
    missing: bool = True,
    columns: NDArray[np.int64] | None = None,
    drawn: Draw | None = None,
) -> Tree:
    """Reads a `sklearn.tree._tree.Tree`. Raises ModelError.

    values: (nodes, outputs), by default tree.value.
    columns: the columns on which the tree was trained, if not all.
    """
    if not 0 <= tree.node_count <= tree.capacity:
        raise ModelError(f"{tree.node_count} nodes in an array of {tree.capacity}", where=where, do=DAMAGED)
    left = np.asarray(tree.children_left)
    is_leaf = left == LEAF
    if values is None:
        values = _flat(tree, [len(outputs)], where)
    feature = np.where(is_leaf, LEAF, tree.feature)
    if columns is not None:
        if (bad := ~is_leaf & ((feature < 0) | (feature >= len(columns)))).any():
            raise ModelError(f"feature {int(feature[bad][0])} of {len(columns)}", where=where, do=DAMAGED)
        feature = np.where(is_leaf, LEAF, columns[np.where(is_leaf, 0, feature)])
    left_if_missing = getattr(tree, "missing_go_to_left", None) if missing else None
    return make_tree(
        where=where,
        feature=feature,
        threshold=next_above(np.asarray(tree.threshold, dtype=np.float64), 32),
        left=left,
        right=tree.children_right,
        values=values[is_leaf],
        outputs=outputs,
        missing_left=None if left_if_missing is None else np.asarray(left_if_missing) != 0,
        cover=tree.weighted_n_node_samples,
        drawn=drawn,
    )


def read_forest(model: BaseEstimator, where: str) -> Forest:
    """Reads a single tree, a random forest or extra trees, with one or several targets."""
    estimators = [model] if type(model).__name__ in TREES else list(model.estimators_)
    aggregate = Aggregate(divisor=float(len(estimators)))
    targets = int(getattr(model, "n_outputs_", 1))
    classes = []
    if hasattr(model, "classes_"):
        classes = [labels_of(labels) for labels in (model.classes_ if targets > 1 else [model.classes_])]
    widths = [len(labels) for labels in classes] or [1] * targets
    outputs = range(sum(widths))
    trees = []
    for index, estimator in enumerate(estimators):
        location = f"{where}, tree {index}"
        values = (_shares if classes else _flat)(estimator.tree_, widths, location)
        trees.append(read_tree(estimator.tree_, location, outputs, values, drawn=_draw(model, estimator)))
    if not classes:
        return finished(model, where, trees, n_outputs=targets, aggregate=aggregate)
    argmax = Decision("argmax")
    ends = np.cumsum(widths).tolist()
    parts = [
        Part(end - len(labels), end, aggregate, Link(), argmax, labels)
        for end, labels in zip(ends, classes, strict=True)
    ]
    return finished(model, where, trees, n_outputs=ends[-1], parts=parts)


def _draw(model: BaseEstimator, estimator: BaseEstimator) -> Draw | None:
    """Returns the bootstrap sample of a forest's tree, or None if the sample is unknown."""
    if not getattr(model, "bootstrap", False) or getattr(model, "_sample_weight", None) is not None:
        return None
    stored = estimator.random_state, getattr(model, "_n_samples_bootstrap", None), getattr(model, "_n_samples", None)
    numbers = [int(number) for number in stored if isinstance(number, int | np.integer)]
    return Draw(*numbers) if len(numbers) == len(stored) else None


def _flat(tree: FittedTree, widths: list[int], where: str) -> NDArray[np.float64]:
    """Returns `tree.value` without padding, (nodes, classes of all targets). The library pads each target to the
    largest number of classes."""
    value = np.asarray(tree.value, dtype=np.float64)
    if value.ndim != 3 or value.shape[1:] != (len(widths), max(widths)):
        what = f"leaf values have shape {value.shape}, not (nodes, {len(widths)}, {max(widths)})"
        raise ModelError(what, where=where, do=DAMAGED)
    return np.concatenate([value[:, target, :width] for target, width in enumerate(widths)], axis=1)


def _shares(tree: FittedTree, widths: list[int], where: str) -> NDArray[np.float64]:
    """Returns `_flat` of a classifier: shares of the classes. Versions before 1.4 hold weights, and divide by their sum
    when they predict."""
    values = _flat(tree, widths, where)
    for start, width in zip(np.cumsum([0, *widths[:-1]]).tolist(), widths, strict=True):
        sums = values[:, start : start + width].sum(axis=1, keepdims=True)
        if np.allclose(sums[:, 0], tree.weighted_n_node_samples) and not np.allclose(sums, 1.0):
            values[:, start : start + width] /= np.where(sums == 0.0, 1.0, sums)
    return values


def read_boosting(model: BaseEstimator, where: str, read: Read) -> Forest:
    stages = model.estimators_
    outputs = int(stages.shape[1])
    rate = float(model.learning_rate)
    trees, bias = _initial(model, where, outputs, read)
    for stage, row in enumerate(stages):
        for k, estimator in enumerate(row):
            values = rate * _flat(estimator.tree_, [1], where)
            trees.append(read_tree(estimator.tree_, f"{where}, stage {stage}, output {k}", (k,), values, missing=False))
    classes = labels_of(model.classes_) if hasattr(model, "classes_") else ()
    link, decision = Link(), Decision("none")
    if classes and outputs == 1:
        # Class 1 needs score >= 0. Exponential loss has the probability expit(2 score), others expit(score).
        link, decision = Link("sigmoid", 1.0 if model.loss == "log_loss" else 2.0), Decision("threshold", 0.0)
    elif classes:
        link, decision = Link("softmax"), Decision("argmax")
    return finished(
        model, where, trees, missing=False, n_outputs=outputs, bias=bias, link=link, decision=decision, classes=classes
    )


def _initial(model: BaseEstimator, where: str, outputs: int, read: Read) -> tuple[list[Tree], NDArray[np.float64]]:
    init: BaseEstimator = getattr(model, "init_", None)
    kind = type(init).__name__
    if kind == "DummyClassifier" and init.strategy == "stratified":
        raise ModelError(
            "the initial estimator predicts at random (strategy='stratified')",
            where=where,
            do="train with init='zero', or an estimator that predicts the same each time",
        )
    if init == "zero" or kind in ("DummyClassifier", "DummyRegressor"):
        start = model._raw_predict_init(np.zeros((1, width_of(model)), dtype=np.float32))
        return [], np.asarray(start, dtype=np.float64)[0]
    if kind not in TREES:
        return _initial_sum(None if hasattr(model, "classes_") else read(init), kind, where, outputs)
    from sklearn.ensemble._gb import _init_raw_predictions

    # Evaluates the library's formula for every node of the tree instead of for rows.
    values = _flat(init.tree_, [len(getattr(init, "classes_", (0,)))], where)
    nodes = SimpleNamespace(predict_proba=lambda _: values, predict=lambda _: values[:, 0])
    raw = np.asarray(_init_raw_predictions(None, nodes, model._loss, hasattr(model, "classes_")), dtype=np.float64)
    return [read_tree(init.tree_, f"{where}, init", range(outputs), raw, missing=False)], np.zeros(outputs)


def _initial_sum(forest: Forest | None, kind: str, where: str, outputs: int) -> tuple[list[Tree], NDArray[np.float64]]:
    """Returns the trees and the bias of the regressor from which boosting starts. Raises ModelError unless it is a sum
    of trees."""
    if forest is None or not (
        (forest.single, forest.link, forest.decision.kind) == (True, Link(), "none")
        and (forest.aggregate.kind, forest.n_outputs) == ("sum", outputs)
        and all(feature.number == FLOAT32 for feature in forest.features)
    ):
        raise ModelError(
            f"the initial estimator {kind} is not a sum of trees that boosting can start from",
            where=where,
            do="train with init=None, init='zero', a single tree, or for regression a forest",
        )
    aggregate = forest.aggregate
    columns = np.array([*(feature.column for feature in forest.features), LEAF], dtype=np.int32)
    trees = [
        changed_tree(
            tree,
            feature=columns[tree.feature],
            values=tree.values / aggregate.divisor,
            missing_left=np.zeros(tree.size, dtype=bool),
        )
        for tree in forest.trees
    ]
    return trees, forest.bias / (aggregate.divisor if aggregate.bias_first else 1.0)


def read_adaboost(model: BaseEstimator, where: str) -> Forest:
    """Reads an AdaBoostClassifier (SAMME: a weighted vote of the trees) or -Regressor (R2: a weighted median)."""
    estimators = list(model.estimators_)
    weights = np.asarray(model.estimator_weights_, dtype=np.float64)[: len(estimators)]
    for index, estimator in enumerate(estimators):
        if type(estimator).__name__ not in TREES:
            raise ModelError(f"estimator {index} is a {type(estimator).__name__}", where=where, do="boost single trees")
    if getattr(model, "algorithm", "") == "SAMME.R":
        raise ModelError(
            "was trained with algorithm='SAMME.R', by which scikit-learn predicts no more",
            where=where,
            do="train it again: newer versions train with SAMME",
        )
    if not hasattr(model, "classes_"):
        trees = [
            read_tree(estimator.tree_, f"{where}, tree {index}", (index,), missing=False)
            for index, estimator in enumerate(estimators)
        ]
        parts = [Part(index, index + 1, Aggregate(), Link(), Decision("none")) for index in range(len(trees))]
        alone = len(weights) == 1  # The weight of a first tree is 0 if boosting could not improve on it.
        combine = Combine("median", () if alone else tuple(weights.tolist()))
        return finished(model, where, trees, missing=False, n_outputs=len(trees), parts=parts, combine=combine)
    classes = labels_of(model.classes_)
    n = len(classes)
    trees = []
    for index, (estimator, weight) in enumerate(zip(estimators, weights, strict=True)):
        labels = labels_of(estimator.classes_)
        best = np.argmax(_flat(estimator.tree_, [len(labels)], where), axis=1)
        chosen = np.array([classes.index(label) for label in labels])[best]
        votes = np.where(chosen[:, np.newaxis] == np.arange(n), weight, -1 / max(1, n - 1) * weight)
        if n == 2:  # The library subtracts the first column from the second, which is twice the second.
            votes = 2 * votes[:, 1:]
        trees.append(read_tree(estimator.tree_, f"{where}, tree {index}", range(votes.shape[1]), votes, missing=False))
    aggregate = Aggregate(divisor=float(model.estimator_weights_.sum()))
    if n == 1:
        trees = [changed_tree(tree, values=np.zeros_like(tree.values)) for tree in trees]  # One class scores 0.
        return finished(model, where, trees, missing=False, n_outputs=1, decision=Decision("argmax"), classes=classes)
    # Probabilities are the softmax of scores / (classes - 1) or, for two classes, the sigmoid of the score.
    return finished(
        model,
        where,
        trees,
        missing=False,
        n_outputs=1 if n == 2 else n,
        aggregate=aggregate,
        link=Link("sigmoid") if n == 2 else Link("softmax", 1 / (n - 1)),
        decision=Decision("threshold", JUST_ABOVE_ZERO) if n == 2 else Decision("argmax"),
        classes=classes,
    )


def read_bagged_trees(model: BaseEstimator, estimators: Sequence[BaseEstimator], where: str) -> Forest:
    """Reads a BaggingClassifier or BaggingRegressor of single trees. Each tree may read a subset of the columns."""
    classes = labels_of(model.classes_) if hasattr(model, "classes_") else ()
    n = len(classes) or (int(np.asarray(estimators[0].tree_.value).shape[1]) if estimators else 1)
    trees = []
    for index, (estimator, chosen) in enumerate(zip(estimators, model.estimators_features_, strict=True)):
        location = f"{where}, estimator {index}"
        if classes:  # An estimator has no column for a class that was not in its training rows.
            class_indices = np.asarray(estimator.classes_, dtype=np.int64)
            class_values = _shares(estimator.tree_, [len(class_indices)], location)
            values = np.zeros((len(class_values), n))
            values[:, class_indices] = class_values
        else:
            values = _flat(estimator.tree_, [1] * n, location)
        trees.append(read_tree(estimator.tree_, location, range(n), values, columns=np.asarray(chosen, dtype=np.int64)))
    return finished(
        model,
        where,
        trees,
        n_outputs=n,
        aggregate=Aggregate(divisor=float(len(estimators))),
        decision=Decision("argmax") if classes else Decision("none"),
        classes=classes,
    )


def read_isolation(model: BaseEstimator, where: str) -> Forest:
    """Reads an IsolationForest. A score is the path length divided by its expectation, and the value is the decision
    function. The classes are -1 (outlier) and 1."""
    from sklearn.ensemble._iforest import _average_path_length

    trees = []
    for index, (estimator, chosen) in enumerate(zip(model.estimators_, model.estimators_features_, strict=True)):
        lengths = np.asarray(model._decision_path_lengths[index] + model._average_path_length_per_tree[index] - 1.0)
        location = f"{where}, tree {index}"
        columns = np.asarray(chosen, dtype=np.int64)
        trees.append(read_tree(estimator.tree_, location, (0,), lengths[:, np.newaxis], columns=columns))
    expected = float(_average_path_length([model._max_samples])[0]) * len(trees)
    offset = float(model.offset_)
    bias = 0.0
    if expected == 0.0:  # With one sample per tree the library's score is 1 for every row.
        trees = [read_tree(e.tree_, where, (0,), np.zeros((e.tree_.node_count, 1))) for e in model.estimators_]
        expected, bias = 1.0, 1.0

    def inlier(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(-(2.0**-scores) - offset >= 0)

    # `inlier` computes powers of arrays, as scikit-learn does; powers of scalars may round differently.
    least = least_score(inlier, where)
    return finished(
        model,
        where,
        trees,
        n_outputs=1,
        bias=[bias],
        aggregate=Aggregate(divisor=expected),
        link=Link("isolation", shift=offset),
        decision=Decision("threshold", min(max(least, -FARTHEST), FARTHEST)),
        classes=(-1, 1),
    )
