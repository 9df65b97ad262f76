from __future__ import annotations

import tracemalloc

import numpy as np
import onnx
import pytest
from mutations import reads_whole
from onnx import TensorProto, helper
from onnx_models import (
    DOUBLE,
    FLOAT,
    INT64,
    ML,
    STRING,
    STUMP,
    around,
    change,
    classifier,
    ensemble5,
    node,
    refused,
    regressor,
    scaler,
    trees_node,
)
from steps import calls_of

from forestc import load
from forestc.errors import ForestcError, ModelError
from forestc.frontends.onnx.reader import read_bytes


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([node("Normalizer", ["rows"], ["X"], norm="L2")], [], "a Normalizer mixes the columns of a row; "),
        ([node("Binarizer", ["rows"], ["X"], threshold=0.5)], [], "operator 'ai.onnx.ml.Binarizer' is not folded"),
        ([node("Sin", ["rows"], ["X"])], [], "operator 'Sin' is not folded into the trees; "),
        ([scaler("rows", "X", [0.0] * 3, [1.0, 0.0, 1.0])], [], "an offset or scale is zero or not finite"),
        ([scaler("rows", "X", [0.0] * 2, [1.0] * 2)], [], "has 2 scales for 3 columns"),
        ([scaler("rows", "X", [0.0] * 2, [1.0])], [], "has 2 offsets and 1 scales"),
        ([node("Mul", ["rows", "rows"], ["X"])], [], "operator 'Mul' is not folded into its columns exactly"),
        ([node("Div", ["c", "rows"], ["X"])], [], "operator 'Div' is not folded into its columns exactly"),
        ([node("Mul", ["rows", "zero"], ["X"])], [], "its constant is zero or not finite"),
        ([node("Exp", ["rows"], ["X"])], [], "operator 'Exp' is not folded into its columns exactly"),
        ([node("Concat", ["rows", "rows"], ["X"], axis=0)], [], "works across the rows"),
        ([node("Gather", ["rows", "i"], ["X"], axis=1)], [], "takes columns [0, 9] of 3"),
        ([node("Imputer", ["rows"], ["X"], imputed_value_floats=[np.nan])], [], "NaN among them"),
        ([node("Identity", ["rows"], ["X"])] * 2, [], "writes 'X', which already exists"),
        ([node("Identity", ["nothing"], ["X"])], [], "reads 'nothing', which no node before it writes"),
        ([], [node("Exp", ["sums"], ["t"]), node("Mul", ["t", "c"], ["scores"])], "'Mul' is not folded into the tr"),
        ([], [node("Add", ["sums", "sums"], ["scores"])], "'Add' is not folded into the trees' scores exactly"),
        ([], [node("Sub", ["c", "sums"], ["scores"])], "operator 'Sub' is not folded into the trees' scores exactly"),
        ([], [node("Normalizer", ["sums"], ["scores"], norm="L1")], "node 'Normalizer scores' (Normalizer)"),
        ([], [trees_node("X", "more"), node("Add", ["sums", "more"], ["scores"])], "is a second tree operator"),
        ([], [node("ReduceMean", ["sums"], ["scores"])], "operator 'ReduceMean' is not folded into the trees"),
        ([], [node("Cast", ["sums"], ["scores"], to=INT64)], "operator 'Cast' is not folded into the trees' scores"),
    ],
)
def test_what_is_not_exact_is_refused_with_node_and_operator(before, after, message):
    constants = {"c": np.float32([2.0]), "zero": np.float32([1.0, 0.0, 1.0]), "i": np.array([0, 9])}
    refused(around(before, after, constants), message.removesuffix("; "))
    if before or len(after) == 1:  # The refused node is the last one.
        refused(around(before, after, constants), f" ({(*before, *after)[-1].op_type})")


def shown_too(source, name):
    source.graph.output.append(helper.make_tensor_value_info(name, FLOAT, None))
    return source


def then(source, more):
    source.graph.node.append(more)
    source.graph.output[0].name = more.output[0]
    return source


def split(feature=0, mode="BRANCH_LT", value=0.0, true=((0, 1.0),), false=((0, 2.0),)):
    """Makes a tree of one condition."""
    return (feature, mode, value, list(true), list(false))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: classifier([STUMP], [1]), "has 1 class labels"),
        (lambda: classifier([STUMP], [0, 1], "PROBIT"), "PROBIT of a single score"),
        (lambda: classifier([STUMP], [0, 1], base=[0.1, 0.2]), "has two base values but weights for class 0 only"),
        (lambda: classifier([split(true=[(1, 1.0)])], [0, 1]), "class 1 has no weight on some rows"),
        (lambda: classifier([split(true=[(1, -1.0)])], [0, 1, 2]), "class 0 has no weight on some rows"),
        (lambda: classifier([STUMP], [0, 1, 2], base=[0.1]), "has 1 base values for 3 classes"),
        (lambda: classifier([split(true=[(2, 1.0)])], [0, 1]), "a weight is for output 2 of 2"),
        (lambda: regressor([STUMP], 2, base=[0.5, 1.0]), "target 1 has no weight on some rows"),
        (lambda: regressor([STUMP], 2, aggregate="MIN"), "target 1 has no weight on some rows"),
        (lambda: regressor([STUMP], base=[0.5, 1.0]), "has 2 base values for 1 targets"),
        (lambda: regressor([split(true=[(0, 1.0), (0, 2.0)])]), "tree 0, node 1: has two weights for output 0"),
        (lambda: regressor([STUMP], aggregate="MEDIAN"), "aggregate_function 'MEDIAN' is not known"),
        (lambda: regressor([STUMP], post="EXP"), "post_transform 'EXP' is not known"),
        (lambda: regressor([STUMP], kind=INT64), "its input is int64, which onnxruntime does not take"),
        (lambda: regressor([STUMP], tensors=True), "values_as_tensor' is float64 of shape [3], not a list of float32"),
        (lambda: regressor([STUMP], tensors=True, ml=1), "attribute 'nodes_values_as_tensor' is not known"),
        (lambda: regressor([STUMP], ml=5), "is no longer an operator of ai.onnx.ml 5"),
        (lambda: regressor([split(3)]), "ONNX ModelProto, tree 0, node 0: a condition reads column 3 of 3"),
        (lambda: regressor([split(-1)]), "reads column -1 of 3"),
        (
            lambda: regressor([split(value=np.nan)]),
            "node 'trees' (TreeEnsembleRegressor), tree 0, node 0: ",
        ),
        (
            lambda: ensemble5([split(value=np.nan)]),
            "node 'trees' (TreeEnsemble), tree 0, node 0: ",
        ),
        (lambda: regressor([split(mode="BRANCH_MEMBER")]), "node mode b'BRANCH_MEMBER' is not known"),
        (lambda: regressor([split(true=[(0, np.inf)])]), "a leaf value is not finite"),
        (lambda: ensemble5([split(0, "BRANCH_MEMBER", [0.5, 31.0])]), "only 32-bit integers"),
        (lambda: ensemble5([split(0, "BRANCH_MEMBER", [-(2.0**31)])]), "only 32-bit integers"),
        (lambda: ensemble5([split(0, "BRANCH_MEMBER", [])]), "membership_values hold 0 lists for 1 nodes"),
        (lambda: ensemble5([STUMP], 0), "n_targets is 0"),
        (lambda: ensemble5([STUMP], 1 << 40), "n_targets is 1099511627776"),
        (lambda: ensemble5([STUMP], aggregate=4), "aggregate_function 4 is not known"),
        (lambda: ensemble5([STUMP], post=-1), "post_transform -1 is not known"),
        (lambda: then(regressor([STUMP], kind=DOUBLE), node("Exp", ["scores"], ["e"])), "'Exp' is not folded"),
        (lambda: then(ensemble5([STUMP], kind=DOUBLE), node("Cast", ["scores"], ["e"], to=FLOAT)), "'Cast' is not f"),
        (lambda: shown_too(regressor([STUMP]), "X"), "output 'X' does not come from the trees"),
    ],
)
def test_what_onnxruntime_makes_something_else_of_is_refused(make, message):
    refused(make(), message)


@pytest.mark.parametrize(
    ("name", "to", "message"),
    [
        ("nodes_nodeids", lambda ids: [0, 1, 1], "node 'trees' (TreeEnsembleRegressor), tree 0, node 1: appears twice"),
        ("nodes_nodeids", lambda ids: [0, 1, 1 << 40], "a node's number is outside"),
        ("nodes_nodeids", lambda ids: [0, -1, 2], "a node's number is outside"),
        ("nodes_nodeids", lambda ids: ids[:2], "has 2 nodes_nodeids for 3 nodes_treeids"),
        ("nodes_treeids", lambda ids: [0, 1, 0], "the nodes of tree 0 are not listed together"),
        ("nodes_treeids", lambda ids: [-1, -1, -1], "a tree has the number -1"),
        ("nodes_treeids", lambda ids: [1 << 62] * 3, "a tree has the number 4611686018427387904"),
        ("nodes_treeids", None, "has no nodes"),
        ("nodes_truenodeids", lambda ids: [0, 0, 0], "is listed first but is another node's child"),
        ("nodes_truenodeids", lambda ids: [9, 0, 0], "its true child 9 is not a node of the tree"),
        ("nodes_falsenodeids", lambda ids: [-(1 << 63), 0, 0], "its false child -9223372036854775808 is not a node"),
        ("nodes_falsenodeids", lambda ids: [1, 0, 0], "has two parents"),
        ("nodes_featureids", lambda ids: [0], "has 1 nodes_featureids for 3"),
        ("nodes_featureids", lambda ids: [1 << 62, 0, 0], "reads column 4611686018427387904 of 3"),
        ("nodes_values", None, "has 0 nodes_values for 3"),
        ("nodes_values", lambda values: [1, 2, 3], "attribute 'nodes_values' is not a list of numbers"),
        ("nodes_modes", lambda modes: [b"BRANCH_LEQ", b"LEAF", b"\xff"], "node mode b'\\xff' is not known"),
        ("nodes_modes", lambda modes: [b"LEAF"] * 3, "nodes that no path reaches have weights"),
        ("nodes_missing_value_tracks_true", lambda tracks: [1], "has 1 nodes_missing_value_tracks_true for 3 nodes"),
        ("target_nodeids", lambda ids: [1, 7], "has a weight but is not in the lists of nodes"),
        ("target_treeids", lambda ids: [0, 7], "has a weight but is not in the lists of nodes"),
        ("target_ids", lambda ids: [0, -1], "a weight is for output -1 of 1"),
        ("target_weights", lambda weights: [1.0], "has 1 target_weights for 2 target_treeids"),
        ("n_targets", 1 << 62, "n_targets is 4611686018427387904, outside 1 to"),
        ("n_targets", -1, "n_targets is -1"),
        ("n_targets", "many", "attribute 'n_targets' is not a whole number"),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_place(name, to, message):
    refused(change(regressor([STUMP]), name, to), message)


@pytest.mark.parametrize(
    ("name", "to", "message"),
    [
        ("tree_roots", lambda roots: [2], "tree 0 starts at node 2 of 1"),
        ("tree_roots", lambda roots: [-1], "tree 0 starts at node -1 of 1"),
        ("tree_roots", lambda roots: [0, 0], "is reached twice"),
        ("tree_roots", None, "has no trees"),
        ("nodes_trueleafs", lambda leafs: [0], "is reached twice"),
        ("nodes_truenodeids", lambda ids: [5], "its true child is leaf 5 of 2"),
        ("nodes_falsenodeids", lambda ids: [-1], "its false child is leaf -1 of 2"),
        ("nodes_falseleafs", lambda leafs: [0, 1], "has 2 nodes_falseleafs for 1 nodes_modes"),
        ("leaf_targetids", lambda ids: [0], "has 1 leaf_targetids for 2 leaf_weights"),
        ("leaf_targetids", lambda ids: [0, 3], "a weight is for output 3 of 1"),
        ("nodes_modes", helper.make_tensor("m", TensorProto.UINT8, [1], [7]), "mode 7 is not known"),
        ("nodes_modes", helper.make_tensor("m", TensorProto.FLOAT, [1], [0]), "'nodes_modes' is float32 of shape [1]"),
        ("nodes_splits", helper.make_tensor("s", DOUBLE, [1], [0]), "'nodes_splits' is float64 of shape [1]"),
        ("nodes_splits", helper.make_tensor("s", FLOAT, [1, 1], [0]), "'nodes_splits' is float32 of shape [1, 1]"),
        ("nodes_splits", TensorProto(data_type=1, dims=[1 << 31]), "has the shape [2147483648] and 0 numbers"),
        ("nodes_splits", TensorProto(data_type=1, dims=[1 << 62, 1 << 62]), "and 0 numbers"),
        ("nodes_splits", TensorProto(data_type=1, dims=[-1]), "has the shape [-1]"),
        ("nodes_splits", TensorProto(data_type=1, dims=[1], raw_data=b"abc"), "has 3 bytes of float32"),
        ("nodes_splits", TensorProto(data_type=99, dims=[1]), "holds numbers of ONNX's type 99"),
        ("nodes_splits", TensorProto(data_type=10, dims=[1], raw_data=b"ab"), "holds numbers of ONNX's type 10"),
        ("nodes_modes", TensorProto(data_type=2, dims=[1], int32_data=[300]), "holds numbers outside uint8"),
        ("nodes_splits", TensorProto(data_type=1, dims=[1], data_location=1), "keeps its data in another file"),
    ],
)
def test_damage_of_the_newer_operator_is_named(name, to, message):
    refused(change(ensemble5([STUMP]), name, to), message)


def test_too_much_is_refused_before_it_takes_time():
    refused(change(ensemble5([STUMP]), "tree_roots", [0] * (1 << 17) + [0]), "has 131073 trees")
    steps = [node("Add", [f"t{k}", "c"], [f"t{k + 1}" if k < 5000 else "X"]) for k in range(5001)]
    steps[0].input[0] = "rows"
    refused(around(steps, constants={"c": np.float32(1.0)}), "changed more than 50 times before the trees")


def outside(path):
    entry = [onnx.StringStringEntryProto(key="location", value=path)]
    tensor = TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL, external_data=entry)
    source = around([node("Add", ["rows", "c"], ["X"])])
    source.graph.initializer.append(tensor)
    return source


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "weights.bin"])
def test_data_in_other_files_is_not_read(path, tmp_path):
    source = outside(path)
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    (tmp_path / "m.onnx").write_bytes(source.SerializeToString())
    for each in (source, tmp_path / "m.onnx"):
        with pytest.raises(ModelError, match="initializer 'c': keeps its data in another file"):
            load(each)


@pytest.mark.parametrize(
    ("change_model", "message"),
    [
        (lambda m: m.ClearField("graph"), "not an ONNX model: it has no graph"),
        (lambda m: m.ClearField("opset_import"), "does not import ai.onnx.ml"),
        (lambda m: setattr(m.opset_import[1], "version", 6), "ai.onnx.ml version 6 is not known"),
        (lambda m: setattr(m.opset_import[1], "version", 0), "ai.onnx.ml version 0 is not known"),
        (lambda m: m.opset_import.append(helper.make_opsetid(ML, 1)), "imports two versions of ai.onnx.ml"),
        (lambda m: setattr(m.graph.node[0], "domain", ""), "operator 'TreeEnsembleRegressor' is not folded"),
        (lambda m: setattr(m.graph.node[0], "domain", "my.own"), "its domain of operators is not imported"),
        (lambda m: setattr(m.graph.node[0], "op_type", "SVM"), "holds no decision trees; its operators: SVM"),
        (lambda m: m.graph.ClearField("node"), "holds no decision trees; its operators: none"),
        (lambda m: m.graph.ClearField("output"), "no output comes from a tree operator"),
        (lambda m: m.graph.input.append(m.graph.input[0]), "appears twice"),
        (lambda m: m.graph.ClearField("input"), "reads 'X', which no node before it writes"),
        (lambda m: m.graph.node.append(m.graph.node[0]), "is a second tree operator"),
        (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", STRING), "its input is text; "),
        (lambda m: m.graph.input[0].ClearField("type"), "is not a tensor of floats, doubles, integers or texts"),
        (lambda m: m.graph.input[0].type.tensor_type.shape.dim.pop(), "has 1 dimensions"),
        (lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 1 << 62), "columns; "),
        (lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 0), "has 0 columns"),
        (lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0]), "appears twice"),
        (lambda m: m.graph.node[0].attribute.append(helper.make_attribute("color", 1)), "attribute 'color' is not kn"),
        (lambda m: setattr(m.graph.node[0].attribute[0], "ref_attr_name", "a"), "refers to an attribute of a function"),
        (lambda m: m.graph.sparse_initializer.add(), "sparse initializers are not read"),
    ],
)
def test_damaged_models_are_refused(change_model, message):
    source = regressor([STUMP])
    change_model(source)
    refused(source, message.removesuffix("; "))


def test_a_graph_in_a_graph_in_a_graph_is_refused():
    inner = helper.make_graph([], "g", [], [])
    for _ in range(30):
        inner = helper.make_graph([helper.make_node("If", ["c"], ["X"], then_branch=inner)], "g", [], [])
    source = around([inner.node[0]], inputs=[("c", FLOAT, 3)])
    refused(source, "operator 'If' is not folded into the trees")
    deep = b""
    for _ in range(1000):  # The graphs in attributes of nodes are nested deeper than protobuf goes.
        deep = field(1, field(5, field(6, deep)))
    with pytest.raises(ModelError, match="not a readable ONNX file"):
        read_bytes(field(7, deep), "m.onnx")


def field(number, content):
    """Encodes a protobuf field that holds bytes."""
    size, out = len(content), bytearray([number << 3 | 2])
    while True:
        out.append(size & 0x7F | (0x80 if size > 0x7F else 0))
        size >>= 7
        if not size:
            return bytes(out) + content


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\x08", b"\x00" * 100, b"\xff" * 100, b"PK\x03\x04", b"\x0a\xff\xff\xff\xff\x07"]
)
def test_something_else(data):
    with pytest.raises(ModelError):
        read_bytes(data, "m.onnx")


def test_text_that_is_not_utf_8():
    for old in (b"scaler", b"rows", b"producer", b"trees"):
        source = around([scaler("rows", "X", [0.0], [1.0])])
        source.producer_name = "producer"
        data = source.SerializeToString().replace(old, b"\xff" + old[1:])
        reads_whole(read_bytes, data)
    data = classifier([STUMP], ["nein", "ja"]).SerializeToString().replace(b"nein", b"n\xffin")
    with pytest.raises(ModelError, match="holds text that is not UTF-8"):
        read_bytes(data, "m.onnx")


def test_promises_take_neither_memory_nor_steps():
    promises = [
        change(ensemble5([STUMP]), "nodes_splits", TensorProto(data_type=1, dims=[1 << 31])),
        change(regressor([STUMP]), "n_targets", 65536),
        change(regressor([STUMP]), "nodes_nodeids", lambda ids: [0, 1, 2**31 - 1]),
        regressor([STUMP], columns=1 << 20),
        regressor([(2**20 - 1, "BRANCH_LT", 0.0, [(0, 1.0)], [(0, 2.0)])], columns=None),
    ]

    def read_all():
        for source in promises:
            try:
                load(source)
            except ForestcError as error:
                assert str(error)

    tracemalloc.start()
    assert calls_of(read_all) < 1e5
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_leaves_of_many_outputs_are_bounded():
    n = 20_000
    deep = [(k, 1.0) for k in range(2)]
    source = regressor([deep], 2)
    lists = {
        "nodes_nodeids": range(2 * n - 1),
        "nodes_treeids": [0] * (2 * n - 1),
        "nodes_truenodeids": [2 * k + 1 if k < n - 1 else 0 for k in range(2 * n - 1)],
        "nodes_falsenodeids": [2 * k + 2 if k < n - 1 else 0 for k in range(2 * n - 1)],
        "nodes_featureids": [0] * (2 * n - 1),
        "nodes_values": [0.5] * (2 * n - 1),
        "nodes_modes": ["BRANCH_LT" if k < n - 1 else "LEAF" for k in range(2 * n - 1)],
        "nodes_missing_value_tracks_true": [0] * (2 * n - 1),
        "target_nodeids": range(n - 1, 2 * n - 1),
        "target_treeids": [0] * n,
        "target_ids": range(n),
        "target_weights": [1.0] * n,
    }
    for name, items in lists.items():
        change(source, name, list(items))
    change(source, "n_targets", n)
    refused(source, "its leaves have more than 67108864 values in total")
