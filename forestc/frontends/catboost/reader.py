"""Reads CatBoost models: JSON exports without the library, and fitted models through a JSON export.

Rows and borders are float32, and a row goes right if `x > border`. Leaf values are summed in float64, tree by tree.
"""

from __future__ import annotations

import math
import re
import tempfile
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.builder import MAX_OUTPUTS, make_forest, read_features
from forestc.forest.ir import LEAF, Aggregate, Decision, Forest, Label, Link, Part, Provenance
from forestc.frontends.catboost.columns import read_columns
from forestc.frontends.catboost.trees import read_nested, read_oblivious
from forestc.frontends.shared.document import Document, read_document
from forestc.frontends.shared.exact import least_float
from forestc.frontends.shared.iterations import Iterations, taken

if TYPE_CHECKING:
    from catboost import CatBoost

BINARY = {"Logloss", "CrossEntropy", "Focal"}
MULTI = {"MultiClass", "MultiClassOneVsAll"}
LABELS = {"MultiLogloss", "MultiCrossEntropy"}  # losses of multilabel models: each output is a binary target
EXPONENT = {"Poisson", "Tweedie"}
UNCERTAINTY = {"RMSEWithUncertainty"}
# Lists the losses whose predictions are the scores themselves.
SCORES = {
    *("RMSE", "MAE", "Quantile", "LogLinQuantile", "MAPE", "Lq", "Huber", "Expectile", "LogCosh", "MultiQuantile"),
    *("MultiRMSE", "MultiRMSEWithMissingValues", "SurvivalAft", "Cox", "GroupQuantile", "QueryRMSE", "QuerySoftMax"),
    *("QueryCrossEntropy", "PairLogit", "PairLogitPairwise", "YetiRank", "YetiRankPairwise", "LambdaMart"),
    *("StochasticFilter", "StochasticRank", "PythonUserDefinedPerObject", "PythonUserDefinedMultiTarget", "RMSPE"),
}
KNOWN = BINARY | MULTI | LABELS | EXPONENT | UNCERTAINTY | SCORES

ESTIMATORS = ("CatBoost", "CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker")
LABEL_TYPES: dict[str, type] = {"Integer": int, "Float": float, "String": str, "Boolean": bool}

# Remedies in error messages: for other formats of CatBoost, and if the model names no best iteration.
AS_JSON = "load it with CatBoost and save it as JSON: model.save_model('model.json', format='json')"
NO_BEST = (
    "leave it out if the model was trained with an eval_set, as CatBoost then keeps the best iterations only; "
    "or give their number"
)

# Parameters that a copy does not take: what training prints, and when it stops early.
NOT_COPIED = {
    *("verbose", "verbose_eval", "silent", "logging_level"),
    *("use_best_model", "early_stopping_rounds", "od_type", "od_wait", "od_pval"),
}
ROUNDS = {"iterations", "n_estimators", "num_boost_round", "num_trees"}
RATE = {"learning_rate", "eta"}


def read_export(document: object, where: str, iterations: Iterations = None) -> Forest:
    """Reads a parsed JSON export into a Forest. The loss function decides what the Forest predicts. Raises
    ForestcError."""
    return _forest(Document(document, "", where), iterations)


def read_live(model: CatBoost, iterations: Iterations = None) -> Forest:
    """Reads a fitted CatBoost model into a Forest. Raises ForestcError."""
    name = type(model).__name__
    where = f"CatBoost {name}"
    if name not in ESTIMATORS:
        raise ModelError(f"{name} is not read", where=where, do=f"known: {', '.join(ESTIMATORS)}")
    if not model.is_fitted():
        raise ModelError("the model is not fitted", where=where, do="call fit first")
    kind = "RawFormulaVal" if name == "CatBoostRanker" else ""
    if name == "CatBoostRegressor":
        kind = model._get_default_prediction_type()
    root = exported(model, where)
    last = model.get_best_iteration()
    best = None if last is None else last + 1
    forest = _forest(root, iterations, kind, trained=True, best=best)
    if name == "CatBoostClassifier" and not forest.decides:
        raise ModelError("a classifier with a custom loss function", where=where, do="use Logloss or MultiClass")
    same = model.get_leaf_values().tobytes().startswith(_values(forest))
    return forest if same else _forest(root, iterations, kind, best=best)


def cloned(model: Any) -> Any:
    """Returns an unfitted copy of an estimator, as `sklearn.base.clone` does, which refuses CatBoost's estimators with
    lists among their parameters."""
    kind, settings = type(model), {k: deepcopy(v) for k, v in model.get_params().items() if k not in NOT_COPIED}
    if model.is_fitted():  # CatBoost chooses a rate by the numbers of rows and rounds.
        settings = {key: value for key, value in settings.items() if key not in ROUNDS}
        settings["iterations"] = model.tree_count_
        if not settings.keys() & RATE:
            settings["learning_rate"] = model.learning_rate_
    settings |= {"verbose": False, "allow_writing_files": False}
    return kind(settings) if kind.__name__ == "CatBoost" else kind(**settings)


def exported(model: CatBoost, where: str) -> Document:
    """Exports a fitted model as JSON. Raises ModelError if CatBoost can't write it."""
    import catboost

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except catboost.CatBoostError as error:  # CatBoost can't write embeddings and infinite borders.
            what = f"CatBoost can't write it as JSON ({' '.join(str(error).split())[:160]})"
            raise ModelError(what, where=where, do="train on finite numbers only") from None
        return Document(read_document(path.read_bytes(), where), "", where)


def _values(forest: Forest) -> bytes:
    """Returns the bytes of all leaf values, tree by tree, in the order of CatBoost's leaf numbers."""
    return b"".join(tree.values[np.argsort(tree.ids[tree.left == LEAF])].tobytes() for tree in forest.trees)


def _forest(
    root: Document, iterations: Iterations, predicts: str = "", trained: bool = False, best: int | None = None
) -> Forest:
    """Builds the Forest of an export. best: the best iteration, counted from 1."""
    _refuse_lost_tables(root.get("model_info", {}).get("params", {}).get("cat_feature_params", {}))
    columns = read_columns(root.get("features_info"), root.get("ctr_data", {}))
    oblivious = root.has("oblivious_trees")
    docs = root.get("oblivious_trees" if oblivious else "trees").items()
    scale, bias = _scale_and_bias(root)
    count, notes = taken(iterations, len(docs), best, root.where, stops=False, unknown=NO_BEST)
    docs = docs[:count]
    trees = [
        read_oblivious(doc, len(bias), columns) if oblivious else read_nested(doc, len(bias), columns, trained)
        for doc in docs
    ]
    width = columns.width + sum(hashed.combined for hashed in columns.hashed)
    features, trees = read_features(trees, width, columns.features.__getitem__, root.where)
    info = root.get("model_info", {})
    meanings = _meanings(info, _loss(info), predicts, len(bias))
    outputs = len(bias) // len(meanings)
    aggregate = Aggregate(bias_first=False, divisor=1 / scale if _divides(scale) else 1.0)
    if not _divides(scale):
        meanings, bias = [_scaled(meanings[0], scale, float(bias[0]))], np.zeros(1)
    return make_forest(
        where=root.where,
        name="forest",
        features=features,
        columns=width,
        trees=trees,
        n_outputs=len(bias),
        bias=bias,
        aggregate=aggregate,
        provenance=Provenance("catboost", _version(info), notes=notes),
        parts=[Part(k * outputs, (k + 1) * outputs, aggregate, *meaning) for k, meaning in enumerate(meanings)],
        hashed=columns.hashed,
    )


def _refuse_lost_tables(doc: Document) -> None:
    """Raises ModelError if the model had several tables where its export has one. doc: parameters of counters."""
    single = doc.get("per_feature_ctrs", {}).value
    lists = [doc.get(key, []) for key in ("simple_ctrs", "combinations_ctrs")]
    lists += [doc.get("per_feature_ctrs").get(key) for key in single] if isinstance(single, dict) else []
    for counters in lists:
        borders: dict[str, object] = {}
        for counter in counters.items():
            kind, target = counter.get("ctr_type").text(), counter.get("target_binarization", {}).value
            if borders.setdefault(kind, target) != target:
                what = f"two counters of the type {kind[:40]}, with different borders of the target, share a table"
                raise counter.fail(what, "CatBoost loses the other when it writes JSON: train with one of each type")


def _scale_and_bias(root: Document) -> tuple[float, NDArray[np.float64]]:
    pair = root.get("scale_and_bias")
    if not isinstance(pair.value, list) or len(pair.value) != 2:
        raise pair.fail("is not a scale and a bias")
    scale = float(Document(pair.value[:1], pair.path, pair.where).array(np.float64)[0])
    bias = pair.items()[1].array(np.float64)
    if not 1 <= len(bias) <= MAX_OUTPUTS or not np.isfinite(bias).all():
        raise pair.fail(f"has {len(bias)} biases, or one that is not finite")
    if not 2.0**-1000 < scale < 2.0**1000 or (not _divides(scale) and len(bias) > 1):
        do = "set_scale_and_bias(1, ...), or another power of two, which several outputs need"
        raise pair.fail(f"the scale is {scale}", do)
    return scale, bias


def _divides(scale: float) -> bool:
    """Returns True for a power of two: sums divided by its inverse are sums multiplied by it."""
    return math.frexp(scale)[0] == 0.5


def _scaled(meaning: _Meaning, scale: float, bias: float) -> _Meaning:
    """Returns the meaning of sums that are multiplied by a positive scale before the bias is added."""
    link, decision, labels = meaning
    if decision.kind == "threshold":
        least = least_float(lambda score: score * scale + bias >= decision.threshold, 64)
        decision = replace(decision, threshold=least)
    return replace(link, slope=scale, intercept=bias), decision, labels


_Meaning: TypeAlias = tuple[Link, Decision, tuple[Label, ...]]
_SCORES: _Meaning = (Link(), Decision("none"), ())


def _meanings(info: Document, loss: str, predicts: str, outputs: int) -> list[_Meaning]:
    """Returns a list of (link, decision, labels), with one entry for all outputs together or one entry per target."""
    fine = {1} if loss in BINARY else {2} if loss in UNCERTAINTY else range(1, MAX_OUTPUTS + 1)
    if outputs not in fine:
        raise info.fail(f"loss function {loss} with {outputs} outputs")
    if predicts == "RawFormulaVal" or loss in SCORES or not loss:
        return [_SCORES]
    if loss in EXPONENT:
        return [(Link("exp"), Decision("none"), ())]
    if loss in UNCERTAINTY:  # The two outputs are the mean and the variance.
        return [_SCORES, (Link("exp", 2.0), Decision("none"), ())]
    if loss in LABELS:
        return [(Link("sigmoid"), _class_1(info), (0, 1))] * outputs
    classes = _classes(info, max(2, outputs))
    if loss in BINARY:
        return [(Link("sigmoid"), _class_1(info), classes)]
    return [(Link("softmax" if loss == "MultiClass" else "sigmoid"), Decision("argmax"), classes)]


def _class_1(info: Document) -> Decision:
    key = "binclass_probability_threshold"
    probability = 0.5
    if info.has(key):
        try:
            probability = float(info.get(key).value)
        except (TypeError, ValueError, OverflowError):
            raise info.get(key).fail("is not a number") from None
    if not 0 <= probability < 1:
        raise info.get(key).fail(f"is {probability}", "choose at least 0 and less than 1")
    logit = -math.log(1 / probability - 1) if probability else -math.inf
    return Decision("threshold", float(np.nextafter(logit, math.inf)))


def _classes(info: Document, count: int) -> tuple[Label, ...]:
    names, kind = [], "Integer"
    params = info.get("class_params", {})
    if info.has("class_params"):
        names, kind = [name.value for name in params.get("class_names").items()], params.get("class_label_type").text()
    if kind not in LABEL_TYPES:
        raise info.fail(f"class_label_type {kind[:40]!r} is not known")
    accepted = (int, float) if kind == "Float" else LABEL_TYPES[kind]
    if not all(isinstance(name, accepted) for name in names):
        raise info.fail(f"class_names are not of type {kind}")
    labels = [LABEL_TYPES[kind](name) for name in names] or list(range(count))
    # Training rows may lack some classes; then `class_to_label` lists the classes that have scores.
    if params.has("class_to_label"):
        scored = params.get("class_to_label")
        order = scored.array(np.float64).tolist()
        if len(order) == count and len(names) != count:
            if names and not all(k == int(k) and 0 <= k < len(labels) for k in order):
                raise scored.fail(f"does not fit {len(labels)} class_names")
            labels = [labels[int(k)] for k in order] if names else [LABEL_TYPES[kind](k) for k in order]
    if params.has("classes_count"):
        classes_count = params.get("classes_count").integer(0, MAX_OUTPUTS)
        if classes_count > count:
            raise info.fail(f"has {classes_count} classes but scores of {count}", "train with rows of every class")
    if len(labels) != count:
        raise info.fail(f"has {len(labels)} class_names for {count} classes")
    return tuple(labels)


def _loss(info: Document) -> str:
    doc = info.get("params") if info.has("params") else info
    if not doc.has("loss_function"):
        return ""
    doc = doc.get("loss_function")
    if isinstance(doc.value, str):  # A sum of models keeps the loss function as text.
        doc = Document(read_document(doc.value.encode(), doc.where), doc.path, doc.where)
    loss = doc.get("type").text()
    if loss not in KNOWN:
        raise doc.fail(f"loss function {loss[:60]!r} is not known", "train with one of " + ", ".join(sorted(KNOWN)))
    return loss


def _version(info: Document) -> str:
    text = str(info.get("catboost_version_info", "").value)
    match = re.search(r"release (\d+(?:\.\d+){1,3})", text[:1000])
    return match[1] if match else ""
