"""Makes the files of tests/cases/versions: ten kinds of models by each of ten older versions of the libraries.

    python tests/cases/make_versions.py FOLDER [NAME ...]    # FOLDER: for the environments, some 3 GB

For each version it makes an environment with that version, and runs this file there: each kind becomes a file, and
answers.npz holds the library's own answers on rows on and one step beside the model's thresholds.
"""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from zipfile import ZIP_DEFLATED

HERE = Path(__file__).parent / "versions"
LEARN = ["numpy<2", "scikit-learn==1.3.2"]
VERSIONS = {
    **{f"lightgbm-{version}": [f"lightgbm=={version}", *LEARN] for version in ("2.3.1", "3.3.5", "4.0.0", "4.5.0")},
    "xgboost-1.7.6": ["xgboost==1.7.6", *LEARN],
    **{f"xgboost-{version}": [f"xgboost-cpu=={version}", *LEARN] for version in ("2.1.4", "3.0.5")},
    "catboost-1.2.3": ["catboost==1.2.3", *LEARN],
    "treelite-4.1.2": ["treelite==4.1.2", *LEARN],
    "sklearn-1.3.2": [*LEARN, "skops==0.9.0"],
}
ROWS = 40


def main() -> None:
    folder, *names = map(str, sys.argv[1:])
    for name in names or VERSIONS:
        python = Path(folder).resolve() / name / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *VERSIONS[name]], check=True)
        subprocess.run([python, __file__, "--here", name], check=True)


def data():
    """Returns rows of four numbers, a column of small integers and one of codes, and three classes."""
    import numpy as np

    random = np.random.RandomState(0)
    X = random.normal(size=(300, 6))
    X[:, 1] = np.where(random.uniform(size=300) < 0.3, 0, X[:, 1])
    X[:, 4], X[:, 5] = random.randint(0, 5, 300), random.randint(0, 12, 300)
    X = X.astype(np.float32).astype(np.float64)
    score = X[:, 0] + (X[:, 1] == 0) + np.isin(X[:, 5], [1, 4, 7]) - 0.3 * X[:, 4]
    return X, np.digitize(score, [-0.5, 0.8])


def hard(X, cuts, missing, step):
    """Returns rows of X with values on the cuts ({column: numbers}) and one step of the type `step` beside them."""
    import numpy as np

    random = np.random.RandomState(1)
    rows = X[random.randint(0, len(X), ROWS)]
    for column, numbers in cuts.items():
        near = random.choice(np.array(sorted(numbers), dtype=step), ROWS)
        beside = np.nextafter(near, step(np.inf) * random.choice([-1, 1], ROWS)).astype(step)
        value = np.where(random.uniform(size=ROWS) < 0.5, near, beside)
        rows[:, column] = np.where(random.uniform(size=ROWS) < 0.6, value, rows[:, column])
    if missing:
        rows[random.uniform(size=rows.shape) < 0.1] = np.nan
    return rows


def lightgbm_kinds(folder, X, y):
    import lightgbm
    import numpy as np

    base = {"num_leaves": 5, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "seed": 0}
    sampled = {"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.8}
    kinds = {
        "binary": ({"objective": "binary"}, y > 0),
        "rare": ({"objective": "multiclass", "num_class": 4}, y + 1),  # No row is of class 0: its trees have one leaf.
        "each": ({"objective": "multiclassova", "num_class": 3, "sigmoid": 0.7}, y),
        "regression": ({"objective": "regression_l1"}, y),
        "poisson": ({"objective": "poisson"}, y),
        "categories": ({"objective": "binary", "min_data_per_group": 5, "max_cat_to_onehot": 1}, y > 0),
        "zeros": ({"objective": "regression", "zero_as_missing": True}, y),
        "dart": ({"objective": "binary", "boosting": "dart", "drop_rate": 0.5}, y > 0),
        "forest": ({"objective": "regression", "boosting": "rf", **sampled}, y),
        "stopped": ({"objective": "binary", "learning_rate": 1.0}, y > 0),
    }
    for kind, (params, labels) in kinds.items():
        listed = [5] if kind == "categories" else "auto"
        train = lightgbm.Dataset(X[:200], label=labels[:200].astype(float), categorical_feature=listed)
        model = lightgbm.train({**base, **params}, train, 3)
        if kind == "stopped":
            model.best_iteration = 2
        path = folder / f"{kind}.txt"
        model.save_model(str(path))
        text = path.read_text()
        start, end = text.index("\nparameters:"), text.index("end of parameters")
        path.write_text(text[:start] + "\nparameters:\n" + text[end:])  # No prediction depends on the parameters.
        cuts = {}
        for tree in text.split("Tree=")[1:]:
            lines = dict(line.split("=", 1) for line in tree.splitlines() if "=" in line)
            pairs = zip(
                lines["split_feature"].split(), lines["threshold"].split(), lines["decision_type"].split(), strict=True
            )
            for column, cut, decision in pairs:
                if not int(decision) & 1:
                    cuts.setdefault(int(column), set()).add(float(cut))
        rows = hard(X, cuts, True, np.float64)
        again = lightgbm.Booster(model_file=str(path))
        yield kind, rows, again.predict(rows, raw_score=True), again.predict(rows)


def xgboost_kinds(folder, X, y):
    import numpy as np
    import xgboost

    targets = np.column_stack([y, X[:, 0]])
    kinds = {
        "binary": ({"objective": "binary:logistic"}, y > 0),
        "classes": ({"objective": "multi:softprob", "num_class": 3}, y),
        "regression": ({"objective": "reg:squarederror", "base_score": 0.3}, y),
        "poisson": ({"objective": "count:poisson"}, y),
        "tweedie": ({"objective": "reg:tweedie", "tree_method": "exact", "gamma": 1.0}, y),
        "dart": ({"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.6}, y > 0),
        "forest": ({"objective": "binary:logistic", "num_parallel_tree": 3, "subsample": 0.5}, y > 0),
        "categories": ({"objective": "binary:logistic", "tree_method": "hist", "max_cat_to_onehot": 3}, y > 0),
        "targets": ({"objective": "reg:squarederror", "tree_method": "hist"}, targets),
        "stopped": ({"objective": "binary:logistic", "eta": 1.0}, y > 0),
    }
    for kind, (params, labels) in kinds.items():
        types = {"feature_types": ["q"] * 5 + ["c"], "enable_categorical": True} if kind == "categories" else {}
        train = xgboost.DMatrix(X[:200], label=labels[:200], **types)
        model = xgboost.train({"max_depth": 3, "seed": 0, "nthread": 1, **params}, train, 3)
        if kind == "stopped":
            model.set_attr(best_iteration="1")
        path = folder / f"{kind}.json"
        model.save_model(str(path))
        held = json.loads(path.read_text())
        cuts, docs = {}, held["learner"]["gradient_booster"]
        for tree in (docs.get("gbtree") or docs)["model"]["trees"]:
            for column, cut, left in zip(
                tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
            ):
                if left >= 0 and not (types and column == 5):
                    cuts.setdefault(column, set()).add(cut)
        rows = hard(X, cuts, True, np.float32)
        again, some = xgboost.Booster(model_file=str(path)), xgboost.DMatrix(rows, **types)
        yield kind, rows, again.predict(some, output_margin=True), again.predict(some)


def catboost_kinds(folder, X, y):
    import catboost
    import numpy as np

    holes = np.where(np.random.RandomState(2).uniform(size=X.shape) < 0.1, np.nan, X)
    classes = {"loss_function": "MultiClass"}
    kinds = {
        "binary": ({"loss_function": "Logloss"}, X, y > 0),
        "classes": (classes, X, y),
        "each": ({"loss_function": "MultiClassOneVsAll"}, X, y),
        "regression": ({"loss_function": "RMSE"}, X, y),
        "absolute": ({"loss_function": "MAE"}, X, y),
        "poisson": ({"loss_function": "Poisson"}, X, y),
        "missing": ({"loss_function": "Logloss", "nan_mode": "Min"}, holes, y > 0),
        "missing-above": ({"loss_function": "RMSE", "nan_mode": "Max"}, holes, y),
        "depthwise": ({"loss_function": "Logloss", "grow_policy": "Depthwise"}, X, y > 0),
        "leaves": ({**classes, "grow_policy": "Lossguide", "max_leaves": 5}, holes, y),
    }
    for kind, (params, trained, labels) in kinds.items():
        base = {"iterations": 3, "depth": 3, "border_count": 9, "random_seed": 0, "thread_count": 1, "verbose": False}
        model = catboost.CatBoost({**base, "allow_writing_files": False, **params}).fit(trained, labels.astype(int))
        path = folder / f"{kind}.json"
        model.save_model(str(path), format="json")
        held = json.loads(path.read_text())
        kept = {"class_params", "params", "catboost_version_info"}
        held["model_info"] = {key: value for key, value in held["model_info"].items() if key in kept}
        path.write_text(json.dumps(held, separators=(",", ":")))
        cuts = {f["flat_feature_index"]: f["borders"] for f in held["features_info"]["float_features"] if f["borders"]}
        rows = hard(X, cuts, trained is holes, np.float32)
        forms = {"Logloss": "Probability", "MultiClass": "Probability", "MultiClassOneVsAll": "Probability"}
        form = {**forms, "Poisson": "Exponent"}.get(params["loss_function"], "RawFormulaVal")
        values = model.predict(rows, prediction_type=form)
        values = values[:, 1:] if params["loss_function"] == "Logloss" else values
        yield kind, rows, model.predict(rows, prediction_type="RawFormulaVal"), values


def learnt(X, y):
    """Yields scikit-learn's kinds: name, fitted estimator, cuts."""
    import numpy as np
    from sklearn import ensemble, pipeline, preprocessing, tree

    few = {"n_estimators": 3, "random_state": 0}
    members = [
        ("a", ensemble.RandomForestClassifier(max_depth=3, **few)),
        ("b", ensemble.ExtraTreesClassifier(max_depth=3, **few)),
    ]
    columns = pipeline.make_pipeline(
        preprocessing.StandardScaler(), ensemble.RandomForestClassifier(max_depth=4, **few)
    )
    kinds = {
        "tree": (tree.DecisionTreeClassifier(max_depth=4, random_state=0), y),
        "forest": (ensemble.RandomForestClassifier(max_depth=4, **few), y),
        "regression": (ensemble.ExtraTreesRegressor(max_depth=4, **few), y + X[:, 0]),
        "boosting": (ensemble.GradientBoostingClassifier(max_depth=2, **few), y),
        "binary": (ensemble.GradientBoostingClassifier(max_depth=2, **few), y > 0),
        "hist": (ensemble.HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, early_stopping=False), y),
        "isolation": (ensemble.IsolationForest(max_samples=20, **few), None),
        "bagging": (ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=3), **few), y),
        "votes": (ensemble.VotingClassifier(members, voting="soft"), y),
        "pipeline": (columns, y),
    }
    for kind, (model, labels) in kinds.items():
        model.fit(X, labels)
        cuts = {}
        for part in getattr(model, "estimators_", [model]):
            found = getattr(part, "tree_", None)
            if found is not None:
                for column, cut in zip(found.feature.tolist(), found.threshold.tolist(), strict=True):
                    cuts.setdefault(column, set()).add(cut)
        cuts.pop(-2, None)
        yield kind, model, hard(X, cuts, False, np.float32)


def sklearn_kinds(folder, X, y):
    import numpy as np
    import skops.io

    for kind, model, rows in learnt(X, y):
        skops.io.dump(model, folder / f"{kind}.skops", compression=ZIP_DEFLATED)
        methods = ("predict_proba", "decision_function", "predict")
        values = getattr(model, next(name for name in methods if hasattr(model, name)))(rows)
        yield kind, rows, np.asarray(model.predict(rows), dtype=np.float64), values


def treelite_kinds(folder, X, y):
    import numpy as np
    import treelite

    made = [
        (kind, treelite.sklearn.import_model(model), rows)
        for kind, model, rows in learnt(X, y)
        if kind not in ("tree", "votes", "pipeline", "bagging")
    ]
    for name in (
        "lightgbm-4.0.0/dart.txt",
        "lightgbm-4.0.0/zeros.txt",
        "xgboost-1.7.6/poisson.json",
        "xgboost-1.7.6/forest.json",
    ):
        load = treelite.frontend.load_lightgbm_model if "lightgbm" in name else treelite.frontend.load_xgboost_model
        path = HERE / name
        made.append((f"from-{path.stem}", load(str(path)), np.load(path.parent / "answers.npz")[f"{path.stem}_rows"]))
    for kind, model, rows in made:
        model.serialize(str(folder / f"{kind}.tl"))
        rows = rows.astype(model.input_type)
        margins = treelite.gtil.predict(model, rows, pred_margin=True)
        yield kind, rows, margins, treelite.gtil.predict(model, rows)


def here(name: str) -> None:
    import numpy as np

    library = name.partition("-")[0]
    (HERE / name).mkdir(parents=True, exist_ok=True)
    answers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, rows, scores, values in globals()[f"{library}_kinds"](HERE / name, *data()):
            answers |= {
                f"{kind}_rows": rows,
                f"{kind}_scores": np.asarray(scores),
                f"{kind}_values": np.asarray(values),
            }
    np.savez_compressed(HERE / name / "answers.npz", **answers)
    print(name, len(answers) // 3, "kinds")


if __name__ == "__main__":
    here(sys.argv[2]) if sys.argv[1] == "--here" else main()
