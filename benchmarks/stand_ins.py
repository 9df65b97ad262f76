"""Measures how similar the models that levels train on folds (stand-ins) are to the given model: parameters found,
refusals, leaves, agreement.

    python benchmarks/stand_ins.py --data DIR --json FILE
    python benchmarks/stand_ins.py --data DIR --only pima,digits

The data sets are the thirteen of `levels.py`; a fifth of the rows is set aside. Each model is given with its training
rows, as an object and (except random forests) as a file. A stand-in is trained on all training rows. `agrees` is its
agreement with the model on the rows set aside; `two seeds` is the agreement of two stand-ins with different seeds. For
a regression, agreement is 1 - squared difference / variance.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from catboost import CatBoostClassifier, CatBoostRegressor
from data import read
from levels import MOST_FIT, REGRESSION, SETS
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tools import arguments, show
from xgboost import XGBClassifier, XGBRegressor

import forestc
from forestc.forest.ir import Forest
from forestc.frontends import read_training
from forestc.passes.quick_evaluation import answers_to
from forestc.rows.batches import ArrayRows
from forestc.search.folds import folds_of
from forestc.training.again import Original

MEASURES = ("forestc/search/folds.py", "forestc/search/alike.py", "forestc/training", "forestc/frontends")
XGBOOST = (
    {"learning_rate": 0.05, "max_depth": 6, "n_estimators": 30}, {"learning_rate": 0.8, "max_depth": 3},
    {"learning_rate": 1.0, "max_depth": 2}, {"learning_rate": 0.3, "max_depth": 8, "subsample": 0.5},
    {"min_child_weight": 20, "max_depth": 5}, {"scale_pos_weight": 4, "max_depth": 4},
    {"reg_alpha": 2, "max_depth": 5, "reg_lambda": 5}, {"max_depth": 5, "gamma": 1, "colsample_bytree": 0.4},
    {"learning_rate": 0.8, "max_depth": 6, "subsample": 0.7, "min_child_weight": 5},
    {"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 0, "colsample_bynode": 0.5},
    {"tree_method": "exact", "max_depth": 4, "max_delta_step": 0.7}, {"max_bin": 16, "max_depth": 4},
)  # fmt: skip
LIGHTGBM = (
    {"num_leaves": 15}, {"num_leaves": 40, "min_child_samples": 5, "learning_rate": 0.4, "subsample": 0.6,
     "subsample_freq": 1, "reg_lambda": 2}, {"colsample_bytree": 0.5, "max_depth": 4, "min_split_gain": 0.2},
)  # fmt: skip
FORESTS = ({"max_depth": 6}, {"min_samples_leaf": 8}, {"max_features": 0.9, "max_depth": 9}, {})
CATBOOST = ({"depth": 4}, {"depth": 6, "learning_rate": 0.5, "l2_leaf_reg": 1})
KINDS: dict[str, tuple[Any, Any, tuple[dict[str, Any], ...], dict[str, Any]]] = {
    "xgboost": (XGBClassifier, XGBRegressor, XGBOOST, {"n_estimators": 12, "n_jobs": 1}),
    "lightgbm": (LGBMClassifier, LGBMRegressor, LIGHTGBM, {"n_estimators": 12, "n_jobs": 1, "verbosity": -1}),
    "catboost": (CatBoostClassifier, CatBoostRegressor, CATBOOST,
                 {"iterations": 12, "thread_count": 1, "verbose": False, "allow_writing_files": False}),
    "forest": (RandomForestClassifier, RandomForestRegressor, FORESTS, {"n_estimators": 12}),
}  # fmt: skip
SUFFIX = {"xgboost": "json", "lightgbm": "txt", "catboost": "json"}


def main() -> None:
    parser = arguments(__doc__, MEASURES, "data!", "only")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the models; XGBoost's files do not say it")
    options = parser.parse_args()
    sets = ["pima"] if options.small else options.only.split(",") if options.only else SETS
    rows = [
        row
        for name in sets
        for kind, (classifier, regressor, settings, always) in KINDS.items()
        for own in settings[: 1 if options.small else None]
        for row in measured(
            (name, kind, own),
            (regressor if name in REGRESSION else classifier)(**{**always, **own, "random_state": options.seed}),
            options.data,
        )
    ]
    refused = {way: [row["widened"] == "refused" for row in rows if row["as"] == way] for way in ("object", "file")}
    widened = [row for row in rows if isinstance(row["widened"], float) and row["widened"] > 0]
    figures = {f"refused_of_{way}s": f"{sum(all_)} of {len(all_)}" for way, all_ in refused.items()}
    show("stand-ins of models", rows, options, **figures, widened=f"{len(widened)} of {len(rows)}")


def measured(case: tuple[str, str, dict[str, Any]], model: Any, data: Path) -> list[dict[str, Any]]:
    """Trains a model of a set, a kind and settings, and stand-ins for it. Returns a row for the model as an object and,
    if its library has a file format, one as a file."""
    name, kind, own = case
    X, y = read(name, data, values=name in REGRESSION)
    if kind == "catboost":
        X = X.astype(np.float32).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(X))
    fit, test = order[: min(int(0.6 * len(X)), MOST_FIT)], order[int(0.8 * len(X)) :]
    model.fit(X[fit], y[fit])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{SUFFIX.get(kind, '')}"
        if kind == "catboost":
            model.save_model(path, format="json")
        elif kind in SUFFIX:
            getattr(model, "booster_", model).save_model(path)
        for way, given in (("object", model), ("file", path))[: 2 if kind in SUFFIX else 1]:
            rows.append({"set": name, "model": kind, "trained with": _text(own), "as": way})
            start = time.process_time()
            try:
                source = forestc.load(given)
                folds = folds_of(given, source, ArrayRows(X[fit], y[fit]))
                rows[-1] |= {"widened": folds.widened, "s": time.process_time() - start}
            except forestc.ForestcError as error:
                rows[-1] |= {"widened": "refused", "s": time.process_time() - start, "why": error.what[50:130]}
                continue
            original = Original(source, read_training(given), X[fit], y[fit])
            ways = original.ways()
            chosen = next(candidate for candidate in ways if folds.how.startswith(candidate.how))
            first, second = (chosen.train(X[fit], y[fit], seed) for seed in (0, 1))
            rows[-1] |= {
                "leaves": source.n_leaves, "stand-in": first.n_leaves,
                "agrees": _agreement(source, first, X[test]), "two seeds": _agreement(first, second, X[test]),
                "found": _text(original._settings) if "found" in chosen.how else "", "how": chosen.how[:44],
            }  # fmt: skip
    for row in rows:
        print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    return rows


def _text(settings: dict[str, Any]) -> str:
    hidden = ("objective", "num_class", "num_parallel_tree", "n_estimators")
    return " ".join(f"{key}={value}" for key, value in settings.items() if key not in hidden)


def _agreement(one: Forest, other: Forest, X: Any) -> float:
    answers, others = answers_to(one, X), answers_to(other, X)
    if one.decides:
        return float((answers == others).mean())
    return 1 - float(((answers - others) ** 2).mean()) / float(answers.var())


if __name__ == "__main__":
    main()
