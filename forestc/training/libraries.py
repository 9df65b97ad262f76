"""Defines the trainers of scikit-learn, XGBoost and LightGBM, and the parameters that a search may try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import PYTHON, ForestcError, OptionError
from forestc.fields.parameters import Choice, Parameter, Real, Whole
from forestc.frontends import load
from forestc.training.base import Task
from forestc.training.grid import on_grid, steps_of

Options = Mapping[str, Any]

TREES = Whole("trees", 2, 200, log=True)
DEPTH = Whole("depth", 1, 8)
LEAVES = Whole("leaves", 3, 64, log=True)
COLUMNS = Real("columns", 0.1, 1.0, log=True)
L2 = Real("l2", 0.01, 10.0, log=True)
RATE = Real("rate", 0.03, 1.0, log=True)
BINS = Whole("bins", 3, 255, log=True)
LEAST_ROWS = Whole("least_rows", 1, 50, log=True)
INPUT_BITS = Choice("input_bits", (None, 2, 3, 4, 5, 6, 8))


@dataclass(frozen=True)
class Library:
    """A trainer that uses a library."""

    name: str
    extra: str  # extra of `pip install "forestc[...]"` that installs the library
    parameters: tuple[Parameter, ...]
    train: Callable[[Task, NDArray[np.float64], Options], Any]  # fits an estimator or a booster on rows

    def space(self, task: Task) -> tuple[Parameter, ...]:
        """Returns the parameters that a search may try. With `input_bits`, rows are rounded down to a grid."""
        return (*self.parameters, INPUT_BITS)

    def starts(self, task: Task) -> tuple[Options, ...]:
        return ()

    def fit(self, task: Task, options: Options) -> Any:
        """Returns the trained model. Raises OptionError if all labels are equal, ForestcError if the library is not
        installed or rejects the rows."""
        if task.n_classes == 1 or len(np.unique(task.y)) < 2:
            raise OptionError(
                "all rows have the same label", where="training rows", do="give rows of two classes or more"
            )
        bits = options.get("input_bits")
        X, steps = task.X, None
        if bits is not None:
            steps = steps_of(X, int(bits))
            X = np.floor(X / steps)
        try:
            model = self.train(task, X, options)
        except ImportError:
            raise ForestcError(
                f"{self.name} is not installed", where=PYTHON, do=f'pip install "forestc[{self.extra}]"'
            ) from None
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - each library has its own kinds of errors
            why = " ".join(str(error).split())[:300] or type(error).__name__
            raise ForestcError(
                f"{self.name} rejects the rows or options: {why}",
                where="training rows",
                do="check the rows, and the trainer's options",
            ) from None
        return model if steps is None else on_grid(load(model), steps)


def _averaged(kind: str) -> Callable[[Task, NDArray[np.float64], Options], Any]:
    def train(task: Task, X: NDArray[np.float64], options: Options) -> Any:
        ensemble = import_module("sklearn.ensemble")
        model = getattr(ensemble, kind + ("Classifier" if task.n_classes else "Regressor"))(
            n_estimators=int(options.get("trees", 20)),
            max_depth=int(options.get("depth", 6)),
            max_leaf_nodes=int(options.get("leaves", 64)),
            min_samples_leaf=int(options.get("least_rows", 1)),
            max_features=float(options.get("columns", 0.3)),
            random_state=task.seed,
            n_jobs=1,
        ).fit(X.astype(np.float32), task.y)
        model.feature_names_in_ = np.array(task.names, dtype=object)
        return model

    return train


def _objective(task: Task, regression: str, binary: str, several: str) -> dict[str, Any]:
    if task.n_classes > 2:
        return {"objective": several, "num_class": task.n_classes}
    return {"objective": binary if task.n_classes == 2 else regression}


def _xgboost(task: Task, X: NDArray[np.float64], options: Options) -> Any:
    xgboost = import_module("xgboost")
    settings = _objective(task, "reg:squarederror", "binary:logistic", "multi:softprob") | {
        "max_depth": int(options.get("depth", 4)),
        "max_leaves": int(options.get("leaves", 0)),
        "eta": float(options.get("rate", 0.3)),
        "lambda": float(options.get("l2", 1.0)),
        "gamma": float(options.get("least_gain", 0.0)),
        "max_bin": int(options.get("bins", 255)),
        "colsample_bytree": float(options.get("columns", 1.0)),
        "tree_method": "hist",
        "nthread": 1,
        "seed": task.seed,
        "verbosity": 0,
    }
    rows = xgboost.DMatrix(X, label=task.y, feature_names=_plain(task.names), nthread=1)
    return xgboost.train(settings, rows, num_boost_round=int(options.get("trees", 20)))


def _lightgbm(task: Task, X: NDArray[np.float64], options: Options) -> Any:
    lightgbm = import_module("lightgbm")
    settings = _objective(task, "regression", "binary", "multiclass") | {
        "num_leaves": int(options.get("leaves", 16)),
        "max_depth": int(options.get("depth", -1)),
        "learning_rate": float(options.get("rate", 0.3)),
        "lambda_l2": float(options.get("l2", 1.0)),
        "max_bin": int(options.get("bins", 255)),
        "min_data_in_leaf": int(options.get("least_rows", 5)),
        "feature_fraction": float(options.get("columns", 1.0)),
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "seed": task.seed,
        "verbosity": -1,
    }
    if price := float(options.get("price") or 0.0):
        # After Peter et al. 2017: each split costs its price; a column's first use costs an 8-bit comparison.
        settings |= {
            "cegb_tradeoff": price * len(X),
            "cegb_penalty_split": task.prices.split,
            "cegb_penalty_feature_coupled": [task.prices.comparison(8)] * len(task.names),
        }
    rows = lightgbm.Dataset(X, label=task.y, feature_name=_plain(task.names), params={"verbosity": -1})
    return lightgbm.train(settings, rows, num_boost_round=int(options.get("trees", 20)))


def _plain(names: tuple[str, ...]) -> list[str]:
    """Returns distinct names that the libraries accept."""
    plain = ["".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in name) for name in names]
    return plain if len(set(plain)) == len(plain) else [f"{name}_{index}" for index, name in enumerate(plain)]


LIBRARIES = (
    Library("random-forest", "sklearn", (TREES, DEPTH, LEAVES, LEAST_ROWS, COLUMNS), _averaged("RandomForest")),
    Library("extra-trees", "sklearn", (TREES, DEPTH, LEAVES, LEAST_ROWS, COLUMNS), _averaged("ExtraTrees")),
    Library(
        "xgboost",
        "xgboost",
        (TREES, DEPTH, LEAVES, RATE, L2, Real("least_gain", 1e-3, 10.0, log=True), BINS, COLUMNS),
        _xgboost,
    ),
    Library(
        "lightgbm",
        "lightgbm",
        (TREES, DEPTH, LEAVES, RATE, L2, BINS, LEAST_ROWS, COLUMNS, Choice("price", (0.0, 1e-5, 1e-4, 1e-3, 1e-2))),
        _lightgbm,
    ),
)
