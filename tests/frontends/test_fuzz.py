"""Tests that damaged model files of every kind give a ForestcError or a valid forest, nothing else."""

from __future__ import annotations

import json
import random
import re
import tempfile
from functools import cache
from pathlib import Path

import catboost
import numpy as np
import onnx
import pytest
import skops.io
import xgboost
from example_counts import examples
from mutations import mutated_bytes, mutated_document, reads_whole
from onnx_models import (
    DOUBLE,
    INT64,
    STUMP,
    THREE,
    TREES,
    around,
    chain,
    classifier,
    ensemble5,
    node,
    regressor,
    scaler,
)  # fmt: skip
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier

from forestc.forest.text import print_forest
from forestc.frontends import load, read_bytes
from forestc.frontends.lightgbm.reader import read_text

LIGHTGBM = Path(__file__).parents[1] / "cases" / "lightgbm"
BINARY, MULTI = load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)
LOSSGUIDE = {"grow_policy": "Lossguide", "max_leaves": 12, "depth": 6}
SUFFIXES = {"ubj": ".ubj", "lightgbm": ".txt", "onnx": ".onnx"}


@cache
def booster(form):
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=3).fit(*BINARY)
    return bytes(model.get_booster().save_raw(form))


@cache
def exported(classes, nested):

    make = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "iterations": 4, "depth": 3}
    with tempfile.TemporaryDirectory() as folder:
        model = make(**quiet | (LOSSGUIDE if nested else {})).fit(*(MULTI if classes == 3 else BINARY))
        model.save_model(f"{folder}/m.json", format="json")
        return Path(f"{folder}/m.json").read_bytes()


ONNX = {
    "classifier": lambda: classifier([*TREES[:1], STUMP], ["n", "y"], "LOGISTIC", base=[0.5]),
    "regressor": lambda: regressor(THREE, 3, "SOFTMAX", kind=DOUBLE, tensors=True),
    "ensemble": lambda: ensemble5([(1, "BRANCH_MEMBER", [1.0, 33.0], STUMP, [(0, 4.0)]), STUMP]),
    "pipeline": lambda: around(
        [
            node("Imputer", ["rows"], ["t"], imputed_value_floats=[5.0], replaced_value_float=1.0),
            scaler("t", "u", [0.5, 1.0, 0.0], [-2.0, 1.0, 0.1]),
            node("ArrayFeatureExtractor", ["u", "i"], ["X"]),
        ],
        [node("Add", ["sums", "c"], ["t2"]), node("ArgMax", ["t2"], ["label"], axis=1)],
        {"i": np.array([2, 0, 1]), "c": np.float32([0.5])},
        outputs=[("label", INT64)],
        trees=THREE,
        targets=3,
    ),
    "chain": lambda: chain([1.0, 2.0, 5.0]),
}
JSON = {
    "xgboost": lambda: booster("json"),
    "catboost-binary": lambda: exported(2, False),
    "catboost-multi": lambda: exported(3, False),
    "catboost-nested": lambda: exported(3, True),
    "catboost-regression": lambda: exported(0, True),
}
FILES = {
    **JSON,
    "xgboost-ubj": lambda: booster("ubj"),
    **{f"lightgbm-{name}": (LIGHTGBM / f"{name}.txt").read_bytes for name in ("4.7_zero", "4.7_multi", "2.0_binary")},
    **{f"onnx-{name}": lambda make=make: make().SerializeToString() for name, make in ONNX.items()},
}  # fmt: skip


def reader(kind):
    suffix = next((suffix for part, suffix in SUFFIXES.items() if part in kind), ".json")
    return read_text if suffix == ".txt" else lambda data, name: read_bytes(data, name + suffix)


@pytest.mark.parametrize("kind", FILES)
def test_bytes(kind):
    data, source, count = FILES[kind](), random.Random(2), 500
    read = 0
    for _ in range(count):
        broken = mutated_bytes(data, source)
        # Without the sizes LightGBM reads on, so that the rest of the file is tested.
        if "lightgbm" in kind and source.random() < 0.6:
            broken = re.sub(rb"tree_sizes=[^\n]*\n", b"", broken)
        read += reads_whole(reader(kind), broken)
    assert 0 < read < count


@pytest.mark.parametrize("kind", JSON)
def test_documents(kind):
    document, source, count = json.loads(JSON[kind]()), random.Random(1), 1200 if kind == "xgboost" else examples(150)
    read = sum(reads_whole(reader(kind), mutated_document(document, source)) for _ in range(count))
    assert 0 < read < count


@pytest.mark.parametrize("kind", FILES)
def test_truncation_is_refused_or_leaves_the_whole_forest(kind):
    data, read = FILES[kind](), reader(kind)
    whole = print_forest(read(data, "m")).split("\n", 2)[2]
    for end in range(0, len(data) - 1, max(1, len(data) // 200) if len(data) > 9000 else 1):
        if reads_whole(read, data[:end]) and "onnx" not in kind:  # An ONNX graph may end after any of its fields.
            assert print_forest(read(data[:end], "m")).split("\n", 2)[2] == whole


NUMBERS = {
    int: [0, -1, 1, 2, 3, 255, 2**31 - 1, 2**31, -(2**31), 2**62, -(2**63)],
    float: [0.0, -0.0, 1e38, -1e38, float("nan"), float("inf"), -float("inf"), 1e-45],
}


def mutate(message, source):
    """Changes one field of a message, anywhere in its tree."""
    if not (fields := message.ListFields()):
        return
    field, value = source.choice(fields)
    if hasattr(value, "ListFields"):
        mutate(value, source)
    elif not (hasattr(value, "append") and len(value)):
        try:
            setattr(message, field.name, source.choice(NUMBERS[type(value)]))
        except (KeyError, ValueError):  # The text is no number, or one that the field does not take.
            message.ClearField(field.name)
    else:
        place = source.randrange(len(value))
        inner = value[place]
        if hasattr(inner, "ListFields") and source.random() < 0.8:
            mutate(inner, source)
        elif source.random() < 0.5 and type(inner) in NUMBERS:
            value[place] = source.choice([*NUMBERS[type(inner)], value[source.randrange(len(value))]])
        elif source.random() < 0.5:
            value.pop(place)
        else:
            value.append(inner)


@pytest.mark.parametrize("kind", ONNX)
def test_messages(kind):
    whole, source, read = ONNX[kind](), random.Random(2), 0
    for _ in range(400):
        copy = onnx.ModelProto()
        copy.CopyFrom(whole)
        for _ in range(source.randint(1, 3)):
            mutate(copy, source)
        read += reads_whole(reader("onnx"), copy.SerializeToString())
    assert 0 < read < 400


def test_skops_bytes(tmp_path):
    path = tmp_path / "m.skops"
    skops.io.dump(RandomForestClassifier(2, max_depth=2).fit(*BINARY), path)
    whole, source = path.read_bytes(), random.Random(3)

    def read(data, name):
        path.write_bytes(data)
        return load(path)

    assert sum(reads_whole(read, mutated_bytes(whole, source)) for _ in range(60)) < 60
