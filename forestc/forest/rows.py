"""Rows as the rest of forestc sees them: batches that can be gone through again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

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
    size: int = 8192

    def batches(self) -> Iterator[Batch]:
        for start in range(0, len(self.X), self.size):
            end = start + self.size
            yield Batch(self.X[start:end], None if self.truth is None else self.truth[start:end])
