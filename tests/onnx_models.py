"""Makes ONNX models by hand, and runs onnxruntime on them with one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from forestc import load
from forestc.errors import ModelError
from forestc.rows.encode import evaluate

FLOAT, DOUBLE, INT32, INT64, STRING = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.STRING,
)
NUMPY = {FLOAT: np.float32, DOUBLE: np.float64, INT32: np.int32, INT64: np.int64}
ML = "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
ROWS = np.array(
    [[-1, 0, 1], [0, -0.0, 2], [1, 5, 3], [2, 1, 0], [np.nan] * 3, [np.inf] * 3, [-np.inf] * 3], dtype=np.float32
)

STUMP = (0, "BRANCH_LEQ", 0.0, [(0, 1.0)], [(0, 2.0)])
TREES = [
    (
        0,
        "BRANCH_LEQ",
        0.3,
        (1, "BRANCH_EQ", -0.75, [(0, 1.0)], [(0, 2.0)], 1),
        (2, "BRANCH_GT", 1.0, [(0, 4.0)], [(0, 8.0)]),
    ),
    (2, "BRANCH_NEQ", 2.5, [(0, 16.0)], (1, "BRANCH_GTE", -1.5, [(0, 32.0)], [(0, 64.0)], 1)),
]
THREE = [(k, "BRANCH_LEQ", 0.5, [(k, 0.3)], [(k, -0.1 * k)]) for k in range(3)]
POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def answers(model: onnx.ModelProto, rows: Any) -> dict[str, Any]:
    """Returns onnxruntime's outputs by name. rows: the inputs side by side."""
    running = session(model)
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    types |= {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(string)": object}
    feed, start = {}, 0
    for item in running.get_inputs():
        width = item.shape[1] if isinstance(item.shape[1], int) else rows.shape[1] - start
        feed[item.name] = np.ascontiguousarray(rows[:, start : start + width], dtype=types[item.type])
        start += width
    return dict(zip((item.name for item in running.get_outputs()), running.run(None, feed), strict=True))


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, Any]],
    outputs: Sequence[tuple[str, int]],
    constants: dict[str, Any] | None = None,
    ml: int = 3,
    opset: int = 18,
) -> onnx.ModelProto:
    """Makes a ModelProto. inputs: name, type, columns (None: not stated). constants: arrays by name."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, kind, [None, width]) for name, kind, width in inputs],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, ml)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def flat(trees: Sequence[Any]) -> tuple[dict[str, list[Any]], list[tuple[int, int, int, float]]]:
    """Turns trees into the lists of the older operators, and tuples (tree, node, output, weight).

    A leaf is a list of (output, weight). Another node is (feature, mode, value, true, false[, missing to true]).
    """
    names = ("nodeids", "treeids", "truenodeids", "falsenodeids", "featureids", "values", "modes")
    lists: dict[str, list[Any]] = {f"nodes_{name}": [] for name in (*names, "missing_value_tracks_true")}
    votes = []
    for number, tree in enumerate(trees):
        rows: list[Any] = []

        def add(node: Any) -> int:
            place = len(rows)  # noqa: B023
            rows.append(None)  # noqa: B023
            if isinstance(node, list):
                rows[place] = (0, 0, 0, 0.0, "LEAF", 0)  # noqa: B023
                votes.extend((number, place, output, weight) for output, weight in node)  # noqa: B023
            else:
                feature, mode, value, true, false, *missing = node
                children = add(true), add(false)
                rows[place] = (*children, feature, value, mode, *(missing or [0]))  # noqa: B023
            return place

        add(tree)
        for place, row in enumerate(rows):
            for name, item in zip(lists, (place, number, *row), strict=True):
                lists[name].append(item)
    return lists, votes


def _older(
    operator: str,
    prefix: str,
    trees: Sequence[Any],
    tensors: bool,
    base: Sequence[float] | None,
    outputs: Sequence[str],
    more: dict[str, Any],
) -> onnx.NodeProto:
    lists, votes = flat(trees)
    values: dict[str, Any] = {
        "nodes_values": lists.pop("nodes_values"),
        f"{prefix}_weights": [vote[3] for vote in votes],
        **({} if base is None else {"base_values": list(base)}),
    }
    for name in list(values) if tensors else []:
        items = values.pop(name)
        values[f"{name}_as_tensor"] = helper.make_tensor(name, DOUBLE, [len(items)], items)
    places = {f"{prefix}_treeids": 0, f"{prefix}_nodeids": 1, f"{prefix}_ids": 2}
    ids = {name: [vote[place] for vote in votes] for name, place in places.items()}
    return helper.make_node(operator, ["X"], list(outputs), name="trees", domain=ML, **lists, **values, **ids, **more)


def classifier(
    trees: Sequence[Any],
    labels: Sequence[Any],
    post: str = "NONE",
    base: Sequence[float] | None = None,
    kind: int = FLOAT,
    tensors: bool = False,
    columns: int | None = 3,
    ml: int = 3,
) -> onnx.ModelProto:
    """Makes a TreeEnsembleClassifier with outputs `label` and `scores`. labels: int or str."""
    text = isinstance(labels[0], str)
    names = {"classlabels_strings" if text else "classlabels_int64s": list(labels)}
    more = {"post_transform": post, **names}
    node = _older("TreeEnsembleClassifier", "class", trees, tensors, base, ["label", "scores"], more)
    return model([node], [("X", kind, columns)], [("label", STRING if text else INT64), ("scores", FLOAT)], ml=ml)


def regressor(
    trees: Sequence[Any],
    targets: int = 1,
    post: str = "NONE",
    base: Sequence[float] | None = None,
    aggregate: str = "SUM",
    kind: int = FLOAT,
    tensors: bool = False,
    columns: int | None = 3,
    ml: int = 3,
) -> onnx.ModelProto:
    """Makes a TreeEnsembleRegressor with output `scores`."""
    more = {"post_transform": post, "n_targets": targets, "aggregate_function": aggregate}
    node = _older("TreeEnsembleRegressor", "target", trees, tensors, base, ["scores"], more)
    return model([node], [("X", kind, columns)], [("scores", FLOAT)], ml=ml)


def lists5(trees: Sequence[Any], kind: int) -> dict[str, Any]:
    """Turns trees into the attributes of a TreeEnsemble. A leaf is a list of one (output, weight); the value of a
    MEMBER node is a list."""
    rows: list[Any] = []
    leaves: list[tuple[int, float]] = []
    members: list[float] = []
    roots = []

    def add(node: Any) -> tuple[int, int]:
        if isinstance(node, list):
            leaves.extend(node)
            return len(leaves) - 1, 1
        place = len(rows)
        rows.append(None)
        feature, mode, value, true, false, *missing = node
        if mode == "BRANCH_MEMBER":
            members.extend([*value, np.nan])
            value = np.nan
        children = add(true), add(false)
        rows[place] = (feature, MODES.index(mode), value, *children[0], *children[1], *(missing or [0]))
        return place, 0

    for tree in trees:
        if isinstance(tree, list):  # The root is a leaf.
            leaves.extend(tree)
            rows.append((0, 0, 0.0, len(leaves) - 1, 1, len(leaves) - 1, 1, 0))
            roots.append(len(rows) - 1)
        else:
            roots.append(add(tree)[0])
    names = ("featureids", "modes", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    names = (*names, "missing_value_tracks_true")
    found: dict[str, Any] = {
        f"nodes_{name}": list(items) for name, items in zip(names, zip(*rows, strict=True), strict=True)
    }
    n = len(rows)
    found["nodes_modes"] = helper.make_tensor("m", TensorProto.UINT8, [n], found["nodes_modes"])
    found["nodes_splits"] = helper.make_tensor("s", kind, [n], found["nodes_splits"])
    found["leaf_targetids"] = [leaf[0] for leaf in leaves]
    found["leaf_weights"] = helper.make_tensor("w", kind, [len(leaves)], [leaf[1] for leaf in leaves])
    found["tree_roots"] = roots
    if members:
        found["membership_values"] = helper.make_tensor("v", kind, [len(members)], members)
    return found


def ensemble5(
    trees: Sequence[Any],
    targets: int = 1,
    post: int = 0,
    aggregate: int = 1,
    kind: int = FLOAT,
    columns: int | None = 3,
    **changed: Any,
) -> onnx.ModelProto:
    """Makes a TreeEnsemble of ai.onnx.ml 5 with output `scores`. changed: attributes that replace the right ones."""
    attributes = lists5(trees, kind)
    attributes |= {"n_targets": targets, "post_transform": post, "aggregate_function": aggregate}
    attributes = {name: value for name, value in (attributes | changed).items() if value is not None}
    node = helper.make_node("TreeEnsemble", ["X"], ["scores"], name="trees", domain=ML, **attributes)
    return model([node], [("X", kind, columns)], [("scores", kind)], ml=5, opset=21)


def bare(source: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with one output: the sums of its tree operator before any transform."""
    copy = onnx.ModelProto()
    copy.CopyFrom(source)
    (trees,) = (node for node in copy.graph.node if node.op_type.startswith("TreeEnsemble"))
    for attribute in trees.attribute:
        if attribute.name == "post_transform":
            none = 0 if attribute.type == onnx.AttributeProto.INT else "NONE"
            attribute.CopyFrom(helper.make_attribute("post_transform", none))
    kinds = [attribute.t.data_type for attribute in trees.attribute if attribute.name == "nodes_splits"]
    kind = kinds[0] if kinds else FLOAT
    del copy.graph.output[:]
    copy.graph.output.append(helper.make_tensor_value_info(trees.output[-1], kind, None))
    return copy


def random_trees(
    random: np.random.Generator,
    count: int,
    outputs: int,
    modes: Sequence[str],
    depth: int = 4,
    features: int = 3,
    votes: str = "all",
    whole: bool = False,
    low: float = -1.0,
    values: Sequence[float] = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 33.0, 1e-45, 3.4028235e38, np.inf, -np.inf),
    precise: bool = False,
) -> list[Any]:
    """Makes trees of random shape. votes: a leaf votes for "all" outputs, for "one", or all leaves of a tree for one
    ("tree"). whole: thresholds are integers. precise: float64 numbers."""

    def number() -> float:
        if random.random() < 0.5:
            found = float(random.choice(values))
        else:
            found = float(random.normal())
        if whole:
            found = float(round(min(max(found, -40), 40)))
        return found if precise else float(np.float32(found))

    def leaf(own: int) -> list[tuple[int, float]]:
        chosen = {"all": range(outputs), "one": [int(random.integers(outputs))], "tree": [own]}[votes]
        found = [(k, float(random.uniform(low, 1))) for k in chosen]
        return found if precise else [(k, float(np.float32(w))) for k, w in found]

    def node(level: int, own: int) -> Any:
        if level == 0 or random.random() < 0.15:
            return leaf(own)
        mode = str(random.choice(list(modes)))
        value: Any = number()
        if mode == "BRANCH_MEMBER":
            # onnxruntime takes sets of any numbers from 0 to 30, or of integers.
            whole_set = random.random() < 0.5
            known = np.arange(-5.0, 40.0) if whole_set else np.array([0, 0.5, 1, 1.5, 2, 3, 7.25, 29.5, 30])
            value = random.choice(known, int(random.integers(1, 6))).tolist()
        feature, missing = int(random.integers(features)), int(random.integers(2))
        return (feature, mode, value, node(level - 1, own), node(level - 1, own), missing)

    return [node(depth, tree % outputs) for tree in range(count)]


def random_rows(random: np.random.Generator, count: int, columns: int, dtype: Any = np.float32) -> Any:
    """Draws rows of the thresholds of `random_trees`, their neighbors, and special values."""
    known = np.array([-1, -0.5, 0, -0.0, 0.5, 1, 2, 3, 33, 1e-45, 3.4028235e38, np.inf, -np.inf, np.nan], dtype=dtype)
    rows = random.choice(known, (count, columns))
    with np.errstate(over="ignore"):
        beside = np.nextafter(rows, np.where(random.random(rows.shape) < 0.5, -np.inf, np.inf).astype(dtype))
    rows = np.where(random.random(rows.shape) < 0.3, beside, rows)
    return np.where(random.random(rows.shape) < 0.4, random.normal(size=rows.shape).astype(dtype), rows).astype(dtype)


def agree(source, rows=ROWS, exactly=True):
    """Loads the model, compares its values and decisions with onnxruntime's, and returns the forest."""
    forest = load(source)
    found, output = evaluate(forest, rows), answers(source, rows)
    if "label" in output:
        assert found.decision.tolist() == output["label"].ravel().tolist()
    if "scores" in output:
        scores = output["scores"]
        expected = scores[:, 1:] if found.values.shape[1] == 1 and scores.shape[-1] == 2 else scores
        mine = found.values.reshape(expected.shape).astype(expected.dtype)
        # onnxruntime mirrors the logistic function at 0: 1 - f(-s) is off by half a unit in the last place of 1.
        assert np.array_equal(mine, expected, equal_nan=True) if exactly else np.allclose(mine, expected, 0, 2.0**-23)
    return forest


def chain(values, sharing=True):
    """Makes nodes that compare a column with one value after the other and share their true child, as converters write
    LightGBM's sets."""
    n = len(values)
    lists = {
        "nodes_nodeids": list(range(n + 2)),
        "nodes_treeids": [0] * (n + 2),
        "nodes_featureids": [0] * (n + 2),
        "nodes_values": [*values, 0.0, 0.0],
        "nodes_modes": ["BRANCH_EQ"] * n + ["LEAF"] * 2,
        "nodes_truenodeids": [n] * n + [0, 0],
        "nodes_falsenodeids": [*range(1, n), n + 1, 0, 0],
    }
    votes = {"target_ids": [0, 0], "target_treeids": [0, 0], "target_nodeids": [n, n + 1], "target_weights": [1.0, 2.0]}
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["scores"], domain=ML, n_targets=1, **lists, **votes)
    return model([node], [("X", FLOAT, 3)], [("scores", FLOAT)])


def change(source, name, to):
    """Replaces one attribute of the tree operator by the result of `to`; None drops it."""
    (node,) = (n for n in source.graph.node if n.op_type.startswith("TreeEnsemble"))
    (attribute,) = (a for a in node.attribute if a.name == name)
    value = to(helper.get_attribute_value(attribute)) if callable(to) else to
    node.attribute.remove(attribute)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))
    return source


def scaler(source, target, offset, scale):
    return helper.make_node(
        "Scaler", [source], [target], name=f"scaler {target}", domain=ML, offset=offset, scale=scale
    )


def trees_node(source="X", target="scores", trees=(STUMP,), targets=1):
    lists, votes = flat(list(trees))
    ids = {"treeids": 0, "nodeids": 1, "ids": 2, "weights": 3}
    more = {f"target_{name}": [vote[place] for vote in votes] for name, place in ids.items()}
    return helper.make_node(
        "TreeEnsembleRegressor", [source], [target], name="trees", domain=ML, n_targets=targets, **lists, **more
    )


def around(before=(), after=(), constants=None, outputs=(("scores", FLOAT),), inputs=None, columns=3, **more):
    """Puts trees between nodes: from `rows` to `X` before them, from `sums` to `scores` after them."""
    inputs = inputs or [("rows" if before else "X", FLOAT, columns)]
    own = trees_node("X", "sums" if after else "scores", **more)
    return model([*before, own, *after], inputs, list(outputs), constants)


def node(operator, inputs, outputs, **attributes):
    own = {"Scaler", "Imputer", "Normalizer", "ArrayFeatureExtractor", "ZipMap", "LabelEncoder", "Binarizer"}
    own |= {"OneHotEncoder", "StringNormalizer"}
    domain = ML if operator in own else ""
    return helper.make_node(operator, inputs, outputs, name=f"{operator} {outputs[0]}", domain=domain, **attributes)


def refused(source, message):
    """Asserts that loading a model is refused in one line, with this message."""
    with pytest.raises(ModelError) as caught:
        load(source)
    assert message in str(caught.value), caught.value
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700
