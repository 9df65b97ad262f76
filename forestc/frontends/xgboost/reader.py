"""Reads XGBoost 1.7 to 3.x: `.json` and `.ubj` files without the library, fitted Boosters and estimators.

Rows and thresholds are float32 and compared with `<`. Margins are summed in float32, from the base score, tree by tree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.builder import MAX_OUTPUTS, changed
from forestc.forest.ir import Aggregate, Decision, Feature, Forest, Label, Link, LinkKind, Part, Provenance
from forestc.forest.numbers import FLOAT32, Category
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.shared.assemble import ScoreMeaning, assembled
from forestc.frontends.shared.document import Document
from forestc.frontends.shared.exact import expm1f, labels_of, logf
from forestc.frontends.shared.iterations import BEST, Iterations, taken
from forestc.frontends.shared.ubjson import parse_ubjson
from forestc.frontends.xgboost.trees import marked_missing, read_codes, read_tree

if TYPE_CHECKING:
    from xgboost import Booster, XGBModel

# Maps an objective to its link. Models of several expectiles or quantiles override it.
LINKS: dict[str, LinkKind] = {
    **dict.fromkeys(("binary:logistic", "reg:logistic"), "sigmoid"),
    **dict.fromkeys(("multi:softmax", "multi:softprob"), "softmax"),
    **dict.fromkeys(("reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror"), "identity"),
    **dict.fromkeys(("reg:absoluteerror", "reg:quantileerror", "reg:expectileerror", "binary:logitraw"), "identity"),
    **dict.fromkeys(("rank:pairwise", "rank:ndcg", "rank:map"), "identity"),
    "binary:hinge": "step",
    **dict.fromkeys(("survival:cox", "survival:aft", "count:poisson", "reg:gamma", "reg:tweedie"), "exp"),
}

# XGBoost 1.7 to 3.2 predicts class 1 if the float32 sigmoid exceeds 0.5.
CLASS_1_MARGIN = float.fromhex("0x1.800002p-24")

CLIPS_BASE_SCORE = (3, 2)  # starts with the version that clips the probabilities 0 and 1

SORTS_QUANTILES = (3, 4)  # starts with the version that predicts several quantiles in ascending order

EPSILON = np.float32(1e-6)  # bounds the gap between two expectiles from below: XGBoost's kRtEps

MAX_TREES = 1 << 20  # limits the trees that a damaged file can claim

# Remedy in the error message if the model names no best iteration.
NO_BEST = "train with early stopping, whose result XGBoost saves, or give the number of iterations"


def read_live(model: Booster | XGBModel, iterations: Iterations = None) -> Forest:
    """Reads a Booster or a scikit-learn-style estimator into a Forest. By default it reads the trees that the model
    predicts with. Raises ForestcError."""
    where = f"XGBoost {type(model).__name__}"
    estimator = hasattr(model, "get_booster")
    if estimator and not model.__sklearn_is_fitted__():
        raise ModelError("the estimator is not fitted", where=where, do="call fit first")
    booster = model.get_booster() if estimator else model
    forest = read_saved(parse_ubjson(bytes(booster.save_raw("ubj")), where), where, iterations, estimator)
    if not estimator:
        return forest
    absent = getattr(model, "missing", None)
    if absent is not None and not math.isnan(float(absent)):
        forest = marked_missing(forest, float(absent))
    if hasattr(model, "n_classes_") or type(model).__name__ in ("XGBClassifier", "XGBRFClassifier"):
        return _labeled(forest, labels_of(model.classes_), where) if forest.single else forest
    return forest


def _labeled(forest: Forest, labels: tuple[Label, ...], where: str) -> Forest:
    """Returns the forest with class labels; a regression also gets a threshold at a prediction of 0.5."""
    if forest.classes:
        return changed(forest, classes=labels)
    least = {
        "identity": float(np.nextafter(np.float32(0.5), np.float32(1))),
        "step": float(np.nextafter(np.float32(0), np.float32(1))),
        "sigmoid": CLASS_1_MARGIN,
    }.get(forest.link.kind)
    if forest.n_outputs != 1 or least is None or len(labels) != 2:
        raise ModelError("a classifier with a regression objective", where=where, do="use binary:logistic")
    return changed(forest, classes=labels, decision=Decision("threshold", least))


def read_saved(document: object, where: str, iterations: Iterations = None, estimator: bool = False) -> Forest:
    """Reads a parsed document into a Forest. estimator: True to predict as a scikit-learn-style estimator; files that
    estimators saved imply it. Raises ForestcError."""
    root = Document(document, "", where)
    learner = root.get("learner")
    objective = learner.get("objective").get("name").text()
    if objective not in LINKS:
        raise learner.fail(
            f"objective {objective[:60]!r} is not known", "train with one of " + ", ".join(sorted(LINKS))
        )
    params = learner.get("learner_model_param")
    columns, outputs = params.get("num_feature").integer(1, MAX_COLUMNS), _outputs(params, objective)
    version = tuple(root.get("version", []).array(np.int64).tolist())
    link = "rising" if objective == "reg:expectileerror" and outputs > 1 else LINKS[objective]
    bias = _base_margin(params.get("base_score"), link, outputs, version)
    if objective == "reg:quantileerror" and version >= SORTS_QUANTILES and outputs > 1:
        link = "sorted"
    attributes = learner.get("attributes", {}).value
    saved_by_estimator = isinstance(attributes, Mapping) and "scikit_learn" in attributes
    estimator |= saved_by_estimator
    model, weights, past_base = _booster(learner.get("gradient_booster"))
    docs, feeds = _all_trees(model, outputs)
    best = _best_iteration(attributes, learner, needed=estimator or iterations == BEST)
    notes: tuple[str, ...] = ()
    if best is not None or iterations is not None:
        per_iteration = model.get("gbtree_model_param").get("num_parallel_tree", 1).integer(1, MAX_TREES)
        per_iteration *= 1 if len(feeds[0]) > 1 else outputs
        count, notes = taken(iterations, len(docs) // per_iteration, best, where, stops=estimator, unknown=NO_BEST)
        docs, feeds = docs[: count * per_iteration], feeds[: count * per_iteration]
    if weights is not None and len(weights) < len(docs):
        raise model.fail(f"has {len(weights)} weights for {len(docs)} trees")
    categories: dict[int, int] = {}
    codes = [read_codes(doc, columns, categories) for doc in docs]
    names = _feature_names(learner, columns)
    labels, unread = _category_names(model, categories, columns, in_bytes=version >= (3, 4))
    called = (names[column] if names else f"column {column}" for column in unread)
    notes += tuple(
        f"{name}: names beyond ASCII are not read, so rows hold codes; save the model by XGBoost 3.4 to give names"
        for name in called
    )
    # Estimators use inplace_predict. It adds and subtracts the base score, which rounds the leaf values.
    base = np.asarray(bias, dtype=np.float32) if estimator and past_base else None
    scales = [None] * len(docs) if weights is None else list(weights[: len(docs)])
    trees = [
        read_tree(doc, f"{where}, tree {index}", fed, columns, right_codes, categories, scale, base)
        for index, (doc, fed, right_codes, scale) in enumerate(zip(docs, feeds, codes, scales, strict=True))
    ]

    def feature(column: int) -> Feature:
        name = names[column] if names else f"f{column}"
        if column in categories:
            number = Category(categories[column], "floor")
            return Feature(name, number, column, True, labels=labels.get(column, ()), named=bool(names))
        return Feature(name, FLOAT32, column, missing=True, named=bool(names))

    aggregate = Aggregate("sum", "float32")
    width = 1 if objective == "binary:logistic" else outputs  # Several outputs of binary:logistic are several targets.
    decided = Link(link), *_decision(objective, outputs)
    parts = [Part(start, start + width, aggregate, *decided) for start in range(0, outputs, width)]
    meaning: ScoreMeaning = {"n_outputs": outputs, "bias": bias, "aggregate": aggregate, "parts": parts}
    provenance = Provenance("xgboost", ".".join(map(str, version)), notes=notes)
    forest = assembled(trees, columns, feature, provenance, where, **meaning)
    if saved_by_estimator and _is_classifier(attributes["scikit_learn"]) and forest.single and not forest.classes:
        return _labeled(forest, (0, 1), where)
    return forest


def _outputs(params: Document, objective: str) -> int:
    classes = params.get("num_class").integer(0, MAX_OUTPUTS)
    targets = params.get("num_target", 1).integer(0, MAX_OUTPUTS)
    if objective.startswith("multi:") != (classes >= 2) or min(classes, targets) > 1:
        raise params.fail(f"objective {objective} with num_class {classes} and num_target {targets}")
    return max(1, classes, targets)


def _best_iteration(attributes: object, learner: Document, needed: bool) -> int | None:
    """Returns the best iteration, counted from 1, or None. needed: True to raise ModelError for an invalid value."""
    if not isinstance(attributes, Mapping) or "best_iteration" not in attributes:
        return None
    try:
        return learner.get("attributes").get("best_iteration").integer(0, MAX_TREES) + 1
    except ModelError:
        if needed:
            raise
        return None


def _all_trees(model: Document, outputs: int) -> tuple[list[Document], list[tuple[int, ...]]]:
    groups = model.get("tree_info").array(np.int64)
    docs = model.get("trees").items()
    vector = bool(docs) and docs[0].get("tree_param").get("size_leaf_vector").integer(0, MAX_OUTPUTS) > 1
    if not (1 if vector else outputs) <= len(docs) <= MAX_TREES or len(groups) != len(docs):
        raise model.fail(f"has {len(docs)} trees and {len(groups)} entries in tree_info for {outputs} outputs")
    if not ((groups >= 0) & (groups < outputs)).all():
        raise model.fail(f"a tree feeds class {int(groups.max())} of {outputs}")
    return docs, [tuple(range(outputs)) if vector else (group,) for group in groups.tolist()]


def _is_classifier(metadata: str) -> bool:
    try:
        return bool(json.loads(metadata)["_estimator_type"] == "classifier")
    except (TypeError, ValueError, KeyError, RecursionError):
        return False


def _booster(booster: Document) -> tuple[Document, NDArray[np.float32] | None, bool]:
    """Returns (document of the trees, dart's weights or None, True if the booster is named dart)."""
    kind = booster.get("name", "gbtree").text()
    if kind == "gbtree":
        model = booster.get("model")
        weights = model.get("weight_drop", []).array(np.float32)
        return model, weights if len(weights) else None, False
    if kind == "dart":
        return booster.get("gbtree").get("model"), booster.get("weight_drop").array(np.float32), True
    raise booster.fail(f"booster {kind[:40]!r} is not read", "train with booster=gbtree or dart")


def _decision(objective: str, outputs: int) -> tuple[Decision, tuple[Label, ...]]:
    if objective == "binary:logistic":
        return Decision("threshold", CLASS_1_MARGIN), (0, 1)
    if objective.startswith("multi:"):
        # Softmax compares margins. Softprob returns probabilities, and the user compares these.
        on = "scores" if objective == "multi:softmax" else "values"
        return Decision("argmax", 0, on), tuple(range(outputs))  # type: ignore[arg-type]
    return Decision("none"), ()


def _base_margin(doc: Document, link: LinkKind, outputs: int, version: tuple[int, ...]) -> list[float]:
    """Returns base_score, a number or `[a,b,c]`, as margins of the outputs."""
    text = doc.text().strip()
    parts = text[1:-1].split(",") if text.startswith("[") and text.endswith("]") else [text]
    try:
        scores = [np.float32(part) for part in parts]
    except ValueError:
        raise doc.fail(f"is not a number: {text[:60]!r}") from None
    if len(scores) == 1:
        scores *= outputs
    if len(scores) != outputs or not np.isfinite(scores).all():
        raise doc.fail(f"has {len(scores)} finite numbers, the model {outputs} outputs")
    if link == "sigmoid":
        if version >= CLIPS_BASE_SCORE and all(0 <= score <= 1 for score in scores):
            scores = [min(max(score, np.float32(1e-6)), np.float32(1) - np.float32(1e-6)) for score in scores]
        if not all(0 < score < 1 for score in scores):
            raise doc.fail(f"is not a probability: {text[:60]!r}")
        # The library computes -logf(1/p - 1) with float32 intermediates.
        odds = [np.float32(1) / score - np.float32(1) for score in scores]
        return [-logf(float(x)) if x > 0 else math.inf for x in odds]
    if link == "exp":
        if not all(score > 0 for score in scores):
            raise doc.fail(f"is not positive: {text[:60]!r}")
        return [logf(float(score)) for score in scores]
    if link == "rising":  # The margins are the first expectile, then for each gap its inverse under softplus.
        gaps = [max(after - before - EPSILON, EPSILON) for before, after in pairwise(scores)]
        return [float(scores[0]), *(float(gap + np.float32(logf(-expm1f(-float(gap))))) for gap in gaps)]
    return [float(score) for score in scores]


def _feature_names(learner: Document, columns: int) -> list[str]:
    names = [item.text() for item in learner.get("feature_names", []).items()]
    if names and len(names) != columns:
        raise learner.fail(f"has {len(names)} feature names for {columns} features")
    return names


def _category_names(
    model: Document, categories: dict[int, int], columns: int, in_bytes: bool
) -> tuple[dict[int, tuple[str, ...]], list[int]]:
    """Returns {column: names of its categories}, and the columns whose names can't be read; raises the counts in
    `categories` to the numbers of names. in_bytes: how names are counted, else in characters. Raises ModelError for
    numbers other than codes."""
    if not model.has("cats") or not model.get("cats").get("enc").value:
        return {}, []
    names_by_column, unread = dict[int, tuple[str, ...]](), list[int]()
    encoded = model.get("cats").get("enc").items()
    for column in range(min(columns, len(encoded))):
        category = encoded[column]
        values = category.get("values", []).array(np.int64)
        if not len(values):
            continue
        if not category.has("offsets"):
            if column in categories and values.tolist() != list(range(len(values))):
                raise category.fail(
                    f"column {column} has numbers as categories that are not their codes: {values[:5].tolist()}",
                    "train on codes from 0 up, or on text",
                )
            continue
        offsets = category.get("offsets").array(np.int64)
        ordered = len(offsets) >= 2 and offsets[0] == 0 and offsets[-1] == len(values) and (np.diff(offsets) >= 0).all()
        if not ordered or not ((values >= -128) & (values < 256)).all():
            raise category.fail("is not a list of names")
        raw = bytes((values & 255).astype(np.uint8))
        if not in_bytes and not raw.isascii():
            unread.append(column)
            continue
        try:
            names = tuple(raw[a:b].decode() for a, b in pairwise(offsets.tolist()))
        except UnicodeDecodeError:
            raise category.fail("is not a list of names") from None
        if column in categories:
            categories[column] = max(categories[column], len(names))
        names_by_column[column] = names
    return names_by_column, unread
