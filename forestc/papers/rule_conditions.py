"""Makes the conditions of rules from the columns of a table, as Dash, Gunluk and Wei (2018, section 4) do: x <= t and
x > t at the deciles of numbers, x = c and x != c for categories, and whether a value is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats
from forestc.forest.conditions import INFINITY, Below, Condition, InSpans, OneOf
from forestc.frontends.shared.exact import next_above

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
        match self.relation:
            case "<=":
                result = column <= self.value
            case ">":
                result = column > self.value
            case _:
                equal = np.isnan(column) if column.dtype.kind == "f" else column == self.value
                result = equal == (self.relation == "==")
        return np.asarray(result, dtype=bool)

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name} is{'' if self.relation == '==' else ' not'} missing"
        value = f"{self.value:.6g}" if isinstance(self.value, float) else self.value
        return f"{self.name} {self.relation.replace('==', '=')} {value}"

    def as_literal(self, categories: Sequence[Any] | None) -> tuple[Condition, bool]:
        """Returns the condition of a forest with the same meaning, and False if it must be negated. categories: of the
        column; None for numbers."""
        same = self.relation == "=="
        if self.relation in ("<=", ">"):
            test = Below(float(next_above(np.array(self.value), 64)))
            return Condition(self.column, test, self.relation == ">"), self.relation == "<="
        if self.value is not None and categories is not None:
            return Condition(self.column, OneOf((list(categories).index(self.value),))), same
        present = InSpans((-INFINITY,)) if categories is None else OneOf(tuple(range(len(categories) + 1)))
        return Condition(self.column, present), not same


def table_columns(X: NDArray[Any], text: Sequence[bool] | None = None) -> list[NDArray[Any]]:
    """Returns the columns of a table: numbers as float64 with NaN, other columns as objects with None for a missing
    value. text: whether each column is text; by default a column with a string is."""
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


def categories_of(column: NDArray[Any]) -> list[str]:
    """Returns the values of a column of text, ascending, without missing ones."""
    return sorted({value for value in column.tolist() if value is not None})


def quoted(text: object) -> str:
    """Returns a text as a string of Graphviz's language."""
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def conditions_of(
    columns: Sequence[NDArray[Any]], names: Sequence[str], weight: Floats, quantiles: int
) -> list[RuleCondition]:
    """Returns the conditions of a table. A number is compared with its weighted quantiles, a category with each of its
    values; a column with missing values is tested for them, too."""
    conditions: list[RuleCondition] = []

    def add(relations: Sequence[Relation], values: Sequence[Any]) -> None:
        conditions.extend(RuleCondition(index, name, relation, value) for value in values for relation in relations)

    for index, (column, name) in enumerate(zip(columns, names, strict=True)):
        absent = RuleCondition(index, name, "==", None).holds(column)
        if column.dtype.kind == "f":
            add(("<=", ">"), _cuts(column[~absent], weight[~absent], quantiles))
        elif len(values := categories_of(column)) + absent.any() > 1:
            add(("==", "!=") if len(values) > 2 or absent.any() else ("==",), values)
        if absent.any() and not absent.all():
            add(("==", "!="), [None])
    return conditions


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
