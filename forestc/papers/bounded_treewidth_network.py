"""Learns Bayesian networks of bounded treewidth as a scikit-learn estimator.

S. Nie, D. D. Maua, C. P. de Campos and Q. Ji, "Advances in Learning Bayesian Networks of Bounded Treewidth", NIPS 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bytes, Floats
from forestc.algorithms.networks.bayesian_network import BayesianNetwork
from forestc.algorithms.networks.bounded_treewidth import NetworkSearch, learn
from forestc.algorithms.networks.junction_tree import JunctionTree
from forestc.algorithms.networks.text import parsed, printed
from forestc.errors import MissingExtraError, OptionError, RowsError, located
from forestc.papers.rule_conditions import quoted
from forestc.papers.search_estimator import SearchEstimator, relative_gap

try:
    from scipy.sparse import issparse
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

RUNS = 4  # runs of the search if neither runs nor time are limited

Event = Mapping[Any, int | Collection[int]]


class BoundedTreewidthNetwork(SearchEstimator):
    """Bayesian network of bounded treewidth over columns of few states, of high BDeu score.

    `fit` maximizes the score (equation 1 of the paper) over networks with a moral graph of at most the given treewidth,
    by annealing over arcs in place of the paper's sampling of k-trees (algorithm 1). For up to 20 columns a branch and
    bound may prove the optimum. Exact inference is fast, because the treewidth is small.

    Parameters
    ----------
    treewidth : int, default=3
        Largest treewidth of the moral graph.
    max_parents : int, default=3
        Most parents of a column.
    ess : float, default=1.0
        Equivalent sample size of the BDeu score.
    method : {"auto", "search", "exact"}, default="auto"
        Whether to search alone, to prove the optimum, too, or to try a proof if it seems in reach.
    states : sequence of int, optional
        Number of states of each column. Default: the largest state plus one, at least 2.
    n_runs : int, optional
        Runs of the search. Default: 4 without a time limit, otherwise no limit.
    time_limit : float, optional
        Seconds. Default: no limit; then two fits are equal.
    warm_start : bool, default=False
        Whether `fit` begins with the network of the previous `fit`.
    callback : callable, optional
        Called with (incumbent, bound, gap) during the search.
    verbose : int, default=0
        Whether to print the progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the search.

    Attributes
    ----------
    edges_ : list of (int, int)
        Arcs from parent to child, as column indices.
    score_ : float
        BDeu score of the network on the training rows (natural logarithm).
    bound_ : float
        Upper bound on the score of any network within the limits; infinity if none is proved.
    gap_ : float
        Relative gap between the two.
    treewidth_ : int
        Width of the network's elimination order.
    network_ : BayesianNetwork
        The network with its counts.
    n_features_in_ : int
        Number of columns of the training rows.
    feature_names_in_ : array of shape (columns,)
        Names of the columns, if all are text.

    Examples
    --------
    >>> import numpy as np
    >>> from forestc.papers import BoundedTreewidthNetwork
    >>> rain = np.random.default_rng(0).random(400) < 0.3
    >>> X = np.stack([rain, rain, ~rain], axis=1).astype(int)
    >>> model = BoundedTreewidthNetwork(treewidth=1, random_state=0).fit(X)
    >>> model.treewidth_, len(model.edges_), model.score_ == model.bound_
    (1, 2, True)
    >>> model.probability({0: 1}, given={2: 0}) > 0.99
    True
    """

    _worst_bound = math.inf

    def __init__(
        self,
        treewidth: int = 3,
        *,
        max_parents: int = 3,
        ess: float = 1.0,
        method: Literal["auto", "search", "exact"] = "auto",
        states: Any = None,
        n_runs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callable[[float, float, float], None] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.treewidth = treewidth
        self.max_parents = max_parents
        self.ess = ess
        self.method = method
        self.states = states
        self.n_runs = n_runs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns a network.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            State of each column, numbered from 0.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        OptionError
            If a parameter is invalid.
        RowsError
            If the values are not states.
        """
        samples, seconds = self._limits("n_runs", RUNS)
        search = NetworkSearch(
            treewidth=self.treewidth, max_parents=self.max_parents, ess=self.ess, method=self.method,
            time_limit=seconds, samples=samples, seed=self._seed(),
        )  # fmt: skip
        rows = self._rows(X, reset=True)
        start = self.network_.parents if self.warm_start and hasattr(self, "network_") else ()
        return self._of(learn(rows, search, states=self.states, start=start, progress=self._progress))

    def _of(self, network: BayesianNetwork) -> Self:
        self.network_ = network
        self.edges_ = [(parent, child) for child, family in enumerate(network.parents) for parent in family]
        self.score_, self.bound_, self.treewidth_ = network.score, network.bound, network.treewidth
        self.gap_ = relative_gap(network.score, network.bound)
        self._tree = JunctionTree(network)
        return self

    def score_samples(self, X: Any) -> Floats:
        """Returns the natural logarithm of the probability of each row, (rows,)."""
        check_is_fitted(self)
        return self.network_.log_likelihood(self._rows(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the mean log-likelihood of the rows, in nats."""
        return float(self.score_samples(X).mean())

    def conditional(self, X: Any, column: Any = -1) -> Floats:
        """Returns (rows, states) the probabilities of a column's states given all other columns of a row."""
        check_is_fitted(self)
        rows, index = self._rows(X), self._index(column)
        logs = []
        for state in range(self.network_.states[index]):
            rows[:, index] = state
            logs.append(self.network_.log_likelihood(rows))
        shares = np.exp(np.stack(logs, axis=1) - np.max(logs, axis=0)[:, None])
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: Any, column: Any = -1) -> NDArray[np.int64]:
        """Predicts a column: its most probable state given all other columns of a row."""
        return np.asarray(self.conditional(X, column).argmax(axis=1))

    def probability(self, event: Event, given: Event | None = None) -> float:
        """Returns the probability of an event, under evidence if there is any.

        Parameters
        ----------
        event : dict
            Maps indices or names of columns to a state or a collection of states.
        given : dict, optional
            Evidence in the same form.

        Returns
        -------
        float
            The conditional probability.

        Raises
        ------
        OptionError
            If there is no such column or state, or the evidence is impossible.
        """
        check_is_fitted(self)
        return float(self._tree.given(self._indexed(given)).probabilities_of([self._indexed(event)])[0])

    def sample(self, n_samples: int = 1, *, given: Event | None = None, random_state: Any = None) -> Bytes:
        """Draws rows, under evidence if there is any.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : dict, optional
            Maps indices or names of columns to a state or a collection of states.
        random_state : int, RandomState instance or None, default=None
            Seed.

        Returns
        -------
        uint8 array of shape (n_samples, columns)
            States.

        Raises
        ------
        OptionError
            If there is no such column or state, or the evidence is impossible.
        """
        check_is_fitted(self)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return self._tree.sample(n_samples, rng, self._indexed(given))

    def export_graphviz(self) -> str:
        """Returns a picture of the network in Graphviz's language."""
        check_is_fitted(self)
        names = [quoted(name) for name in self._names()]
        arcs = [f"  {names[parent]} -> {names[child]};" for parent, child in self.edges_]
        return "\n".join(["digraph network {", *(f"  {name};" for name in names), *arcs, "}"]) + "\n"

    def write(self, path: str | Path) -> None:
        """Writes the network to a file, in the text form `bayesian-network 1`."""
        check_is_fitted(self)
        Path(path).write_text(printed(self.network_), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> BoundedTreewidthNetwork:
        """Reads a network that `write` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        BoundedTreewidthNetwork
            A fitted estimator.

        Raises
        ------
        ModelError
            If the file holds no network.
        """
        with located(str(path)):
            network = parsed(Path(path).read_text(encoding="utf-8"))
        model = cls(network.treewidth, max_parents=max(map(len, network.parents)), ess=network.ess)
        model.n_features_in_ = len(network.states)
        return model._of(network)

    def _names(self) -> list[str]:
        return list(getattr(self, "feature_names_in_", [f"x{index}" for index in range(self.n_features_in_)]))

    def _index(self, column: Any) -> int:
        names = self._names()
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, str) or not -len(names) <= column < len(names):
            raise OptionError(f"there is no column {column}", where=type(self).__name__, do=f"{len(names)} are known")
        return int(column) % len(names)

    def _indexed(self, event: Event | None) -> dict[int, int | Collection[int]]:
        return {self._index(column): states for column, states in (event or {}).items()}

    def _rows(self, X: Any, *, reset: bool = False) -> NDArray[Any]:
        checked = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        checked = checked.toarray() if issparse(checked) else checked
        if (checked != np.floor(checked)).any() or np.abs(checked).max(initial=0) > 2**31:
            raise RowsError("states must be whole numbers from 0 on", where="X", do="number or bin the states")
        return np.asarray(checked, dtype=np.int64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
