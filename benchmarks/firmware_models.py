"""Makes the forests that benchmarks/firmware_costs.py fits forestc/costs/firmware.json on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn import datasets, ensemble
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import forestc
from forestc.forest.ir import Forest

MOST_SPLITS = 2500
# CATEGORIES counts the columns of categories of a data set; these columns come first.
CATEGORIES = {"categories": 5, "sets": 3}


@dataclass(frozen=True)
class Subject:
    """A forest, its data set and the rows that trained it."""

    name: str
    data: str
    forest: Forest
    rows: NDArray[np.float64]


def data(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if name.startswith("made"):
        classes = int(name[4:])
        return datasets.make_classification(
            800, 16, n_informative=8, n_classes=classes, random_state=classes, flip_y=0.1
        )
    if name == "categories":  # Columns have 12, 60 or 100 categories.
        random = np.random.default_rng(0)
        X = random.integers(0, [12, 12, 60, 60, 12, 100], (1500, 6)).astype(np.float64)
        secret = random.normal(size=(6, 100))
        return X, (sum(secret[k, X[:, k].astype(int)] for k in range(6)) > 0).astype(int)
    if name == "moon":  # The circles have two features.
        return datasets.make_circles(600, noise=0.2, factor=0.5, random_state=15)  # type: ignore[no-any-return]
    if name == "friedman":
        return datasets.make_friedman2(500, noise=20.0, random_state=16)  # type: ignore[no-any-return]
    if name == "sets":  # Three columns of small sets stand beside three of numbers.
        random = np.random.default_rng(3)
        X = np.column_stack([random.integers(0, [6, 20, 8], (800, 3)), random.normal(size=(800, 3)).round(2)])
        secret = random.normal(size=20)
        return X.astype(np.float64), (secret[X[:, 1].astype(int)] + X[:, 3] > 0.2).astype(int) + (X[:, 0] > 3)
    if name == "missing":  # A fifth of the values is missing.
        random = np.random.default_rng(1)
        X, y = datasets.make_classification(800, 12, n_informative=8, n_classes=3, random_state=11)
        return np.where(random.random(X.shape) < 0.2, np.nan, X), y
    if name == "targets":
        return datasets.make_regression(600, 8, n_informative=6, n_targets=3, noise=5.0, random_state=12)  # type: ignore[no-any-return]
    if name == "flat":  # The features are constant, so there is nothing to split on.
        return np.zeros((60, 4)), np.arange(60) % 3
    if name == "level":
        return np.zeros((60, 4)), np.arange(60) / 7.0
    if name == "levels":
        return np.zeros((60, 4)), np.arange(180).reshape(60, 3) / 7.0
    if name == "labels":  # The labels have two targets.
        X, y = datasets.make_classification(600, 10, n_informative=7, n_classes=4, random_state=13)
        return X, np.stack([y % 2, y], axis=1)
    if name == "few":  # The features are three integers of 10 bits.
        random = np.random.default_rng(2)
        X = random.integers(0, 1024, (900, 3)).astype(np.float64)
        return X, (X[:, 0] + 2 * X[:, 1] - X[:, 2] + random.normal(0, 200, 900) > 1000).astype(int)
    X, y = getattr(datasets, f"load_{'breast_cancer' if name == 'bc' else name}")(return_X_y=True)
    return X, y


def _xgb(**options: Any) -> Any:
    return xgboost.XGBClassifier(n_jobs=1, **options)


def _lgb(rounds: int, leaves: int, **more: Any) -> Any:
    return lightgbm.LGBMClassifier(n_estimators=rounds, num_leaves=leaves, verbose=-1, n_jobs=1, **more)


def _vote(*members: Any, **more: Any) -> Any:
    return ensemble.VotingClassifier([*zip("abc", members, strict=False)], **more)


def _tree(depth: int | None, seed: int = 0) -> Any:
    return DecisionTreeClassifier(max_depth=depth, random_state=seed)


def _forest(trees: int, depth: int | None, seed: int = 0) -> Any:
    return ensemble.RandomForestClassifier(trees, max_depth=depth, random_state=seed)


def _extra(trees: int, depth: int, seed: int = 0) -> Any:
    return ensemble.ExtraTreesClassifier(trees, max_depth=depth, random_state=seed)


def _boosted(trees: int, depth: int, seed: int = 0) -> Any:
    return ensemble.GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=seed)


MODELS: dict[str, tuple[str, Any]] = {
    "rf10x6": ("bc", _forest(10, 6)),
    "rf40x8": ("bc", _forest(40, 8)),
    "xgb13x3": ("bc", _xgb(n_estimators=13, max_depth=3)),
    "rf4x5": ("bc", _forest(4, 5)),
    "digits_rf10x6": ("digits", _forest(10, 6)),
    "digits_et8x9": ("digits", _extra(8, 9)),
    "digits_xgb8x3": ("digits", _xgb(n_estimators=8, max_depth=3)),
    "digits_rf30x4": ("digits", _forest(30, 4)),
    "iris_rf20": ("iris", ensemble.RandomForestClassifier(20, random_state=0)),
    "iris_xgb5": ("iris", _xgb(n_estimators=5, max_depth=4)),
    "iris_et3": ("iris", _extra(3, 3)),
    "wine_gb10x3": ("wine", ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0)),
    "wine_rf50x3": ("wine", _forest(50, 3)),
    "wine_xgb30x2": ("wine", _xgb(n_estimators=30, max_depth=2)),
    "diabetes_rf10x6": ("diabetes", ensemble.RandomForestRegressor(10, max_depth=6, random_state=0)),
    "diabetes_et20x4": ("diabetes", ensemble.ExtraTreesRegressor(20, max_depth=4, random_state=0)),
    "diabetes_xgb40x3": ("diabetes", xgboost.XGBRegressor(n_estimators=40, max_depth=3, n_jobs=1)),
    "made2_rf15x8": ("made2", _forest(15, 8)),
    "made2_gb100x2": ("made2", _boosted(100, 2)),
    "made2_xgb20x5": ("made2", _xgb(n_estimators=20, max_depth=5)),
    "made5_rf12x7": ("made5", _forest(12, 7)),
    "made5_xgb6x4": ("made5", _xgb(n_estimators=6, max_depth=4)),
    "categories_lgb": ("categories", _lgb(12, 12, min_data_per_group=1, max_cat_to_onehot=1)),
    "made4_et25x5": ("made4", _extra(25, 5)),
    "missing_xgb8x4": ("missing", _xgb(n_estimators=8, max_depth=4)),
    "missing_hgb6": ("missing", ensemble.HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=12, random_state=0)),
    "targets_rf8x5": ("targets", ensemble.RandomForestRegressor(8, max_depth=5, random_state=0)),
    "labels_rf12x5": ("labels", _forest(12, 5)),
    "iso20": ("bc", ensemble.IsolationForest(n_estimators=20, max_samples=64, random_state=0)),
    "vote3": ("wine", _vote(_forest(5, 4), _extra(6, 4, 1), _tree(5, 2))),
    "soft2": ("bc", _vote(_forest(8, 4, 3), _boosted(10, 2, 4), voting="soft")),
    "moon_xgb": ("moon", _xgb(n_estimators=14, max_depth=4)),
    "moon_rf": ("moon", _forest(8, 6)),
    "friedman_gb": ("friedman", ensemble.GradientBoostingRegressor(n_estimators=25, max_depth=3, random_state=0)),
    "friedman_rf": ("friedman", ensemble.RandomForestRegressor(7, max_depth=5, random_state=0)),
    "made3_et9": ("made3", _extra(9, 6)),
    "vote_made4": ("made4", _vote(_extra(5, 5, 5), _forest(4, 5, 6), weights=[2, 1])),
    "soft_iris": ("iris", _vote(_extra(6, 3, 5), _boosted(4, 2, 6), voting="soft")),
    "median_diabetes": ("diabetes", ensemble.AdaBoostRegressor(n_estimators=6, random_state=0)),
    "median_few": (
        "few",
        ensemble.AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), n_estimators=9, random_state=1),
    ),
    "sets_lgb": ("sets", _lgb(8, 8, min_data_per_group=5)),
    "sets_hgb": (
        "sets",
        ensemble.HistGradientBoostingClassifier(
            max_iter=6, max_leaf_nodes=10, categorical_features=[0, 1, 2], random_state=0
        ),
    ),
    "digits_tree8": ("digits", _tree(8)),
    "targets_tree6": ("targets", DecisionTreeRegressor(max_depth=6, random_state=0)),
    "labels_tree4": ("labels", _tree(4)),
    "bc_ada15": (
        "bc",
        ensemble.AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=15, random_state=0),
    ),
    "few_rf15x7": ("few", _forest(15, 7)),
    "few_tree5": ("few", _tree(5)),
    "wine_tree": ("wine", _tree(3)),
    "diabetes_tree7": ("diabetes", DecisionTreeRegressor(max_depth=7, random_state=0)),
    "diabetes_gb30x2": ("diabetes", ensemble.GradientBoostingRegressor(n_estimators=30, max_depth=2, random_state=0)),
    "bc_stumps30": ("bc", _boosted(30, 1)),
    "made2_lgb15": ("made2", _lgb(15, 8)),
    "made7_xgb10x3": ("made7", _xgb(n_estimators=10, max_depth=3)),
    "flat_rf3": ("flat", ensemble.RandomForestClassifier(3, random_state=0)),
    "flat_tree": ("flat", DecisionTreeClassifier(random_state=0)),
    "level_rf4": ("level", ensemble.RandomForestRegressor(4, random_state=0)),
    "levels_rf2": ("levels", ensemble.RandomForestRegressor(2, random_state=0)),
    "rules_bc": ("bc", _forest(6, 4)),
    "rules_made2": ("made2", _forest(6, 4)),
    "digits_rf60x7": ("digits", _forest(60, 7)),
}


# SMALL holds models from a stump on; each is built with every form of inputs, at different levels.
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
        f"rfr_{data}_{trees}x{depth}": (data, ensemble.RandomForestRegressor(trees, max_depth=depth, random_state=0))
        for data, trees, depth in (("diabetes", 3, 3), ("friedman", 4, 4), ("diabetes", 12, 5), ("targets", 2, 3))
    },
    "et_bc_3": ("bc", _extra(3, 4)),
    "et_made3_5": ("made3", _extra(5, 5)),
    "iso_5": ("bc", ensemble.IsolationForest(n_estimators=5, max_samples=16, random_state=0)),
    "ada_bc4": ("bc", ensemble.AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=4, random_state=0)),
    "lgb_made2_4": ("made2", _lgb(4, 6)),
    "lgb_cat_3": ("categories", _lgb(3, 6, min_data_per_group=1, max_cat_to_onehot=1)),
    "gbr_diab_15": ("diabetes", ensemble.GradientBoostingRegressor(n_estimators=15, max_depth=2, random_state=0)),
}  # fmt: skip
FORMS = ("words", "float", "struct", "raw")
# RAW gives the types of raw columns, by data set.
RAW = {"few": "*=int16", "digits": "*=uint8", "categories": "*=uint8", "bc": "*=int16"}


def builds() -> Iterator[tuple[Subject, str, str]]:
    """Yields forests with the form of their inputs and the types of raw columns. Forests of SMALL come once in every
    form, at -O0 or -O1. Forests of MODELS come at -O1 and at -O0 or -O2, with words and, for a fifth, also with floats.
    """
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
        for index, name in enumerate(MODELS):
            if level == 1 or (index % 2 == 0) is (level == 0):
                for subject in made(name, level):
                    yield subject, "words", ""
                    if number % 5 == 2 and subject.data != "categories":
                        yield subject, "float", ""
                    number += 1


def made(name: str, level: int) -> Iterator[Subject]:
    """Trains a model and quantizes it at a level; yields it if it has at most MOST_SPLITS splits."""
    of, model = (MODELS | SMALL)[name]
    X, y = data(of)
    model.fit(X, y, **({"categorical_feature": [*range(CATEGORIES[of])]} if of in CATEGORIES and "lgb" in name else {}))
    rules = name.startswith("rules")
    how: dict[str, Any] = (
        {"passes": "round-leaves,extract-rules{tolerance=0.2}", "held_out": 0.3} if rules else {"level": level}
    )
    forest = replace(forestc.quantize(model, X, y, **how), name="m")
    if sum(len(tree.inner) for tree in forest.trees) <= MOST_SPLITS:
        yield Subject(f"{name} -O{level}", of, forest, X)
