"""LightGBM: text models of versions 2 to 4 and JSON dumps without the library, live Boosters and estimators.

What the library does, and this keeps: a row's values of at most 1e-35 (as float32 has it) are 0 before anything
else; thresholds are float64 and compared with `<=`; NaN goes the split's own way, is 0, or is missing together with
0, as the split says; a category is the value without its fraction, and goes left if it is in the split's set. Scores
are summed in float64 tree by tree from 0 up; a random forest divides them by its iterations at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.builder import make_forest, make_tree, read_features
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Aggregate, Decision, Feature, Forest, Label, Link, LinkKind, Provenance, Tree
from forestc.forest.numbers import FLOAT64, MAX_CATEGORIES, Category
from forestc.frontends.lightgbm.dump import parse_dump
from forestc.frontends.lightgbm.text import (
    CATEGORICAL,
    DEFAULT_LEFT,
    MISSING_NAN,
    MISSING_ZERO,
    SavedModel,
    parse_text,
)
from forestc.frontends.shared.document import Document
from forestc.frontends.shared.exact import least_float, next_above

# Objective -> link from score to prediction. `xent...` are the names LightGBM 2.0 wrote; the last four say that the
# objective was the user's own.
LINKS: dict[str, LinkKind] = {
    "regression": "identity",
    "regression_l1": "identity",
    "huber": "identity",
    "fair": "identity",
    "quantile": "identity",
    "mape": "identity",
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "binary": "sigmoid",
    "multiclass": "softmax",
    "multiclassova": "sigmoid",
    "cross_entropy": "sigmoid",
    "xentropy": "sigmoid",
    "cross_entropy_lambda": "softplus",
    "xentlambda": "softplus",
    "lambdarank": "identity",
    "rank_xendcg": "identity",
    "none": "identity",
    "null": "identity",
    "custom": "identity",
    "na": "identity",
}
MULTI = ("multiclass", "multiclassova")
SIGMOID = ("binary", "multiclassova")  # what has that parameter
OWN = ("none", "null", "custom", "na")
SQUARES = ("regression", "regression_l1", "fair", "quantile", "mape")  # what `sqrt` after the name does not leave alone

ESTIMATORS = ("LGBMModel", "LGBMClassifier", "LGBMRegressor", "LGBMRanker")

# Every value from `ZERO` up to and without `PAST_ZERO` is 0 to the library.
ZERO = -float(np.float32(1e-35))
PAST_ZERO = float(np.nextafter(-ZERO, np.inf))


def read_text(data: bytes, where: str) -> Forest:
    """A Forest from the bytes of a text model. Raises ModelError."""
    return _forest(parse_text(data, where), where)


def read_dump(document: Any, where: str) -> Forest:
    """A Forest from what `Booster.dump_model` gives, parsed. Raises ModelError."""
    return _forest(parse_dump(Document(document, "", where)), where)


def read_live(model: Any) -> Forest:
    """A Forest from a Booster or a scikit-learn-style estimator, with the trees up to its best iteration if it
    knows one, as it predicts. Raises ModelError."""
    name = type(model).__name__
    where = f"LightGBM {name}"
    if name == "Booster":
        return _booster(model, where)
    if name not in ESTIMATORS:
        raise ModelError(f"{name} is not read", where=where, do=f"known: Booster, {', '.join(ESTIMATORS)}")
    if not model.__sklearn_is_fitted__():
        raise ModelError("the estimator is not fitted", where=where, do="call fit first")
    if model.get_params().get("pred_early_stop") not in (None, False, 0, "false"):
        raise ModelError("the estimator leaves trees out when it is sure", where=where, do="set pred_early_stop=False")
    forest = _booster(model.booster_, where)
    if name != "LGBMClassifier" or callable(model.objective_):
        return replace(forest, decision=Decision("none"), classes=())
    return _classifier(forest, np.asarray(model.classes_).tolist(), where)


def _booster(booster: Any, where: str) -> Forest:
    saved = parse_text(booster.model_to_string().encode(), where)
    # One still in training knows all digits of this parameter, of which the text form keeps six.
    sigmoid = booster.params.get("sigmoid") if hasattr(booster, "train_set") else None
    return _forest(saved, where, sigmoid)


def _classifier(forest: Forest, labels: Sequence[Label], where: str) -> Forest:
    """The forest with an estimator's labels and its decision: the largest probability, of equals the first."""
    if not all(isinstance(label, str | int | float | bool) for label in labels):
        raise ModelError(f"class labels of type {type(labels[0]).__name__}", where=where, do="use text or numbers")
    if len(labels) != max(2, forest.n_outputs):
        raise ModelError(f"{len(labels)} classes and {forest.n_outputs} outputs", where=where, do="train it again")
    if forest.n_outputs > 1:
        return replace(forest, decision=Decision("argmax", on="values"), classes=tuple(labels))
    if forest.link.kind != "sigmoid":
        raise ModelError("a classifier with a regression objective", where=where, do="use objective='binary'")
    return replace(forest, decision=_sigmoid_decision(forest.link.slope), classes=tuple(labels))


def _sigmoid_decision(slope: float) -> Decision:
    """Class 1 where the float64 sigmoid exceeds 0.5."""

    def class_1(score: float) -> bool:
        try:
            return 1 / (1 + math.exp(-(score * slope))) > 0.5
        except OverflowError:
            return False

    return Decision("threshold", least_float(class_1, 64))


def _forest(saved: SavedModel, where: str, sigmoid: float | None = None) -> Forest:
    """sigmoid: that parameter where it is known better than `saved` says it."""
    name, _, rest = saved.objective.strip().partition(" ")
    if name and name not in LINKS:
        raise ModelError(f"objective {name[:60]!r} is not known", where=where, do="known: " + ", ".join(LINKS))
    link = _link(name or "none", rest.split(), where)
    if sigmoid is not None and name in SIGMOID:
        link = replace(link, slope=float(sigmoid))
    fine = saved.outputs == 1 or name in (*MULTI, *OWN, "")
    if saved.classes != saved.outputs or not fine:
        raise ModelError(
            f"objective {name or 'none'} with num_class={saved.classes}, num_tree_per_iteration={saved.outputs}",
            where=where,
        )
    iterations, over = divmod(len(saved.leaves), saved.outputs)
    if over:
        raise ModelError(f"has {len(saved.leaves)} trees, {saved.outputs} an iteration", where=where)
    if saved.average and saved.version in ("", "v2") and link.kind != "identity":
        raise ModelError(
            f"a random forest of version 2 with objective {name}",
            where=where,
            do="LightGBM before 2.2 and since read it differently: train it again with a newer one",
        )
    decision = Decision("none")
    if name in MULTI:
        decision = Decision("argmax", on="values")
    elif name == "binary":
        decision = _sigmoid_decision(link.slope)
    features, made = _trees(saved, where)
    return make_forest(
        where=where,
        name="forest",
        features=features,
        columns=len(saved.names),
        trees=made,
        n_outputs=saved.outputs,
        bias=np.zeros(saved.outputs),
        aggregate=Aggregate("sum", "float64", divisor=float(iterations) if saved.average else 1.0),
        link=link,
        decision=decision,
        classes=tuple(range({"none": 0, "threshold": 2, "argmax": saved.outputs}[decision.kind])),
        provenance=Provenance("lightgbm", saved.version),
    )


def _link(name: str, options: Sequence[str], where: str) -> Link:
    """The link of an objective as a file says it: the name, then words and `key:value`."""
    slope = 1.0
    for option in options:
        key, _, value = option.partition(":")
        if key == "sigmoid":
            slope = _number(value, where)
        elif not value and key != "sqrt":
            raise ModelError(f"objective {name} with {option[:40]!r}, which is not known", where=where)
    if not 0 < slope < math.inf:
        raise ModelError(f"the sigmoid's parameter is {slope}", where=where, do="it is a positive number")
    if "sqrt" in options and name in SQUARES:
        return Link("square")
    return Link(LINKS[name], slope if name in SIGMOID else 1.0)


def _number(text: str, where: str) -> float:
    """A parameter as the library reads it: digits, fraction and exponent each by itself, rounded in between."""
    match = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}))?(?:e([+-]\d{1,2}))?", text)
    if not match:
        raise ModelError(f"the sigmoid's parameter is no number: {text[:40]!r}", where=where)
    whole, fraction, power = match.groups()
    value = float(whole) + (float(fraction) / 10.0 ** len(fraction) if fraction else 0.0)
    scale = 10.0 ** abs(int(power or 0))
    return value / scale if power and power[0] == "-" else value * scale


def _trees(saved: SavedModel, where: str) -> tuple[list[Feature], list[Tree]]:
    decision, feature = saved.decision, saved.feature
    if (bad := np.flatnonzero((decision < 0) | (decision >= 16) | (decision & 12 == 12))).size:
        raise ModelError(f"decision_type {int(decision[bad[0]])} is not known", where=_place(saved, int(bad[0]), where))
    if (bad := np.flatnonzero(np.isnan(saved.threshold))).size:
        raise ModelError("a threshold is NaN", where=_place(saved, int(bad[0]), where))
    categorical = decision & CATEGORICAL != 0
    codes = _codes(saved, categorical, where)
    highest: dict[int, int] = {}  # a category's largest code, by column
    for split, members in codes.items():
        column = int(feature[split])
        highest[column] = max(highest.get(column, 0), int(members[-1]) if len(members) else 0)
    for column in np.unique(feature[~categorical]).tolist():  # read as a number as well
        highest.pop(column, None)
    as_category = {column for column, code in highest.items() if code < MAX_CATEGORIES}
    strict, missing_left, around_zero = _numeric(saved.threshold, decision)
    # Training data that holds infinity makes thresholds of it: all but missing values go left.
    endless = saved.threshold == np.inf
    # A set of cuts says what goes right, so left and right change places; no missing category goes left.
    by_cuts = (around_zero | endless) & ~categorical
    missing_left = (missing_left ^ by_cuts) & ~categorical
    left, right = np.where(by_cuts, [saved.right, saved.left], [saved.left, saved.right])
    found, first, leaf = [], 0, 0
    for k, leaves in enumerate(saved.leaves.tolist()):
        splits = leaves - 1
        here, ends, padding = slice(first, first + splits), slice(leaf, leaf + leaves), np.zeros(leaves, np.int64)
        sets: dict[tuple[Member, ...], int] = {}
        set_index = np.full(splits + leaves, NO_SET)
        for split in (np.flatnonzero(categorical[here] | by_cuts[here]) + first).tolist():
            if categorical[split]:
                chosen = _members(codes[split], int(feature[split]) in as_category)
            else:
                cuts = [ZERO, PAST_ZERO] * bool(around_zero[split]) + [float(strict[split])] * (not endless[split])
                chosen = tuple(sorted(cuts))
            set_index[split - first] = sets.setdefault(chosen, len(sets))
        found.append(
            make_tree(
                where=f"{where}, tree {k}",
                feature=np.concatenate([feature[here], padding]),
                threshold=np.concatenate([strict[here], padding]),
                left=np.concatenate([_children(left[here]), padding + LEAF]),
                right=np.concatenate([_children(right[here]), padding + LEAF]),
                values=saved.values[ends].reshape(-1, 1),
                outputs=[k % saved.outputs],
                missing_left=np.concatenate([missing_left[here], padding != 0]),
                set_index=set_index,
                sets=tuple(sets),
                cover=None if saved.counts is None else np.concatenate([saved.counts[0][here], saved.counts[1][ends]]),
                ids=np.concatenate([np.arange(splits), np.arange(leaves)]),
            )
        )
        first, leaf = first + splits, leaf + leaves
    labels = _labels(saved, where)
    named = any(name != f"Column_{column}" for column, name in enumerate(saved.names))  # else LightGBM made them up

    def make(column: int) -> Feature:
        if column not in as_category:
            return Feature(saved.names[column], FLOAT64, column, True, FLOAT64, named=named)
        names = labels.get(column, ())
        number = Category(max(highest[column] + 1, len(names)), "trunc")
        return Feature(saved.names[column], number, column, True, FLOAT64, names, named)

    return read_features(found, len(saved.names), make, where)


def _place(saved: SavedModel, split: int, where: str) -> str:
    """The tree and node of one of all trees' splits."""
    starts = np.cumsum(saved.leaves - 1)
    tree = int(np.searchsorted(starts, split, side="right"))
    return f"{where}, tree {tree}, node {split - (int(starts[tree - 1]) if tree else 0)}"


def _children(child: NDArray[Any]) -> NDArray[Any]:
    """Node numbers of a tree's children: the splits first, then the leaves."""
    return np.where(child >= 0, child, len(child) - 1 - child)


def _codes(saved: SavedModel, categorical: NDArray[np.bool_], where: str) -> dict[int, NDArray[np.int64]]:
    """The codes that go left at each categorical split, ascending."""
    trees = np.repeat(np.arange(len(saved.leaves)), saved.leaves - 1)
    found = {}
    for split in np.flatnonzero(categorical).tolist():
        number, sets = float(saved.threshold[split]), saved.categories[trees[split]]
        if not (0 <= number < len(sets) and number == int(number)):
            raise ModelError(f"set {number} of {len(sets)}", where=_place(saved, split, where))
        found[split] = sets[int(number)]
    return found


def _members(codes: NDArray[np.int64], category: bool) -> tuple[Member, ...]:
    """A set of codes: as it is on a category; on a number the cuts of the intervals whose whole part is one of them."""
    if category or not len(codes):
        return tuple(codes.tolist())
    gaps = np.flatnonzero(np.diff(codes) > 1)
    starts, ends = codes[np.concatenate([[0], gaps + 1])], codes[np.concatenate([gaps, [-1]])] + 1
    cuts = np.stack([starts, ends], axis=1).ravel().astype(np.float64).tolist()
    return tuple([float(np.nextafter(-1.0, 0.0)), *cuts[1:]] if cuts[0] == 0 else cuts)


def _numeric(
    threshold: NDArray[np.float64], decision: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """For each split t of `x < t`; where NaN goes; and whether zero goes against t, its own interval to itself."""
    default_left, zero = decision & DEFAULT_LEFT != 0, decision & MISSING_ZERO != 0
    strict = next_above(threshold, 64)
    among_zeros = (strict > ZERO) & (strict < PAST_ZERO)
    strict = np.where(among_zeros, np.where(threshold >= 0, PAST_ZERO, ZERO), strict)
    against = zero & np.where(default_left, strict <= ZERO, strict >= PAST_ZERO)
    beside = against & ((strict == ZERO) | (strict == PAST_ZERO))  # zero's interval and the rest are one
    strict = np.where(beside, np.where(default_left, PAST_ZERO, ZERO), strict)
    nan_is_zero = decision & (MISSING_ZERO | MISSING_NAN) == 0
    return strict, np.where(nan_is_zero, threshold >= 0, default_left), against & ~beside


def _labels(saved: SavedModel, where: str) -> dict[int, tuple[str, ...]]:
    """The texts of each column of text categories.

    The model tells the categories of a data frame's columns in their order, but not of which columns. Where training
    values leave one choice of columns, that is it. Else they are taken to be those trained on as categories, if there
    are as many. Where that is wrong, since `categorical_feature` named a column of codes in place of one of them, rows
    are refused: they hold numbers in the former, if conditions read it. Columns of categories that were not trained on
    as such (LightGBM takes the codes as numbers), and all where no choice fits, take codes in rows and no texts.
    Categories that look like numbers could slip through: they need a single choice. Raises ModelError.
    """
    told = [] if saved.pandas is None else saved.pandas
    if not isinstance(told, list) or not all(isinstance(names, list) for names in told):
        raise ModelError("pandas_categorical is no list of lists", where=where)
    for names in told:
        if not all(isinstance(name, str) for name in names) and names != list(range(len(names))):
            raise ModelError(
                f"a column of a data frame has categories that are numbers but not their codes: {names[:5]}",
                where=where,
                do="train on codes from 0 up, or on text: rows alone don't say which is meant",
            )
    only = _only_place(saved, told)
    place = only or _likely_place(saved, told)
    for index, names in enumerate(told):
        if any(map(_like_a_number, names)) and not (only and only[index] in saved.categorical):
            raise ModelError(
                f"does not say which column of the data frame has the categories {names[:5]}",
                where=where,
                do="name all category columns in categorical_feature, or train on codes",
            )
    texts = {}
    for column, names in zip(place, told, strict=False):  # no place, no texts
        if column in saved.categorical and names and all(isinstance(name, str) for name in names):
            if len(names) > MAX_CATEGORIES:
                raise ModelError(f"column {column} has {len(names)} categories", where=where, do="encode it first")
            texts[column] = tuple(names)
    return texts


def _fits(saved: SavedModel, column: int, names: Sequence[Any]) -> bool:
    """Whether a column may have had these categories, as far as its training values say."""
    low, high = saved.seen[column] or (0.0, 0.0)  # a constant may be any
    whole = low.is_integer() and high.is_integer()  # neither is an infinite one
    return high < max(1, len(names)) and (column in saved.categorical or (low >= 0 and whole))


def _only_place(saved: SavedModel, told: Sequence[Sequence[Any]]) -> list[int]:
    """The columns of the lists of categories, where these fit one choice of columns alone, in their order: as far left
    as they can be is as far right as they can be. Else none."""
    columns = range(len(saved.names))
    left = _leftmost(saved, columns, told)
    return left if left == _leftmost(saved, columns[::-1], told[::-1])[::-1] else []


def _likely_place(saved: SavedModel, told: Sequence[Sequence[Any]]) -> list[int]:
    """The columns trained on as categories, if they may be those of the lists, and rows would show if they were not: a
    column of codes that no condition reads would not. Else none."""
    place = list(saved.categorical)
    if len(told) != len(place) or not all(_fits(saved, *pair) for pair in zip(place, told, strict=True)):
        return []
    for unread in set(place) - set(saved.feature.tolist()):
        if len(told) > 1 and _leftmost(saved, [k for k in range(len(saved.names)) if k != unread], told):
            return []
    return place


def _leftmost(saved: SavedModel, columns: Sequence[int], told: Sequence[Sequence[Any]]) -> list[int]:
    """The first of these columns that all the lists fit, in their order; none if they do not fit."""
    found: list[int] = []
    for column in columns:
        if len(found) < len(told) and _fits(saved, column, told[len(found)]):
            found.append(column)
    return found if len(found) == len(told) else []


def _like_a_number(name: Any) -> bool:
    """Whether a file's reader may take a text for a number or truth value."""
    if not isinstance(name, str) or name.lower() in ("true", "false"):
        return isinstance(name, str)
    try:
        float(name)
    except ValueError:
        return False
    return True
