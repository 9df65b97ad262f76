"""Tests the output of inspect, short reprs, and the display in notebooks."""

from __future__ import annotations

import numpy as np
import pytest
from models import trained
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.errors import OptionError

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model, X, y = trained("forest-multi")
    out = tmp_path_factory.mktemp("inspection") / "out"
    return forestc.compile(model, X, out, label=y, targets="verilog, c", name=HOSTILE)


def test_features_are_counted_node_by_node():
    model, _, _ = trained("forest-multi")
    figures = forestc.inspect(model)
    output = {feature["column"]: feature for feature in figures["per_feature"]}
    read = np.concatenate([tree.tree_.feature[tree.tree_.feature >= 0] for tree in model.estimators_])
    assert {column: output[column]["uses"] for column in set(read.tolist())} == {
        column: int((read == column).sum()) for column in set(read.tolist())
    }
    at = [tree.tree_.threshold[tree.tree_.feature == 20] for tree in model.estimators_]
    assert output[20]["conditions"] == len({np.float32(t) for t in np.concatenate(at)})
    assert sum(feature["conditions"] for feature in figures["per_feature"]) == figures["distinct_conditions"]


def test_a_compiled_folder_is_reported_with_what_was_written(compiled):
    for source in (compiled.design, compiled.design.folder, str(compiled.design.folder)):
        figures = forestc.inspect(source)
        assert figures["quantized"] and figures["compiled"]["targets"] == ["c", "verilog"]
        assert figures["compiled"]["changed_files"] == []
        assert all(feature["words"] is not None for feature in figures["per_feature"])


def test_public_objects_are_short_in_a_terminal_and_tables_in_a_notebook(compiled):
    _, X, _ = trained("forest-multi")
    result = forestc.check(compiled.design, X[:50], engines=["netlist"], random_rows=10)
    objects = [
        compiled,
        compiled.design,
        compiled.design.forest,
        compiled.design.forest.trees[0],
        compiled.design.netlist,
        forestc.evaluate(compiled.design.forest, X),
        result,
    ]
    for value in objects:
        assert len(repr(value)) < 300 and "\n" not in repr(value)
    for value in (compiled, compiled.design, compiled.design.forest, result):
        html = value._repr_html_()
        assert "<table>" in html and "<script" not in html
    assert "&lt;script&gt;" in compiled.design.forest._repr_html_()


def test_a_drawn_tree_is_the_librarys():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    output = forestc.inspect(model, tree=0)
    assert output["condition"].startswith("petal") and output["cover"] == 150
    left = output["yes"]
    assert left["leaf"].startswith("0: ") and left["cover"] == model.tree_.n_node_samples[1]
    assert forestc.inspect(model, tree=0, depth=0)["below"] == model.tree_.node_count - 1
    with pytest.raises(OptionError, match="tree=: there is no tree 1; the forest has"):
        forestc.inspect(model, tree=1)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    words = forestc.inspect(forestc.quantize(forest, X, y), tree=2)
    assert "(" in words["condition"]  # The text holds the word, and the value that it stands for.
