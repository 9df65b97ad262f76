"""Reads a tree of an XGBoost document, stored as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import DAMAGED, HERE, ModelError
from forestc.forest.builder import changed, changed_tree, make_tree
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import MAX_CATEGORIES, Category
from forestc.frontends.shared.document import Document

_DELETED = 0x7FFFFFFF  # marks a deleted node, as its feature: `RegTree::kDeletedNodeMarker` in XGBoost's source
RightCodes: TypeAlias = Mapping[int, NDArray[np.int64]]  # node -> the category codes that go right; others go left


def read_tree(
    doc: Document,
    where: str,
    outputs: tuple[int, ...],
    columns: int,
    right_codes: RightCodes,
    categories: Mapping[int, int],
    weight: np.float32 | None,
    base: NDArray[np.float32] | None,
) -> Tree:
    """Reads the tree of a document. Raises ModelError.
    categories: column -> number of codes.
    weight: dart's factor for leaves, or None.
    base: base score; with a weight, leaf values are first rounded by adding and subtracting it. None for no rounding.
    """
    size = doc.get("tree_param").get("size_leaf_vector").integer(0, 1 << 16)
    if size > 1 and size != len(outputs):
        raise doc.fail(f"has leaves of {size} values for {len(outputs)} outputs")
    left = doc.get("left_children").array(np.int32)
    n = len(left)
    arrays = {
        key: doc.get(key).array(dtype)
        for key, dtype in (
            ("right_children", np.int32),
            ("split_indices", np.int32),
            ("split_conditions", np.float32),
            ("default_left", np.int8),
        )
    }
    if doc.has("sum_hessian"):
        arrays["sum_hessian"] = doc.get("sum_hessian").array(np.float64)
    for key, array in arrays.items():
        if len(array) != n:
            raise doc.fail(f"has {len(array)} {key} for {n} nodes")
    right, columns_of = arrays["right_children"], arrays["split_indices"]
    # Pruned nodes stay in the arrays, unreachable, with `_DELETED` as their feature.
    present = columns_of != _DELETED
    if n and not present[0]:
        raise doc.fail("the root is deleted")
    is_leaf = left == LEAF
    if n and size > 1:  # Newer files store the index of a vector leaf in place of its right child.
        values = _vectors(doc, is_leaf & present, right, size)
        right = np.where(is_leaf, LEAF, right)
    else:
        values = arrays["split_conditions"][is_leaf & present].reshape(-1, 1)
    for child in (left, right):
        if n and not (child.min() >= LEAF and child.max() < n):
            outside = np.flatnonzero((child < LEAF) | (child >= n))
            raise doc.fail(f"node {int(outside[0])} has a child outside the {n} nodes")
    if weight is not None:
        start = None if base is None else base[list(outputs)]
        values = (values if start is None else (start + values) - start) * weight
    ids = np.arange(n, dtype=np.int32)
    if not present.all():
        number = np.where(present, np.cumsum(present) - 1, n)  # The builder refuses n, for deleted nodes.
        left = np.where(is_leaf, LEAF, number[left])[present]
        right = np.where(right == LEAF, LEAF, number[right])[present]
        right_codes = {int(number[node]): codes for node, codes in right_codes.items() if present[node]}
        ids, is_leaf, columns_of = ids[present], is_leaf[present], columns_of[present]
        arrays = {key: array[present] for key, array in arrays.items()}
    feature = np.where(is_leaf, LEAF, columns_of)
    if n and not (feature.min() >= LEAF and feature.max() < columns):
        bad = np.flatnonzero((feature < LEAF) | (feature >= columns))[0]
        raise doc.fail(f"node {int(ids[bad])} splits on feature {int(feature[bad])} of {columns}")
    threshold = arrays["split_conditions"]
    set_index = np.full(len(left), NO_SET, dtype=np.int32)
    sets: list[Sequence[Member]] = []
    for node in np.flatnonzero(np.isin(feature, list(categories)) & ~is_leaf).tolist() if categories else []:
        column = int(feature[node])
        if node not in right_codes:
            what = f"column {column} is split as a number and as a category"
            raise ModelError(what, where=f"{where}, node {int(ids[node])}", do=DAMAGED)
        set_index[node] = len(sets)
        sets.append(np.setdiff1d(np.arange(categories[column] + 1), right_codes[node]).tolist())
    return make_tree(
        where=where,
        feature=feature,
        threshold=np.where(set_index == NO_SET, threshold, np.float32(0)) if sets else threshold,
        left=left,
        right=right,
        values=values,
        outputs=outputs,
        missing_left=arrays["default_left"] != 0,
        set_index=set_index,
        sets=sets,
        cover=arrays.get("sum_hessian"),
        ids=ids,
    )


def _vectors(doc: Document, leaves: NDArray[np.bool_], right: NDArray[Any], size: int) -> NDArray[np.float32]:
    """Returns vector leaves, (leaves, size), from leaf_weights (since XGBoost 3.2) or base_weights."""
    key, row_of = ("leaf_weights", right) if doc.has("leaf_weights") else ("base_weights", np.arange(len(right)))
    weights = doc.get(key).array(np.float32)
    if len(weights) % size:
        raise doc.fail(f"has {len(weights)} {key} for leaves of {size} values")
    table = weights.reshape(-1, size)
    rows = row_of[leaves]
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(table)):
        raise doc.fail(f"a leaf is outside the {len(table)} {key}")
    return np.asarray(table[rows], dtype=np.float32)


def read_codes(doc: Document, columns: int, categories: dict[int, int]) -> RightCodes:
    """Reads the category codes that go right at each node with a set. categories: updated with the number of codes of
    each categorical column. Raises ModelError."""
    if not (kinds := doc.get("split_type", []).array(np.int64)).any():
        return {}
    columns_of = doc.get("split_indices").array(np.int32)
    codes = doc.get("categories").array(np.int64)
    nodes, starts, sizes = (doc.get(f"categories_{key}").array(np.int64) for key in ("nodes", "segments", "sizes"))
    if not len(nodes) == len(starts) == len(sizes) or len(kinds) != len(columns_of):
        raise doc.fail("has categories of different lengths")
    if not np.array_equal(np.sort(nodes), np.flatnonzero(kinds == 1)) or not np.isin(kinds, (0, 1)).all():
        raise doc.fail("has categories for nodes other than those that split on them")
    if ((starts < 0) | (sizes < 0) | (starts + sizes > len(codes))).any():
        raise doc.fail(f"a set of categories is outside the {len(codes)} categories")
    if len(codes) and not (codes.min() >= 0 and codes.max() < MAX_CATEGORIES):
        raise doc.fail(f"a category is outside 0 to {MAX_CATEGORIES - 1}")
    result = {}
    for node, start, size in zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        chosen = codes[start : start + size]
        column = int(columns_of[node])
        if not 0 <= column < columns:
            raise doc.fail(f"node {node} splits on feature {column} of {columns}")
        result[node] = chosen
        categories[column] = max(categories.get(column, 1), int(chosen.max(initial=0)) + 1)
    return result


def marked_missing(forest: Forest, marker: float) -> Forest:
    """Returns the forest changed so that `marker`, like NaN, counts as missing."""
    with np.errstate(over="ignore"):
        value = float(np.float32(marker))
        above = float(np.nextafter(np.float32(value), np.float32(np.inf)))
    trees = []
    for tree in forest.trees:
        sets, set_index, threshold = list(tree.sets), np.array(tree.set_index), np.array(tree.threshold)
        for node in tree.inner.tolist():
            number = forest.features[tree.feature[node]].number
            goes = bool(tree.missing_left[node])
            if isinstance(number, Category):
                code = int(value) if 0 <= value < number.count else number.count
                old = set(sets[set_index[node]])
                if value != np.floor(value) or code == number.count:
                    raise ModelError(
                        f"missing={marker} in a column of categories", where=HERE, do="use NaN for missing values"
                    )
                members = sorted((old | {code}) if goes else (old - {code}))
            elif (value < threshold[node]) == goes:
                continue
            else:  # These cuts flip the side of the marker alone: equal cuts cancel.
                cuts = [-np.inf, float(threshold[node]), value, *[above] * (above > value)]
                members = sorted(cut for cut in cuts if cuts.count(cut) == 1)
                threshold[node] = 0.0
            set_index[node] = len(sets)
            sets.append(tuple(members))
        trees.append(changed_tree(tree, sets=tuple(sets), set_index=set_index, threshold=threshold))
    return changed(forest, trees=tuple(trees))
