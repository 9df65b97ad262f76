"""Reads scikit-learn pipelines: steps that change each column separately are folded into the forest's conditions.

A monotone step, such as a scaler, is folded by calls of the fitted step itself, so its arithmetic is the library's own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import DAMAGED, ModelError
from forestc.forest.ir import Forest
from forestc.frontends.lightgbm.reader import ZERO
from forestc.frontends.shared.fold import StepColumn, beyond, constant, fold, identity
from forestc.frontends.sklearn.meta import chosen_note, thawed
from forestc.frontends.sklearn.trees import Read, width_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Maps the class of a monotone step to its attributes with one entry per column, and to their axis of columns.
MONOTONE: dict[str, dict[str, int]] = {
    "StandardScaler": {"mean_": 0, "scale_": 0, "var_": 0},
    "MinMaxScaler": {"scale_": 0, "min_": 0, "data_min_": 0, "data_max_": 0},
    "MaxAbsScaler": {"scale_": 0, "max_abs_": 0},
    "RobustScaler": {"center_": 0, "scale_": 0},
    "PowerTransformer": {"lambdas_": 0},
    "QuantileTransformer": {"quantiles_": 1},
    "KBinsDiscretizer": {"bin_edges_": 0, "n_bins_": 0},
    "Binarizer": {},
}
CONTAINERS = {"ColumnTransformer", "FeatureUnion", "Pipeline"}


def read_pipeline(model: BaseEstimator, where: str, read: Read) -> Forest:
    """Reads a Pipeline into a Forest. Its last step must be a known model, and its other steps must be foldable."""
    steps: list[tuple[str, BaseEstimator]] = []
    last, notes = model, []
    while True:
        last = thawed(last)
        if type(last).__name__ == "Pipeline":
            steps, last = [*steps, *last.steps[:-1]], last.steps[-1][1]
        elif getattr(last, "best_estimator_", None) is not None:
            notes.append(chosen_note(last))
            last = last.best_estimator_
        else:
            break
    forest = read(last)
    forest = replace(forest, provenance=replace(forest.provenance, notes=(*notes, *forest.provenance.notes)))
    fitted = [step for _, step in steps if hasattr(step, "n_features_in_")]
    first = (fitted or [last])[0]  # Steps before the first fitted one do not change the rows.
    width, names = width_of(first), getattr(first, "feature_names_in_", None)
    own = getattr(first, "feature_names_", None)  # CatBoost's; numbers if the rows had no names
    names = own if names is None and own != list(map(str, range(width))) else names
    columns = [StepColumn(source) for source in range(width)]
    for name, step in steps:
        columns = _stepped(step, columns, f"{where}, step {name!r}")
    columns = _received(last, columns, where)
    return fold(forest, columns, width, None if names is None else list(map(str, names)), where)


def _received(last: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    """Returns the columns as the last step's model reads them; libraries read zeros of sparse columns differently.
    Raises ModelError for unsupported models."""
    plain = all(column.dtype == np.float64 and not column.sparse for column in columns)
    sparse = any(column.sparse for column in columns)
    library = _library(last)
    members = [thawed(getattr(member, "best_estimator_", member)) for member in getattr(last, "estimators_", [])]
    dense = "use sparse_output=False and sparse_threshold=0"
    if not plain and any(type(member).__name__ == "Pipeline" for member in members):
        raise ModelError("pipelines within a model, on columns that are sparse or not float64", where=where, do=dense)
    if not sparse:
        return columns
    if any(_library(member) in ("xgboost", "lightgbm") for member in members):
        raise ModelError("a model with members of XGBoost or LightGBM, on sparse columns", where=where, do=dense)
    if library == "sklearn":  # scikit-learn's trees accept no NaN in a sparse matrix.
        return [_refusing_missing(column) for column in columns]
    if library == "lightgbm":
        params = last.get_params()
        zero_as_missing = params.get("zero_as_missing", False) and params.get("use_missing", True)
        return columns if zero_as_missing else [column.then(_distinct_from_zero) for column in columns]
    if library != "xgboost":
        return columns
    if not all(column.function is identity or constant(column) for column in columns):
        raise ModelError("XGBoost reads zeros of sparse columns as missing, and they are scaled", where=where, do=dense)
    return [column.then(identity, np.nan, {0.0: np.nan}) for column in columns]


def _distinct_from_zero(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns x with ZERO (-1e-35) replaced by the next lower float, which LightGBM does not read as 0."""
    return np.where(x == ZERO, np.nextafter(ZERO, -np.inf), x)


def _library(model: object) -> str:
    return type(model).__module__.partition(".")[0]


def _stepped(step: object, columns: list[StepColumn], where: str) -> list[StepColumn]:
    step = thawed(step)
    kind = type(step).__name__
    if hasattr(step, "fit_resample"):  # imbalanced-learn's samplers change the rows of training only.
        return columns
    if (isinstance(step, str) and step == "passthrough") or step is None:
        return columns
    width = getattr(step, "n_features_in_", len(columns))
    if width != len(columns):
        raise ModelError(f"takes {width} columns, but gets {len(columns)}", where=where, do=DAMAGED)
    if not type(step).__module__.startswith(("sklearn.", "imblearn.pipeline")):
        raise ModelError(f"{kind} can't be folded into a forest", where=where, do="transform the rows before")
    if kind not in CONTAINERS and not _takes_missing(step):
        columns = [_refusing_missing(column) for column in columns]
    if not _takes_texts(step):
        columns = [column.encoded(None) for column in columns]
    if hasattr(step, "get_support"):
        support = np.asarray(step.get_support(), dtype=bool)
        return _joined(step, [column for column, keep in zip(columns, support, strict=True) if keep])
    if kind not in CONTAINERS and kind != "FunctionTransformer":  # The step receives its columns as one array.
        columns = _promoted(columns)
    if kind in MONOTONE:
        return [_monotone(step, kind, j, column, where) for j, column in enumerate(columns)]
    if kind in STEPS:
        return STEPS[kind](step, columns, where)
    supported = sorted([*MONOTONE, *STEPS, "feature selectors"])
    raise ModelError(f"{kind} can't be folded into a forest", where=where, do="known: " + ", ".join(supported))


def _takes_missing(step: object) -> bool:
    from sklearn.utils import get_tags

    tags = get_tags(step)
    # An imputer with the marker None accepts the missing texts of forestc's rows.
    return bool(tags.no_validation or tags.input_tags.allow_nan or getattr(step, "missing_values", np.nan) is None)


def _takes_texts(step: object) -> bool:
    """Returns True if a step takes unknown texts among numbers: as they are, or as it takes unknown numbers."""
    refused = getattr(step, "handle_unknown", "") == "error" or getattr(step, "validate", False)
    numeric = getattr(step, "strategy", "constant") not in ("constant", "most_frequent")
    marker = getattr(step, "missing_values", None)
    known = type(step).__name__ in STEPS or hasattr(step, "get_support")
    return known and not (refused or numeric or isinstance(marker, str))


def _promoted(columns: list[StepColumn]) -> list[StepColumn]:
    """Returns the columns as one array holds them: all with one type, and all sparse if any column is."""
    dtype = np.result_type(*(column.dtype for column in columns)) if columns else np.dtype(np.float64)
    sparse = any(column.sparse for column in columns)
    return [replace(column, dtype=dtype, sparse=sparse) for column in columns]


def _joined(step: object, columns: list[StepColumn]) -> list[StepColumn]:
    """Returns the output columns of a step that concatenates or selects columns; if they form an array, all get one
    type."""
    from sklearn.utils._set_output import _get_output_config

    framed = _get_output_config("transform", step)["dense"] != "default"
    return columns if framed and not any(column.sparse for column in columns) else _promoted(columns)


def _refusing_missing(column: StepColumn) -> StepColumn:
    no_nan = column.missing is None or column.missing == column.missing or None in column.fills
    return column if no_nan else replace(column, missing=None)


def _monotone(step: BaseEstimator, kind: str, j: int, column: StepColumn, where: str) -> StepColumn:
    if kind == "KBinsDiscretizer" and step.encode != "ordinal":
        raise ModelError(f"KBinsDiscretizer with encode={step.encode!r}", where=where, do="use encode='ordinal'")
    if kind == "QuantileTransformer" and column.sparse:
        raise ModelError("QuantileTransformer on sparse columns", where=where, do="use sparse_threshold=0")
    single = _only(step, MONOTONE[kind], j)
    if kind == "PowerTransformer" and step.standardize:  # two steps: the first may overflow
        single.standardize = False
        scaler = _only(step._scaler, MONOTONE["StandardScaler"], j)
        return _transformed(scaler, _transformed(single, column, step.method == "box-cox"))
    positive = kind == "PowerTransformer" and step.method == "box-cox"
    return _transformed(single, column, positive)


def _transformed(single: BaseEstimator, column: StepColumn, positive: bool = False) -> StepColumn:
    """Returns the column after a fitted step. positive: the step takes positive numbers only."""
    takes = np.dtype(getattr(single, "dtype", None) or column.dtype)  # KBinsDiscretizer rounds rows to its type first.

    def transform(x: NDArray[np.float64]) -> NDArray[Any]:
        from scipy.sparse import csr_matrix

        rows = x.reshape(-1, 1).astype(column.dtype)
        if column.sparse:
            return np.asarray(single.transform(csr_matrix(rows)).toarray())
        return np.asarray(single.transform(rows))

    def function(x: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(x if takes.kind != "f" else x.astype(takes))
            accepted = finite & (x > 0 if positive else True)
            result = np.where(x > 0, x, -np.inf) if positive else np.array(x, dtype=np.float64)
            if accepted.any():
                result[accepted] = transform(x[accepted]).astype(np.float64).ravel()
        return result

    return replace(column.then(function), dtype=transform(np.ones(1)).dtype)


def _only(step: BaseEstimator, attributes: dict[str, int], j: int) -> BaseEstimator:
    single = copy.copy(step)
    single.__dict__ = dict(step.__dict__)
    for name, axis in attributes.items():
        value = getattr(step, name, None)
        if isinstance(value, np.ndarray):
            setattr(single, name, np.take(value, [j], axis=axis))
    single.n_features_in_ = 1
    single.__dict__.pop("feature_names_in_", None)
    single.__dict__.pop("_sklearn_output_config", None)
    if hasattr(single, "copy"):
        single.copy = True
    return single


def _imputed(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    filled = []
    statistics = np.asarray(step.statistics_)
    marker = step.missing_values
    marked = isinstance(marker, float | int | np.number) and marker == marker
    dtype = columns[0].dtype if columns else np.dtype(np.float64)
    values = _marked(marker, dtype) if marked else []
    for column, fill in zip(columns, statistics.tolist(), strict=True):
        if isinstance(fill, str):
            filled.append(_filled_text(column, marker, fill, where))
            continue
        if isinstance(fill, float) and np.isnan(fill) and not getattr(step, "keep_empty_features", False):
            continue  # The imputer drops a column without any value.
        if fill == fill:
            fill = float(np.array(fill, dtype=getattr(step, "_fill_dtype", np.float64)).astype(dtype))
        points = dict.fromkeys(values, float(fill))
        filled.append(column.then(identity, np.nan if marked else float(fill), points))
    if step.add_indicator:
        filled += _indicated(step.indicator_, columns, where)
    return filled


def _indicated(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    """Returns the columns after a MissingIndicator: 1 for a missing value, else 0."""
    marker = step.missing_values
    marked = isinstance(marker, float | int | np.number) and marker == marker
    result = []
    for column in [columns[j] for j in step.features_.tolist()]:
        if column.fills:
            raise ModelError("indicators of text that was imputed before", where=where, do="use one imputer")
        values = _marked(marker, column.dtype) if marked else []
        missing = 0.0 if marked or isinstance(marker, str) else 1.0
        column = column.encoded(beyond(values))
        if values or column.function is not identity or column.points or column.texts is not None:
            result.append(column.then(_zero, missing, dict.fromkeys(values, 1.0)))
        else:  # The column may hold text, which is not missing.
            texts = {marker: 1.0} if isinstance(marker, str) else {}
            result.append(replace(column, function=_zero, missing=missing, texts=texts))
    return result


def _missing_indicator(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    sparse = step.sparse is True or (step.sparse == "auto" and any(column.sparse for column in columns))
    result = _indicated(step, columns, where)
    return [replace(column, dtype=np.dtype(np.bool_), sparse=sparse) for column in result]


def _marked(marker: float, dtype: np.dtype[Any]) -> list[float]:
    """Returns the number that means "missing" in columns of a type: the library compares in that type."""
    cast = np.array([marker]).astype(dtype)
    return [float(number) for number in cast[cast == marker]]


def _filled_text(column: StepColumn, marker: object, fill: str, where: str) -> StepColumn:
    """Returns a column of text after an imputer that replaces `marker` by `fill`."""
    if column.function is not identity or column.points or column.texts is not None:
        raise ModelError(
            f"SimpleImputer fills text into a column that was changed before ({fill[:20]!r})",
            where=where,
            do="impute before the other steps",
        )
    text_marker = marker if isinstance(marker, str) else None
    fills = {raw: fill if text == text_marker else text for raw, text in column.fills.items()}
    return replace(column, fills={text_marker: fill} | fills, missing=np.nan if text_marker is None else column.missing)


def _zero(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.zeros(len(x))


def _encoded(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    dtype = _number_type(step, where)

    def rounded(value: float) -> float:  # Rounds to the encoder's type, which may be too narrow.
        return float(np.full(1, value, dtype=dtype)[0])

    unknown = rounded(step.unknown_value) if step.handle_unknown == "use_encoded_value" else np.nan
    absent = rounded(step.encoded_missing_value) if step._missing_indices else np.nan
    result = []
    for index, (column, categories) in enumerate(zip(columns, step.categories_, strict=True)):
        groups, _ = _groups(step, index)
        images = groups.astype(dtype).astype(np.float64).tolist()
        result.append(_by_category(column, list(categories), images, unknown, absent, where))
    return [replace(column, dtype=dtype, sparse=False) for column in result]


def _number_type(step: BaseEstimator, where: str) -> np.dtype[Any]:
    """Returns the type of the numbers that an encoder gives. Raises ModelError for other types."""
    dtype: np.dtype[Any] = np.dtype(step.dtype)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ModelError(f"{type(step).__name__} with dtype={dtype}", where=where, do="use float64")
    return dtype


def _groups(step: BaseEstimator, index: int) -> tuple[NDArray[np.int64], int | None]:
    """Returns each category's number after an encoder has put infrequent categories of column `index` into one group,
    and the group of unknown categories, if they have one."""
    numbers = np.arange(len(step.categories_[index]))
    grouped = step._default_to_infrequent_mappings[index] if getattr(step, "_infrequent_enabled", False) else None
    if grouped is None:
        return numbers, None
    numbers[: len(grouped)] = grouped  # An OrdinalEncoder does not group the last category if it is a missing value.
    joined = step.handle_unknown in ("infrequent_if_exist", "warn")
    return numbers, int(grouped[step._infrequent_indices[index][0]]) if joined else None


def _one_hot(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    """Returns the columns after a OneHotEncoder: one for each category, or group of them, that is not dropped."""
    dtype = _number_type(step, where)
    result = []
    dropped = getattr(step, "_drop_idx_after_grouping", step.drop_idx_)
    for index, (column, categories) in enumerate(zip(columns, step.categories_, strict=True)):
        groups, unknown = _groups(step, index)
        drop = None if dropped is None else dropped[index]
        for chosen in range(int(groups.max(initial=-1)) + 1):
            if drop is None or chosen != drop:
                images = (groups == chosen).astype(np.float64).tolist()
                result.append(_by_category(column, list(categories), images, float(chosen == unknown), None, where))
    return [replace(column, dtype=dtype, sparse=step.sparse_output) for column in result]


def _by_category(
    column: StepColumn, categories: list[Any], images: list[float], unknown: float, missing: float | None, where: str
) -> StepColumn:
    """Returns the column after an encoder that maps each category to its image, and other values to `unknown`."""
    # A missing value among the training rows is a separate category, the last.
    absent = [image for value, image in zip(categories, images, strict=True) if value is None or value != value]
    pairs = [(v, i) for v, i in zip(categories, images, strict=True) if v is not None and v == v]
    of_missing = unknown if not absent else absent[-1] if missing is None else missing
    if all(isinstance(value, str) for value, _ in pairs) and pairs:
        if column.source < 0 or column.points or column.texts is not None:
            raise ModelError(
                "text categories of a column that was changed before",
                where=where,
                do="encode text before the other steps, or in a column of its own",
            )
        names = {str(value): image for value, image in pairs}
        if None in column.fills and absent:
            raise ModelError(
                "an imputer replaces some missing texts, and the encoder knows others",
                where=where,
                do="train on rows whose missing texts are all None, or all NaN",
            )
        filled = {raw: names.get(text, unknown) for raw, text in column.fills.items()}
        of_missing = filled.get(None, of_missing)
        names |= {raw: image for raw, image in filled.items() if raw is not None}
        refused = column.missing is None
        return StepColumn(column.source, lambda x: np.full(len(x), unknown), {}, None if refused else of_missing, names)
    if None in column.fills:  # The imputer's text is unknown among numbers.
        of_missing = unknown
    try:
        points = {float(value): image for value, image in pairs}
    except (TypeError, ValueError):
        raise ModelError(
            "categories are neither text nor numbers", where=where, do="train on categories that are text or numbers"
        ) from None
    column = column.encoded(beyond((*points, *column.points)))
    return replace(column, fills={}).then(lambda x: np.full(len(x), unknown), of_missing, points)


def _by_columns(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    parts = []
    for name, transformer, _ in step.transformers_:
        indices = np.atleast_1d(np.asarray(step._transformer_to_input_indices[name], dtype=np.int64))
        if len(indices):
            parts.append((name, transformer, [columns[j] for j in indices.tolist()]))
    result = _side_by_side(step, parts, where)
    return _joined(step, [replace(column, sparse=bool(step.sparse_output_)) for column in result])


def _united(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    parts = [(name, transformer, columns) for name, transformer in step.transformer_list]
    return _joined(step, _side_by_side(step, parts, where))


def _side_by_side(step: BaseEstimator, parts: list[tuple[str, Any, list[StepColumn]]], where: str) -> list[StepColumn]:
    if step.transformer_weights:
        raise ModelError(f"{type(step).__name__} with weights", where=where, do="scale the columns instead")
    result: list[StepColumn] = []
    for name, transformer, columns in parts:
        if not (isinstance(transformer, str) and transformer == "drop"):
            result += _stepped(transformer, columns, f"{where}, transformer {name!r}")
    return result


def _nested(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    for name, inner in step.steps:
        columns = _stepped(inner, columns, f"{where}, step {name!r}")
    return columns


def _unchanged(step: BaseEstimator, columns: list[StepColumn], where: str) -> list[StepColumn]:
    if step.func is not None:
        raise ModelError("FunctionTransformer with a function", where=where, do="transform the rows before")
    return columns


STEPS: dict[str, Callable[[BaseEstimator, list[StepColumn], str], list[StepColumn]]] = {
    "SimpleImputer": _imputed,
    "MissingIndicator": _missing_indicator,
    "OrdinalEncoder": _encoded,
    "OneHotEncoder": _one_hot,
    "ColumnTransformer": _by_columns,
    "FeatureUnion": _united,
    "Pipeline": _nested,
    "FunctionTransformer": _unchanged,
}
