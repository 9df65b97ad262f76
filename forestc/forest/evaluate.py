"""The meaning of a Forest: a slow, simple evaluator, the reference for everything else.

`encode_numbers` turns raw rows into the numbers that conditions compare; `evaluate_words` evaluates these, level by
level in plain NumPy. After quantization both are integer arithmetic, and every backend equals `evaluate_words` on every
input, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.conditions import NO_SET, within
from forestc.forest.ir import LEAF, Decision, Forest, Link, LinkKind, Part, Tree
from forestc.forest.numbers import Category, Float, FloatArray, round_to, to_words, word_range


@dataclass(frozen=True)
class Evaluation:
    """A forest's results on rows. `targets` is 1 unless the forest has several prediction targets.

    leaves: (rows, trees) int32, the source library's numbers of the leaves reached.
    scores: (rows, outputs): integers once quantized, else in the source's precision. With parts: as in
    `Combine`, (rows, classes) or (rows, 1).
    values: the shape of scores, float64 (or the source's precision): scores after the link.
    decision: (rows,) the source's own class labels, or for regression the value; (rows, targets) for several
    targets, (rows, outputs) for a regression of several outputs.
    index: (rows,) or (rows, targets) int64, the class's index in `classes`; -1 for regression.
    """

    leaves: NDArray[np.int32]
    scores: NDArray[Any]
    values: NDArray[Any]
    decision: NDArray[Any]
    index: NDArray[np.int64]

    def every(self, step: int) -> Evaluation:
        """The evaluation of every `step`-th row, from the first on."""
        return Evaluation(
            self.leaves[::step], self.scores[::step], self.values[::step], self.decision[::step], self.index[::step]
        )

    def __repr__(self) -> str:
        rows, trees = self.leaves.shape
        return f"<Evaluation: {rows:,} rows, {trees:,} trees, {self.scores.shape[1]:,} scores>"


def encode_numbers(forest: Forest, table: NDArray[np.float64]) -> NDArray[Any]:
    """Raw rows (rows, columns), whole or as forestc holds them, as what conditions compare: (rows, features).

    float64 (NaN is missing) for a float forest, int64 words for a quantized one. Raises RowsError for
    a wrong width, and for NaN where the feature takes none.
    """
    if table.ndim != 2 or table.shape[1] not in (forest.width, forest.columns):
        raise RowsError(f"the rows have shape {table.shape}", do=f"the model takes rows of {forest.columns} columns")
    result = np.empty((len(table), len(forest.features)), dtype=np.int64 if forest.on_words else np.float64)
    places = forest.places if table.shape[1] == forest.width else [feature.column for feature in forest.features]
    for index, (feature, place) in enumerate(zip(forest.features, places, strict=True)):
        column = round_to(table[:, place], feature.raw)
        if not feature.missing and (absent := np.flatnonzero(np.isnan(column))).size:
            raise RowsError(
                "a value is missing (NaN)",
                where=f"row {int(absent[0])}, feature {feature.name!r}",
                do="fill it in, or compile with --missing always, if the model takes missing values"
                if forest.on_words
                else "fill it in, or use a model that takes missing values",
            )
        if isinstance(feature.number, Float):
            result[:, index] = column
        elif not forest.on_words:  # a category among floats: its code, and NaN stays NaN
            codes = to_words(column, feature.number, False)
            result[:, index] = np.where(np.isnan(column), np.nan, codes)
        else:
            result[:, index] = to_words(column, feature.number, feature.missing)
    return result


def evaluate_words(forest: Forest, words: NDArray[Any]) -> Evaluation:
    """Evaluates a forest on encoded rows (rows, features)."""
    leaves = np.empty((len(words), len(forest.trees)), dtype=np.int32)
    total = start_scores(forest, len(words))
    missing = missing_words(forest)
    for index, tree in enumerate(forest.trees):
        node = leaf_nodes(forest, tree, words, missing)
        leaves[:, index] = tree.ids[node]
        add_tree(forest, total, tree, node)
    return judged(forest, leaves, total)


def judged(forest: Forest, leaves: NDArray[np.int32], total: NDArray[Any]) -> Evaluation:
    """From the accumulator after the last tree to scores, values and decisions."""
    answers = [
        _answer(forest, part, finish_scores(forest, part, total[:, part.start : part.stop])) for part in forest.parts
    ]
    if forest.combined:
        answers = [_answer(forest, forest.whole, combined(forest, answers))]
    scores = np.concatenate([answer.scores for answer in answers], axis=1)
    values = np.concatenate([answer.values for answer in answers], axis=1)
    if len(answers) == 1:
        return Evaluation(leaves, scores, values, _labels(answers[0]), answers[0].index)
    decisions = [labels if labels.ndim == 2 else labels[:, np.newaxis] for labels in map(_labels, answers)]
    index = np.stack([answer.index for answer in answers], axis=1)
    return Evaluation(leaves, scores, values, np.concatenate(decisions, axis=1), index)


@dataclass(frozen=True)
class _Answer:
    """One part's scores and values (rows, outputs) and class index (rows,)."""

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
    """The scores of a vote, average or median over the parts (see `Combine`)."""
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
    stacked = np.asarray(values)  # float32 if all members are, as in the library
    if forest.combine.kind == "average":
        if not forest.combine.weights:  # np.average divides by the number of rows, which may be 0
            return np.asarray(stacked.mean(axis=0))
        return np.asarray(np.average(stacked, axis=0, weights=weights))
    single = stacked[:, :, 0].T
    order = np.argsort(single, axis=1)
    cumulated = np.cumsum(weights[order], axis=1)
    median = np.argmax(cumulated >= 0.5 * cumulated[:, -1:], axis=1)
    rows = np.arange(len(single))
    return np.asarray(single[rows, order[rows, median]])[:, np.newaxis]


def quantized_values(part: Part, scores: NDArray[Any], steps: int) -> NDArray[Any]:
    """The values (rows, classes) of a part of a quantized average, from its scores (rows, outputs): see `Combine`."""
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
    """For each feature, whether it has a word for "missing", and that word. A float forest has NaN instead."""
    words = [None if isinstance(f.number, Float) else word_range(f.number, f.missing).missing for f in forest.features]
    taken = np.array([word is not None for word in words], dtype=np.bool_)
    return taken, np.array([word or 0 for word in words], dtype=np.int64)


def leaf_nodes(
    forest: Forest,
    tree: Tree,
    words: NDArray[Any],
    missing: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = None,
) -> NDArray[np.int64]:
    """The leaf (node index) each encoded row reaches. missing: `missing_words(forest)`, if already computed."""
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
    """Whether rows go left, each at its own inner node. x: the word that the node reads. missing: `missing_words`."""
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
    """The accumulator before the first tree: (rows, outputs), in the precision of the additions."""
    if forest.quantized:
        total = np.zeros((rows, forest.n_outputs), dtype=np.int64)
    else:
        precisions = {part.aggregate.precision for part in forest.parts}
        total = np.zeros((rows, forest.n_outputs), dtype=np.float32 if precisions == {"float32"} else np.float64)
    for part in forest.parts:
        here = slice(part.start, part.stop)
        if part.aggregate.kind != "sum":
            total[:, here] = _extreme(total.dtype, low=part.aggregate.kind == "max")
        elif part.aggregate.bias_first or forest.quantized:
            total[:, here] += forest.bias[here].astype(total.dtype)
    return total


def _extreme(dtype: np.dtype[Any], low: bool) -> Any:
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    return np.iinfo(dtype).min if low else np.iinfo(dtype).max


def add_tree(forest: Forest, total: NDArray[Any], tree: Tree, node: NDArray[np.int64]) -> None:
    """Adds the leaves `node` (rows,) of a tree to the accumulator (rows, outputs), in place."""
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
            if part.aggregate.precision == "float32" and total.dtype == np.float64:  # parts of both precisions
                narrow = total[:, outputs].astype(np.float32) + values.astype(np.float32)
                total[:, outputs] = narrow.astype(np.float64)
            else:
                total[:, outputs] += values.astype(total.dtype)


def finish_scores(forest: Forest, part: Part, total: NDArray[Any]) -> NDArray[Any]:
    """A part's scores from its slice of the accumulator after the last tree."""
    if forest.quantized:
        if part.aggregate.kind != "sum":
            total = total + forest.bias[part.start : part.stop]
        return total
    aggregate = part.aggregate
    total = total.astype(aggregate.precision)
    if aggregate.divisor != 1.0:
        total = total / total.dtype.type(aggregate.divisor)
    if not aggregate.bias_first or aggregate.kind != "sum":
        # rounds once, as adding in this precision does if it holds the bias exactly
        total = (total.astype(np.float64) + forest.bias[part.start : part.stop]).astype(total.dtype)
    return total


def link_values(scores: NDArray[Any], link: Link) -> NDArray[Any]:
    """Scores after the link, in the precision of the scores (see `Link` for the formulas)."""
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
        case "sigmoid":  # each operation rounds, as in libraries
            return np.asarray(unit / (unit + np.exp(-wide).astype(dtype)))
        case "logistic":
            mirrored = unit / (unit + np.exp(-np.abs(wide)).astype(dtype))
            return np.asarray(np.where(scores < 0, unit - mirrored, mirrored))
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
            # Powers are rounded to the source's precision before the division, as in libraries: different scores
            # may have equal rounded powers.
            powers = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64)).astype(dtype)
            if kind == "softmax-zero":
                little = np.abs(scores) <= dtype.type(1e-7)
                powers = np.where(little, scores * np.exp(-scores.max(axis=1, keepdims=True)), powers)
            return np.asarray(powers / powers.astype(np.float64).sum(axis=1, keepdims=True).astype(dtype))


def _normal_quantile(p: NDArray[Any]) -> NDArray[Any]:
    """sqrt(2) times Winitzki's approximation of the inverse error function at 2p - 1, in p's own precision, step by
    step: PROBIT in ONNX. It differs from the true quantile by up to 0.006, and is NaN outside 0..1."""
    number = p.dtype.type
    x = 2 * p - number(1)
    log = np.log((1 - x) * (1 + x))
    v = number(2 / (np.pi * 0.147)) + number(0.5) * log
    root = np.sqrt(-v + np.sqrt(v * v - number(1 / 0.147) * log))
    return np.asarray(number(1.41421356) * np.where(x < 0, -root, root))


def score_range(low: float, high: float) -> float:
    """The range by which errors of scores are divided: that of the scores seen, but at least a millionth of their
    size, as smaller ranges are rounding."""
    return max(high - low, 2.0**-20 * max(abs(low), abs(high))) or 1.0


def decide(decision: Decision, scores: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """Class indices (rows,); -1 for regression."""
    match decision.kind:
        case "none":
            return np.full(len(scores), -1, dtype=np.int64)
        case "threshold":
            return np.asarray(scores[:, -1] >= decision.threshold, dtype=np.int64)
        case "argmax":
            row_errors = values if decision.on == "values" else scores
            if decision.ties == "last":
                last = row_errors.shape[1] - 1
                return np.asarray(last - np.argmax(row_errors[:, ::-1], axis=1), dtype=np.int64)
            return np.asarray(np.argmax(row_errors, axis=1), dtype=np.int64)
