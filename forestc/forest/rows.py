"""Rows as the rest of forestc sees them: batches that can be gone through again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Batch:
    """Some rows.

    X: (rows, columns) float64, NaN where a value is missing, in the source's column order.
    truth: (rows,) class indices (-1: no class of the model) or, for regression, values; None without labels.
    """

    X: NDArray[np.float64]
    truth: NDArray[Any] | None = None


class Rows(Protocol):
    """Rows of one model. `batches` starts afresh at every call and keeps one batch in memory."""

    def batches(self) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows that lie in memory; `size` rows a batch."""

    X: NDArray[np.float64]
    truth: NDArray[Any] | None = None
    size: int = 32768

    def batches(self) -> Iterator[Batch]:
        for start in range(0, len(self.X), self.size):
            end = start + self.size
            yield Batch(self.X[start:end], None if self.truth is None else self.truth[start:end])


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


HELD_OUT = 5  # one row in so many is kept to judge on where no others are given


@dataclass(frozen=True)
class Some:
    """Every `HELD_OUT`th row of others, or all but those. Rows are numbered from 0; number 4 is the first held out."""

    rows: Rows
    held_out: bool

    def batches(self) -> Iterator[Batch]:
        first = 0
        for batch in self.rows.batches():
            chosen = self.chosen(first, len(batch.X))
            first += len(batch.X)
            if chosen.any():
                yield Batch(batch.X[chosen], None if batch.truth is None else batch.truth[chosen])

    def chosen(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of the rows first .. first + count - 1."""
        return _chosen(first, count, self.held_out)

    def reduce(self, task: Reduction[S]) -> S:
        found: S = reduce_rows(self.rows, _OfSome(task, self.held_out))
        return found


def _chosen(first: int, count: int, held_out: bool) -> NDArray[np.bool_]:
    return np.asarray(((np.arange(first, first + count) + 1) % HELD_OUT == 0) == held_out)


@dataclass(frozen=True)
class _OfSome:
    """A reduction over some of the rows."""

    task: Any
    held_out: bool

    def start(self) -> Any:
        return self.task.start()

    def update(self, state: Any, batch: Batch, first: int) -> None:
        chosen = _chosen(first, len(batch.X), self.held_out)
        before = first // HELD_OUT if self.held_out else first - first // HELD_OUT
        if chosen.any():
            truth = None if batch.truth is None else batch.truth[chosen]
            self.task.update(state, Batch(batch.X[chosen], truth), before)

    def merge(self, state: Any, other: Any) -> None:
        self.task.merge(state, other)


@dataclass(frozen=True)
class Judged:
    """Rows that bring other rows to be judged on."""

    rows: Rows
    held_out: Rows

    def batches(self) -> Iterator[Batch]:
        return self.rows.batches()

    def reduce(self, task: Reduction[S]) -> S:
        return reduce_rows(self.rows, task)


def to_fit(rows: Rows) -> Rows:
    """The rows an approximate pass may look at: all of them if others are there to judge on, else four in five."""
    return rows.rows if isinstance(rows, Judged) else Some(rows, held_out=False)


def to_judge(rows: Rows) -> Rows:
    """The rows an approximate pass is judged on: those that were given for it, else one in five."""
    return rows.held_out if isinstance(rows, Judged) else Some(rows, held_out=True)
