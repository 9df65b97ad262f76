"""The contract of a trainer: rows in, a model that `forestc.load` reads out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forestc.costs.prices import Prices
from forestc.options.parameters import Parameter


@dataclass(frozen=True)
class Task:
    """What is trained.

    X: (rows, columns) of floats, NaN where missing. y: (rows,) of class numbers 0 .. n_classes - 1, or of values if
    n_classes is 0. names: of the columns. prices: what hardware, or a processor, pays for the parts of a forest;
    trainers that know nothing of them ignore them.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    names: tuple[str, ...]
    n_classes: int
    prices: Prices
    seed: int = 0


class Trainer(Protocol):
    """One way to train. name: on the command line, as in `--train xgboost`."""

    @property
    def name(self) -> str: ...

    def space(self, task: Task) -> tuple[Parameter, ...]:
        """What a search may try; names begin with the trainer's own word (`trees`, `depth`) and no prefix."""

    def starts(self, task: Task) -> tuple[Mapping[str, Any], ...]:
        """Options that are known to pay, from small designs to accurate ones, which a search tries first; those that
        are left out are drawn. May be empty."""

    def fit(self, task: Task, options: Mapping[str, Any]) -> Any:
        """A model that `forestc.load` reads (an estimator, a Booster or a Forest). Threads: one. options: a value for
        each parameter in use. Raises ForestcError for rows that can't be learnt from."""
