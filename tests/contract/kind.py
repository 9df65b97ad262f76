"""Defines a trained model for the contract of the frontends, and the hard rows that it is compared on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import Category, Float

Rows = NDArray[Any]
SUBNORMAL = {np.dtype(np.float32): 1e-45, np.dtype(np.float64): 5e-324}


@dataclass(frozen=True)
class Trained:
    """A trained model and its library's own answers.

    source: an argument for `forestc.load`.
    X: the rows that trained it.
    decision: returns the library's prediction for rows, either labels or values.
    scores: returns its scores before the link, (rows, outputs), added in the library's order; None if it has none.
    leaves: returns (rows, trees), numbered as in `Evaluation.leaves`; None if the library does not tell.
    values: returns the results of the link, (rows, outputs).
    dtype: the float type of rows for the library.
    infinite: the library takes infinities.
    positive: it takes positive numbers only.
    large: a large number that it takes.
    ulps: units in the last place by which scores may differ, 0 wherever possible.
    value_ulps: the same for a regression's decision, after a link such as exp.
    """

    source: Any
    X: Rows
    decision: Callable[[Rows], Rows]
    scores: Callable[[Rows], Rows] | None = None
    leaves: Callable[[Rows], Rows] | None = None
    values: Callable[[Rows], Rows] | None = None
    dtype: Any = np.float32
    infinite: bool = True
    positive: bool = False
    large: float = 1e30
    ulps: int = 0
    value_ulps: int = 0


def hard_rows(forest: Forest, trained: Trained, count: int, seed: int = 0) -> Rows:
    """Returns rows of the training data with troublesome values. About half of all values lie on a threshold of their
    feature, or one step of its number type beside it. There are categories that are known, unseen, negative and
    fractional; missing values if the forest takes them; infinities if the library does; zeros of both signs;
    subnormals."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(trained.dtype)
    rows = np.array(trained.X[random.integers(0, len(trained.X), count)], dtype=dtype)
    special = [0.0, -0.0, SUBNORMAL[dtype], -SUBNORMAL[dtype], 1e-35, -1e-35, 1.0, -1.0, trained.large, -trained.large]
    special += [np.inf, -np.inf] * trained.infinite
    for index, feature in enumerate(forest.features):
        column = rows[:, feature.column]
        if isinstance(feature.number, Category):
            known = feature.number.count
            codes = random.integers(-2, known + 3, count) + random.choice([0, 0, 0, 0.25, 0.75], count)
            far = random.choice([-1.0, -0.5, 300.0, 1e6, 1e12, *[-np.inf, np.inf] * trained.infinite], count)
            column = np.where(random.random(count) < 0.7, codes, column)
            column = np.where(random.random(count) < 0.05, far, column)
        else:
            step_type = np.float32 if feature.number == Float(32) else dtype
            chosen = _thresholds(forest, index).astype(step_type)
            if len(chosen):
                beside = random.choice(chosen, count)
                step = random.integers(-1, 2, count)
                with np.errstate(over="ignore"):
                    moved = np.nextafter(beside, np.where(step < 0, -np.inf, np.inf).astype(step_type))
                column = np.where(random.random(count) < 0.5, np.where(step == 0, beside, moved), column)
            column = np.where(random.random(count) < 0.02, random.choice(special, count), column)
        if feature.missing:
            column = np.where(random.random(count) < 0.08, np.nan, column)
        if not trained.infinite:
            column = np.clip(column, -trained.large, trained.large)
        rows[:, feature.column] = column
    return np.where(rows > 1e-3, rows, dtype.type(1)) if trained.positive else rows


def _thresholds(forest: Forest, index: int) -> NDArray[np.float64]:
    found = forest.conditions.thresholds(index).astype(np.float64)
    return found[np.isfinite(found)]


def ulps_between(a: Rows, b: Rows) -> Rows:
    """Returns the number of floats of their type between two arrays; 0 if both are equal or NaN."""
    bits = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}[a.dtype]

    def key(x: Rows) -> NDArray[np.int64]:
        pattern = np.ascontiguousarray(x).view(bits).astype(np.int64)
        top = np.int64(np.iinfo(bits).max)
        return np.where(pattern < 0, -(pattern & top), pattern)

    i, j = key(a), key(b)
    apart = (i < 0) != (j < 0)  # The difference of numbers with different signs may not fit.
    steps = np.where(apart, np.abs(i.astype(float)) + np.abs(j.astype(float)), np.abs(i - np.where(apart, i, j)))
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, steps)


def conditions(forest: Forest) -> int:
    """Returns how many nodes test membership in a set; a kind of model about sets must have some."""
    return sum(int(((tree.set_index != NO_SET) & (tree.left != LEAF)).sum()) for tree in forest.trees)
