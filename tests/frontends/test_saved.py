"""Tests that a model from a file gives the same forest as the live model."""

from __future__ import annotations

import json

import catboost
import joblib
import lightgbm
import onnx
import pytest
import skops.io
import xgboost
from contract import kinds_meta, kinds_pipeline, kinds_sklearn, kinds_treelite
from models import trained
from onnx_models import STUMP, classifier
from sklearn.datasets import load_iris
from thinned import thinned

from forestc import load
from forestc.forest.text import print_forest

X, Y = load_iris(return_X_y=True)
SKLEARN = kinds_sklearn.KINDS | kinds_pipeline.KINDS | kinds_meta.KINDS
BOOSTER = {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_threads": 1}
CATBOOST = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "iterations": 4, "depth": 3}
# Each kind has its model, and a way to save it for each suffix.
KINDS = {
    "xgboost": (lambda: trained("xgboost-multi")[0], dict.fromkeys((".json", ".ubj"), xgboost.XGBModel.save_model)),
    "lightgbm": (
        lambda: lightgbm.train(BOOSTER, lightgbm.Dataset(X, label=Y), 4),
        dict.fromkeys((".txt", ".model", ".lgb"), lightgbm.Booster.save_model)
        | {".json": lambda model, path: path.write_text(json.dumps(model.dump_model()))},
    ),
    "catboost": (
        lambda: catboost.CatBoostClassifier(**CATBOOST).fit(X, Y),
        {".json": lambda model, path: model.save_model(str(path), format="json")},
    ),
    "onnx": (lambda: classifier([STUMP], ["n", "y"]), {".onnx": onnx.save}),
}
for kind in ("treelite-xgboost", "treelite-sklearn-class-targets", "treelite-by-hand"):
    make = kinds_treelite.KINDS[kind]
    KINDS[kind] = (lambda make=make: make().source, {".tl": lambda model, path: model.serialize(path)})


def same(model, paths, covers=True):
    def lines(source):
        whole = print_forest(load(source, trust_pickle=True)).splitlines()[1:]
        return whole if covers else [line.split(" cover ")[0] for line in whole]

    live = lines(model)
    for path in paths:
        read = lines(path)
        differing = [line for line, other in zip(live, read, strict=True) if line != other]
        assert all(line.strip().startswith("source") for line in differing), differing


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_any_library_is_the_live_model(kind, tmp_path):
    make, forms = KINDS[kind]
    model = make()
    for suffix, save in forms.items():
        save(model, tmp_path / f"m{suffix}")
    same(model, tmp_path.iterdir(), covers=kind != "xgboost")  # A file holds fewer digits of the covers.
    assert {load(path).name for path in tmp_path.iterdir()} == {"m"}


@pytest.mark.parametrize("kind", thinned(sorted(SKLEARN), keep=18))
def test_a_file_of_scikit_learn_is_the_live_model(kind, tmp_path):
    model = SKLEARN[kind]().source
    skops.io.dump(model, tmp_path / "m.skops")
    joblib.dump(model, tmp_path / "m.joblib")
    same(model, tmp_path.iterdir())


def test_who_made_a_file_is_kept(tmp_path):
    source = classifier([STUMP], ["n", "y"])
    source.producer_name, source.producer_version = "somebody", "1.2"
    onnx.save(source, tmp_path / "m.onnx")
    file, live = load(tmp_path / "m.onnx").provenance, load(source).provenance
    assert file.model_hash and (file.source, file.version) == ("onnx", "somebody 1.2") == (live.source, live.version)
    made = load(catboost.CatBoostClassifier(**CATBOOST).fit(X, Y)).provenance
    assert (made.source, made.version) == ("catboost", catboost.__version__)
