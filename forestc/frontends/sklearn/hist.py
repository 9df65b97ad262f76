"""Reads HistGradientBoosting models.

The Forest keeps these semantics of the library: rows and thresholds are float64 and compared with `<=`. Scores start at
the baseline and are summed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import DAMAGED, ModelError
from forestc.forest.builder import make_tree
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Decision, Forest, Link, LinkKind, Tree
from forestc.forest.numbers import FLOAT64
from forestc.frontends.shared.exact import labels_of, next_above, where_equal
from forestc.frontends.sklearn.trees import JUST_ABOVE_ZERO, finished, width_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

# Maps the loss of a regressor to the link of its predictions.
LINKS: dict[str, LinkKind] = {
    **dict.fromkeys(("squared_error", "absolute_error", "quantile"), "identity"),
    **dict.fromkeys(("gamma", "poisson"), "exp"),
}


def read_hist(model: BaseEstimator, where: str) -> Forest:
    """Reads a HistGradientBoostingClassifier or -Regressor into a Forest."""
    sources, categories = _columns(model, width_of(model), where)
    classes = labels_of(model.classes_) if hasattr(model, "classes_") else ()
    outputs = int(model.n_trees_per_iteration_)
    trees = [
        _tree(predictor, k, sources, categories, f"{where}, iteration {iteration}, output {k}")
        for iteration, row in enumerate(model._predictors)
        for k, predictor in enumerate(row)
    ]
    link, decision = Link(), Decision("none")
    if classes and outputs == 1:
        link, decision = Link("sigmoid"), Decision("threshold", JUST_ABOVE_ZERO)
    elif classes:
        link, decision = Link("softmax"), Decision("argmax")
    elif model.loss in LINKS:
        link = Link(LINKS[model.loss])
    else:
        raise ModelError(
            f"the loss {str(model.loss)[:40]!r} is not known",
            where=where,
            do=f"train with a loss of scikit-learn: {', '.join(LINKS)}",
        )
    texts = {
        column: tuple(map(str, values)) for column, values in categories.items() if values.dtype.kind not in "iufb"
    }
    bias = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(outputs)
    return finished(
        model, where, trees, number=FLOAT64, categories=texts,
        n_outputs=outputs, bias=bias, link=link, decision=decision, classes=classes,
    )  # fmt: skip


def _columns(model: BaseEstimator, columns: int, where: str) -> tuple[NDArray[np.int64], dict[int, NDArray[Any]]]:
    """Returns an array with the rows' column for each column of the trees, and {column of the rows: array of its
    categories}."""
    preprocessor = getattr(model, "_preprocessor", None)
    if preprocessor is None:
        if getattr(model, "is_categorical_", None) is not None:
            raise ModelError("categories without an encoder", where=where, do="train with scikit-learn 1.5 or newer")
        return np.arange(columns), {}
    chosen = np.asarray(model.is_categorical_, dtype=bool)
    first = np.flatnonzero(chosen)
    encoder = preprocessor.named_transformers_["encoder"]
    categories = {}
    for column, values in zip(first.tolist(), encoder.categories_, strict=True):
        values = np.asarray(values)
        absent = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
        categories[column] = values[~absent]
    return np.concatenate([first, np.flatnonzero(~chosen)]), categories


def _tree(
    predictor: TreePredictor, output: int, sources: NDArray[np.int64], categories: dict[int, NDArray[Any]], where: str
) -> Tree:
    nodes = np.asarray(predictor.nodes)
    is_leaf = nodes["is_leaf"] != 0
    feature = nodes["feature_idx"].astype(np.int64)
    if (bad := ~is_leaf & (feature >= len(sources))).any():
        raise ModelError(f"feature {int(feature[bad][0])} of {len(sources)}", where=where, do=DAMAGED)
    feature = np.where(is_leaf, LEAF, sources[np.where(is_leaf, 0, feature)])
    missing_left = nodes["missing_go_to_left"] != 0
    set_index = np.full(len(nodes), NO_SET)
    sets: list[Sequence[Member]] = []
    bitsets = np.asarray(predictor.raw_left_cat_bitsets)
    for node in np.flatnonzero(~is_leaf & (nodes["is_categorical"] != 0)).tolist():
        column = int(feature[node])
        if column not in categories:
            raise ModelError(f"splits on the categories of column {column}, which has none", where=where, do=DAMAGED)
        words = bitsets[int(nodes["bitset_idx"][node])]
        codes = [code for code in range(len(categories[column])) if int(words[code // 32]) >> (code % 32) & 1]
        set_index[node] = len(sets)
        sets.append(_members(categories[column], codes, bool(missing_left[node])))
    # Splits on missing values alone have an infinite threshold: all numbers satisfy `x <= t`.
    everything = ~is_leaf & (set_index == NO_SET) & np.isposinf(nodes["num_threshold"])
    if everything.any():
        set_index[everything] = len(sets)
        sets.append([-np.inf])
    return make_tree(
        where=where,
        feature=feature,
        threshold=next_above(nodes["num_threshold"].astype(np.float64), 64),
        left=np.where(is_leaf, LEAF, nodes["left"].astype(np.int64)),
        right=np.where(is_leaf, LEAF, nodes["right"].astype(np.int64)),
        values=nodes["value"][is_leaf].reshape(-1, 1),
        outputs=(output,),
        missing_left=missing_left,
        set_index=set_index,
        sets=sets,
        cover=nodes["count"].astype(np.float64),
    )


def _members(categories: NDArray[Any], codes: list[int], unknown_left: bool) -> Sequence[Member]:
    if categories.dtype.kind not in "iufb":
        return [*codes, len(categories)] if unknown_left else list(codes)
    goes_left = np.isin(np.arange(len(categories)), codes)
    odd = categories.astype(np.float64)[goes_left != unknown_left]
    return where_equal(odd, unknown_left)
