"""The models and data of which benchmarks/firmware_costs.py fits forestc/costs/firmware.json."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_friedman2,
    make_regression,
)
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import forestc
from forestc.forest.ir import Forest

MOST_SPLITS = 2500
CATEGORIES = {"categories": 5, "sets": 3}  # columns of categories, the first


@dataclass(frozen=True)
class Subject:
    """A forest, its rows, and the data set by which errors are judged."""

    name: str
    data: str
    forest: Forest
    rows: NDArray[np.float64]


def data(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if name.startswith("made"):
        classes = int(name[4:])
        return make_classification(800, 16, n_informative=8, n_classes=classes, random_state=classes, flip_y=0.1)
    if name == "categories":  # some of 12, some of 60
        random = np.random.default_rng(0)
        X = random.integers(0, [12, 12, 60, 60, 12, 100], (1500, 6)).astype(np.float64)
        secret = random.normal(size=(6, 100))
        return X, (sum(secret[k, X[:, k].astype(int)] for k in range(6)) > 0).astype(int)
    if name == "moon":  # two features
        return make_circles(600, noise=0.2, factor=0.5, random_state=15)  # type: ignore[no-any-return]
    if name == "friedman":
        return make_friedman2(500, noise=20.0, random_state=16)  # type: ignore[no-any-return]
    if name == "sets":  # small sets beside numbers
        random = np.random.default_rng(3)
        X = np.column_stack([random.integers(0, [6, 20, 8], (800, 3)), random.normal(size=(800, 3)).round(2)])
        secret = random.normal(size=20)
        return X.astype(np.float64), (secret[X[:, 1].astype(int)] + X[:, 3] > 0.2).astype(int) + (X[:, 0] > 3)
    if name == "missing":  # a fifth of the values are not there
        random = np.random.default_rng(1)
        X, y = make_classification(800, 12, n_informative=8, n_classes=3, random_state=11)
        return np.where(random.random(X.shape) < 0.2, np.nan, X), y
    if name == "targets":
        return make_regression(600, 8, n_informative=6, n_targets=3, noise=5.0, random_state=12)  # type: ignore[no-any-return]
    if name == "flat":  # nothing to split on
        return np.zeros((60, 4)), np.arange(60) % 3
    if name == "level":
        return np.zeros((60, 4)), np.arange(60) / 7.0
    if name == "levels":
        return np.zeros((60, 4)), np.arange(180).reshape(60, 3) / 7.0
    if name == "labels":  # two targets
        X, y = make_classification(600, 10, n_informative=7, n_classes=4, random_state=13)
        return X, np.stack([y % 2, y], axis=1)
    if name == "few":  # three integers of 10 bits
        random = np.random.default_rng(2)
        X = random.integers(0, 1024, (900, 3)).astype(np.float64)
        return X, (X[:, 0] + 2 * X[:, 1] - X[:, 2] + random.normal(0, 200, 900) > 1000).astype(int)
    of = {
        "bc": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine, "diabetes": load_diabetes
    }  # fmt: skip
    X, y = of[name](return_X_y=True)
    return X, y


def _xgb(**options: Any) -> Any:
    return xgboost.XGBClassifier(n_jobs=1, **options)


MODELS: dict[str, tuple[str, Any]] = {
    "rf10x6": ("bc", RandomForestClassifier(10, max_depth=6, random_state=0)),
    "rf40x8": ("bc", RandomForestClassifier(40, max_depth=8, random_state=0)),
    "xgb13x3": ("bc", _xgb(n_estimators=13, max_depth=3)),
    "rf4x5": ("bc", RandomForestClassifier(4, max_depth=5, random_state=0)),
    "digits_rf10x6": ("digits", RandomForestClassifier(10, max_depth=6, random_state=0)),
    "digits_et8x9": ("digits", ExtraTreesClassifier(8, max_depth=9, random_state=0)),
    "digits_xgb8x3": ("digits", _xgb(n_estimators=8, max_depth=3)),
    "digits_rf30x4": ("digits", RandomForestClassifier(30, max_depth=4, random_state=0)),
    "iris_rf20": ("iris", RandomForestClassifier(20, random_state=0)),
    "iris_xgb5": ("iris", _xgb(n_estimators=5, max_depth=4)),
    "iris_et3": ("iris", ExtraTreesClassifier(3, max_depth=3, random_state=0)),
    "wine_gb10x3": ("wine", GradientBoostingClassifier(n_estimators=10, random_state=0)),
    "wine_rf50x3": ("wine", RandomForestClassifier(50, max_depth=3, random_state=0)),
    "wine_xgb30x2": ("wine", _xgb(n_estimators=30, max_depth=2)),
    "diabetes_rf10x6": ("diabetes", RandomForestRegressor(10, max_depth=6, random_state=0)),
    "diabetes_et20x4": ("diabetes", ExtraTreesRegressor(20, max_depth=4, random_state=0)),
    "diabetes_xgb40x3": ("diabetes", xgboost.XGBRegressor(n_estimators=40, max_depth=3, n_jobs=1)),
    "made2_rf15x8": ("made2", RandomForestClassifier(15, max_depth=8, random_state=0)),
    "made2_gb100x2": ("made2", GradientBoostingClassifier(n_estimators=100, max_depth=2, random_state=0)),
    "made2_xgb20x5": ("made2", _xgb(n_estimators=20, max_depth=5)),
    "made5_rf12x7": ("made5", RandomForestClassifier(12, max_depth=7, random_state=0)),
    "made5_xgb6x4": ("made5", _xgb(n_estimators=6, max_depth=4)),
    "categories_lgb": (
        "categories",
        lightgbm.LGBMClassifier(
            n_estimators=12, num_leaves=12, min_data_per_group=1, max_cat_to_onehot=1, verbose=-1, n_jobs=1
        ),
    ),
    "made4_et25x5": ("made4", ExtraTreesClassifier(25, max_depth=5, random_state=0)),
    "missing_xgb8x4": ("missing", _xgb(n_estimators=8, max_depth=4)),
    "missing_hgb6": ("missing", HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=12, random_state=0)),
    "targets_rf8x5": ("targets", RandomForestRegressor(8, max_depth=5, random_state=0)),
    "labels_rf12x5": ("labels", RandomForestClassifier(12, max_depth=5, random_state=0)),
    "iso20": ("bc", IsolationForest(n_estimators=20, max_samples=64, random_state=0)),
    "vote3": (
        "wine",
        VotingClassifier(
            [
                ("a", RandomForestClassifier(5, max_depth=4, random_state=0)),
                ("b", ExtraTreesClassifier(6, max_depth=4, random_state=1)),
                ("c", DecisionTreeClassifier(max_depth=5, random_state=2)),
            ]
        ),
    ),
    "soft2": (
        "bc",
        VotingClassifier(
            [
                ("a", RandomForestClassifier(8, max_depth=4, random_state=3)),
                ("b", GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=4)),
            ],
            voting="soft",
        ),
    ),
    "moon_xgb": ("moon", _xgb(n_estimators=14, max_depth=4)),
    "moon_rf": ("moon", RandomForestClassifier(8, max_depth=6, random_state=0)),
    "friedman_gb": ("friedman", GradientBoostingRegressor(n_estimators=25, max_depth=3, random_state=0)),
    "friedman_rf": ("friedman", RandomForestRegressor(7, max_depth=5, random_state=0)),
    "made3_et9": ("made3", ExtraTreesClassifier(9, max_depth=6, random_state=0)),
    "vote_made4": (
        "made4",
        VotingClassifier(
            [
                ("a", ExtraTreesClassifier(5, max_depth=5, random_state=5)),
                ("b", RandomForestClassifier(4, max_depth=5, random_state=6)),
            ],
            weights=[2, 1],
        ),
    ),
    "soft_iris": (
        "iris",
        VotingClassifier(
            [
                ("a", ExtraTreesClassifier(6, max_depth=3, random_state=5)),
                ("b", GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=6)),
            ],
            voting="soft",
        ),
    ),
    "median_diabetes": ("diabetes", AdaBoostRegressor(n_estimators=6, random_state=0)),
    "median_few": ("few", AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), n_estimators=9, random_state=1)),
    "sets_lgb": (
        "sets",
        lightgbm.LGBMClassifier(n_estimators=8, num_leaves=8, min_data_per_group=5, verbose=-1, n_jobs=1),
    ),
    "sets_hgb": (
        "sets",
        HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=10, categorical_features=[0, 1, 2], random_state=0),
    ),
    "digits_tree8": ("digits", DecisionTreeClassifier(max_depth=8, random_state=0)),
    "targets_tree6": ("targets", DecisionTreeRegressor(max_depth=6, random_state=0)),
    "labels_tree4": ("labels", DecisionTreeClassifier(max_depth=4, random_state=0)),
    "bc_ada15": ("bc", AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=15, random_state=0)),
    "few_rf15x7": ("few", RandomForestClassifier(15, max_depth=7, random_state=0)),
    "few_tree5": ("few", DecisionTreeClassifier(max_depth=5, random_state=0)),
    "wine_tree": ("wine", DecisionTreeClassifier(max_depth=3, random_state=0)),
    "diabetes_tree7": ("diabetes", DecisionTreeRegressor(max_depth=7, random_state=0)),
    "diabetes_gb30x2": ("diabetes", GradientBoostingRegressor(n_estimators=30, max_depth=2, random_state=0)),
    "bc_stumps30": ("bc", GradientBoostingClassifier(n_estimators=30, max_depth=1, random_state=0)),
    "made2_lgb15": ("made2", lightgbm.LGBMClassifier(n_estimators=15, num_leaves=8, verbose=-1, n_jobs=1)),
    "made7_xgb10x3": ("made7", _xgb(n_estimators=10, max_depth=3)),
    "flat_rf3": ("flat", RandomForestClassifier(3, random_state=0)),
    "flat_tree": ("flat", DecisionTreeClassifier(random_state=0)),
    "level_rf4": ("level", RandomForestRegressor(4, random_state=0)),
    "levels_rf2": ("levels", RandomForestRegressor(2, random_state=0)),
    "rules_bc": ("bc", RandomForestClassifier(6, max_depth=4, random_state=0)),
    "rules_made2": ("made2", RandomForestClassifier(6, max_depth=4, random_state=0)),
    "digits_rf60x7": ("digits", RandomForestClassifier(60, max_depth=7, random_state=0)),
}


def _tree(depth: int | None) -> Any:
    return DecisionTreeClassifier(max_depth=depth, random_state=0)


def _forest(trees: int, depth: int | None) -> Any:
    return RandomForestClassifier(trees, max_depth=depth, random_state=0)


def _boosted(trees: int, depth: int) -> Any:
    return GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=0)


# From a stump on: each is built with other inputs at other levels.
SMALL: dict[str, tuple[str, Any]] = {
    **{
        f"dt_{data}_{depth}": (data, _tree(depth))
        for data, depth in (
            ("bc", 1), ("made3", 2), ("wine", 2), ("made4", 4), ("made2", 3), ("bc", 5), ("few", 1), ("digits", 3),
            ("moon", 4), ("made5", 5), ("wine", 1), ("iris", 2), ("made2", 6), ("few", 3)
        )
    },
    **{
        f"rf_{data}_{trees}x{depth}": (data, _forest(trees, depth))
        for data, trees, depth in (
            ("made2", 3, 4), ("made3", 3, 3), ("wine", 2, 2), ("bc", 5, 3), ("made2", 2, 5), ("moon", 3, 4),
            ("iris", 4, 3), ("bc", 2, 1), ("made4", 6, 4), ("few", 3, 4), ("digits", 3, 5), ("bc", 10, 4),
            ("made3", 10, 5), ("made2", 20, 5), ("bc", 30, 6), ("wine", 15, None), ("made2", 40, 6)
        )
    },
    **{
        f"gb_{data}_{trees}x{depth}": (data, _boosted(trees, depth))
        for data, trees, depth in (
            ("bc", 2, 1), ("made2", 4, 2), ("bc", 8, 3), ("wine", 2, 2), ("made2", 12, 3), ("moon", 20, 2),
            ("bc", 60, 2)
        )
    },
    **{
        f"xgb_{data}_{trees}x{depth}": (data, _xgb(n_estimators=trees, max_depth=depth))
        for data, trees, depth in (
            ("bc", 3, 2), ("made3", 3, 3), ("iris", 2, 2), ("missing", 3, 3), ("bc", 12, 4), ("made2", 1, 3)
        )
    },
    **{
        f"dtr_{data}_{depth}": (data, DecisionTreeRegressor(max_depth=depth, random_state=0))
        for data, depth in (("diabetes", 1), ("friedman", 2), ("diabetes", 4), ("few", 3), ("targets", 3))
    },
    **{
        f"rfr_{data}_{trees}x{depth}": (data, RandomForestRegressor(trees, max_depth=depth, random_state=0))
        for data, trees, depth in (("diabetes", 3, 3), ("friedman", 4, 4), ("diabetes", 12, 5), ("targets", 2, 3))
    },
    "et_bc_3": ("bc", ExtraTreesClassifier(3, max_depth=4, random_state=0)),
    "et_made3_5": ("made3", ExtraTreesClassifier(5, max_depth=5, random_state=0)),
    "iso_5": ("bc", IsolationForest(n_estimators=5, max_samples=16, random_state=0)),
    "ada_bc4": ("bc", AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=4, random_state=0)),
    "lgb_made2_4": ("made2", lightgbm.LGBMClassifier(n_estimators=4, num_leaves=6, verbose=-1, n_jobs=1)),
    "lgb_cat_3": (
        "categories",
        lightgbm.LGBMClassifier(
            n_estimators=3, num_leaves=6, min_data_per_group=1, max_cat_to_onehot=1, verbose=-1, n_jobs=1
        ),
    ),
    "gbr_diab_15": ("diabetes", GradientBoostingRegressor(n_estimators=15, max_depth=2, random_state=0)),
}  # fmt: skip
FORMS = ("words", "float", "struct", "raw")
RAW = {"few": "*=int16", "digits": "*=uint8", "categories": "*=uint8", "bc": "*=int16"}  # types of raw columns


def builds() -> Iterator[tuple[Subject, str, str]]:
    """Forests, the form of their inputs and the types of raw ones: small ones in every form, at -O0 and -O1; others in
    words, of a fifth also as floats, each at -O1 and at another level."""
    names = np.random.default_rng(7).permutation(list(SMALL)).tolist()
    for turn in range(len(FORMS)):
        for number, name in enumerate(names):
            form, of = FORMS[(number + turn) % len(FORMS)], SMALL[name][0]
            if of == "categories" and form == "float":
                form = "words"
            level = 0 if (number + turn) % 3 or (form == "float" and turn < 2) else 1
            types = RAW.get(of, "0=int16,*=float") if form == "raw" else ""
            yield from ((subject, form, types) for subject in made(name, level))
    number = 0
    for level in (1, 2, 0):
        for place, name in enumerate(MODELS):
            if level == 1 or (place % 2 == 0) is (level == 0):
                for subject in made(name, level):
                    yield subject, "words", ""
                    if number % 5 == 2 and subject.data != "categories":
                        yield subject, "float", ""
                    number += 1


def made(name: str, level: int) -> Iterator[Subject]:
    """A model at a level, if it is not too large."""
    of, model = (MODELS | SMALL)[name]
    X, y = data(of)
    model.fit(X, y, **({"categorical_feature": [*range(CATEGORIES[of])]} if of in CATEGORIES and "lgb" in name else {}))
    rules = name.startswith("rules")
    how: dict[str, Any] = (
        {"passes": "quantize,extract-rules{tolerance=0.2}", "held_out": 0.3} if rules else {"level": level}
    )
    forest = replace(forestc.quantize(model, X, y, **how), name="m")
    if sum(len(tree.inner) for tree in forest.trees) <= MOST_SPLITS:
        yield Subject(f"{name} -O{level}", of, forest, X)
