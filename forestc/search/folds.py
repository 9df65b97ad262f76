"""Trains a model again on folds of its training rows, so that levels judge on rows that the fold's model has not seen.

A model is perfect on rows that it was trained on, and refuses everything smaller. Where no other rows are given, its
own kind is trained on each fold without the judged rows: the estimator itself with its parameters; for a model that
does not say how it was trained, an ensemble of its kind: as many trees, as deep, averaged or boosted. Parameters may
be others than those it was trained with (loaded or changed afterwards), and rows may have had weights: what is trained
is compared with the model (`forestc.search.alike`), and nothing is judged by folds of another one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.deadline import LateError, look
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import ForestcError
from forestc.forest.ir import Forest
from forestc.frontends import load, open_estimator
from forestc.passes.judge import Judge
from forestc.rows.batches import ArrayRows, Rows, count_rows
from forestc.search.alike import ANSWERS, unlike
from forestc.search.cross_validation import Fold
from forestc.training import TRAINERS
from forestc.training.base import Task
from forestc.training.seeds import seeded, seeded_numpy

MOST_ROWS = 20_000  # that folds are made of: every n-th of more
MOST_COLUMNS = 4096  # with more, models are trained on the columns that the model reads: time grows with all of them
FOLDS = ((4000, 5), (1 << 62, 3))  # (rows, folds): the folds of fewer rows than these
RATES = (0.05, 0.1, 0.3)  # learning rates among which the one is taken that fits the rows as the model does
KIND_ANSWERS = 0.15  # share of the rows that ensembles of the model's kind may answer otherwise
KINDS = {"averaged": ("random-forest", "extra-trees"), "boosted": ("xgboost", "lightgbm")}
OTHER_ROWS = "rows that the model was not trained on are better (--held-out FILE)"

Retrain = Callable[[NDArray[np.float64], NDArray[Any], int], Forest]  # rows, labels, and a seed: 0 for folds


@dataclass(frozen=True)
class Folds:
    """folds: models with the rows that they were trained on and others to judge on. how: in words."""

    folds: tuple[Fold, ...]
    how: str


def folds_of(model: object, source: Forest, rows: Rows, *, trust_pickle: bool = False) -> Folds:
    """Folds of the rows, which the model was trained on. model: as `load` takes it. Raises ForestcError where no model
    of its kind can be trained on them."""
    X, y, share = _arrays(rows)
    if y is None:  # what counts is agreement with the model, which holds on all rows alike
        parts = _dealt(np.zeros(len(X), dtype=np.int64), decides=False)
        folds = [Fold(source, ArrayRows(X[fit]), Judge(source, ArrayRows(X[on]))) for fit, on in parts]
        return Folds(tuple(folds), "agreement on rows set aside")
    reasons: list[str] = []
    for retrain, how, answers in _ways(model, source, X, y, trust_pickle):
        try:
            trained = partial(_retrained, retrain, source, X, y)
            why = unlike(source, ArrayRows(X, y), trained, fewer=share, answers=answers)
            if not why:
                return Folds(tuple(_fold(retrain, source, X, y, *places) for places in _dealt(y, source.decides)), how)
            reasons.append(why)
        except LateError:
            raise
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
    model = _retrained(retrain, source, X[fit], y[fit])
    return Fold(model, ArrayRows(X[fit], y[fit]), Judge(model, ArrayRows(X[judged], y[judged])))


def _retrained(retrain: Retrain, source: Forest, X: NDArray[np.float64], y: NDArray[Any], seed: int = 0) -> Forest:
    look()
    with seeded_numpy(seed):
        model = retrain(X, y, seed)
    if len(model.classes) != len(source.classes) or model.columns not in (source.columns, source.width):
        raise ForestcError("a fold has other classes than all rows: too few rows of one class")
    return replace(model, always_missing=source.always_missing)


def _arrays(rows: Rows) -> tuple[NDArray[np.float64], NDArray[Any] | None, float]:
    """At most MOST_ROWS rows, whole where they are in memory, their labels, and the share of the rows that they are."""
    step, first = max(1, -(-count_rows(rows) // MOST_ROWS)), 0
    parts: list[NDArray[np.float64]] = []
    truths: list[NDArray[Any]] = []
    for batch in rows.batches():
        chosen = np.arange(-first % step, len(batch.X), step)
        first += len(batch.X)
        parts.append(batch.X[chosen])
        if batch.truth is not None:
            truths.append(batch.truth[chosen])
    whole = rows.whole if isinstance(rows, ArrayRows) else None
    whole = None if whole is None or whole.shape[1] > MOST_COLUMNS else whole
    X = np.concatenate(parts) if whole is None else whole[::step].astype(np.float64)
    if len(truths) < len(parts):
        return X, None, 1 / step
    y = np.concatenate(truths)
    known = y.reshape(len(y), -1)[:, 0] >= 0 if y.dtype.kind in "iu" else np.ones(len(y), dtype=bool)
    return X[known], y[known], 1 / step


def _dealt(y: NDArray[Any], decides: bool = True) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows to fit on and rows to judge on, of each fold. The rows of each class are dealt out in turn."""
    count = next(folds for below, folds in FOLDS if len(y) < below)
    kind = y.reshape(len(y), -1)[:, 0].astype(np.int64) if decides else np.zeros(len(y), dtype=np.int64)
    turn = np.empty(len(y), dtype=np.int64)
    turn[np.argsort(kind, kind="stable")] = np.arange(len(y)) % count
    return [(np.flatnonzero(turn != fold), np.flatnonzero(turn == fold)) for fold in range(count)]


def _ways(
    model: object, source: Forest, X: NDArray[np.float64], y: NDArray[Any], trust_pickle: bool
) -> list[tuple[Retrain, str, float]]:
    """How the model could be trained again, the most faithful first; and for `unlike` the share of other answers."""
    estimator, ways = model, list[tuple[Retrain, str, float]]()
    if isinstance(model, str | Path):
        estimator = open_estimator(Path(model), trust_pickle=trust_pickle)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "get_params") and hasattr(estimator, "fit"):
        ways.append((_like_estimator(estimator, source), "models trained again with the same parameters", ANSWERS))
    elif hasattr(estimator, "save_config"):
        ways.append((_like_booster(estimator, source), "boosters trained again with the same parameters", ANSWERS))
    if source.parts or len(source.targets) > 1 or not source.trees:
        return ways
    names = KINDS["averaged" if _averages(source) else "boosted"]
    for name in sorted(names, key=lambda name: name != source.provenance.source):
        kind = f"{name} of {_rounds(source)} trees, at most {_depth(source)} deep"
        how = f"ensembles of the model's kind ({kind}); {OTHER_ROWS}"
        ways.append((_of_kind(name, source, X, y), how, KIND_ANSWERS))
    return ways


def _like_estimator(estimator: Any, source: Forest) -> Retrain:
    def retrain(X: NDArray[np.float64], y: NDArray[Any], seed: int) -> Forest:
        labels = np.array(source.classes)[y.astype(np.int64)] if source.decides else y
        frame: Any = X
        if getattr(estimator, "feature_names_in_", None) is not None:
            from importlib import import_module

            names = np.asarray(estimator.feature_names_in_)
            names = names if X.shape[1] == len(names) else names[list(source.carried)]
            frame = import_module("pandas").DataFrame(X, columns=list(names))
        return load(_with_rounds(seeded(estimator, seed), estimator).fit(frame, labels))

    return retrain


def _with_rounds(copy: Any, estimator: Any) -> Any:
    """The copy with as many rounds as the estimator has, if it stopped early: where a copy stops depends on its seed,
    or on rows that only the estimator's training was given."""
    known = copy.get_params(deep=False)
    for stops, rounds, attribute in _EARLY:
        taken = getattr(estimator, attribute, None) if stops in known and known[stops] not in (None, False) else None
        if taken:
            copy.set_params(**{stops: False if stops == "early_stopping" else None, rounds: int(taken)})
    if (taken := getattr(estimator, "best_iteration_", None)) and "n_estimators" in known:  # LightGBM
        copy.set_params(n_estimators=int(taken))
    return copy


# The parameter that stops early, that of the number of rounds, and the attribute with the rounds that were taken.
_EARLY = (
    ("n_iter_no_change", "n_estimators", "n_estimators_"),
    ("early_stopping", "max_iter", "n_iter_"),
    ("early_stopping_rounds", "n_estimators", "best_iteration"),
)


def _like_booster(booster: Any, source: Forest) -> Retrain:
    """XGBoost's own Booster: all its parameters are in its configuration."""

    def retrain(X: NDArray[np.float64], y: NDArray[Any], seed: int) -> Forest:
        from importlib import import_module

        xgboost = import_module("xgboost")
        settings = _settings(json.loads(booster.save_config())["learner"])
        settings |= {"nthread": 1, "verbosity": 0, "seed": int(settings.get("seed", 0)) + seed}
        names, kinds = booster.feature_names, booster.feature_types
        rows = xgboost.DMatrix(
            X, label=y, feature_names=names, feature_types=kinds, enable_categorical="c" in (kinds or ()), nthread=1
        )
        return load(xgboost.train(settings, rows, num_boost_round=booster.num_boosted_rounds()))

    return retrain


def _settings(learner: Mapping[str, Any]) -> dict[str, Any]:
    """XGBoost's parameters in a Booster's configuration: the values of every `..._param` in it, under their names."""
    settings: dict[str, Any] = {}

    def collect(config: Any) -> None:
        for key, value in config.items() if isinstance(config, dict) else ():
            if key.endswith("_param") and not key.endswith("_model_param"):
                settings.update({name: text for name, text in value.items() if text != ""})
            collect(value)
        for part in config if isinstance(config, list) else ():
            collect(part)

    collect(learner)
    model = learner["learner_model_param"]
    if int(model.get("num_class", 0)):
        settings["num_class"] = model["num_class"]
    if model.get("boost_from_average") == "0":
        settings["base_score"] = model["base_score"].strip("[]")
    boosters = learner["gradient_booster"]
    parallel = boosters.get("gbtree", boosters).get("gbtree_model_param", {}).get("num_parallel_tree", "1")
    settings |= {"objective": learner["objective"]["name"], "num_parallel_tree": parallel}
    for name in ("process_type", "updater", "updater_seq", "n_jobs", "random_state", "device", *_ALIASES):
        settings.pop(name, None)  # how it runs, or another name of one that is there
    return settings


_ALIASES = ("learning_rate", "min_split_loss", "reg_alpha", "reg_lambda")


def _of_kind(name: str, source: Forest, X: NDArray[np.float64], y: NDArray[Any]) -> Retrain:
    trainer, names = TRAINERS[name], tuple(f"f{column}" for column in range(X.shape[1]))
    most = max(2, *(len(tree.values) for tree in source.trees))
    chosen: dict[str, Any] = {"trees": _rounds(source), "depth": _depth(source), "leaves": most, "columns": 1.0}
    if _averages(source) and source.decides:
        chosen["columns"] = float(np.sqrt(X.shape[1]) / X.shape[1])
    if name == "xgboost":
        chosen["leaves"] = 0
    if name == "lightgbm" == source.provenance.source:  # its nodes count rows, and by default it has no penalty
        covers = [tree.cover[tree.leaf >= 0].min() for tree in source.trees if tree.cover is not None]
        chosen |= {"least_rows": max(1, int(min(covers, default=5))), "l2": 0.0}

    def trained(X: NDArray[np.float64], y: NDArray[Any], options: dict[str, Any], seed: int = 0) -> Forest:
        task = Task(X, y, names, len(source.classes), prices(DEFAULT_COST), seed)
        return load(trainer.fit(task, options))

    def retrain(X_fold: NDArray[np.float64], y_fold: NDArray[Any], seed: int) -> Forest:
        if not _averages(source) and "rate" not in chosen:
            judge = Judge(source, ArrayRows(X, y))
            losses = {rate: abs(judge.of(trained(X, y, chosen | {"rate": rate})).lost) for rate in RATES}
            chosen["rate"] = min(losses, key=lambda rate: losses[rate])
        return trained(X_fold, y_fold, chosen, seed)

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
