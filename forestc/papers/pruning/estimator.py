"""Prunes ensembles of classifiers by integer programming, with limits on their diversity.

M. A. Mendes Bastos, H. Brandao and C. Arbex Valle, "Ensemble pruning via an integer programming approach with diversity
constraints", INOC 2024. Program (1)-(12) chooses members and a vote threshold L, constraints (14)-(18) and (20) limit
the diversity of the chosen members.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np

from forestc.algorithms.members.selection_run import printer, progress
from forestc.errors import MissingExtraError, OptionError
from forestc.papers.parameter_types import check_types
from forestc.papers.pruning.candidates import members_of, train_candidates
from forestc.papers.pruning.method import SelectionMethod
from forestc.papers.pruning.votes import VotingMixin
from forestc.papers.search_estimator import Callback

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.ensemble import RandomForestClassifier, VotingClassifier
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import check_random_state, get_tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None


@dataclass(eq=False, repr=False)
class PrunedEnsemble(VotingMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Few members of an ensemble and a vote threshold, chosen by an integer program.

    For two classes a row is of the second class if more than `threshold_` chosen members vote for it (constraints
    (2)-(6) of the paper). After a local search, combinatorial bounds and the program follow, solved by HiGHS. For more
    classes the class with the most votes wins, the first of equal ones. The paper has no program for them, so the local
    search alone chooses. Ctrl-C ends the choice with the best members so far.

    Parameters
    ----------
    estimator : classifier, optional
        A forest, bagging or voting classifier; its members are the candidates. A fitted one inside a `FrozenEstimator`
        is not trained again. Default: a random forest of 100 trees.
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
        "program", "search" (the local search alone), or a baseline of section 5.2, which decides by the majority:
        "full", "backfitting" (for at most 300 s, as in the paper), "kappa", or a hill climber, "accuracy",
        "complementariness", "concurrency" or "uncertainty-weighted".
    validation_fraction : float or None, default=0.3
        Share of the rows that only chooses the members, if candidates are trained. None: all rows train, and choose.
    effort : float, default=1.0
        Factor on the work of the choice without a time limit. Two fits are equal then.
    time_limit : float, optional
        Seconds for the choice, without training and voting of the candidates, in place of `effort`. A program too large
        for them is left out; then the bound is that of the sets of rows alone.
    warm_start : bool, default=False
        Whether the next `fit` also starts from the members of the last one.
    callback : callable, optional
        Called with the objective, its bound and the gap after each change.
    verbose : bool, optional
        Whether a line is printed after each change. None: a line a second, after the first, to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of the split, of the default forest and of the search.

    Attributes
    ----------
    members_ : int array of shape (members,)
        Indices of the chosen candidates, ascending.
    threshold_ : int or None
        L: more votes than this decide for the second class. None unless there are two classes.
    objective_, bound_ : float
        Objective (1) on the rows that chose the members, divided by their number, and an upper bound on every choice's.
    gap_ : float
        (bound - objective) / objective.
    candidates_, estimators_ : list of classifiers
        All fitted candidates, and the chosen ones.
    classes_ : array of shape (classes,)
        Class labels.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from forestc.papers import PrunedEnsemble
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pruned = PrunedEnsemble(random_state=0).fit(X, y)
    >>> len(pruned.candidates_), len(pruned.members_) < 15, pruned.score(X, y) > 0.95
    (100, True, True)
    """

    estimator: Any = None
    _: KW_ONLY
    estimators: Sequence[Any] | None = None
    formulation: Literal["F1", "F2", "F3"] = "F1"
    weights: str | Sequence[float] = "accuracy"
    diversity: tuple[float, float] | None = None
    max_members: int | None = None
    method: str = "program"
    validation_fraction: float | None = 0.3
    effort: float = 1.0
    time_limit: float | None = None
    warm_start: bool = False
    callback: Callback | None = None
    verbose: bool | None = None
    random_state: Any = None

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
            If the rows that choose the members lack a class, or have another one than the fitted candidates.
        """
        check_types(self)
        method = SelectionMethod(
            self.method, self.formulation, self.weights, self.diversity, self.max_members, self.effort, self.time_limit
        )
        random = check_random_state(self.random_state)
        if self.estimator is not None and self.estimators is not None:
            raise OptionError("both are given", where="estimator and estimators", do="give one of them")
        X, y = self._valid(X, y, ensure_min_samples=2)
        check_classification_targets(y)
        seeds = random.randint(1 << 31, size=2).tolist()
        source = self._source(seeds[0])
        self._candidates, votes, labels = train_candidates(source, X, y, self.validation_fraction, random)
        self.candidates_, self.classes_ = self._candidates.members, self._candidates.classes
        begin = getattr(self, "members_", ()) if self.warm_start else ()
        report = progress(printer("PrunedEnsemble:", self.verbose), self.callback)
        chosen = method.choose(votes, labels, len(self.classes_), seed=seeds[1], begin=begin, report=report)
        self.members_ = np.array(chosen.members, dtype=np.int64)
        self.threshold_ = chosen.threshold if len(self.classes_) == 2 else None
        self.objective_, self.bound_, self.gap_ = chosen.objective, chosen.bound, chosen.gap
        self.estimators_ = [self.candidates_[member] for member in chosen.members]
        return self

    def _valid(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Checks and returns rows, and labels if given. Candidates that were trained on frames get X as it is."""
        finite = "allow-nan" if get_tags(self).input_tags.allow_nan else True
        valid = validate_data(self, X, y, accept_sparse="csr", dtype=None, ensure_all_finite=finite, **options)
        inner = self.estimator.estimator if isinstance(self.estimator, FrozenEstimator) else self.estimator
        if (self.estimators is None and not isinstance(inner, VotingClassifier)) or not hasattr(X, "iloc"):
            return valid
        return X if isinstance(y, str) else (X, valid[1])  # these members were trained on frames

    def _source(self, random: Any = None) -> Any:
        if self.estimators is not None:
            return self.estimators
        return RandomForestClassifier(random_state=random) if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [member for member in members_of(self._source()) if hasattr(member, "fit")]
        inner = [get_tags(member).input_tags for member in members]
        tags.input_tags = deepcopy(inner[0]) if inner else tags.input_tags
        tags.input_tags.sparse = all(tag.sparse for tag in inner)
        tags.input_tags.allow_nan = all(tag.allow_nan for tag in inner)
        return tags
