"""Trains the candidates of a pruned ensemble on some rows, and lets them vote on the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError, OptionError
from forestc.papers.pruning.votes import Candidates


class TrainedCandidates(NamedTuple):
    """Candidates with their votes on the rows that choose among them."""

    candidates: Candidates
    votes: NDArray[np.int64]  # (rows, members) indices of classes
    labels: NDArray[np.int64]  # (rows,) indices of classes


def members_of(source: Any) -> list[Any]:
    """Returns an estimator, or the estimators of a list of them or of pairs (name, estimator), as a list."""
    if not isinstance(source, Iterable) or hasattr(source, "fit"):
        return [source]
    return [entry[1] if isinstance(entry, tuple) else entry for entry in source]


def train_candidates(source: Any, X: Any, y: NDArray[Any], share: float | None, random: Any) -> TrainedCandidates:
    """Fits clones of what is not fitted, and returns the candidates. Raises ModelError, OptionError, RowsError.

    source: an ensemble, a `FrozenEstimator` around one, or a list as for `members_of`.
    share: share of the rows that chooses members and trains none. None lets all rows do both, as do fitted candidates,
    and parts that lack a class.
    """
    from sklearn.base import clone, is_classifier
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils.validation import check_is_fitted

    if share is not None and not 0 < share < 1:
        raise OptionError(f"{share}", where="validation_fraction", do="give a share between 0 and 1, or None")
    listed, members = not hasattr(source, "fit"), members_of(source)
    if not members:
        raise OptionError("the list is empty", where="estimators", do="give at least one classifier")
    for index, member in enumerate(members if listed else ()):
        if not hasattr(member, "fit") or not is_classifier(member):
            raise ModelError(f"is a {type(member).__name__}", where=f"estimators[{index}]", do="give classifiers")
    frozen = isinstance(source, FrozenEstimator)
    if frozen:
        check_is_fitted(source)
    ready = all(map(_is_fitted, members)) if listed else frozen
    train, choose = (np.arange(len(y)),) * 2 if ready or share is None else _split(y, share, random)
    some = X if len(train) == len(y) else _rows(X, train)
    if listed:
        fitted = [part if _is_fitted(part) else clone(part).fit(some, y[train]) for part in members]
        candidates = Candidates.of_list(fitted, y)
    else:
        candidates = Candidates.of_ensemble(source.estimator if frozen else clone(source).fit(some, y[train]))
    labels = candidates.indices(y[choose])
    votes = candidates.votes(X if len(choose) == len(y) else _rows(X, choose), range(len(candidates.members)))
    return TrainedCandidates(candidates, votes, labels)


def _split(y: NDArray[Any], share: float, random: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the rows to train with and the rows to choose with; all rows twice if a part lacks a class."""
    from sklearn.model_selection import train_test_split

    every = np.arange(len(y))
    classes, counts = np.unique(y, return_counts=True)
    stratify = y if min(share, 1 - share) * counts.min() >= 1 else None
    train, choose = train_test_split(every, test_size=share, stratify=stratify, random_state=random)
    whole = all(len(np.unique(y[rows])) == len(classes) for rows in (train, choose))
    return (train, choose) if whole else (every, every)


def _rows(X: Any, rows: NDArray[np.int64]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _is_fitted(member: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(member)
    except NotFittedError:
        return False
    return True
