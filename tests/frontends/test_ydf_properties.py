"""Compares YDF models of random settings with their library, on rows on borders, with missing values and unknown
categories."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import forestc
from forestc.forest.numbers import Category
from forestc.forest.text import print_forest

ydf = pytest.importorskip("ydf")
ydf.verbose(0)

ROWS = 20_000
ULPS = 16  # units in the last place by which exp differs: YDF multiplies a softmax by 1 / sum, all in float32
SPECIAL = np.float32([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 3e38])
TASKS = {
    "GradientBoostedTrees": ("classes", "classes", "several", "numbers", "ranks", "counts", "absolute", "focal"),
    "RandomForest": ("classes", "several", "numbers"),
    "Cart": ("classes", "several", "numbers"),
    "IsolationForest": ("anomalies",),
}
LOSSES = {"counts": "POISSON", "absolute": "MEAN_AVERAGE_ERROR", "focal": "BINARY_FOCAL_LOSS"}
CLASSIFIES = ("classes", "several", "focal")


def drawn(seed: int) -> tuple[str, str, dict[str, Any]]:
    """Returns the name of a learner, a task and settings."""
    draw = random.Random(seed)
    name = draw.choice(["GradientBoostedTrees"] * 4 + ["RandomForest"] * 2 + ["Cart", "IsolationForest"])
    task = draw.choice(TASKS[name])
    settings: dict[str, Any] = {"random_seed": seed, "discretize_numerical_columns": draw.random() < 0.25}
    if name != "IsolationForest":
        policies = ["GLOBAL_IMPUTATION"] * 3 + ["LOCAL_IMPUTATION", "RANDOM_LOCAL_IMPUTATION"]
        settings |= {"missing_value_policy": draw.choice(policies), "allow_na_conditions": draw.random() < 0.3}
        settings |= {"max_depth": draw.choice([2, 4, 6, 9, 16]), "min_examples": draw.choice([1, 5, 20])}
        settings |= {"categorical_algorithm": draw.choice(["CART", "RANDOM"])}
        if draw.random() < 0.25:
            settings |= {"growing_strategy": "BEST_FIRST_GLOBAL", "max_num_nodes": draw.choice([8, 40, 200])}
            settings |= {"max_depth": -1, "missing_value_policy": draw.choice(policies[:4])}  # YDF has no others here
    match name:
        case "GradientBoostedTrees":
            settings |= {"num_trees": draw.choice([1, 5, 30, 90]), "shrinkage": draw.choice([0.05, 0.1, 0.5])}
            settings |= {"loss": LOSSES[task]} if task in LOSSES else {}
            settings |= {"apply_link_function": False} if task in CLASSIFIES and draw.random() < 0.2 else {}
            if task == "ranks":
                losses = ["LAMBDA_MART_NDCG5", "XE_NDCG_MART", "LAMBDA_MART_NDCG"]
                settings |= {"ranking_group": "group", "loss": draw.choice(losses)}
        case "RandomForest":
            settings |= {"num_trees": draw.choice([1, 7, 10, 50, 100]), "winner_take_all": draw.random() < 0.5}
        case "IsolationForest":
            settings |= {"num_trees": draw.choice([1, 10, 100]), "subsample_count": draw.choice([2, 30, 256])}
    return name, task, settings


def table(random, count):
    """Returns columns of each type, with missing values."""
    columns = {
        "a": random.normal(size=count).astype(np.float32),
        "b": (random.integers(0, 40, count) / 4).astype(np.float32),
        "c": random.normal(size=count).astype(np.float32) * 100,
        "few": random.choice(list("uvwxyz"), count).astype(object),
        "many": np.array([f"k{k}" for k in random.integers(0, 80, count)], object),
        "flag": random.random(count) < 0.3,
        "code": random.integers(0, 9, count),
    }
    for name in ("a", "b", "c"):
        columns[name][random.random(count) < 0.08] = np.nan
    for name in ("few", "many"):
        columns[name][random.random(count) < 0.08] = ""
    return columns


def trained(seed, count=1500):
    """Returns a trained model and its table."""
    name, task, settings = drawn(seed)
    random = np.random.default_rng(seed)
    columns = table(random, count)
    sums = np.nan_to_num(columns["a"]) + 0.3 * np.nan_to_num(columns["b"]) * (columns["few"] == "u")
    sums += columns["flag"] + np.sin(columns["code"]) + 0.01 * np.nan_to_num(columns["c"])
    sums += (np.char.str_len(columns["many"].astype(str)) == 2) + 0.5 * random.normal(size=count)
    labels = {
        "classes": np.where(sums > 1, "p", "n"),
        "several": np.digitize(sums, [0, 1, 2]).astype(str),
        "ranks": np.clip(sums, 0, 4).round().astype(np.float32),
        "counts": np.clip(sums, 0, 9).round().astype(np.float32),
    }
    labels["focal"] = labels["classes"]
    data = columns | {"label": labels.get(task, sums.astype(np.float32))}
    data["group"] = np.repeat(np.arange(count // 10), 10).astype(str).astype(object)
    features = [name for name in columns if name not in ("flag", "code")]
    features.append(ydf.Feature("flag", ydf.Semantic.BOOLEAN))
    features.append(ydf.Feature("code", ydf.Semantic.CATEGORICAL, is_already_integerized=True))
    learner = getattr(ydf, f"{name}Learner")
    if name == "IsolationForest":
        return learner(features=features, **settings).train(columns), columns
    kind = "CLASSIFICATION" if task in CLASSIFIES else "RANKING" if task == "ranks" else "REGRESSION"
    return learner(label="label", features=features, task=ydf.Task[kind], **settings).train(data), columns


def hard_rows(forest, columns, seed, count=ROWS):
    """Returns columns for YDF, and the same rows for the forest."""
    random = np.random.default_rng(seed)
    chosen = random.integers(0, len(columns["a"]), count)
    columns = {name: values[chosen] for name, values in columns.items()}
    thresholds = {f.name: forest.conditions.thresholds(index) for index, f in enumerate(forest.features)}
    for name in ("a", "b", "c"):
        if len(thresholds.get(name, ())):
            on = random.choice(thresholds[name], count).astype(np.float32)
            step = random.integers(-1, 2, count)
            beside = np.nextafter(on, np.where(step < 0, -np.inf, np.inf).astype(np.float32))
            columns[name] = np.where(random.random(count) < 0.5, np.where(step == 0, on, beside), columns[name])
        columns[name] = np.where(random.random(count) < 0.04, random.choice(SPECIAL, count), columns[name])
    for name in ("few", "many"):
        other = random.choice(np.array(["", "new", "<OOD>"], object), count)
        columns[name] = np.where(random.random(count) < 0.1, other, columns[name])
    columns["code"] = np.where(random.random(count) < 0.1, random.choice([-1, 0, 8], count), columns["code"])
    rows = np.zeros((count, forest.columns))
    for feature in forest.features:
        values = columns[feature.name]
        if feature.labels:
            codes = {label: float(code) for code, label in enumerate(feature.labels)} | {"": np.nan}
            values = np.array([codes.get(text, -1.0) for text in values.tolist()])
        elif isinstance(feature.number, Category):  # -1 is missing
            values = np.where(values < 0, np.nan, values)
        rows[:, feature.column] = values
    return columns, rows


def ulps(mine, theirs):
    """Returns the distances of positive float32 numbers in units in the last place."""
    return np.abs(mine.view(np.int32).astype(np.int64) - theirs.view(np.int32))


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 60))])
@pytest.mark.each_case
def test_random_models_are_equal(seed):
    model, columns = trained(seed)
    forest = forestc.load(model)
    columns, rows = hard_rows(forest, columns, seed)
    slow = not model.list_compatible_engines()
    theirs = model.predict(columns, use_slow_engine=slow)
    result = forestc.evaluate(forest, rows)
    mine = (result.values if result.values.shape[1] > 1 else result.values[:, 0]).astype(np.float32)
    if forest.decides:
        assert (model.predict_class(columns, use_slow_engine=slow) == result.decision).all()
    link = forest.link.kind
    if link != "identity":
        assert ulps(mine, theirs).max() <= ULPS
    elif slow and model.name() == "RANDOM_FOREST" and forest.decides:
        assert ulps(mine, theirs).max() <= 4  # generic trees divide by the sum of all shares
    else:
        shares = model.name() == "RANDOM_FOREST" and forest.decides
        assert np.array_equal(np.minimum(mine, 1) if shares else mine, theirs)  # YDF cuts shares at 1


def test_leaves_have_ydf_s_numbers(tmp_path):
    model, columns = trained(9)
    model.save(str(tmp_path / "model"))
    forest = forestc.load(tmp_path / "model")
    columns, rows = hard_rows(forest, columns, 1, 500)
    others = {"label": np.array(["0"] * 500), "group": np.array(["0"] * 500, object)}
    assert (model.predict_leaves(columns | others) == forestc.evaluate(forest, rows).leaves).all()


def test_compressed_nodes_are_the_same_forest(tmp_path):
    from ydf.model.generic_model import NodeFormat

    model, _ = trained(9)
    for name in ("BLOB_SEQUENCE", "BLOB_SEQUENCE_GZIP"):
        model.set_node_format(NodeFormat[name])
        model.save(str(tmp_path / name))
    texts = {print_forest(forestc.load(path)).split("\n", 2)[2] for path in tmp_path.iterdir()}
    assert len(texts) == 1 and len({len(next(path.glob("nodes*")).read_bytes()) for path in tmp_path.iterdir()}) == 2


def test_a_learner_is_refused():
    with pytest.raises(forestc.ForestcError, match="what the method train"):
        forestc.load(ydf.RandomForestLearner(label="label"))
