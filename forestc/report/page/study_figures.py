"""Computes figures of a study's page: progress by trial, importance of options, and trials of equal accuracy."""

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
FEWEST = 12  # trials from which on the importance of options is computed
MOST_GOALS = 3  # limits the goals of the hypervolume to the first ones
WIDE = 20.0  # times the smallest value; with larger values, charts are logarithmic


def option_names(study: Study) -> list[str]:
    """Returns the options that differ between trials, in order of appearance."""
    names = list(dict.fromkeys(name for trial in study.trials for name in trial.options))
    return [name for name in names if len({str(trial.options.get(name)) for trial in study.trials}) > 1]


def logarithmic(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) > WIDE


def _scaled(values: list[float], goal: Goal) -> list[float]:
    if logarithmic(values) and not goal.maximize:
        values = [math.log(value) for value in values]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = (high - low) or 1.0
    return [(high - value) / span if goal.maximize else (value - low) / span for value in values]


def history(study: Study) -> list[tuple[int, float]]:
    """Returns a list of (trial number, hypervolume). The hypervolume is the share of the box from worst to best values
    that the trials so far dominate."""
    goals = study.goals[:MOST_GOALS]
    complete = [t for t in study.trials if study.kept(t) and all(t.figure(g.figure) is not None for g in goals)]
    columns = [_scaled([float(t.figure(goal.figure) or 0.0) for t in complete], goal) for goal in goals]
    costs = {trial.number: tuple(column[index] for column in columns) for index, trial in enumerate(complete)}
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
    """Returns the volume of [0, 1]^n that points dominate (smaller is better). It slices along the last axis: While et
    al., "A faster algorithm for calculating hypervolume", 2006."""
    if not points:
        return 0.0
    if len(points[0]) == 1:
        return 1.0 - min(point[0] for point in points)
    ordered = sorted(points, key=lambda point: point[-1])
    ends = [*(point[-1] for point in ordered[1:]), 1.0]
    return sum(
        (end - point[-1]) * hypervolume([other[:-1] for other in ordered[: index + 1]])
        for index, (point, end) in enumerate(zip(ordered, ends, strict=True))
        if end > point[-1]
    )


def importance(study: Study) -> tuple[list[tuple[str, str, float, float]], dict[str, float]]:
    """Returns a list of (goal, option, importance, standard deviation), by permutation in a random forest, and {goal:
    explained share of the variance}. Raises MissingExtraError."""
    names = option_names(study)
    importances: list[tuple[str, str, float, float]] = []
    explained: dict[str, float] = {}
    for goal in study.goals:
        trials = [trial for trial in study.complete if trial.figure(goal.figure) is not None]
        values = np.array([float(trial.figure(goal.figure) or 0.0) for trial in trials])
        if len(trials) < FEWEST or not names or np.ptp(values) == 0:
            continue
        y = np.log(values) if logarithmic(values.tolist()) else values
        mean, deviation, explained[goal.figure] = _permuted(_encoded(trials, names), y)
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
    """Returns options as numbers, (trials, options): texts by alphabetical rank, -1 if not in use."""
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
    """Returns {trial: list of other trials} by number, for the front. The accuracies of a trial and the others differ
    by less than the larger standard error."""
    scores = {trial.number: trial.validation for trial in study.front if trial.validation is not None}
    return {
        number: [
            other
            for other, theirs in scores.items()
            if other != number and abs(own.value - theirs.value) < max(own.standard_error, theirs.standard_error)
        ]
        for number, own in scores.items()
    }
