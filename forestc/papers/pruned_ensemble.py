"""Prunes ensembles of classifiers by integer programming, with limits on their diversity.

M. A. Mendes Bastos, H. Brandao and C. Arbex Valle, "Ensemble pruning via an integer programming approach with diversity
constraints", INOC 2024. Program (1)-(12) chooses members and a vote threshold L, constraints (14)-(18) and (20) limit
the diversity of the chosen members.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.members.baselines import BASELINES
from forestc.algorithms.members.selection import (
    Selection,
    Weights,
    diversity_limits,
    failure_credits,
    select,
    select_by_plurality,
    selection_of,
)
from forestc.errors import MissingExtraError, ModelError, OptionError, known_names
from forestc.forest.ir import Forest
from forestc.frontends.sklearn.votes import voting_forest

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
    from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
    from sklearn.ensemble._forest import ForestClassifier
    from sklearn.exceptions import NotFittedError
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_array, check_random_state, get_tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

Callback = Callable[[float, float, float], object]
_FORMULATIONS = ("F1", "F2", "F3")


class PrunedEnsemble(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Few members of an ensemble and a vote threshold, chosen by an integer program.

    For two classes a row is of the second class if more than `threshold_` of the chosen members vote for it
    (constraints (2)-(6) of the paper). For more classes the class with the most votes wins, the first of equal ones.
    The paper has no program for them, so a local search chooses the members.

    A local search comes first. For two classes combinatorial bounds and the program follow, solved by HiGHS from the
    best members found. `gap_` says how much better another choice could be on the rows that chose the members.

    Parameters
    ----------
    estimator : classifier, optional
        A random forest, extra trees, bagging or voting classifier; its members are the candidates. A fitted one inside
        a `FrozenEstimator` is not trained again. Default: a random forest of 100 trees.
    estimators : list of classifiers or of (name, classifier), optional
        The candidates themselves, in place of `estimator`. Fitted ones are not trained again.
    formulation : {"F1", "F2", "F3"}, default="F1"
        Limits on the diversity (section 5.4): none; the mean of the chosen members; both the mean and each member's.
    weights : {"accuracy", "balanced", "recall"} or 4 numbers, default="accuracy"
        Objective (1): weights of true positives, false negatives, true negatives and false positives. "balanced" is
        the theta-weighted form of section 3.1.
    diversity : (float, float), optional
        tau of constraint (18) and gamma of (20). Default: as section 5.4 derives them from the candidates.
    max_members : int, optional
        Most members to choose.
    method : str, default="program"
        "program", "search" (the local search and bounds alone), or a baseline of section 5.2, which decides by the
        majority: "full", "backfitting", "kappa", or a hill climber, "accuracy", "complementariness", "concurrency" or
        "uncertainty-weighted".
    validation_fraction : float or None, default=0.3
        Share of the rows that only chooses the members, if candidates are trained (0.3 in the paper). None: all rows
        train, and choose.
    effort : float, default=1.0
        Factor on the work of the choice without a time limit. Two fits are equal then.
    time_limit : float, optional
        Seconds for the choice, without training, in place of `effort`.
    warm_start : bool, default=False
        Whether the next `fit` also starts from the members of the last one.
    callback : callable, optional
        Called with the objective, its bound and the gap after each change.
    verbose : bool, default=False
        Whether a line is printed after each change.
    random_state : int, RandomState instance or None, default=None
        Seed of the split, of the default forest and of the search.

    Attributes
    ----------
    members_ : int array of shape (members,)
        Indices of the chosen candidates, ascending.
    threshold_ : int or None
        L: more votes than this decide for the second class. None unless there are two classes.
    objective_ : float
        Objective (1) on the rows that chose the members, divided by their number.
    bound_ : float
        Upper bound on the objective of every choice.
    gap_ : float
        (bound - objective) / objective.
    candidates_ : list of classifiers
        All fitted candidates.
    estimators_ : list of classifiers
        The chosen ones.
    classes_ : array of shape (classes,)
        Class labels.
    n_features_in_ : int
        Number of columns of the rows.
    feature_names_in_ : array of shape (columns,)
        Names of the columns, if all are text.

    Notes
    -----
    Ctrl-C during the choice ends it with the best members so far.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from forestc.papers import PrunedEnsemble
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pruned = PrunedEnsemble(random_state=0).fit(X, y)
    >>> len(pruned.candidates_), len(pruned.members_) < 15, pruned.score(X, y) > 0.95
    (100, True, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        estimators: Sequence[Any] | None = None,
        formulation: Literal["F1", "F2", "F3"] = "F1",
        weights: str | Sequence[float] = "accuracy",
        diversity: tuple[float, float] | None = None,
        max_members: int | None = None,
        method: str = "program",
        validation_fraction: float | None = 0.3,
        effort: float = 1.0,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.estimators = estimators
        self.formulation = formulation
        self.weights = weights
        self.diversity = diversity
        self.max_members = max_members
        self.method = method
        self.validation_fraction = validation_fraction
        self.effort = effort
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Trains the candidates on some rows, unless they are fitted, and chooses members on the others.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            Rows. All of them choose the members if the candidates are fitted.
        y : array-like of shape (rows,)
            Class labels.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ModelError
            If the estimator has no classifiers as members.
        OptionError
            If a parameter is invalid, or no choice has the diversity.
        RowsError
            If the rows that choose the members lack a class.
        """
        self._check_options()
        random = check_random_state(self.random_state)
        X, y = self._checked(X, y)
        source, ready = self._source(random)
        train, choose = self._split(len(y), y, ready, random)
        self._train(source, _some(X, train), y[train])
        y = np.searchsorted(self.classes_, y)
        votes = self._votes(_some(X, choose), range(len(self.candidates_)))
        chosen = self._chosen(votes, y[choose].astype(np.int64), int(random.randint(1 << 31)))
        self.members_ = np.array(chosen.members, dtype=np.int64)
        self.threshold_ = chosen.threshold if len(self.classes_) == 2 else None
        self.objective_, self.bound_, self.gap_ = chosen.objective, chosen.bound, chosen.gap
        self.estimators_ = [self.candidates_[member] for member in chosen.members]
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Computes votes.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            Rows.

        Returns
        -------
        float64 array of shape (rows,) or (rows, classes)
            For two classes the votes for the second minus (threshold_ + 1/2). Otherwise the votes for each class.
        """
        check_is_fitted(self)
        votes = self._votes(self._given(X), self.members_)
        if len(self.classes_) == 2:
            return np.asarray(votes.sum(axis=1, dtype=np.int64) - self.threshold_ - 0.5)
        return np.stack([(votes == k).sum(axis=1) for k in range(len(self.classes_))], axis=1).astype(np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts class labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            Rows.

        Returns
        -------
        array of shape (rows,)
            Class labels.
        """
        votes = self.decision_function(X)
        decided = (votes > 0).astype(np.int64) if len(self.classes_) == 2 else votes.argmax(axis=1)
        return np.asarray(self.classes_[decided])

    def as_forest(self) -> Forest:
        """Reads the chosen members and the vote threshold, as `forestc.load` and `forestc.compile` do.

        Returns
        -------
        Forest
            A forest of the members' votes.

        Raises
        ------
        ModelError
            If a member does not consist of trees, or forestc cannot read it.
        """
        check_is_fitted(self)
        columns = None if self._columns is None else [self._columns[member] for member in self.members_]
        return voting_forest(self, self.estimators_, columns, self._encoded, self.threshold_)

    def _check_options(self) -> None:
        methods = ("program", "search", *BASELINES)
        if self.formulation not in _FORMULATIONS:
            raise OptionError(f"formulation={self.formulation!r}", do=known_names(self.formulation, _FORMULATIONS))
        if self.method not in methods:
            raise OptionError(f"method={self.method!r}", do=known_names(self.method, methods))
        if self.estimator is not None and self.estimators is not None:
            raise OptionError("both are given", where="estimator and estimators", do="give one of them")
        if self.time_limit is not None and not self.time_limit > 0:
            raise OptionError(f"time_limit={self.time_limit}", do="give seconds above 0, or None")
        if not self.effort > 0:
            raise OptionError(f"effort={self.effort}", do="give a factor above 0, such as 1")
        share = self.validation_fraction
        if share is not None and not 0 < share < 1:
            raise OptionError(f"validation_fraction={share}", do="give a share between 0 and 1, or None")

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Returns rows for the candidates, and labels. Checks their shapes; candidates check the values."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        check_classification_targets(y)
        checked, labels = validate_data(self, X, y, ensure_min_samples=2, **self._checks())
        return (X if self._takes_frames() and hasattr(X, "iloc") else checked), column_or_1d(labels, warn=True)

    def _given(self, X: Any) -> Any:
        checked = validate_data(self, X, reset=False, **self._checks())
        return X if self._takes_frames() and hasattr(X, "iloc") else checked

    def _checks(self) -> dict[str, Any]:
        finite = "allow-nan" if get_tags(self).input_tags.allow_nan else True
        return {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": finite}

    def _takes_frames(self) -> bool:
        """Returns True if the candidates were fitted on frames as they are given."""
        inner = getattr(self.estimator, "estimator", None) if self._frozen else self.estimator
        return self.estimators is not None or isinstance(inner, VotingClassifier)

    @property
    def _frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _source(self, random: Any) -> tuple[Any, bool]:
        """Returns an ensemble or a list of candidates, and whether they are fitted."""
        if self.estimators is not None:
            listed = [entry[1] if isinstance(entry, tuple) else entry for entry in self.estimators]
            if not listed:
                raise OptionError("the list is empty", where="estimators", do="give at least one classifier")
            for index, candidate in enumerate(listed):
                if not is_classifier(candidate):
                    raise ModelError(
                        f"is a {type(candidate).__name__}", where=f"estimators[{index}]", do="give classifiers"
                    )
            return listed, all(map(_is_fitted, listed))
        if self._frozen:
            check_is_fitted(self.estimator)
            return self.estimator.estimator, True
        if self.estimator is None:
            return RandomForestClassifier(random_state=int(random.randint(1 << 31))), False
        return clone(self.estimator), False

    def _split(self, rows: int, y: NDArray[Any], ready: bool, random: Any) -> tuple[NDArray[np.int64], ...]:
        every = np.arange(rows)
        if ready or self.validation_fraction is None:
            return every, every
        counts = np.unique(y, return_counts=True)[1]
        least = min(self.validation_fraction, 1 - self.validation_fraction) * counts.min()
        stratify = y if least >= 1 else None
        train, choose = train_test_split(
            every, test_size=self.validation_fraction, stratify=stratify, random_state=random
        )
        whole = len(np.unique(y[train])) == len(np.unique(y[choose])) == len(counts)
        return (train, choose) if whole else (every, every)  # so few rows that a part lacks a class

    def _train(self, source: Any, X: Any, y: NDArray[Any]) -> None:
        """Fits what is not fitted. Sets the candidates, the classes, and how members' answers become classes."""
        self._columns: list[NDArray[np.int64]] | None = None
        self._encoded = not isinstance(source, list)
        if isinstance(source, list):
            self.candidates_ = [member if _is_fitted(member) else clone(member).fit(X, y) for member in source]
            self.classes_ = np.unique(np.concatenate([np.unique(y), *(member.classes_ for member in self.candidates_)]))
            return
        if not isinstance(source, ForestClassifier | BaggingClassifier | VotingClassifier):
            raise ModelError(
                f"is a {type(source).__name__}", where="estimator",
                do="give a forest, bagging or voting classifier, or a list of classifiers as estimators",
            )  # fmt: skip
        model = source if self._frozen else source.fit(X, y)
        if np.ndim(model.classes_[0]):
            raise ModelError("has several targets", where="estimator", do="prune an ensemble for each target")
        self.candidates_, self.classes_ = list(model.estimators_), np.asarray(model.classes_)
        if isinstance(model, BaggingClassifier):
            self._columns = [np.asarray(columns, dtype=np.int64) for columns in model.estimators_features_]
        self._float = isinstance(model, ForestClassifier)

    def _votes(self, X: Any, members: Any) -> NDArray[np.int64]:
        """Returns the index of the class that each member votes for, (rows, members)."""
        if self._encoded and getattr(self, "_float", False):  # so that each tree does not convert the rows
            X = check_array(X, **self._checks() | {"dtype": np.float32})
        columns = [X if self._columns is None else X[:, self._columns[member]] for member in members]
        answers = [self.candidates_[member].predict(part) for member, part in zip(members, columns, strict=True)]
        if self._encoded:
            return np.stack(answers, axis=1).astype(np.int64)
        return np.stack([np.searchsorted(self.classes_, answer) for answer in answers], axis=1)

    def _chosen(self, votes: NDArray[np.int64], y: NDArray[np.int64], seed: int) -> Selection:
        begin: Sequence[int] = ()
        if self.warm_start and hasattr(self, "members_") and self.members_.max() < votes.shape[1]:
            begin = self.members_.tolist()
        tau, gamma = diversity_limits(failure_credits(votes, y), self.formulation)
        if self.diversity is not None and self.formulation != "F1":
            tau, gamma = (self.diversity[0] if self.formulation == "F3" else 0.0), self.diversity[1]
        weights = self.weights if isinstance(self.weights, str) else Weights(*map(float, self.weights))
        limits: dict[str, Any] = {"tau": tau, "gamma": gamma, "max_members": self.max_members}
        if len(self.classes_) != 2:
            if self.method not in ("program", "search") or not isinstance(self.weights, str):
                raise OptionError(
                    f"method={self.method}, weights={self.weights} with {len(self.classes_)} classes",
                    do='use "program" or "search", and the weights "accuracy" or "balanced"',
                )
            return select_by_plurality(
                votes, y, weights=self.weights, time_limit=self.time_limit, seed=seed, begin=begin,
                report=self._report, **limits,
            )  # fmt: skip
        if self.method in BASELINES:
            members = BASELINES[self.method](votes.astype(np.uint8), y.astype(np.uint8))
            return selection_of(votes, y, members, len(members) // 2, weights)
        return select(
            votes, y, weights=weights, seed=seed, begin=begin, report=self._report, effort=self.effort,
            time_limit=0 if self.method == "search" else self.time_limit, **limits,
        )  # fmt: skip

    def _report(self, objective: float, bound: float) -> None:
        gap = (bound - objective) / max(abs(objective), 1e-12)
        if self.verbose:
            sys.stdout.write(f"PrunedEnsemble: objective {objective:.6f}, bound {bound:.6f}, gap {100 * gap:.2f} %\n")
        if self.callback is not None:
            self.callback(objective, bound, gap)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        single = RandomForestClassifier() if self.estimator is None else self.estimator
        listed = [single] if self.estimators is None else self.estimators
        inner = [get_tags(entry[1] if isinstance(entry, tuple) else entry).input_tags for entry in listed]
        tags.input_tags = deepcopy(inner[0]) if inner else tags.input_tags
        tags.input_tags.sparse = all(tag.sparse for tag in inner)
        tags.input_tags.allow_nan = all(tag.allow_nan for tag in inner)
        return tags


def _is_fitted(member: Any) -> bool:
    try:
        check_is_fitted(member)
    except NotFittedError:
        return False
    return True


def _some(X: Any, rows: NDArray[np.int64]) -> Any:
    if len(rows) == X.shape[0]:
        return X
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
