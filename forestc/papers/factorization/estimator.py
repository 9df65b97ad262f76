"""Factorizes binary matrices as a scikit-learn transformer.

R. A. Kovacs, O. Gunluk and R. A. Hauser, "Binary Matrix Factorisation via Column Generation", AAAI 2021.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from forestc.algorithms.arrays import Bits
from forestc.errors import MissingExtraError
from forestc.papers.factorization.binary_matrix_factorization import best_rows, factorize
from forestc.papers.factorization.factor_search import boolean_product
from forestc.papers.search_estimator import Callback, SearchEstimator, relative_gap

try:
    from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

# Limits the rounds of column generation, and the steps of their relaxations, if neither rounds nor time are limited.
ROUNDS, WORK = 20, 3e9


class BinaryMatrixFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SearchEstimator):  # type: ignore[misc]
    """Boolean factors of a binary matrix: X is close to A o B, where entry ij is the OR over f of A_if AND B_fj.

    `fit` finds factors with few differing entries by a local search and by column generation for MIP(rho) of the paper
    (equations 14 and 15), with bicliques as columns. `bound_` is a lower bound on the differing entries of any
    factors of this rank, by the relaxation of MIP(1 / n_components) (equations 16 and 17).

    Parameters
    ----------
    n_components : int, default=2
        Rank: number of factors.
    rho : float, default=1.0
        Cost of covering a zero in the master problem; each covering counts.
    max_iter, time_limit : int, float, optional
        Most rounds of column generation, and seconds. Without a time limit two fits are equal. If neither is given, the
        search ends after 20 rounds, or earlier when its linear programs have taken 3e9 steps (nonzeros times
        simplex iterations), which is some ten seconds in all on 569 x 30 entries.
    warm_start, callback : bool, callable, optional
        Whether `fit` begins with the factors of the previous `fit`, if the shapes are the same; called with (incumbent,
        bound, gap) during the search.
    verbose, random_state : bool, int or RandomState instance, optional
        Whether to print the progress (None: a line a second, after the first, to standard error); seed of the search.

    Attributes
    ----------
    components_ : bool array of shape (n_components, columns)
        The factor B.
    reconstruction_error_, bound_, gap_ : int, float, float
        Number of known entries in which A o B differs from the training matrix; a lower bound on it for any factors of
        this rank, 0 if none is proved, and for ranks above 2 often weak, as the relaxation is; the relative gap.
    model_error_, model_bound_ : float
        Least objective of MIP(rho) found, and a lower bound on its optimum. An overlap on a zero counts repeatedly.
    relaxation_, relaxation_optimal_ : float, bool
        Optimum of the relaxation of MIP(rho) over the generated columns; whether no other column improves it.
    interrupted_, n_iter_ : bool, int
        True if Ctrl-C ended the search; rounds of column generation.
    n_features_in_, feature_names_in_ : int, array of shape (columns,)
        Number of columns; their names, if all are text.

    Examples
    --------
    >>> import numpy as np
    >>> from forestc.papers import BinaryMatrixFactorization
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]])
    >>> model = BinaryMatrixFactorization(2, random_state=0).fit(X)
    >>> model.reconstruction_error_, bool((model.inverse_transform(model.transform(X)) == X).all())
    (0, True)
    """

    def __init__(
        self, n_components: int = 2, *, rho: float = 1.0, max_iter: int | None = None, time_limit: float | None = None,
        warm_start: bool = False, callback: Callback | None = None, verbose: bool | int | None = None,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_components, self.rho, self.max_iter, self.time_limit = n_components, rho, max_iter, time_limit
        self.warm_start, self.callback, self.verbose, self.random_state = warm_start, callback, verbose, random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factorizes a matrix of zeros and ones, where NaN is a missing entry. Returns the transformer."""
        rounds, seconds = self._limits("max_iter", ROUNDS)
        X = self._dense(X, reset=True, ensure_all_finite="allow-nan")
        factors = factorize(
            X, self.n_components, rho=self.rho, time_limit=seconds, rounds=rounds, seed=self._seed(),
            work=WORK if self.max_iter is None and seconds == math.inf else math.inf,
            start=getattr(self, "components_", None) if self.warm_start else None, progress=self._progress(),
        )  # fmt: skip
        self.components_, self.reconstruction_error_, self.bound_ = factors.B, factors.error, factors.bound
        self.gap_, self.interrupted_ = relative_gap(factors.error, factors.bound), factors.interrupted
        self.model_error_, self.model_bound_ = factors.model_error, factors.model_bound
        self.relaxation_, self.relaxation_optimal_ = factors.relaxation, factors.complete
        self.n_iter_ = max(1, factors.rounds)
        return self

    def transform(self, X: Any) -> Bits:
        """Returns the factor A of a matrix, (rows, n_components): for each row the factors with the fewest errors."""
        X = self._dense(X, ensure_all_finite="allow-nan")
        return best_rows(X, self.components_)

    def inverse_transform(self, X: Any) -> Bits:
        """Returns the Boolean product A o B of codes A, (rows, n_components), and the components."""
        self._check_fitted()
        return boolean_product(np.asarray(X, dtype=bool), self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags
