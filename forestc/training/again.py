"""Trains a model again on other rows, for cross-validation.

It uses the model's estimator, or its library with the same parameters, or an ensemble of the same kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.costs.prices import DEFAULT_COST, prices
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.frontends import load
from forestc.frontends.known_training import KnownTraining, training_of
from forestc.frontends.xgboost.sums import TreeSums
from forestc.passes.quick_evaluation import nodes_reached
from forestc.rows.encode import encode
from forestc.training import TRAINERS
from forestc.training.base import Task
from forestc.training.found import parameters_of
from forestc.training.seeds import Estimator, seeded

Floats = NDArray[np.float64]
Retrain = Callable[[Floats, NDArray[Any], int], Forest]  # trains on rows and labels with a seed
KINDS = {"averaged": ("random-forest", "extra-trees"), "boosted": ("xgboost", "lightgbm")}
LIGHTGBM_SEEDS = ("seed", "bagging_seed", "feature_fraction_seed", "extra_seed", "drop_seed", "objective_seed")
LEAST_RATE = 0.01  # limits the learning rate from below, for ensembles of the same kind
OTHER_ROWS = "rows that the model was not trained on are better (--held-out FILE)"


@dataclass(frozen=True)
class Way:
    """A way to train a model again."""

    train: Retrain
    how: str  # describes the way to users
    kind: bool = False  # True if only kind and size of the ensemble are the model's


@dataclass(frozen=True)
class Original:
    """A model with its training rows."""

    source: Forest
    known: KnownTraining  # what the model records of its training
    X: Floats
    y: NDArray[Any]  # class numbers or values
    share: float = 1.0  # share of all training rows that `X` holds

    def ways(self) -> Iterator[Way]:
        """Yields ways to train the model again, the most faithful first."""
        estimator, library, source = self.known.estimator, self.known.library, self.source
        if hasattr(estimator, "fit"):
            yield Way(self._estimator, "models trained again with the same parameters")
        elif estimator is not None:
            yield Way(self._booster, "boosters trained again with the same parameters")
        if library == "xgboost" and self.known.sums is not None and self.known.sums.trees:
            yield Way(self._found, "boosters trained again with the parameters found from the sums in the model")
        elif library and self.known.settings:
            yield Way(getattr(self, f"_{library}"), "boosters trained again with the parameters in the model")
        if not source.single or not source.trees:
            return
        names = KINDS["averaged" if _averages(source) else "boosted"]
        for name in sorted(names, key=lambda name: name != source.provenance.source):
            kind = f"{name} of {_rounds(source)} trees, at most {_depth(source)} deep"
            how = f"ensembles of the model's kind ({kind}); {OTHER_ROWS}"
            yield Way(_of_kind(name, source, self.X, self.y), how, kind=True)

    def _estimator(self, X: Floats, y: NDArray[Any], seed: int) -> Forest:
        source, estimator = self.source, self.known.estimator
        labels = np.array(source.classes)[y.astype(np.int64)] if source.decides else y
        frame: Any = X
        if getattr(estimator, "feature_names_in_", None) is not None:
            names = np.asarray(estimator.feature_names_in_)
            names = names if X.shape[1] == len(names) else names[list(source.carried)]
            frame = import_module("pandas").DataFrame(X, columns=list(names))
        return load(_with_rounds(seeded(estimator, seed), estimator).fit(frame, labels))

    def _booster(self, X: Floats, y: NDArray[Any], seed: int) -> Forest:
        """Trains an XGBoost Booster again, with the parameters in its configuration."""
        booster = self.known.estimator
        settings = _settings(json.loads(booster.save_config())["learner"])
        settings |= {"nthread": 1, "verbosity": 0, "seed": int(settings.get("seed", 0)) + seed}
        kinds, rounds = booster.feature_types, booster.num_boosted_rounds()
        return load(_xgboost(settings, X, y, rounds, booster.feature_names, kinds))

    @cached_property
    def _settings(self) -> dict[str, Any]:
        sums = self.known.sums
        assert sums is not None

        def short(settings: Mapping[str, Any], rounds: int, step: int) -> tuple[Forest, TreeSums]:
            booster = _xgboost(settings, self.X[::step], self.y[::step], rounds, None, sums.feature_types)
            booster_sums = training_of(booster).sums
            assert booster_sums is not None
            return load(booster), booster_sums

        return parameters_of(self.source, sums, self.X, self.y, self.share, short)

    def _found(self, X: Floats, y: NDArray[Any], seed: int) -> Forest:
        sums = self.known.sums
        assert sums is not None
        per_round = int(sums.settings["num_parallel_tree"]) * self.source.n_outputs
        rounds = max(1, len(self.source.trees) // per_round)
        return load(_xgboost(self._settings | {"seed": seed}, X, y, rounds, None, sums.feature_types))

    def _lightgbm(self, X: Floats, y: NDArray[Any], seed: int) -> Forest:
        lightgbm = import_module("lightgbm")
        settings = dict(self.known.settings) | {"num_threads": 1, "deterministic": True, "force_col_wise": True}
        most = max(len(tree.values) for tree in self.source.trees)
        settings |= {"verbosity": -1, "num_leaves": max(2, min(int(settings.get("num_leaves", 31)), 2 * most))}
        settings |= {"num_class": self.source.n_outputs} if self.source.n_outputs > 1 else {}
        settings |= {name: int(value) + seed for name, value in settings.items() if name in LIGHTGBM_SEEDS}
        rounds = max(1, len(self.source.trees) // self.source.n_outputs)
        categories = [f.column for f in self.source.features if isinstance(f.number, Category)]
        rows = lightgbm.Dataset(X, label=y, params=settings, categorical_feature=categories)
        return load(lightgbm.train(settings, rows, num_boost_round=rounds))

    def _catboost(self, X: Floats, y: NDArray[Any], seed: int) -> Forest:
        catboost = import_module("catboost")
        settings = dict(self.known.settings) | {"thread_count": 1, "allow_writing_files": False, "verbose": False}
        name = "random_state" if "random_state" in settings else "random_seed"
        settings |= {name: int(settings.get(name, 0)) + seed, "iterations": len(self.source.trees)}
        labels = y.astype(np.int64) if self.source.decides else y
        return load(catboost.CatBoost(settings).fit(X, labels))


def _xgboost(
    settings: Mapping[str, Any],
    X: Floats,
    y: NDArray[Any],
    rounds: int,
    names: Sequence[str] | None,
    kinds: tuple[str, ...] | None,
) -> Any:
    xgboost = import_module("xgboost")
    kinds = None if kinds is None or len(kinds) != X.shape[1] else kinds
    rows = xgboost.DMatrix(
        X, label=y, feature_names=names, feature_types=kinds and list(kinds), enable_categorical="c" in (kinds or ()),
        nthread=1,
    )  # fmt: skip
    return xgboost.train({"nthread": 1, "verbosity": 0, **settings}, rows, num_boost_round=rounds)


def _with_rounds(copy: Estimator, estimator: Estimator) -> Estimator:
    """Fixes the copy's number of rounds if the estimator stopped early; returns the copy."""
    parameters = copy.get_params(deep=False)
    for stops, rounds, attribute, first in _EARLY:
        taken = getattr(estimator, attribute, None)
        if taken is not None and parameters.get(stops) not in (None, False):
            copy.set_params(**{stops: False if stops == "early_stopping" else None, rounds: int(taken) + 1 - first})
    # LightGBM keeps the best round of early stopping in this attribute.
    if (taken := getattr(estimator, "best_iteration_", None)) and "n_estimators" in parameters:
        copy.set_params(n_estimators=int(taken))
    return copy


# Lists the parameter of early stopping, the parameter for the number of rounds, the attribute with the last round, and
# the number of the first round there.
_EARLY = (
    ("n_iter_no_change", "n_estimators", "n_estimators_", 1),
    ("early_stopping", "max_iter", "n_iter_", 1),
    ("early_stopping_rounds", "n_estimators", "best_iteration", 0),
)


def _settings(learner: Mapping[str, Any]) -> dict[str, Any]:
    """Returns XGBoost's training parameters from the configuration of a Booster."""
    settings: dict[str, Any] = {}

    def collect(config: object) -> None:
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
        settings.pop(name, None)  # These parameters say how training runs, or repeat another one.
    return settings


_ALIASES = ("learning_rate", "min_split_loss", "reg_alpha", "reg_lambda")


def _of_kind(name: str, source: Forest, X: Floats, y: NDArray[Any]) -> Retrain:
    trainer, names = TRAINERS[name], tuple(f"f{column}" for column in range(X.shape[1]))
    most = max(2, *(len(tree.values) for tree in source.trees))
    chosen: dict[str, Any] = {"trees": _rounds(source), "depth": _depth(source), "leaves": most, "columns": 1.0}
    if _averages(source) and source.decides:
        chosen["columns"] = float(np.sqrt(X.shape[1]) / X.shape[1])
    if name == "xgboost":
        chosen["leaves"] = 0
    if name == "lightgbm" == source.provenance.source:  # Covers of LightGBM count rows; its default L2 penalty is 0.
        covers = [tree.cover[tree.leaf >= 0].min() for tree in source.trees if tree.cover is not None]
        chosen |= {"least_rows": max(1, int(min(covers, default=5))), "l2": 0.0}

    def trained(X: Floats, y: NDArray[Any], options: dict[str, Any], seed: int = 0) -> Forest:
        task = Task(X, y, names, len(source.classes), prices(DEFAULT_COST), seed)
        return load(trainer.fit(task, options))

    def retrain(X_fold: Floats, y_fold: NDArray[Any], seed: int) -> Forest:
        if not _averages(source) and "rate" not in chosen:
            first = trained(X, y, chosen | {"trees": 1, "rate": 1.0})
            rate = _spread(source, X) / max(_spread(first, X), 1e-9)
            chosen["rate"] = float(f"{min(1.0, max(LEAST_RATE, rate)):.2g}")
        return trained(X_fold, y_fold, chosen, seed)

    return retrain


def _spread(forest: Forest, X: Floats) -> float:
    """Returns the summed spread of each output's first tree over rows, proportional to the learning rate."""
    first = {output: tree for tree in reversed(forest.trees) for output in tree.outputs}
    trees = list(dict.fromkeys(first.values()))
    reached = nodes_reached(replace(forest, trees=tuple(trees)), encode(forest, X))
    return sum(float(tree.values[tree.leaf[reached[:, k]]].std(axis=0).sum()) for k, tree in enumerate(trees))


def _averages(source: Forest) -> bool:
    """Returns True if the trees seem to be averaged, as in random forests."""
    return source.aggregate.divisor not in (0.0, 1.0) or _probabilities(source)


def _probabilities(source: Forest) -> bool:
    return source.decides and all(
        len(tree.outputs) == len(source.classes) and np.allclose(tree.values.sum(axis=1), tree.values[0].sum())
        for tree in source.trees
    )


def _rounds(source: Forest) -> int:
    return max(1, round(sum(len(tree.outputs) for tree in source.trees) / max(1, source.n_outputs)))


def _depth(source: Forest) -> int:
    return max(1, *(tree.depth for tree in source.trees))
