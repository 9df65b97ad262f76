"""Defines the interface of trainers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forestc.costs.prices import Prices
from forestc.fields.parameters import Parameter


@dataclass(frozen=True)
class Task:
    """The rows to train on, and what to predict."""

    X: NDArray[np.float64]  # (rows, columns), NaN if missing
    y: NDArray[Any]  # (rows,) class numbers from 0; values if n_classes is 0
    names: tuple[str, ...]  # names of the columns
    n_classes: int
    prices: Prices  # prices of parts of a forest; most trainers ignore them
    seed: int = 0


class Trainer(Protocol):
    """A way to train forests. name: as in the option `--train xgboost`."""

    @property
    def name(self) -> str: ...

    def space(self, task: Task) -> tuple[Parameter, ...]:
        """Returns the parameters that a search may try."""

    def starts(self, task: Task) -> tuple[Mapping[str, Any], ...]:
        """Returns the settings, if any, that a search tries first, from small designs to accurate ones."""

    def fit(self, task: Task, options: Mapping[str, Any]) -> Any:
        """Trains a model that `forestc.load` reads. Raises ForestcError if the rows can't be learnt. options: values of
        the parameters in use."""
