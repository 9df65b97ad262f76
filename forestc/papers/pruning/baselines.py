"""Holds the baselines of ensemble selection: all members, backfitting, kappa pruning, and four hill climbers.

As in section 5.2 of Bastos et al. (see `selection`), all decide by the majority of the chosen members. The
fitness functions are those of I. Partalas, G. Tsoumakas and I. Vlahavas, "An ensemble uncertainty aware measure for
directed hill climbing ensemble pruning", Machine Learning 81, 2010.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from forestc.algorithms.arrays import Bits, Bytes, Floats, Ints

Votes = Bytes
Right = Bits
Fitness = Callable[[Right, Right, Floats], Floats]

LEAST_SHARE, MOST_SHARE = 0.2, 0.8  # share of the members that backfitting and kappa choose, at least and at most


def majority(votes: Votes, members: list[int]) -> Votes:
    """Returns 1 for each row that more than half of the members vote 1 for, otherwise 0: (rows,)."""
    return np.asarray(2 * votes[:, members].sum(axis=1, dtype=np.int64) > len(members), dtype=np.uint8)


def full(votes: Votes, y: Votes) -> list[int]:
    return list(range(votes.shape[1]))


def _accuracies(votes: Votes, y: Votes, sums: Ints, size: int) -> Floats:
    """Returns the accuracy of the ensemble's majority after each member joins it: (members,). sums: (rows,) the
    ensemble's votes."""
    decided = 2 * (sums[:, None] + votes) > size + 1
    return np.asarray((decided == (y[:, None] == 1)).mean(axis=0), dtype=np.float64)


def _accuracy(votes: Votes, y: Votes, members: list[int]) -> float:
    return float((majority(votes, members) == y).mean())


def backfitting(votes: Votes, y: Votes, *, time_limit: float = 300.0) -> list[int]:
    """Chooses members greedily by accuracy (reduced-error pruning with backfitting). After each new member, every
    chosen member is replaced if another one betters the accuracy. Returns the most accurate ensemble of 20 to 80 % of
    the members."""
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
    """Replaces chosen members one by one while this betters the accuracy; returns the members and their accuracy."""
    chosen = list(chosen)
    index = 0
    sums = votes[:, chosen].sum(axis=1, dtype=np.int64)
    while index < len(chosen) and time.perf_counter() < until:
        without = sums - votes[:, chosen[index]]
        rated = _accuracies(votes, y, without, len(chosen) - 1)
        rated[chosen] = -1
        other = int(np.argmax(rated))
        if rated[other] > accuracy:
            chosen[index], accuracy = other, float(rated[other])
            sums, index = without + votes[:, other], 0
        else:
            index += 1
    return chosen, accuracy


def kappa(votes: Votes, y: Votes) -> list[int]:
    """Chooses, one by one, the member that agrees least with the chosen ones by the mean kappa statistic. Returns the
    most accurate ensemble of 20 to 80 % of the members."""
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


def _complementariness(member: Right, ensemble: Right, share: Floats) -> Floats:
    """Returns how many rows each member decides rightly and the ensemble wrongly."""
    return np.asarray((member & ~ensemble[:, None]).sum(axis=0, dtype=np.float64))


def _concurrency(member: Right, ensemble: Right, share: Floats) -> Floats:
    """Sums over the rows for each member: 2 if it alone decides rightly, 1 if both it and the ensemble do, -2 if
    neither does."""
    worth = np.where(member, np.where(ensemble, 1, 2)[:, None], np.where(ensemble, 0, -2)[:, None])
    return np.asarray(worth.sum(axis=0, dtype=np.float64))


def _uncertainty_weighted(member: Right, ensemble: Right, share: Floats) -> Floats:
    """Sums over the rows for each member: plus the row's weight if it decides rightly, otherwise minus it. share: of
    the ensemble's members that decide each row rightly."""
    # A row weighs the share of members that disagree with the ensemble's decision on it.
    weight = np.where(ensemble, 1 - share, share)[:, None]
    return np.asarray(np.where(member, weight, -weight).sum(axis=0, dtype=np.float64))


def hill_climb(votes: Votes, y: Votes, fitness: Fitness | None) -> list[int]:
    """Adds members one by one: first the most accurate, then the one with the largest fitness (None: the accuracy of
    the ensemble with it). Returns the most accurate ensemble on the way; of equal ones, the smallest."""
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


# BASELINES holds the methods by name; each takes votes and labels and returns the chosen members.
BASELINES: dict[str, Callable[..., list[int]]] = {
    "full": full,
    "backfitting": backfitting,
    "accuracy": lambda votes, y: hill_climb(votes, y, None),
    "complementariness": lambda votes, y: hill_climb(votes, y, _complementariness),
    "concurrency": lambda votes, y: hill_climb(votes, y, _concurrency),
    "uncertainty-weighted": lambda votes, y: hill_climb(votes, y, _uncertainty_weighted),
    "kappa": kappa,
}
