"""Methods that ensemble selection is compared with: all members, backfitting, kappa pruning, and four hill climbers.

As in section 5.2 of Bastos et al. (see `members.selection`), all decide by the majority of the chosen members. The
fitness functions are those of I. Partalas, G. Tsoumakas and I. Vlahavas, "An ensemble uncertainty aware measure for
directed hill climbing ensemble pruning", Machine Learning 81, 2010.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Votes = NDArray[np.uint8]
Right = NDArray[np.bool_]
Fitness = Callable[[Right, Right, NDArray[np.float64]], NDArray[np.float64]]

LEAST_SHARE, MOST_SHARE = 0.2, 0.8  # of the members, for methods that need to know how many to choose


def majority(votes: Votes, members: list[int]) -> Votes:
    """(rows,) 0/1: what more than half of the members vote for."""
    return np.asarray(2 * votes[:, members].sum(axis=1, dtype=np.int64) > len(members), dtype=np.uint8)


def full(votes: Votes, y: Votes) -> list[int]:
    """All members."""
    return list(range(votes.shape[1]))


def _accuracies(votes: Votes, y: Votes, sums: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """(members,) the accuracy of the majority of an ensemble after each member joins it. sums: (rows,) its votes."""
    decided = 2 * (sums[:, None] + votes) > size + 1
    return np.asarray((decided == (y[:, None] == 1)).mean(axis=0), dtype=np.float64)


def _accuracy(votes: Votes, y: Votes, members: list[int]) -> float:
    return float((majority(votes, members) == y).mean())


def backfitting(votes: Votes, y: Votes, *, time_limit: float = 300.0) -> list[int]:
    """Reduced-error pruning with backfitting: greedy by accuracy, and after each member that joins every chosen one is
    replaced where that betters the accuracy. The best of all sizes from 20 to 80 % of the members."""
    until = time.perf_counter() + time_limit
    count = votes.shape[1]
    chosen: list[int] = []
    best, best_accuracy = [0], -1.0
    while len(chosen) < max(1, round(MOST_SHARE * count)) and time.perf_counter() < until:
        sums = votes[:, chosen].sum(axis=1, dtype=np.int64)
        rated = _accuracies(votes, y, sums, len(chosen))
        rated[chosen] = -1
        chosen.append(int(np.argmax(rated)))
        chosen, accuracy = _revised(votes, y, chosen, float(rated.max()), until)
        if len(chosen) >= LEAST_SHARE * count and accuracy > best_accuracy:
            best, best_accuracy = list(chosen), accuracy
    return sorted(best)


def _revised(votes: Votes, y: Votes, chosen: list[int], accuracy: float, until: float) -> tuple[list[int], float]:
    """Members replaced one by one by any left out while that betters the accuracy."""
    chosen = list(chosen)
    place = 0
    sums = votes[:, chosen].sum(axis=1, dtype=np.int64)
    while place < len(chosen) and time.perf_counter() < until:
        without = sums - votes[:, chosen[place]]
        rated = _accuracies(votes, y, without, len(chosen) - 1)
        rated[chosen] = -1
        other = int(np.argmax(rated))
        if rated[other] > accuracy:
            chosen[place], accuracy = other, float(rated[other])
            sums, place = without + votes[:, other], 0
        else:
            place += 1
    return chosen, accuracy


def kappa(votes: Votes, y: Votes) -> list[int]:
    """Kappa pruning: members that agree least with those chosen so far, by the mean kappa statistic. The most accurate
    of all sizes from 20 to 80 % of the members."""
    share = votes.mean(axis=0)
    both = votes.T.astype(np.float32) @ votes.astype(np.float32) / len(votes)
    agree = 1 - share[:, None] - share + 2 * both
    chance = np.outer(share, share) + np.outer(1 - share, 1 - share)
    statistic = np.where(chance < 1, (agree - chance) / np.where(chance < 1, 1 - chance, 1), 1.0)
    np.fill_diagonal(statistic, np.inf)
    chosen = [int(k) for k in np.unravel_index(np.argmin(statistic), statistic.shape)][: votes.shape[1]]
    best, best_accuracy = list(dict.fromkeys(chosen)), -1.0
    for _ in range(round(MOST_SHARE * votes.shape[1]) - 1):
        if len(chosen) >= LEAST_SHARE * votes.shape[1] and _accuracy(votes, y, chosen) > best_accuracy:
            best, best_accuracy = list(chosen), _accuracy(votes, y, chosen)
        mean = statistic[:, chosen].mean(axis=1)
        mean[chosen] = np.inf
        chosen.append(int(np.argmin(mean)))
    return sorted(best)


def _complementariness(member: Right, ensemble: Right, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows that the member decides rightly and the ensemble wrongly."""
    return np.asarray((member & ~ensemble[:, None]).sum(axis=0, dtype=np.float64))


def _concurrency(member: Right, ensemble: Right, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """2 for rows that the member alone decides rightly, 1 for those that both do, -2 for those that neither does."""
    worth = np.where(member, np.where(ensemble, 1, 2)[:, None], np.where(ensemble, 0, -2)[:, None])
    return np.asarray(worth.sum(axis=0, dtype=np.float64))


def _uncertainty_weighted(member: Right, ensemble: Right, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows weigh by how sure the ensemble is: share, of its members that decide the row rightly."""
    # a row that the ensemble decides wrongly weighs by the share of members that are right, and the other way round
    weight = np.where(ensemble, 1 - share, share)[:, None]
    return np.asarray(np.where(member, weight, -weight).sum(axis=0, dtype=np.float64))


def hill_climb(votes: Votes, y: Votes, fitness: Fitness | None) -> list[int]:
    """Members join one by one, first the most accurate, then each time the one with the largest fitness (None: the
    ensemble's accuracy). Of all ensembles on the way the most accurate, and of equal ones the smallest."""
    right = votes == y[:, None]
    chosen = [int(np.argmax(right.mean(axis=0)))]
    sums = votes[:, chosen[0]].astype(np.int64)
    sizes = [_accuracy(votes, y, chosen)]
    while len(chosen) < votes.shape[1]:
        if fitness is None:
            rated = _accuracies(votes, y, sums, len(chosen))
        else:
            ensemble = (2 * sums > len(chosen)) == (y == 1)
            rated = fitness(right, ensemble, right[:, chosen].mean(axis=1))
        rated[chosen] = -np.inf
        chosen.append(int(np.argmax(rated)))
        sums = sums + votes[:, chosen[-1]]
        sizes.append(float(((2 * sums > len(chosen)) == (y == 1)).mean()))
    return sorted(chosen[: int(np.argmax(sizes)) + 1])


# Name to method: (votes, y) -> members, which then decide by majority.
BASELINES: dict[str, Callable[[Votes, Votes], list[int]]] = {
    "full": full,
    "backfitting": backfitting,
    "accuracy": lambda votes, y: hill_climb(votes, y, None),
    "complementariness": lambda votes, y: hill_climb(votes, y, _complementariness),
    "concurrency": lambda votes, y: hill_climb(votes, y, _concurrency),
    "uncertainty-weighted": lambda votes, y: hill_climb(votes, y, _uncertainty_weighted),
    "kappa": kappa,
}
