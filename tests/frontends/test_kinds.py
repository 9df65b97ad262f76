"""Tests that model files are recognized by their content: each kind is read under any name, or refused with a
remedy."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
import random
import struct
import zipfile
from pathlib import Path

import joblib
import numpy as np
import onnx
import pytest
import xgboost
from contract.kinds import FILES
from models import BINARY
from mutations import mutated_bytes, reads_whole
from onnx import TensorProto, helper
from sklearn.tree import DecisionTreeClassifier

from forestc import load
from forestc.errors import ForestcError, ModelError
from forestc.forest.text import print_forest
from forestc.frontends import read_bytes

X, Y = BINARY(return_X_y=True)
CASES = Path(__file__).parents[1] / "cases"
TREE = DecisionTreeClassifier(max_depth=2).fit(X, Y)
SUFFIXES = ("", ".model", ".bst", ".bin", ".xgb", ".json", ".ubj", ".txt", ".pkl", ".onnx", ".tl", ".cbm", ".h5")
BOOSTER = xgboost.train({"max_depth": 2, "nthread": 1, "objective": "binary:logistic"}, xgboost.DMatrix(X, Y), 2)


READ = FILES | {"forestc": lambda: print_forest(load(TREE)).encode()}


@pytest.mark.parametrize("kind", READ)
def test_a_model_is_read_under_any_name(kind, tmp_path):
    data, texts = READ[kind](), set()
    few = kind == "treelite"  # Each is read in a process of its own.
    for suffix in SUFFIXES[:2] if few else SUFFIXES:
        (tmp_path / f"m{suffix}").write_bytes(data)
        texts.add(print_forest(load(tmp_path / f"m{suffix}", trust_pickle=True)))
    assert len(texts) == 1
    damaged = random.Random(1)
    cut = [data[: len(data) * part // 20] for part in range(1, 2 if few else 20)]
    for text in (*cut, *(mutated_bytes(data, damaged) for _ in range(1 if few else 30))):
        reads_whole(read_bytes, text)


def old_xgboost(start: bytes) -> bytes:
    """Returns the beginning of XGBoost's old binary format, which its versions 0.4 to 3.0 wrote."""
    head = start + struct.pack("<fIi", 0.5, 4, 0) + bytes(124)
    for name in (b"binary:logistic", b"gbtree"):
        head += struct.pack("<Q", len(name)) + name
    return head + bytes(200)


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return buffer.getvalue()


def network() -> bytes:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["X"], ["Y"])],
        "net",
        [value("X", TensorProto.FLOAT, [None, 2])],
        [value("Y", TensorProto.FLOAT, [None, 2])],
    )
    return onnx.helper.make_model(graph, producer_name="pytorch").SerializeToString()


def xgboost_dump(form: str) -> bytes:
    trees = BOOSTER.get_dump(dump_format=form)
    if form == "json":
        return ("[\n" + ",\n".join(trees) + "\n]").encode()
    return "".join(f"booster[{index}]:\n{tree}" for index, tree in enumerate(trees)).encode()


def array(X: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, X)
    return buffer.getvalue()


JSON = {
    "treelite": {"threshold_type": "float32", "num_feature": 3, "average_tree_output": False, "trees": []},
    "keras": {"class_name": "Sequential", "config": {}},
    "manifest": {"name": "m", "passes": [], "guarantees": {}, "files": {}},
    "unknown": {"weights": [1, 2]},
}
XML = b'<?xml version="1.0" encoding="UTF-8"?>\n<!-- made by hand -->\n'
# Each kind has its bytes, and a text of the refusal.
REFUSED = {
    "xgboost-binf": (old_xgboost(b"binf"), "XGBoost's old binary format.*XGBoost 1.7 to 3.0.*save_model"),
    "xgboost-raw": (old_xgboost(b""), "XGBoost's old binary format.*XGBoost 1.7 to 3.0.*save_model"),
    "xgboost-dump-text": (xgboost_dump("text"), "dump of XGBoost's trees as text, without base score.*save_model"),
    "xgboost-dump-json": (xgboost_dump("json"), "dump of XGBoost's trees as JSON, without base score.*save_model"),
    "xgboost-one-tree": (BOOSTER.get_dump(dump_format="json")[0].encode(), "dump of one XGBoost tree.*save_model"),
    "xgboost-config": (BOOSTER.save_config().encode(), "configuration, without trees.*save_model"),
    "xgboost-pickled": (bytes(BOOSTER.__getstate__()["handle"]), "as pickles hold it.*save_model"),
    "utf-16": (FILES["lightgbm-text"]().decode().encode("utf-16"), "text in UTF-16.*iconv"),
    "mark": (b"\xef\xbb\xbf" + FILES["lightgbm-text"](), "byte order mark"),
    "crlf": (FILES["lightgbm-text"]().replace(b"\n", b"\r\n"), "line ends are CRLF.*dos2unix"),
    "quoted": (json.dumps(json.dumps({"learner": {}})).encode(), "a JSON document in quotes"),
    "listed": (b"[" + json.dumps({"learner": {}}).encode() + b"]", "a list around JSON models"),
    "dot": (b"digraph {\n 0 [label=x]\n}", "a drawing of a tree.*give forestc the model"),
    "cbm": (b"CBM1\xd0\x1c\0\0" + bytes(50), r"binary model of CatBoost.*format='json'"),
    "catboost-python": (b"###  Model data\nclass catboost_model(object):\n", r"as source code.*format='json'"),
    "catboost-c": (b"#include <string>\nstatic const struct CatboostModel {", r"as source code.*format='json'"),
    "pmml": (XML + b'<PMML version="4.4"></PMML>', "a PMML document.*give forestc the model"),
    "xml": (XML + b"<opencv_storage>", "an XML document"),
    "html": (b"<!DOCTYPE html>\n<html>", "a web page.*download"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS.*git lfs pull"),
    "core-ml": (b"\x08\x01\x12\x8a\x34\x0a\x0f" + bytes(20), "Core ML or TensorFlow"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(20), "TensorFlow Lite"),
    "onnx-network": (network(), "holds no decision trees; its operators: Relu.*TreeEnsembleClassifier"),
    "h5": (b"\x89HDF\r\n\x1a\n" + bytes(20), "HDF5.*ensembles of decision trees only"),
    "keras": (zipped("metadata.json", "config.json", "model.weights.h5"), "a Keras model.*decision trees only"),
    "torch": (zipped("net/data.pkl", "net/version"), "a PyTorch model.*decision trees only"),
    "mojo": (zipped("model.ini", "trees/t00_000.bin"), r"H2O model \(MOJO\).*train the trees"),
    "safetensors": (struct.pack("<Q", 4) + b'{"":1}' + bytes(10), "a file of tensors"),
    "rds": (gzip.compress(b"X\n\0\0\0\3"), r"R object.*xgb.save"),
    "gzip": (gzip.compress(FILES["lightgbm-text"]()), "a compressed file.*unpack it"),
    "bzip2": (bz2.compress(FILES["lightgbm-text"]()), "a compressed file.*unpack it"),
    "zip": (zipped("m.txt"), "a zip archive.*unpack it"),
    "tar": (bytes(257) + b"ustar" + bytes(300), "a tar archive.*unpack it"),
    "npy": (array(X), "a file of rows.*rows="),
    "npz": (zipped("X.npy", "y.npy"), "a file of rows.*rows="),
    "parquet": (b"PAR1" + bytes(20), "a file of rows.*rows="),
    "treelite": (json.dumps(JSON["treelite"]).encode(), "a treelite dump.*serialize"),
    "keras-json": (json.dumps(JSON["keras"]).encode(), "a Keras configuration"),
    "manifest": (json.dumps(JSON["manifest"]).encode(), "manifest of a folder.*give the folder"),
    "unknown-json": (json.dumps(JSON["unknown"]).encode(), "a JSON document with the keys 'weights'.*known: forestc"),
    "unknown": (b"\xffsomething", r"begins with b'\\xffsomething'.*known: forestc text"),
    "empty": (b"", "the file is empty"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_read_is_named_with_the_way_out(kind, tmp_path):
    data, message = REFUSED[kind]
    for name in ("m.model", "m.json", "m"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match=message) as caught:
            load(tmp_path / name)
        assert caught.value.where.startswith(str(tmp_path / name)) and caught.value.do and "\n" not in str(caught.value)


def pickles():
    yield from ((f"protocol {protocol}", pickle.dumps(TREE, protocol)) for protocol in range(6))
    for method in (0, "zlib", "gzip", "bz2", "lzma", "xz"):
        buffer = io.BytesIO()
        joblib.dump(TREE, buffer, compress=(method, 3) if method else 0)
        yield f"joblib {method}", buffer.getvalue()


@pytest.mark.parametrize(("how", "data"), list(pickles()), ids=lambda value: value if isinstance(value, str) else "")
def test_no_pickle_is_opened_under_any_name_unless_trusted(how, data, tmp_path):
    for name in ("m.json", "m.skops", "m.pkl", "m"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match=r"a pickle runs code when it is opened.*trust_pickle=True"):
            load(tmp_path / name)
        assert len(load(tmp_path / name, trust_pickle=True).trees) == 1


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_in_any_wrapping_runs_nothing(tmp_path):
    for protocol in range(6):
        data = pickle.dumps(Payload(tmp_path / "ran"), protocol)
        for text in (data, gzip.compress(data), bz2.compress(data), zipped("a") + data, b"\n" + data):
            for suffix in (".json", ".pkl", ".skops", ".model", ".onnx", ""):
                (tmp_path / f"m{suffix}").write_bytes(text)
                with pytest.raises(ForestcError):
                    load(tmp_path / f"m{suffix}")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["manifest.json", "model.forest"], "a folder that forestc compiled, not a model file.*model.forest"),
        (["engine.json"], "a forestc engine.*engine="),
        (["study.json"], "a forestc study.*model.forest"),
        (["saved_model.pb", "variables"], "a TensorFlow model"),
        (["MLmodel", "model.xgb"], "an MLflow model.*give the model file in the folder"),
        (["metadata", "data", "treesMetadata"], "a Spark model"),
        (["predictor.pkl"], "an AutoGluon predictor"),
        (["notes.txt"], "a folder, not a model file.*give the model file in it"),
        ([], "a folder, not a model file"),
    ],
)
def test_a_folder_is_named_with_the_way_out(names, message, tmp_path):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ModelError, match=message):
        load(tmp_path)


def test_the_suffix_counts_where_the_content_tells_nothing(tmp_path):
    for name, message in {
        "m.csv": "a file of rows.*rows=",
        "m.pkl": "a pickle runs code",
        "m.skops": "not a readable skops file",
        "m.cbm": "binary model of CatBoost",
    }.items():
        (tmp_path / name).write_bytes(b"a,b\n1,2\n")
        with pytest.raises(ModelError, match=message):
            load(tmp_path / name)
    (tmp_path / "m.pkl").write_bytes(READ["xgboost-json"]())  # Reading this file runs no code.
    assert len(load(tmp_path / "m.pkl").trees) == 2


def test_a_model_of_xgboost_s_first_versions_is_no_checkpoint_of_treelite():
    for score in (0.0, 0.5, 5e-45):
        data = struct.pack("<f", score) + old_xgboost(b"")[4:]
        with pytest.raises(ModelError, match="XGBoost's old binary format"):
            read_bytes(data, "m.model")
