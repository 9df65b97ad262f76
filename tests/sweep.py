"""Random scikit-learn models, pipelines and converted models with options drawn widely, compared on hard rows.

    python tests/sweep.py --models 5000 --seed 0

prints a table, and the seeds of models that differ. A seed is one model: `differences(seed)` trains it again. Random
models of the other libraries are those of tests/frontends/test_*_properties.py (FORESTC_EXAMPLES=100 for many).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from contract import kinds_onnx
from contract.kind import Trained, hard_rows, ulps_between
from sklearn import compose, ensemble, impute, multiclass, multioutput, pipeline, preprocessing, tree

from forestc import load
from forestc.errors import ModelError, RowsError
from forestc.rows.encode import evaluate

Random = np.random.Generator


@dataclass(frozen=True)
class Differences:
    """What one model came to. untrained, refused: why the library does not train it or forestc does not read it.
    differing: rows that differ, by what differs in them."""

    source: str
    rows: int = 0
    untrained: str = ""
    refused: str = ""
    differing: dict[str, int] = field(default_factory=dict)


def one(random: Random, *choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def some(random: Random, **options: tuple[Any, ...]) -> dict[str, Any]:
    """For about half of the options one of their values."""
    return {name: one(random, *values) for name, values in options.items() if random.random() < 0.5}


def columns(random: Random, missing: bool = False, columns: int = 0) -> Any:
    """Rows: numbers, rounded numbers, whole numbers and numbers of any size; some missing."""
    shape = int(random.integers(40, 250)), columns or int(random.integers(1, 6))
    kinds = [
        random.normal(size=shape),
        np.round(random.normal(size=shape), 1),
        random.integers(-3, 5, shape).astype(float),
        random.normal(size=shape) * 10.0 ** random.integers(-6, 7, shape[1]),
        random.normal(size=shape).astype(np.float32).astype(float),
    ]
    X = np.choose(random.integers(0, len(kinds), shape[1]), kinds)
    return np.where(random.random(shape) < 0.1, np.nan, X) if missing else X


def target(random: Random, X: Any) -> Any:
    known = np.nan_to_num(X)
    scaled = known / (np.abs(known).max(axis=0) + 1e-9)
    return np.sin(4 * scaled @ random.normal(size=X.shape[1])) + 0.3 * random.normal(size=len(X))


def classes(random: Random, X: Any, count: int = 0) -> Any:
    """Whole numbers from 0 up, each there at least once."""
    count = count or int(random.integers(2, 5))
    y = target(random, X)
    found = np.digitize(y, np.quantile(y, np.linspace(0, 1, count + 1)[1:-1]))
    found[:count] = np.arange(count)
    return found


def named(random: Random, y: Any) -> Any:
    """Labels of whole numbers, text or truth values."""
    kinds = [y, 3 * y - 2, np.array(["b", "a", "", "ä c"])[y], y * 1.0]
    return one(random, *kinds, y > 0) if y.max() < 2 else one(random, *kinds)


def sklearn_params(random: Random, model: Any, **options: tuple[Any, ...]) -> Any:
    """The model with options that it has."""
    known = model.get_params()
    return model.set_params(**{k: v for k, v in some(random, **options).items() if k in known})


def grown(random: Random, classifier: bool, simple: bool = False) -> Any:
    """A scikit-learn ensemble; simple: one that members of others may be."""
    kind = "Classifier" if classifier else "Regressor"
    names = [f"RandomForest{kind}", f"ExtraTrees{kind}", f"GradientBoosting{kind}", f"HistGradientBoosting{kind}"]
    names += [] if simple else [f"Bagging{kind}", f"AdaBoost{kind}"]
    name = str(one(random, *names, "tree"))
    model = getattr(tree, f"{one(random, 'DecisionTree', 'ExtraTree')}{kind}")() if name == "tree" else None
    model = model or getattr(ensemble, name)()
    loss: tuple[Any, ...] = ("log_loss", "exponential") if classifier else ("squared_error", "absolute_error")
    criterion: tuple[Any, ...] = ("gini", "entropy") if classifier else ("squared_error", "absolute_error", "poisson")
    if "Hist" in name:
        loss = ("log_loss",) if classifier else ("squared_error", "absolute_error")
        model.set_params(max_features=one(random, 0.5, 1.0))
    if "Bagging" in name or "Ada" in name:
        base = tree.DecisionTreeClassifier if classifier else tree.DecisionTreeRegressor
        model.set_params(estimator=base(max_depth=int(random.integers(1, 5))))
    if name.startswith("Gradient"):
        inits = [None, "zero", tree.DecisionTreeClassifier(max_depth=2) if classifier else tree.DecisionTreeRegressor()]
        model.set_params(init=one(random, *inits))
        criterion = ("friedman_mse", "squared_error")
    fixed = {"random_state": int(random.integers(100)), "n_estimators": int(random.integers(1, 9)), "max_iter": 4}
    model.set_params(**{k: v for k, v in fixed.items() if k in model.get_params()})
    if hasattr(model, "n_estimators") and "Gradient" not in name and "Ada" not in name:
        model.set_params(n_jobs=one(random, None, 1))
    return sklearn_params(
        random,
        model,
        criterion=criterion,
        loss=loss,
        max_depth=(1, 3, 6),
        max_features=(1.0, 0.5) if "Hist" in name or "Bagging" in name else (1.0, 0.5, "sqrt"),
        min_samples_leaf=(1, 5),
        class_weight=("balanced",) if classifier and "Gradient" not in name else (None,),
        subsample=(0.5,),
        max_leaf_nodes=(2, 7),
        ccp_alpha=(0.01,),
        warm_start=(True,),
        bootstrap=(True, False),
        max_samples=(0.5,) if name.startswith("Bagging") else (None,),
        learning_rate=(0.1, 0.7, 1.0),
        l2_regularization=(0.3,),
        early_stopping=(True, False),
        interaction_cst=("no_interactions",),
    )


def scores_of(model: Any, rows: Any) -> Any:
    """The library's scores: the decision function, else probabilities, else predictions."""
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, name):
            found = getattr(model, name)(rows)
            return np.concatenate(found, axis=1) if isinstance(found, list) else found
    raise AssertionError


def of_sklearn(random: Random, model: Any, X: Any, y: Any, rows: Any = None, **more: Any) -> Trained:
    weights = random.integers(1, 4, len(X)) * one(random, 1.0, 0.3) if random.random() < 0.3 else None
    try:
        fitted = (
            model.fit(X, y) if weights is None or hasattr(model, "steps") else model.fit(X, y, sample_weight=weights)
        )
    except (TypeError, ValueError):
        fitted = model.fit(X, y)
    if getattr(fitted, "warm_start", False) and hasattr(fitted, "n_estimators"):
        fitted.set_params(n_estimators=fitted.n_estimators + 2).fit(X, y)
    source: Any = fitted
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if random.random() < 0.3 and type(last).__module__.startswith("sklearn"):
        import skops.io

        source = Path(tempfile.mkdtemp()) / "m.skops"
        skops.io.dump(fitted, source)
    options = {"dtype": np.float64, "infinite": False, "scores": partial(scores_of, fitted)} | more
    return Trained(source, X if rows is None else rows, fitted.predict, **options)


def scikit_learn(random: Random) -> Trained:
    classifier = bool(random.integers(2))
    model = grown(random, classifier)
    refuses = type(model).__name__.startswith(("Gradient", "Ada"))
    X = columns(random, missing=not refuses and random.random() < 0.3)
    y = named(random, classes(random, X)) if classifier else target(random, X)
    if getattr(model, "loss", "") == "exponential":
        y = named(random, classes(random, X, 2))
    if "Hist" in type(model).__name__ and random.random() < 0.4:
        X[:, 0] = random.integers(-2, 7, len(X)) * one(random, 1.0, 0.5, 3.0)
        model.set_params(categorical_features=[0])
    leaves = hasattr(model, "apply") and not type(getattr(model, "init", None)).__name__.startswith("DecisionTree")
    trained = of_sklearn(random, model, X, y, dtype=one(random, np.float32, np.float64))
    return Trained(**{**vars(trained), "leaves": model.apply if leaves else None})


def isolation(random: Random) -> Trained:
    X = columns(random, random.random() < 0.3)
    model = ensemble.IsolationForest(n_estimators=int(random.integers(1, 20)), random_state=0)
    model = sklearn_params(
        random, model, contamination=(0.05, 0.1, 0.3, 0.5), max_features=(0.5,), max_samples=(2, 16, 0.7)
    )
    fitted = model.fit(X)
    return Trained(fitted, X, fitted.predict, None, values=fitted.decision_function, dtype=np.float64, infinite=False)


def composed(random: Random) -> Trained:
    """Votes, several targets, one against the rest."""
    X = columns(random)
    y = classes(random, X)
    members = [(f"m{k}", grown(random, True, True)) for k in range(int(random.integers(1, 4)))]
    plain = [(name, m) for name, m in members if getattr(m, "loss", "") != "exponential"]
    members = plain or [("m", ensemble.RandomForestClassifier(3))]
    match int(random.integers(5)):
        case 0:
            weights = one(random, None, [int(w) for w in random.integers(1, 4, len(members))])
            model: Any = ensemble.VotingClassifier(members, weights=weights)
        case 1:
            model = ensemble.VotingRegressor([(f"m{k}", grown(random, False, True)) for k in range(3)])
            return of_sklearn(random, model, X, target(random, X), scores=None)
        case 2:
            model = multioutput.MultiOutputClassifier(members[0][1])
            return of_sklearn(random, model, X, np.column_stack([y, classes(random, X)]), scores=None)
        case 3:
            model = ensemble.VotingClassifier(members, voting="soft")
        case _:
            model = multiclass.OneVsRestClassifier(members[0][1])
    return of_sklearn(random, model, X, named(random, y), scores=None)


def steps(random: Random) -> Trained:
    """A pipeline of encoders, imputers and scalers of any type, before a model of any library."""
    import lightgbm
    import xgboost

    codes, numbers = int(random.integers(1, 3)), int(random.integers(1, 4))
    missing = random.random() < 0.4
    X = columns(random, missing, codes + numbers)
    X[:, :codes] = random.integers(0, int(random.integers(2, 8)), (len(X), codes)) * one(random, 1.0, 0.5)
    if missing and random.random() < 0.5:
        X[:, :codes][random.random((len(X), codes)) < 0.1] = np.nan
    dtype = one(random, np.float32, np.float64, np.int32, np.int64, np.uint8, np.float32)
    absent = {} if np.dtype(dtype).kind == "f" and random.random() < 0.5 else {"encoded_missing_value": 78}
    encoder = one(
        random,
        preprocessing.OrdinalEncoder(
            dtype=dtype, handle_unknown="use_encoded_value", unknown_value=one(random, 77, 99), **absent
        ),
        preprocessing.OneHotEncoder(
            dtype=dtype,
            handle_unknown="ignore",
            sparse_output=bool(random.integers(2)),
            drop=one(random, None, None, "if_binary"),
        ),
    )
    bins = preprocessing.KBinsDiscretizer(
        4, encode="ordinal", dtype=one(random, None, np.float32), quantile_method="averaged_inverted_cdf"
    )
    scalers: list[Any] = [preprocessing.StandardScaler(), preprocessing.MinMaxScaler((-1.3, 7.1)), "passthrough"]
    scalers += [preprocessing.RobustScaler(), preprocessing.MaxAbsScaler(), preprocessing.FunctionTransformer()]
    scalers += [preprocessing.StandardScaler(with_mean=False), preprocessing.Binarizer(threshold=0.2)]
    scalers += [preprocessing.QuantileTransformer(n_quantiles=9), preprocessing.PowerTransformer(), bins]
    imputer = impute.SimpleImputer(
        strategy=one(random, "mean", "median", "most_frequent", "constant"), add_indicator=bool(random.integers(2))
    )
    inner = one(random, *scalers, imputer, pipeline.make_pipeline(imputer, one(random, *scalers)))
    before: list[Any] = [
        compose.ColumnTransformer(
            [("codes", encoder, list(range(codes)))],
            remainder=one(random, inner, "passthrough", "passthrough"),
            sparse_threshold=one(random, 0.0, 0.3, 1.0),
        )
    ]
    before += [one(random, *scalers) for _ in range(int(random.integers(0, 3)))]
    if random.random() < 0.2:
        before.append(pipeline.FeatureUnion([("a", one(random, *scalers)), ("b", one(random, *scalers))]))
    if random.random() < 0.2:
        before[0].set_params(sparse_threshold=0.0).set_output(transform="pandas")
        if hasattr(encoder, "sparse_output"):
            encoder.set_params(sparse_output=False)
    boosters = [xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1)]
    boosters += [lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1, min_child_samples=3)]
    last = one(random, grown(random, True, True), grown(random, True), *boosters)
    if getattr(last, "loss", "") == "exponential":
        last.set_params(loss="log_loss")
    large = 1e4
    if any("PowerTransformer" in str(part) for part in (inner, *before)):  # past all floats where rows are far larger
        X, large = X / np.nanmax(np.abs(X) + 1e-9, axis=0), 13.0
    rows = np.array(X)
    rows[:, :codes] = np.where(random.random((len(X), codes)) < 0.2, 13.0, rows[:, :codes])
    y = classes(random, X)
    model = pipeline.make_pipeline(*before, last)
    by_sklearn = type(last).__module__.startswith("sklearn")
    more = {"scores": partial(scores_of, model)} if by_sklearn else {"scores": partial(_raw, model, last)}
    return of_sklearn(random, model, X, y, rows, large=large, **more)


def _raw(model: Any, last: Any, rows: Any) -> Any:
    name = "output_margin" if "xgboost" in type(last).__module__ else "raw_score"
    return model.predict(rows, **{name: True})


def converted(random: Random) -> Trained:
    """What skl2onnx and onnxmltools write."""
    import lightgbm
    import xgboost

    X = columns(random).astype(np.float32).astype(float)
    classifier = bool(random.integers(2))
    y = classes(random, X) if classifier else target(random, X)
    if random.random() < 0.3:
        count = int(random.integers(1, 8))
        model: Any = one(
            random,
            (xgboost.XGBClassifier if classifier else xgboost.XGBRegressor)(
                n_estimators=count, base_score=0.5, n_jobs=1
            ),
            (lightgbm.LGBMClassifier if classifier else lightgbm.LGBMRegressor)(
                n_estimators=count, verbose=-1, n_jobs=1
            ),
        )
        return kinds_onnx.tools(model, (X, y))()
    model = grown(random, classifier, True)
    if getattr(model, "loss", "") in ("exponential", "absolute_error"):
        model.set_params(loss="log_loss" if classifier else "squared_error")
    if hasattr(model, "init"):
        model.set_params(init=None)
    scaler = one(random, None, preprocessing.StandardScaler(), preprocessing.MinMaxScaler())
    return kinds_onnx.skl(pipeline.make_pipeline(scaler, model) if scaler else model, (X, y))()


SOURCES: dict[str, tuple[float, Callable[[Random], Trained]]] = {
    "scikit-learn": (5, scikit_learn),
    "scikit-learn isolation": (1, isolation),
    "scikit-learn of models": (2, composed),
    "pipelines": (5, steps),
    "onnx converted": (1, converted),
}


def random_model(seed: int) -> tuple[str, Trained | Exception]:
    """The library's name and a model trained with it, or why the library trains none; the same for the same seed."""
    random = np.random.default_rng(seed)
    shares = np.array([share for share, _ in SOURCES.values()])
    source = list(SOURCES)[int(random.choice(len(SOURCES), p=shares / shares.sum()))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return source, SOURCES[source][1](random)
        except Exception as error:  # noqa: BLE001  options that don't go together
            return source, error


def differences(seed: int, count: int = 200) -> Differences:
    """Leaves, scores (bit for bit) and decisions on hard rows, compared with the library's own."""
    source, model = random_model(seed)
    if isinstance(model, Exception):
        return Differences(source, untrained=f"{type(model).__name__}: {model}".splitlines()[0])
    try:
        forest = load(model.source)
    except ModelError as error:
        return Differences(source, refused=str(error))
    rows = hard_rows(forest, model, count, seed)
    differing: dict[str, int] = {}
    try:
        found = evaluate(forest, rows)
    except RowsError as error:
        return Differences(source, count, differing={f"refused: {error}"[:90]: count})

    def compare(what: str, ours: Any, theirs: Any, ulps: float = 0.0) -> None:
        theirs = np.asarray(theirs).reshape(ours.shape)
        if ours.dtype.kind == "f" and theirs.dtype.kind == "f":
            narrow = np.float32 if np.float32 in (ours.dtype, theirs.dtype) else np.float64
            with np.errstate(over="ignore"):
                wrong = ulps_between(ours.astype(narrow), theirs.astype(narrow)) > ulps
        else:
            wrong = ours != theirs
        if wrong.any():
            differing[what] = int(wrong.reshape(count, -1).any(axis=1).sum())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if model.leaves is not None:
            compare("leaves", found.leaves, model.leaves(rows))
        if model.scores is not None:
            compare("scores", found.scores, model.scores(rows))
        if model.values is not None:
            compare("values", found.values, model.values(rows))
        if forest.decides or forest.link.kind == "identity":
            compare("decision", found.decision, model.decision(rows), model.value_ulps)
    return Differences(source, count, differing=differing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0, 0])
    refusals: dict[str, int] = defaultdict(int)
    for seed in range(chosen.seed, chosen.seed + chosen.models):
        try:
            found = differences(seed)
        except Exception as error:  # noqa: BLE001  the library, or forestc: either is worth a look
            failed = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            found = Differences("failed", differing={failed: 0})
        counts = table[found.source]
        added = (
            1,
            found.rows,
            bool(found.untrained),
            bool(found.refused),
            bool(found.differing),
            sum(found.differing.values()),
        )
        table[found.source] = [a + int(b) for a, b in zip(counts, added, strict=True)]
        if why := found.untrained or found.refused:
            output = "not trained" if found.untrained else "refused"
            refusals[f"{output}: {found.source}: {why.partition(';')[0][:90]}"] += 1
        if found.differing:
            print(f"seed {seed}: {found.source}: {found.differing}", flush=True)
    print(f"{'source':24s}{'models':>8s}{'rows':>10s}{'untrained':>10s}{'refused':>9s}{'differ':>8s}{'rows':>18s}")
    totals = [sum(column) for column in zip(*table.values(), strict=True)]
    for name, row in [*sorted(table.items()), ("all", totals)]:
        print(f"{name:24s}{row[0]:8d}{row[1]:10d}{row[2]:10d}{row[3]:9d}{row[4]:8d}{row[5]:18d}")
    for why, times in sorted(refusals.items(), key=lambda item: -item[1])[:40]:
        print(f"{times:6d} {why}")


if __name__ == "__main__":
    main()
