"""Selects members of an ensemble of 0/1 votes, and the number of votes above which 1 wins.

Source: M. A. Mendes Bastos, H. Brandao and C. Arbex Valle, "Ensemble pruning via an integer programming approach with
diversity constraints", INOC 2024.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from forestc.algorithms.arrays import Bytes, Floats
from forestc.algorithms.members import program as member_program
from forestc.algorithms.members import search as member_search
from forestc.algorithms.members import vote_bounds
from forestc.algorithms.members.vote_patterns import Diversity, Limits, Patterns, merged_patterns
from forestc.errors import OptionError, RowsError

Votes = Bytes
BOUND_SHARE, MOST_BOUND_SECONDS = 0.2, 60.0  # limits the combinatorial bounds: share of the time limit, and seconds


@dataclass(frozen=True)
class Weights:
    """Weights W of equation (1): the worth of a row by its class and its decision."""

    true_positive: float = 1.0
    false_negative: float = 0.0
    true_negative: float = 1.0
    false_positive: float = 0.0

    @staticmethod
    def named(name: str, y: Votes) -> Weights:
        """Returns the weights called accuracy, recall or balanced (section 3.1 of the paper). Raises OptionError for
        another name."""
        theta = float(np.mean(y)) if len(y) else 0.0
        by_name = {
            "accuracy": Weights(),
            "recall": Weights(true_negative=0.0),
            "balanced": Weights(true_positive=1 - theta, true_negative=theta),
        }
        if name not in by_name:
            raise OptionError(f"weights={name}", do=f"use {', '.join(by_name)}, or four numbers")
        return by_name[name]


@dataclass(frozen=True)
class Selection:
    """Members that `select` chose, with a bound on all choices."""

    members: tuple[int, ...]  # indices of the chosen members, ascending
    threshold: int  # a row is decided positive above this many votes
    objective: float  # objective of equation (1), divided by the number of rows
    bound: float  # upper bound on the objective of any selection
    gap: float  # (bound - objective) / |objective|
    optimal: bool  # True if the objective is proved to be the largest
    seconds: float

    def decide(self, votes: Votes) -> Votes:
        """Returns the 0/1 decision of each row. votes: (rows, all candidates)."""
        return np.asarray(votes[:, list(self.members)].sum(axis=1, dtype=np.int64) > self.threshold, dtype=np.uint8)


def failure_credits(votes: Votes, y: Votes) -> Floats:
    """Returns the failure credits of section 4, (members, members): rows on which exactly one of two members fails,
    over the failures of both."""
    wrong = (votes != y[:, None]).astype(np.float32)
    both = (wrong.T @ wrong).astype(np.float64)
    total = wrong.sum(axis=0, dtype=np.float64)
    failures = total[:, None] + total
    return np.asarray(np.divide(failures - 2 * both, failures, out=np.zeros_like(both), where=failures > 0))


def diversity_limits(credits: Floats, form: Literal["F1", "F2", "F3"]) -> tuple[float, float]:
    """Returns the least diversities (tau, gamma) of configuration F1, F2 or F3 of section 5.4."""
    if form == "F1":
        return 0.0, 0.0
    of_member = credits.sum(axis=1) / max(1, len(credits) - 1)
    gamma = float(of_member.min() + of_member.mean()) / 2
    return (float(of_member.min()), gamma) if form == "F3" else (0.0, gamma)


def select(
    votes: Votes,
    y: Votes,
    *,
    weights: str | Weights = "accuracy",
    tau: float = 0.0,
    gamma: float = 0.0,
    max_members: int | None = None,
    time_limit: float = 60.0,
    seed: int = 0,
    starts: int = 16,
) -> Selection:
    """Returns the best members found for 0/1 votes, (rows, members), with least diversities tau and gamma. Raises
    RowsError for invalid data, OptionError for impossible limits."""
    begun = time.perf_counter()
    votes, y = _checked(votes, y)
    weighed = Weights.named(weights, y) if isinstance(weights, str) else weights
    limits = _limits(votes, y, tau, gamma, max_members)
    positive = weighed.true_positive - weighed.false_negative
    negative = weighed.false_positive - weighed.true_negative
    patterns = merged_patterns(votes, np.where(y == 1, positive, negative))
    # `base` is the sum of the weights if every row is decided negative.
    base = float(np.where(y == 1, weighed.false_negative, weighed.true_negative).sum())
    cuts = vote_bounds.bound(patterns, min(BOUND_SHARE * time_limit, MOST_BOUND_SECONDS))
    bound = cuts.value
    choice = member_search.search(patterns, limits, member_search.Effort(starts), seed=seed, enough=cuts.pairs)
    if choice is None:
        raise OptionError(f"no selection has tau={tau:g} and gamma={gamma:g}", do="lower tau or gamma")
    seconds = time_limit - (time.perf_counter() - begun)
    if seconds > 0 and choice.gained < bound - _tiny(patterns):
        solved = member_program.solve(patterns, limits, choice, cuts.sets, seconds, seed)
        choice, bound = solved.found, min(bound, solved.bound)
    bound = max(bound, choice.gained)
    rows = len(votes)
    objective, highest = (base + choice.gained) / rows, (base + bound) / rows
    return Selection(
        tuple(choice.members), choice.threshold, objective, highest, (highest - objective) / max(abs(objective), 1e-12),
        bound - choice.gained <= _tiny(patterns), time.perf_counter() - begun,
    )  # fmt: skip


def _tiny(patterns: Patterns) -> float:
    return 1e-9 * max(1.0, float(np.abs(patterns.gain).sum()))


def _checked(votes: Votes, y: Votes) -> tuple[Votes, Votes]:
    votes, y = np.asarray(votes), np.asarray(y)
    if votes.ndim != 2 or y.shape != (len(votes),):
        raise RowsError(
            f"votes of shape {votes.shape} and labels of shape {y.shape}",
            where="votes and labels",
            do="give (rows, members) and (rows,)",
        )
    for name, array in (("votes", votes), ("y", y)):
        if not np.isin(array, (0, 1)).all():
            raise RowsError(f"{name} holds other values than 0 and 1", do="round probabilities to 0 and 1")
    if not votes.shape[1]:
        raise RowsError("no members to choose from", where="votes", do="give votes of at least one member")
    for label in (0, 1):
        if not (y == label).any():
            raise RowsError(f"no row is of class {label}", where="labels", do="give rows of both classes")
    return votes.astype(np.uint8), y.astype(np.uint8)


def _limits(votes: Votes, y: Votes, tau: float, gamma: float, most: int | None) -> Limits:
    count = votes.shape[1]
    if most is not None and most < 1:
        raise OptionError(f"max_members={most}", do="allow at least 1")
    return Limits(count if most is None else min(most, count), diversity_of(votes, y, tau, gamma, most))


def diversity_of(votes: Votes, y: Votes, tau: float, gamma: float, most: int | None) -> Diversity | None:
    """Returns the limits on diversity; None if tau and gamma are 0. Raises OptionError for limits that no selection can
    meet."""
    for name, value in (("tau", tau), ("gamma", gamma)):
        if not 0 <= value <= 1:
            raise OptionError(f"{name}={value:g}", do="use a share from 0 to 1")
    if not tau and not gamma:
        return None
    needed = f"{'tau' if tau else 'gamma'}={tau or gamma:g} needs two members"
    if votes.shape[1] < 2:
        raise OptionError(f"{needed}, and there is one", where="members", do="set tau and gamma to 0")
    if most is not None and most < 2:
        raise OptionError(
            f"{needed}, and at most one is allowed", where="most members", do="allow 2, or set tau and gamma to 0"
        )
    credits = failure_credits(votes, y)
    for name, value in (("tau", tau), ("gamma", gamma)):
        if value > credits.max():
            raise OptionError(
                f"{name}={value:g} is more than the diversity of any two members, {credits.max():.4f}",
                do=f"lower {name}",
            )
    return Diversity(credits, tau, gamma)
