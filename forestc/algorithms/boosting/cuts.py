"""Chooses candidate thresholds for boosting. A comparator skips the trailing zero bits of its threshold, so round
numbers need less hardware."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from forestc.algorithms.arrays import Bits, Bytes, Floats, Ints
from forestc.algorithms.boosting.kernels import Coded
from forestc.errors import OptionError

MOST_CUTS = 250  # thresholds of a column at most: their codes are bytes


@dataclass(frozen=True)
class Cuts:
    """Thresholds of each column, and the rows coded by these thresholds."""

    thresholds: tuple[Floats, ...]  # for each column, ascending
    bits: tuple[Ints, ...]  # number of bits that each threshold's comparator reads
    codes: Bytes  # (columns, rows) number of thresholds at or below the value
    missing: int  # code of NaN
    has_missing: Bits  # (columns,) True if the column has a NaN

    @cached_property
    def coded(self) -> Coded:
        counts = np.array([len(thresholds) for thresholds in self.thresholds], dtype=np.int64)
        return Coded(self.codes, counts, self.has_missing, self.missing)


def quantile_cuts(column: Floats, count: int) -> Floats:
    """Returns at most `count` thresholds of a column without NaN. Each lies between neighboring quantiles or, if the
    column has few values, between neighboring values."""
    values, rows = np.unique(column, return_counts=True)
    if len(values) < 2:
        return np.empty(0)
    if len(values) - 1 > count:
        ranks = np.searchsorted(np.cumsum(rows), np.linspace(0, len(column), count + 1)[1:-1])
        values = values[np.unique(np.concatenate([[0], ranks, [len(values) - 1]]))]
    return np.unique([roundest(low, high) for low, high in pairwise(values)])


def grid_step(column: Floats, bits: int) -> float | None:
    """Returns a power of two such that 2**bits steps cover at least the middle 98 % of the column. Returns None if all
    values are equal."""
    low, high = np.quantile(column, [0.01, 0.99])
    if not high > low:
        low, high = column.min(), column.max()
    return math.ldexp(1.0, math.ceil(math.log2((high - low) / (1 << bits)))) if high > low else None


def grid_cuts(column: Floats, bits: int) -> Floats:
    """Returns at most `MOST_CUTS` thresholds for a column without NaN, all multiples of `grid_step`."""
    step = grid_step(column, bits)
    if step is None:
        return np.empty(0)
    # Multiples with no row between them separate the same rows, so one is enough.
    steps = np.unique(np.floor(column / step))[1:]
    low, high = np.quantile(steps, [0.01, 0.99]) if len(steps) > MOST_CUTS else (-math.inf, math.inf)
    return steps[(steps >= low) & (steps <= high)][:MOST_CUTS] * step


def roundest(low: float, high: float) -> float:
    """Returns the number in (low, high] with the most trailing zero bits; 0 if the interval holds 0."""
    if low < 0 <= high:
        return 0.0
    exponent = math.frexp(max(abs(low), abs(high)))[1]
    for power in range(exponent, exponent - 54, -1):
        multiple = math.ldexp(math.floor(math.ldexp(high, -power)), power)
        if multiple > low:
            return multiple
    return high


def comparator_bits(thresholds: Floats, column: Floats) -> Ints:
    """Returns for each threshold the number of bits that its comparator reads. column: finite values, from which the
    range of values follows."""
    reach = float(np.abs(column).max(initial=0.0))
    top = math.frexp(reach)[1] if reach else 1
    fraction, exponent = np.frexp(thresholds)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    zeros = np.log2(np.maximum(mantissa & -mantissa, 1)).astype(np.int64)
    lowest = exponent - 53 + zeros  # the threshold is an odd multiple of 2**lowest
    signed = int(column.min(initial=0.0) < 0)
    return np.where(thresholds == 0, signed, np.maximum(top - lowest, 1) + signed).astype(np.int64)


def cuts_of(X: Floats, find: Callable[[Floats], Floats]) -> Cuts:
    """Returns thresholds and codes of X, (rows, columns). `find` maps a column's finite values to thresholds. Raises
    OptionError for too many thresholds."""
    finite = [column[np.isfinite(column)] for column in X.T]
    return cuts_at(X, [find(column) if len(column) else np.empty(0) for column in finite])


def cuts_at(X: Floats, thresholds: Sequence[Floats]) -> Cuts:
    """Returns X, (rows, columns), coded by given thresholds of each column. Raises OptionError if a column has more
    than `MOST_CUTS` thresholds."""
    rows, columns = X.shape
    codes = np.empty((columns, rows), dtype=np.uint8)
    missing = np.isnan(X)
    bits = []
    for index, column_cuts in enumerate(thresholds):
        if len(column_cuts) > MOST_CUTS:
            raise OptionError(
                f"{len(column_cuts)} thresholds to choose from",
                where=f"column {index}",
                do=f"ask for at most {MOST_CUTS}",
            )
        bits.append(comparator_bits(column_cuts, X[np.isfinite(X[:, index]), index]))
        codes[index] = np.searchsorted(column_cuts, X[:, index], side="right")
    code = max((len(column_cuts) for column_cuts in thresholds), default=0) + 1
    codes[missing.T] = code
    return Cuts(tuple(thresholds), tuple(bits), codes, code, np.asarray(missing.any(axis=0)))
