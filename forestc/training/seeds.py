"""Copies estimators and fixes the seeds of their training, so that the same command gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from typing import Any, Protocol

import numpy as np

from forestc.frontends.kinds import Training, library_of

SEEDS = ("random_state", "random_seed", "seed")
THREADS = ("n_jobs", "nthread", "num_threads", "thread_count")


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
        if (training := training_of(owner)).threads:
            parameters = owner.get_params(deep=False)
            threads, seeds = ([key for key in names if key in parameters] for names in (THREADS, SEEDS))
            changed |= dict.fromkeys(threads or [training.threads], 1)
            changed |= training.settings
            changed |= {} if seeds else {"random_state": seed}
        copy.set_params(**{f"{name}__{key}" if name else key: value for key, value in changed.items()})
    return copy


def _cloned(value: Any) -> Any:
    """Returns an unfitted copy of an estimator, by its library's row of the kinds or by `sklearn.base.clone`."""
    from sklearn.base import clone

    if isinstance(value, list | tuple):
        return type(value)(map(_cloned, value))
    if not _trains(value):
        return deepcopy(value)
    if own := training_of(value).clone:
        return own(value)
    if any(training_of(part).clone for part in value.get_params(deep=True).values()):
        return type(value)(**{name: _cloned(part) for name, part in value.get_params(deep=False).items()})
    return clone(value)


def training_of(value: object) -> Training:
    """Returns how copies of an estimator are trained, by its library."""
    found = library_of(value)
    return found[0].training if found else Training()


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
