"""Checks the rules that every valid Forest meets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import HERE, ModelError
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Decision, Feature, Forest, Link, Part, Tree
from forestc.forest.numbers import (
    FLOAT32,
    MAX_EXACT_BITS,
    Category,
    Fixed,
    Float,
    FloatArray,
    check_type,
    round_to,
    word_range,
)

_Nodes: TypeAlias = NDArray[np.bool_]
_Rule: TypeAlias = tuple[_Nodes, Callable[[int], str]] | tuple[_Nodes, Callable[[int], str], str]
"""The nodes that break a rule, a function from such a node to the error, and for some rules the remedy."""

MAX_SCORE_BITS = 62  # limits bits of a score, so that int64 holds score differences
MAX_COLUMNS = 1 << 20  # limits the columns that a file of unknown origin can claim
ONE_CLASS, TWO_CLASSES = (
    "the model knows one class alone, and decides nothing",
    "train it on rows of two classes or more",
)
NEXT = "give the next float32 above it: no float32 lies between"
MEND = "correct it in the forest's text; if the model is of a library, report it"


def verify(forest: Forest) -> None:
    """Raises ModelError for the first rule that the forest breaks."""
    if not forest.trees:
        raise ModelError("the forest has no trees", where=HERE, do=MEND)
    if forest.n_outputs < 1 or forest.bias.shape != (forest.n_outputs,):
        raise ModelError(f"{forest.n_outputs} outputs but biases of shape {forest.bias.shape}", where=HERE, do=MEND)
    if not np.isfinite(forest.bias.astype(np.float64)).all():
        raise ModelError(f"a bias of {forest.bias.tolist()} is not finite", where=HERE, do=MEND)
    if forest.scale is not None and not (np.isfinite(forest.scale) and forest.scale > 0):
        raise ModelError(f"scale {forest.scale} is not a positive number", where=HERE, do=MEND)
    _verify_features(forest)
    for index, part in enumerate(forest.parts):
        _verify_part(forest, index, part)
    if not forest.single:
        _verify_combination(forest)
    columns = _Columns.of(forest)
    for index, tree in enumerate(forest.trees):
        _verify_tree(forest, index, tree, columns)
    if forest.quantized:
        _verify_reach(forest)


def _verify_features(forest: Forest) -> None:
    if not 0 <= forest.columns <= MAX_COLUMNS:
        raise ModelError(f"{forest.columns} columns", where=HERE, do=f"use at most {MAX_COLUMNS} columns")
    columns = set()
    for index, feature in enumerate(forest.features):
        check_type(feature.number)
        check_type(feature.raw)
        if isinstance(feature.number, Fixed) and not feature.number.plain:
            what = f"words of type {feature.number} do not floor and saturate"
            raise ModelError(what, where=f"feature {index}", do="leave out its modes")
        where = f"feature {index}"
        if not 0 <= feature.column < forest.columns:
            raise ModelError(f"column {feature.column} is outside the {forest.columns} columns", where=where, do=MEND)
        if feature.column in columns:
            raise ModelError(f"column {feature.column} is read twice", where=where, do=MEND)
        columns.add(feature.column)
        if len(set(feature.labels)) != len(feature.labels):
            twice = next(label for label in feature.labels if feature.labels.count(label) > 1)
            raise ModelError(f"two categories are called {twice!r}", where=f"feature {feature.name!r}", do=MEND)
        if not isinstance(feature.number, Category) and forest.on_words == isinstance(feature.number, Float):
            state = "words" if forest.on_words else "floats"
            raise ModelError(f"a forest of {state} has a feature of type {feature.number}", where=where, do=MEND)
    made = [hashed.column for hashed in forest.hashed]
    inside = all(
        (hashed.column >= forest.own_columns) == hashed.combined
        and max(member.column for member in hashed.members) < forest.own_columns
        for hashed in forest.hashed
    )
    counts = {hashed.column: Category(hashed.count) for hashed in forest.hashed}
    inside &= all(feature.number == counts.get(feature.column, feature.number) for feature in forest.features)
    if len(set(made)) < len(made) or not inside or max(made, default=0) >= max(1, forest.columns):
        raise ModelError("a hashed column stands twice, or is no column of the rows", where=HERE, do=MEND)
    held = set(forest.carried)
    if held and (not columns <= held or sorted(held) != list(forest.carried) or not held <= set(range(forest.columns))):
        raise ModelError(
            f"the {len(held)} columns that rows hold are not those that features read", where=HERE, do=MEND
        )


def _verify_reach(forest: Forest) -> None:
    """Raises ModelError if scores may need too many bits, or a minimum or maximum has no tree."""
    fed = {output for tree in forest.trees for output in tree.outputs}
    for part in forest.parts:
        if part.aggregate.kind != "sum" and (empty := set(range(part.start, part.stop)) - fed):
            raise ModelError(
                f"no tree feeds output {min(empty)}, the {part.aggregate.kind} of its trees", where=HERE, do=MEND
            )
    # Python integers are added, because int64 does not hold -(-2**63).
    reach = sum(max(-int(t.values.min(initial=0)), int(t.values.max(initial=0))) for t in forest.trees)
    if reach + max(-int(forest.bias.min()), int(forest.bias.max())) >= 1 << MAX_SCORE_BITS:
        raise ModelError(f"scores need more than {MAX_SCORE_BITS} bits", where=HERE, do="use fewer leaf bits")


def _verify_part(forest: Forest, index: int, part: Part) -> None:
    where = "" if forest.single else f"part {index}"
    before = forest.parts[index - 1].stop if index else 0
    if part.start != before or part.width < 1 or part.stop > forest.n_outputs:
        raise ModelError(f"outputs {part.start} to {part.stop} do not follow output {before}", where=where, do=MEND)
    _verify_decision(part.decision, len(part.classes), part.width, where)
    _verify_link(part.link, part.width, where)
    _verify_curves(forest, part, where)
    _verify_typed(forest, part, where)
    numbers = (part.aggregate.divisor, part.scale)
    if not all(map(math.isfinite, numbers)) or part.aggregate.divisor == 0 or part.scale <= 0:
        raise ModelError("a link, divisor or scale is not a finite number", where=where, do=MEND)


def _verify_typed(forest: Forest, part: Part, where: str) -> None:
    aggregate, score = part.aggregate, part.aggregate.score
    if (aggregate.kind == "typed") != isinstance(score, Fixed):
        raise ModelError("a typed sum has a fixed-point type, and no other aggregate has one", where=where, do=MEND)
    if score is None and aggregate.norm == 1:
        return
    if score is None or not 0 < aggregate.norm == round_to(np.array([aggregate.norm]), score)[0]:
        raise ModelError("a norm is of a typed sum, and a number of its type above 0", where=where, do=MEND)
    check_type(score)
    if aggregate.norm != 1 and score.bits > MAX_EXACT_BITS // 2:  # a float64 holds the product
        do = f"use at most {MAX_EXACT_BITS // 2}"
        raise ModelError(f"products in {score} have too many bits", where=where, do=do)
    if score.bits > MAX_EXACT_BITS - 1:
        raise ModelError(f"sums in {score} have too many bits", where=where, do=f"use at most {MAX_EXACT_BITS - 1}")
    if aggregate.divisor != 1 or not aggregate.bias_first or not forest.single:
        what = "a typed sum is of a single part, without divisor, and starts with its bias"
        raise ModelError(what, where=where, do=MEND)
    if forest.quantized and part.scale != math.ldexp(1.0, -score.fraction):
        raise ModelError(f"the scale of a sum in {score} is not 2^-{score.fraction}", where=where, do=MEND)
    low, high = replace(score, fraction=0).ends if forest.quantized else score.ends
    for values in (forest.bias, *(tree.values for tree in forest.trees)):
        steps = values.astype(np.float64) if forest.quantized else np.ldexp(values, score.fraction)
        if ((values < low) | (values > high)).any() or (steps != np.floor(steps)).any():
            raise ModelError(f"a leaf or bias is no number of the type {score}", where=where, do=MEND)


def _verify_combination(forest: Forest) -> None:
    if forest.parts[-1].stop != forest.n_outputs:
        raise ModelError(f"the parts end at output {forest.parts[-1].stop} of {forest.n_outputs}", where=HERE, do=MEND)
    kind, weights, classes = forest.combine.kind, forest.combine.weights, len(forest.classes)
    if len(weights) not in (0, len(forest.parts)) or not all(math.isfinite(w) and w >= 0 for w in weights):
        raise ModelError(
            f"{len(weights)} weights for {len(forest.parts)} parts",
            where=HERE,
            do="give each part a finite weight that is not negative",
        )
    if weights and not 0 < sum(weights) < math.inf:
        raise ModelError("the parts' weights add up to 0", where=HERE, do="give one of them a weight above 0")
    for index, part in enumerate(forest.parts):
        width = 2 if part.decision.kind == "threshold" else part.width
        fine = {
            "each": not classes,
            "vote": len(part.classes) == classes,
            "average": width == max(1, classes) and all(len(curve) == forest.steps for curve in part.curves),
            "median": width == 1 and part.decision.kind == "none",
        }[kind]
        if not fine:
            raise ModelError(f"can't be combined by {kind} over {classes} classes", where=f"part {index}", do=MEND)
    if forest.combined:
        _verify_decision(forest.decision, classes, forest.n_scores, "")
        _verify_link(forest.link, forest.n_scores, "")
    if forest.quantized and kind == "average" and not (forest.steps and forest.decides):
        raise ModelError("a quantized average without curves or classes", where=HERE, do=MEND)


def _verify_link(link: Link, outputs: int, where: str) -> None:
    if not all(map(math.isfinite, (link.slope, link.shift, link.intercept))):
        raise ModelError("a link, divisor or scale is not a finite number", where=where, do=MEND)
    points = link.points
    if (link.kind == "interpolated") != bool(points):
        raise ModelError(f"a link {link.kind} of {len(points)} points", where=where, do=MEND)
    numbers = [number for point in points for number in point]
    ascending = all(a[0] < b[0] for a, b in pairwise(points))
    if not all(math.isfinite(number) for number in numbers) or not ascending:
        raise ModelError("the points of a link do not ascend, or are not finite", where=where, do=MEND)
    if len(link.each) != (outputs if link.kind == "shares" else 0):
        raise ModelError(f"a link {link.kind} of {outputs} outputs has links of {len(link.each)}", where=where, do=MEND)
    for output, output_link in enumerate(link.each):
        if output_link.kind in ("shares", "softmax", "softmax-zero", "sorted", "rising"):
            raise ModelError(
                f"a link {output_link.kind} is not of a single output", where=where or f"output {output}", do=MEND
            )
        _verify_link(output_link, 1, where)


def _verify_curves(forest: Forest, part: Part, where: str) -> None:
    """Raises ModelError if a part's curves are invalid or lacking. Only parts of a quantized average have curves."""
    averaged = forest.quantized and forest.combine.kind == "average"
    ascend = all(list(curve) == sorted(curve) for curve in part.curves)
    # A part of several scores, with the identity as link, needs no curve.
    needed = averaged and (part.width == 1 or part.link != Link())
    if (needed and not part.curves) or not all(part.curves) or not ascend or (part.curves and not averaged):
        what = "is missing, or does not ascend" if averaged else "is outside a quantized average"
        raise ModelError(f"a part's curve {what}", where=where, do=MEND)
    if not part.curves:
        return
    if len(part.curves) not in (1, part.width) or (part.link.kind == "softmax" and len(part.curves) > 1):
        raise ModelError(
            f"{len(part.curves)} curves of {part.width} scores after a {part.link.kind}", where=where, do=MEND
        )
    if part.link.kind == "softmax" and part.curves[0][-1] > 0:
        raise ModelError("a softmax's curve has cuts above 0, its largest argument", where=where, do=MEND)
    if part.width == 1 and part.decision.kind != "threshold":
        raise ModelError("a part with a curve of one score has more than two classes", where=where, do=MEND)


def _verify_decision(decision: Decision, classes: int, outputs: int, where: str) -> None:
    match decision.kind:
        case "none":
            fine, required = classes == 0, "no classes"
        case "threshold":
            fine, required = classes == 2 and outputs in (1, 2), "2 classes and 1 output"
            if not np.isfinite(float(decision.threshold)):
                raise ModelError("the decision's threshold is not finite", where=where, do=MEND)
        case "argmax":
            fine, required = classes == outputs >= 1, "as many classes as outputs"
    if classes == 1 and not fine:
        raise ModelError(ONE_CLASS, where=where, do=TWO_CLASSES)
    if not fine:
        raise ModelError(
            f"decision {decision.kind} needs {required}, not {classes} classes and {outputs} outputs",
            where=where,
            do=MEND,
        )


class _Columns(NamedTuple):
    """Properties of the features, as arrays (features + 1,); the last entry is for leaves."""

    single: NDArray[np.bool_]  # True if the feature's values are float32
    categorical: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    low: NDArray[np.int64]  # lowest word of a value; (1,) if thresholds are floats
    high: NDArray[np.int64]  # highest word of a value; (1,) if thresholds are floats

    @staticmethod
    def of(forest: Forest) -> _Columns:
        features = forest.features
        spans = [word_range(f.number, f.missing) for f in features] if forest.on_words else []
        return _Columns(
            np.array([FLOAT32 in (f.number, f.raw) for f in features] + [False]),
            np.array([isinstance(f.number, Category) for f in features] + [False]),
            np.array([f.missing for f in features] + [False]),
            np.array([s.low for s in spans] + [0], dtype=np.int64),
            np.array([s.high for s in spans] + [0], dtype=np.int64),
        )


def _verify_tree(forest: Forest, index: int, tree: Tree, columns: _Columns) -> None:
    values = tree.values
    word, leaf = (np.dtype(np.int64 if integer else np.float64) for integer in (forest.on_words, forest.quantized))
    where = f"tree {index}"
    if values.ndim != 2 or values.shape[1] != len(tree.outputs):
        raise ModelError(
            f"leaf values have shape {values.shape}; {len(tree.outputs)} outputs a leaf", where=where, do=MEND
        )
    if values.dtype != leaf or tree.threshold.dtype != word:
        raise ModelError(f"thresholds are not {word}, or leaf values not {leaf}", where=where, do=MEND)
    if not tree.outputs or len(set(tree.outputs)) != len(tree.outputs):
        raise ModelError(f"outputs {tree.outputs} are empty or repeated", where=where, do=MEND)
    if min(tree.outputs) < 0 or max(tree.outputs) >= forest.n_outputs:
        raise ModelError(f"outputs {tree.outputs} of {forest.n_outputs}", where=where, do=MEND)
    for bad, text, *do in chain(_node_rules(forest, tree, columns), _set_rules(forest, tree, columns)):
        if bad.any():
            node = int(np.flatnonzero(bad)[0])
            number = int(tree.feature[node])
            name = f", feature {forest.features[number].name!r}" if 0 <= number < len(forest.features) else ""
            raise ModelError(text(node), where=f"{where}, node {int(tree.ids[node])}{name}", do="".join(do) or MEND)


def _node_rules(forest: Forest, tree: Tree, columns: _Columns) -> Iterator[_Rule]:
    """Yields rules for a tree's nodes. Each rule assumes that the earlier ones hold."""
    inner, feature, values = tree.left != LEAF, tree.feature, tree.values
    bounded = inner & (tree.set_index == NO_SET)  # True at nodes with a threshold.
    yield (
        ~inner & ((tree.leaf < 0) | (tree.leaf >= len(values))),
        lambda n: f"leaf row {int(tree.leaf[n])} of {len(values)}",
    )
    if not forest.quantized and not (finite := np.isfinite(values)).all():
        yield ~inner & ~finite[tree.leaf].all(axis=1), lambda _: "a leaf value is not finite"
    count = len(forest.features)
    yield (
        inner & ((feature < 0) | (feature >= count)),
        lambda n: f"feature {int(feature[n])} is outside the {count} features",
    )
    if not forest.on_words:
        yield inner & np.isnan(tree.threshold), lambda _: "the threshold is not a number (NaN)"
        if columns.single.any():
            off = bounded & columns.single[feature] & ~_are_float32(tree.threshold)
            yield off, lambda n: f"threshold {float(tree.threshold[n])!r} is not a float32, as its feature is", NEXT
    yield (
        (tree.set_index < NO_SET) | (tree.set_index >= len(tree.sets)),
        lambda n: f"set {int(tree.set_index[n])} of {len(tree.sets)}",
    )
    yield bounded & columns.categorical[feature], lambda _: "a category has a threshold instead of a set"


def _set_rules(forest: Forest, tree: Tree, columns: _Columns) -> Iterator[_Rule]:
    inner = tree.left != LEAF
    for node in np.flatnonzero(inner & (tree.set_index != NO_SET)).tolist():
        if broken := _broken_set(forest, forest.features[tree.feature[node]], tree.sets[tree.set_index[node]]):
            yield np.arange(tree.size) == node, lambda _, what=broken[0]: what, *broken[1:]
    yield (
        inner & tree.missing_left & ~columns.missing[tree.feature],
        lambda _: "sends missing values left, but the feature is never missing",
    )
    if forest.on_words:
        # A threshold may be one above the highest word; every value is below it.
        low, high = columns.low[tree.feature], columns.high[tree.feature]
        outside = (tree.threshold < low) | ((tree.threshold > high) & (tree.threshold - 1 > high))
        yield (
            inner & (tree.set_index == NO_SET) & outside,
            lambda n: f"threshold {int(tree.threshold[n])} is outside its feature's words",
        )


def _broken_set(forest: Forest, feature: Feature, members: tuple[Member, ...]) -> tuple[str, ...]:
    """Returns a tuple with a set's fault and perhaps a remedy; the tuple is empty for a valid set."""
    number = feature.number
    if not isinstance(number, Category) and not forest.on_words:
        single = FLOAT32 in (number, feature.raw) and not _are_float32(np.array(members, dtype=np.float64)).all()
        return ("the set holds a number that is not a float32, as its feature is", NEXT) if single else ()
    if not all(issubclass(kind, int) for kind in set(map(type, members))):
        return ("the set holds a number that is not whole",)
    lowest, highest = 0, 0
    if isinstance(number, Category):
        highest = number.count
    else:
        span = word_range(number, feature.missing)
        lowest, highest = span.low, span.high + 1
    if members and not lowest <= members[0] <= members[-1] <= highest:
        return (f"the set holds a code outside {lowest} to {highest}",)
    return ()


def _are_float32(values: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Returns an array: True where a float32 holds the value exactly."""
    return np.asarray(round_to(values, FLOAT32) == values)
