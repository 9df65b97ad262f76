"""Holds the common parameters of the estimators that search: limits, seed, progress."""

from __future__ import annotations

import math
from typing import Any

from forestc.algorithms.covers.column_generation import SearchState
from forestc.errors import MissingExtraError, OptionError

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_random_state
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

MOST_SEED = 2**31 - 1  # seeds are below


class SearchEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that search. The bound is the best possible value that is not yet ruled out."""

    _worst_bound = 0.0  # bound if nothing is proved

    def _limits(self, name: str, usual: int) -> tuple[int | None, float]:
        """Returns the limits of iterations and of seconds. name: the parameter that limits iterations. usual:
        iterations if the user limits neither."""
        iterations: int | None = getattr(self, name)
        if iterations is not None and iterations < 1:
            raise OptionError(f"{name} {iterations}", where=type(self).__name__, do="allow at least 1")
        if self.time_limit is not None and not self.time_limit > 0:
            raise OptionError(f"time_limit {self.time_limit}", where=type(self).__name__, do="use seconds above 0")
        if self.time_limit is None or math.isinf(self.time_limit):
            return iterations or usual, math.inf
        return iterations, float(self.time_limit)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(MOST_SEED))

    def _progress(self, state: SearchState) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {state.text}")  # noqa: T201  as scikit-learn's estimators do
        if self.callback is not None and state.value is not None:
            bound = self._worst_bound if state.bound is None else state.bound
            self.callback(state.value, bound, relative_gap(state.value, bound))


def relative_gap(value: Any, bound: Any) -> float:
    """Returns abs(value - bound) / abs(value): 0 if they are equal, infinity without a bound."""
    if value == bound:
        return 0.0
    return abs(float(value) - float(bound)) / max(abs(float(value)), 1e-300)
