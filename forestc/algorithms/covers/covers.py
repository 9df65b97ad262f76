"""Covers by columns: the problem that `column_generation` solves, and the parts that a user of it brings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Column:
    """rows: ascending, those it covers. key: what the column stands for, hashable; equal keys are equal columns."""

    rows: NDArray[np.int32]
    cost: float
    size: float
    key: Any


@dataclass(frozen=True)
class Cover:
    """The problem without its columns. penalty: (rows,) > 0. least_size: no column is smaller. integral: all penalties
    and costs are whole numbers, so that bounds may be rounded up."""

    penalty: Floats
    budget: float
    least_size: float
    integral: bool

    def rounded(self, bound: float) -> float:
        """The bound on covers that follows from a bound on fractional covers."""
        return float(math.ceil(bound - 1e-6)) if self.integral else bound


@dataclass(frozen=True)
class Priced:
    """columns: of positive reduced gain, the best first. worth: at least (sum of duals - cost) / size of every column
    that exists; inf if nothing is known. complete: the search came to its end."""

    columns: list[Column]
    worth: float = math.inf
    complete: bool = False


class Pricer(Protocol):
    """Finds columns whose duals outweigh cost_k + price * size_k."""

    def quick(self, duals: Floats, price: float) -> list[Column]:
        """Good columns fast; an empty list proves nothing."""
        ...

    def fitting(self, duals: Floats, price: float, room: float) -> list[Column]:
        """As quick, of at most this size, and faster where it can be."""
        ...

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        """The best column, others, and a bound on the worth of all. It ends after about so many additions,
        or at the deadline (of time.monotonic()), with what is known by then."""
        ...


class Selection(Protocol):
    """A search for a good cover over given columns; see `cover_selection.CoverSearch`."""

    def add(self, columns: Sequence[Column]) -> None:
        """More columns to choose from."""
        ...

    def improve(self, taken: Floats) -> None:
        """Searches on, first from where the relaxation points to."""
        ...

    def offer(self, chosen: Sequence[int]) -> None:
        """A cover found elsewhere, kept if it is better."""
        ...

    @property
    def best(self) -> tuple[float, tuple[int, ...]]:
        """Objective and columns of the best cover so far."""
        ...
