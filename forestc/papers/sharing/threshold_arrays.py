"""Reads and writes the thresholds of fitted scikit-learn trees, in place in the trees' own arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError, RowsError
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import FLOAT32
from forestc.frontends.shared.exact import next_above


def threshold_arrays(model: Any) -> list[NDArray[Any]]:
    """Returns a list with the writable threshold array of each tree, in forestc's order of trees; [] for a model
    without trees."""
    if hasattr(model, "tree_"):
        return [model.tree_.threshold]
    if hasattr(model, "_predictors"):
        return [predictor.nodes["num_threshold"] for stage in model._predictors for predictor in stage]
    listed = getattr(model, "estimators_", [])
    listed = listed.ravel() if isinstance(listed, np.ndarray) else listed  # an array is of stages and classes
    members = [member for member in listed if hasattr(member, "get_params")]
    first = getattr(model, "init_", None)
    return [array for member in (first, *members) for array in threshold_arrays(member)] if members else []


def refuse_other_trees(forest: Forest, arrays: list[NDArray[Any]], model: object) -> None:
    """Raises ModelError unless the forest's thresholds equal the thresholds in the arrays."""
    same = len(arrays) == len(forest.trees)
    for tree, array in zip(forest.trees, arrays, strict=False):
        here = np.flatnonzero((tree.left != LEAF) & (tree.set_index == NO_SET))
        bits = np.array([32 if feature.number == FLOAT32 else 64 for feature in forest.features] or [32])
        own = array[tree.ids[here]]
        read = np.where(bits[tree.feature[here]] == 32, next_above(own, 32), next_above(own, 64))
        same = same and np.array_equal(read, tree.threshold[here])
    if not same:
        raise ModelError(
            f"a {type(model).__name__} does not compare its rows as they are given",
            where="estimator",
            do="share the thresholds of the trees, forest or boosting inside it",
        )


def count_conditions(forest: Forest, arrays: list[NDArray[Any]]) -> int:
    """Returns the number of distinct pairs of feature and threshold in the arrays."""
    pairs = []
    for tree, array in zip(forest.trees, arrays, strict=True):
        here = np.flatnonzero((tree.left != LEAF) & (tree.set_index == NO_SET))
        pairs.append(np.stack([tree.feature[here].astype(np.float64), array[tree.ids[here]]]))
    return np.unique(np.concatenate(pairs, axis=1), axis=1).shape[1] if pairs else 0


def write_thresholds(after: Forest, arrays: list[NDArray[Any]]) -> None:
    """Writes the forest's thresholds to scikit-learn's arrays: `x < t` becomes `x <= u`, with u one float below t."""
    narrow = np.array([feature.number == FLOAT32 for feature in after.features] or [True])
    for tree, array in zip(after.trees, arrays, strict=True):
        here = np.flatnonzero((tree.left != LEAF) & (tree.set_index == NO_SET) & np.isfinite(tree.threshold))
        t = tree.threshold[here]
        single = np.nextafter(t.astype(np.float32), np.float32(-np.inf)).astype(np.float64)
        array[tree.ids[here]] = np.where(narrow[tree.feature[here]], single, np.nextafter(t, -np.inf))


def times_drawn(model: Any, rows: int) -> NDArray[np.uint8] | None:
    """Returns how often each tree was trained on each row, (trees, rows), at most 255; None for all rows once, and for
    members with several trees. Raises RowsError for another number of rows."""
    if not hasattr(model, "estimators_samples_") or not all(hasattr(member, "tree_") for member in model.estimators_):
        return None
    trained = getattr(model, "_n_samples", rows)
    if trained != rows:
        raise RowsError(
            f"per_tree_rows: {rows} rows are given, and the estimator was trained on {trained}",
            where="X",
            do="give the training rows in their order, or set per_tree_rows=False",
        )
    times = (np.bincount(drawn, minlength=rows) for drawn in model.estimators_samples_)
    return np.stack([np.minimum(drawn, 255) for drawn in times]).astype(np.uint8)
