"""Reads the votes of an ensemble's members, and chosen members with a vote threshold as a forest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError, RowsError
from forestc.forest.ir import Combine, Decision, Forest
from forestc.frontends import load_object
from forestc.frontends.shared.exact import labels_of
from forestc.frontends.shared.merge import side_by_side
from forestc.frontends.sklearn.meta import as_outer, read_member
from forestc.frontends.sklearn.trees import TREES, finished, read_tree


@dataclass(frozen=True)
class Candidates:
    """Fitted classifiers, and the classes for which they vote."""

    members: list[Any]
    classes: NDArray[Any]
    columns: tuple[NDArray[np.int64], ...] | None = None  # columns that each member reads; None for all
    encoded: bool = False  # True if members answer with the index of a class
    number: Any = None  # number type that all members convert rows to; None if they differ

    @staticmethod
    def of_ensemble(model: Any) -> Candidates:
        """Returns the members of a fitted forest, bagging or voting classifier. Raises ModelError."""
        from sklearn.base import is_classifier
        from sklearn.ensemble import BaggingClassifier, VotingClassifier
        from sklearn.ensemble._forest import ForestClassifier

        if not isinstance(model, ForestClassifier | BaggingClassifier | VotingClassifier):
            raise ModelError(
                f"is a {type(model).__name__}", where="estimator",
                do="give a forest, bagging or voting classifier, or a list of classifiers as estimators",
            )  # fmt: skip
        if np.ndim(model.classes_[0]):
            raise ModelError("has several targets", where="estimator", do="prune an ensemble for each target")
        for index, member in enumerate(model.estimators_):
            if not is_classifier(member):
                where = f"estimator, member {index}"
                raise ModelError(f"is a {type(member).__name__}", where=where, do="give an ensemble of classifiers")
        columns = None
        if isinstance(model, BaggingClassifier):
            columns = tuple(np.asarray(columns, dtype=np.int64) for columns in model.estimators_features_)
        number = np.float32 if isinstance(model, ForestClassifier) else None
        return Candidates(list(model.estimators_), np.asarray(model.classes_), columns, True, number)

    @staticmethod
    def of_list(members: list[Any], y: NDArray[Any]) -> Candidates:
        """Returns fitted classifiers with the classes of them and of the labels y, (rows,). Raises ModelError."""
        for index, member in enumerate(members):
            if np.ndim(member.classes_[0]):
                raise ModelError("has several targets", where=f"estimators[{index}]", do="give one for each target")
            if (np.asarray(member.classes_).dtype.kind in "OUS") != (y.dtype.kind in "OUS"):
                raise ModelError(
                    f"has the classes {np.asarray(member.classes_).tolist()}, and a label is {y[:1].tolist()[0]!r}",
                    where=f"estimators[{index}]",
                    do="train it with labels of the same type",
                )  # fmt: skip
        return Candidates(members, np.unique(np.concatenate([np.unique(y), *(m.classes_ for m in members)])))

    def indices(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the index of each label's class, (rows,). Raises RowsError for other labels."""
        known = np.isin(y, self.classes)
        if not known.all():
            raise RowsError(
                f"label {y[~known].tolist()[0]!r} is none of the classes {self.classes.tolist()}", where="y",
                do="give labels of the classes that the estimator was trained on",
            )  # fmt: skip
        return np.searchsorted(self.classes, y).astype(np.int64)

    def votes(self, X: Any, chosen: Iterable[int]) -> NDArray[np.int64]:
        """Returns the index of the class that each chosen member votes for, (rows, chosen)."""
        if self.number is not None:  # so that each member does not convert the rows
            X = X.astype(self.number)
        parts = ((k, X if self.columns is None else X[:, self.columns[k]]) for k in chosen)
        answers = [self.members[member].predict(part) for member, part in parts]
        if self.encoded:
            return np.stack(answers, axis=1).astype(np.int64)
        return np.stack([np.searchsorted(self.classes, answer) for answer in answers], axis=1)

    def forest(self, model: Any, chosen: Iterable[int], threshold: int | None) -> Forest:
        """Returns a forest of the chosen members' votes. Raises ModelError.

        model: the estimator that holds the members.
        threshold: for two classes, the most votes for the second class that decide for the first.
        """
        where, classes = type(model).__name__, labels_of(self.classes)
        decision = Decision("argmax") if threshold is None else Decision("threshold", threshold + 1)
        chosen = list(chosen)
        members = [self.members[member] for member in chosen]
        columns = None if self.columns is None else [self.columns[member] for member in chosen]
        if all(type(member).__name__ in TREES for member in members):
            outputs = 1 if threshold is not None else len(classes)
            trees = []
            for index, member in enumerate(members):
                own = np.asarray(member.classes_)
                own = own.astype(np.int64) if self.encoded else np.searchsorted(self.classes, own)
                best = own[member.tree_.value[:, 0, :].argmax(axis=1)]
                values = np.eye(len(classes))[best][:, -outputs:]
                location = f"{where}, member {index}"
                own_columns = None if columns is None else columns[index]
                trees.append(read_tree(member.tree_, location, range(outputs), values, columns=own_columns))
            return finished(model, where, trees, n_outputs=outputs, decision=decision, classes=classes)
        if columns is not None and any(len(some) < model.n_features_in_ for some in columns):
            raise ModelError(
                "members other than single trees read some columns only", where=where, do="bag single trees"
            )
        forests = []
        for index, member in enumerate(members):
            forest = read_member(member, f"{where}, member {index}", load_object)
            if self.encoded and len(forest.classes) == len(classes):
                parts = tuple(replace(part, classes=classes) for part in forest.parts)
                forest = replace(forest, classes=classes, parts=parts)
            if forest.classes != classes:
                raise ModelError(
                    f"has the classes {list(forest.classes)}, and the ensemble has {list(classes)}",
                    where=f"{where}, member {index}", do="train each member that is not a single tree on all classes",
                )  # fmt: skip
            forests.append(forest)
        return as_outer(side_by_side(forests, where, Combine("vote"), decision, classes), model)


class VotingMixin:
    """Methods of an estimator that decides by the votes of chosen candidates. Its `_valid` checks rows."""

    _candidates: Candidates
    _valid: Callable[..., Any]
    members_: NDArray[np.int64]
    threshold_: int | None
    classes_: NDArray[Any]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Computes votes.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            Rows.

        Returns
        -------
        float64 array of shape (rows,) or (rows, classes)
            For two classes the votes for the second minus (`threshold_` + 1/2). Otherwise the votes for each class.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        votes = self._candidates.votes(self._valid(X, reset=False), self.members_)
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
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return self._candidates.forest(self, self.members_, self.threshold_)
