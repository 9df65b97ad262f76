"""Trains a model again on folds of its training rows, so that levels judge on rows that the fold's model has not seen.

A model is perfect on rows that it was trained on, and refuses everything smaller. Where no other rows are given, its
own kind is trained on each fold without the judged rows: the estimator itself with its parameters; for a model that
does not say how it was trained, an ensemble of its kind: as many trees, as deep, averaged or boosted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import ForestcError
from forestc.forest.ir import Forest
from forestc.frontends import load, open_estimator
from forestc.passes.judge import Judge
from forestc.passes.portfolio import Fold
from forestc.rows.batches import ArrayRows, Rows
from forestc.training import TRAINERS
from forestc.training.base import Task

MOST_ROWS = 20_000  # that folds are made of: every n-th of more
MOST_COLUMNS = 4096  # with more, models are trained on the columns that the model reads: time grows with all of them
FOLDS = ((4000, 5), (1 << 62, 3))  # (rows, folds): the folds of fewer rows than these
RATES = (0.05, 0.1, 0.3)  # learning rates among which the one is taken that fits the rows as the model does
KINDS = {"averaged": ("random-forest", "extra-trees"), "boosted": ("xgboost", "lightgbm")}
OTHER_ROWS = "rows that the model was not trained on are better (--held-out FILE)"

Retrain = Callable[[NDArray[np.float64], NDArray[Any]], Forest]


@dataclass(frozen=True)
class Folds:
    """folds: models with the rows that they were trained on and others to judge on. how: in words."""

    folds: tuple[Fold, ...]
    how: str


def folds_of(model: object, source: Forest, rows: Rows, *, trust_pickle: bool = False) -> Folds:
    """Folds of the rows, which the model was trained on. model: as `load` takes it. Raises ForestcError where no model
    of its kind can be trained on them."""
    X, y = _arrays(rows)
    if y is None:  # what counts is agreement with the model, which holds on all rows alike
        parts = _dealt(np.zeros(len(X), dtype=np.int64), decides=False)
        folds = [Fold(source, ArrayRows(X[fit]), Judge(source, ArrayRows(X[on]))) for fit, on in parts]
        return Folds(tuple(folds), "agreement on rows set aside")
    reasons: list[str] = []
    for retrain, how in _ways(model, source, X, y, trust_pickle):
        try:
            return Folds(tuple(_fold(retrain, source, X, y, *places) for places in _dealt(y, source.decides)), how)
        except ForestcError as error:
            reasons.append(error.what)
        except Exception as error:  # noqa: BLE001 - libraries reject rows with their own kinds of errors
            reasons.append(" ".join(str(error).split())[:200] or type(error).__name__)
    raise ForestcError(
        f"no model of its kind can be trained to judge it by ({reasons[0] if reasons else 'its kind is unknown'})",
        do="give rows that it was not trained on: --held-out FILE",
    )


def _fold(
    retrain: Retrain,
    source: Forest,
    X: NDArray[np.float64],
    y: NDArray[Any],
    fit: NDArray[np.int64],
    judged: NDArray[np.int64],
) -> Fold:
    model = retrain(X[fit], y[fit])
    if len(model.classes) != len(source.classes) or model.columns not in (source.columns, source.width):
        raise ForestcError("a fold has other classes than all rows: too few rows of one class")
    model = replace(model, always_missing=source.always_missing)
    return Fold(model, ArrayRows(X[fit], y[fit]), Judge(model, ArrayRows(X[judged], y[judged])))


def _arrays(rows: Rows) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """At most MOST_ROWS rows, whole where they are in memory, and their labels."""
    batches = list(rows.batches())
    step = max(1, -(-sum(len(batch.X) for batch in batches) // MOST_ROWS))
    whole = rows.whole if isinstance(rows, ArrayRows) else None
    whole = None if whole is None or whole.shape[1] > MOST_COLUMNS else whole
    X = np.concatenate([batch.X for batch in batches])[::step] if whole is None else whole[::step].astype(np.float64)
    truths = [batch.truth for batch in batches if batch.truth is not None]
    if len(truths) < len(batches):
        return X, None
    y = np.concatenate(truths)[::step]
    known = y.reshape(len(y), -1)[:, 0] >= 0 if y.dtype.kind in "iu" else np.ones(len(y), dtype=bool)
    return X[known], y[known]


def _dealt(y: NDArray[Any], decides: bool = True) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows to fit on and rows to judge on, of each fold. The rows of each class are dealt out in turn."""
    count = next(folds for below, folds in FOLDS if len(y) < below)
    kind = y.reshape(len(y), -1)[:, 0].astype(np.int64) if decides else np.zeros(len(y), dtype=np.int64)
    turn = np.empty(len(y), dtype=np.int64)
    turn[np.argsort(kind, kind="stable")] = np.arange(len(y)) % count
    return [(np.flatnonzero(turn != fold), np.flatnonzero(turn == fold)) for fold in range(count)]


def _ways(
    model: object, source: Forest, X: NDArray[np.float64], y: NDArray[Any], trust_pickle: bool
) -> list[tuple[Retrain, str]]:
    """How the model could be trained again, the most faithful first."""
    estimator, ways = model, list[tuple[Retrain, str]]()
    if isinstance(model, str | Path):
        estimator = open_estimator(Path(model), trust_pickle=trust_pickle)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "get_params") and hasattr(estimator, "fit"):
        ways.append((_like_estimator(estimator, source), "models trained again with the same parameters"))
    elif hasattr(estimator, "save_config"):
        ways.append((_like_booster(estimator, source), "boosters trained again with the same parameters"))
    if source.parts or len(source.targets) > 1 or not source.trees:
        return ways
    for name in KINDS["averaged" if _averages(source) else "boosted"]:
        kind = f"{name} of {_rounds(source)} trees, at most {_depth(source)} deep"
        ways.append((_of_kind(name, source, X, y), f"ensembles of the model's kind ({kind}); {OTHER_ROWS}"))
    return ways


def _like_estimator(estimator: Any, source: Forest) -> Retrain:
    def retrain(X: NDArray[np.float64], y: NDArray[Any]) -> Forest:
        from sklearn.base import clone

        labels = np.array(source.classes)[y.astype(np.int64)] if source.decides else y
        frame: Any = X
        if getattr(estimator, "feature_names_in_", None) is not None:
            from importlib import import_module

            names = np.asarray(estimator.feature_names_in_)
            names = names if X.shape[1] == len(names) else names[list(source.carried)]
            frame = import_module("pandas").DataFrame(X, columns=list(names))
        return load(clone(estimator).fit(frame, labels))

    return retrain


def _like_booster(booster: Any, source: Forest) -> Retrain:
    """XGBoost's own Booster: its parameters are in its configuration."""

    def retrain(X: NDArray[np.float64], y: NDArray[Any]) -> Forest:
        from importlib import import_module

        xgboost = import_module("xgboost")
        learner = json.loads(booster.save_config())["learner"]
        trees = learner["gradient_booster"].get("tree_train_param") or {}
        settings = {key: trees[key] for key in ("eta", "max_depth", "max_leaves", "lambda", "gamma") if key in trees}
        settings |= {"objective": learner["objective"]["name"], "nthread": 1, "verbosity": 0}
        if len(source.classes) > 2:
            settings["num_class"] = len(source.classes)
        rows = xgboost.DMatrix(X, label=y)
        return load(xgboost.train(settings, rows, num_boost_round=booster.num_boosted_rounds()))

    return retrain


def _of_kind(name: str, source: Forest, X: NDArray[np.float64], y: NDArray[Any]) -> Retrain:
    trainer, names = TRAINERS[name], tuple(f"f{column}" for column in range(X.shape[1]))
    chosen: dict[str, Any] = {"trees": _rounds(source), "depth": _depth(source), "leaves": 1 << 20, "columns": 1.0}
    if _averages(source) and source.decides:
        chosen["columns"] = float(np.sqrt(X.shape[1]) / X.shape[1])
    if name == "xgboost":
        chosen["leaves"] = 0

    def trained(X: NDArray[np.float64], y: NDArray[Any], options: dict[str, Any]) -> Forest:
        task = Task(X, y, names, len(source.classes), prices(DEFAULT_COST))
        return load(trainer.fit(task, options))

    def retrain(X_fold: NDArray[np.float64], y_fold: NDArray[Any]) -> Forest:
        if not _averages(source) and "rate" not in chosen:
            judge = Judge(source, ArrayRows(X, y))
            losses = {rate: abs(judge.of(trained(X, y, chosen | {"rate": rate})).lost) for rate in RATES}
            chosen["rate"] = min(losses, key=lambda rate: losses[rate])
        return trained(X_fold, y_fold, chosen)

    return retrain


def _averages(source: Forest) -> bool:
    """Whether the trees are averaged, rather than added up."""
    return source.aggregate.divisor not in (0.0, 1.0) or _probabilities(source)


def _probabilities(source: Forest) -> bool:
    """Whether each leaf holds the probabilities of all classes."""
    return source.decides and all(
        len(tree.outputs) == len(source.classes) and np.allclose(tree.values.sum(axis=1), tree.values[0].sum())
        for tree in source.trees
    )


def _rounds(source: Forest) -> int:
    """Trees for each score."""
    return max(1, round(sum(len(tree.outputs) for tree in source.trees) / max(1, source.n_outputs)))


def _depth(source: Forest) -> int:
    return max(1, *(tree.depth for tree in source.trees))
