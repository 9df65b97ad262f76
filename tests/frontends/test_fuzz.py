"""Mutated model files: a ForestcError or a valid forest, nothing else; 3,000 mutations in all."""

from __future__ import annotations

import io
import json
import random

import pytest
import skops.io
import xgboost
from models import BINARY
from mutations import judged, mutated_bytes, mutated_document, read_json, read_ubj
from sklearn.ensemble import RandomForestClassifier

from forestc.frontends import load


@pytest.fixture(scope="module")
def model():
    X, y = BINARY(return_X_y=True)
    return xgboost.XGBClassifier(n_estimators=3, max_depth=3).fit(X, y).get_booster()


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
