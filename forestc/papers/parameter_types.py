"""Checks the parameters of an estimator against the annotations of its `__init__`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from forestc.errors import OptionError

# Holds, by annotation: a test of a value, and what passes it.
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (lambda value: isinstance(value, Integral) and not isinstance(value, bool), "a whole number"),
    "float": (lambda value: isinstance(value, Real), "a number"),
    "bool": (lambda value: isinstance(value, (Integral, np.bool_)), "True or False"),
    "Callback": (callable, "a function"),
    "None": (lambda value: value is None, "None"),
}


def check_types(estimator: Any) -> None:
    """Raises OptionError for a parameter whose type is not in its annotation. Only annotations made of KINDS are
    checked."""
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        annotations = str(parameter.annotation).split(" | ")
        if KINDS.keys() >= set(annotations):
            value, kinds = getattr(estimator, name), [KINDS[annotation] for annotation in annotations]
            if not any(passes(value) for passes, _ in kinds):
                raise OptionError(
                    f"{name}={value!r}", where=type(estimator).__name__, do=f"give {' or '.join(k for _, k in kinds)}"
                )
