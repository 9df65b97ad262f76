"""The meaning of a Forest: a slow, obvious evaluator that everything else is judged by.

`encode` turns raw rows into what the conditions compare; `evaluate_words` does the rest, level by
level in plain NumPy. After quantisation both are integer arithmetic, and every backend equals
`evaluate_words` on every input, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestc.errors import RowsError
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import Float, FloatArray, round_to, to_words, word_range


@dataclass(frozen=True)
class Evaluation:
    """What a forest says of rows.

    leaves: (rows, trees) int32, the source library's numbers of the leaves reached.
    scores: (rows, outputs): integers once quantised, else in the source's precision.
    values: (rows, outputs) float64 (or the source's precision): scores after the link.
    decision: (rows,) the source's own class labels, or for regression the first value.
    index: (rows,) int64, the class's index in `forest.classes`; -1 for regression.
    """

    leaves: NDArray[np.int32]
    scores: NDArray[Any]
    values: NDArray[Any]
    decision: NDArray[Any]
    index: NDArray[np.int64]


def encode(forest: Forest, rows: ArrayLike) -> NDArray[Any]:
    """Raw rows (rows, columns) to what the conditions compare: (rows, features).

    float64 (NaN is missing) for a float forest, int64 words for a quantised one. Raises RowsError for
    a wrong width, for text, and for NaN where the feature takes none.
    """
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RowsError(f"the rows are not numbers ({error})", do="encode text columns first") from None
    if table.ndim != 2 or table.shape[1] != forest.columns:
        raise RowsError(f"the rows have shape {table.shape}", do=f"the model takes rows of {forest.columns} columns")
    result = np.empty((len(table), len(forest.features)), dtype=np.int64 if forest.quantised else np.float64)
    for index, feature in enumerate(forest.features):
        column = round_to(table[:, feature.column], feature.raw)
        if not feature.missing and (absent := np.flatnonzero(np.isnan(column))).size:
            raise RowsError(
                "a value is missing (NaN)",
                where=f"row {int(absent[0])}, feature {feature.name!r}",
                do="fill it in, or compile with quantize{missing=always} if the model takes missing values"
                if forest.quantised
                else "fill it in, or use a model that takes missing values",
            )
        if isinstance(feature.number, Float):
            result[:, index] = column
        elif not forest.quantised:  # a category among floats: its code, and NaN stays NaN
            codes = to_words(column, feature.number, False)
            result[:, index] = np.where(np.isnan(column), np.nan, codes)
        else:
            result[:, index] = to_words(column, feature.number, feature.missing)
    return result


def evaluate(forest: Forest, rows: ArrayLike) -> Evaluation:
    """What the forest says of raw rows, shape (rows, columns); see `encode` for what is refused."""
    return evaluate_words(forest, encode(forest, rows))


def evaluate_words(forest: Forest, words: NDArray[Any]) -> Evaluation:
    """What the forest says of encoded rows, shape (rows, features)."""
    leaves = np.empty((len(words), len(forest.trees)), dtype=np.int32)
    total = start_scores(forest, len(words))
    missing = missing_words(forest)
    for index, tree in enumerate(forest.trees):
        node = leaf_nodes(forest, tree, words, missing)
        leaves[:, index] = tree.ids[node]
        total[:, list(tree.outputs)] += tree.values[tree.leaf[node]].astype(total.dtype)
    scores = finish_scores(forest, total)
    values = link_values(forest, scores)
    index_ = decide(forest, scores, values)
    if forest.decision.kind == "none":
        return Evaluation(leaves, scores, values, values[:, 0], index_)
    return Evaluation(leaves, scores, values, np.asarray(forest.classes)[index_], index_)


def missing_words(forest: Forest) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """For each feature whether it has a word for "missing", and which. A float forest has NaN instead."""
    words = [None if isinstance(f.number, Float) else word_range(f.number, f.missing).missing for f in forest.features]
    return np.array([word is not None for word in words]), np.array([word or 0 for word in words], dtype=np.int64)


def leaf_nodes(
    forest: Forest,
    tree: Tree,
    words: NDArray[Any],
    missing: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = None,
) -> NDArray[np.int64]:
    """The leaf (node index) each encoded row reaches. missing: `missing_words`, if it is at hand."""
    node = np.zeros(len(words), dtype=np.int64)
    takes_missing, missing_word = missing if missing is not None else missing_words(forest)
    for _ in range(tree.depth):
        walking = np.flatnonzero(tree.left[node] != LEAF)
        at = node[walking]
        feature = tree.feature[at]
        x = words[walking, feature]
        goes_left = x < tree.threshold[at]
        for chosen in range(len(tree.sets)):
            here = tree.set_index[at] == chosen
            goes_left[here] = np.isin(x[here], tree.sets[chosen])
        absent = takes_missing[feature] & (x == missing_word[feature]) if forest.quantised else np.isnan(x)
        goes_left = np.where(absent, tree.missing_left[at], goes_left)
        node[walking] = np.where(goes_left, tree.left[at], tree.right[at])
    return node


def start_scores(forest: Forest, rows: int) -> NDArray[Any]:
    """The accumulator before the first tree: (rows, outputs), in the precision that is added in."""
    dtype = np.int64 if forest.quantised else np.dtype(forest.aggregate.precision)
    total = np.zeros((rows, forest.n_outputs), dtype=dtype)
    if forest.aggregate.bias_first or forest.quantised:
        total += forest.bias.astype(dtype)
    return total


def finish_scores(forest: Forest, total: NDArray[Any]) -> NDArray[Any]:
    """Scores from the accumulator after the last tree."""
    if forest.quantised:
        return total
    if forest.aggregate.kind == "mean":
        total = total / total.dtype.type(len(forest.trees))
    if not forest.aggregate.bias_first:
        total = total + forest.bias.astype(total.dtype)
    return total


def link_values(forest: Forest, scores: NDArray[Any]) -> NDArray[Any]:
    """Scores after the link, in the precision of the scores (float64 once quantised)."""
    if forest.quantised:
        scores = scores * float(forest.scale or 1.0)
    dtype = scores.dtype
    wide: FloatArray = scores.astype(np.float64)
    with np.errstate(over="ignore"):
        match forest.link:
            case "identity":
                return scores
            case "exp":
                return np.exp(wide).astype(dtype)
            case "sigmoid":
                one = dtype.type(1)  # the steps are rounded one by one, as libraries do
                return np.asarray(one / (one + np.exp(-wide).astype(dtype)))
            case "softmax":
                # Powers rounded to the source's precision before they are divided, as libraries
                # do: two scores may differ and their rounded powers tie.
                powers = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64)).astype(dtype)
                return np.asarray(powers / powers.astype(np.float64).sum(axis=1, keepdims=True).astype(dtype))


def score_range(low: float, high: float) -> float:
    """What an error of a score is measured against: the range of scores seen, and where that is no more
    than rounding, a millionth of their size."""
    return max(high - low, 2.0**-20 * max(abs(low), abs(high))) or 1.0


def decide(forest: Forest, scores: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """Class indices (rows,); -1 for regression."""
    match forest.decision.kind:
        case "none":
            return np.full(len(scores), -1, dtype=np.int64)
        case "threshold":
            return np.asarray(scores[:, 0] >= forest.decision.threshold, dtype=np.int64)
        case "argmax":
            judged = values if forest.decision.on == "values" else scores
            return np.asarray(np.argmax(judged, axis=1), dtype=np.int64)
