from __future__ import annotations

import sys

import numpy as np
import pytest
from onnx import helper
from onnx_models import (
    DOUBLE,
    FLOAT,
    INT64,
    MODES,
    ROWS,
    STRING,
    STUMP,
    THREE,
    TREES,
    agree,
    answers,
    around,
    chain,
    change,
    classifier,
    ensemble5,
    node,
    random_rows,
    regressor,
    scaler,
)

from forestc import inspect, load
from forestc.errors import ForestcError, ModelError
from forestc.frontends.onnx.reader import read_bytes
from forestc.rows.encode import evaluate


@pytest.mark.parametrize("mode", MODES[:6])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 0.5, np.inf, -np.inf, 3.4028235e38, 1e-45])
@pytest.mark.parametrize("missing", [0, 1])
def test_every_mode_at_every_kind_of_threshold(mode, value, missing):
    tree = (0, mode, value, [(0, 1.0)], [(0, 2.0)], missing)
    with np.errstate(over="ignore"):
        beside = np.nextafter(np.float32(value), np.array([np.inf, -np.inf], dtype=np.float32))
    rows = np.tile(np.array([value, *beside, 0, 1e-45, -1e-45, np.nan, np.inf, -np.inf], dtype=np.float32), (3, 1)).T
    agree(regressor([tree]), rows)
    agree(regressor([tree], kind=DOUBLE, tensors=True), rows.astype(np.float64))
    agree(ensemble5([tree]), rows)


def test_nodes_that_share_a_child_are_one_set():
    forest = agree(chain([1.0, 5.0, -0.5, 40.0, 5.0]))
    tree = forest.trees[0]
    assert (tree.size, tree.depth, len(tree.sets)) == (3, 1, 1)
    assert tree.ids.tolist() == [0, 5, 6]
    assert agree(chain([1.0, 2.0])).trees[0].sets[0] == (
        1.0,
        float(np.nextafter(np.float32(1), 2)),
        2.0,
        2.000000238418579,
    )


def test_a_chain_that_goes_round_is_refused():
    source = chain([1.0, 2.0, 3.0])
    change(source, "nodes_falsenodeids", lambda ids: [1, 2, 1, *ids[3:]])
    with pytest.raises(ModelError, match=r"cycle|two parents|orphan"):
        load(source)


@pytest.mark.parametrize("make", [regressor, lambda trees: classifier(trees, [0, 1, 2], base=[0.0, 0.5, 1.0])])
@pytest.mark.parametrize("cut", [1, 4, 7, 9])
def test_nodes_that_no_path_reaches_are_left_out(make, cut):
    """Makes an inner node a leaf, so that nothing leads to the nodes below it, which keep their weights."""
    trees = [(0, "BRANCH_LT", 0.0, STUMP, STUMP), (2, "BRANCH_NEQ", 2.5, [(0, 16.0)], STUMP)]
    source, (tree, number) = make(trees), divmod(cut, 7)
    change(source, "nodes_modes", lambda modes: [b"LEAF" if k == cut else mode for k, mode in enumerate(modes)])
    change(source, "nodes_values", lambda values: [np.nan if k == 9 > cut > 4 else v for k, v in enumerate(values)])
    prefix = "target" if make is regressor else "class"
    for name, item in (("treeids", tree), ("nodeids", number), ("ids", 0), ("weights", 128.0)):
        change(source, f"{prefix}_{name}", lambda items, item=item: [*items, item])
    assert agree(source).n_nodes == (8 if cut == 7 else 10)


def test_nodes_and_cycles_that_no_root_leads_to_are_left_out():
    source = ensemble5([STUMP, STUMP, STUMP])
    change(source, "tree_roots", [0])
    change(source, "nodes_truenodeids", [0, 2, 1])
    change(source, "nodes_trueleafs", [1, 0, 0])
    assert len(agree(source).trees) == 1


def test_an_export_of_catboost_says_who_wrote_it_and_names_json():
    source = regressor([STUMP])
    source.producer_name, source.producer_version = "CatBoost", "Git info:\n    Branch: tags/v1.2.10\n  4.5.6\n"
    assert load(source).provenance.version == "CatBoost 1.2.10"
    assert inspect(source)["source"] == "onnx CatBoost 1.2.10"
    source.producer_version = "\n"
    assert load(source).provenance.version == "CatBoost"
    with pytest.raises(ModelError, match="format='json'"):
        load(change(source, "n_targets", None))


def test_any_order_of_nodes_and_numbers_of_trees_and_nodes():
    trees = [(0, "BRANCH_LT", 0.5, (1, "BRANCH_GT", 1.0, [(0, 1.0)], [(0, 2.0)]), [(0, 4.0)]), STUMP]
    source = regressor(trees)
    order = [0, 4, 2, 3, 1, 5, 7, 6]
    for name in ("nodeids", "treeids", "truenodeids", "falsenodeids", "featureids", "modes", "values"):
        change(source, f"nodes_{name}", lambda items: [items[k] for k in order])
    change(source, "nodes_missing_value_tracks_true", None)
    for name in ("nodes_treeids", "target_treeids"):
        change(source, name, lambda ids: [7 if k == 0 else -3 for k in ids])
    forest = agree(source)
    assert forest.trees[0].ids.tolist() == [0, 4, 2, 3, 1]
    assert forest.trees[1].ids.tolist() == [0, 2, 1]


def test_trees_are_added_in_the_file_s_order_in_float32():
    weights = [2.0**24, 1.0, 1.0, -(2.0**24), 0.1]
    found = agree(regressor([[(0, w)] for w in weights]))
    assert evaluate(found, ROWS).scores[0, 0] == np.float32(0.1)
    back = agree(regressor([[(0, w)] for w in weights[::-1]]))
    assert evaluate(back, ROWS).scores[0, 0] == np.float32(2)


def test_whole_numbers_are_compared_as_float32():
    source = classifier([(0, "BRANCH_LEQ", 2.0**24, [(0, 0.25)], [(0, 0.75)])], [0, 1], kind=INT64)
    rows = np.array([[k, 0, 0] for k in (2**24, 2**24 + 1, 2**24 + 2, -5)], dtype=np.float64)
    forest = agree(source, rows)
    assert not forest.features[0].missing


def test_leaves_without_weights_and_weights_without_leaves():
    source = regressor([(0, "BRANCH_LEQ", 0.0, [], [(0, 2.0)])])
    agree(source)
    change(source, "nodes_values", lambda values: [values[0], 42.0, 0.0])
    assert evaluate(agree(source), ROWS).decision[0] == 42  # onnxruntime gives 42 for a single target.
    agree(regressor([(0, "BRANCH_LEQ", 0.0, [], [(1, 2.0)])], targets=2))
    inner = regressor([STUMP])
    for name, more in (("ids", 0), ("treeids", 0), ("nodeids", 0), ("weights", 9.0)):
        change(inner, f"target_{name}", lambda items: [*items, more])  # noqa: B023
    agree(inner)


def test_roots_that_are_leaves_and_leaves_that_are_shared():
    agree(regressor([[(0, 3.0)], STUMP]))
    shared = (0, "BRANCH_LT", 1.0, STUMP, [(0, 4.0)])
    agree(ensemble5([shared, [(0, 8.0)]]))
    source = ensemble5([shared])
    change(source, "nodes_falsenodeids", lambda ids: [0, *ids[1:]])  # Both branches lead to leaf 0.
    forest = agree(source)
    assert sorted(forest.trees[0].ids.tolist()) == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("labels", [["n", "y"], [0, 1], [5, 7]])
@pytest.mark.parametrize("voted", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("low", [0.1, -0.4])
@pytest.mark.parametrize("base", [None, 0.25])
def test_two_classes(post, labels, voted, low, base):
    trees = [
        (k, "BRANCH_LEQ", 0.5, [(c, 0.3 - 0.1 * k) for c in voted], [(c, low + 0.1 * c) for c in voted])
        for k in range(3)
    ]
    forest = agree(classifier(trees, labels, post, None if base is None else [base]), exactly=False)
    assert forest.n_outputs == (1 if voted == (0,) else 2)


def test_transforms_count_as_onnxruntime_numbers_them():
    trees = [(k, "BRANCH_LEQ", 0.5, [(k, 0.3)], [(k, -0.1)]) for k in range(3)]
    kinds = [agree(ensemble5(trees, 3, post=post), exactly=False).link.kind for post in range(4)]
    assert kinds == ["identity", "logistic", "softmax", "softmax-zero"]
    # onnxruntime applies no transform to a single target.
    assert agree(ensemble5([STUMP], post=1)).link.kind == "identity"


def test_probit_is_onnxruntime_s_approximation():
    trees = [(0, "BRANCH_LEQ", float(t), [(0, 0.005)], [(0, 0.01)]) for t in np.linspace(-3, 3, 99)]
    source = regressor(trees, post="PROBIT")
    rows = np.tile(np.linspace(-4, 4, 200, dtype=np.float32), (3, 1)).T
    found, output = evaluate(load(source), rows).decision, answers(source, rows)["scores"][:, 0]
    assert np.allclose(found, output, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_the_library_s_absence_is_one_clear_error(monkeypatch):
    data = regressor([STUMP]).SerializeToString()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ForestcError, match=r'^Python in .*: onnx is not installed; pip install "forestc\[onnx\]"'):
        read_bytes(data, "m.onnx")


def test_a_width_that_is_not_said_is_what_the_trees_and_scalers_know():
    assert load(regressor([(2, "BRANCH_LT", 0.0, [(0, 1.0)], [(0, 2.0)])], columns=None)).columns == 3
    assert load(around([scaler("rows", "X", [0.0] * 3, [1.0] * 3)], columns=None)).columns == 3
    assert load(regressor([STUMP], columns=7)).columns == 7


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([node("Clip", ["rows", "", "d"], ["X"])], {"d": 2.5}),
        (
            [
                node("Imputer", ["rows"], ["t"], imputed_value_floats=[5.0], replaced_value_float=1.0),
                scaler("t", "u", [0.5], [-2.0]),
                node("Imputer", ["u"], ["X"], imputed_value_floats=[2.5], replaced_value_float=-1.0),
            ],
            {},
        ),
        ([node("Gather", ["rows", "i"], ["X"], axis=1)], {"i": np.array([1, 1, 2])}),
        (
            [
                node("Gather", ["rows", "i"], ["t"], axis=1),
                scaler("t", "u", [0.5], [3.0]),
                node("Concat", ["rows", "u"], ["v"], axis=1),
                node("ArrayFeatureExtractor", ["v", "j"], ["X"]),
            ],
            {"i": np.array([2, 1]), "j": np.array([3, 4, 1])},
        ),
        ([node("Identity", ["rows"], ["t"]), node("Reshape", ["t", "s"], ["X"])], {"s": np.array([-1, 3])}),
        ([node("Flatten", ["rows"], ["t"]), node("Cast", ["t"], ["X"], to=FLOAT)], {}),
    ],
)
def test_steps_before_the_trees_become_conditions(nodes, constants):
    kept = {k: v if getattr(v, "dtype", None) == np.int64 else np.asarray(v, np.float32) for k, v in constants.items()}
    source = around(nodes, constants=kept, trees=TREES)
    rows = random_rows(np.random.default_rng(3), 400, 3)
    forest = load(source)
    for feature in range(len(forest.features)):
        for cut in forest.conditions.thresholds(feature)[:4]:
            if np.isfinite(cut):
                own = rows[: len(rows) // 2, forest.features[feature].column]
                near = [cut, np.nextafter(np.float32(cut), np.float32(np.inf)), np.nextafter(np.float32(cut), -np.inf)]
                own[:] = np.where(np.random.default_rng(4).random(len(own)) < 0.3, np.resize(near, len(own)), own)
    agree(source, rows)


def test_a_double_that_is_cast_is_rounded_first():
    source = around([node("Cast", ["rows"], ["X"], to=FLOAT)], inputs=[("rows", DOUBLE, 3)], trees=TREES)
    forest = agree(source, random_rows(np.random.default_rng(0), 300, 3, np.float64))
    assert str(forest.features[0].raw) == "float32"
    twice = [node("Cast", ["rows"], ["t"], to=FLOAT), node("Concat", ["t", "t"], ["X"], axis=1)]
    agree(around(twice, inputs=[("rows", DOUBLE, 3)], trees=TREES), np.full((2, 3), 0.3))
    scaled = [scaler("rows", "X", [0.1], [3.0])]
    forest = agree(
        around(scaled, inputs=[("rows", DOUBLE, 3)], trees=TREES),
        random_rows(np.random.default_rng(0), 300, 3, np.float64),
    )
    assert str(forest.features[0].number) == "float64"


def test_inputs_stand_side_by_side():
    inputs = [("age", INT64, 1), ("rest", FLOAT, 2), ("unused", FLOAT, 1)]
    nodes = [node("Cast", ["age"], ["t"], to=FLOAT), node("Concat", ["rest", "t"], ["X"], axis=1)]
    source = around(nodes, inputs=inputs, trees=TREES)
    forest = agree(source, np.random.default_rng(0).integers(-2, 4, (50, 4)).astype(np.float32))
    assert forest.columns == 4
    assert [(f.name, f.column, f.missing) for f in forest.features] == [
        ("age", 0, False),
        ("x1", 1, True),
        ("x2", 2, True),
    ]


@pytest.mark.parametrize(
    ("nodes", "constants", "kind"),
    [
        ([node("Add", ["sums", "c"], ["scores"])], {"c": 0.5}, "identity"),
        ([node("Sub", ["sums", "c"], ["t"]), node("Identity", ["t"], ["scores"])], {"c": [0.5]}, "identity"),
        ([node("Div", ["sums", "c"], ["t"]), node("Add", ["d", "t"], ["scores"])], {"c": 3.0, "d": 0.1}, "identity"),
        ([node("Mul", ["c", "sums"], ["scores"])], {"c": 0.3}, "identity"),
        ([node("Mul", ["sums", "c"], ["t"]), node("Exp", ["t"], ["scores"])], {"c": 0.1}, "exp"),
        ([node("Sigmoid", ["sums"], ["t"]), node("Mul", ["t", "c"], ["scores"])], {"c": 1.0}, "sigmoid"),
        ([node("Reshape", ["sums", "s"], ["scores"])], {"s": np.array([-1])}, "identity"),
        ([node("Squeeze", ["sums", "s"], ["scores"])], {"s": np.array([1])}, "identity"),
        ([node("Flatten", ["sums"], ["t"]), node("Cast", ["t"], ["scores"], to=DOUBLE)], {}, "identity"),
    ],
)
def test_steps_after_the_trees_become_bias_divisor_and_link(nodes, constants, kind):
    kept = {k: v if getattr(v, "dtype", None) == np.int64 else np.asarray(v, np.float32) for k, v in constants.items()}
    outputs = [("scores", DOUBLE if nodes[-1].op_type == "Cast" else FLOAT)]
    forest = agree(around(after=nodes, constants=kept, outputs=outputs), exactly=kind == "identity")
    assert forest.link.kind == kind


@pytest.mark.parametrize(
    ("nodes", "constants", "classes"),
    [
        ([node("ArgMax", ["sums"], ["label"], axis=1)], {}, (0, 1, 2)),
        (
            [
                node("Softmax", ["sums"], ["scores"]),
                node("ArgMax", ["sums"], ["i"], axis=-1, keepdims=0),
                node("Gather", ["names", "i"], ["label"]),
            ],
            {"names": np.array([7, 8, 9])},
            (7, 8, 9),
        ),
        (
            [
                node("Add", ["sums", "c"], ["scores"]),
                node("ArgMax", ["scores"], ["i"], axis=1, select_last_index=1),
                node("ArrayFeatureExtractor", ["names", "i"], ["t"]),
                node("Reshape", ["t", "flat"], ["u"]),
                node("Cast", ["u"], ["label"], to=INT64),
            ],
            {"c": np.float32([0.1, 0.1, 0.2]), "names": np.array([7, 8, 9], np.int32), "flat": np.array([-1])},
            (7, 8, 9),
        ),
        (
            [
                node("ArgMax", ["sums"], ["i"], axis=1, keepdims=0),
                node(
                    "LabelEncoder", ["i"], ["label"], keys_int64s=[0, 1, 2], values_strings=["a", "b", "c"],
                ),
            ],
            {},
            ("a", "b", "c"),
        ),
    ],
)  # fmt: skip
def test_classes_by_argmax(nodes, constants, classes):
    outputs = [("label", STRING if isinstance(classes[0], str) else INT64)]
    outputs += [("scores", FLOAT)] * any("scores" in n.output for n in nodes)
    forest = agree(around(after=nodes, constants=constants, outputs=outputs, trees=THREE, targets=3), exactly=False)
    assert forest.classes == classes


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("low", [0.1, -0.4])
def test_argmax_of_the_two_columns_of_a_single_score(post, low):
    trees = [(k % 3, "BRANCH_LEQ", 0.05 * k, [(0, 0.0625)], [(0, low / 4)]) for k in range(-8, 9)]
    source = classifier(trees, [0, 1], post)
    source.graph.node.append(node("ArgMax", ["scores"], ["other"], axis=1, keepdims=0))
    source.graph.output[0].name = "other"
    rows = random_rows(np.random.default_rng(0), 500, 3)
    found, output = evaluate(load(source), rows), answers(source, rows)
    assert found.decision.tolist() == output["other"].tolist()


def test_columns_of_the_scores_and_dictionaries_are_only_another_way_to_show_them():
    source = classifier([STUMP], [3, 4])
    source.graph.node.append(node("ZipMap", ["scores"], ["dictionaries"], classlabels_int64s=[3, 4]))
    source.graph.output[1].CopyFrom(helper.make_empty_tensor_value_info("dictionaries"))
    assert load(source).classes == (3, 4)


def neighbors(first, second):
    """Makes two BRANCH_EQ nodes, which onnxruntime merges if their leaves begin alike."""
    last = [(0, 9.0), (1, 8.0)]
    return regressor([(2, "BRANCH_EQ", 3.0, first, (2, "BRANCH_EQ", 4.0, second, last))], 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([(0, 0.1), (1, 0.3)], [(0, 0.1), (1, 0.7)]),
        ([(0, 0.5)], [(1, 0.5)]),
        ([], [(0, 2.0)]),
    ],
)
def test_leaves_that_begin_alike_are_refused(first, second):
    with pytest.raises(ModelError, match="consecutive BRANCH_EQ nodes"):
        load(neighbors(first, second))


@pytest.mark.parametrize("second", [[(0, 0.2), (1, 0.7)], [(0, 0.1), (1, 0.3)]])
def test_leaves_that_differ_or_are_the_same_are_read(second):
    rows = np.array([[0, 0, k] for k in range(6)], dtype=np.float32)
    agree(neighbors([(0, 0.1), (1, 0.3)], second), rows)


def test_a_column_past_all_bounds_is_refused():
    source = regressor([(0, "BRANCH_LEQ", 0.5, [(0, 1.0)], [(0, 2.0)])], columns=None)
    change(source, "nodes_featureids", lambda ids: [2**40, *ids[1:]])
    with pytest.raises(ModelError, match="reads column 1099511627776"):
        load(source)
