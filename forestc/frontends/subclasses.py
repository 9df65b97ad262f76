"""Reads a subclass of a library's estimator as its parent, after a comparison of both on rows."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category

ROWS = 2_000  # rows to compare, about
LARGEST = 1e30  # libraries refuse infinities
CLOSE = 1e-6  # relative difference of a regression's values: some parents read as other sums round otherwise


def read_subclass(model: Any, base: type, read: Callable[[Any], Forest]) -> Forest:
    """Reads an estimator as the class `base`, of which its own is a subclass. Raises ModelError if it predicts
    otherwise on rows on and beside the forest's thresholds."""
    where = f"{type(model).__module__}.{type(model).__qualname__}"
    if inspect.isabstract(base) or not hasattr(model, "get_params"):
        raise ModelError(
            f"{type(model).__name__} is not read", where=where, do="train a model of a kind in docs/reference/models.md"
        )
    parent: Any = object.__new__(base)
    parent.__dict__.update(vars(model))
    forest = read(parent)
    inputs = _inputs(forest)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = np.asarray(model.predict(_rows(forest, model, inputs)))
    except Exception as error:  # noqa: BLE001  code of a library that forestc does not know
        raise ModelError(
            f"can't be compared with its parent {base.__name__} ({type(error).__name__}: {str(error)[:100]})",
            where=where,
            do=f"if it predicts as a {base.__name__}, pass one that has the same __dict__",
        ) from None
    ours = evaluate_words(forest, inputs).decision
    if theirs.size != ours.size or not _alike(ours, theirs.reshape(ours.shape)):
        raise ModelError(
            f"predicts otherwise than its parent {base.__name__}", where=where, do=f"train a {base.__name__}"
        )
    note = f"{where} is read as its parent {base.__name__}: they agree on rows on and beside all thresholds"
    return replace(forest, provenance=replace(forest.provenance, notes=(*forest.provenance.notes, note)))


def _alike(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    if ours.dtype.kind == "f" and theirs.dtype.kind == "f":
        return np.allclose(ours, theirs, rtol=CLOSE, atol=0, equal_nan=True)
    return bool((ours == theirs).all())


def _inputs(forest: Forest) -> NDArray[np.float64]:
    start = np.zeros((1, len(forest.features)))
    inputs = np.concatenate([start, *boundary_inputs(forest, start, 0, ROWS)])
    for index, feature in enumerate(forest.features):
        if isinstance(feature.number, Category):  # An encoder may refuse categories that it does not know.
            inputs[:, index] %= feature.number.count
    return np.asarray(np.clip(inputs, -LARGEST, LARGEST))


def _rows(forest: Forest, model: object, inputs: NDArray[np.float64]) -> Any:
    """Returns inputs as the rows that the model was trained on: an array, or a data frame if it names columns."""
    rows = np.zeros((len(inputs), forest.columns))
    for index, feature in enumerate(forest.features):
        rows[:, feature.column] = inputs[:, index]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(names))
    for feature in forest.features:
        if feature.labels:
            codes = np.nan_to_num(rows[:, feature.column], nan=-1).astype(int)
            frame[names[feature.column]] = pd.Categorical.from_codes(codes, list(feature.labels))
    return frame
