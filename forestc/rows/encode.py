"""Encodes raw rows (arrays or data frames) as the values that a forest's conditions compare."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from forestc.forest.evaluate import Evaluation, encode_numbers, evaluate_words
from forestc.forest.ir import Forest
from forestc.rows.columns import numeric


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
