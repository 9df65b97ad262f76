"""Factorizes binary matrices as a scikit-learn transformer.

R. A. Kovacs, O. Gunluk and R. A. Hauser, "Binary Matrix Factorisation via Column Generation", AAAI 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from forestc.algorithms.arrays import Bits, Floats
from forestc.algorithms.covers.binary_matrix_factorization import best_rows, boolean_product, factorize
from forestc.errors import MissingExtraError
from forestc.papers.search_estimator import SearchEstimator, relative_gap

try:
    from scipy.sparse import issparse
    from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

ROUNDS = 20  # rounds of column generation if neither rounds nor time are limited


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
    max_iter : int, optional
        Most rounds of column generation. Default: 20 without a time limit, otherwise no limit.
    time_limit : float, optional
        Seconds. Default: no limit; then two fits are equal.
    warm_start : bool, default=False
        Whether `fit` begins with the factors of the previous `fit`, if the shapes are the same.
    callback : callable, optional
        Called with (incumbent, bound, gap) during the search.
    verbose : int, default=0
        Whether to print the progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the search.

    Attributes
    ----------
    components_ : bool array of shape (n_components, columns)
        The factor B.
    reconstruction_error_ : int
        Number of entries in which A o B differs from the training matrix, without missing ones.
    bound_ : float
        Lower bound on this number for any factors of this rank; trivial, 0, if the search was too short to prove one.
        For ranks above 2 it is often far below the least error, because the relaxation is weak.
    gap_ : float
        Relative gap between the two.
    model_error_, model_bound_ : float
        Least objective of MIP(rho) found, and a lower bound on its optimum. An overlap on a zero counts repeatedly.
    relaxation_ : float
        Optimum of the relaxation of MIP(rho) over the generated columns.
    relaxation_optimal_ : bool
        True if no other column improves the relaxation.
    interrupted_ : bool
        True if Ctrl-C ended the search.
    n_iter_ : int
        Rounds of column generation.
    n_features_in_ : int
        Number of columns of the training matrix.
    feature_names_in_ : array of shape (columns,)
        Names of the columns, if all are text.

    Examples
    --------
    >>> import numpy as np
    >>> from forestc.papers import BinaryMatrixFactorization
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> model = BinaryMatrixFactorization(2, random_state=0)
    >>> model.inverse_transform(model.fit_transform(X)).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 1, 1],
           [0, 0, 1, 1],
           [0, 0, 1, 1]])
    >>> model.reconstruction_error_
    0
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        rho: float = 1.0,
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callable[[float, float, float], None] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.rho = rho
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factorizes a matrix.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            Zeros and ones; NaN is a missing entry.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted transformer.

        Raises
        ------
        OptionError
            If a parameter is invalid.
        RowsError
            If the matrix holds other numbers.
        """
        rounds, seconds = self._limits("max_iter", ROUNDS)
        X = self._matrix(X, reset=True)
        before: Bits | None = getattr(self, "components_", None) if self.warm_start else None
        same = before is not None and before.shape == (self.n_components, X.shape[1])
        factors = factorize(
            X, self.n_components, rho=self.rho, time_limit=seconds, rounds=rounds, seed=self._seed(),
            start=(best_rows(X, before), before) if same and before is not None else None, progress=self._progress,
        )  # fmt: skip
        self.components_ = factors.B
        self.reconstruction_error_, self.bound_ = factors.error, factors.bound
        self.gap_ = relative_gap(factors.error, factors.bound)
        self.model_error_, self.model_bound_ = factors.model_error, factors.model_bound
        self.relaxation_, self.relaxation_optimal_ = factors.relaxation, factors.complete
        self.interrupted_, self.n_iter_ = factors.interrupted, max(1, factors.rounds)
        return self

    def transform(self, X: Any) -> Bits:
        """Returns the factor A of a matrix, (rows, n_components): for each row the factors with the fewest errors."""
        check_is_fitted(self)
        return best_rows(self._matrix(X, reset=False), self.components_)

    def inverse_transform(self, X: Any) -> Bits:
        """Returns the Boolean product A o B of codes A, (rows, n_components), and the components."""
        check_is_fitted(self)
        return boolean_product(np.asarray(X, dtype=bool), self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _matrix(self, X: Any, *, reset: bool) -> Floats:
        checked: Any = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan"
        )
        return np.asarray(checked.toarray() if issparse(checked) else checked)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags
