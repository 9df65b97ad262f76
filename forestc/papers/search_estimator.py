"""Holds the common parameters of the estimators that search: limits, seed, progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from forestc.algorithms.covers.column_generation import Progress, SearchState
from forestc.algorithms.covers.column_generation import relative_gap as relative_gap
from forestc.algorithms.members.selection_run import printer
from forestc.errors import MissingExtraError
from forestc.papers.parameter_types import check_types

try:
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

Callback = Callable[[float, float, float], None]  # takes incumbent, bound and relative gap


class SearchEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that search. The bound is the best possible value that is not yet ruled out."""

    _worst_bound = 0.0  # bound if nothing is proved

    def _limits(self, name: str, usual: int) -> tuple[int | None, float]:
        """Checks the parameters' types, and returns the limits of iterations and of seconds. name: the parameter that
        limits iterations. usual: iterations if the user limits neither. Raises OptionError."""
        check_types(self)
        iterations: int | None = getattr(self, name)
        if self.time_limit is None or self.time_limit == math.inf:
            return usual if iterations is None else iterations, math.inf
        return iterations, float(self.time_limit)

    def _dense(self, X: Any, *, reset: bool = False, **checks: Any) -> Any:
        """Returns a matrix, frame or sparse matrix as an array of float64, checked by scikit-learn. reset: in `fit`."""
        if not reset:
            check_is_fitted(self)
        checked = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, **checks)
        return checked.toarray() if issparse(checked) else checked

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _seed(self, *other: Any) -> int:
        return int(check_random_state(*(other or [self.random_state])).randint(2**31 - 1))

    def _progress(self) -> Progress:
        say = printer(f"[{type(self).__name__}]", self.verbose)

        def progress(state: SearchState) -> None:
            say(state.text)
            if self.callback is not None and state.value is not None:
                bound = self._worst_bound if state.bound is None else state.bound
                self.callback(state.value, bound, relative_gap(state.value, bound))

        return progress
