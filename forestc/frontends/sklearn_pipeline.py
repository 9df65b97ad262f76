"""scikit-learn pipelines: steps that change each column by itself are folded into the forest's conditions.

Scalers and other monotone steps are asked themselves, column by column, so their arithmetic is the library's own.
Rows are float64: what lists, CSV files and data frames give.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.ir import Forest
from forestc.frontends.fold import Column, Function, fold, identity
from forestc.frontends.sklearn_trees import width_of

# Class of a monotone step -> its fitted attributes that hold a value a column, and the axis the columns lie on.
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


def read_pipeline(model: Any, where: str) -> Forest:
    """A Pipeline whose last step is a model that is read, and whose other steps can be folded."""
    from forestc.frontends import load_object

    *steps, (_, last) = model.steps
    forest = load_object(last)
    fitted = [step for _, step in steps if hasattr(step, "n_features_in_")]
    first = (fitted or [last])[0]  # what comes before it leaves the rows as they are
    width, names = width_of(first), getattr(first, "feature_names_in_", None)
    columns = [Column(source) for source in range(width)]
    for name, step in steps:
        columns = _stepped(step, columns, f"{where}, step {name!r}")
    return fold(forest, columns, width, None if names is None else list(map(str, names)), where)


def _stepped(step: Any, columns: list[Column], where: str) -> list[Column]:
    """The columns after one more step. Raises ModelError naming a step that can't be folded."""
    kind = type(step).__name__
    if (isinstance(step, str) and step == "passthrough") or step is None:
        return columns
    wanted = getattr(step, "n_features_in_", len(columns))
    if wanted != len(columns):
        raise ModelError(f"takes {wanted} columns, {len(columns)} come in", where=where)
    if not type(step).__module__.startswith("sklearn."):
        raise ModelError(f"{kind} is no step that can be folded", where=where, do="transform the rows before")
    if kind not in CONTAINERS and not _takes_missing(step):
        columns = [_refusing_missing(column) for column in columns]
    if kind in MONOTONE:
        return [_monotone(step, kind, j, column, where) for j, column in enumerate(columns)]
    if kind in STEPS:
        return STEPS[kind](step, columns, where)
    if hasattr(step, "get_support"):
        kept = np.asarray(step.get_support(), dtype=bool)
        return [column for column, keep in zip(columns, kept, strict=True) if keep]
    known = sorted([*MONOTONE, *STEPS, "feature selectors"])
    raise ModelError(f"{kind} can't be folded into a forest", where=where, do="known: " + ", ".join(known))


def _takes_missing(step: Any) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(step).input_tags.allow_nan)


def _refusing_missing(column: Column) -> Column:
    """The column before something that refuses NaN."""
    return column if column.missing is None or column.missing == column.missing else replace(column, missing=None)


def _monotone(step: Any, kind: str, j: int, column: Column, where: str) -> Column:
    """Column j after a monotone step: the step itself, cut down to that column."""
    if kind == "KBinsDiscretizer" and (step.encode != "ordinal" or step.dtype not in (None, np.float64)):
        said = f"encode={step.encode!r}" if step.encode != "ordinal" else f"dtype={step.dtype}"
        raise ModelError(f"KBinsDiscretizer with {said}", where=where, do="use encode='ordinal' and no dtype")
    alone = _only(step, MONOTONE[kind], j)
    if kind == "PowerTransformer" and step.standardize:  # two steps, so that one may overflow before the other
        alone.standardize = False
        scaler = _only(step._scaler, MONOTONE["StandardScaler"], j)
        return column.then(_asked(alone, step.method == "box-cox")).then(_asked(scaler))
    positive = kind == "PowerTransformer" and step.method == "box-cox"
    return column.then(_asked(alone, positive))


def _asked(alone: Any, positive: bool = False) -> Function:
    """A fitted step of one column as a function. The step refuses rows with infinities (which floats near the end
    of the range become on the way) and, if positive, with numbers up to 0: for those any monotone answer will do."""

    def function(x: NDArray[np.float64]) -> NDArray[np.float64]:
        taken = np.isfinite(x) & (x > 0 if positive else True)
        result = np.where(x > 0, x, -np.inf) if positive else np.array(x, dtype=np.float64)
        if taken.any():
            with np.errstate(over="ignore", invalid="ignore"):
                result[taken] = np.asarray(alone.transform(x[taken].reshape(-1, 1)), dtype=np.float64).ravel()
        return result

    return function


def _only(step: Any, attributes: dict[str, int], j: int) -> Any:
    """The fitted step for column j alone."""
    alone = copy.copy(step)
    alone.__dict__ = dict(step.__dict__)
    for name, axis in attributes.items():
        value = getattr(step, name, None)
        if isinstance(value, np.ndarray):
            setattr(alone, name, np.take(value, [j], axis=axis))
    alone.n_features_in_ = 1
    alone.__dict__.pop("feature_names_in_", None)
    alone.__dict__.pop("_sklearn_output_config", None)
    if hasattr(alone, "copy"):
        alone.copy = True
    return alone


def _imputed(step: Any, columns: list[Column], where: str) -> list[Column]:
    """SimpleImputer, with or without indicator columns."""
    filled = []
    statistics = list(step.statistics_)
    marker = step.missing_values
    marked = isinstance(marker, float | int | np.number) and marker == marker
    for column, fill in zip(columns, statistics, strict=True):
        if isinstance(fill, str):
            raise ModelError(f"SimpleImputer fills in text ({fill[:20]!r})", where=where, do="impute after encoding")
        if isinstance(fill, float) and np.isnan(fill) and not getattr(step, "keep_empty_features", False):
            continue  # a column that was all missing is dropped
        points = {float(marker): float(fill)} if marked else {}
        filled.append(column.then(identity, np.nan if marked else float(fill), points))
    if step.add_indicator:
        for j in step.indicator_.features_:
            points = {float(marker): 1.0} if marked else {}
            filled.append(columns[int(j)].then(_zero, 0.0 if marked else 1.0, points))
    return filled


def _zero(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.zeros(len(x))


def _encoded(step: Any, columns: list[Column], where: str) -> list[Column]:
    """OrdinalEncoder."""
    if getattr(step, "_infrequent_enabled", False):
        raise ModelError(
            "OrdinalEncoder groups infrequent categories",
            where=where,
            do="use neither min_frequency nor max_categories",
        )
    unknown = float(step.unknown_value) if step.handle_unknown == "use_encoded_value" else np.nan
    result = []
    for column, categories in zip(columns, step.categories_, strict=True):
        # in the encoder's own type, which a small integer may be too small for
        images = np.arange(len(categories)).astype(step.dtype).astype(np.float64).tolist()
        result.append(_by_category(column, list(categories), images, unknown, float(step.encoded_missing_value), where))
    return result


def _one_hot(step: Any, columns: list[Column], where: str) -> list[Column]:
    """OneHotEncoder: a column of zeros and ones for each category that is not dropped."""
    if getattr(step, "_infrequent_enabled", False):
        raise ModelError(
            "OneHotEncoder groups infrequent categories", where=where, do="use neither min_frequency nor max_categories"
        )
    result = []
    dropped = step.drop_idx_ if step.drop_idx_ is not None else [None] * len(columns)
    for column, categories, drop in zip(columns, step.categories_, dropped, strict=True):
        for chosen in range(len(categories)):
            if drop is None or chosen != drop:
                images = [float(code == chosen) for code in range(len(categories))]
                result.append(_by_category(column, list(categories), images, 0.0, None, where))
    return [_refusing_missing(column) for column in result] if step.sparse_output else result


def _by_category(
    column: Column, categories: list[Any], images: list[float], unknown: float, missing: float | None, where: str
) -> Column:
    """A column whose known categories become images; any other value becomes unknown. missing: what a missing
    value becomes where it is a known category; None for its image."""
    # A missing value that was seen in training is a category of its own, the last.
    absent = [image for value, image in zip(categories, images, strict=True) if value is None or value != value]
    known = [(v, i) for v, i in zip(categories, images, strict=True) if v is not None and v == v]
    of_missing = unknown if not absent else absent[-1] if missing is None else missing
    if all(isinstance(value, str) for value, _ in known) and known:
        if column.source < 0 or column.points or column.texts is not None:
            raise ModelError("text categories of a column that was changed before", where=where)
        names = {str(value): image for value, image in known}
        return Column(column.source, lambda x: np.full(len(x), unknown), {}, of_missing, names)
    try:
        points = {float(value): image for value, image in known}
    except (TypeError, ValueError):
        raise ModelError("categories are neither text nor numbers", where=where) from None
    return column.then(lambda x: np.full(len(x), unknown), of_missing, points)


def _by_columns(step: Any, columns: list[Column], where: str) -> list[Column]:
    """ColumnTransformer: each transformer's columns, one transformer after another."""
    if step.transformer_weights:
        raise ModelError("ColumnTransformer with weights", where=where, do="scale the columns instead")
    result: list[Column] = []
    for name, transformer, _ in step.transformers_:
        chosen = step._transformer_to_input_indices[name]
        some = [columns[int(j)] for j in np.atleast_1d(np.asarray(chosen, dtype=np.int64)).tolist()]
        if (isinstance(transformer, str) and transformer == "drop") or not some:
            continue
        result += _stepped(transformer, some, f"{where}, transformer {name!r}")
    return [_refusing_missing(column) for column in result] if step.sparse_output_ else result


def _side_by_side(step: Any, columns: list[Column], where: str) -> list[Column]:
    """FeatureUnion."""
    if step.transformer_weights:
        raise ModelError("FeatureUnion with weights", where=where, do="scale the columns instead")
    result: list[Column] = []
    for name, transformer in step.transformer_list:
        if not (isinstance(transformer, str) and transformer == "drop"):
            result += _stepped(transformer, columns, f"{where}, transformer {name!r}")
    return result


def _nested(step: Any, columns: list[Column], where: str) -> list[Column]:
    """A Pipeline of steps only."""
    for name, inner in step.steps:
        columns = _stepped(inner, columns, f"{where}, step {name!r}")
    return columns


def _unchanged(step: Any, columns: list[Column], where: str) -> list[Column]:
    """FunctionTransformer without a function."""
    if step.func is not None:
        raise ModelError("FunctionTransformer with a function of its own", where=where, do="transform the rows before")
    return columns


STEPS: dict[str, Callable[[Any, list[Column], str], list[Column]]] = {
    "SimpleImputer": _imputed,
    "OrdinalEncoder": _encoded,
    "OneHotEncoder": _one_hot,
    "ColumnTransformer": _by_columns,
    "FeatureUnion": _side_by_side,
    "Pipeline": _nested,
    "FunctionTransformer": _unchanged,
}
