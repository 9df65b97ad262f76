"""Defines rows as batches that can be read again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Labels: TypeAlias = NDArray[Any]  # (rows,) class numbers or values; (rows, targets) for several targets


@dataclass(frozen=True)
class Batch:
    X: NDArray[np.float64]  # (rows, columns), or carried columns only; NaN for missing
    truth: Labels | None = None  # class indices, -1 if unknown, or values: (rows,) or (rows, targets)
    weights: NDArray[np.float64] | None = None  # (rows,) how much each row counts in accuracies; None: all alike

    def of(self, chosen: slice | NDArray[np.generic]) -> Batch:
        """Returns a batch of the chosen rows. chosen: a slice, a mask, or row numbers."""
        truth, weights = (None if each is None else each[chosen] for each in (self.truth, self.weights))
        return Batch(self.X[chosen], truth, weights)


class Rows(Protocol):
    """Rows for one model. Each call of `batches` starts with the first row."""

    def batches(self) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory."""

    X: NDArray[np.float64]
    truth: Labels | None = None
    size: int = 32768  # rows of a batch
    names: tuple[str, ...] = ()  # names of the columns; empty if the model has names
    all_columns: NDArray[np.float64] | None = None  # rows with all columns, if `X` leaves some out
    weights: NDArray[np.float64] | None = None  # as in a batch

    def batches(self) -> Iterator[Batch]:
        all_rows = Batch(self.X, self.truth, self.weights)
        for start in range(0, len(self.X), self.size):
            yield all_rows.of(slice(start, start + self.size))


S = TypeVar("S")


class Reduction(Protocol[S]):
    """A computation over rows, batch by batch. States of different rows can be merged in any order."""

    def start(self) -> S: ...

    def update(self, state: S, batch: Batch, first: int) -> None:
        """Adds a batch to the state, in place. first: the number of its first row."""

    def merge(self, state: S, other: S) -> None:
        """Adds the state of other rows to `state`, in place."""


@runtime_checkable
class Reducing(Protocol):
    """Rows that run a reduction themselves, such as on a cluster."""

    def reduce(self, task: Reduction[S]) -> S: ...


def reduce_rows(rows: Rows, task: Reduction[S]) -> S:
    """Runs a reduction over all rows and returns its final state."""
    if isinstance(rows, Reducing):
        return rows.reduce(task)
    state, first = task.start(), 0
    for batch in rows.batches():
        task.update(state, batch, first)
        first += len(batch.X)
    return state


@dataclass(frozen=True)
class _Count:
    def start(self) -> list[int]:
        return [0]

    def update(self, state: list[int], batch: Batch, first: int) -> None:
        state[0] += len(batch.X)

    def merge(self, state: list[int], other: list[int]) -> None:
        state[0] += other[0]


def count_rows(rows: Rows) -> int:
    return reduce_rows(rows, _Count())[0]


@dataclass(frozen=True)
class RowSelection:
    """A selection of rows, or of groups of rows: n, 2n, 3n, ... (from 1) if `held_out`, otherwise all others."""

    rows: Rows
    every: int  # n: every n-th row or group is selected, or left out
    held_out: bool
    groups: NDArray[np.int64] | None = None  # (rows,) number of each row's group, from 0

    def batches(self) -> Iterator[Batch]:
        first = 0
        for batch in self.rows.batches():
            chosen = self.chosen(first, len(batch.X))
            first += len(batch.X)
            if chosen.any():
                yield batch.of(chosen)

    def chosen(self, first: int, count: int) -> NDArray[np.bool_]:
        """Returns a mask (count,) of the selected rows. first: number of the first row, from 0."""
        numbers = np.arange(first, first + count) if self.groups is None else self.groups[first : first + count]
        return np.asarray(((numbers + 1) % self.every == 0) == self.held_out)

    def count_before(self, first: int) -> int:
        """Returns the number of selected rows before row `first`."""
        if self.groups is not None:
            return int(self.chosen(0, first).sum())
        aside = first // self.every
        return aside if self.held_out else first - aside

    def reduce(self, task: Reduction[S]) -> S:
        # The reduction may be sent to other machines, so it takes the selection's rule without the rows.
        rule = replace(self, rows=ArrayRows(np.zeros((0, 0))))
        state: S = reduce_rows(self.rows, _SelectionReduction(task, rule))
        return state


@dataclass(frozen=True)
class _SelectionReduction:
    task: Any
    some: RowSelection

    def start(self) -> Any:
        return self.task.start()

    def update(self, state: object, batch: Batch, first: int) -> None:
        chosen = self.some.chosen(first, len(batch.X))
        if chosen.any():
            self.task.update(state, batch.of(chosen), self.some.count_before(first))

    def merge(self, state: object, other: object) -> None:
        self.task.merge(state, other)


class FitAndHeldOut(NamedTuple):
    """The rows for passes, and held-out rows to score their results."""

    fit: Rows
    held_out: Rows

    @staticmethod
    def every(rows: Rows, count: int) -> FitAndHeldOut:
        """Holds out rows n, 2n, 3n, ... (counted from 1). count: n."""
        return FitAndHeldOut(RowSelection(rows, count, False), RowSelection(rows, count, True))


@dataclass(frozen=True)
class WeightedRows:
    """Rows that count differently in accuracies."""

    rows: Rows
    weights: NDArray[np.float64]  # (rows,)

    def batches(self) -> Iterator[Batch]:
        first = 0
        for batch in self.rows.batches():
            yield replace(batch, weights=self.weights[first : (first := first + len(batch.X))])


@dataclass(frozen=True)
class RowsAt:
    """The rows with the given numbers."""

    rows: Rows
    numbers: NDArray[np.int64]  # ascending row numbers, counted from 0

    def batches(self) -> Iterator[Batch]:
        first = 0
        for batch in self.rows.batches():
            start, end = np.searchsorted(self.numbers, (first, first + len(batch.X)))
            if start < end:
                yield batch.of(self.numbers[start:end] - first)
            first += len(batch.X)
            if end == len(self.numbers):
                return


def evenly_spaced(rows: Rows, most: int, count: int) -> Rows:
    """Returns the rows, or, if these are more than `most`, that many at even distances. count: the number of rows."""
    return rows if count <= most else RowsAt(rows, np.arange(most, dtype=np.int64) * count // most)
