"""Measures load time and peak memory of a model of 1,000,000 nodes, beside those of the training library.

The model has 100 trees of 5,000 leaves (9,999 nodes), as XGBoost JSON and UBJSON, LightGBM text, and ONNX (the XGBoost
trees, converted here). Each load runs in a separate process, after the load of a small model, so that imports do not
count. Seconds are the best of three; memory is the increase of the peak.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Case, Ledger, Steps
from tools import arguments, in_fresh_process, peak_memory_mb

TREES, LEAVES, ROWS, COLUMNS = 100, 5_000, 30_000, 24
GROWN = 4  # trees that are trained; the others repeat them, since only loading is measured
RUNS = 3
FILES = {"XGBoost JSON": "m.json", "XGBoost UBJSON": "m.ubj", "LightGBM text": "m.txt", "ONNX": "m.onnx"}


def make(folder: Path, trees: int, small: bool) -> dict[str, Path]:
    """Writes the model files; returns their paths by format."""
    import lightgbm
    import xgboost

    random, count, leaves = np.random.default_rng(0), 60 if small else ROWS, 3 if small else LEAVES
    X = random.normal(size=(count, COLUMNS)).astype(np.float32)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + random.normal(size=count)
    grow = {"max_depth": 0, "max_leaves": leaves, "grow_policy": "lossguide", "min_child_weight": 0, "lambda": 0}
    booster = xgboost.train({**grow, "tree_method": "hist", "eta": 0.1, "nthread": 2}, xgboost.DMatrix(X, y), GROWN)
    booster = xgboost.Booster(
        model_file=bytearray(json.dumps(repeated(json.loads(booster.save_raw("json")), trees)), "utf-8")
    )
    paths = {kind: folder / name for kind, name in FILES.items()}
    for path in [*paths.values()][:2]:
        booster.save_model(path)
    light = {"num_leaves": leaves, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0, "verbose": -1, "num_threads": 2}
    text = lightgbm.train(light, lightgbm.Dataset(X, y), GROWN).model_to_string()
    (folder / "m.txt").write_text(lightgbm.Booster(model_str=repeated_text(text, trees)).model_to_string())
    (folder / "m.onnx").write_bytes(onnx_of(json.loads(booster.save_raw("json"))))
    return paths


def repeated(document: Any, trees: int) -> Any:
    """Repeats the trees of an XGBoost document until there are `trees`; changes the document in place."""
    model = document["learner"]["gradient_booster"]["model"]
    model["trees"] = [{**model["trees"][index % GROWN], "id": index} for index in range(trees)]
    model["tree_info"] = [0] * trees
    model["iteration_indptr"] = list(range(trees + 1))
    model["gbtree_model_param"]["num_trees"] = str(trees)
    return document


def repeated_text(text: str, trees: int) -> str:
    """Repeats the trees of a LightGBM text model until there are `trees`."""
    head, *blocks = text.split("Tree=")
    blocks[-1], tail = blocks[-1].split("end of trees", 1)
    bodies = [block.split("\n", 1)[1] for block in blocks]
    blocks = [f"Tree={index}\n{bodies[index % GROWN]}" for index in range(trees)]
    lines = [
        "tree_sizes=" + " ".join(str(len(block)) for block in blocks) if line.startswith("tree_sizes") else line
        for line in head.splitlines()
    ]
    return "\n".join([*lines, ""]) + "\n" + "".join(blocks) + "end of trees" + tail


def onnx_of(document: Any) -> bytes:
    """Converts an XGBoost document to an ONNX model with a TreeEnsembleRegressor."""
    from onnx import TensorProto, helper

    columns: dict[str, list[Any]] = {name: [] for name in ("tree", "node", "feature", "mode", "value", "true", "false")}
    leaf_tree, leaf_node, weights = [], [], []
    for index, tree in enumerate(document["learner"]["gradient_booster"]["model"]["trees"]):
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        inner = left != -1
        values = np.array(tree["split_conditions"], dtype=np.float32)
        columns["tree"] += [index] * len(left)
        columns["node"] += range(len(left))
        columns["feature"] += np.where(inner, tree["split_indices"], 0).tolist()
        columns["mode"] += np.where(inner, "BRANCH_LT", "LEAF").tolist()
        columns["value"] += np.where(inner, values, 0).tolist()
        columns["true"] += np.where(inner, left, 0).tolist()
        columns["false"] += np.where(inner, right, 0).tolist()
        leaf_tree += [index] * int((~inner).sum())
        leaf_node += np.flatnonzero(~inner).tolist()
        weights += values[~inner].tolist()
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=columns["tree"], nodes_nodeids=columns["node"], nodes_featureids=columns["feature"],
        nodes_modes=columns["mode"], nodes_values=columns["value"], nodes_truenodeids=columns["true"],
        nodes_falsenodeids=columns["false"], target_treeids=leaf_tree, target_nodeids=leaf_node,
        target_ids=[0] * len(weights), target_weights=weights,
    )  # fmt: skip
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, w]) for n, w in (("x", COLUMNS), ("y", 1))]
    graph = helper.make_graph([node], "trees", ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def measure(who: str, path: str) -> dict[str, Any]:
    """Loads a model once; returns seconds, MB and nodes. who: "forestc", or another word for the library of
    the file."""
    load: Any = {".json": "xgboost", ".ubj": "xgboost", ".txt": "lightgbm", ".onnx": "onnxruntime"}[Path(path).suffix]
    if who == "forestc":
        load = importlib.import_module("forestc").load
    elif load == "onnxruntime":
        load = importlib.import_module(load).InferenceSession
    else:
        load = partial(lambda booster, file: booster(model_file=file), importlib.import_module(load).Booster)
    load(str(Path(path).parent / "small" / Path(path).name))
    before, start = peak_memory_mb(), time.perf_counter()
    loaded = load(path)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "mb": peak_memory_mb() - before, "nodes": getattr(loaded, "n_nodes", 0)}


def main() -> None:
    options = arguments(__doc__, "json").parse_args()
    with tempfile.TemporaryDirectory() as name:
        ledger = Ledger("loading a model", options, ("xgboost", "lightgbm", "onnxruntime"))
        ledger.fill([{"file": kind} for kind in FILES], measured, Path(name), options.small)
        ledger.show()


@cache
def files(folder: Path, small: bool) -> dict[str, Path]:
    (folder / "small").mkdir()
    make(folder / "small", GROWN, small)
    return make(folder, 2 * GROWN if small else TREES, small)


def best(who: str, path: Path, small: bool) -> dict[str, Any]:
    if small:
        return measure(who, str(path))
    runs = [in_fresh_process(__file__, "--measure", who, path) for _ in range(RUNS)]
    return min(runs, key=lambda run: run["seconds"])


def measured(folder: Path, small: bool, case: Case) -> Steps:
    yield [], None
    path = files(folder, small)[case["file"]]
    theirs, ours = (best(who, path, small) for who in ("library", "forestc"))
    yield {
        "MB": round(path.stat().st_size / 2**20, 1), "nodes": ours["nodes"],
        "library_s": round(theirs["seconds"], 3), "forestc_s": round(ours["seconds"], 3),
        "ratio": round(ours["seconds"] / theirs["seconds"], 2), "library_peak_MB": round(theirs["mb"]),
        "forestc_peak_MB": round(ours["mb"]),
    }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main()
