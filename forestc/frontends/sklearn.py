"""scikit-learn trees, forests and gradient boosting: live, from skops files, from trusted pickles.

What the library does, and this keeps: rows become float32, thresholds are float64 and compared with
`<=`; scores are summed in float64 tree after tree; forests average class probabilities, boosting
adds learning_rate times the leaf to the initial score.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ForestcError, MissingExtraError, ModelError
from forestc.forest.builder import make_forest, make_tree, read_features
from forestc.forest.ir import LEAF, Aggregate, Decision, Feature, Forest, Label, Link, Provenance, Tree
from forestc.forest.numbers import FLOAT32
from forestc.frontends.exact import next_above

TREES = {"DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"}
FORESTS = {
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
}
BOOSTING = {"GradientBoostingClassifier", "GradientBoostingRegressor"}
KNOWN = sorted(TREES | FORESTS | BOOSTING)

# skops holds this type back for one reason: scikit-learn follows its node numbers unchecked when it
# predicts. Here nothing predicts: the arrays are read after their length is checked, and the builder
# bounds every number in them.
TREE_TYPE = "sklearn.tree._tree.Tree"


def read_skops(path: Path) -> Forest:
    """A Forest from a skops file, as far as skops calls its types safe. Raises ModelError."""
    try:
        import skops.io
    except ImportError:
        raise MissingExtraError("skops", "sklearn") from None
    _refuse_bomb(path)
    try:
        untrusted = [name for name in skops.io.get_untrusted_types(file=path) if name != TREE_TYPE]
        if untrusted:
            raise ModelError(
                f"the file holds types skops does not call safe: {', '.join(map(str, untrusted[:5]))}",
                where=str(path),
                do="save only the scikit-learn estimator",
            )
        model = skops.io.load(path, trusted=[TREE_TYPE])
    except ForestcError:
        raise
    except Exception as error:  # noqa: BLE001  a damaged file fails anywhere inside skops and zipfile
        raise ModelError(f"not a readable skops file ({_short(error)})", where=str(path)) from None
    return read_live(model, where=str(path), digest=hashlib.sha256(path.read_bytes()).hexdigest())


def _refuse_bomb(path: Path) -> None:
    """A zip may promise a thousand times its own size; a model does not."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelError(f"not a readable skops file ({_short(error)})", where=str(path)) from None
    if size > (64 << 20) + 100 * path.stat().st_size:
        raise ModelError(f"the file unpacks to {size} bytes, far more than a model of its size", where=str(path))


def read_pickle(path: Path) -> Any:
    """The object in a pickle or joblib file. The caller has been told to trust it: this runs its code."""
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("joblib", "sklearn") from None
    try:
        return joblib.load(path)
    except Exception as error:  # noqa: BLE001  a damaged pickle can fail in any way at all
        raise ModelError(f"not a readable pickle ({_short(error)})", where=str(path)) from None


def read_live(model: Any, where: str = "", digest: str = "") -> Forest:
    """A Forest from a fitted estimator. Raises ModelError naming what can't be kept exactly."""
    kind = type(model).__name__
    where = where or f"scikit-learn {kind}"
    if kind not in KNOWN:
        raise ModelError(f"{kind} is not read", where=where, do="known: " + ", ".join(KNOWN))
    if not hasattr(model, "tree_") and not hasattr(model, "estimators_"):
        raise ModelError("the estimator is not fitted", where=where, do="call fit first")
    try:
        return _read(model, kind, where, digest)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        # skops restores whatever attributes a file names, so any of them may be missing or odd
        raise ModelError(f"the estimator is damaged ({_short(error)})", where=where) from None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def _read(model: Any, kind: str, where: str, digest: str) -> Forest:
    if int(getattr(model, "n_outputs_", 1)) != 1:
        raise ModelError(f"the model has {model.n_outputs_} targets", where=where, do="train one model a target")
    columns = int(model.n_features_in_)
    classes = _labels(model.classes_) if hasattr(model, "classes_") else ()
    # Gradient boosting refuses NaN; the others send it where the tree was trained to.
    missing = kind not in BOOSTING
    link = Link()
    decision = Decision("argmax") if classes else Decision("none")
    bias: Sequence[float] | NDArray[Any]
    if kind in BOOSTING:
        trees, bias, link, decision = _boosting(model, classes, where)
        aggregate = Aggregate("sum", "float64", bias_first=True)
    else:
        estimators = [model] if kind in TREES else list(model.estimators_)
        outputs = tuple(range(len(classes) or 1))
        trees = [
            _tree(estimator.tree_, f"{where}, tree {index}", outputs, 1.0, takes_missing=True)
            for index, estimator in enumerate(estimators)
        ]
        aggregate = Aggregate(divisor=float(len(estimators)))
        bias = np.zeros(len(outputs))
    if len(classes) == 1:
        raise ModelError("the model knows one class only", where=where, do="train on at least two")
    names = getattr(model, "feature_names_in_", None)
    features, trees = read_features(
        trees,
        columns,
        lambda column: Feature(f"x{column}" if names is None else str(names[column]), FLOAT32, column, missing),
        where,
    )
    return make_forest(
        where=where,
        name="forest",
        features=features,
        columns=columns,
        trees=trees,
        n_outputs=len(bias),
        bias=bias,
        aggregate=aggregate,
        link=link,
        decision=decision,
        classes=classes,
        provenance=Provenance("scikit-learn", str(getattr(model, "_sklearn_version", "") or _version()), digest),
    )


def _version() -> str:
    import sklearn

    return str(sklearn.__version__)


def _labels(labels: Any) -> tuple[Label, ...]:
    found = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    if not all(isinstance(label, str | int | float | bool) for label in found):
        raise ModelError(f"class labels of type {type(found[0]).__name__}", do="use text or numbers as labels")
    return found


def _boosting(model: Any, classes: tuple[Label, ...], where: str) -> tuple[list[Tree], NDArray[Any], Link, Decision]:
    init = getattr(model, "init_", None)
    if init != "zero" and type(init).__name__ not in ("DummyClassifier", "DummyRegressor"):
        raise ModelError(
            f"the initial estimator {type(init).__name__} depends on the row",
            where=where,
            do="train with init=None",
        )
    stages = model.estimators_
    outputs = int(stages.shape[1])
    start = np.asarray(model._raw_predict_init(np.zeros((1, int(model.n_features_in_)), dtype=np.float32)))
    rate = float(model.learning_rate)
    trees = [
        _tree(estimator.tree_, f"{where}, stage {stage}, output {k}", (k,), rate, takes_missing=False)
        for stage, row in enumerate(stages)
        for k, estimator in enumerate(row)
    ]
    if not classes:
        return trees, start[0], Link(), Decision("none")
    if outputs == 1:
        # probability = expit(score), of exponential loss expit(2 * score); class 1 from score 0 on
        link = Link("sigmoid", 1.0 if model.loss == "log_loss" else 2.0)
        return trees, start[0], link, Decision("threshold", 0.0)
    return trees, start[0], Link("softmax"), Decision("argmax", 0, "scores")


def _tree(tree: Any, where: str, outputs: tuple[int, ...], rate: float, takes_missing: bool) -> Tree:
    """One `sklearn.tree._tree.Tree`; leaf values are multiplied by `rate` as boosting does."""
    if not 0 <= tree.node_count <= tree.capacity:
        raise ModelError(f"{tree.node_count} nodes in an array of {tree.capacity}", where=where)
    left = np.asarray(tree.children_left)
    is_leaf = left == LEAF
    values = np.asarray(tree.value, dtype=np.float64)
    if values.ndim != 3 or values.shape[1:] != (1, len(outputs)):
        raise ModelError(f"leaf values have shape {values.shape}, not (nodes, 1, {len(outputs)})", where=where)
    missing = getattr(tree, "missing_go_to_left", None) if takes_missing else None
    return make_tree(
        where=where,
        feature=np.where(is_leaf, LEAF, tree.feature),
        threshold=next_above(np.asarray(tree.threshold, dtype=np.float64), 32),
        left=left,
        right=tree.children_right,
        values=rate * values[is_leaf, 0, :],
        outputs=outputs,
        missing_left=None if missing is None else np.asarray(missing) != 0,
        cover=tree.weighted_n_node_samples,
    )
