"""Tests every trainer, with models read by the compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

import forestc
from forestc.costs.prices import prices
from forestc.errors import ForestcError, OptionError
from forestc.fields.parameters import Choice, Real, Whole, used
from forestc.training import TRAINERS, Task
from forestc.training.grid import steps_of

DATA = {"binary": load_breast_cancer, "classes": load_iris, "values": load_diabetes}


def task_of(kind: str, cost: str = "lut6") -> Task:
    rows = DATA[kind]()
    classes = 0 if kind == "values" else len(rows.target_names)
    names = tuple(str(name) for name in rows.feature_names)
    return Task(rows.data.astype(np.float64), rows.target, names, classes, prices(cost), seed=3)


def drawn(trainer, task, seed):
    """Draws options as a search does."""
    rng = np.random.default_rng(seed)
    chosen: dict[str, object] = {}
    for each in trainer.space(task):
        if not used(each, chosen):
            continue
        match each:
            case Choice():
                chosen[each.name] = each.values[rng.integers(len(each.values))]
            case Whole():
                chosen[each.name] = (
                    int(rng.integers(each.low, each.high + 1)) // (8 if each.name == "trees" else 1) or 2
                )
            case Real():
                chosen[each.name] = float(np.exp(rng.uniform(np.log(each.low), np.log(each.high))))
    return chosen


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", TRAINERS)
def test_what_is_trained_is_read_and_learns(name, kind):
    trainer, task = TRAINERS[name], task_of(kind)
    scores = []
    for seed in range(3):
        forest = forestc.load(trainer.fit(task, drawn(trainer, task, seed)))
        assert forest.columns == len(task.names)
        assert {feature.name for feature in forest.features} <= {
            *task.names, *("".join(c if c.isalnum() or c in "_-." else "_" for c in each) for each in task.names)
        }  # fmt: skip
        output = forestc.evaluate(forest, task.X)
        if kind == "values":
            scores.append(1 - ((output.values[:, 0] - task.y) ** 2).mean() / task.y.var())
        else:
            scores.append((np.asarray(output.decision) == task.y).mean())
    assert max(scores) > (0.3 if kind == "values" else 0.9)


@pytest.mark.parametrize("name", TRAINERS)
def test_what_is_tried_first_lies_within_the_space(name):
    task = task_of("classes")
    space = {each.name: each for each in TRAINERS[name].space(task)}
    for start in TRAINERS[name].starts(task):
        for key, value in start.items():
            one = space[key]
            assert value in one.values if isinstance(one, Choice) else one.low <= value <= one.high


def test_symmetric_trees_are_for_luts_alone():
    """A processor pays for all splits of a full tree, so such trees are neither advised nor tried for it."""
    priced = TRAINERS["priced"]
    assert {start["shape"] for start in priced.starts(task_of("binary"))} == {"symmetric"}
    assert {start["shape"] for start in priced.starts(task_of("binary", "flash"))} == {"free"}
    options = {"trees": 4, "shape": "symmetric", "depth": 6, "leaf_bits": 1, "unit": 0.5, "price": 1e-3}
    sizes = [len(priced.fit(task_of("binary", cost), options).trees[0].inner) for cost in ("lut6", "ice40", "flash")]
    assert sizes[0] >= sizes[1] > sizes[2]


@pytest.mark.parametrize("name", TRAINERS)
def test_defaults_are_enough_and_the_seed_decides(name):
    trainer, task = TRAINERS[name], task_of("classes")
    one, two = (forestc.load(trainer.fit(task, {})) for _ in range(2))
    assert len(one.trees) == len(two.trees)
    for a, b in zip(one.trees, two.trees, strict=True):
        assert (a.threshold == b.threshold).all() and (a.values == b.values).all()


@pytest.mark.parametrize("name", ["random-forest", "extra-trees", "xgboost", "lightgbm"])
def test_a_grid_holds_on_raw_rows(name):
    task = task_of("binary")
    steps = steps_of(task.X, 4)
    forest = forestc.load(TRAINERS[name].fit(task, {"input_bits": 4, "trees": 8}))
    for tree in forest.trees:
        of = steps[[forest.features[index].column for index in tree.feature[tree.inner]]]
        assert (tree.threshold[tree.inner] % of == 0).all()
    raw = forestc.evaluate(forest, task.X)
    rounded = forestc.evaluate(forest, np.floor(task.X / steps) * steps)
    assert (raw.leaves == rounded.leaves).all()


def test_leaves_of_few_bits_compile_to_few_bits(tmp_path):
    task = task_of("binary")
    forest = TRAINERS["priced"].fit(task, {"leaf_bits": 1, "unit": 0.5, "price": 1e-4, "trees": 10})
    forestc.compile(forest, task.X, tmp_path / "out", targets=["verilog"], level=0)
    design = forestc.open_design(tmp_path / "out")
    assert all(int(np.ptp(tree.values)) <= 1 for tree in design.forest.trees)
    assert (forestc.evaluate(design.forest, task.X).decision == forestc.evaluate(forest, task.X).decision).all()


def test_prices_of_a_processor_are_taken():
    task = task_of("binary", "flash-cortex-m0plus")
    assert len(TRAINERS["priced"].fit(task, {"price": 1e-4, "trees": 5}).trees) <= 5


@pytest.mark.parametrize("name", TRAINERS)
def test_one_class_is_refused(name):
    task = task_of("binary")
    with pytest.raises(OptionError, match="all rows have the same label"):
        TRAINERS[name].fit(Task(task.X, np.zeros(len(task.X), int), task.names, 2, task.prices), {})


@pytest.mark.parametrize("name", ["random-forest", "extra-trees", "xgboost"])
def test_what_a_library_rejects_is_reported_in_its_words(name):
    task = task_of("binary")
    X = task.X.copy()
    X[3, 0] = np.inf
    with pytest.raises(ForestcError, match=f"training rows: {name} rejects the rows"):
        TRAINERS[name].fit(replace(task, X=X), {})


def test_noise_on_few_rows_helps_on_others():
    X, y = load_digits(return_X_y=True)
    options = {
        "trees": 6,
        "depth": 6,
        "leaf_bits": 1,
        "unit": 0.8,
        "price": 1e-3,
        "sweeps": 1,
        "thresholds": "grid",
        "input_bits": 2,
    }
    right = []
    for noise in (0.0, 0.1):
        task = Task(X[::2], y[::2], tuple(f"x{index}" for index in range(64)), 10, prices("lut6"))
        forest = TRAINERS["priced"].fit(task, {**options, "noise": noise, "copies": 3})
        right.append((forestc.evaluate(forest, X[1::2]).index == y[1::2]).mean())
    assert right[1] > right[0] + 0.01
