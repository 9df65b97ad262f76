"""Defines the interface of a trainer: it takes rows and returns a model that `forestc.load` reads."""

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
    """The rows to train on, and what to predict. X: (rows, columns) floats, NaN if missing. y: (rows,) class numbers
    from 0; values if n_classes is 0. names: names of the columns. prices: what the parts of a forest cost in hardware
    or on a processor; most trainers ignore them."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    names: tuple[str, ...]
    n_classes: int
    prices: Prices
    seed: int = 0


class Trainer(Protocol):
    """A way to train forests. name: its name on the command line, as in `--train xgboost`."""

    @property
    def name(self) -> str: ...

    def space(self, task: Task) -> tuple[Parameter, ...]:
        """Returns the parameters that a search may try, under the trainer's own names (`trees`, `depth`)."""

    def starts(self, task: Task) -> tuple[Mapping[str, Any], ...]:
        """Returns sets of options that a search tries first: they are known to work well, from small designs to
        accurate ones. A search draws the options that a set leaves out. May be empty."""

    def fit(self, task: Task, options: Mapping[str, Any]) -> Any:
        """Trains a model that `forestc.load` reads (an estimator, a Booster or a Forest), in one thread. options: a
        value for each parameter in use. Raises ForestcError if the rows can't be learnt."""
