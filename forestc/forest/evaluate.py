"""Evaluates a Forest, slowly and simply. This defines the Forest's meaning, to which everything else is compared.

`encode_numbers` turns raw rows into the numbers that conditions compare; `evaluate_words` evaluates these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError, opt
from forestc.forest.conditions import NO_SET, within
from forestc.forest.ir import LEAF, Decision, Forest, Link, LinkKind, Part, Tree
from forestc.forest.numbers import Category, Float, FloatArray, round_to, to_words, word_range
from forestc.forest.typed_sums import typed_scores


@dataclass(frozen=True)
class Evaluation:
    """Results of a forest on rows.

    `targets` is 1 unless the forest has several prediction targets.

    Attributes
    ----------
    leaves : int32 array of shape (rows, trees)
        The source library's numbers of the leaves that the rows reach.
    scores : array of shape (rows, outputs)
        Integers if the forest is quantized, otherwise floats in the source's precision. If the forest combines parts
        (see `Combine`), the shape is (rows, classes) or (rows, 1).
    values : float array of the shape of scores
        The scores after the link, such as probabilities.
    decision : array of shape (rows,) or (rows, targets)
        The source's own class labels. For a regression the values: (rows,), or (rows, outputs) if it has several.
    index : int64 array of shape (rows,) or (rows, targets)
        The indices of the classes in the forest's `classes`; -1 for a regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = forestc.load(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y))
    >>> forestc.evaluate(forest, X)
    <Evaluation: 150 rows, 1 trees, 3 scores>
    """

    leaves: NDArray[np.int32]
    scores: NDArray[Any]
    values: NDArray[Any]
    decision: NDArray[Any]
    index: NDArray[np.int64]

    def every(self, step: int) -> Evaluation:
        """Returns the evaluation of every `step`-th row.

        Parameters
        ----------
        step : int
            Distance of the rows. The first row stays.

        Returns
        -------
        Evaluation
            The results of these rows.
        """
        return Evaluation(
            self.leaves[::step], self.scores[::step], self.values[::step], self.decision[::step], self.index[::step]
        )

    def __repr__(self) -> str:
        rows, trees = self.leaves.shape
        return f"<Evaluation: {rows:,} rows, {trees:,} trees, {self.scores.shape[1]:,} scores>"


def encode_numbers(forest: Forest, table: NDArray[np.float64]) -> NDArray[Any]:
    """Returns raw rows as the numbers that conditions compare: (rows, features). table: all columns of the source, or
    only the columns in `Forest.carried`. Raises RowsError for another shape or an unexpected missing value."""
    if table.ndim != 2 or table.shape[1] not in (forest.width, forest.columns):
        raise RowsError(
            f"they have shape {table.shape}",
            where="rows",
            do=f"give a table, such as an array or a data frame, of {forest.own_columns} columns",
        )
    result = np.empty((len(table), len(forest.features)), dtype=np.int64 if forest.on_words else np.float64)
    positions = (
        forest.row_columns if table.shape[1] == forest.width else [feature.column for feature in forest.features]
    )
    for index, (feature, column_index) in enumerate(zip(forest.features, positions, strict=True)):
        column = round_to(table[:, column_index], feature.raw)
        if not feature.missing and (absent := np.flatnonzero(np.isnan(column))).size:
            raise RowsError(
                "a value is missing (NaN)",
                where=f"row {int(absent[0])}, feature {feature.name!r}",
                do=f"fill it in, or compile with {opt.missing:always}, if the model takes missing values"
                if forest.on_words
                else "fill it in, or use a model that takes missing values",
            )
        if isinstance(feature.number, Float):
            result[:, index] = column
        elif not forest.on_words:  # The code of a category as a float; NaN stays NaN.
            codes = to_words(column, feature.number, False)
            result[:, index] = np.where(np.isnan(column), np.nan, codes)
        else:
            result[:, index] = to_words(column, feature.number, feature.missing)
    return result


def evaluate_words(forest: Forest, words: NDArray[Any]) -> Evaluation:
    """Evaluates a forest on encoded rows (rows, features)."""
    missing = missing_words(forest)
    return evaluate_nodes(forest, [leaf_nodes(forest, tree, words, missing) for tree in forest.trees], len(words))


def evaluate_nodes(forest: Forest, nodes: Sequence[NDArray[np.int64]], rows: int) -> Evaluation:
    """Evaluates a forest on rows that reach given leaves. nodes: for each tree (rows,) leaf nodes."""
    leaves, total = np.empty((len(nodes), rows), dtype=np.int32), start_scores(forest, rows)
    for index, (tree, node) in enumerate(zip(forest.trees, nodes, strict=True)):
        leaves[index] = tree.ids[node]
        if forest.aggregate.kind != "typed":
            add_tree(forest, total, tree, node)
    if forest.aggregate.kind == "typed":
        total = typed_scores(forest, nodes, total)
    return evaluation_of(forest, leaves.T, total)


def evaluation_of(forest: Forest, leaves: NDArray[np.int32], total: NDArray[Any]) -> Evaluation:
    """Returns the Evaluation, given the results of all trees. total: (rows, outputs) combined leaf values. leaves:
    (rows, trees) leaf numbers of the source library."""
    answers = [
        _answer(forest, part, finish_scores(forest, part, total[:, part.start : part.stop])) for part in forest.parts
    ]
    if forest.combined:
        answers = [_answer(forest, forest.as_part, combined(forest, answers))]
    return _evaluation(leaves, answers)


def evaluation_of_scores(forest: Forest, scores: NDArray[Any]) -> Evaluation:
    """Returns the Evaluation, without leaves, of a quantized forest's final scores (rows, scores)."""
    answers = [_answer(forest, part, scores[:, part.start : part.stop]) for part in forest.targets]
    return _evaluation(np.empty((len(scores), 0), dtype=np.int32), answers)


def _evaluation(leaves: NDArray[np.int32], answers: Sequence[_Answer]) -> Evaluation:
    scores = np.concatenate([answer.scores for answer in answers], axis=1)
    values = np.concatenate([answer.values for answer in answers], axis=1)
    if len(answers) == 1:
        return Evaluation(leaves, scores, values, _labels(answers[0]), answers[0].index)
    decisions = [labels if labels.ndim == 2 else labels[:, np.newaxis] for labels in map(_labels, answers)]
    index = np.stack([answer.index for answer in answers], axis=1)
    return Evaluation(leaves, scores, values, np.concatenate(decisions, axis=1), index)


@dataclass(frozen=True)
class _Answer:
    """The scores and values (rows, outputs), and class indices (rows,), of one part or of the combined parts."""

    part: Part
    scores: NDArray[Any]
    values: NDArray[Any]
    index: NDArray[np.int64]


def _answer(forest: Forest, part: Part, scores: NDArray[Any]) -> _Answer:
    values = link_values(scores * part.scale if forest.quantized else scores, part.link)
    return _Answer(part, scores, values, decide(part.decision, scores, values))


def _labels(answer: _Answer) -> NDArray[Any]:
    if answer.part.decision.kind != "none":
        return np.asarray(answer.part.classes)[answer.index]
    return answer.values[:, 0] if answer.values.shape[1] == 1 else answer.values


def combined(forest: Forest, answers: Sequence[_Answer]) -> NDArray[Any]:
    """Returns the scores of a vote, average or median over the parts' results, as `Combine` defines them."""
    weights = np.array(forest.weights)
    if forest.quantized and forest.combine.kind == "average":
        values = [quantized_values(answer.part, answer.scores, forest.steps) for answer in answers]
        return np.asarray(sum(w * part_values for w, part_values in zip(forest.integer_weights, values, strict=True)))
    if forest.combine.kind == "vote":
        votes = np.zeros((len(answers[0].index), len(forest.classes)))
        for weight, answer in zip(weights, answers, strict=True):
            votes[np.arange(len(votes)), answer.index] += weight
        return votes.astype(np.int64) if forest.quantized else votes
    values = []
    for answer in answers:
        two = answer.part.decision.kind == "threshold" and answer.values.shape[1] == 1
        values.append(np.concatenate([1 - answer.values, answer.values], axis=1) if two else answer.values)
    if forest.quantized:
        values = [answer.scores for answer in answers]
    stacked = np.asarray(values)  # The stack is float32 if all parts are, as in the source library.
    if forest.combine.kind == "average":
        if not forest.combine.weights:  # np.average divides by the number of rows, which may be 0.
            return np.asarray(stacked.mean(axis=0))
        return np.asarray(np.average(stacked, axis=0, weights=weights))
    single = stacked[:, :, 0].T
    order = np.argsort(single, axis=1)
    cumulated = np.cumsum(weights[order], axis=1)
    median = np.argmax(cumulated >= 0.5 * cumulated[:, -1:], axis=1)
    rows = np.arange(len(single))
    return np.asarray(single[rows, order[rows, median]])[:, np.newaxis]


def quantized_values(part: Part, scores: NDArray[Any], steps: int) -> NDArray[Any]:
    """Returns a part's values (rows, classes) in a quantized average, by the second table of `Combine`. steps: the
    integer that stands for probability 1."""
    if not part.curves:
        return scores
    if part.link.kind == "softmax":
        scores = scores - scores.max(axis=1, keepdims=True)
    columns = enumerate(scores.T)
    levels = np.stack([np.searchsorted(np.array(part.curve_of(k)), s, side="right") for k, s in columns], axis=1)
    if part.width == 1:
        return np.concatenate([steps - levels, levels], axis=1)
    if part.link.kind not in ("softmax", "shares"):
        return levels
    total = levels.sum(axis=1, keepdims=True)
    shares = (2 * steps * levels + total) // np.maximum(2 * total, 1)
    return np.where(total > 0, shares, steps // part.width)


def missing_words(forest: Forest) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Returns two arrays (features,): True if a feature has a word for missing values, and this word (0 if none)."""
    words = [None if isinstance(f.number, Float) else word_range(f.number, f.missing).missing for f in forest.features]
    taken = np.array([word is not None for word in words], dtype=np.bool_)
    return taken, np.array([word or 0 for word in words], dtype=np.int64)


def leaf_nodes(
    forest: Forest,
    tree: Tree,
    words: NDArray[Any],
    missing: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = None,
) -> NDArray[np.int64]:
    """Returns the node index of the leaf that each encoded row reaches: (rows,). missing: the result of
    `missing_words`; computed here if None."""
    node = np.zeros(len(words), dtype=np.int64)
    missing = missing if missing is not None else missing_words(forest)
    for _ in range(tree.depth):
        walking = np.flatnonzero(tree.left[node] != LEAF)
        at = node[walking]
        left = goes_left(forest, tree, at, words[walking, tree.feature[at]], missing)
        node[walking] = np.where(left, tree.left[at], tree.right[at])
    return node


def goes_left(
    forest: Forest, tree: Tree, at: NDArray[Any], x: NDArray[Any], missing: tuple[NDArray[np.bool_], NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Returns an array (rows,): True where a row goes left. at: each row's inner node. x: each row's value that this
    node tests."""
    takes_missing, missing_word = missing
    feature = tree.feature[at]
    left = x < tree.threshold[at]
    for chosen in np.unique(tree.set_index[at]).tolist() if tree.sets else ():
        if chosen != NO_SET:
            here = tree.set_index[at] == chosen
            categorical = np.array([isinstance(forest.features[f].number, Category) for f in feature[here].tolist()])
            members = tree.sets[chosen]
            left[here] = np.where(categorical, np.isin(x[here], members), within(x[here], members))
    absent = takes_missing[feature] & (x == missing_word[feature]) if forest.on_words else np.isnan(x)
    sides: NDArray[np.bool_] = np.where(absent, tree.missing_left[at], left)
    return sides


def start_scores(forest: Forest, rows: int) -> NDArray[Any]:
    """Returns the scores (rows, outputs) before the first tree; `add_tree` changes them."""
    if forest.quantized:
        total = np.zeros((rows, forest.n_outputs), dtype=np.int64)
    else:
        precisions = {part.aggregate.precision for part in forest.parts}
        total = np.zeros((rows, forest.n_outputs), dtype=np.float32 if precisions == {"float32"} else np.float64)
    for part in forest.parts:
        here = slice(part.start, part.stop)
        if part.aggregate.kind in ("min", "max"):
            total[:, here] = _extreme(total.dtype, low=part.aggregate.kind == "max")
        elif part.aggregate.bias_first or forest.quantized:
            total[:, here] += forest.bias[here].astype(total.dtype)
    return total


def _extreme(dtype: np.dtype[Any], low: bool) -> Any:
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    return np.iinfo(dtype).min if low else np.iinfo(dtype).max


def add_tree(forest: Forest, total: NDArray[Any], tree: Tree, node: NDArray[np.int64]) -> None:
    """Adds a tree's leaf values to `total` (rows, outputs), in place; with aggregate min or max, takes the smaller or
    larger. node: the index of each row's leaf."""
    first, last = tree.outputs[0], tree.outputs[-1]
    outputs = slice(first, last + 1) if tree.outputs == (*range(first, last + 1),) else list(tree.outputs)
    values = tree.values.take(tree.leaf.take(node), axis=0)
    part = next(part for part in forest.parts if first < part.stop)
    match part.aggregate.kind:
        case "min":
            total[:, outputs] = np.minimum(total[:, outputs], values.astype(total.dtype))
        case "max":
            total[:, outputs] = np.maximum(total[:, outputs], values.astype(total.dtype))
        case "sum":
            if part.aggregate.precision == "float32" and total.dtype == np.float64:  # Parts differ in precision.
                narrow = total[:, outputs].astype(np.float32) + values.astype(np.float32)
                total[:, outputs] = narrow.astype(np.float64)
            else:
                total[:, outputs] += values.astype(total.dtype)


def finish_scores(forest: Forest, part: Part, total: NDArray[Any]) -> NDArray[Any]:
    """Returns a part's final scores. total: (rows, outputs of the part), after `add_tree` of all trees."""
    if forest.quantized:
        if part.aggregate.kind in ("min", "max"):
            total = total + forest.bias[part.start : part.stop]
        return total
    aggregate = part.aggregate
    total = total.astype(aggregate.precision)
    if aggregate.divisor != 1.0:
        total = total / total.dtype.type(aggregate.divisor)
    if not aggregate.bias_first or aggregate.kind in ("min", "max"):
        # The bias may not be a float32, so float64 adds it and rounds once.
        total = (total.astype(np.float64) + forest.bias[part.start : part.stop]).astype(total.dtype)
    return total


def link_values(scores: NDArray[Any], link: Link) -> NDArray[Any]:
    """Returns the scores after the link, in the type of the scores. `Link` has the formulas."""
    if link.kind == "shares":
        return _shares(scores, link.each)
    dtype = scores.dtype
    if link.slope != 1.0:
        scores = scores * dtype.type(link.slope)
    if link.intercept:
        scores = scores + dtype.type(link.intercept)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if link.points:
            x, y = np.array(link.points).T
            values = np.asarray(np.interp(scores, x, y), dtype=dtype)
        else:
            values = np.asarray(_linked(scores, link.kind))
    return values - dtype.type(link.shift) if link.shift else values


def _shares(scores: NDArray[Any], links: tuple[Link, ...]) -> NDArray[Any]:
    values = np.stack([link_values(scores[:, k], link) for k, link in enumerate(links)], axis=1)
    total = values.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(values, total, out=np.full_like(values, 1 / len(links)), where=total != 0))


def _linked(scores: NDArray[Any], kind: LinkKind) -> NDArray[Any]:
    dtype = scores.dtype
    wide: FloatArray = scores.astype(np.float64)
    unit = dtype.type(1)
    match kind:
        case "identity" | "order" | "interpolated" | "shares":
            return scores
        case "exp":
            return np.exp(wide).astype(dtype)
        case "exp2":
            return np.exp2(wide).astype(dtype)
        case "sigmoid":  # Each operation rounds, as in the source libraries.
            return np.asarray(unit / (unit + np.exp(-wide).astype(dtype)))
        case "logistic":
            mirrored = unit / (unit + np.exp(-np.abs(wide)).astype(dtype))
            return np.asarray(np.where(scores < 0, unit - mirrored, mirrored))
        case "tanh":
            return np.asarray(2 / (1 + np.exp(-2 * wide)) - 1).astype(dtype)
        case "softplus":
            return np.log1p(np.exp(wide)).astype(dtype)
        case "square":
            return np.asarray(scores * np.abs(scores))
        case "step":
            return (scores > 0).astype(dtype)
        case "sorted":
            return np.sort(scores, axis=1)
        case "rising":
            gaps = dtype.type(1e-6) + np.logaddexp(0.0, wide[:, 1:]).astype(dtype)
            return np.cumsum(np.concatenate([scores[:, :1], gaps], axis=1), axis=1, dtype=dtype)
        case "probit":
            return _normal_quantile(scores)
        case "isolation":
            return np.asarray(-(dtype.type(2) ** -scores))
        case "softmax" | "softmax-zero":
            # Libraries round exp(score) before they divide, so different scores may have equal probabilities.
            powers = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64)).astype(dtype)
            if kind == "softmax-zero":
                little = np.abs(scores) <= dtype.type(1e-7)
                powers = np.where(little, scores * np.exp(-scores.max(axis=1, keepdims=True)), powers)
            return np.asarray(powers / powers.astype(np.float64).sum(axis=1, keepdims=True).astype(dtype))


def _normal_quantile(p: NDArray[Any]) -> NDArray[Any]:
    """Returns ONNX's PROBIT of p, by Winitzki's approximation of the inverse error function."""
    number = p.dtype.type
    x = 2 * p - number(1)
    log = np.log((1 - x) * (1 + x))
    v = number(2 / (np.pi * 0.147)) + number(0.5) * log
    root = np.sqrt(-v + np.sqrt(v * v - number(1 / 0.147) * log))
    return np.asarray(number(1.41421356) * np.where(x < 0, -root, root))


def score_range(low: float, high: float) -> float:
    """Returns the divisor of errors of scores: `high` - `low`, but at least 2^-20 of the larger absolute bound; 1 if
    both are 0."""
    return max(high - low, 2.0**-20 * max(abs(low), abs(high))) or 1.0


def decide(decision: Decision, scores: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """Returns the class index of each row: (rows,); -1 for regression."""
    match decision.kind:
        case "none":
            return np.full(len(scores), -1, dtype=np.int64)
        case "threshold":
            return np.asarray(scores[:, -1] >= decision.threshold, dtype=np.int64)
        case "argmax":
            compared = values if decision.on == "values" else scores
            if decision.ties == "last":
                last = compared.shape[1] - 1
                return np.asarray(last - np.argmax(compared[:, ::-1], axis=1), dtype=np.int64)
            return np.asarray(np.argmax(compared, axis=1), dtype=np.int64)
