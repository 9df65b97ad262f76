"""Rows as the rest of forestc sees them: batches that can be gone through again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Labels: TypeAlias = NDArray[Any]  # (rows,) class numbers or values; (rows, targets) of several targets


@dataclass(frozen=True)
class Batch:
    """Some rows.

    X: (rows, columns) float64, NaN where a value is missing, in the source's column order; of a very wide
    source only the columns that are read (`Forest.carried`).
    truth: (rows,) class indices (-1: no class of the model) or, for regression, values; (rows, targets) of several
    targets or outputs; None without labels.
    """

    X: NDArray[np.float64]
    truth: Labels | None = None

    def of(self, chosen: slice | NDArray[np.generic]) -> Batch:
        """Some of these rows: those of a slice, of a mask, or at places."""
        return Batch(self.X[chosen], None if self.truth is None else self.truth[chosen])


class Rows(Protocol):
    """Rows of one model. `batches` starts afresh at every call and keeps one batch in memory."""

    def batches(self) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows that lie in memory; `size` rows a batch. names: what they call the model's columns, where the model has no
    names and they have (see `forestc.rows.columns`). whole: the rows with the columns that `X` leaves out, if any, for
    those who train on them."""

    X: NDArray[np.float64]
    truth: Labels | None = None
    size: int = 32768
    names: tuple[str, ...] = ()
    whole: NDArray[np.float64] | None = None

    def batches(self) -> Iterator[Batch]:
        whole = Batch(self.X, self.truth)
        for start in range(0, len(self.X), self.size):
            yield whole.of(slice(start, start + self.size))


S = TypeVar("S")


class Reduction(Protocol[S]):
    """What can be found out batch by batch and merged: the same whether rows come one after another or lie on many
    machines, whose parts may come in any order. Must pickle."""

    def start(self) -> S: ...

    def update(self, state: S, batch: Batch, first: int) -> None:
        """Takes in a batch whose first row is row number `first`; changes the state in place."""

    def merge(self, state: S, other: S) -> None:
        """Takes in what was found in other rows; changes the state in place."""


@runtime_checkable
class Reducing(Protocol):
    """Rows that know their own way to reduce themselves."""

    def reduce(self, task: Reduction[S]) -> S: ...


def reduce_rows(rows: Rows, task: Reduction[S]) -> S:
    """The state after all rows. Rows that know a better way take it."""
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
    """How many rows there are."""
    return reduce_rows(rows, _Count())[0]


@dataclass(frozen=True)
class Some:
    """Every n-th row of others, or all but those. Rows count from 1: of every fifth the first is number 5."""

    rows: Rows
    every: int
    held_out: bool

    def batches(self) -> Iterator[Batch]:
        first = 0
        for batch in self.rows.batches():
            chosen = self.chosen(first, len(batch.X))
            first += len(batch.X)
            if chosen.any():
                yield batch.of(chosen)

    def chosen(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of the rows first .. first + count - 1, which count from 0."""
        return np.asarray(((np.arange(first, first + count) + 1) % self.every == 0) == self.held_out)

    def reduce(self, task: Reduction[S]) -> S:
        # these rows stay here: a task that goes elsewhere takes along only how to choose
        state: S = reduce_rows(self.rows, _OfSome(task, Some(ArrayRows(np.zeros((0, 0))), self.every, self.held_out)))
        return state


@dataclass(frozen=True)
class _OfSome:
    """A reduction over some of the rows."""

    task: Any
    some: Some

    def start(self) -> Any:
        return self.task.start()

    def update(self, state: object, batch: Batch, first: int) -> None:
        chosen = self.some.chosen(first, len(batch.X))
        held = first // self.some.every
        if chosen.any():
            self.task.update(state, batch.of(chosen), held if self.some.held_out else first - held)

    def merge(self, state: object, other: object) -> None:
        self.task.merge(state, other)


class FitAndHeldOut(NamedTuple):
    """Rows that passes look at, and rows held out, on which a judge measures what they lost."""

    fit: Rows
    held_out: Rows

    @staticmethod
    def every(rows: Rows, count: int) -> FitAndHeldOut:
        """Every n-th row held out; n is `count`."""
        return FitAndHeldOut(Some(rows, count, False), Some(rows, count, True))


@dataclass(frozen=True)
class RowsAt:
    """The rows at some places, which ascend and count from 0."""

    rows: Rows
    places: NDArray[np.int64]

    def batches(self) -> Iterator[Batch]:
        first = 0
        for batch in self.rows.batches():
            start, end = np.searchsorted(self.places, (first, first + len(batch.X)))
            if start < end:
                yield batch.of(self.places[start:end] - first)
            first += len(batch.X)
            if end == len(self.places):
                return


def evenly_spaced(rows: Rows, most: int, count: int) -> Rows:
    """The rows, or `most` of them if there are more. count: how many there are."""
    return rows if count <= most else RowsAt(rows, np.arange(most, dtype=np.int64) * count // most)
