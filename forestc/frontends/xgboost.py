"""XGBoost 1.7 to 3.x: `.json` and `.ubj` files without the library, live Boosters and estimators.

What the library does, and this keeps: rows and thresholds are float32 and compared with `<`; a
missing value goes where the node says; margins are summed in float32, from the base score up, tree
after tree. Live objects are saved to UBJSON in memory and read like a file: one path for all.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from forestc.errors import ModelError
from forestc.forest.builder import make_forest, make_tree, read_features
from forestc.forest.ir import (
    LEAF,
    Aggregate,
    Decision,
    Feature,
    Forest,
    Label,
    Link,
    LinkKind,
    Provenance,
    Tree,
)
from forestc.forest.numbers import FLOAT32
from forestc.frontends.document import Document, read_document
from forestc.frontends.ubjson import parse_ubjson

# Objective -> link from margin to prediction. The link also says how base_score, which files keep
# as a prediction, becomes a margin.
LINKS: dict[str, LinkKind] = {
    "binary:logistic": "sigmoid",
    "reg:logistic": "sigmoid",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    "reg:squarederror": "identity",
    "reg:linear": "identity",
    "reg:squaredlogerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:absoluteerror": "identity",
    "count:poisson": "exp",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
}

# The smallest float32 margin whose float32 sigmoid exceeds 0.5, which is what the library's class 1
# means: 1.5 * 2^-24 and one step, found by bisection over the margins of XGBoost 1.7 to 3.2.
CLASS_1_MARGIN = float.fromhex("0x1.800002p-24")

CLIPS_BASE_SCORE = (3, 2)  # from this version on, 0 and 1 are taken as probabilities and clipped

MAX_FEATURES = 1 << 20
MAX_CLASSES = 1 << 16
MAX_TREES = 1 << 20
_DELETED = 0x7FFFFFFF


def read_json(data: bytes, where: str) -> Forest:
    """A Forest from the bytes of a `.json` model. Raises ModelError."""
    return _forest(read_document(data, where), hashlib.sha256(data).hexdigest(), where)


def read_ubj(data: bytes, where: str) -> Forest:
    """A Forest from the bytes of a `.ubj` model. Raises ModelError."""
    return _forest(parse_ubjson(data, where), hashlib.sha256(data).hexdigest(), where)


def read_live(model: Any) -> Forest:
    """A Forest from a Booster or a scikit-learn-style estimator, trained with or without early stopping.

    An estimator predicts with the trees up to its best iteration if it knows one, and so does the
    Forest; a Booster with all of its trees. Raises ModelError.
    """
    where = f"XGBoost {type(model).__name__}"
    booster, labels = model, None
    if hasattr(model, "get_booster"):
        if not model.__sklearn_is_fitted__():
            raise ModelError("the estimator is not fitted", where=where, do="call fit first")
        booster = model.get_booster()
        labels = getattr(model, "classes_", None)
        absent = getattr(model, "missing", None)
        if absent is not None and not math.isnan(float(absent)):
            raise ModelError(
                f"the estimator takes {absent!r} for missing",
                where=where,
                do="use NaN for missing values and train again",
            )
        best = booster.attr("best_iteration")
        if best is not None:
            booster = booster[: int(best) + 1]
    forest = read_ubj(bytes(booster.save_raw("ubj")), where)
    if labels is not None:
        if not forest.classes:
            raise ModelError("a classifier with a regression objective", where=where, do="use binary:logistic")
        forest = replace(forest, classes=_labels(labels))
    return forest


def _labels(labels: Any) -> tuple[Label, ...]:
    return tuple(label.item() if isinstance(label, np.generic) else label for label in labels)


def _forest(document: Any, digest: str, where: str) -> Forest:
    root = Document(document, "", where)
    learner = root.get("learner")
    objective = learner.get("objective").get("name").text()
    if objective not in LINKS:
        raise learner.fail(f"objective {objective[:60]!r} is not known", "known: " + ", ".join(sorted(LINKS)))
    booster = learner.get("gradient_booster")
    kind = booster.get("name").text() if booster.has("name") else "gbtree"
    if kind != "gbtree":
        raise booster.fail(f"booster {kind[:40]!r} is not read", "train with booster=gbtree")
    params = learner.get("learner_model_param")
    columns = params.get("num_feature").integer(1, MAX_FEATURES)
    classes = params.get("num_class").integer(0, MAX_CLASSES)
    if params.has("num_target") and params.get("num_target").integer(0, MAX_CLASSES) > 1:
        raise params.fail("the model has several targets", "train one model a target")
    outputs = max(1, classes)
    multi = objective.startswith("multi:")
    if multi != (classes >= 2):
        raise params.fail(f"objective {objective} with num_class {classes}")
    version = tuple(root.get("version").array(np.int64).tolist()) if root.has("version") else ()
    bias = _base_margin(params.get("base_score"), LINKS[objective], outputs, version)
    names = _feature_names(learner, columns)
    model = booster.get("model")
    groups = model.get("tree_info").array(np.int64)
    docs = model.get("trees").items()
    told = learner.get("attributes").value if learner.has("attributes") else {}
    if isinstance(told, Mapping) and "scikit_learn" in told and "best_iteration" in told:
        # saved by an estimator, which predicts with its best iteration; a Booster predicts with all
        parallel = model.get("gbtree_model_param").get("num_parallel_tree").integer(1, MAX_TREES)
        best = learner.get("attributes").get("best_iteration").integer(0, MAX_TREES)
        kept = (best + 1) * parallel * outputs
        docs, groups = docs[:kept], groups[:kept]
    if not outputs <= len(docs) <= MAX_TREES or len(groups) != len(docs):
        raise model.fail(f"has {len(docs)} trees and {len(groups)} entries in tree_info for {outputs} outputs")
    trees = []
    for index, doc in enumerate(docs):
        if not 0 <= groups[index] < outputs:
            raise model.fail(f"tree {index} feeds class {groups[index]} of {outputs}")
        trees.append(_tree(doc, index, int(groups[index]), columns))
    decision = Decision("none")
    if objective == "binary:logistic":
        decision = Decision("threshold", CLASS_1_MARGIN)
    elif multi:
        # softmax compares margins; softprob gives probabilities, which the user compares
        decision = Decision("argmax", 0, "scores" if objective == "multi:softmax" else "values")
    labels = tuple(range(outputs if multi else 2)) if decision.kind != "none" else ()
    features, trees = read_features(
        trees,
        columns,
        lambda column: Feature(names[column] if names else f"f{column}", FLOAT32, column, missing=True),
        where,
    )
    return make_forest(
        where=where,
        name="forest",
        features=features,
        columns=columns,
        trees=trees,
        n_outputs=outputs,
        bias=bias,
        aggregate=Aggregate("sum", "float32", bias_first=True),
        link=Link(LINKS[objective]),
        decision=decision,
        classes=labels,
        provenance=Provenance("xgboost", ".".join(map(str, version)), digest),
    )


def _base_margin(doc: Document, link: LinkKind, outputs: int, version: tuple[int, ...]) -> list[float]:
    """base_score as margins in float32: one number up to XGBoost 3.0, '[a,b,c]' from 3.1 on."""
    text = doc.text().strip()
    parts = text[1:-1].split(",") if text.startswith("[") and text.endswith("]") else [text]
    try:
        scores = [np.float32(part) for part in parts]
    except ValueError:
        raise doc.fail(f"is no number: {text[:60]!r}") from None
    if len(scores) == 1:
        scores *= outputs
    if len(scores) != outputs or not np.isfinite(scores).all():
        raise doc.fail(f"has {len(scores)} finite numbers, the model {outputs} outputs")
    if link == "sigmoid":
        if version >= CLIPS_BASE_SCORE and all(0 <= score <= 1 for score in scores):
            scores = [min(max(score, np.float32(1e-6)), np.float32(1) - np.float32(1e-6)) for score in scores]
        if not all(0 < score < 1 for score in scores):
            raise doc.fail(f"is no probability: {text[:60]!r}")
        # -logf(1/p - 1) with float32 steps in between, as the library computes it
        odds = [np.float32(1) / score - np.float32(1) for score in scores]
        return [float(np.float32(-math.log(x))) if x > 0 else math.inf for x in odds]
    if link == "exp":
        if not all(score > 0 for score in scores):
            raise doc.fail(f"is not positive: {text[:60]!r}")
        return [float(np.float32(math.log(score))) for score in scores]
    return [float(score) for score in scores]


def _feature_names(learner: Document, columns: int) -> list[str]:
    """The columns' names; empty where the model has none."""
    if not learner.has("feature_names"):
        return []
    names = [item.text() for item in learner.get("feature_names").items()]
    if names and len(names) != columns:
        raise learner.fail(f"has {len(names)} feature names for {columns} features")
    return names


def _tree(doc: Document, index: int, group: int, columns: int) -> Tree:
    if doc.get("tree_param").get("size_leaf_vector").integer(0, MAX_CLASSES) > 1:
        raise doc.fail("has vector leaves", "train with multi_strategy=one_output_per_tree")
    left = doc.get("left_children").array(np.int64)
    n = len(left)
    columns_of = {
        key: doc.get(key).array(dtype)
        for key, dtype in (
            ("right_children", np.int64),
            ("split_indices", np.int64),
            ("split_conditions", np.float32),
            ("default_left", np.int64),
            ("sum_hessian", np.float64),
        )
    }
    for key, array in columns_of.items():
        if len(array) != n:
            raise doc.fail(f"has {len(array)} {key} for {n} nodes")
    right = columns_of["right_children"]
    if doc.has("split_type") and doc.get("split_type").array(np.int64).any():
        raise doc.fail("has a categorical split", "train without enable_categorical")
    # Pruned nodes stay in the arrays, marked by this feature and reached by nobody.
    kept = columns_of["split_indices"] != _DELETED
    if n and not kept[0]:
        raise doc.fail("the root is deleted")
    inside = (left >= LEAF) & (left < n) & (right >= LEAF) & (right < n)
    if not inside.all():
        raise doc.fail(f"node {int(np.flatnonzero(~inside)[0])} has a child outside the {n} nodes")
    number = np.where(kept, np.cumsum(kept) - 1, n)  # of a deleted node: out of range, refused below
    left = np.where(left == LEAF, LEAF, number[left])[kept]
    right = np.where(right == LEAF, LEAF, number[right])[kept]
    conditions = columns_of["split_conditions"][kept].astype(np.float64)
    is_leaf = left == LEAF
    feature = columns_of["split_indices"][kept]
    if (bad := ~is_leaf & ((feature < 0) | (feature >= columns))).any():
        node = int(np.flatnonzero(kept)[np.flatnonzero(bad)[0]])
        raise doc.fail(f"node {node} splits on feature {int(feature[bad][0])} of {columns}")
    return make_tree(
        where=f"{doc.where}, tree {index}",
        feature=np.where(is_leaf, LEAF, feature),
        threshold=conditions,
        left=left,
        right=right,
        values=conditions[is_leaf].reshape(-1, 1),
        outputs=[group],
        missing_left=columns_of["default_left"][kept] != 0,
        cover=columns_of["sum_hessian"][kept],
        ids=np.flatnonzero(kept),
    )
