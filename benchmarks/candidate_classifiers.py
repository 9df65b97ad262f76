"""Candidates for ensemble pruning: ten kinds of classifiers, each with several seeds and parameters.

By the protocol of Bastos et al., section 5.1: the rows of a fold are its test rows; of the others 70 % train the
candidates (63 % of all rows), and the rest (27 %) is what the selection sees. A candidate votes with its probability,
rounded. The paper does not list its ten kinds of classifiers; these are scikit-learn's usual ones and XGBoost, each
with its own seed, parameters and share of the features. Every other candidate of four kinds weighs both classes
equally.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data import table
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

Votes = NDArray[np.uint8]

FILES = {
    "PRK": "parkinsons", "BCW": "wdbc", "MSK": "musk1", "DRD": "diabetic_retinopathy", "SPA": "spambase",
    "BMK": "bank_additional_full",
}  # fmt: skip
POSITIVE = {"BCW": "malignant", "BMK": "yes"}  # elsewhere the label 1


def _depth(j: int) -> int | None:
    return (None, 12, 9, 6)[j % 4]


def _weight(j: int) -> str | None:
    return "balanced" if j % 2 else None


# j: the number of the candidate among those of its kind.
KINDS: tuple[tuple[str, Callable[[int], Any]], ...] = (
    ("logistic", lambda j: LogisticRegression(C=10.0 ** (j % 5 - 2), class_weight=_weight(j), max_iter=300)),
    ("bayes", lambda j: GaussianNB(var_smoothing=10.0 ** -(1 + j % 9))),
    ("neighbors", lambda j: KNeighborsClassifier(3 + 2 * j, algorithm="brute")),
    ("tree", lambda j: DecisionTreeClassifier(max_depth=_depth(j), class_weight=_weight(j), random_state=j)),
    ("extra trees", lambda j: ExtraTreesClassifier(40, max_depth=_depth(j), class_weight=_weight(j), random_state=j)),
    ("forest", lambda j: RandomForestClassifier(40, max_depth=_depth(j), class_weight=_weight(j), random_state=j)),
    ("adaboost", lambda j: AdaBoostClassifier(n_estimators=30 + 5 * j, random_state=j)),
    ("boosting", lambda j: XGBClassifier(n_estimators=40 + 10 * j, max_depth=2 + j % 5, random_state=j, n_jobs=1)),
    ("network", lambda j: MLPClassifier((10 + 5 * j,), alpha=0.01, early_stopping=j % 2 == 1, random_state=j)),
    ("discriminant", lambda j: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1 * j + 0.01)),
)


@dataclass(frozen=True)
class Fold:
    """votes, y: of the rows that the selection sees, (rows, candidates) and (rows,). The same of the test rows."""

    votes: Votes
    y: Votes
    test_votes: Votes
    test_y: Votes

    def first(self, candidates: int) -> Fold:
        """Equally many candidates of each kind; 100 are computed."""
        share = candidates // len(KINDS)
        kept = [kind * 10 + j for kind in range(len(KINDS)) for j in range(share)]
        return Fold(self.votes[:, kept], self.y, self.test_votes[:, kept], self.test_y)


def read(name: str, data: Path) -> tuple[NDArray[np.float64], Votes]:
    """Columns of numbers as they are, others one-hot; 1 for the positive class."""
    text = table(FILES[name], data)
    columns = []
    for column in text[:, :-1].T:
        try:
            columns.append(column.astype(np.float64)[:, None])
        except ValueError:
            columns.append((column[:, None] == np.unique(column)).astype(np.float64))
    return np.hstack(columns), (text[:, -1] == POSITIVE.get(name, "1")).astype(np.uint8)


def folds(name: str, data: Path, repeat: int, count: int, cache: Path | None) -> Iterator[Fold]:
    """The first `count` of ten folds. cache: a folder that keeps the votes for the next run."""
    X, y = read(name, data)
    splitter = StratifiedKFold(10, shuffle=True, random_state=repeat)
    for number, (rest, test) in enumerate(splitter.split(X, y)):
        if number == count:
            return
        kept = None if cache is None else cache / f"{name}_{repeat}_{number}.npz"
        if kept is None or not kept.exists():
            fit, choose = train_test_split(rest, train_size=0.7, stratify=y[rest], random_state=repeat)
            votes = candidates(X[fit], y[fit], np.vstack([X[choose], X[test]]), seed=1000 * repeat + number)
            fold = Fold(votes[: len(choose)], y[choose], votes[len(choose) :], y[test])
            if kept is None:
                yield fold
                continue
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(kept, **vars(fold))
        yield Fold(**np.load(kept))


def candidates(X: NDArray[np.float64], y: Votes, rows: NDArray[np.float64], seed: int) -> Votes:
    """(rows, 100) votes of ten candidates of each kind, trained on X and y."""
    random = np.random.default_rng(seed)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    X, rows = ((part - mean) / np.where(spread > 0, spread, 1) for part in (X, rows))
    votes = np.empty((len(rows), 10 * len(KINDS)), dtype=np.uint8)
    for kind, (_, make) in enumerate(KINDS):
        for j in range(10):
            share = (1.0, 0.9, 0.8, 0.7)[j % 4]
            columns = random.permutation(X.shape[1])[: max(2, round(share * X.shape[1]))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # networks that stop early, collinear columns
                model = make(j).fit(X[:, columns], y)
                votes[:, 10 * kind + j] = model.predict_proba(rows[:, columns])[:, 1] > 0.5
    return votes
