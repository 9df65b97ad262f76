"""Which design of a study to take: the smallest of the front within a standard error of its best, and those beside it.

The rule of one standard error is that of Breiman et al., "Classification and Regression Trees", 1984, section 3.4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from forestc.exploration.space import LEVEL
from forestc.exploration.study import Goal, Study, Trial

UNPRUNED = 1  # the level that changes no path of the given rows


@dataclass(frozen=True)
class Choice:
    """size: the goal that the front is ordered by. best: the most accurate of the front. taken: the smallest whose
    accuracy is within a standard error of that. smaller, better: the next of the front, None at its ends. unpruned: the
    model as it is."""

    size: Goal
    best: Trial
    taken: Trial
    smaller: Trial | None
    better: Trial | None
    unpruned: Trial | None

    def times_smaller(self) -> float | None:
        """How many times smaller the design is than the unpruned one; None where that says nothing."""
        sizes = [None if t is None else t.figure(self.size.figure) for t in (self.unpruned, self.taken)]
        if self.size.maximize or self.unpruned is self.taken or not sizes[0] or not sizes[1]:
            return None
        return sizes[0] / sizes[1]


def choice(study: Study) -> Choice | None:
    """None for a study without a front, or without accuracies."""
    size = size_goal(study.goals)
    known = [trial for trial in study.front if trial.validation is not None and trial.figure(size.figure) is not None]
    if not known:
        return None

    def cost(trial: Trial) -> tuple[float, float]:
        return size.cost(trial.figure(size.figure)), -_accuracy(trial)

    best = max(known, key=lambda trial: (_accuracy(trial), -cost(trial)[0]))
    assert best.validation is not None
    enough = best.validation.value - best.validation.standard_error
    taken = min((trial for trial in known if _accuracy(trial) >= enough), key=cost)
    smaller = max((trial for trial in known if cost(trial)[0] < cost(taken)[0]), key=lambda t: cost(t)[0], default=None)
    better = min((trial for trial in known if _accuracy(trial) > _accuracy(taken)), key=cost, default=None)
    return Choice(size, best, taken, smaller, better, unpruned(study.trials))


def size_goal(goals: Sequence[Goal]) -> Goal:
    """The first goal that is to be small, else the first but accuracy."""
    others = [goal for goal in goals if goal.figure != "accuracy"]
    return next((goal for goal in others if not goal.maximize), (others or list(goals))[0])


def unpruned(trials: Iterable[Trial]) -> Trial | None:
    """The trial of the model as it is, at -O1: every search begins with the levels."""
    return next((trial for trial in trials if trial.state == "complete" and trial.options.get(LEVEL) == UNPRUNED), None)


def _accuracy(trial: Trial) -> float:
    assert trial.validation is not None
    return trial.validation.value
