"""Trains a copy of a model's estimator on other rows, for cross-validation."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ForestcError, opt
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.forest.retyping import recoded
from forestc.frontends import load
from forestc.training.seeds import Estimator, seeded, training_of


def trained_again(
    estimator: Estimator,
    source: Forest,
    X: NDArray[np.float64],
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    seed: int,
    rounds: int | None = None,
) -> Forest:
    """Returns the forest of a copy of the estimator, trained on other rows. Raises ForestcError if it can't be trained.
    source: the estimator's forest.
    y: class numbers or values.
    weights: (rows,) weights of the rows, or None.
    rounds: boosting iterations to read from the copy; None for all with which it predicts."""
    if source.hashed:
        raise ForestcError(
            f"{type(estimator).__name__} hashes categories, and can't be trained again on their codes",
            where="the model",
            do=f"give rows that it was not trained on: {opt.held_out:FILE}",
        )
    labels = np.array(source.classes)[y.astype(np.int64)] if source.decides else y
    try:
        copy = _with_rounds(seeded(estimator, seed), estimator)
        steps = getattr(copy, "steps", None)  # A pipeline gives weights to its last step alone.
        key = f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"
        fitted = copy.fit(_frame(estimator, source, X), labels, **({} if weights is None else {key: weights}))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - each library has its own kinds of errors
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise ForestcError(
            f"{type(estimator).__name__} can't be trained again ({why})",
            where="the model",
            do=f"give rows that it was not trained on: {opt.held_out:FILE}",
        ) from None
    forest = load(fitted, iterations=rounds)
    texts = {feature.column: feature.labels for feature in source.features}
    columns = source.carried or range(source.columns)
    return recoded(forest, [texts.get(columns[feature.column], ()) for feature in forest.features])


def _frame(estimator: Estimator, source: Forest, X: NDArray[np.float64]) -> Any:
    """Returns rows as a data frame if the estimator was trained on one, because its parameters may name columns."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return X
    pandas = import_module("pandas")
    names = names if X.shape[1] == len(names) else [names[column] for column in source.carried]
    frame = pandas.DataFrame(X, columns=names)
    for feature, column in zip(source.features, source.row_columns, strict=True):
        if isinstance(feature.number, Category):  # LightGBM knows such a column by its type alone.
            codes, texts = X[:, column], feature.labels or range(feature.number.count)
            known = np.nan_to_num(codes, nan=-1).astype(np.int64)
            frame[names[column]] = pandas.Categorical.from_codes(known, categories=texts)
    return frame


def _with_rounds(copy: Estimator, estimator: Estimator) -> Estimator:
    """Fixes the copy's number of rounds if the estimator stopped early; returns the copy."""
    parameters = copy.get_params(deep=False)
    for stops, rounds, last, first in training_of(estimator).early:
        taken = int(getattr(estimator, last, first - 1)) + 1 - first
        if taken > 0:
            given = [stop for stop in stops if parameters.get(stop) not in (None, False)]
            copy.set_params(**{stop: False if stop == "early_stopping" else None for stop in given}, **{rounds: taken})
    return copy
