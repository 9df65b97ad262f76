"""Reads scikit-learn models: fitted estimators, skops files and trusted pickles."""

from __future__ import annotations

import importlib
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any

from forestc.errors import CUT, DAMAGED, ForestcError, MissingExtraError, ModelError
from forestc.forest.ir import Forest
from forestc.frontends.sklearn import hist, meta, pipeline, thresholds, trees
from forestc.frontends.sklearn.trees import Read

# Maps the class of an estimator of trees to its reader.
READERS: dict[str, Callable[[Any, str], Forest]] = {
    **dict.fromkeys(trees.TREES, trees.read_forest),
    **dict.fromkeys(("RandomForestClassifier", "RandomForestRegressor"), trees.read_forest),
    **dict.fromkeys(("ExtraTreesClassifier", "ExtraTreesRegressor"), trees.read_forest),
    **dict.fromkeys(("AdaBoostClassifier", "AdaBoostRegressor"), trees.read_adaboost),
    "IsolationForest": trees.read_isolation,
    **dict.fromkeys(("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), hist.read_hist),
    "_ConstantPredictor": meta.read_constant,
}

# Maps the class of an estimator that holds other models to its reader.
OUTER: dict[str, Callable[[Any, str, Read], Forest]] = {
    **dict.fromkeys(("GradientBoostingClassifier", "GradientBoostingRegressor"), trees.read_boosting),
    **dict.fromkeys(("BaggingClassifier", "BaggingRegressor"), meta.read_bagging),
    **dict.fromkeys(("VotingClassifier", "VotingRegressor"), meta.read_voting),
    **dict.fromkeys(("MultiOutputClassifier", "MultiOutputRegressor"), meta.read_multi_output),
    "OneVsRestClassifier": meta.read_one_vs_rest,
    **dict.fromkeys(("TunedThresholdClassifierCV", "FixedThresholdClassifier"), thresholds.read_threshold),
    "CalibratedClassifierCV": thresholds.read_calibrated,
    **dict.fromkeys(meta.SEARCHES, meta.read_search),
    "FrozenEstimator": lambda model, _, read: read(model.estimator),
    "Pipeline": pipeline.read_pipeline,
}

# Maps the class of an estimator that is no sum or vote of trees to why, and to what can be done instead.
REFUSED: dict[str, tuple[str, str]] = {
    "TransformedTargetRegressor": (
        "its predictions are a function of the trees' sum",
        "pass its regressor_, and compute the inverse function of the design's results",
    ),
    **dict.fromkeys(
        ("ClassifierChain", "RegressorChain"),
        (
            "each of its models takes the predictions of those before it",
            "train a MultiOutputClassifier or MultiOutputRegressor, with one model for each target",
        ),
    ),
    **dict.fromkeys(
        ("OneVsOneClassifier", "OutputCodeClassifier"),
        (
            "its models vote on pairs or codes of classes",
            "train the trees on all classes, or a OneVsRestClassifier",
        ),
    ),
    **dict.fromkeys(
        ("StackingClassifier", "StackingRegressor"),
        (
            "its last model takes the predictions of the others",
            "train a VotingClassifier or VotingRegressor, or pass one of its estimators_",
        ),
    ),
}

# Lists types that skops distrusts but forestc loads. Functions among them are never called, and trees are checked.
TRUSTED = frozenset(
    f"{module}.{name}"
    for module, names in {
        "sklearn.tree._tree": ("Tree",),
        "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
        "sklearn.utils._bunch": ("Bunch",),
        "sklearn.multiclass": ("_ConstantPredictor",),
        "numpy": ("dtype",),
        "functools": ("partial",),
        "sklearn.utils.validation": ("check_array",),
        "sklearn.feature_selection._univariate_selection": ("f_classif", "f_regression", "chi2", "r_regression"),
        # forestc reads attributes of the calibrators below, and calls their method predict.
        "sklearn._loss._loss": (
            *("CyHalfSquaredError", "CyAbsoluteError", "CyPinballLoss", "CyHalfPoissonLoss", "CyHalfGammaLoss"),
            *("CyHalfBinomialLoss", "CyHalfMultinomialLoss", "CyHuberLoss", "CyExponentialLoss"),
        ),
        "sklearn.calibration": ("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"),
        # A search holds the types below besides its best estimator.
        "sklearn.model_selection._search_successive_halving": meta.SEARCHES,
        "sklearn.metrics._scorer": ("_PassthroughScorer", "_Scorer", "_CurveScorer"),
        "sklearn.utils._metadata_requests": ("MetadataRequest", "MethodMetadataRequest"),
        "sklearn.model_selection._split": (
            *("KFold", "GroupKFold", "StratifiedKFold", "StratifiedGroupKFold", "TimeSeriesSplit"),
            *("RepeatedKFold", "RepeatedStratifiedKFold", "LeaveOneOut", "PredefinedSplit"),
            *("ShuffleSplit", "GroupShuffleSplit", "StratifiedShuffleSplit"),
        ),
        "sklearn.metrics._classification": (
            *("accuracy_score", "balanced_accuracy_score", "f1_score", "fbeta_score", "jaccard_score"),
            *("precision_score", "recall_score", "log_loss", "brier_score_loss"),
            *("matthews_corrcoef", "cohen_kappa_score"),
        ),
        "sklearn.metrics._ranking": ("roc_auc_score", "average_precision_score", "top_k_accuracy_score"),
        "sklearn.metrics._regression": (
            *("mean_squared_error", "mean_absolute_error", "mean_squared_log_error", "mean_poisson_deviance_error"),
            *("root_mean_squared_error", "median_absolute_error", "max_error"),
            *("mean_absolute_percentage_error", "r2_score", "explained_variance_score"),
        ),
    }.items()
    for name in names
)


# Bounds a skops file's unpacked size: bytes, plus bytes for each byte of the file.
UNPACKED, UNPACKED_SHARE = 64 << 20, 100


def open_skops(data: bytes, where: str) -> Any:
    """Returns the estimator in a skops file. Raises ModelError for a damaged file or a type that neither skops nor
    `TRUSTED` lists."""
    try:
        import skops.io
    except ImportError:
        raise MissingExtraError("skops", "sklearn") from None
    _refuse_bomb(data, where)
    try:
        types = skops.io.get_untrusted_types(data=data)
        untrusted = [name for name in types if str(name) not in TRUSTED]
        for name in untrusted:
            if str(name).startswith("sklearn."):
                importlib.import_module(str(name).rpartition(".")[0])
        if untrusted:
            raise ModelError(
                f"the file holds types that skops does not trust: {', '.join(map(str, untrusted[:5]))}",
                where=where,
                do="if you trust them, pass the model in Python: skops.io.load(FILE, trusted=TYPES)",
            )
        return _versioned(lambda: skops.io.loads(data, trusted=[str(name) for name in types]))
    except ForestcError:
        raise
    except ModuleNotFoundError as error:
        raise _lacking(error, where) from None
    except Exception as error:  # noqa: BLE001  a damaged file can fail anywhere in skops and zipfile
        raise ModelError(f"not a readable skops file ({_short(error)})", where=where, do=CUT) from None


def _refuse_bomb(data: bytes, where: str) -> None:
    """Raises ModelError for a file that unpacks to far more than a model."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelError(f"not a readable skops file ({_short(error)})", where=where, do=CUT) from None
    if size > UNPACKED + UNPACKED_SHARE * len(data):
        raise ModelError(
            f"the file unpacks to {size} bytes, far more than a model of its size", where=where, do=DAMAGED
        )


def open_pickle(data: bytes, where: str) -> Any:
    """Returns the object in a pickle or joblib file. This runs the file's code."""
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("joblib", "sklearn") from None
    try:
        return _versioned(lambda: joblib.load(BytesIO(data)))
    except ModuleNotFoundError as error:
        raise _lacking(error, where) from None
    except Exception as error:  # noqa: BLE001  a damaged pickle can raise anything
        raise ModelError(
            f"not a readable pickle ({_short(error)})", where=where, do="where joblib.load(FILE) works, pass its result"
        ) from None


def _lacking(error: ModuleNotFoundError, where: str) -> ModelError:
    name = str(error.name)
    if not name.startswith("sklearn."):
        return ModelError(f"needs the Python module {name}", where=where, do="install the package that has it")
    return ModelError(
        f"was saved by a scikit-learn that has the module {name}, which version {trees.sklearn_version()} lacks",
        where=where,
        do="convert it with skl2onnx where that version is installed, and give the ONNX model; or train it again",
    )


def _versioned(load: Callable[[], Any]) -> Any:
    """Returns what `load` returns. An estimator that another scikit-learn saved gets its version as an attribute, in
    place of a warning for each of its parts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load()
    versions = [getattr(warning.message, "original_sklearn_version", "") for warning in caught]
    versions = [version for version in versions if version]
    if versions and hasattr(model, "__dict__"):
        model._sklearn_version = versions[-1]
    return model


def read_saved(model: object, read: Read) -> Forest:
    """Reads the model of a file into a Forest that names the scikit-learn that saved it, if that is another one."""
    version = getattr(model, "_sklearn_version", "")
    try:
        forest = read(model)
    except ModelError as error:
        where = f"{error.where}, saved by scikit-learn {version}" if version else error.where
        raise ModelError(error.what, where=where, do=error.do) from None
    if not version:
        return forest
    note = f"saved by scikit-learn {version}, read with {trees.sklearn_version()}"
    origin = replace(forest.provenance, notes=(*forest.provenance.notes, note))
    return replace(forest, provenance=replace(origin, version=version) if origin.source == trees.SOURCE else origin)


def read_live(model: object, read: Read) -> Forest:
    """Reads a fitted estimator into a Forest. Raises ModelError if the estimator can't be read exactly.
    read: reads the models that the estimator holds."""
    kind = type(model).__name__
    where = f"scikit-learn {kind}"
    if kind in REFUSED:
        why, do = REFUSED[kind]
        raise ModelError(f"{kind} is not read: {why}", where=where, do=do)
    if kind not in READERS and kind not in OUTER:
        names = ", ".join(sorted(name for name in [*READERS, *OUTER] if name[0] != "_"))
        raise ModelError(f"{kind} is not read", where=where, do=f"known: {names}")
    fitted = any(name.endswith("_") and not name.startswith("_") for name in vars(model))
    if not fitted and kind not in ("Pipeline", "FixedThresholdClassifier", "FrozenEstimator"):
        raise ModelError("the estimator is not fitted", where=where, do="call fit first")
    try:
        return READERS[kind](model, where) if kind in READERS else OUTER[kind](model, where, read)
    except ForestcError:
        raise
    except Exception as error:  # noqa: BLE001
        # skops restores the attributes that a file names, so any attribute may be invalid.
        raise ModelError(f"the estimator is damaged ({_short(error)})", where=where, do=DAMAGED) from None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]
