"""scikit-learn models: fitted estimators, skops files and trusted pickles, by one table of readers."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forestc.errors import ForestcError, MissingExtraError, ModelError
from forestc.forest.ir import Forest
from forestc.frontends.sklearn import hist, meta, pipeline, thresholds, trees

# Class of an estimator -> its reader.
READERS: dict[str, Callable[[Any, str], Forest]] = {
    **dict.fromkeys(trees.TREES, trees.read_forest),
    "RandomForestClassifier": trees.read_forest,
    "RandomForestRegressor": trees.read_forest,
    "ExtraTreesClassifier": trees.read_forest,
    "ExtraTreesRegressor": trees.read_forest,
    "GradientBoostingClassifier": trees.read_boosting,
    "GradientBoostingRegressor": trees.read_boosting,
    "AdaBoostClassifier": trees.read_adaboost,
    "AdaBoostRegressor": trees.read_adaboost,
    "BaggingClassifier": trees.read_bagging,
    "BaggingRegressor": trees.read_bagging,
    "IsolationForest": trees.read_isolation,
    "HistGradientBoostingClassifier": hist.read_hist,
    "HistGradientBoostingRegressor": hist.read_hist,
    "VotingClassifier": meta.read_voting,
    "VotingRegressor": meta.read_voting,
    "MultiOutputClassifier": meta.read_multi_output,
    "MultiOutputRegressor": meta.read_multi_output,
    "OneVsRestClassifier": meta.read_one_vs_rest,
    "TunedThresholdClassifierCV": thresholds.read_threshold,
    "FixedThresholdClassifier": thresholds.read_threshold,
    "CalibratedClassifierCV": thresholds.read_calibrated,
    **dict.fromkeys(meta.SEARCHES, meta.read_search),
    "Pipeline": pipeline.read_pipeline,
}

# Types that skops does not trust and forestc does. Trees and predictors: scikit-learn follows their node numbers
# unchecked when it predicts; forestc does not predict with them, reads the arrays after checking their length, and the
# builder bounds every number in them. The others are data, or functions that forestc never calls.
TRUSTED = frozenset(
    {
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.utils._bunch.Bunch",
        "numpy.dtype",
        "functools.partial",
        "sklearn.utils.validation.check_array",
        *(
            f"sklearn.feature_selection._univariate_selection.{name}"
            for name in ("f_classif", "f_regression", "chi2", "r_regression")
        ),
        # only attributes of these are read
        *(
            f"sklearn.calibration.{name}"
            for name in ("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling")
        ),
        # objects that a search holds besides its best estimator
        *(f"sklearn.model_selection._search_successive_halving.{name}" for name in meta.SEARCHES),
        *(f"sklearn.metrics._scorer.{name}" for name in ("_PassthroughScorer", "_Scorer", "_CurveScorer")),
        *(f"sklearn.utils._metadata_requests.{name}" for name in ("MetadataRequest", "MethodMetadataRequest")),
        *(
            f"sklearn.model_selection._split.{name}"
            for name in (
                *("KFold", "GroupKFold", "StratifiedKFold", "StratifiedGroupKFold", "TimeSeriesSplit"),
                *("RepeatedKFold", "RepeatedStratifiedKFold", "LeaveOneOut", "PredefinedSplit"),
                *("ShuffleSplit", "GroupShuffleSplit", "StratifiedShuffleSplit"),
            )
        ),
        *(
            f"sklearn.metrics.{name}"
            for name in (
                *(f"_classification.{of}_score" for of in ("accuracy", "balanced_accuracy", "f1", "fbeta", "jaccard")),
                *(
                    f"_classification.{of}"
                    for of in ("precision_score", "recall_score", "log_loss", "brier_score_loss")
                ),
                *("_classification.matthews_corrcoef", "_classification.cohen_kappa_score"),
                *("_ranking.roc_auc_score", "_ranking.average_precision_score", "_ranking.top_k_accuracy_score"),
                *(f"_regression.mean_{of}_error" for of in ("squared", "absolute", "squared_log", "poisson_deviance")),
                *("_regression.root_mean_squared_error", "_regression.median_absolute_error", "_regression.max_error"),
                *("_regression.mean_absolute_percentage_error", "_regression.r2_score"),
                *("_regression.explained_variance_score",),
            )
        ),
    }
)


def read_skops(path: Path) -> Forest:
    """A Forest from a skops file, see `open_skops`. Raises ModelError."""
    return read_live(open_skops(path), where=str(path))


def open_skops(path: Path) -> Any:
    """The estimator in a skops file whose types are all trusted, by skops or here. Raises ModelError."""
    try:
        import skops.io
    except ImportError:
        raise MissingExtraError("skops", "sklearn") from None
    _refuse_bomb(path)
    try:
        held = skops.io.get_untrusted_types(file=path)
        untrusted = [name for name in held if str(name) not in TRUSTED]
        if untrusted:
            raise ModelError(
                f"the file holds types that skops does not trust: {', '.join(map(str, untrusted[:5]))}",
                where=str(path),
                do="save only the scikit-learn estimator",
            )
        return skops.io.load(path, trusted=[str(name) for name in held])
    except ForestcError:
        raise
    except Exception as error:  # noqa: BLE001  a damaged file can fail anywhere in skops and zipfile
        raise ModelError(f"not a readable skops file ({_short(error)})", where=str(path)) from None


def _refuse_bomb(path: Path) -> None:
    """Raises ModelError for a zip bomb: a model does not unpack to hundreds of times its size."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelError(f"not a readable skops file ({_short(error)})", where=str(path)) from None
    if size > (64 << 20) + 100 * path.stat().st_size:
        raise ModelError(f"the file unpacks to {size} bytes, far more than a model of its size", where=str(path))


def read_pickle(path: Path) -> Any:
    """The object in a pickle or joblib file. This runs the file's code, so the user must have asked for it."""
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("joblib", "sklearn") from None
    try:
        return joblib.load(path)
    except Exception as error:  # noqa: BLE001  a damaged pickle can raise anything
        raise ModelError(f"not a readable pickle ({_short(error)})", where=str(path)) from None


def read_live(model: Any, where: str = "") -> Forest:
    """A Forest from a fitted estimator. Raises ModelError naming what can't be kept exactly."""
    kind = type(model).__name__
    where = where or f"scikit-learn {kind}"
    reader = READERS.get(kind)
    if reader is None or not type(model).__module__.startswith("sklearn."):
        raise ModelError(f"{kind} is not read", where=where, do="known: " + ", ".join(sorted(READERS)))
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(model)) and kind not in (
        "Pipeline",
        "FixedThresholdClassifier",
    ):
        raise ModelError("the estimator is not fitted", where=where, do="call fit first")
    try:
        return reader(model, where)
    except ForestcError:
        raise
    except Exception as error:  # noqa: BLE001
        # skops restores the attributes that a file names, so any of them may be missing or invalid
        raise ModelError(f"the estimator is damaged ({_short(error)})", where=where) from None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]
