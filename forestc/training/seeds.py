"""Copies estimators and fixes the seeds of their training, so that the same command gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from typing import Any, Protocol

import numpy as np

SEEDS = ("random_state", "random_seed", "seed")
THREADS = ("n_jobs", "nthread", "num_threads", "thread_count")
# Settings that these libraries need, beside a single thread, for the same sums each time.
THREADED: dict[str, dict[str, Any]] = {
    "xgboost": {},
    "lightgbm": {"deterministic": True, "force_col_wise": True},
    "catboost": {},
}
# Parameters of CatBoost that a copy does not take: what training prints, and when it stops early.
CATBOOST_OWN = {
    *("verbose", "verbose_eval", "silent", "logging_level"),
    *("use_best_model", "early_stopping_rounds", "od_type", "od_wait", "od_pval"),
}
CATBOOST_ROUNDS = {"iterations", "n_estimators", "num_boost_round", "num_trees"}
CATBOOST_RATE = {"learning_rate", "eta"}


class Estimator(Protocol):
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: object) -> object: ...
    def fit(self, X: object, y: object) -> object: ...


def seeded(estimator: Estimator, seed: int) -> Estimator:
    """Returns an unfitted copy of an estimator that trains the same model each time. seed: added to all seeds, also to
    those of nested estimators."""
    copy: Estimator = _cloned(estimator)
    numbers = count()
    inside = {name: value for name, value in copy.get_params(deep=True).items() if _trains(value)}
    for name, owner in sorted({"": copy, **inside}.items()):
        changed: dict[str, Any] = {}
        for key, value in sorted(owner.get_params(deep=False).items()):
            number = next(numbers)
            if key in SEEDS:
                changed[key] = (int(value) if _is_number(value) else number) + seed
            elif hasattr(value, "random_state") and not _trains(value):
                changed[key] = deepcopy(value)
                old = value.random_state
                changed[key].random_state = (int(old) if _is_number(old) else number) + seed
        if library := _library(owner):
            parameters = owner.get_params(deep=False)
            threads, seeds = ([key for key in names if key in parameters] for names in (THREADS, SEEDS))
            changed |= dict.fromkeys(threads or ["n_jobs" if library != "catboost" else "thread_count"], 1)
            changed |= THREADED[library]
            changed |= {} if seeds else {"random_state": seed}
        copy.set_params(**{f"{name}__{key}" if name else key: value for key, value in changed.items()})
    return copy


def _cloned(value: Any) -> Any:
    """Returns an unfitted copy of an estimator, as `sklearn.base.clone` does, which refuses CatBoost's estimators with
    lists among their parameters."""
    from sklearn.base import clone

    if isinstance(value, list | tuple):
        return type(value)(map(_cloned, value))
    if not _trains(value):
        return deepcopy(value)
    if _library(value) == "catboost":
        return _cloned_catboost(value)
    if any(_library(part) == "catboost" for part in value.get_params(deep=True).values()):
        return type(value)(**{name: _cloned(part) for name, part in value.get_params(deep=False).items()})
    return clone(value)


def _cloned_catboost(model: Any) -> Any:
    kind, settings = type(model), {k: deepcopy(v) for k, v in model.get_params().items() if k not in CATBOOST_OWN}
    if model.is_fitted():  # CatBoost chooses a rate by the numbers of rows and rounds.
        settings = {key: value for key, value in settings.items() if key not in CATBOOST_ROUNDS}
        settings["iterations"] = model.tree_count_
        if not settings.keys() & CATBOOST_RATE:
            settings["learning_rate"] = model.learning_rate_
    settings |= {"verbose": False, "allow_writing_files": False}
    return kind(settings) if kind.__name__ == "CatBoost" else kind(**settings)


def _library(value: object) -> str:
    """Returns the library in THREADED of which an object is; "" for other objects."""
    roots = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((root for root in roots if root in THREADED), "")


def _trains(value: object) -> bool:
    return hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type)


def _is_number(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@contextmanager
def seeded_numpy(seed: int) -> Iterator[None]:
    """Seeds NumPy's global generator within a `with` block, and restores its state afterwards."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)
