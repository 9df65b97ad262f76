"""Tests a forest as a layer of hls4ml: exact on the network's grid, as code by itself and in a complete project."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from needs import ap_headers
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from thinned import only

import forestc
from forestc.errors import MissingExtraError, ModelError, OptionError
from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import Fixed
from forestc.integrations.hls4ml_layer import _bare, layer_code, on_grid, prepare, register, result_word
from forestc.rows.encode import encode, evaluate
from forestc.toolchain.compilers import cxx_compiler

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
EXAMPLE = Path(__file__).parents[1] / "examples" / "hls4ml_forest.py"


def onnx_of(model, X):
    from skl2onnx import to_onnx

    options = {"zipmap": False} if hasattr(model, "classes_") else None
    return to_onnx(model, X[:1].astype(np.float32), options={id(model): options} if options else None)


def on_the_grid(X, number, seed):
    """Returns rows that a type holds exactly: the given ones rounded, and every row also one step beside."""
    random = np.random.default_rng(seed)
    words = np.floor(np.ldexp(X, number.fraction)) + random.integers(-1, 2, X.shape)
    low = -(1 << (number.bits - 1)) if number.signed else 0
    return np.ldexp(np.clip(words, low, low + (1 << number.bits) - 1), -number.fraction)


@pytest.mark.parametrize(
    "number", [Fixed(16, 10, True), Fixed(6, 3), Fixed(10, 12, True), Fixed(24, 14, True)], ids=str
)
@pytest.mark.parametrize("outputs", ["label", "scores"])
def test_every_path_on_the_grid_is_the_models_own(number, outputs):
    model = RandomForestClassifier(12, random_state=0).fit(*IRIS)
    source = forestc.load(onnx_of(model, IRIS[0]))
    rows = on_the_grid(np.repeat(IRIS[0], 4, axis=0), number, 0)
    made = on_grid(source, number, outputs)
    truth, found = evaluate(source, rows), evaluate_words(made, encode(made, rows))
    if outputs == "label":
        sure = np.sort(truth.scores, axis=1)[:, -1] - np.sort(truth.scores, axis=1)[:, -2] > 1e-3
        assert sure.sum() > 300 and np.array_equal(found.index[sure], truth.index[sure])
    else:
        assert np.abs(found.scores * made.scale - truth.scores).max() <= made.scale * len(made.trees) / 2 + 1e-6


@pytest.mark.parametrize(
    ("model", "data", "outputs"),
    only(
        [
            (RandomForestClassifier(5, max_depth=4, random_state=0), IRIS, "label"),
            (GradientBoostingClassifier(n_estimators=4, random_state=0), IRIS, "scores"),
            (RandomForestRegressor(5, max_depth=4, random_state=0), DIABETES, "scores"),
        ],
        1,
    ),
    ids=lambda value: type(value).__name__,
)
def test_its_code_equals_the_evaluator(tmp_path, model, data, outputs):
    X, number = data[0], Fixed(14, 9, True)
    source = forestc.load(onnx_of(model.fit(*data), X))
    made = on_grid(source, number, outputs, 12)
    word = result_word(made, outputs)
    n_out = 1 if outputs == "label" else made.n_scores
    rows = on_the_grid(np.repeat(X, 3, axis=0), number, 1)
    (tmp_path / "main.cpp").write_text(f"""
#include <cstdio>
#include <cstdint>
#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>
namespace nnet {{
template <class T, unsigned N> struct array {{
    typedef T value_type;
    static const unsigned size = N;
    T data[N];
}};
{layer_code("forest4", source, number, X.shape[1], outputs, 12)}
}}
int main() {{
    typedef ap_fixed<14, 5> in_t;
    typedef ap_{"" if word.signed else "u"}fixed<{word.width}, {word.width}> out_t;
    double row[{X.shape[1]}];
    while (std::fread(row, sizeof row, 1, stdin) == 1) {{
        in_t data[{X.shape[1]}];
        out_t res[{n_out}];
        nnet::array<in_t, {X.shape[1]}> packed;
        for (int i = 0; i < {X.shape[1]}; i++) packed.data[i] = data[i] = row[i];
        nnet::forest4<in_t, out_t>(data, res);
        hls::stream<nnet::array<in_t, {X.shape[1]}>> read;
        hls::stream<nnet::array<out_t, {n_out}>> written;
        read.write(packed);
        nnet::forest4(read, written);
        const nnet::array<out_t, {n_out}> again = written.read();
        for (int k = 0; k < {n_out}; k++) {{
            const int64_t out[2] = {{(int64_t)res[k].to_int64(), (int64_t)again.data[k].to_int64()}};
            std::fwrite(out, sizeof out, 1, stdout);
        }}
    }}
}}
""")
    compiler = cxx_compiler()
    assert compiler is not None
    flags = ["-std=c++14", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-isystem", ap_headers()]
    subprocess.run([compiler, *flags, "main.cpp", "-o", "program"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "program"], input=rows.tobytes(), capture_output=True, check=True).stdout
    got = np.frombuffer(out, dtype=np.int64).reshape(len(rows), n_out, 2)
    truth = evaluate_words(made, encode(made, rows))
    expected = truth.index.reshape(-1, 1) if outputs == "label" else truth.scores
    assert np.array_equal(got[:, :, 0], expected) and np.array_equal(got[:, :, 1], expected)


@pytest.fixture
def quick_compiler(tmp_path_factory, monkeypatch):
    """Puts a g++ without optimization before the one that hls4ml's script calls with -O3."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "g++").write_text(f'#!/bin/sh\nexec {shutil.which("g++")} "$@" -O0\n')
    (folder / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


SMALL = ((12, 8), 6, 5)  # holds the outputs of the layers, the number of trees, and their depth


@pytest.mark.long  # The tutorial builds such a network, too.
@pytest.mark.parametrize("sizes", [SMALL, ()], ids=["small", "whole"])
@pytest.mark.parametrize(
    ("backend", "precision", "io_type"),
    [("Vitis", "ap_fixed<24,10>", "io_parallel"), ("Vivado", "ap_fixed<12,6>", "io_stream")],
)
def test_a_network_that_feeds_a_forest(tmp_path, quick_compiler, backend, precision, io_type, sizes):
    spec = importlib.util.spec_from_file_location("hls4ml_forest", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    figures = example.run(tmp_path, backend, precision, sizes, io_type=io_type)
    assert figures["rows"] == 719
    assert figures["forest layer against forestc's evaluator, differences"] == 0
    assert figures["equal classes on hls4ml's own features"] == 1
    assert figures["equal classes"] >= (0.999 if precision == "ap_fixed<24,10>" else 0.8)


def network(trees, gemm=None, extra=()):
    """Makes a model with a dense layer before some trees."""
    width = 4
    weights = numpy_helper.from_array(np.eye(width, dtype=np.float32), "w")
    bias = numpy_helper.from_array(np.ones((1, width), dtype=np.float32), "b")
    dense = helper.make_node("Gemm", ["input", "w", "b"], [trees.graph.input[0].name], name="input", **(gemm or {}))
    x = helper.make_tensor_value_info("input", TensorProto.FLOAT, [None, width])
    graph = helper.make_graph(
        [dense, *trees.graph.node, *extra],
        "g",
        [x],
        list(trees.graph.output),
        [weights, bias, *trees.graph.initializer],
    )
    return helper.make_model(graph, opset_imports=trees.opset_import, ir_version=9)


@pytest.fixture(scope="module")
def iris_trees():
    return onnx_of(RandomForestClassifier(3, max_depth=3, random_state=0).fit(*IRIS), IRIS[0])


def test_prepare_folds_gemm_and_keeps_names_harmless(iris_trees):
    model = network(iris_trees, {"transB": 1, "alpha": 2.0, "beta": 0.5})
    before = model.SerializeToString()
    made = prepare(model)
    assert model.SerializeToString() == before
    assert prepare(model).SerializeToString() == made.SerializeToString()
    assert [node.op_type for node in made.graph.node] == ["MatMul", "Add", "Forest"]
    assert made.graph.input[0].name == "m_input"
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    assert np.array_equal(values[made.graph.node[0].input[1]], 2 * np.eye(4))
    assert np.array_equal(values[made.graph.node[1].input[1]], np.full(4, 0.5))


def test_what_can_not_be_prepared_is_refused_by_name(iris_trees, monkeypatch):
    with pytest.raises(OptionError, match=r"outputs: 'both' .*; use label or scores"):
        prepare(iris_trees, outputs="both")
    with pytest.raises(OptionError, match="leaf_bits: 0 bits; use 1 to 32"):
        prepare(iris_trees, leaf_bits=0)
    with pytest.raises(ModelError, match="the ONNX graph: the graph has 0 tree operators"):
        prepare(helper.make_model(helper.make_graph([], "none", [], [])))
    model = network(iris_trees)
    model.graph.output.append(
        helper.make_tensor_value_info(iris_trees.graph.input[0].name, TensorProto.FLOAT, [None, 4])
    )
    with pytest.raises(ModelError, match="does not come from the trees"):
        prepare(model)
    with pytest.raises(ModelError, match="a Gemm whose weights are not constant is not read"):
        prepare(network(iris_trees, {"transA": 1}))
    regression = onnx_of(RandomForestRegressor(2, max_depth=2, random_state=0).fit(*DIABETES), DIABETES[0])
    with pytest.raises(ModelError, match="the forest has no single class; use outputs=scores"):
        prepare(regression)
    monkeypatch.setitem(__import__("sys").modules, "hls4ml", None)
    with pytest.raises(
        MissingExtraError, match=r"Python in .*: hls4ml is not installed; pip install \"forestc\[hls\]\""
    ):
        register.__wrapped__()


@pytest.mark.parametrize("bare", only([False, True], 0))
def test_small_projects(tmp_path, quick_compiler, iris_trees, bare):
    """Covers scores as fixed-point numbers, and a tree operator at the graph's end, without `prepare`."""
    import hls4ml
    import onnxruntime

    model = network(iris_trees)
    (trees,) = (node for node in model.graph.node if node.op_type == "TreeEnsembleClassifier")
    X = np.floor(IRIS[0] * 64).astype(np.float32) / 64 - 1  # The network adds 1.
    session = onnxruntime.InferenceSession(model.SerializeToString())
    label, scores = session.run(None, {"input": X})
    if bare:
        prepared = prepare(model)
        forest = prepared.graph.node.pop()
        own = type(trees)()
        own.CopyFrom(trees)
        own.name, own.input[0], own.output[0] = "trees", forest.input[0], forest.output[0]
        prepared.graph.node.append(own)
    else:
        prepared = prepare(model, "scores", 14)
    register()
    made = hls4ml.converters.convert_from_onnx_model(
        prepared,
        output_dir=str(tmp_path),
        backend="Vitis",
        hls_config={"Model": {"Precision": "ap_fixed<16,6>", "ReuseFactor": 1}},
    )
    made.compile()
    got = made.predict(X).reshape(len(X), -1)
    if bare:
        assert np.array_equal(got[:, 0], label)
    else:
        assert np.abs(got - scores).max() < 3 * 2.0**-15
    assert made.graph["trees" if bare else "forest"].class_name == "Forest"


def test_a_bare_tree_operator_becomes_a_layer(iris_trees):
    node = next(node for node in iris_trees.graph.node if node.op_type == "TreeEnsembleClassifier")
    layer = _bare(node, ["features"], [[0, 4]], onnx.GraphProto())
    assert (layer["class_name"], layer["results"], layer["n_in"], layer["n_out"]) == ("Forest", "label", 4, 1)
