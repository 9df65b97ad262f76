"""Defines the interface of trainers."""

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
    """The rows to train on, and what to predict. X: (rows, columns) floats, NaN if missing.
    y: (rows,) class numbers from 0; values if n_classes is 0.
    names: names of the columns.
    prices: prices of the parts of a forest in hardware or C; most trainers ignore them."""

    X: NDArray[np.float64]  # (rows, columns), NaN if missing
    y: NDArray[Any]  # (rows,) class numbers from 0; values if n_classes is 0
    names: tuple[str, ...]  # names of the columns
    n_classes: int
    prices: Prices  # prices of parts of a forest; most trainers ignore them
    seed: int = 0


class Trainer(Protocol):
    """A way to train forests. name: its name on the command line, as in `--train xgboost`."""

    @property
    def name(self) -> str: ...

    def space(self, task: Task) -> tuple[Parameter, ...]:
        """Returns the parameters that a search may try."""

    def starts(self, task: Task) -> tuple[Mapping[str, Any], ...]:
        """Returns the settings that a search tries first, from small designs to accurate ones; may be empty."""

    def fit(self, task: Task, options: Mapping[str, Any]) -> Any:
        """Trains a model that `forestc.load` reads: an estimator, a Booster or a Forest. May raise ForestcError if the
        rows can't be learnt.
        options: a value for each parameter in use."""
