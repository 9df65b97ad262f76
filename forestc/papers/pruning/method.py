"""Chooses members of an ensemble by the integer program, by local search alone, or by a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

from forestc.algorithms.arrays import Ints
from forestc.algorithms.members.selection_run import Report
from forestc.errors import OptionError, known_names
from forestc.papers.pruning.baselines import BASELINES
from forestc.papers.pruning.selection import (
    Selection,
    Weights,
    diversity_limits,
    failure_credits,
    select,
    select_by_plurality,
    selection_of,
)

_FORMULATIONS = ("F1", "F2", "F3")
_METHODS = ("program", "search", *BASELINES)


@dataclass(frozen=True)
class SelectionMethod:
    """A method of ensemble selection with its options; `papers.PrunedEnsemble` describes them.

    Raises OptionError if an option is invalid.
    """

    method: str = "program"
    formulation: Literal["F1", "F2", "F3"] = "F1"
    weights: str | Sequence[float] = "accuracy"
    diversity: tuple[float, float] | None = None
    max_members: int | None = None
    effort: float = 1.0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        for name, known in (("method", _METHODS), ("formulation", _FORMULATIONS)):
            if getattr(self, name) not in known:
                raise OptionError(
                    f"{getattr(self, name)!r} is unknown", where=name, do=known_names(getattr(self, name), known)
                )
        if self.time_limit is not None and not self.time_limit > 0:
            raise OptionError(f"{self.time_limit!r}", where="time_limit", do="give seconds above 0, or None")
        if not 0 < self.effort < math.inf:
            raise OptionError(f"{self.effort!r}", where="effort", do="give a factor above 0, such as 1")
        if not isinstance(self.weights, str) and not _finite(self.weights, 4):
            raise OptionError(f"{self.weights!r}", where="weights", do="give four finite numbers, or a name")
        if self.diversity is not None and not _finite(self.diversity, 2):
            raise OptionError(f"{self.diversity!r}", where="diversity", do="give two shares (tau, gamma), or None")
        most: Any = self.max_members
        if most is not None and (not isinstance(most, Integral) or most < 1):
            raise OptionError(
                f"{self.max_members!r}", where="max_members", do="give a whole number of at least 1, or None"
            )

    def choose(
        self, votes: Ints, y: Ints, classes: int, *, seed: int, begin: Sequence[int], report: Report
    ) -> Selection:
        """Returns the chosen members. Ctrl-C ends the choice early.

        votes: (rows, members) indices of classes. y: (rows,) indices of classes.
        begin: members to start from; others than candidates are left out.
        report: receives the best objective and the bound after each change.

        Raises OptionError if the method does not take this number of classes, or no selection meets the limits;
        RowsError if the rows lack a class.
        """
        tau, gamma = self.diversity or (0.0, 0.0)
        if self.formulation == "F1":
            tau = gamma = 0.0
        elif self.diversity is None:
            tau, gamma = diversity_limits(failure_credits(votes, y), self.formulation)
        elif self.formulation == "F2":
            tau = 0.0
        limits: dict[str, Any] = {
            "tau": tau, "gamma": gamma, "max_members": self.max_members, "time_limit": self.time_limit, "seed": seed,
            "begin": [member for member in begin if member < votes.shape[1]], "report": report,
        }  # fmt: skip
        if classes != 2:
            if self.method in BASELINES or not isinstance(self.weights, str):
                raise OptionError(
                    f"{self.method!r} with weights={self.weights} for {classes} classes",
                    where="method",
                    do='use "program" or "search", and the weights "accuracy" or "balanced"',
                )
            return select_by_plurality(votes, y, weights=self.weights, **limits)
        weights = self.weights if isinstance(self.weights, str) else Weights(*map(float, self.weights))
        if self.method in BASELINES:
            limit = {"time_limit": self.time_limit} if self.method == "backfitting" and self.time_limit else {}
            members = BASELINES[self.method](votes.astype("u1"), y.astype("u1"), **limit)
            return selection_of(votes, y, members, len(members) // 2, weights)
        return select(votes, y, weights=weights, effort=self.effort, prove=self.method == "program", **limits)


def _finite(given: Any, count: int) -> bool:
    numbers = list(given) if hasattr(given, "__len__") else []
    return len(numbers) == count and all(isinstance(number, Real) and math.isfinite(number) for number in numbers)
