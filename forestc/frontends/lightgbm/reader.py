"""Reads LightGBM models: text and JSON without the library, fitted Boosters and estimators.

Values up to 1e-35 in magnitude are read as 0. Thresholds are float64 and compared with `<=`; categories are truncated
to integers. Scores are summed in float64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import DAMAGED, ModelError
from forestc.forest.builder import make_tree
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Aggregate, Decision, Feature, Forest, Label, Link, LinkKind, Provenance, Tree
from forestc.forest.numbers import FLOAT64, MAX_CATEGORIES, Category
from forestc.forest.verify import ONE_CLASS, TWO_CLASSES
from forestc.frontends.lightgbm.dump import parse_dump
from forestc.frontends.lightgbm.text import CATEGORICAL, DEFAULT_LEFT, MISSING_NAN, MISSING_ZERO, SavedModel, parse_text
from forestc.frontends.shared.assemble import assembled
from forestc.frontends.shared.document import Document
from forestc.frontends.shared.exact import labels_of, least_float, next_above
from forestc.frontends.shared.iterations import Iterations, taken

if TYPE_CHECKING:
    from lightgbm import Booster, LGBMModel

CUSTOM = ("none", "null", "custom", "na")  # lists the names for a custom objective
# Maps an objective to its link. LightGBM 2.0 used the names that contain xent.
LINKS: dict[str, LinkKind] = {
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "identity"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "exp"),
    "binary": "sigmoid",
    "multiclass": "softmax",
    **dict.fromkeys(("multiclassova", "cross_entropy", "xentropy"), "sigmoid"),
    **dict.fromkeys(("cross_entropy_lambda", "xentlambda"), "softplus"),
    **dict.fromkeys(("lambdarank", "rank_xendcg", *CUSTOM), "identity"),
}
MULTI = ("multiclass", "multiclassova")
SIGMOID = ("binary", "multiclassova")  # lists the objectives with a sigmoid parameter
# lists the objectives for which `sqrt` has an effect
SQUARES = ("regression", "regression_l1", "fair", "quantile", "mape")

ESTIMATORS = ("LGBMModel", "LGBMClassifier", "LGBMRegressor", "LGBMRanker")

# Remedy in the error message if the model names no best iteration.
NO_BEST = (
    "leave it out if the file was written after early stopping, as save_model then writes the best iterations only; "
    "or give their number"
)

# LightGBM reads every value in [ZERO, PAST_ZERO) as 0.
ZERO = -float(np.float32(1e-35))
PAST_ZERO = float(np.nextafter(-ZERO, np.inf))


def read_text(data: bytes, where: str, iterations: Iterations = None) -> Forest:
    """Reads the bytes of a text model into a Forest. Raises ForestcError."""
    return _forest(parse_text(data, where), where, iterations)


def read_dump(document: object, where: str, iterations: Iterations = None) -> Forest:
    """Reads a parsed JSON dump into a Forest. Raises ForestcError."""
    return _forest(parse_dump(Document(document, "", where)), where, iterations)


def read_live(model: Booster | LGBMModel, iterations: Iterations = None) -> Forest:
    """Reads a Booster or a scikit-learn-style estimator into a Forest. Without `iterations` it reads the trees up to
    the best iteration, if there is one. Raises ForestcError."""
    name = type(model).__name__
    where = f"LightGBM {name}"
    if name == "Booster":
        return _booster(model, where, iterations)
    if name not in ESTIMATORS:
        raise ModelError(f"{name} is not read", where=where, do=f"known: Booster, {', '.join(ESTIMATORS)}")
    if not model.__sklearn_is_fitted__():
        raise ModelError("the estimator is not fitted", where=where, do="call fit first")
    if model.get_params().get("pred_early_stop") not in (None, False, 0, "false"):
        raise ModelError("the estimator stops predictions early", where=where, do="set pred_early_stop=False")
    forest = _booster(model.booster_, where, iterations)
    if name != "LGBMClassifier" or callable(model.objective_):
        return replace(forest, decision=Decision("none"), classes=())
    return _classifier(forest, labels_of(np.asarray(model.classes_).tolist(), where), where)


def _booster(booster: Booster, where: str, iterations: Iterations) -> Forest:
    saved = parse_text(booster.model_to_string(num_iteration=-1).encode(), where)
    # The text form has only six digits of the parameter sigmoid.
    sigmoid = booster.params.get("sigmoid") if hasattr(booster, "train_set") else None
    best = booster.best_iteration if booster.best_iteration > 0 else None
    return _forest(saved, where, iterations, sigmoid, best)


def _classifier(forest: Forest, labels: tuple[Label, ...], where: str) -> Forest:
    if len(labels) == 1:
        raise ModelError(ONE_CLASS, where=where, do=TWO_CLASSES)
    if len(labels) != max(2, forest.n_outputs):
        raise ModelError(f"{len(labels)} classes and {forest.n_outputs} outputs", where=where, do="train it again")
    if forest.n_outputs > 1:
        return replace(forest, decision=Decision("argmax", on="values"), classes=labels)
    if forest.link.kind != "sigmoid":
        raise ModelError("a classifier with a regression objective", where=where, do="use objective='binary'")
    return replace(forest, decision=_sigmoid_decision(forest.link.slope), classes=labels)


def _sigmoid_decision(slope: float) -> Decision:

    def class_1(score: float) -> bool:
        try:
            return 1 / (1 + math.exp(-(score * slope))) > 0.5
        except OverflowError:
            return False

    return Decision("threshold", least_float(class_1, 64))


def _forest(
    saved: SavedModel,
    where: str,
    requested: Iterations,
    sigmoid: float | None = None,
    best: int | None = None,
) -> Forest:
    """Builds the Forest. sigmoid: LightGBM's parameter sigmoid with all digits; None to use the one in `saved`."""
    name, _, rest = saved.objective.strip().partition(" ")
    if name and name not in LINKS:
        raise ModelError(
            f"objective {name[:60]!r} is not known", where=where, do="train with one of " + ", ".join(LINKS)
        )
    link = _link(name or "none", rest.split(), where)
    if sigmoid is not None and name in SIGMOID:
        link = replace(link, slope=float(sigmoid))
    several = name in (*MULTI, *CUSTOM, "")  # True if the objective may have several outputs.
    if saved.classes != saved.outputs or not (saved.outputs == 1 or several):
        raise ModelError(
            f"objective {name or 'none'} with num_class={saved.classes}, num_tree_per_iteration={saved.outputs}",
            where=where,
            do=DAMAGED,
        )
    iterations, over = divmod(len(saved.leaves), saved.outputs)
    if over:
        raise ModelError(f"has {len(saved.leaves)} trees, {saved.outputs} per iteration", where=where, do=DAMAGED)
    iterations, notes = taken(requested, iterations, best, where, stops=True, unknown=NO_BEST)
    saved = saved.first(iterations * saved.outputs)
    if saved.average and saved.version in ("", "v2") and link.kind != "identity":
        raise ModelError(
            f"a random forest of version 2 with objective {name}",
            where=where,
            do="LightGBM 2.2 changed its meaning: train it again with a newer version",
        )
    decision = Decision("none")
    if name in MULTI:
        decision = Decision("argmax", on="values")
    elif name == "binary":
        decision = _sigmoid_decision(link.slope)
    trees, feature = _trees(saved, where)
    forest = assembled(
        trees,
        len(saved.names),
        feature,
        Provenance("lightgbm", saved.version, notes=notes),
        where,
        n_outputs=saved.outputs,
        aggregate=Aggregate(divisor=float(iterations) if saved.average else 1.0),
        link=link,
        decision=decision,
        classes=range({"none": 0, "threshold": 2, "argmax": saved.outputs}[decision.kind]),
    )
    return replace(forest, categories=_unassigned(saved))


def _link(name: str, options: Sequence[str], where: str) -> Link:
    """Returns the link of an objective. options: the words after the objective's name."""
    slope = 1.0
    for option in options:
        key, _, value = option.partition(":")
        if key == "sigmoid":
            slope = _number(value, where)
        elif not value and key != "sqrt":
            raise ModelError(
                f"objective {name} with {option[:40]!r}, which is not known",
                where=where,
                do="known options are num_class, sigmoid and sqrt: train without others",
            )
    if not 0 < slope < math.inf:
        raise ModelError(f"the sigmoid's parameter is {slope}", where=where, do="train with a sigmoid above 0")
    if "sqrt" in options and name in SQUARES:
        return Link("square")
    return Link(LINKS[name], slope if name in SIGMOID else 1.0)


def _number(text: str, where: str) -> float:
    """Parses a number, rounded as LightGBM rounds it. With exponents above 22 the last bit may differ."""
    match = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}))?(?:e([+-]\d{1,2}))?", text)
    if not match:
        raise ModelError(f"the sigmoid's parameter is not a number: {text[:40]!r}", where=where, do=DAMAGED)
    integer, fraction, power = match.groups()
    value = float(integer) + (float(fraction) / 10.0 ** len(fraction) if fraction else 0.0)
    scale = 10.0 ** abs(int(power or 0))
    return value / scale if power and power[0] == "-" else value * scale


def _trees(saved: SavedModel, where: str) -> tuple[list[Tree], Callable[[int], Feature]]:
    decision, feature = saved.decision, saved.feature
    if (bad := np.flatnonzero((decision < 0) | (decision >= 16) | (decision & 12 == 12))).size:
        raise ModelError(
            f"decision_type {int(decision[bad[0]])} is not known",
            where=_location(saved, int(bad[0]), where),
            do=DAMAGED,
        )
    if (bad := np.flatnonzero(np.isnan(saved.threshold))).size:
        raise ModelError("a threshold is NaN", where=_location(saved, int(bad[0]), where), do=DAMAGED)
    categorical = decision & CATEGORICAL != 0
    codes = _codes(saved, categorical, where)
    highest: dict[int, int] = {}  # the largest code of each column of categories
    for split, members in codes.items():
        column = int(feature[split])
        highest[column] = max(highest.get(column, 0), int(members[-1]) if len(members) else 0)
    for column in np.unique(feature[~categorical]).tolist():  # Thresholds make it a number.
        highest.pop(column, None)
    as_category = {column for column, code in highest.items() if code < MAX_CATEGORIES}
    strict, missing_left, around_zero = _numeric(saved.threshold, decision)
    # Infinite training values make infinite thresholds: all but missing values go left.
    infinite = saved.threshold == np.inf
    # The cuts select values that go right, so left and right are swapped.
    by_cuts = (around_zero | infinite) & ~categorical
    missing_left = (missing_left ^ by_cuts) & ~categorical
    left, right = np.where(by_cuts, [saved.right, saved.left], [saved.left, saved.right])
    trees, first, leaf = [], 0, 0
    for k, leaves in enumerate(saved.leaves.tolist()):
        splits = leaves - 1
        here, ends, padding = slice(first, first + splits), slice(leaf, leaf + leaves), np.zeros(leaves, np.int64)
        sets: dict[tuple[Member, ...], int] = {}
        set_index = np.full(splits + leaves, NO_SET)
        for split in (np.flatnonzero(categorical[here] | by_cuts[here]) + first).tolist():
            if categorical[split]:
                chosen = _members(codes[split], int(feature[split]) in as_category)
            else:
                cuts = [ZERO, PAST_ZERO] * bool(around_zero[split]) + [float(strict[split])] * (not infinite[split])
                chosen = tuple(sorted(cuts))
            set_index[split - first] = sets.setdefault(chosen, len(sets))
        trees.append(
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
    named = any(name != f"Column_{column}" for column, name in enumerate(saved.names))  # False for default names

    def column_feature(column: int) -> Feature:
        if column not in as_category:
            return Feature(saved.names[column], FLOAT64, column, True, FLOAT64, named=named)
        names = labels.get(column, ())
        number = Category(max(highest[column] + 1, len(names)), "trunc")
        return Feature(saved.names[column], number, column, True, FLOAT64, names, named)

    return trees, column_feature


def _location(saved: SavedModel, split: int, where: str) -> str:
    starts = np.cumsum(saved.leaves - 1)
    tree = int(np.searchsorted(starts, split, side="right"))
    return f"{where}, tree {tree}, node {split - (int(starts[tree - 1]) if tree else 0)}"


def _children(child: NDArray[Any]) -> NDArray[Any]:
    """Returns children as node indices, of splits first, then leaves; LightGBM numbers leaf k as -1 - k."""
    return np.where(child >= 0, child, len(child) - 1 - child)


def _codes(saved: SavedModel, categorical: NDArray[np.bool_], where: str) -> dict[int, NDArray[np.int64]]:
    trees = np.repeat(np.arange(len(saved.leaves)), saved.leaves - 1)
    members = {}
    for split in np.flatnonzero(categorical).tolist():
        number, sets = float(saved.threshold[split]), saved.categories[trees[split]]
        if not (0 <= number < len(sets) and number == int(number)):
            raise ModelError(f"set {number} of {len(sets)}", where=_location(saved, split, where), do=DAMAGED)
        members[split] = sets[int(number)]
    return members


def _members(codes: NDArray[np.int64], category: bool) -> tuple[Member, ...]:
    """Returns a set's codes if the column is a category; otherwise the cuts of the intervals that truncate to the
    codes."""
    if category or not len(codes):
        return tuple(codes.tolist())
    gaps = np.flatnonzero(np.diff(codes) > 1)
    starts, ends = codes[np.concatenate([[0], gaps + 1])], codes[np.concatenate([gaps, [-1]])] + 1
    cuts = np.stack([starts, ends], axis=1).ravel().astype(np.float64).tolist()
    return tuple([float(np.nextafter(-1.0, 0.0)), *cuts[1:]] if cuts[0] == 0 else cuts)


def _numeric(
    threshold: NDArray[np.float64], decision: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns three arrays with one entry per split: the threshold; True if NaN goes left; True if zeros need a set of
    cuts."""
    default_left, zero = decision & DEFAULT_LEFT != 0, decision & MISSING_ZERO != 0
    strict = next_above(threshold, 64)
    among_zeros = (strict > ZERO) & (strict < PAST_ZERO)
    strict = np.where(among_zeros, np.where(threshold >= 0, PAST_ZERO, ZERO), strict)
    against = zero & np.where(default_left, strict <= ZERO, strict >= PAST_ZERO)
    beside = against & ((strict == ZERO) | (strict == PAST_ZERO))  # A single threshold is enough here.
    strict = np.where(beside, np.where(default_left, PAST_ZERO, ZERO), strict)
    nan_is_zero = decision & (MISSING_ZERO | MISSING_NAN) == 0
    return strict, np.where(nan_is_zero, threshold >= 0, default_left), against & ~beside


def _labels(saved: SavedModel, where: str) -> dict[int, tuple[str, ...]]:
    """Returns {category column: names of its categories}, empty if the columns are unknown. Raises ModelError for
    ambiguous categories."""
    lists = [] if saved.pandas is None else saved.pandas
    if not isinstance(lists, list) or not all(isinstance(names, list) for names in lists):
        raise ModelError("pandas_categorical is not a list of lists", where=where, do=DAMAGED)
    lists = [_texts(names) for names in lists]
    only = _only_columns(saved, lists)
    read = set(saved.feature.tolist())
    unread = [bool(only) and only[index] not in read for index in range(len(lists))]
    for names, unused in zip(lists, unread, strict=True):
        if not unused and not all(isinstance(name, str) for name in names) and names != list(range(len(names))):
            raise ModelError(
                f"a column of a data frame has categories that are numbers but not their codes: {names[:5]}",
                where=where,
                do="train on whole numbers or on text",
            )
    assigned = only or _likely_columns(saved, lists)
    for index, names in enumerate(lists):
        if any(map(_like_a_number, names)) and not unread[index] and not (only and only[index] in saved.categorical):
            raise ModelError(
                f"does not say which column of the data frame has the categories {names[:5]}",
                where=where,
                do="name all category columns in categorical_feature, or train on codes",
            )
    texts = {}
    for column, names in zip(assigned, lists, strict=False):  # Without an assignment there are no texts.
        if column in saved.categorical and names and all(isinstance(name, str) for name in names):
            if len(names) > MAX_CATEGORIES:
                raise ModelError(f"column {column} has {len(names)} categories", where=where, do="encode it first")
            texts[column] = tuple(names)
    return texts


def _texts(names: list[Any]) -> list[Any]:
    """Returns categories that are whole numbers, but not their own codes, as texts; others as they are."""
    whole = all(type(name) is int for name in names) and names != list(range(len(names)))
    return list(map(str, names)) if whole else names


def _unassigned(saved: SavedModel) -> tuple[tuple[str, ...], ...]:
    """Returns the lists of category names if their columns are not certain and all names are texts; otherwise ()."""
    lists = saved.pandas or []
    if _only_columns(saved, lists) or not all(isinstance(name, str) for names in lists for name in names):
        return ()
    return tuple(map(tuple, lists)) if all(len(names) <= MAX_CATEGORIES for names in lists) else ()


def _fits(saved: SavedModel, column: int, names: Sequence[Any]) -> bool:
    """Returns True if a column's range of training values allows these categories."""
    low, high = saved.ranges[column] or (0.0, 0.0)  # A constant column fits any list.
    integral = low.is_integer() and high.is_integer()  # False for infinite values
    return high < max(1, len(names)) and (column in saved.categorical or (low >= 0 and integral))


def _only_columns(saved: SavedModel, lists: Sequence[Sequence[Any]]) -> list[int]:
    """Returns each list's column; [] unless exactly one choice of columns in order fits."""
    columns = range(len(saved.names))
    left = _leftmost(saved, columns, lists)
    return left if left == _leftmost(saved, columns[::-1], lists[::-1])[::-1] else []


def _likely_columns(saved: SavedModel, lists: Sequence[Sequence[Any]]) -> list[int]:
    """Returns the columns that the model treats as categories, if the lists of categories fit them in order; otherwise
    []."""
    assigned = list(saved.categorical)
    if len(lists) != len(assigned) or not all(_fits(saved, *pair) for pair in zip(assigned, lists, strict=True)):
        return []
    for unread in set(assigned) - set(saved.feature.tolist()):
        if len(lists) > 1 and _leftmost(saved, [k for k in range(len(saved.names)) if k != unread], lists):
            return []
    return assigned


def _leftmost(saved: SavedModel, columns: Sequence[int], lists: Sequence[Sequence[Any]]) -> list[int]:
    """Returns the first fitting column for each list of categories, in order; [] if some list has none."""
    assigned: list[int] = []
    for column in columns:
        if len(assigned) < len(lists) and _fits(saved, column, lists[len(assigned)]):
            assigned.append(column)
    return assigned if len(assigned) == len(lists) else []


def _like_a_number(name: object) -> bool:
    """Returns True for text that a CSV reader may parse as a number or boolean."""
    if not isinstance(name, str) or name.lower() in ("true", "false"):
        return isinstance(name, str)
    try:
        float(name)
    except ValueError:
        return False
    return True
