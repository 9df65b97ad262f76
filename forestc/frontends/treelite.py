"""Reads treelite checkpoints, through the treelite package, and models in memory.

As in treelite's predictor GTIL, leaves are summed tree by tree, and the base score comes last. A damaged checkpoint can
crash treelite, so a separate process tests it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from forestc.errors import DAMAGED, MissingExtraError, ModelError
from forestc.forest.builder import MAX_OUTPUTS, make_tree
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Aggregate, Decision, Feature, Forest, Label, Link, LinkKind, Part, Provenance, Tree
from forestc.forest.numbers import MAX_CATEGORIES, Category, Float
from forestc.frontends.shared.assemble import ScoreMeaning, assembled
from forestc.frontends.shared.exact import least_float, next_above, where_equal

if TYPE_CHECKING:
    from treelite import Model

Arrays: TypeAlias = dict[str, NDArray[Any]]  # holds the fields of a tree in `_FIELDS`, by name

LINKS: dict[str, LinkKind] = {
    "identity": "identity",
    "identity_multiclass": "identity",
    "sigmoid": "sigmoid",
    "multiclass_ova": "sigmoid",
    "softmax": "softmax",
    "exponential": "exp",
    "exponential_standard_ratio": "exp2",
    "logarithm_one_plus_exp": "softplus",
    "signed_square": "square",
    "hinge": "step",
}
# Holds values of treelite's enumerations TaskType (for classifiers), TreeNodeType and Operator.
_BINARY, _MULTI = 0, 2
_CATEGORICAL = 2
_EQ, _LT, _LE, _GT, _GE = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class _Shape:
    """Properties that all trees of a model share."""

    bits: Literal[32, 64]  # width of the thresholds' float type
    vector: list[int]  # shape of leaf vectors
    widths: list[int]  # number of classes of each target
    categories: dict[int, int]  # number of codes of each categorical column


def read_bytes(data: bytes, where: str) -> Forest:
    """Reads the bytes of a checkpoint into a Forest. Raises ModelError for a damaged file, MissingExtraError without
    treelite."""
    try:
        import treelite
    except ImportError:
        raise MissingExtraError("treelite", "treelite") from None
    _probe(data, where)
    try:
        model = treelite.Model.deserialize_bytes(data)
    except Exception as error:  # noqa: BLE001  treelite may raise anything for a damaged file
        message = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        raise ModelError(
            f"not a readable treelite checkpoint ({message})",
            where=where,
            do="write it again with the version of treelite that is installed here",
        ) from None
    return _forest(model, where)


_PROBE = """
import sys, treelite
model = treelite.Model.deserialize_bytes(sys.stdin.buffer.read())
header = model.get_header_accessor()
for tree in range(model.num_tree):
    accessor = model.get_tree_accessor(tree)
    for name in sys.argv[1:]:
        accessor.get_field(name).sum()
"""


def _probe(data: bytes, where: str) -> None:
    """Opens a checkpoint in a separate process. Raises ModelError if the process fails."""
    seconds = 30 + len(data) // (1 << 20)  # at least 30 s, and one more for each MiB
    try:
        process = subprocess.run(
            [sys.executable, "-c", _PROBE, *_FIELDS], input=data, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"treelite has not read the checkpoint after {seconds} s",
            where=where,
            do="save the model with its own library instead: such files are read quicker",
        ) from None
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        message = lines[-1][:160] if lines else f"signal {-process.returncode}"
        raise ModelError(
            f"not a readable treelite checkpoint ({message})",
            where=where,
            do="write it again with the version of treelite that is installed here",
        )


def read_live(model: object) -> Forest:
    """Reads a treelite.Model into a Forest. Raises ModelError."""
    return _forest(model, f"treelite {type(model).__name__}")


def _forest(model: Model, where: str) -> Forest:
    header = model.get_header_accessor()
    fields = {name: header.get_field(name) for name in ("postprocessor", "sigmoid_alpha", "ratio_c", "task_type")}
    name = str(fields["postprocessor"])
    if name not in LINKS:
        raise ModelError(f"postprocessor {name[:40]!r} is not known", where=where, do="known: " + ", ".join(LINKS))
    columns, count = int(model.num_feature), int(model.num_tree)
    widths = np.asarray(header.get_field("num_class"), dtype=np.int64)
    if not len(widths) or widths.min() < 1 or widths.sum() > MAX_OUTPUTS:
        raise ModelError(
            f"{widths.tolist()[:8]} classes", where=where, do=f"a model has 1 to {MAX_OUTPUTS} classes in all"
        )
    most, starts = int(widths.max()), (np.cumsum(widths) - widths).tolist()
    scores = cast("Literal['float32', 'float64']", str(model.output_type))
    feeds = np.stack([np.asarray(header.get_field(key), dtype=np.int64) for key in ("target_id", "class_id")], axis=1)
    if feeds.shape != (count, 2) or not ((feeds >= -1) & (feeds < [len(widths), most])).all():
        raise ModelError("trees feed targets or classes that do not exist", where=where, do=DAMAGED)
    categories: dict[int, int] = {}
    arrays = [_arrays(model, index, categories) for index in range(count)]
    bits: Literal[32, 64] = 32 if str(model.input_type) == "float32" else 64
    vector = [int(size) for size in header.get_field("leaf_vector_shape")]
    shape = _Shape(bits, vector, widths.tolist(), categories)
    trees = [
        _tree(arrays[index], shape, target, cls, f"{where}, tree {index}")
        for index, (target, cls) in enumerate(feeds.tolist())
    ]
    fed = np.zeros(int(widths.sum()))
    for tree in trees:
        fed[list(tree.outputs)] += 1
    average = bool(header.get_field("average_tree_output")[0])
    if average and len(set(fed.tolist())) > 1:
        raise ModelError(
            "outputs are fed by different numbers of trees and averaged",
            where=where,
            do="give every output as many trees, or do not average",
        )
    base = np.asarray(header.get_field("base_scores"), dtype=np.float64).reshape(len(widths), most)
    bias = np.concatenate([base[target, :width] for target, width in enumerate(widths.tolist())])
    slopes = {"sigmoid": float(fields["sigmoid_alpha"][0]), "exp2": -1 / float(fields["ratio_c"][0])}
    link = Link(LINKS[name], slopes.get(LINKS[name], 1.0))
    aggregate = Aggregate("sum", scores, False, float(fed[0]) if average else 1.0)
    task = int(fields["task_type"][0])
    parts = [
        Part(start, start + width, aggregate, link, *_decision(task, width, link, scores))
        for start, width in zip(starts, shape.widths, strict=True)
    ]
    number = Float(bits)

    def feature(column: int) -> Feature:
        kind = Category(categories[column], "floor") if column in categories else number
        return Feature(f"x{column}", kind, column, missing=True, raw=number, named=False)

    version = ".".join(str(int(header.get_field(f"{key}_ver")[0])) for key in ("major", "minor", "patch"))
    meaning: ScoreMeaning = {"n_outputs": len(bias), "bias": bias, "aggregate": aggregate, "parts": parts}
    return assembled(trees, columns, feature, Provenance("treelite", version), where, **meaning)


def _decision(task: int, width: int, link: Link, scores: str) -> tuple[Decision, tuple[Label, ...]]:
    if task == _BINARY and width == 1:
        dtype, bits = np.dtype(scores), 32 if scores == "float32" else 64
        if link.kind != "sigmoid":
            half = np.nextafter(dtype.type(0.5 if link.kind == "identity" else 0.0), dtype.type(1))
            return Decision("threshold", float(half)), (0, 1)

        def above_half(score: float) -> bool:
            with np.errstate(over="ignore"):
                power = np.exp(-dtype.type(link.slope) * dtype.type(score))
            return bool(dtype.type(1) / (dtype.type(1) + power) > 0.5)

        return Decision("threshold", least_float(above_half, bits)), (0, 1)
    if task in (_BINARY, _MULTI) and width > 1:
        return Decision("argmax", 0, "values"), tuple(range(width))
    return Decision("none"), ()


def _outputs(target: int, cls: int, widths: list[int]) -> tuple[int, ...]:
    """Returns the outputs to which a tree adds. target, cls: -1 means all targets, or all classes."""
    outputs: list[int] = []
    first = 0
    for index, width in enumerate(widths):
        if target in (-1, index):
            outputs += range(first, first + width) if cls < 0 else [first + cls] * (cls < width)
        first += width
    return tuple(outputs)


_FIELDS: tuple[str, ...] = (
    "node_type", "cleft", "cright", "split_index", "default_left", "leaf_value", "threshold", "cmp", "sum_hess",
    "category_list_right_child", "category_list", "category_list_begin", "category_list_end",
    "leaf_vector", "leaf_vector_begin",
)  # fmt: skip


def _arrays(model: Model, index: int, categories: dict[int, int]) -> Arrays:
    """Returns {field: array} of a tree. categories: column -> number of codes, increased for larger codes."""
    accessor = model.get_tree_accessor(index)
    arrays = {name: np.array(accessor.get_field(name)) for name in _FIELDS}
    for node in np.flatnonzero(arrays["node_type"] == _CATEGORICAL).tolist():
        most = int(_codes(arrays, node).max(initial=0)) + 1
        if most > MAX_CATEGORIES:
            raise ModelError(
                f"category {most - 1}",
                where=f"tree {index}, node {node}",
                do=f"train on {MAX_CATEGORIES} categories at most",
            )
        column = int(arrays["split_index"][node])
        categories[column] = max(categories.get(column, 1), most)
    return arrays


def _codes(arrays: Arrays, node: int) -> NDArray[Any]:
    return arrays["category_list"][int(arrays["category_list_begin"][node]) : int(arrays["category_list_end"][node])]


def _tree(arrays: Arrays, shape: _Shape, target: int, cls: int, where: str) -> Tree:
    left, right = arrays["cleft"].astype(np.int64), arrays["cright"].astype(np.int64)
    is_leaf = left == LEAF
    compare = np.where(is_leaf, _LT, arrays["cmp"])
    by_category = ~is_leaf & (arrays["node_type"] == _CATEGORICAL)
    if not (np.isin(compare, (_EQ, _LT, _LE, _GT, _GE)) | by_category).all():
        raise ModelError(
            "a comparison is not known", where=where, do="<, <=, >, >= and == are read: build the trees with these"
        )
    limit = arrays["threshold"].astype(np.float64)
    threshold = np.where(np.isin(compare, (_LE, _GT)), next_above(limit, shape.bits), limit)
    swapped = ~by_category & np.isin(compare, (_GT, _GE))  # `x > t` is the complement of `x < t'`.
    missing_left = (arrays["default_left"] != 0) ^ swapped
    set_index = np.full(len(left), NO_SET)
    sets: list[Sequence[Member]] = []
    for node in np.flatnonzero(~is_leaf & (by_category | (compare == _EQ))).tolist():
        set_index[node] = len(sets)
        if not by_category[node]:
            sets.append(where_equal(limit[[node]], bits=shape.bits))
            continue
        listed = set(_codes(arrays, node).tolist())
        codes = range(shape.categories[int(arrays["split_index"][node])] + 1)
        goes_right = bool(arrays["category_list_right_child"][node])
        sets.append([code for code in codes if (code in listed) != goes_right])
    mixed = ~is_leaf & ~by_category & np.isin(arrays["split_index"], list(shape.categories))
    for node in np.flatnonzero(mixed).tolist():
        raise ModelError(
            "is split as a number and as a category", where=f"{where}, node {node}", do="split each column in one way"
        )
    return make_tree(
        where=where,
        feature=np.where(is_leaf, LEAF, arrays["split_index"]),
        threshold=np.where(by_category, 0.0, threshold),
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        values=_values(arrays, is_leaf, shape, target, cls, where),
        outputs=_outputs(target, cls, shape.widths),
        missing_left=missing_left,
        set_index=set_index,
        sets=sets,
        cover=arrays["sum_hess"] if len(arrays["sum_hess"]) == len(left) else None,
    )


def _values(
    arrays: Arrays, is_leaf: NDArray[np.bool_], shape: _Shape, target: int, cls: int, where: str
) -> NDArray[np.float64]:
    """Returns the leaf values (leaves, outputs). In leaf vectors, padding beyond a target's number of classes is
    removed."""
    size = int(np.prod(shape.vector))
    if size == 1:
        return np.asarray(arrays["leaf_value"][is_leaf], dtype=np.float64).reshape(-1, 1)
    begin = arrays["leaf_vector_begin"][is_leaf].astype(np.int64)
    vectors = arrays["leaf_vector"]
    inside = not len(begin) or (begin.min() >= 0 and begin.max() + size <= len(vectors))
    if len(shape.vector) != 2 or not size or not inside:
        raise ModelError(f"leaf vectors do not have shape {shape.vector}", where=where, do=DAMAGED)
    table = vectors[begin[:, np.newaxis] + np.arange(size)].reshape(-1, *shape.vector).astype(np.float64)
    columns = []
    for index, width in enumerate(shape.widths if target < 0 else [shape.widths[target]]):
        width = width if cls < 0 else 1
        if index >= shape.vector[0] or width > shape.vector[1]:
            raise ModelError(
                f"leaf vectors have shape {shape.vector}, too few for the outputs", where=where, do=DAMAGED
            )
        columns.append(table[:, index, :width])
    values = np.concatenate(columns, axis=1)
    if values.shape[1] != (count := len(_outputs(target, cls, shape.widths))):
        raise ModelError(f"{values.shape[1]} leaf values for {count} outputs", where=where, do=DAMAGED)
    return values
