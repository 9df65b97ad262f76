"""Reads LightGBM's JSON form, which Booster.dump_model makes, into the arrays of its text form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CUT
from forestc.forest.builder import MAX_OUTPUTS
from forestc.frontends.lightgbm.text import (
    CATEGORICAL,
    DEFAULT_LEFT,
    MAX_INT,
    MAX_TREES,
    MISSING_NAN,
    MISSING_ZERO,
    VERSIONS,
    SavedModel,
)
from forestc.frontends.shared.document import Document

# Maps the keys of a split and of a leaf in the dump to NumPy types. Other keys are not read as arrays.
SPLIT = {
    "split_index": np.int64,
    "split_feature": np.int64,
    "threshold": np.float64,
    "internal_count": np.int64,
    "decision_type": np.int64,
    "left_child": np.int64,
    "right_child": np.int64,
}
LEAF = {"leaf_index": np.int64, "leaf_value": np.float64, "leaf_count": np.int64}
MISSING = {"None": 0, "Zero": MISSING_ZERO, "NaN": MISSING_NAN}
CLIPPED = 1e300  # replaces larger and infinite thresholds in LightGBM's dumps


def parse_dump(root: Document) -> SavedModel:
    """Parses the JSON dump of a LightGBM model. Raises ModelError."""
    version = root.get("version").text()
    if version not in VERSIONS or not root.has("average_output"):
        raise root.fail(
            f"a dump of version {version[:40]!r} does not state its objective", "save the text model instead"
        )
    names = [name.text() for name in root.get("feature_names").items()]
    if root.get("max_feature_idx").integer(-1, MAX_INT) + 1 != len(names):
        raise root.fail(f"has {len(names)} feature_names, but max_feature_idx {root.get('max_feature_idx').value}")
    if not root.has("feature_infos"):
        raise root.fail("a dump of LightGBM before 3.3 lacks its columns' values", "save the text model instead")
    infos = root.get("feature_infos")
    docs = root.get("tree_info").items()
    if len(docs) > MAX_TREES:
        raise root.fail(f"has more than {MAX_TREES} trees", "train with fewer")
    trees = [_tree(doc) for doc in docs]
    for doc, tree in zip(docs, trees, strict=True):
        if (np.abs(tree["threshold"]) >= CLIPPED).any():
            raise doc.fail("a threshold of 1e300 may have been a larger one", "save the text model instead")

    def joined(key: str) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, np.int64), *(tree[key] for tree in trees)])

    return SavedModel(
        version=version,
        objective=root.get("objective", "").text(),
        classes=root.get("num_class").integer(1, MAX_OUTPUTS),
        outputs=root.get("num_tree_per_iteration").integer(1, MAX_OUTPUTS),
        average=root.get("average_output").value is True,
        names=names,
        categorical=[k for k, name in enumerate(names) if infos.has(name) and infos.get(name).get("values").items()],
        ranges=[_value_range(infos.get(name)) if infos.has(name) else None for name in names],
        pandas=root.get("pandas_categorical").value if root.has("pandas_categorical") else None,
        leaves=np.array([len(tree["leaf_value"]) for tree in trees], dtype=np.int64),
        feature=joined("split_feature"),
        threshold=joined("threshold").astype(np.float64),
        decision=joined("decision_type"),
        left=joined("left_child"),
        right=joined("right_child"),
        values=joined("leaf_value"),
        counts=(joined("internal_count"), joined("leaf_count")),
        categories=[tree["categories"] for tree in trees],
    )


def _value_range(info: Document) -> tuple[float, float]:
    codes = info.get("values").array(np.float64)
    ends = codes if len(codes) else np.array([info.get(key).value for key in ("min_value", "max_value")], dtype=object)
    values = Document(ends.tolist(), info.path, info.where).array(np.float64)
    return float(values.min()), float(values.max())


def _tree(doc: Document) -> dict[str, Any]:
    """Returns {field: array} of a tree's splits and leaves, in the order of LightGBM's split and leaf numbers."""
    splits: dict[str, list[Any]] = {key: [] for key in SPLIT}
    leaves: dict[str, list[Any]] = {key: [] for key in LEAF}
    categories: list[NDArray[np.int64]] = []
    waiting = [doc.get("tree_structure").value]

    def read(node: object, key: str) -> Any:
        if not isinstance(node, dict) or key not in node:
            raise doc.fail(f"a node has no {key!r}", CUT)
        return node[key]

    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and "leaf_const" in node:
            raise doc.fail("has linear models for leaves", "train without linear_tree")
        if not isinstance(node, dict) or "split_index" not in node:
            if not splits["split_index"] and isinstance(node, dict):  # The only leaf of a tree has no number.
                node = {"leaf_index": 0, "leaf_count": 0, **node}
            for key, column in leaves.items():
                column.append(read(node, key))
            continue
        for key in ("split_index", "split_feature", "internal_count"):
            splits[key].append(read(node, key))
        fields = [read(node, key) for key in ("decision_type", "threshold", "missing_type", "default_left")]
        kind, threshold = _condition(doc, fields, categories)
        splits["decision_type"].append(kind)
        splits["threshold"].append(threshold)
        for side in ("left_child", "right_child"):
            child = read(node, side)
            inner = isinstance(child, dict) and "split_index" in child
            number = read(child, "split_index" if inner else "leaf_index")
            if not isinstance(number, int):
                raise doc.fail(f"a node's number is {str(number)[:40]!r}")
            splits[side].append(number if inner else ~number)
            waiting.append(child)
    return {**_ordered(doc, splits, SPLIT), **_ordered(doc, leaves, LEAF), "categories": categories}


def _condition(doc: Document, fields: list[Any], categories: list[NDArray[np.int64]]) -> tuple[int, Any]:
    """Returns a split's (decision_type, threshold) as in LightGBM's text form. A set's codes are appended to
    `categories`."""
    decision, threshold, missing, default = fields
    if decision == "==":
        try:
            codes = np.unique(np.array([int(code) for code in threshold.split("||")], dtype=np.int64))
        except (ValueError, OverflowError, AttributeError):
            raise doc.fail(f"a threshold holds no categories: {str(threshold)[:40]!r}") from None
        if codes[0] < 0 or codes[-1] >= MAX_INT:
            raise doc.fail("a threshold holds a category out of range")
        categories.append(codes)
        return CATEGORICAL, len(categories) - 1
    if decision != "<=":
        raise doc.fail(f"decision_type {str(decision)[:40]!r} is not known")
    if not isinstance(missing, str) or missing not in MISSING or not isinstance(default, bool):
        raise doc.fail(f"missing_type {str(missing)[:40]!r} with default_left {str(default)[:40]} is not known")
    return MISSING[missing] | DEFAULT_LEFT * default, threshold


def _ordered(doc: Document, lists: dict[str, list[Any]], kinds: dict[str, Any]) -> dict[str, NDArray[Any]]:
    tree_path = f"{doc.path}.tree_structure"
    arrays = {key: Document(lists[key], f"{tree_path}, {key}", doc.where).array(kind) for key, kind in kinds.items()}
    numbers = next(iter(arrays.values()))
    order = np.argsort(numbers, kind="stable")
    if not np.array_equal(numbers[order], np.arange(len(order))):
        raise doc.fail(f"{next(iter(arrays))} does not number 0 to {len(order) - 1}")
    return {key: array[order] for key, array in arrays.items()}
