"""Compares ensemble selection with Bastos et al. (INOC 2024) by their protocol: gaps, balanced accuracies, mean ranks.

    python benchmarks/ensemble_pruning.py --data DIR --json FILE

For each data set and fold, 10 kinds of classifiers have K / 10 candidates each, K = 40 .. 100. The candidates are
trained on 63 % of the rows, selected on 27 % and tested on 10 %. F1 maximizes accuracy without a limit on diversity, F3
with one, theta the balanced accuracy; F1 and theta are compared with the paper's baselines. The accuracies are those of
our local search. The gaps are proved by HiGHS after it, at K = 100, in the first `--gap-folds` folds, within
`--time-limit` seconds a solve. The paper used 10 x 10 folds, eight cores and CPLEX, and does not list its candidates;
its figures stand beside ours. A rank is 1 for the best of the six methods that the paper ranks.

A candidate's vote is its probability, rounded. The ten kinds are scikit-learn's usual ones and XGBoost, since the paper
lists none. Each candidate has its own seed, parameters and share of the features. Every other candidate of four kinds
weighs both classes equally.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import table
from ledger import Case, Ledger, Steps
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from tools import arguments
from xgboost import XGBClassifier

from forestc.papers import PrunedEnsemble

SIZES = (40, 60, 80, 100)
LARGE = ("BMK",)
TITLE = "balanced accuracy on test rows, in percent"
# OURS holds, by method: the limits on diversity (F1 or F3), and the weights of the rows.
OURS: dict[str, tuple[Any, str]] = {"F1": ("F1", "accuracy"), "F3": ("F3", "accuracy"), "theta": ("F1", "balanced")}
RANKED = ("F1", "theta", "backfitting", "concurrency", "uncertainty-weighted", "full")
PAPER_GAPS = {
    "PRK": (0.0, 0.0), "BCW": (0.0, 0.0), "MSK": (0.0, 0.0), "DRD": (4.3, 6.1), "SPA": (0.0, 0.2), "BMK": (5.4, 5.5),
}  # fmt: skip
PAPER_RANKS = dict(zip(RANKED, (2.94, 2.40, 3.97, 3.27, 3.39, 5.03), strict=True))


def main() -> None:
    parser = arguments(__doc__, "json", "data!", "only")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), metavar="K")
    parser.add_argument("--repeats", type=int, default=1, help="of the ten folds; the paper has 10")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--large-folds", type=int, default=10, help="of the sets with more than 10,000 rows")
    parser.add_argument("--gap-folds", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds a solve")
    options = parser.parse_args()
    if options.small:
        options.only, options.sizes, options.folds, options.time_limit = "PRK", "10", 1, 0.1
    names = options.only.split(",") if options.only else list(FILES)
    cases, depends = [{"set": name} for name in names], ("sizes", "repeats", "folds", "large_folds")
    ledger = Ledger(TITLE, options, ("highspy", "scikit-learn", "xgboost"), (*depends, "gap_folds", "time_limit"))
    with nullcontext() if options.small else ProcessPoolExecutor(2) as pool:
        ledger.fill(cases, measured, options, pool=pool)
        ledger.fill(cases, gaps, options, part="gaps", pool=pool)
    ledger.show(ranks=ranks(ledger.rows))


def measured(options: Any, case: Case) -> Steps:
    """Runs all methods on the folds of a data set; yields a row for each K."""
    name, tested = case["set"], defaultdict[int, list[dict[str, float]]](list)
    yield [*read(name, options.data)], None
    count = options.large_folds if name in LARGE else options.folds
    for repeat in range(options.repeats):
        for fold in folds(name, options.data, repeat, count):
            for size in map(int, options.sizes.split(",")):
                tested[size].append(methods(fold.first(size)))
    yield [
        {"K": size, "folds": len(scores), **{m: round(100 * float(np.mean([s[m] for s in scores])), 2) for m in RANKED}}
        for size, scores in tested.items()
    ]


def gaps(options: Any, case: Case) -> Steps:
    """Yields the gap of each form on the first folds of a data set."""
    name = case["set"]
    yield [*read(name, options.data)], None
    first = enumerate(folds(name, options.data, 0, options.gap_folds))
    forms = ("F1", "F3", "theta")
    yield [gap(name, number, fold, form, options.time_limit) for number, fold in first for form in forms]


def methods(fold: Fold) -> dict[str, float]:
    """Returns the balanced accuracy of each method on the test rows."""
    found = {}
    for name in RANKED:
        form, weights = OURS.get(name, ("F1", "accuracy"))
        model = pruned(fold, formulation=form, weights=weights, method="search" if name in OURS else name)
        found[name] = balanced(model.predict(fold.test_votes), fold.test_y)
    return found


@dataclass
class Candidate(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A trained candidate, whose votes are a column of the rows."""

    column: int

    def __post_init__(self) -> None:
        self.classes_ = np.array([0, 1], dtype=np.uint8)

    def fit(self, X: Votes, y: Votes) -> Candidate:
        return self

    def predict(self, X: Votes) -> Votes:
        return X[:, self.column]


def pruned(fold: Fold, **options: Any) -> PrunedEnsemble:
    members = [Candidate(column) for column in range(fold.votes.shape[1])]
    return PrunedEnsemble(estimators=members, random_state=0, **options).fit(fold.votes, fold.y)


def balanced(decided: NDArray[np.uint8], y: NDArray[np.uint8]) -> float:
    return float((decided[y == 1].mean() + 1 - decided[y == 0].mean()) / 2)


def gap(name: str, number: int, fold: Fold, method: str, seconds: float) -> dict[str, Any]:
    form, weights = OURS[method]
    begun = time.perf_counter()
    searched = pruned(fold, formulation=form, weights=weights, method="search")
    search_seconds = time.perf_counter() - begun
    solved = pruned(fold, formulation=form, weights=weights, time_limit=seconds)
    solve_seconds = time.perf_counter() - begun - search_seconds
    paper = {"F1": PAPER_GAPS[name][0], "F3": PAPER_GAPS[name][1]}.get(method)
    return {
        "fold": number, "rows": len(fold.y), "method": method, "paper_%": "-" if paper is None else paper,
        "gap_%": round(100 * solved.gap_, 2), "proved": "yes" if solved.gap_ < 1e-9 else "no",
        "objective": round(solved.objective_, 4), "bound": round(solved.bound_, 4), "s": round(solve_seconds, 1),
        "search_objective": round(searched.objective_, 4), "search_s": round(search_seconds, 1),
        "search_short_%": round(100 * (1 - searched.objective_ / solved.objective_), 2),
        "pairs_gap_%": round(100 * (searched.bound_ / solved.objective_ - 1), 2), "members": len(solved.members_),
    }  # fmt: skip


def ranks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ranks the methods over all sets and sizes; equal methods share their ranks. Returns the mean rank of each."""
    own = np.array([[row[method] for method in RANKED] for row in rows])
    better = (own[:, None, :] > own[:, :, None]).sum(axis=2)
    equal = (own[:, None, :] == own[:, :, None]).sum(axis=2)
    mean = (better + (equal + 1) / 2).mean(axis=0)
    return [
        {"method": method, "rank": round(float(mean[k]), 2), "paper": PAPER_RANKS[method]}
        for k, method in enumerate(RANKED)
    ]  # fmt: skip


# The candidates

Votes = NDArray[np.uint8]

FILES = {
    "PRK": "parkinsons", "BCW": "wdbc", "MSK": "musk1", "DRD": "diabetic_retinopathy", "SPA": "spambase",
    "BMK": "bank_additional_full",
}  # fmt: skip
POSITIVE = {"BCW": "malignant", "BMK": "yes"}  # holds the positive label by set; it is 1 elsewhere


def _depth(j: int) -> int | None:
    return (None, 12, 9, 6)[j % 4]


def _weight(j: int) -> str | None:
    return "balanced" if j % 2 else None


# The argument j numbers the candidates of a kind, from 0 to 9.
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
    """The votes of all candidates, (rows, candidates), and the labels, (rows,). votes, y: of the rows that select the
    members. test_votes, test_y: of the rows that test them."""

    votes: Votes
    y: Votes
    test_votes: Votes
    test_y: Votes

    def first(self, candidates: int) -> Fold:
        """Returns the fold with only the first candidates, equally many of each kind."""
        share = candidates // len(KINDS)
        members = [kind * 10 + j for kind in range(len(KINDS)) for j in range(share)]
        return Fold(self.votes[:, members], self.y, self.test_votes[:, members], self.test_y)


def read(name: str, data: Path) -> tuple[NDArray[np.float64], Votes]:
    """Reads a data set: columns of numbers stay, others become one-hot; the label is 1 for the positive class."""
    text = table(FILES[name], data)
    columns = []
    for column in text[:, :-1].T:
        try:
            columns.append(column.astype(np.float64)[:, None])
        except ValueError:
            columns.append((column[:, None] == np.unique(column)).astype(np.float64))
    return np.hstack(columns), (text[:, -1] == POSITIVE.get(name, "1")).astype(np.uint8)


def folds(name: str, data: Path, repeat: int, count: int) -> Iterator[Fold]:
    """Yields the first `count` of ten folds."""
    X, y = read(name, data)
    splitter = StratifiedKFold(10, shuffle=True, random_state=repeat)
    for number, (rest, test) in islice(enumerate(splitter.split(X, y)), count):
        fit, choose = train_test_split(rest, train_size=0.7, stratify=y[rest], random_state=repeat)
        votes = candidates(X[fit], y[fit], np.vstack([X[choose], X[test]]), seed=1000 * repeat + number)
        yield Fold(votes[: len(choose)], y[choose], votes[len(choose) :], y[test])


def candidates(X: NDArray[np.float64], y: Votes, rows: NDArray[np.float64], seed: int) -> Votes:
    """Trains ten candidates of each kind on X and y; returns their votes on `rows`: (rows, 100)."""
    random = np.random.default_rng(seed)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    X, rows = ((part - mean) / np.where(spread > 0, spread, 1) for part in (X, rows))
    votes = np.empty((len(rows), 10 * len(KINDS)), dtype=np.uint8)
    for kind, (_, make) in enumerate(KINDS):
        for j in range(10):
            share = (1.0, 0.9, 0.8, 0.7)[j % 4]
            columns = random.permutation(X.shape[1])[: max(2, round(share * X.shape[1]))]
            with warnings.catch_warnings():
                # This hides warnings of networks that stop early and of collinear columns.
                warnings.simplefilter("ignore")
                model = make(j).fit(X[:, columns], y)
                votes[:, 10 * kind + j] = model.predict_proba(rows[:, columns])[:, 1] > 0.5
    return votes


if __name__ == "__main__":
    main()
