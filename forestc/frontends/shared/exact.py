"""Holds functions that keep a library's comparisons exact."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.conditions import Member, complement, toggled
from forestc.forest.ir import Label
from forestc.forest.numbers import key_value, order_key

SCORE_WINDOW = 64  # scores on either side of a threshold tested one by one


def next_above(thresholds: NDArray[Any], bits: int) -> NDArray[np.float64]:
    """Returns thresholds t' such that `x < t'` holds if and only if `x <= t` does, for every finite float x of 32 or 64
    bits."""
    with np.errstate(over="ignore"):  # Infinity is the next float above the largest.
        if bits == 64:
            return np.asarray(np.nextafter(thresholds, np.inf), dtype=np.float64)
        near = thresholds.astype(np.float32)
        below = np.where(near.astype(np.float64) > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
        return np.nextafter(below, np.float32(np.inf)).astype(np.float64)


def labels_of(labels: Iterable[Any], where: str = "") -> tuple[Label, ...]:
    """Returns class labels as Python str, int, float or bool. Raises ModelError for other types."""
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    if not all(isinstance(label, str | int | float | bool) for label in plain):
        raise ModelError(f"class labels of type {type(plain[0]).__name__}", where=where, do="use text or numbers")
    return plain


def least_keys(
    holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]], low: NDArray[np.int64], high: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Returns for each of n monotone predicates the least order key in (low, high] that satisfies it; `high` if none
    does.
    holds: tests n keys at once, one for each predicate."""
    while (unsettled := low + 1 < high).any():
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, without overflow
        up = holds(middle)
        high = np.where(unsettled & up, middle, high)
        low = np.where(unsettled & ~up, middle, low)
    return high


def least_float(holds: Callable[[float], bool], bits: int) -> float:
    """Returns the least float of 32 or 64 bits for which a monotone predicate holds; infinity if it holds for no finite
    float."""
    if holds(-np.inf):
        return -np.inf
    low, high = (order_key(np.array([end]), bits) for end in (-np.inf, np.inf))

    def holds_at(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.array([holds(float(key_value(keys, bits)[0]))])

    return float(key_value(least_keys(holds_at, low, high), bits)[0])


def least_score(holds: Callable[[NDArray[np.float64]], NDArray[np.bool_]], where: str) -> float:
    """Returns the least float64 score for which a test of scores (n,) holds; infinity if it holds for no finite score.
    Raises ModelError if the test is not monotone nearby."""
    least = least_float(lambda score: bool(holds(np.array([score]))[0]), 64)
    if np.isfinite(least):
        near = key_value(order_key(np.array([least]), 64) + np.arange(-SCORE_WINDOW, SCORE_WINDOW), 64)
        if not np.array_equal(holds(near), near >= least):
            raise ModelError(
                "the decision is not monotone near its threshold", where=where, do="change the threshold a little"
            )
    return least


def where_equal(values: NDArray[np.float64], inverted: bool = False, bits: int = 64) -> tuple[Member, ...]:
    """Returns the cuts of a test that holds for exactly these floats or, if `inverted`, for all other floats."""
    points = np.unique(values)
    cuts = toggled([*points.tolist(), *next_above(points, bits).tolist()])  # Adjacent floats make one interval.
    return complement(cuts) if inverted else cuts


def logf(x: float) -> float:
    """Returns the logarithm of a positive float32 as the C library's `logf` rounds it, which is not always the nearest
    float32."""
    function = _c_function("logf")
    return float(np.float32(math.log(x))) if function is None else float(function(x))


def expm1f(x: float) -> float:
    """Returns exp(x) - 1 of a float32 as the C library's `expm1f` rounds it."""
    function = _c_function("expm1f")
    return float(np.float32(math.expm1(x))) if function is None else float(function(x))


@cache
def _c_function(called: str) -> Callable[[float], float] | None:
    for name in (None, "ucrtbase"):  # None stands for the interpreter's C library, which Windows knows by name.
        try:
            function = getattr(ctypes.CDLL(name), called)
        except (OSError, TypeError, AttributeError):
            continue
        function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
        return cast("Callable[[float], float]", function)
    return None
