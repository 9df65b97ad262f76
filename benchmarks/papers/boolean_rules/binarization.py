"""Makes bits for rule learning from tables: deciles of numbers and values of categories, each with its negation.

The literals are those of Dash, Gunluk and Wei (2018, section 4): x <= t and x > t at the sample deciles, x = c and x !=
c for categories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError

Relation = Literal["<=", ">", "==", "!="]
NEGATED: dict[Relation, Relation] = {"<=": ">", ">": "<=", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Bit:
    """A literal: a feature, a relation and a value."""

    feature: int
    relation: Relation
    value: Any

    def holds(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether the relation holds for each value of the feature. For a missing number only `!=` holds."""
        match self.relation:
            case "<=":
                return np.asarray(column.astype(np.float64) <= self.value)
            case ">":
                return np.asarray(column.astype(np.float64) > self.value)
            case "==":
                return np.asarray(column == self.value)
            case "!=":
                return np.asarray(column != self.value)


@dataclass(frozen=True)
class Binarization:
    """The literals of a table, in the order of the features."""

    bits: tuple[Bit, ...]

    @property
    def groups(self) -> NDArray[np.int64]:
        """The feature of each literal, as `learn_rules` takes them: (literals,)."""
        return np.array([bit.feature for bit in self.bits], dtype=np.int64)

    def transform(self, columns: list[NDArray[Any]]) -> NDArray[np.bool_]:
        """Evaluates the literals on the columns of a table; returns (rows, literals)."""
        return np.stack([bit.holds(columns[bit.feature]) for bit in self.bits], axis=1)


def binarization(columns: list[NDArray[Any]], *, quantiles: int = 10) -> Binarization:
    """Makes the literals of a table from its training rows. Numbers are cut at their quantiles (9 cuts for deciles,
    fewer if values repeat); all other columns are categories. Raises RowsError if no feature has two different values.

    columns: one array for each feature.
    """
    bits: list[Bit] = []
    for feature, column in enumerate(columns):
        if np.issubdtype(column.dtype, np.number):
            present = column[~np.isnan(column.astype(np.float64))]
            cuts = (
                np.unique(np.quantile(present, np.linspace(0, 1, quantiles + 1)[1:-1])) if len(present) else np.zeros(0)
            )
            bits += [
                Bit(feature, relation, cut) for cut in cuts.tolist() if cut < present.max() for relation in ("<=", ">")
            ]
        else:
            values = np.unique(column).tolist()
            # If there are two values, each literal is the negation of the other.
            relations: tuple[Relation, ...] = ("==", "!=") if len(values) > 2 else ("==",)
            bits += [Bit(feature, relation, value) for value in values for relation in relations if len(values) > 1]
    if not bits:
        raise RowsError("no feature has two different values", do="pass rows that differ")
    return Binarization(tuple(bits))
