"""Reads ONNX's operators TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble. As in onnxruntime, values are
compared and weights are added in the input's type (float32 for integers), tree by tree. A classifier decides before the
post-transform."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forestc.errors import ModelError
from forestc.forest.builder import MAX_OUTPUTS, make_tree
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Aggregate, Decision, Label, Link, Tree
from forestc.frontends.onnx.attributes import Attributes
from forestc.frontends.onnx.columns import RawColumn, folded, tests_of
from forestc.frontends.onnx.nodes import NodeArrays, classic_nodes, modern_nodes, numbers
from forestc.frontends.onnx.text import TextColumn, Vocabulary, code_sets
from forestc.frontends.onnx.values import Predicted, Shown, TreeScores
from forestc.frontends.shared.exact import next_above

Array: TypeAlias = NDArray[Any]

OPERATORS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
_NODES = ("nodeids", "treeids", "featureids", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
_CLASSIC = [*(f"nodes_{name}" for name in _NODES), "nodes_values", "nodes_hitrates", "base_values", "post_transform"]
_CLASSIC_3 = ["nodes_values_as_tensor", "nodes_hitrates_as_tensor", "base_values_as_tensor"]
_VOTES = ("ids", "nodeids", "treeids", "weights")
_MODERN = [
    *("nodes_modes", "nodes_splits", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_hitrates"),
    *("nodes_trueleafs", "nodes_falseleafs", "nodes_missing_value_tracks_true", "tree_roots", "membership_values"),
    *("leaf_targetids", "leaf_weights", "n_targets", "aggregate_function", "post_transform"),
]
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
# Lists post-transforms by onnxruntime's numbers. In the ONNX standard, 1 is softmax and 2 the logistic function.
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
LINKS = {
    "NONE": Link(),
    "LOGISTIC": Link("logistic"),
    "SOFTMAX": Link("softmax"),
    "SOFTMAX_ZERO": Link("softmax-zero"),
    "PROBIT": Link("probit"),
}
MAX_VALUES = 1 << 26  # limits the leaf values of all trees, which take up to 512 MiB


@dataclass(frozen=True)
class TreeOperator:
    """A tree operator, before its columns are traced to the model's inputs. answer: None for a regression."""

    nodes: NodeArrays
    scores: TreeScores
    answer: Predicted | None


def _ensemble(
    nodes: NodeArrays,
    aggregate: Aggregate,
    bias: NDArray[np.float64],
    link: Link,
    shown: Shown = "all",
    answer: Predicted | None = None,
) -> TreeOperator:
    dtype, classifier = np.dtype(aggregate.precision), answer is not None
    return TreeOperator(
        nodes, TreeScores(dtype, len(bias), aggregate, tuple(bias.tolist()), link, shown, classifier), answer
    )


def read_operator(name: str, node: object, version: int, dtype: DTypeLike, where: str) -> TreeOperator:
    """Reads one of `OPERATORS`. version: the version of ai.onnx.ml. dtype: type of the operator's input. Raises
    ModelError."""
    if name == "TreeEnsemble":
        if version < 5:
            raise ModelError(f"is not an operator of ai.onnx.ml {version}", where=where, do="import version 5")
        return _modern(Attributes(node, _MODERN, where), dtype)
    if version >= 5:
        raise ModelError(f"is no longer an operator of ai.onnx.ml {version}", where=where, do="import version 3")
    votes = "class" if name == "TreeEnsembleClassifier" else "target"
    allowed = [*_CLASSIC, *(f"{votes}_{field}" for field in _VOTES)]
    allowed += (
        ["classlabels_int64s", "classlabels_strings"] if votes == "class" else ["n_targets", "aggregate_function"]
    )
    if version >= 3:
        allowed += [*_CLASSIC_3, f"{votes}_weights_as_tensor"]
    attributes = Attributes(node, allowed, where)
    # onnxruntime compares integers with float32 thresholds, in float32.
    dtype = np.float64 if np.dtype(dtype) == np.float64 else np.float32
    if votes == "class":
        return _classifier(attributes, dtype)
    return _regressor(attributes, dtype)


def _precision(dtype: DTypeLike) -> Literal["float32", "float64"]:
    return "float32" if np.dtype(dtype) == np.float32 else "float64"


def _named(attributes: Attributes, name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = attributes.text(name, default)
    if value not in allowed:
        raise attributes.fail(f"{name} {value[:40]!r} is not known", "known: " + ", ".join(allowed))
    return value


def _numbered(attributes: Attributes, name: str, default: int, allowed: tuple[str, ...]) -> str:
    number = attributes.integer(name, default)
    if not 0 <= number < len(allowed):
        raise attributes.fail(f"{name} {number} is not known", f"known: 0 to {len(allowed) - 1}")
    return allowed[number]


def _targets(attributes: Attributes) -> int:
    targets = attributes.integer("n_targets", 0)
    if not 1 <= targets <= MAX_OUTPUTS:
        raise attributes.fail(f"n_targets is {targets}, outside 1 to {MAX_OUTPUTS}")
    return targets


def _modern(attributes: Attributes, dtype: DTypeLike) -> TreeOperator:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise attributes.fail(f"its input is {np.dtype(dtype)}", "onnxruntime takes float and double")
    targets = _targets(attributes)
    nodes = modern_nodes(attributes, dtype)
    aggregate = _numbered(attributes, "aggregate_function", 1, AGGREGATES)
    transform = _numbered(attributes, "post_transform", 0, TRANSFORMS)
    return _regression(attributes, nodes, targets, aggregate, transform, np.zeros(0), dtype)


def _refuse_wide_probit(attributes: Attributes, transform: str, dtype: DTypeLike) -> None:
    if transform == "PROBIT" and _precision(dtype) == "float64":
        raise attributes.fail("PROBIT over doubles, which onnxruntime computes in float32")


def _regressor(attributes: Attributes, dtype: DTypeLike) -> TreeOperator:
    targets = _targets(attributes)
    nodes = classic_nodes(attributes, "target", dtype)
    aggregate = _named(attributes, "aggregate_function", "SUM", AGGREGATES)
    transform = _named(attributes, "post_transform", "NONE", TRANSFORMS)
    base = numbers(attributes, "base_values", dtype).astype(np.float64)
    if len(base) not in (0, targets):
        raise attributes.fail(f"has {len(base)} base values for {targets} targets")
    return _regression(attributes, nodes, targets, aggregate, transform, base, dtype)


def _regression(
    attributes: Attributes,
    nodes: NodeArrays,
    targets: int,
    aggregate: str,
    transform: str,
    base: NDArray[np.float64],
    dtype: DTypeLike,
) -> TreeOperator:
    _refuse_wide_probit(attributes, transform, dtype)
    _check_votes(attributes, nodes, targets)
    always = _always_voted(nodes, targets)
    # For a target without weights in a row's leaves, onnxruntime outputs 0, not the base.
    needed = np.ones(targets, dtype=bool) if aggregate in ("MIN", "MAX") else np.append(base, np.zeros(targets)) != 0
    if targets > 1 and (bad := np.flatnonzero(needed[:targets] & ~always)).size:
        raise attributes.fail(
            f"target {bad[0]} has no weight on some rows, where onnxruntime shows 0",
            "give every leaf a weight for every target",
        )
    # With one target onnxruntime ignores every transform except PROBIT.
    link = LINKS[transform] if targets > 1 or transform == "PROBIT" else Link()
    kind: Literal["sum", "min", "max"] = "min" if aggregate == "MIN" else "max" if aggregate == "MAX" else "sum"
    divisor = float(len(nodes.tree)) if aggregate == "AVERAGE" else 1.0
    bias = base if len(base) else np.zeros(targets)
    summed = Aggregate(kind, _precision(dtype), bias_first=False, divisor=divisor)
    return _ensemble(nodes, summed, bias, link)


def _classifier(attributes: Attributes, dtype: DTypeLike) -> TreeOperator:
    texts, integers = attributes.texts("classlabels_strings"), attributes.ints("classlabels_int64s").tolist()
    if bool(texts) == bool(integers):
        raise attributes.fail("needs either classlabels_strings or classlabels_int64s")
    labels: tuple[Label, ...] = tuple(texts or integers)
    count = len(labels)
    if not 2 <= count <= MAX_OUTPUTS:
        raise attributes.fail(f"has {count} class labels", f"2 to {MAX_OUTPUTS} are read")
    nodes = classic_nodes(attributes, "class", dtype)
    nodes.value = np.zeros(len(nodes.value))  # A leaf without weights adds nothing.
    _check_votes(attributes, nodes, count)
    transform = _named(attributes, "post_transform", "NONE", TRANSFORMS)
    _refuse_wide_probit(attributes, transform, dtype)
    base = numbers(attributes, "base_values", dtype).astype(np.float64)
    summed = Aggregate("sum", _precision(dtype), bias_first=False)
    if count == 2:
        return _binary(attributes, nodes, labels, transform, base, summed)
    if len(base) not in (0, count):
        raise attributes.fail(f"has {len(base)} base values for {count} classes")
    # Without base values, onnxruntime never decides for a class that has no weight in the row's leaves.
    always = _always_voted(nodes, count)
    if not len(base) and not always.all() and not _some_positive(nodes):
        raise attributes.fail(
            f"class {labels[int(np.flatnonzero(~always)[0])]!r} has no weight on some rows, where onnxruntime "
            "omits it from the decision",
            "give every leaf a weight for every class, or give base_values",
        )
    bias = base if len(base) else np.zeros(count)
    return _ensemble(nodes, summed, bias, LINKS[transform], "all", Predicted(labels, Decision("argmax")))


def _binary(
    attributes: Attributes,
    nodes: NodeArrays,
    labels: tuple[Label, ...],
    transform: str,
    base: NDArray[np.float64],
    summed: Aggregate,
) -> TreeOperator:
    """Reads a classifier of two classes, a special case in onnxruntime."""
    voted = set(np.unique(nodes.weight_target).tolist())
    always = _always_voted(nodes, 2)
    positive = len(voted) == 1 and not (nodes.weight < 0).any()
    bits = 32 if summed.precision == "float32" else 64
    # onnxruntime's threshold is 0.5 if only one class has weights and none is negative, otherwise 0.
    decision = Decision("threshold", float(next_above(np.array([0.5 if positive else 0.0]), bits)[0]))
    if voted == {0}:
        if len(base) > 1:
            raise attributes.fail(
                "has two base values but weights for class 0 only, and onnxruntime then shows no second score",
                "give it one base value",
            )
        if transform == "PROBIT":
            raise attributes.fail("PROBIT of a single score, for which onnxruntime does not set the second column")
        if not always[0] and base.any():
            raise attributes.fail("a row may reach no weight, where onnxruntime does not add the base value")
        # The sum s of class 0's weights is class 1's score.
        shown: Shown = "logistic" if transform == "LOGISTIC" else "complement" if positive else "opposite"
        link = LINKS["LOGISTIC" if transform == "LOGISTIC" else "NONE"]
        bias = base if len(base) else np.zeros(1)
        return _ensemble(nodes, summed, bias, link, shown, Predicted(labels, decision))
    if len(base) > 1:
        raise attributes.fail(
            "has two base values and weights for class 1, whose sum onnxruntime then replaces",
            "remove base_values",
        )
    if not always[1]:
        raise attributes.fail(
            f"class {labels[1]!r} has no weight on some rows, where onnxruntime decides on class {labels[0]!r}",
            "give every leaf a weight for class 1",
        )
    bias = np.zeros(2)
    if 0 in voted and len(base):  # onnxruntime adds a single base value to class 0, if this class has weights.
        if not always[0] and base.any():
            raise attributes.fail(f"class {labels[0]!r} has no weight on some rows, where its base value is not added")
        bias[0] = base[0]
    if len(voted) == 2 and isinstance(labels[0], int):
        labels = (0, 1)  # onnxruntime outputs these here, whatever the labels are.
    return _ensemble(nodes, summed, bias, LINKS[transform], "all", Predicted(labels, decision))


def _check_votes(attributes: Attributes, nodes: NodeArrays, outputs: int) -> None:
    """Raises ModelError for a weight of an unknown output, and for a leaf's duplicate weights."""
    target, leaf = nodes.weight_target, nodes.weight_leaf
    if (bad := np.flatnonzero((target < 0) | (target >= outputs))).size:
        raise attributes.fail(f"a weight is for output {target[bad[0]]} of {outputs}")
    if not len(target):
        raise attributes.fail("has no weights")
    keys = np.sort((leaf * outputs + target)[leaf != LEAF])
    if (twice := np.flatnonzero(np.diff(keys) == 0)).size:
        node, output = divmod(int(keys[twice[0]]), outputs)
        raise ModelError(
            f"has two weights for output {output}",
            where=f"{attributes.where}, {nodes.location(node)}",
            do="write their sum: onnxruntime adds or drops the second one, depending on the number of outputs",
        )


def _always_voted(nodes: NodeArrays, outputs: int) -> NDArray[np.bool_]:
    """Returns (outputs,): True if some tree has a weight for the output at every leaf."""
    real = nodes.weight_leaf != LEAF
    tree = np.searchsorted(nodes.start, nodes.weight_leaf[real], side="right") - 1
    pairs, counts = np.unique(tree * outputs + nodes.weight_target[real], return_counts=True)
    leaves = np.add.reduceat(nodes.true == LEAF, nodes.start[:-1], dtype=np.int64)
    always = np.zeros(outputs, dtype=bool)
    always[(pairs % outputs)[counts == leaves[pairs // outputs]]] = True
    return always


def _some_positive(nodes: NodeArrays) -> bool:
    """Returns True if no weight is negative and all leaves of some tree have a positive weight."""
    if (nodes.weight < 0).any():
        return False
    real = (nodes.weight_leaf != LEAF) & (nodes.weight > 0)
    voted = np.zeros(len(nodes.true), dtype=bool)
    voted[nodes.weight_leaf[real]] = True
    return bool(np.logical_and.reduceat(voted | (nodes.true != LEAF), nodes.start[:-1]).any())


def make_trees(
    ensemble: TreeOperator,
    columns: dict[int, RawColumn],
    texts: Mapping[int, TextColumn],
    vocabularies: Mapping[int, Vocabulary],
    where: str,
) -> list[Tree]:
    """Builds the operator's trees; `feature` holds raw columns. Raises ModelError.

    columns: operator's column -> raw column with its steps.
    texts: operator's column -> encoding.
    vocabularies: raw column -> vocabulary.
    """
    nodes = ensemble.nodes
    inner = nodes.inner
    reads = nodes.feature[inner]
    of_text = code_sets(nodes.conditions, reads, texts, vocabularies)
    columns = columns | {key: RawColumn(text.index, 64) for key, text in texts.items()}  # Texts have no steps to fold.
    conditions = folded(nodes.conditions, reads, columns)
    below, turned, inner_sets, sets = tests_of(conditions, np.array(list(of_text), dtype=np.int64))
    for node, code_set in of_text.items():
        turned[node] = code_set.turned
    n = len(nodes.true)
    feature, threshold = np.full(n, LEAF, dtype=np.int64), np.zeros(n)
    threshold[inner] = below
    raw = np.zeros(max(columns, default=0) + 1, dtype=np.int64)
    raw[list(columns)] = [column.index for column in columns.values()]
    feature[inner] = raw[reads]
    integral = np.zeros(len(raw), dtype=bool)
    integral[list(columns)] = [column.integral for column in columns.values()]
    left, right = nodes.true.copy(), nodes.false.copy()
    left[inner[turned]], right[inner[turned]] = nodes.false[inner[turned]], nodes.true[inner[turned]]
    missing_left = np.zeros(n, dtype=bool)
    missing_left[inner] = (conditions.missing != turned) & ~integral[reads]
    set_index = np.full(n, NO_SET, dtype=np.int64)
    set_index[inner] = inner_sets
    set_numbers: dict[tuple[Member, ...], int] = {}
    for node, code_set in of_text.items():
        set_index[inner[node]] = len(sets) + set_numbers.setdefault(code_set.members, len(set_numbers))
        missing_left[inner[node]] = code_set.missing
    sets += set_numbers
    values_of = _values(ensemble, where)
    trees = []
    for index, name in enumerate(nodes.tree.tolist()):
        start = nodes.start[index]
        here = slice(start, nodes.start[index + 1])
        outputs, values = values_of(index)
        chosen, tree_sets = set_index[here], ()
        if sets and (chosen != NO_SET).any():
            used, chosen = np.unique(chosen, return_inverse=True)
            tree_sets = tuple(sets[k] for k in used.tolist() if k != NO_SET)
            chosen = chosen - (used[0] == NO_SET)
        trees.append(
            make_tree(
                where=f"{where}, tree {name}",
                feature=feature[here],
                threshold=threshold[here],
                left=np.where(left[here] == LEAF, LEAF, left[here] - start),
                right=np.where(right[here] == LEAF, LEAF, right[here] - start),
                values=values,
                outputs=outputs,
                missing_left=missing_left[here],
                set_index=chosen,
                sets=tree_sets,
                ids=nodes.ids[here],
            )
        )
    return trees


def _values(ensemble: TreeOperator, where: str) -> Callable[[int], tuple[tuple[int, ...], NDArray[np.float64]]]:
    """Returns a function from a tree's index to the tree's outputs and its leaf values (leaves, outputs)."""
    nodes, is_leaf = ensemble.nodes, ensemble.nodes.true == LEAF
    real = nodes.weight_leaf != LEAF
    leaf, target, weight = nodes.weight_leaf[real], nodes.weight_target[real], nodes.weight[real].astype(np.float64)
    width, kind = ensemble.scores.outputs, ensemble.scores.aggregate.kind
    if width == 1:
        value = nodes.value.astype(np.float64)
        value[leaf] = weight

        def single(index: int) -> tuple[tuple[int, ...], NDArray[np.float64]]:
            here = slice(nodes.start[index], nodes.start[index + 1])
            return (0,), value[here][is_leaf[here]].reshape(-1, 1)

        return single
    order = np.argsort(leaf, kind="stable")
    leaf, target, weight = leaf[order], target[order], weight[order]
    bounds = np.searchsorted(leaf, nodes.start)
    rank = np.cumsum(is_leaf) - 1
    fill = np.zeros(width)  # Leaves without a weight get a value that changes no result.
    if kind == "min":
        fill[:] = -np.inf
        np.maximum.at(fill, target, weight)
    elif kind == "max":
        fill[:] = np.inf
        np.minimum.at(fill, target, weight)
    leaves = np.add.reduceat(is_leaf, nodes.start[:-1], dtype=np.int64)
    before = np.cumsum(leaves) - leaves
    size = 0

    def several(index: int) -> tuple[tuple[int, ...], NDArray[np.float64]]:
        nonlocal size
        here = slice(bounds[index], bounds[index + 1])
        outputs = np.unique(target[here]) if bounds[index] < bounds[index + 1] else np.zeros(1, dtype=np.int64)
        size += int(leaves[index]) * len(outputs)
        if size > MAX_VALUES:
            raise ModelError(
                f"its leaves have more than {MAX_VALUES} values in total",
                where=where,
                do="train fewer or smaller trees",
            )
        values = np.tile(fill[outputs], (leaves[index], 1))
        values[rank[leaf[here]] - before[index], np.searchsorted(outputs, target[here])] = weight[here]
        return tuple(outputs.tolist()), values

    return several
