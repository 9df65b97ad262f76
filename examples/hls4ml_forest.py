"""
Put a forest behind a network in hls4ml
=======================================

One hls4ml project computes features with a network and decides with a forest; onnxruntime is the
reference::

    pip install ".[hls,onnx,sklearn]" onnxruntime skl2onnx
    python examples/hls4ml_forest.py [FOLDER]

Two dense layers are trained on the handwritten digits, a random forest on their outputs. Both become
one ONNX graph, which hls4ml turns into C++ for Vitis HLS. This needs g++, and no vendor tools.
"""

# sphinx_gallery_thumbnail_path = "images/cards/hls4ml_forest.svg"

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import Fixed
from forestc.forest.text import parse_forest
from forestc.integrations.hls4ml_layer import input_format, on_grid, prepare, register
from forestc.rows.encode import encode


def trained(
    layers: tuple[int, int] = (32, 16), trees: int = 30, depth: int = 8
) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """Returns the graph (Gemm, Relu, Gemm, Relu, TreeEnsembleClassifier, ZipMap), test rows and their
    classes."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    network = MLPClassifier(layers, learning_rate_init=0.01, max_iter=200, random_state=0)
    network.fit(X_train, y_train)
    hidden = X_train
    for weights, bias in zip(network.coefs_[:2], network.intercepts_[:2], strict=True):
        hidden = np.maximum(hidden @ weights + bias, 0).astype(np.float32)
    forest = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(hidden, y_train)
    trees = to_onnx(forest, hidden[:1]).graph  # TreeEnsembleClassifier and the converter's nodes
    nodes, constants, last = [], list(trees.initializer), "pixels"
    for place in range(2):
        for name, value in (("weight", network.coefs_[place]), ("bias", network.intercepts_[place])):
            constants.append(numpy_helper.from_array(value.astype(np.float32), f"{name}{place}"))
        dense = [last, f"weight{place}", f"bias{place}"]
        nodes.append(helper.make_node("Gemm", dense, [f"sum{place}"], name=f"dense{place}"))
        last = trees.input[0].name if place else "hidden0"
        nodes.append(helper.make_node("Relu", [f"sum{place}"], [last], name=f"relu{place}"))
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [None, X.shape[1]])
    graph = helper.make_graph([*nodes, *trees.node], "digits", [pixels], list(trees.output), constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), X_test, y_test


def run(
    folder: Path,
    backend: str = "Vitis",
    precision: str = "ap_fixed<24,10>",
    sizes: tuple[Any, ...] = (),
    **options: str,
) -> dict[str, float]:
    """Compiles the graph with hls4ml and compares it. Returns what is printed. sizes: the arguments of
    `trained`."""
    import hls4ml

    model, X, y = trained(*sizes)
    register()
    prepared = prepare(model)
    with contextlib.redirect_stdout(io.StringIO()):  # hls4ml tells much
        config = hls4ml.utils.config_from_onnx_model(prepared, "name", backend, precision)
        for layer in config["LayerName"].values():
            layer["Trace"] = True
        made = hls4ml.converters.convert_from_onnx_model(
            prepared, output_dir=str(folder / "project"), backend=backend, hls_config=config, **options
        )
        made.compile()
        _, traced = made.trace(X)
        classes = made.predict(X).reshape(-1).astype(int)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted = np.asarray(session.run([model.graph.output[0].name], {"pixels": X})[0])

    # The forest alone equals forestc's integer forest, bit for bit, on the project's own features.
    layer = next(layer for layer in made.get_layers() if layer.class_name == "Forest")
    number: Fixed = input_format(layer)
    integer = on_grid(parse_forest(layer.get_attr("forest")), number)
    features = np.asarray(traced[layer.get_input_node().name], dtype=np.float64)
    alone = evaluate_words(integer, encode(integer, features)).index
    # Does onnxruntime agree once it gets the project's features?
    trees = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(
        [model.graph.node[3].output[0]], [model.graph.output[0].name]
    )
    on_features = onnxruntime.InferenceSession(trees.SerializeToString()).run(
        None, {model.graph.node[3].output[0]: features.astype(np.float32)}
    )[0]
    return {
        "rows": len(X),
        "accuracy, onnxruntime": float((wanted == y).mean()),
        "accuracy, hls4ml": float((classes == y).mean()),
        "equal classes": float((classes == wanted).mean()),
        "rows that differ": int((classes != wanted).sum()),
        "equal classes on hls4ml's own features": float((classes == on_features).mean()),
        "forest layer against forestc's evaluator, differences": int((classes != alone).sum()),
    }


def main(folder: Path) -> None:
    for precision in ("ap_fixed<24,10>", "ap_fixed<12,6>"):
        print(f"{precision}:")
        project = folder / precision.strip(">").replace("<", "_")
        for what, figure in run(project, precision=precision).items():
            print(f"  {what}: {figure:.4g}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
