"""Reads the trees of a CatBoost export: oblivious ones, which have one split a level, and nested ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.builder import make_tree
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Tree
from forestc.frontends.catboost.columns import NO_CODES, SPLIT, Columns
from forestc.frontends.shared.document import Document

MAX_DEPTH = 16  # bounds an oblivious tree's depth, as CatBoost's documentation does
_LEAF = (0, 0.0, False, NO_CODES)  # stands for a split at a leaf


def _split(fields: object, columns: Columns, tree: Document, node: int) -> tuple[int, float, bool, int]:
    fields = fields if isinstance(fields, dict) else {}
    if (kind := fields.get("split_type")) not in ("FloatFeature", "OneHotFeature", "OnlineCtr"):
        what = f"split {node} is on {str(kind)[:40]}: texts and embeddings are not read"
        raise tree.fail(what, "encode them as numbers before training")
    index = fields.get("split_index")
    if not isinstance(index, int) or not 0 <= index < len(columns.splits):
        raise tree.fail(f"split {node} has split_index {str(index)[:40]} of {len(columns.splits)}")
    if any(fields.get(key) != value for key, value in columns.exported[index].items()):
        raise tree.fail(f"split {node} has a border or feature that is not the one of its split_index")
    return columns.splits[index]


def read_oblivious(doc: Document, outputs: int, columns: Columns) -> Tree:
    fields = doc.get("splits").value
    fields = [] if fields is None else fields  # CatBoost writes null for a tree of one leaf.
    splits = [_split(split, columns, doc, k) for k, split in enumerate(fields if isinstance(fields, list) else [None])]
    depth = len(splits)
    if depth > MAX_DEPTH:
        raise doc.fail(f"has {depth} levels", f"CatBoost makes at most {MAX_DEPTH}")
    leaves, values = 1 << depth, doc.get("leaf_values").array(np.float64)
    if len(values) != leaves * outputs:
        raise doc.fail(f"has {len(values)} leaf_values for {depth} levels and {outputs} outputs")
    cover = None
    if doc.has("leaf_weights"):
        weights = doc.get("leaf_weights").array(np.float64)
        if len(weights) != leaves:
            raise doc.fail(f"has {len(weights)} leaf_weights for {leaves} leaves")
        cover = np.concatenate([weights.reshape(1 << level, -1).sum(axis=1) for level in range(depth + 1)])
    # If the last split is the root of the tree, the leaves stand in the order of their numbers.
    level = depth - 1 - np.repeat(np.arange(depth), 1 << np.arange(depth))
    inner, no_child = np.arange(leaves - 1), np.full(leaves, LEAF)
    return _tree(
        doc,
        outputs,
        np.concatenate([np.array(splits, SPLIT)[level], np.array([_LEAF] * leaves, SPLIT)]),
        (np.concatenate([2 * inner + 1, no_child]), np.concatenate([2 * inner + 2, no_child])),
        (values, cover),
        np.concatenate([inner, np.arange(leaves)]),
        columns,
    )


def _tree(
    doc: Document,
    outputs: int,
    splits: NDArray[np.void],
    children: tuple[NDArray[np.int64], NDArray[np.int64]],
    leaves: tuple[NDArray[np.float64], NDArray[np.float64] | None],
    ids: NDArray[np.int64],
    columns: Columns,
) -> Tree:
    """Builds a tree. leaves: the values of all leaves, and the nodes' covers."""
    used = np.setdiff1d(splits["chosen"], [NO_CODES])
    chosen = splits["chosen"]
    return make_tree(
        where=f"{doc.where}, {doc.path}",
        feature=splits["column"],
        threshold=splits["threshold"],
        left=children[0],
        right=children[1],
        values=leaves[0].reshape(-1, outputs),
        outputs=range(outputs),
        missing_left=splits["missing_left"],
        set_index=np.where(chosen == NO_CODES, NO_SET, np.searchsorted(used, chosen)),
        sets=[columns.codes_left(number, doc) for number in used.tolist()],
        cover=leaves[1],
        ids=ids,
    )


def read_nested(root: Document, outputs: int, columns: Columns, trained: bool) -> Tree:
    """Builds a tree from nested splits. Leaves get the numbers that CatBoost gives them."""
    splits: list[tuple[int, float, bool, int]] = []
    left: list[int] = []
    right: list[int] = []
    ids: list[int] = []
    values: list[Any] = []
    weights: list[Any] = []
    waiting: list[tuple[Any, int, list[int], int]] = [(root.value, LEAF, left, LEAF)]
    leaves = 0
    while waiting:
        fields, parent, side, leaf = waiting.pop()
        node = len(ids)
        if parent != LEAF:
            side[parent] = node
        left.append(LEAF)
        right.append(LEAF)
        if not isinstance(fields, dict) or fields.keys() & {"split", "value"} not in ({"split"}, {"value"}):
            raise root.fail(f"node {node} does not have either a split or a value")
        if "split" in fields:
            splits.append(_split(fields["split"], columns, root, node))
            ids.append(node)
            weights.append(0)
            children = []
            for child, to_child in ((fields.get("left"), left), (fields.get("right"), right)):
                early = trained and isinstance(child, dict) and "value" in child
                children.append((child, node, to_child, leaves if early else LEAF))
                leaves += early
            waiting += reversed(children)
            continue
        splits.append(_LEAF)
        ids.append(leaves if leaf == LEAF else leaf)
        leaves += leaf == LEAF
        leaf_values = fields["value"] if isinstance(fields["value"], list) else [fields["value"]]
        if len(leaf_values) != outputs:
            raise root.fail(f"node {node} has {len(leaf_values)} values for {outputs} outputs")
        values += leaf_values
        weights.append(fields.get("weight", 0))
    cover = Document(weights, f"{root.path}, weights", root.where).array(np.float64)
    for node in range(len(left) - 1, -1, -1):
        if left[node] != LEAF:
            cover[node] = cover[left[node]] + cover[right[node]]
    leaf_array = Document(values, f"{root.path}, values", root.where).array(np.float64)
    children_of = np.array(left), np.array(right)
    return _tree(root, outputs, np.array(splits, SPLIT), children_of, (leaf_array, cover), np.array(ids), columns)
