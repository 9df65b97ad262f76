"""Builds trees and forests from unchecked arrays, and freezes the arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forestc.errors import DAMAGED, HERE, ModelError
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.hashing import HashedColumn
from forestc.forest.ir import (
    LEAF,
    Aggregate,
    Combine,
    Decision,
    Feature,
    Forest,
    Label,
    Link,
    Part,
    Provenance,
    Tree,
)
from forestc.forest.tree import Draw, IntArray
from forestc.forest.verify import MEND, verify

# These bounds limit the memory and time that a file of unknown origin can take.
MAX_NODES = 1 << 28  # nodes of a tree
MAX_DEPTH = 8192  # conditions on a path
MAX_OUTPUTS = 1 << 16


def make_tree(
    *,
    where: str,
    feature: ArrayLike,
    threshold: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    values: ArrayLike,
    outputs: Sequence[int],
    leaf: ArrayLike | None = None,
    missing_left: ArrayLike | None = None,
    set_index: ArrayLike | None = None,
    sets: Sequence[Sequence[Member]] = (),
    cover: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    drawn: Draw | None = None,
    quantized: bool = False,
    words: bool = False,
) -> Tree:
    """Builds a Tree from arrays (nodes,), root first. Raises ModelError if they form no tree.

    values: leaf values (leaves, outputs).
    leaf: the row of `values` for each leaf; by default, in the order of the leaves.
    words: True if thresholds are integers.
    """
    dtype, number = np.int64 if quantized or words else np.float64, np.int64 if quantized else np.float64
    left_ = _ints(left, "left children", where)
    right_ = _ints(right, "right children", where)
    n = len(left_)
    if not 1 <= n <= MAX_NODES:
        raise ModelError(f"{n} nodes", where=where, do=f"a tree has 1 to {MAX_NODES} nodes")
    if drawn is not None and not (0 <= drawn.seed < 1 << 32 and 0 < drawn.count < 1 << 31 and 0 < drawn.rows < 1 << 31):
        raise ModelError(
            f"was trained on {drawn.count} of {drawn.rows} rows drawn by seed {drawn.seed}", where=where, do=DAMAGED
        )
    numbers = np.arange(n, dtype=np.int32) if ids is None else _ints(ids, "node ids", where)
    is_leaf = left_ == LEAF
    feature_ = _ints(feature, "features", where)
    leaf_ = np.cumsum(is_leaf, dtype=np.int32) - 1 if leaf is None else _ints(leaf, "leaf rows", where)
    arrays: dict[str, NDArray[Any]] = {
        "right children": right_,
        "features": feature_,
        "thresholds": _array(threshold, dtype, "thresholds", where),
        "missing directions": np.zeros(n, dtype=bool)
        if missing_left is None
        else _array(missing_left, np.bool_, "missing directions", where),
        "sets": np.full(n, NO_SET, dtype=np.int32) if set_index is None else _ints(set_index, "sets", where),
        "leaf rows": leaf_,
        "node ids": numbers,
    }
    cover_ = None if cover is None else _array(cover, np.float64, "covers", where, copy=True)
    if cover_ is not None:
        arrays["covers"] = cover_
    for name, array in arrays.items():
        if array.shape != (n,):
            raise ModelError(f"{len(array)} {name} for {n} nodes", where=where, do=DAMAGED)
    _refuse_non_tree(left_, right_, numbers, where)
    # `_ints` has copied these arrays, so the caller's arrays stay unchanged.
    feature_[is_leaf] = LEAF
    if leaf is None:
        leaf_[~is_leaf] = LEAF
    arrays["sets"][is_leaf] = NO_SET
    return Tree(
        feature=_readonly(feature_),
        threshold=_readonly(np.where(is_leaf, dtype(0), arrays["thresholds"])),
        set_index=_readonly(arrays["sets"]),
        sets=tuple(_members(members, where) for members in sets),
        left=_readonly(left_),
        right=_readonly(right_),
        missing_left=_readonly(arrays["missing directions"] & ~is_leaf),
        leaf=_readonly(leaf_),
        values=_readonly(np.atleast_2d(_array(values, number, "leaf values", where, copy=True))),
        outputs=tuple(int(k) for k in outputs),
        cover=None if cover_ is None else _readonly(cover_),
        ids=_readonly(numbers),
        drawn=drawn,
    )


def _refuse_non_tree(left: IntArray, right: IntArray, ids: IntArray, where: str) -> None:
    n = len(left)
    is_leaf = left == LEAF

    def fail(nodes: NDArray[np.bool_], what: str) -> ModelError:
        return ModelError(what, where=f"{where}, node {int(ids[np.flatnonzero(nodes)[0]])}", do=DAMAGED)

    for child, side in ((left, "left"), (right, "right")):
        if child.min() < LEAF or child.max() >= n:
            bad = (child < LEAF) | (child >= n)
            raise fail(bad, f"{side} child {int(child[bad][0])} is outside the {n} nodes")
    if (bad := is_leaf != (right == LEAF)).any():
        raise fail(bad, "has one child only")
    inner = np.flatnonzero(~is_leaf)
    children = np.concatenate([left[inner], right[inner]])
    parents = np.bincount(children, minlength=n)
    if parents[0] == 0 and int(parents.max(initial=0)) <= 1 and len(children) == n - 1:
        pass  # the usual case: every node but the root has one parent
    elif parents[0]:
        raise fail(np.isin(np.arange(n), children[children == 0]), "the root is a child of another node: a cycle")
    elif (bad := parents > 1).any():
        raise fail(bad, "has two parents")
    else:
        orphan = parents == 0
        orphan[0] = False
        raise fail(orphan, "is an orphan: no node leads to it")
    ascending = bool((children[: n // 2] > inner).all() and (children[n // 2 :] > inner).all())
    if ascending and len(inner) <= MAX_DEPTH:
        return  # Children come after their parents, so there is no cycle. No path is longer than MAX_DEPTH.
    levels = [np.zeros(1, dtype=np.int32)]
    while len(levels[-1]):
        if len(levels) > MAX_DEPTH + 1:
            raise ModelError(f"is deeper than {MAX_DEPTH} conditions", where=where, do="train with a max_depth")
        at = levels[-1][left[levels[-1]] != LEAF]
        levels.append(np.concatenate([left[at], right[at]]))
    if sum(map(len, levels)) < n:  # As each node has one parent, unreached ones lie on cycles.
        missed = np.ones(n, dtype=bool)
        missed[np.concatenate(levels)] = False
        raise fail(missed, "lies on a cycle")


def read_features(
    trees: Sequence[Tree], columns: int, make: Callable[[int], Feature], where: str
) -> tuple[list[Feature], list[Tree]]:
    """Returns a list of the features that conditions read, and a list of the trees with indices into it instead of
    columns. Raises ModelError for a column outside the rows."""
    for index, tree in enumerate(trees):
        low, high = int(tree.feature.min()), int(tree.feature.max())
        if low < LEAF or high >= columns or (low == LEAF and (tree.feature[tree.inner] == LEAF).any()):
            bad = high if high >= columns else low
            raise ModelError(f"a condition reads column {bad} of {columns}", where=f"{where}, tree {index}", do=DAMAGED)
    index_of = np.full(max((int(tree.feature.max()) for tree in trees), default=0) + 2, LEAF, dtype=np.int32)
    for tree in trees:
        index_of[tree.feature] = 0
    index_of[LEAF] = LEAF  # A leaf's -1 indexes the last entry.
    read = np.flatnonzero(index_of == 0)
    index_of[read] = np.arange(len(read))
    features = [make(int(column)) for column in read]
    return features, [replace(tree, feature=_readonly(index_of[tree.feature])) for tree in trees]


def make_forest(
    *,
    name: str,
    features: Sequence[Feature],
    columns: int,
    trees: Sequence[Tree],
    n_outputs: int,
    bias: ArrayLike | None = None,
    aggregate: Aggregate | None = None,
    link: Link | None = None,
    decision: Decision | None = None,
    classes: Sequence[Label] = (),
    scale: float | None = None,
    provenance: Provenance | None = None,
    parts: Sequence[Part] = (),
    combine: Combine | None = None,
    carried: Sequence[int] = (),
    hashed: Sequence[HashedColumn] = (),
    where: str = "",
) -> Forest:
    """Builds and verifies a Forest. By default, scores are sums of the trees' values. where: the file that errors name.
    Raises ModelError for an invalid forest."""
    if not 1 <= n_outputs <= MAX_OUTPUTS:
        raise ModelError(f"{n_outputs} outputs", where=HERE, do=f"a forest has 1 to {MAX_OUTPUTS}")
    dtype = np.float64 if scale is None else np.int64
    forest = Forest(
        name=name,
        features=tuple(features),
        columns=columns,
        trees=tuple(trees),
        n_outputs=n_outputs,
        aggregate=aggregate or Aggregate(),
        bias=_frozen(np.atleast_1d(_array(np.zeros(n_outputs) if bias is None else bias, dtype, "biases", name))),
        link=link or Link(),
        decision=decision or Decision("none"),
        classes=tuple(classes),
        scale=scale,
        provenance=provenance or Provenance(),
        parts=tuple(parts),
        combine=combine or Combine(),
        carried=tuple(carried),
        hashed=tuple(hashed),
    )
    try:
        return changed(forest, parts=tuple(parts))
    except ModelError as error:
        location = ", ".join(part for part in (where, error.where) if part)
        raise ModelError(error.what, where=location, do=error.do) from None


def changed(forest: Forest, **fields: Any) -> Forest:
    """Returns the forest with some fields replaced, and verifies it. A single new part also sets the forest's own
    `link`, `decision` and so on. Raises ModelError for an invalid forest."""
    if "bias" in fields:
        fields["bias"] = _frozen(np.asarray(fields["bias"]))
    if len(fields.get("parts", ())) == 1 and fields.get("combine", forest.combine).kind == "each":
        (part,) = fields["parts"]
        outputs = fields.get("n_outputs", forest.n_outputs)
        if (part.start, part.stop) != (0, outputs):
            raise ModelError(f"the part holds outputs {part.start} to {part.stop} of {outputs}", where=HERE, do=MEND)
        fields |= {name: getattr(part, name) for name in ("aggregate", "link", "decision", "classes")}
        fields["scale"] = None if fields.get("scale", forest.scale) is None else part.scale
    result = replace(forest, **fields)
    verify(result)
    return result


def changed_tree(tree: Tree, **arrays: Any) -> Tree:
    """Returns the tree with some fields replaced; new arrays are copied and read-only. Nothing checks that the nodes
    form a tree."""
    fields: dict[str, Any] = {}
    for key, value in arrays.items():
        fields[key] = _frozen(value) if isinstance(value, np.ndarray) else value
    return replace(tree, **fields)


def _members(members: Sequence[Member], where: str) -> tuple[Member, ...]:
    distinct, kinds = (
        set(members),
        set(map(type, members)),
    )  # Checking types rather than members is fast for thousands of members.
    if any(issubclass(kind, np.generic) for kind in kinds):
        distinct = {member.item() if isinstance(member, np.generic) else member for member in members}
        kinds = set(map(type, distinct))
    if not all(issubclass(kind, int | float) for kind in kinds) or (
        any(issubclass(kind, float) for kind in kinds) and any(member != member for member in distinct)
    ):
        raise ModelError("a set holds what is not a number", where=where, do=DAMAGED)
    return tuple(sorted(distinct))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    return _readonly(np.array(array))  # a copy, as the caller may change the array


def _readonly(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _array(data: ArrayLike, dtype: DTypeLike, what: str, where: str, copy: bool = False) -> NDArray[Any]:
    try:
        return np.array(data, dtype=dtype) if copy else np.asarray(data, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{what} are not numbers ({error})", where=where, do=DAMAGED) from None


def _ints(data: ArrayLike, what: str, where: str) -> IntArray:
    array = np.asarray(data)
    if array.size == 0:
        return array.astype(np.int32)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ModelError(f"{what} are not a list of whole numbers", where=where, do=DAMAGED)
    if int(array.min()) < -(1 << 31) or int(array.max()) >= 1 << 31:
        raise ModelError(f"{what} do not fit 32 bits", where=where, do=DAMAGED)
    return array.astype(np.int32)
