from __future__ import annotations

import numpy as np
import pytest

from forestc.errors import ModelError
from forestc.forest.builder import MAX_DEPTH, make_forest, make_tree
from forestc.forest.ir import Aggregate, Decision, Feature, Link
from forestc.forest.numbers import FLOAT32, Category

GOOD = {
    "feature": [0, -1, 1, -1, -1],
    "threshold": [0.5, 0, 1.5, 0, 0],
    "left": [1, -1, 3, -1, -1],
    "right": [2, -1, 4, -1, -1],
    "values": [[1.0], [2.0], [3.0]],
    "outputs": [0],
}


def forest_of(tree, n_outputs=1, decision=None, classes=(), features=2, **more):
    return make_forest(
        name="t",
        features=[Feature(f"f{i}", FLOAT32, i) for i in range(features)],
        columns=features,
        trees=[tree],
        n_outputs=n_outputs,
        decision=decision,
        classes=classes,
        **more,
    )


def test_a_good_tree_is_taken_and_frozen():
    threshold = np.array(GOOD["threshold"], dtype=float)
    tree = make_tree(where="tree 0", **{**GOOD, "threshold": threshold})
    threshold[0] = 99
    assert tree.threshold[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        tree.threshold[0] = 1
    assert (tree.depth, tree.size, tree.leaf.tolist()) == (2, 5, [-1, 0, -1, 1, 2])
    assert forest_of(tree).n_leaves == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": [1, -1, 9, -1, -1]}, "tree 7, node 2: left child 9 is outside the 5 nodes"),
        ({"right": [2, -1, -2, -1, -1]}, "tree 7, node 2: right child -2 is outside the 5 nodes"),
        ({"right": [2, -1, -1, -1, -1]}, "tree 7, node 2: has one child only"),
        ({"left": [1, -1, 1, -1, -1]}, "tree 7, node 1: has two parents"),
        ({"left": [1, -1, 0, -1, -1]}, "the root is a child of another node: a cycle"),
        ({"left": [1, -1, 2, -1, -1], "right": [3, -1, 4, -1, -1]}, "tree 7, node 2: lies on a cycle"),
        (
            {"left": [1, -1, -1, -1, -1], "right": [2, -1, -1, -1, -1]},
            "tree 7, node 3: is an orphan: no node leads to it",
        ),
        ({"threshold": [0.5, 0, 1.5]}, "tree 7: 3 thresholds for 5 nodes"),
        ({"threshold": ["a", 0, 1.5, 0, 0]}, "thresholds are not numbers"),
        ({"feature": [0.5, -1, 1, -1, -1]}, "features are not a list of whole numbers"),
        ({"left": [1 << 40, -1, 3, -1, -1]}, "left children do not fit 32 bits"),
        ({"left": [], "right": [], "feature": [], "threshold": [], "values": []}, "0 nodes"),
    ],
)
def test_what_is_not_a_tree_is_refused_by_name(change, message):
    with pytest.raises(ModelError) as caught:
        make_tree(where="tree 7", **{**GOOD, **change})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": [np.nan, 0, 1, 0, 0]}, "tree 0, node 0, feature 'f0': the threshold is not a number (NaN)"),
        ({"feature": [0, -1, 5, -1, -1]}, "tree 0, node 2: feature 5 is outside the 2 features"),
        ({"values": [[1.0], [np.inf], [3.0]]}, "tree 0, node 3: a leaf value is not finite"),
        ({"values": [[1.0, 2.0]] * 3}, "tree 0: leaf values have shape (3, 2); 1 outputs a leaf"),
        ({"values": [[1.0]]}, "tree 0, node 3: leaf row 1 of 1"),
        ({"outputs": [4]}, "tree 0: outputs (4,) of 1"),
        (
            {"missing_left": [True, False, False, False, False]},
            "tree 0, node 0, feature 'f0': sends missing values left, but the feature is never missing",
        ),
        (
            {"threshold": [0.5, 0, 0.1, 0, 0]},
            "tree 0, node 2, feature 'f1': threshold 0.1 is not a float32, as its feature is",
        ),
        (
            {"set_index": [0, -1, -1, -1, -1], "sets": [[-np.inf, 0.1]]},
            "tree 0, node 0, feature 'f0': the set holds a number that is not a float32, as its feature is",
        ),
        ({"set_index": [3, -1, -1, -1, -1]}, "set 3 of 0"),
        ({"set_index": [0, -1, -1, -1, -1], "sets": [[np.nan]]}, "a set holds what is not a number"),
    ],
)
def test_what_is_no_forest_is_refused_by_name(change, message):
    with pytest.raises(ModelError) as caught:
        forest_of(make_tree(where="tree 0", **{**GOOD, **change}))
    assert message in str(caught.value)


def test_node_numbers_in_messages_are_the_source_s_own():
    with pytest.raises(ModelError, match="tree 0, node 70"):
        forest_of(make_tree(where="t", **{**GOOD, "threshold": [np.nan, 0, 1, 0, 0], "ids": [70, 1, 2, 3, 4]}))


def test_decisions_must_fit_the_outputs():
    tree = make_tree(where="t", **GOOD)
    with pytest.raises(ModelError, match="decision threshold needs 2 classes and 1 output"):
        forest_of(tree, decision=Decision("threshold", 0.5), classes=["a", "b", "c"])
    with pytest.raises(ModelError, match="decision argmax needs as many classes as outputs"):
        forest_of(tree, decision=Decision("argmax"), classes=["a", "b"])
    with pytest.raises(ModelError, match=r"a bias of \[nan\] is not finite"):
        forest_of(tree, bias=[np.nan])


def test_categories_of_one_name_are_refused():
    leaf = {"feature": [-1], "threshold": [0], "left": [-1], "right": [-1], "values": [[0.0]], "outputs": [0]}
    feature = Feature("color", Category(3), 0, labels=("red", "blue", "red"))
    with pytest.raises(ModelError, match="feature 'color': two categories are called 'red'"):
        make_forest(
            name="t", features=[feature], columns=1, trees=[make_tree(where="t", **leaf)], n_outputs=1, bias=[0.0],
            aggregate=Aggregate(), link=Link(), decision=Decision("none"),
        )  # fmt: skip


def test_depth_is_bounded():
    n = MAX_DEPTH + 1
    left = [i for k in range(n) for i in (2 * k + 1, -1)] + [-1]
    right = [i for k in range(n) for i in (2 * k + 2, -1)] + [-1]
    with pytest.raises(ModelError, match=f"chain: is deeper than {MAX_DEPTH} conditions"):
        make_tree(
            where="chain", feature=[0] * len(left), threshold=[0.0] * len(left), left=left, right=right,
            values=[[0.0]] * (n + 1), outputs=[0],
        )  # fmt: skip


def test_scores_are_bounded_on_either_side():
    leaf = {"feature": [-1], "threshold": [0], "left": [-1], "right": [-1], "values": [[0]], "outputs": [0]}
    lowest = make_tree(where="t", **leaf, quantized=True)
    with pytest.raises(ModelError, match="scores need more than 62 bits"):
        forest_of(lowest, features=0, bias=[-(1 << 63)], scale=1.0)
