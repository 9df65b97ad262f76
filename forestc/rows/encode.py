"""Encodes raw rows (arrays or data frames) as the values that a forest's conditions compare."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestc.errors import RowsError
from forestc.forest.evaluate import Evaluation, encode_numbers, evaluate_words
from forestc.forest.ir import Forest
from forestc.rows.frames import frame_numbers, frame_table, is_absent

if TYPE_CHECKING:
    from scipy.sparse import spmatrix


def encode(forest: Forest, rows: ArrayLike) -> NDArray[Any]:
    """Returns raw rows encoded for the forest, (rows, features): int64 words if its thresholds are integers, otherwise
    float64. Raises RowsError for rows that do not match."""
    return encode_numbers(forest, numeric(forest, rows))


def evaluate(forest: Forest, rows: ArrayLike) -> Evaluation:
    """Evaluates a forest on raw rows, by the simple evaluator that defines its meaning.

    Parameters
    ----------
    forest : Forest
        A float or a quantized forest.
    rows : array-like or data frame of shape (rows, columns)
        Rows with the columns of the model. NaN is a missing value.

    Returns
    -------
    Evaluation
        Leaves, scores, values and decisions of each row.

    Raises
    ------
    RowsError
        If the rows have another width, hold text in a column without category names, or miss a value where the
        model takes none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = forestc.load(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y))
    >>> forestc.evaluate(forest, X[[0, 75, 149]]).decision
    array([0, 1, 2])
    """
    return evaluate_words(forest, encode(forest, rows))


def is_sparse(rows: object) -> TypeGuard[spmatrix]:
    """Returns True for a sparse matrix or array of SciPy, without importing SciPy."""
    return type(rows).__module__.startswith("scipy.sparse") and hasattr(rows, "tocsc")


def numeric(forest: Forest, rows: object) -> NDArray[np.float64]:
    """Returns rows as float64, (rows, columns), with codes for category names. Raises RowsError if a data frame lacks a
    column, or if a column without category names holds text."""
    table = frame_table(rows)
    if table is not None:
        return frame_numbers(forest, table)[0]
    labeled = any(feature.labels for feature in forest.features)
    if is_sparse(rows):
        return _dense(forest, rows)
    if forest.carried and isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == forest.columns:
        rows = rows[:, list(forest.carried)]
    dtype = rows.dtype if isinstance(rows, np.ndarray) else None
    if not labeled or (dtype is not None and dtype.kind in "biuf"):
        with suppress(TypeError, ValueError):  # Columns that no condition reads may hold text.
            return np.asarray(rows, dtype=np.float64)
    try:
        values = np.asarray(rows, dtype=object)  # Text that looks like a number may be a name.
    except ValueError as error:  # The lists have different lengths.
        raise RowsError(f"the rows are no table ({error})", where="the rows", do="give rows of one length") from None
    if values.ndim != 2 or values.shape[1] not in (forest.width, forest.columns):
        return np.zeros(values.shape)  # The caller will refuse this shape.
    only_read_columns = values.shape[1] == forest.width
    result = np.zeros((len(values), forest.width))
    for feature, index in zip(forest.features, forest.row_columns, strict=True):
        codes = {label: float(code) for code, label in enumerate(feature.labels)}
        try:
            result[:, index] = [
                np.nan if is_absent(value) else codes.get(value, -1.0) if codes and isinstance(value, str) else value
                for value in values[:, index if only_read_columns else feature.column]
            ]
        except (TypeError, ValueError) as error:
            raise RowsError(
                f"the rows are not numbers ({error})", where=f"feature {feature.name!r}", do="encode text columns first"
            ) from None
    return result


def _dense(forest: Forest, rows: spmatrix) -> NDArray[np.float64]:
    """Returns a sparse matrix as a dense array. Values that are not stored become 0; for an XGBoost model they become
    NaN."""
    if rows.ndim != 2 or rows.shape[1] != forest.columns:
        return np.zeros((0, *rows.shape))  # The caller will refuse this shape.
    chosen = rows.tocsc()[:, list(forest.carried)] if forest.carried else rows.tocsc()
    result = np.asarray(chosen.toarray(), dtype=np.float64)
    if forest.provenance.source == "xgboost":
        stored = chosen.copy()
        stored.data = np.ones(len(stored.data), dtype=bool)
        result[~stored.toarray()] = np.nan
    return result
