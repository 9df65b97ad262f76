"""Learns Bayesian networks of bounded treewidth as a scikit-learn estimator.

S. Nie, D. D. Maua, C. P. de Campos and Q. Ji, "Advances in Learning Bayesian Networks of Bounded Treewidth", NIPS 2014.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bytes, Floats
from forestc.errors import ForestcError, ModelError, OptionError
from forestc.papers.networks.bayesian_network import BayesianNetwork, conditional
from forestc.papers.networks.bounded_treewidth import Method, NetworkSearch, learn
from forestc.papers.networks.junction_tree import JunctionTree
from forestc.papers.networks.text import graphviz, parsed, printed
from forestc.papers.search_estimator import Callback, SearchEstimator, relative_gap
from forestc.system.reading import file_text
from forestc.system.writing import writing

MOST_BYTES = 2**30  # bytes of a file at most
RUNS = 4  # runs of the search if neither runs nor time are limited

Event = Mapping[Any, int | Collection[int]]


class BoundedTreewidthNetwork(SearchEstimator):
    """Bayesian network of bounded treewidth over columns of few states, of high BDeu score.

    `fit` maximizes the score (equation 1 of the paper) over networks with a moral graph of at most the given treewidth,
    by annealing over arcs in place of the paper's sampling of k-trees (algorithm 1). For up to 20 columns a branch and
    bound may prove the optimum. Exact inference is fast, because the treewidth is small.

    Parameters
    ----------
    treewidth, max_parents : int, default=3
        Largest treewidth of the moral graph; most parents of a column.
    ess : float, default=1.0
        Equivalent sample size of the BDeu score.
    method : {"auto", "search", "exact"}, default="auto"
        Whether to search alone, to prove the optimum, too, or to try a proof if it seems in reach.
    states : sequence of int, optional
        Number of states of each column. Default: the largest state plus one, at least 2.
    n_runs, time_limit : int, float, optional
        Runs of the search (4 if neither is given) and seconds. Without a time limit two fits are equal, and a proof
        ends after 3e10 steps (branches times parent sets times sets of columns): some seconds for ten columns.
    warm_start, callback : bool, callable, optional
        Whether `fit` begins with the network of the previous `fit`; called with (incumbent, bound, gap) in the search.
    verbose, random_state : bool, int or RandomState instance, optional
        Whether to print the progress (None: a line a second, after the first, to standard error); seed of the search.

    Attributes
    ----------
    edges_ : list of (int, int)
        Arcs from parent to child, as column indices.
    score_, bound_, gap_ : float
        BDeu score of the network on the training rows (natural logarithm); an upper bound on the score of any network
        within the limits, infinity if none is proved; the relative gap.
    treewidth_, network_ : int, BayesianNetwork
        Width of the network's elimination order; the network with its counts.
    n_features_in_, feature_names_in_ : int, array of shape (columns,)
        Number of columns; their names, if all are text.

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
        self, treewidth: int = 3, *, max_parents: int = 3, ess: float = 1.0, method: Method = "auto",
        states: Any = None, n_runs: int | None = None, time_limit: float | None = None, warm_start: bool = False,
        callback: Callback | None = None, verbose: bool | int | None = None, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.treewidth, self.max_parents, self.ess, self.method = treewidth, max_parents, ess, method
        self.states, self.n_runs, self.time_limit, self.warm_start = states, n_runs, time_limit, warm_start
        self.callback, self.verbose, self.random_state = callback, verbose, random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns a network from rows of states, each column's numbered from 0. Returns the estimator."""
        samples, seconds = self._limits("n_runs", RUNS)
        search = NetworkSearch(
            treewidth=self.treewidth, max_parents=self.max_parents, ess=self.ess, method=self.method,
            time_limit=seconds, samples=samples, seed=self._seed(),
        )  # fmt: skip
        rows = self._dense(X, reset=True)
        start = self.network_.parents if self.warm_start and hasattr(self, "network_") else ()
        return self._of(learn(rows, search, states=self.states, start=start, progress=self._progress()))

    def _of(self, network: BayesianNetwork) -> Self:
        self.network_ = network
        self.edges_ = [(parent, child) for child, family in enumerate(network.parents) for parent in family]
        self.score_, self.bound_, self.treewidth_ = network.score, network.bound, network.treewidth
        self.gap_ = relative_gap(network.score, network.bound)
        self._tree = JunctionTree(network)
        return self

    def score_samples(self, X: Any) -> Floats:
        """Returns the natural logarithm of the probability of each row, (rows,)."""
        X = self._dense(X)
        return self.network_.log_likelihood(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the mean log-likelihood of the rows, in nats."""
        return float(self.score_samples(X).mean())

    def conditional(self, X: Any, column: Any = -1) -> Floats:
        """Returns (rows, states) the probabilities of a column's states given all other columns of a row."""
        X = self._dense(X)
        return conditional(self.network_, X, self._index(column))

    def predict(self, X: Any, column: Any = -1) -> NDArray[np.int64]:
        """Predicts a column: its most probable state given all other columns of a row."""
        return np.asarray(self.conditional(X, column).argmax(axis=1))

    def probability(self, event: Event, given: Event | None = None) -> float:
        """Returns the probability of an event, under evidence; both map columns to a state or several."""
        self._check_fitted()
        return float(self._tree.given(self._indexed(given)).probabilities_of([self._indexed(event)])[0])

    def sample(self, n_samples: int = 1, *, given: Event | None = None, random_state: Any = None) -> Bytes:
        """Draws rows, (n_samples, columns), under evidence as in `probability`."""
        self._check_fitted()
        return self._tree.sample(n_samples, np.random.default_rng(self._seed(random_state)), self._indexed(given))

    def export_graphviz(self) -> str:
        """Returns a picture of the network in Graphviz's language."""
        self._check_fitted()
        return graphviz(self.network_, self._names())

    def write(self, path: str | Path) -> None:
        """Writes the network to a file, in the text form `bayesian-network 1`."""
        self._check_fitted()
        with writing(Path(path)):
            Path(path).write_text(printed(self.network_), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> BoundedTreewidthNetwork:
        """Returns a fitted estimator from a file that `write` wrote."""
        text = file_text(Path(path), ModelError, MOST_BYTES)
        try:
            network = parsed(text)
        except ForestcError as error:
            raise ModelError(error.what, where=f"{path}, {error.where}", do=error.do) from None
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
