"""Makes the conditions of rules from the columns of a table (Dash, Gunluk and Wei 2018, section 4): x <= t and x > t at
the deciles of numbers, x = c and x != c for categories, and tests for missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats
from forestc.errors import OptionError

Relation = Literal["<=", ">", "==", "!="]


@dataclass(frozen=True)
class RuleCondition:
    """A condition of a rule: a column, a relation and a value; the value None stands for a missing one.

    A missing value only satisfies `!=` with another value, and `==` with None.
    """

    column: int
    name: str
    relation: Relation
    value: Any

    def holds(self, column: NDArray[Any]) -> Bits:
        """Returns for each value of the column whether the condition holds. column: as `table_columns` returns it."""
        if self.relation in ("<=", ">"):
            return np.asarray(column <= self.value if self.relation == "<=" else column > self.value)
        equal = np.isnan(column) if column.dtype.kind == "f" else column == self.value
        return np.asarray(equal == (self.relation == "=="), dtype=bool)

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name} is{'' if self.relation == '==' else ' not'} missing"
        value = f"{self.value:.6g}" if isinstance(self.value, float) else self.value
        return f"{self.name} {self.relation.replace('==', '=')} {value}"


def table_columns(X: Any, text: Sequence[Any] | None = None) -> list[NDArray[Any]]:
    """Returns the columns of a table: numbers as float64 with NaN, other columns as objects with None for a missing
    value. X: an array or a sparse matrix. text: true for each column of text; by default a column with a string is."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if X.dtype.kind in "biuf":
        return list(X.astype(np.float64).T)
    columns: list[NDArray[Any]] = []
    for index, column in enumerate(X.T):
        values = [None if value is None or value != value else value for value in column.tolist()]
        if any(isinstance(value, str) for value in values) if text is None else text[index]:
            columns.append(np.array([value if value is None else str(value) for value in values], dtype=object))
        else:
            columns.append(np.array([np.nan if value is None else value for value in values], dtype=np.float64))
    return columns


def categories_of(column: NDArray[Any]) -> tuple[str, ...]:
    """Returns the values of a column of text, ascending, without missing ones; none for numbers."""
    return () if column.dtype.kind == "f" else tuple(sorted({value for value in column.tolist() if value is not None}))


def conditions_of(
    columns: Sequence[NDArray[Any]], names: Sequence[str], weight: Floats, quantiles: int = 10
) -> list[RuleCondition]:
    """Returns the conditions of a table. A number is compared with its weighted quantiles, a category with each of its
    values; a column with missing values is tested for them, too. Raises OptionError for less than two quantiles."""
    if quantiles < 2:
        raise OptionError(f"{quantiles}", where="quantiles", do="use at least 2")
    conditions: list[RuleCondition] = []

    def add(relations: Sequence[Relation], values: Sequence[Any]) -> None:
        conditions.extend(RuleCondition(index, name, relation, value) for value in values for relation in relations)

    for index, (column, name) in enumerate(zip(columns, names, strict=True)):
        absent = RuleCondition(index, name, "==", None).holds(column)
        if column.dtype.kind == "f":
            add(("<=", ">"), _cuts(column[~absent], weight[~absent], quantiles))
        elif len(values := categories_of(column)) + absent.any() > 1:
            # If there are two values, each condition is the negation of the other.
            add(("==", "!=") if len(values) > 2 or absent.any() else ("==",), values)
        if absent.any() and not absent.all():
            add(("==", "!="), [None])
    return conditions


def condition_bits(conditions: Sequence[RuleCondition], columns: Sequence[NDArray[Any]]) -> Bits:
    """Returns (rows, conditions) True where a condition holds."""
    bits = np.empty((len(columns[0]), len(conditions)), dtype=bool)
    for index, condition in enumerate(conditions):
        bits[:, index] = condition.holds(columns[condition.column])
    return bits


def _cuts(values: Floats, weight: Floats, quantiles: int) -> list[float]:
    """Returns the distinct quantiles below the largest value, each halfway to the next value."""
    distinct, inverse = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        return []
    share = np.cumsum(np.bincount(inverse, weight))
    targets = np.arange(1, quantiles) * share[-1] / quantiles
    last = np.unique(np.searchsorted(share, targets * (1 - 1e-12)))
    last = last[last < len(distinct) - 1]
    low, high = distinct[last], distinct[last + 1]
    middle = low + (high - low) / 2
    return list(map(float, np.where((low <= middle) & (middle < high), middle, low)))
