"""Selects members of an ensemble of 0/1 votes, and the number of votes above which 1 wins.

Source: M. A. Mendes Bastos, H. Brandao and C. Arbex Valle, "Ensemble pruning via an integer programming approach with
diversity constraints", INOC 2024.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bytes, Floats, Ints
from forestc.algorithms.members import search as member_search
from forestc.algorithms.members.selection_run import Report, SelectionRun
from forestc.algorithms.members.vote_patterns import Classes, Diversity, Limits, Patterns, merged_patterns
from forestc.errors import OptionError, RowsError
from forestc.papers.pruning import program as member_program
from forestc.papers.pruning import vote_bounds
from forestc.papers.pruning.vote_quads import quads

Votes = Bytes
WORK = 2e8  # limits the work of the local search if no time does
ROUNDS = 5  # rounds of the search for combinatorial bounds if no time limits it
STEPS = 50_000_000  # limits the work of an integer program if no time does
PAIRS_SHARE, SEARCH_SHARE = 0.2, 0.4  # shares of the remaining time for a first bound, and for the local search
BOUND_SHARE = 0.7  # share of the time then left for a better bound; the rest is for the integer program


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
            raise OptionError(f"{name!r} is unknown", where="weights", do=f"use {', '.join(by_name)}, or four numbers")
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


def failure_credits(votes: Votes | Ints, y: Votes | Ints) -> Floats:
    """Returns the failure credits of section 4, (members, members): rows on which exactly one of two members fails,
    over the failures of both; 0 if neither fails."""
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
    votes: Votes | Ints,
    y: Votes | Ints,
    *,
    weights: str | Weights = "accuracy",
    tau: float = 0.0,
    gamma: float = 0.0,
    max_members: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    starts: int = 16,
    effort: float = 1.0,
    begin: Sequence[int] = (),
    report: Report | None = None,
    prove: bool = True,
) -> Selection:
    """Returns the best members and threshold found for 0/1 votes, (rows, members). Ctrl-C ends the search early.

    tau, gamma: least diversities; with either, at least two members are chosen.
    time_limit: seconds; None limits the work instead, repeatably.
    prove: False leaves out bounds of sets and the integer program.
    effort: multiplies the limits of the work.
    begin: indices of members to start from.
    report: receives the best objective and the bound after each change.

    Raises RowsError for invalid data, OptionError for impossible limits.
    """
    votes, y = _checked(votes, y)
    _compile()
    begun = time.perf_counter()
    weighed = Weights.named(weights, y) if isinstance(weights, str) else weights
    limits = _limits(votes, y, tau, gamma, max_members)
    positive = weighed.true_positive - weighed.false_negative
    negative = weighed.false_positive - weighed.true_negative
    patterns = merged_patterns(votes, np.where(y == 1, positive, negative))
    # `base` is the sum of the weights if every row is decided negative.
    base = float(np.where(y == 1, weighed.false_negative, weighed.true_negative).sum())
    rows = len(votes)
    running = SelectionRun(begun + time_limit if time_limit else math.inf)
    if report is not None:
        running.report = lambda value, bound: report((base + value) / rows, (base + bound) / rows)
    first = np.zeros(votes.shape[1], dtype=np.int64)
    first[list(begin)] = 1
    work = member_search.Effort(starts)
    if time_limit is None:
        work = replace(work, work=(WORK if prove else work.work) * effort)
    with running.part(PAIRS_SHARE):
        cuts = vote_bounds.bound(patterns, 0, running=running)
    with running.part(SEARCH_SHARE if prove else 1.0):
        choice = member_search.search(
            patterns, limits, work, seed=seed, enough=cuts.pairs,
            begin=first if len(begin) else None, running=running,
        )  # fmt: skip
    if choice is None:
        raise OptionError(
            f"no selection has tau={tau:g} and gamma={gamma:g}", where="diversity", do="lower tau or gamma"
        )
    bound = cuts.value
    running.tell(choice.gained, bound)
    steps = round(STEPS * effort) if time_limit is None else None
    rounds = math.inf if time_limit else math.ceil(ROUNDS * effort)
    needed = 0.0 if time_limit is None else member_program.seconds_to_build(patterns, limits)
    with_program = needed < (1 - BOUND_SHARE) * running.left
    if prove and running.left > 0 and choice.gained < bound - _tiny(patterns):
        with running.part(BOUND_SHARE if with_program else 1.0):
            cuts = vote_bounds.bound(patterns, running.left, rounds, running, steps)
        bound = min(bound, cuts.value)
        running.tell(choice.gained, bound)
    if prove and with_program and running.left > 0 and choice.gained < bound - _tiny(patterns):
        try:
            solved = member_program.solve(patterns, limits, choice, cuts.sets, bound, steps, running, seed)
            choice, bound = solved.found, min(bound, solved.bound)
        except KeyboardInterrupt:
            running.interrupt()
    bound = max(bound, choice.gained)
    objective, highest = (base + choice.gained) / rows, (base + bound) / rows
    return Selection(
        tuple(choice.members), choice.threshold, objective, highest, (highest - objective) / max(abs(objective), 1e-12),
        bound - choice.gained <= _tiny(patterns), time.perf_counter() - begun,
    )  # fmt: skip


def _compile() -> None:
    """Compiles or loads the functions of a selection, so that this does not count as its time."""
    import highspy  # noqa: F401

    patterns = Patterns(np.ones((2, 4), dtype=np.int32), np.array([1.0, 1.0, -1.0, -1.0]))
    patterns.values_after(np.zeros(4, dtype=np.int64), np.ones(2, dtype=np.int64), 0.0)
    quads(patterns, SelectionRun())


def selection_of(
    votes: Votes | Ints, y: Votes | Ints, members: Sequence[int], threshold: int, weights: str | Weights = "accuracy"
) -> Selection:
    """Returns given members and a threshold as a `Selection`, with the objective of deciding each row rightly as the
    bound."""
    votes, y = _checked(votes, y)
    weighed = Weights.named(weights, y) if isinstance(weights, str) else weights
    decided = votes[:, list(members)].sum(axis=1, dtype=np.int64) > threshold
    if_positive = np.where(y == 1, weighed.true_positive, weighed.false_positive)
    if_negative = np.where(y == 1, weighed.false_negative, weighed.true_negative)
    objective = float(np.where(decided, if_positive, if_negative).mean())
    return _made(sorted(members), threshold, objective, float(np.maximum(if_positive, if_negative).mean()), 0.0)


def select_by_plurality(
    votes: Ints,
    y: Ints,
    *,
    weights: str = "accuracy",
    tau: float = 0.0,
    gamma: float = 0.0,
    max_members: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    starts: int = 16,
    begin: Sequence[int] = (),
    report: Report | None = None,
) -> Selection:
    """Returns the members with the most rows right if the class with the most votes wins, the first of equal ones. The
    bound counts the rows on which a member is right. Other arguments are those of `select`.

    votes: (rows, members) class indices. y: (rows,) class indices.
    weights: accuracy, or balanced for rows that weigh as much as their class is rare.
    """
    begun = time.perf_counter()
    if weights not in ("accuracy", "balanced"):
        raise OptionError(f"{weights} with more than two classes", where="weights", do="use accuracy or balanced")
    members, kinds = votes.shape[1], int(max(votes.max(initial=0), y.max(initial=0))) + 1
    counts = np.bincount(y, minlength=kinds)
    weight = np.ones(len(y)) if weights == "accuracy" else len(y) / (np.count_nonzero(counts) * counts[y])
    leaf = np.ascontiguousarray(votes.T, dtype=np.int32)
    entries = kinds * kinds
    task = Classes(
        leaf, np.arange(members + 1) * entries, np.tile(np.eye(kinds).ravel(), members),
        np.tile(np.array([[0, kinds]]), (members, 1)), np.zeros(kinds), y, weight,
    )  # fmt: skip
    bound = float(weight[(votes == y[:, None]).any(axis=1)].sum())
    running = SelectionRun(begun + time_limit if time_limit else math.inf)
    if report is not None:
        running.report = lambda value, bound: report(value / len(y), bound / len(y))
    first = np.zeros(members, dtype=np.int64)
    first[list(begin)] = 1
    limits = _limits(votes, y, tau, gamma, max_members)
    choice = member_search.search(
        task, limits, member_search.Effort(starts), seed=seed, enough=bound, begin=first if len(begin) else None,
        running=running,
    )  # fmt: skip
    if choice is None:
        raise OptionError(
            f"no selection has tau={tau:g} and gamma={gamma:g}", where="diversity", do="lower tau or gamma"
        )
    seconds = time.perf_counter() - begun
    return _made(choice.members, 0, choice.gained / len(y), bound / len(y), seconds)


def _made(members: Sequence[int], threshold: int, objective: float, bound: float, seconds: float) -> Selection:
    gap = (bound - objective) / max(abs(objective), 1e-12)
    return Selection(tuple(members), threshold, objective, bound, gap, gap <= 1e-9, seconds)


def _tiny(patterns: Patterns) -> float:
    return 1e-9 * max(1.0, float(np.abs(patterns.gain).sum()))


def _checked(votes: Votes | Ints, y: Votes | Ints) -> tuple[Votes, Votes]:
    given: tuple[NDArray[Any], NDArray[Any]] = np.asarray(votes), np.asarray(y)
    if given[0].ndim != 2 or given[1].shape != (len(given[0]),):
        raise RowsError(
            f"they have shapes {given[0].shape} and {given[1].shape}",
            where="votes and labels",
            do="give (rows, members) and (rows,)",
        )
    for name, array in zip(("votes", "y"), given, strict=True):
        if not np.isin(array, (0, 1)).all():
            raise RowsError("holds other values than 0 and 1", where=name, do="round probabilities to 0 and 1")
    if not given[0].shape[1]:
        raise RowsError("no members to choose from", where="votes", do="give votes of at least one member")
    for label in (0, 1):
        if not (given[1] == label).any():
            raise RowsError(f"no row is of class {label}", where="labels", do="give rows of both classes")
    return given[0].astype(np.uint8), given[1].astype(np.uint8)


def _limits(votes: Votes | Ints, y: Votes | Ints, tau: float, gamma: float, most: int | None) -> Limits:
    count = votes.shape[1]
    if most is not None and most < 1:
        raise OptionError(f"{most}", where="max_members", do="allow at least 1")
    return Limits(count if most is None else min(most, count), diversity_of(votes, y, tau, gamma, most))


def diversity_of(votes: Votes | Ints, y: Votes | Ints, tau: float, gamma: float, most: int | None) -> Diversity | None:
    """Returns the limits on diversity; None if tau and gamma are 0. Raises OptionError for limits that no selection can
    meet."""
    for name, value in (("tau", tau), ("gamma", gamma)):
        if not 0 <= value <= 1:
            raise OptionError(f"{value:g}", where=name, do="use a share from 0 to 1")
    if not tau and not gamma:
        return None
    needed = f"{'tau' if tau else 'gamma'}={tau or gamma:g} needs two members"
    if votes.shape[1] < 2:
        raise OptionError(f"{needed}, and there is one", where="members", do="set tau and gamma to 0")
    if most is not None and most < 2:
        raise OptionError(
            f"{needed}, and at most one is allowed", where="max_members", do="allow 2, or set tau and gamma to 0"
        )
    credits = failure_credits(votes, y)
    for name, value in (("tau", tau), ("gamma", gamma)):
        if value > credits.max():
            raise OptionError(
                f"{value:g} is more than the diversity of any two members, {credits.max():.4f}",
                where=name,
                do=f"lower {name}",
            )
    return Diversity(credits, tau, gamma)
