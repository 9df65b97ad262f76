"""Makes the small XGBoost models of tests/cases/xgboost with the installed version.

    python tests/cases/make_xgboost.py [KIND ...]    # in an environment with the XGBoost version wanted

Each case is a model in JSON and UBJSON, and the library's own answers on rows with missing values.
"""

import sys
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

HERE = Path(__file__).parent / "xgboost"


def codes(return_X_y: bool):
    X = np.random.default_rng(1).integers(0, 8, (400, 4))
    return X, np.isin(X[:, 0], [1, 4, 6]) * 2.0 + np.isin(X[:, 1], [0, 5]) + X[:, 2] % 3


def targets(return_X_y: bool):
    X, y = load_diabetes(return_X_y=True)
    return X, np.column_stack([y, X[:, 2], y**2])


def main() -> None:
    HERE.mkdir(exist_ok=True)
    version = ".".join(xgboost.__version__.split(".")[:2])
    random = np.random.default_rng(0)
    jobs = {
        "binary": (load_breast_cancer, {"objective": "binary:logistic", "base_score": 0.3}),
        "multi": (load_digits, {"objective": "multi:softprob", "num_class": 10}),
        "regression": (load_diabetes, {"objective": "reg:squarederror"}),
        "pruned": (load_breast_cancer, {"objective": "binary:logistic", "gamma": 5.0, "tree_method": "exact"}),
        "forest": (load_breast_cancer, {"objective": "binary:logistic", "num_parallel_tree": 3, "subsample": 0.5}),
        "dart": (load_diabetes, {"objective": "reg:squarederror", "booster": "dart", "rate_drop": 0.6}),
        "categories": (codes, {"objective": "reg:squarederror", "tree_method": "hist", "max_cat_to_onehot": 3}),
        "targets": (targets, {"objective": "reg:squarederror", "tree_method": "hist"}),
    }
    if version >= "2.0":
        jobs["quantiles"] = (
            load_diabetes,
            {"objective": "reg:quantileerror", "quantile_alpha": [0.45, 0.5, 0.55], "tree_method": "hist"},
        )
        jobs["vectors"] = (targets, {"tree_method": "hist", "multi_strategy": "multi_output_tree"})
    if version >= "3.3":
        jobs["expectiles"] = (
            load_diabetes,
            {"objective": "reg:expectileerror", "expectile_alpha": [0.45, 0.5, 0.55], "tree_method": "hist"},
        )
        jobs["expectile"] = (load_diabetes, {"objective": "reg:expectileerror", "expectile_alpha": 0.8})
    expected = sys.argv[1:] or list(jobs)
    for kind, (dataset, params) in ((kind, jobs[kind]) for kind in expected):
        X, y = dataset(return_X_y=True)
        X = X.astype(np.float32)
        X[random.random(X.shape) < 0.1] = np.nan
        types = {"feature_types": ["c"] * 4, "enable_categorical": True} if kind == "categories" else {}
        data = xgboost.DMatrix(X, label=y, **types)
        model = xgboost.train({"max_depth": 3, "eta": 0.5, "seed": 0, **params}, data, num_boost_round=3)
        stem = HERE / f"{version}_{kind}"
        model.save_model(f"{stem}.json")
        model.save_model(f"{stem}.ubj")
        # A reloaded model gives the answers, because forestc reads the file, and the file rounds base_score.
        reloaded = xgboost.Booster()
        reloaded.load_model(f"{stem}.json")
        some = xgboost.DMatrix(X[:60], **types)
        np.savez_compressed(
            f"{stem}.npz",
            X=X[:60],
            leaves=reloaded.predict(some, pred_leaf=True).reshape(60, -1).astype(np.int32),
            margins=reloaded.predict(some, output_margin=True).reshape(60, -1),
            values=reloaded.predict(some).reshape(60, -1),
        )


if __name__ == "__main__":
    main()
