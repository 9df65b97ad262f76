"""Makes the small LightGBM models of tests/cases/lightgbm with the installed version.

    python tests/cases/make_lightgbm.py        # in an environment with the LightGBM version wanted

Each case is a text model, from version 3.3 on also a JSON dump, and the library's own answers on rows on and beside
zero, missing values, infinities and unseen categories.
"""

import json
from pathlib import Path

import lightgbm
import numpy as np

HERE = Path(__file__).parent / "lightgbm"
ROWS = 80


def data(n, random):
    X = random.normal(size=(n, 4))
    X[:, 1] = np.where(random.uniform(size=n) < 0.3, 0, X[:, 1])
    X[:, 2] = random.randint(0, 6, n)
    X[:, 3] = random.randint(0, 70, n)
    score = X[:, 0] + (X[:, 1] == 0) + (X[:, 2] == 3) + (X[:, 3] % 2)
    X[random.uniform(size=(n, 4)) < 0.1] = np.nan
    return X, np.digitize(np.nan_to_num(score), [0.5, 1.5])


def main():
    HERE.mkdir(exist_ok=True)
    version = ".".join(lightgbm.__version__.split(".")[:2])
    random = np.random.RandomState(0)
    X, y = data(400, random)
    rows, _ = data(ROWS, random)
    rows[:, :2] = np.where(
        random.uniform(size=(ROWS, 2)) < 0.3,
        random.choice([0, -0.0, 1e-36, -1e-36, 1e-35, np.inf, -np.inf], (ROWS, 2)),
        rows[:, :2],
    )
    rows[:, 2:] += random.choice([0, 0, 0, 0.5, -9, 400], (ROWS, 2))
    base = {"num_leaves": 6, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "seed": 0, "num_iterations": 3}
    base.update({"min_data_per_group": 5, "max_cat_to_onehot": 1})
    forest = {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.8}
    jobs = {
        "binary": ({"objective": "binary", "sigmoid": 0.7}, y > 0),
        "zero": ({"objective": "poisson", "zero_as_missing": True}, y),
        "none": ({"objective": "regression", "use_missing": False, "reg_sqrt": True}, y),
        "multi": ({"objective": "multiclass", "num_class": 3}, y),
        "forest": (dict(forest, objective="regression"), y),
        "votes": (dict(forest, objective="binary"), y > 0),
    }
    for kind, (params, labels) in jobs.items():
        train = lightgbm.Dataset(X, label=labels.astype(float), categorical_feature=[2, 3])
        model = lightgbm.train(dict(base, **params), train)
        stem = str(HERE / (version + "_" + kind))
        model.save_model(stem + ".txt")
        text = Path(stem + ".txt").read_text()
        if "\nparameters:" in text:  # The parameters are long, and no prediction depends on them.
            start, end = text.index("\nparameters:"), text.index("end of parameters")
            Path(stem + ".txt").write_text(text[:start] + "\nparameters:\n" + text[end:])
        if tuple(map(int, version.split("."))) >= (3, 3):
            Path(stem + ".json").write_text(json.dumps(model.dump_model()))
        np.savez_compressed(
            stem + ".npz",
            X=rows,
            leaves=model.predict(rows, pred_leaf=True).astype(np.int32),
            scores=model.predict(rows, raw_score=True).reshape(ROWS, -1),
            values=model.predict(rows).reshape(ROWS, -1),
        )


if __name__ == "__main__":
    main()
