"""Mutated model files: a ForestcError or a valid forest, nothing else; 3,000 mutations in all."""

from __future__ import annotations

import io
import json
import random

import numpy as np
import pytest
import skops.io
import xgboost
from models import BINARY
from sklearn.ensemble import RandomForestClassifier

from forestc.errors import ForestcError
from forestc.forest.evaluate import evaluate
from forestc.forest.text import print_forest
from forestc.forest.verify import verify
from forestc.frontends import load
from forestc.frontends.xgboost import read_json, read_ubj

INTERESTING = [0, -1, 1, 2, 255, 2**31 - 1, 2**31, -(2**31), 2**63, 1e308, -1e308, 0.5, None, True, "", "nan", "0"]
INTERESTING += [[], {}, [[]], float("nan"), float("inf"), "-1", "1e9", "[1,2]", [1, "a"], {"a": 1}]


@pytest.fixture(scope="module")
def model():
    X, y = BINARY(return_X_y=True)
    return xgboost.XGBClassifier(n_estimators=3, max_depth=3).fit(X, y).get_booster()


def judged(read, data):
    """Whether it was read; a forest that was read must be a whole one."""
    try:
        forest = read(data, "fuzz")
    except ForestcError as error:
        assert str(error) and "\n" not in str(error)
        return False
    verify(forest)
    evaluate(forest, np.zeros((2, forest.columns)))
    assert print_forest(forest)
    return True


def mutated_bytes(data, source):
    data = bytearray(data)
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(data))
        match source.randrange(5):
            case 0:
                data[place] ^= 1 << source.randrange(8)
            case 1:
                data[place] = source.randrange(256)
            case 2:
                del data[place : place + source.randint(1, 20)]
            case 3:
                data[place:place] = data[source.randrange(len(data)) :][: source.randint(1, 20)]
            case 4:
                del data[place:]
        if not data:
            return b""
    return bytes(data)


def mutated_document(document, source):
    """One or more places of a JSON document replaced, removed or doubled."""
    document = json.loads(json.dumps(document))
    for _ in range(source.randint(1, 3)):
        place = document
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            if not len(keys):
                break
            key = source.choice(list(keys))
            if isinstance(place[key], dict | list) and len(place[key]) and source.random() < 0.85:
                place = place[key]
                continue
            match source.randrange(3):
                case 0:
                    del place[key]
                case 1:
                    place[key] = source.choice(INTERESTING)
                case 2 if isinstance(place, list):
                    place.append(place[key])
                case _:
                    place[key] = source.choice(INTERESTING)
            break
    return json.dumps(document).encode()


def test_json_documents(model):
    document = json.loads(model.save_raw("json"))
    source = random.Random(1)
    read = sum(judged(read_json, mutated_document(document, source)) for _ in range(1200))
    assert 0 < read < 1200


@pytest.mark.parametrize(("form", "read"), [("json", read_json), ("ubj", read_ubj)])
def test_bytes(model, form, read):
    data = bytes(model.save_raw(form))
    source = random.Random(2)
    good = sum(judged(read, mutated_bytes(data, source)) for _ in range(800))
    assert 0 < good < 800


def test_truncation_at_any_place(model):
    for form, read in (("json", read_json), ("ubj", read_ubj)):
        data = bytes(model.save_raw(form))
        for end in range(0, len(data) - 1, max(1, len(data) // 100)):
            assert not judged(read, data[:end])


def test_skops_bytes(tmp_path):
    buffer = io.BytesIO()
    X, y = BINARY(return_X_y=True)
    skops.io.dump(RandomForestClassifier(2, max_depth=2).fit(X, y), tmp_path / "m.skops")
    buffer.write((tmp_path / "m.skops").read_bytes())
    source = random.Random(3)
    read = 0
    for _ in range(60):
        (tmp_path / "m.skops").write_bytes(mutated_bytes(buffer.getvalue(), source))
        read += judged(lambda _, __: load(tmp_path / "m.skops"), b"")
    assert read < 60
