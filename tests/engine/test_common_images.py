"""Tests images of several models: their rows have the same words, and each answers as its own quantized forest."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xgboost
from models import trained
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier

import forestc
from forestc.backends.engine.image_reader import read_image, row_words
from forestc.checks.images import compare_rows
from forestc.engine.folder import described, open_engine
from forestc.engine.image import image_of
from forestc.errors import CheckError, ForestcError
from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import Fixed
from forestc.forest.text import print_forest
from forestc.passes.common_words import with_common_words
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode

_, X, Y = trained("forest-binary")
WIDE = {"trees": 16, "nodes": 8192, "features": 30, "classes": 2, "walkers": 4, "word_bits": 16}


def boosted(rows, seed=0):
    return GradientBoostingClassifier(n_estimators=5, max_depth=3, random_state=seed).fit(X[rows], Y[rows])


def grown(rows, seed=0):
    return RandomForestClassifier(n_estimators=6, max_depth=5, random_state=seed).fit(X[rows], Y[rows])


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("common") / "engine"
    forestc.make_engine(folder, **WIDE)
    return folder


PASSES = (
    None,
    "simplify,quantize-inputs{input_bits=5,change=0.2},round-leaves",
    "simplify,quantize-inputs{exact=true},round-leaves",
)


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("seed", range(3))
def test_words_are_common_and_decisions_stay(passes, seed):
    first, second = slice(0, 120 + 40 * seed), slice(100, 569)
    models = {"a": boosted(first, seed), "b": grown(second, seed)}
    rows = {"a": X[first], "b": X[second]}
    if passes == PASSES[2]:  # Without rows only forests take missing values.
        models["a"] = grown(first, seed)
    forests = {name: forestc.quantize(model, rows[name], passes=passes) for name, model in models.items()}
    common = with_common_words(forests)
    random = np.random.default_rng(seed)
    noise = np.concatenate([X, random.normal(size=X.shape) * 10 ** random.uniform(-3, 6, X.shape), -X, 1e30 * X])
    changed = 0
    for old, new in zip(forests.values(), common, strict=True):
        before, after = (evaluate_words(forest, encode(forest, noise)) for forest in (old, new))
        assert np.array_equal(before.leaves, after.leaves) and np.array_equal(before.scores, after.scores)
        changed += sum(f.number != g.number for f, g in zip(old.features, new.features, strict=True))
    words = [dict(zip(forest.row_columns, encode(forest, noise).T, strict=True)) for forest in common]
    shared = words[0].keys() & words[1].keys()
    assert len(shared) > 3 and all(np.array_equal(words[0][column], words[1][column]) for column in shared)
    assert changed or passes == PASSES[2]


def test_the_command(engine, tmp_path, run):
    for name, model in (("old", boosted(slice(0, 200))), ("new", grown(slice(0, 569)))):
        (tmp_path / f"{name}.forest").write_text(print_forest(forestc.load(model)))
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "few.npy", X[:200])
    command = f"image {tmp_path}/old.forest {tmp_path}/new.forest --engine {engine} -o {tmp_path}/images --json"
    for rows in ("--rows {0}/x.npy", "--rows {0}/few.npy --rows {0}/x.npy"):
        status, out, _ = run(f"{command} {rows.format(tmp_path)}")
        assert status == 0
        figures = json.loads(out)
        counts = [figures["images"][name]["rows_compared"] for name in ("old", "new")]
        assert counts == ([569, 569] if "few" not in rows else [200, 569]) and figures["columns"]
        for name in ("old", "new"):
            data = (tmp_path / "images" / f"{name}.bin").read_bytes()
            assert len(data) == figures["images"][name]["bytes"]
            read_image(data, described(open_engine(engine)))
    assert "image of old" in run(command.replace("--json", f"--rows {tmp_path}/x.npy "))[1]
    command = command.replace("--json", "")
    status, _, said = run(f"{command} --rows {tmp_path}/x.npy --rows {tmp_path}/x.npy --rows {tmp_path}/x.npy")
    assert status and "--rows: 3 files of rows are given, for 2 models; give --rows once" in said
    status, _, said = run(command.replace("new.forest", "nwe.forest") + f" --rows {tmp_path}/x.npy")
    assert status and "nwe.forest" in said and said.count("\n") == 1


def test_compiled_folders_without_rows(engine, tmp_path):
    for name, model in (("a", boosted(slice(0, 200))), ("b", grown(slice(0, 569)))):
        forestc.compile(model, X, tmp_path / name, targets="c", name=name)
    figures = forestc.make_image([tmp_path / "a", tmp_path / "b"], None, tmp_path / "images", engine=engine)
    assert set(figures["images"]) == {"a", "b"} and (tmp_path / "images/a.bin").is_file()


def test_missing_values(engine):
    gaps = X.copy()
    gaps[::7, ::2] = np.nan
    models = [xgboost.XGBClassifier(n_estimators=4, max_depth=3, random_state=k).fit(X, Y) for k in (0, 1)]
    figures = forestc.make_image(models, (gaps, X), engine=engine)
    assert any("means missing" in note for note in figures["columns"].values())
    assert [own["rows_compared"] for own in figures["images"].values()] == [len(X)] * 2
    takes = RandomForestClassifier(4, max_depth=4, random_state=0).fit(gaps, Y)
    with pytest.raises(ForestcError, match=r"missing values: .* takes missing values in column '.*', and .* does not"):
        forestc.make_image([takes, boosted(slice(0, 569))], (gaps, X), engine=engine)


def test_models_without_common_words(engine, tmp_path):
    narrow = tmp_path / "narrow"
    forestc.make_engine(narrow, **WIDE | {"word_bits": 4})
    cases = [
        (
            [boosted(slice(0, 569)), boosted(slice(0, 99))],
            narrow,
            r"the engine's words of 4 bits: column '.*' needs \d+ bits",
        ),
        (
            [grown(slice(0, 569)), HistGradientBoostingClassifier(max_iter=4).fit(X, Y)],
            engine,
            "is float32 in .*float64",
        ),
    ]
    for models, where, message in cases:
        with pytest.raises(ForestcError, match=message):
            forestc.make_image(models, X, tmp_path / "images", engine=where)
    fewer = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X[:, :20], Y)
    with pytest.raises(ForestcError, match=r"common words: .* have other columns: 30 columns and 20"):
        forestc.make_image([grown(slice(0, 569)), fewer], (X, X[:, :20]), tmp_path / "images", engine=engine)
    assert not (tmp_path / "images").exists()


def test_rows_tell_a_wrong_image(engine):
    capacity = open_engine(engine)
    forests = {"a": forestc.quantize(grown(slice(0, 300)), X), "b": forestc.quantize(grown(slice(0, 569), 1), X)}
    one, other = with_common_words(forests)
    assert any(isinstance(feature.number, Fixed) for feature in one.features)
    assert compare_rows(forests["a"], one, capacity, image_of(one, capacity), ArrayRows(X)) == len(X)
    assert row_words(one, read_image(image_of(one, capacity).bytes, described(capacity)).shape, encode(one, X)).any()
    with pytest.raises(CheckError, match="the given rows: the image does not answer as the quantized forest"):
        compare_rows(forests["a"], one, capacity, image_of(other, capacity), ArrayRows(X))
