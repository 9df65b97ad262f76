"""Recommends the smallest design of a study whose loss is small enough, by standard errors (Breiman et al.,
"Classification and Regression Trees", 1984, section 3.4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from forestc.exploration.space import LEVEL
from forestc.exploration.study import Goal, Study, Trial

UNPRUNED = 1  # sets the level of the unpruned design: -O1 changes no path


@dataclass(frozen=True)
class Recommendation:
    """A recommended design and its neighbours on the front."""

    size: Goal  # the goal that orders designs by size
    best: Trial  # the most accurate design of the front
    taken: Trial  # the recommended design
    smaller: Trial | None  # the next smaller design of the front
    better: Trial | None  # the next more accurate design of the front
    unpruned: Trial | None  # the trial of the model at -O1
    within: bool = True  # True if `taken` is accurate enough; otherwise it loses least
    fits: bool = True  # True if `taken` fits the device

    @property
    def recommended(self) -> Trial | None:
        """The recommended design; None if no design fits the device."""
        return self.taken if self.fits else None

    def times_smaller(self) -> float | None:
        """Returns how many times smaller `taken` is than the unpruned design; None if they can't be compared."""
        sizes = [None if t is None else t.figure(self.size.figure) for t in (self.unpruned, self.taken)]
        if self.size.maximize or self.unpruned is self.taken or not sizes[0] or not sizes[1]:
            return None
        return sizes[0] / sizes[1]


def choice(study: Study) -> Recommendation | None:
    """Returns the recommendation of a study; None if it has no front or no accuracies."""
    first = unpruned(study.trials)
    chosen = _choice(study, first)
    if chosen is None or not study.asked.get("unfinished"):
        return chosen
    some = [trial for trial in study.trials if trial.rung() != "estimate" and study.kept(trial) and study.fits(trial)]
    built, score = _choice(replace(study, trials=tuple(some)), first), chosen.taken.validation
    enough = built is not None and score and _accuracy(built.taken) >= score.value - score.standard_error
    return built if enough else chosen


def _choice(study: Study, first: Trial | None) -> Recommendation | None:
    size = size_goal(study.goals)
    candidates = [trial for trial in study.front if _has_size(trial, size)]
    if not candidates:
        return None

    cost = _cost(size)
    fitting = [trial for trial in candidates if study.fits(trial)]
    among = fitting or [min(candidates, key=cost)]
    best = max(among, key=lambda trial: (_accuracy(trial), -cost(trial)[0]))
    taken, within = _taken(study, size, first, among, best, bool(fitting))
    smaller = max(
        (trial for trial in candidates if cost(trial)[0] < cost(taken)[0]), key=lambda t: cost(t)[0], default=None
    )
    better = min((trial for trial in among if _accuracy(trial) > _accuracy(taken)), key=cost, default=None)
    return Recommendation(size, best, taken, smaller, better, first, within, bool(fitting))


def _cost(size: Goal) -> Callable[[Trial], tuple[float, float]]:
    return lambda trial: (size.cost(trial.figure(size.figure)), -_accuracy(trial))


def _taken(
    study: Study, size: Goal, first: Trial | None, among: list[Trial], best: Trial, fitting: bool
) -> tuple[Trial, bool]:
    """Returns a pair: either the smallest accurate enough design and True, or the most accurate and False."""
    tolerance, cost = study.asked.get("tolerance"), _cost(size)
    assert best.validation is not None
    if tolerance is None and not against_model(study):
        enough = best.validation.value - best.validation.standard_error
        return min((trial for trial in among if _accuracy(trial) >= enough), key=cost), True
    if tolerance is None:
        beside = [t for t in study.trials if t is first and t not in among and study.kept(t) and study.fits(t)]
        candidates = [*among, *(trial for trial in beside if _has_size(trial, size))] if fitting else among
        least = 0.0 if first is None or first not in candidates else _lost(first)[0]
        good = [trial for trial in candidates if _lost(trial)[0] <= max(_lost(trial)[1], least)]
        nearest = min(candidates, key=lambda trial: (_lost(trial)[0], cost(trial)))
    else:
        more = [trial for trial in study.trials if study.kept(trial) and _has_size(trial, size) and study.fits(trial)]
        candidates = more if fitting else among
        good = [trial for trial in candidates if counted(trial, best) <= tolerance]
        nearest = min(candidates, key=lambda trial: (counted(trial, best), cost(trial)))
    return (min(good, key=cost), True) if good else (nearest, False)


def shown(study: Study) -> list[Trial]:
    """Returns the front with the recommended design, sorted by the goals."""
    chosen, front = choice(study), list(study.front)
    if chosen is None or chosen.taken in front:
        return front
    goals, some = study.goals, [*front, chosen.taken]
    return sorted(some, key=lambda trial: [goal.cost(trial.figure(goal.figure)) for goal in goals])


def against_model(study: Study) -> bool:
    """Returns True if trials are compared with a given model."""
    return any(trial.validation is not None and trial.validation.lost is not None for trial in study.trials)


def _lost(trial: Trial) -> tuple[float, float]:
    score = trial.validation
    assert score is not None
    return (score.lost or 0.0), (score.lost_error or 0.0)


def counted(trial: Trial, best: Trial) -> float:
    """Returns the accuracy that a trial loses, plus a standard error. Without a given model, the loss is
    measured against `best`."""
    score = trial.validation
    assert score is not None
    if score.lost is not None and score.lost_error is not None:
        return score.lost + score.lost_error
    return 0.0 if trial.number == best.number else _accuracy(best) - score.value + score.standard_error


def _has_size(trial: Trial, size: Goal) -> bool:
    return trial.validation is not None and trial.figure(size.figure) is not None


def size_goal(goals: Sequence[Goal]) -> Goal:
    """Returns the first goal that is minimized; if there is none, the first goal other than accuracy."""
    others = [goal for goal in goals if goal.figure != "accuracy"]
    return next((goal for goal in others if not goal.maximize), (others or list(goals))[0])


def unpruned(trials: Iterable[Trial]) -> Trial | None:
    """Returns the complete trial of the model at -O1; None if there is none."""
    return next((trial for trial in trials if trial.state == "complete" and trial.options.get(LEVEL) == UNPRUNED), None)


def _accuracy(trial: Trial) -> float:
    assert trial.validation is not None
    return trial.validation.value
