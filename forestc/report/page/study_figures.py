"""What a study's page computes of its trials: progress by trial, importance of options, what is equal within errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.costs.fitted import is_number
from forestc.errors import MissingExtraError
from forestc.exploration.study import Goal, Study, Trial

Point = tuple[float, ...]
FEWEST = 12  # trials from which the importance of options is computed
MOST_GOALS = 3  # that the hypervolume is computed of
WIDE = 20.0  # ratio of the largest to the smallest value from which a goal is drawn on a logarithmic scale


def option_names(study: Study) -> list[str]:
    """The names of all options that some trial has, those with one value left out, in order of appearance."""
    names = list(dict.fromkeys(name for trial in study.trials for name in trial.options))
    return [name for name in names if len({str(trial.options.get(name)) for trial in study.trials}) > 1]


def logarithmic(values: Sequence[float]) -> bool:
    """Whether values are better shown on a logarithmic scale."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > WIDE


def _scaled(values: list[float], goal: Goal) -> list[float]:
    """The values from 0, best seen, to 1, worst seen."""
    if logarithmic(values) and not goal.maximize:
        values = [math.log(value) for value in values]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = (high - low) or 1.0
    return [(high - value) / span if goal.maximize else (value - low) / span for value in values]


def history(study: Study) -> list[tuple[int, float]]:
    """For each trial, in order, its number and the share of the box between the worst and the best seen that the trials
    up to it dominate (the hypervolume); with one goal how near they came to the best."""
    goals = study.goals[:MOST_GOALS]
    kept = [t for t in study.trials if study.kept(t) and all(t.figure(g.figure) is not None for g in goals)]
    columns = [_scaled([float(t.figure(goal.figure) or 0.0) for t in kept], goal) for goal in goals]
    costs = {trial.number: tuple(column[place] for column in columns) for place, trial in enumerate(kept)}
    volume = 0.0
    front: list[Point] = []
    volumes: list[tuple[int, float]] = []
    for trial in sorted(study.trials, key=lambda trial: trial.number):
        cost = costs.get(trial.number)
        if cost is not None and not any(all(a <= b for a, b in zip(other, cost, strict=True)) for other in front):
            front = [other for other in front if not all(a <= b for a, b in zip(cost, other, strict=True))]
            front.append(cost)
            volume = hypervolume(front)
        volumes.append((trial.number, volume))
    return volumes


def hypervolume(points: Sequence[Point]) -> float:
    """The volume that points in [0, 1]^n dominate, smaller being better, up to the corner of ones. By slices along the
    last axis (While et al., "A faster algorithm for calculating hypervolume", 2006): fine for a few dozen points."""
    if not points:
        return 0.0
    if len(points[0]) == 1:
        return 1.0 - min(point[0] for point in points)
    ordered = sorted(points, key=lambda point: point[-1])
    ends = [*(point[-1] for point in ordered[1:]), 1.0]
    return sum(
        (end - point[-1]) * hypervolume([other[:-1] for other in ordered[: place + 1]])
        for place, (point, end) in enumerate(zip(ordered, ends, strict=True))
        if end > point[-1]
    )


def importance(study: Study) -> tuple[list[tuple[str, str, float, float]], dict[str, float]]:
    """(goal, option, importance, standard deviation) and by goal the share of variance that is explained on trials that
    were not learnt from. Importance is the loss of R squared of a forest, learnt on the trials, if an option's values
    are permuted. Empty for few trials. Raises MissingExtraError."""
    names = option_names(study)
    importances: list[tuple[str, str, float, float]] = []
    explained: dict[str, float] = {}
    for goal in study.goals:
        known = [trial for trial in study.complete if trial.figure(goal.figure) is not None]
        values = np.array([float(trial.figure(goal.figure) or 0.0) for trial in known])
        if len(known) < FEWEST or not names or np.ptp(values) == 0:
            continue
        y = np.log(values) if logarithmic(values.tolist()) else values
        mean, deviation, explained[goal.figure] = _permuted(_encoded(known, names), y)
        importances += [(goal.figure, n, float(m), float(d)) for n, m, d in zip(names, mean, deviation, strict=True)]
    return importances, explained


def _permuted(X: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any], float]:
    try:
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.inspection import permutation_importance
    except ImportError:
        raise MissingExtraError("scikit-learn", "report") from None
    forest = RandomForestRegressor(60, min_samples_leaf=2, max_features=0.5, oob_score=True, random_state=0, n_jobs=1)
    forest.fit(X, y)
    permuted = permutation_importance(forest, X, y, n_repeats=5, random_state=0, n_jobs=1)
    return permuted.importances_mean, permuted.importances_std, float(forest.oob_score_)


def _encoded(trials: Sequence[Trial], names: Sequence[str]) -> NDArray[np.float64]:
    """(trials, options) numbers as they are, other values by rank of their text; -1 where an option is not in use."""
    X = np.full((len(trials), len(names)), -1.0)
    for column, name in enumerate(names):
        values = [trial.options.get(name) for trial in trials]
        if all(value is None or is_number(value) for value in values):
            codes: Mapping[str, float] = {}
        else:
            codes = {text: float(code) for code, text in enumerate(sorted({str(v) for v in values if v is not None}))}
        for row, value in enumerate(values):
            if value is not None:
                X[row, column] = codes[str(value)] if codes else float(value)
    return X


def equals(study: Study) -> dict[int, list[int]]:
    """For each trial of the front the others on it whose accuracy differs by less than the larger standard error."""
    scores = {trial.number: trial.validation for trial in study.front if trial.validation is not None}
    return {
        number: [
            other
            for other, theirs in scores.items()
            if other != number and abs(mine.value - theirs.value) < max(mine.standard_error, theirs.standard_error)
        ]
        for number, mine in scores.items()
    }
