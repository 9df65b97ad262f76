"""Tests the cells of small forests, with texts in and out."""

from __future__ import annotations

import pytest
from forest_texts import head

from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.text import print_netlist

CLASSES = {"decision": "threshold 2 on scores", "classes": '["no", "yes"]'}


def lowered(nodes, latency=0, outputs="0", **answers):
    """Returns the cells and outputs, without the three inputs %2 to %4."""
    trees = ("".join(f"{i}: {node}\n" for i, node in enumerate(tree.split(" | "))) for tree in nodes.split(" || "))
    text = head("a uint8", "b uint8", "c category<4>", **answers)
    text += "".join(f"tree outputs {outputs}\n{tree}" for tree in trees)
    lines = print_netlist(lower(parse_forest(text), LoweringOptions(latency))).splitlines()
    assert [line.split(" : ")[0] for line in lines[1:4]] == ['%2 = input "x0"', '%3 = input "x1"', '%4 = input "x2"']
    return "\n".join(lines[4:]) + "\n"


def test_a_tree_is_a_mux_of_leaves_above_the_smallest_which_is_added():
    assert (
        lowered("0 < 9 ? 1 : 2 | leaf 1 | leaf 4")
        == """\
%5 = const 0 : u2
%6 = const 3 : u2
%7 = less %2, 9 : u1  @0.0
%8 = mux %7, %5, %6 : u2  @0.0
%9 = add %8, %1 : u3
output "score0" = %9  score 0
"""
    )


def test_a_set_of_categories_is_one_cell_and_the_bias_joins_the_offset():
    nodes = "0 < 9 ? 1 : 2 | leaf 0 | 2 in {1,3} ? 3 : 4 | leaf 2 | leaf 5"
    assert (
        lowered(nodes, bias="-3")
        == """\
%5 = const 2 : u3
%6 = const 5 : u3
%7 = const 0 : u3
%8 = in_set %4, 1, 3 : u1  @0.2
%9 = mux %8, %5, %6 : u3  @0.2
%10 = less %2, 9 : u1  @0.0
%11 = mux %10, %7, %9 : u3  @0.0
%12 = const -3 : s3
%13 = add %11, %12 : s4
output "score0" = %13  score 0
"""
    )


def test_leaves_of_one_bit_are_the_condition_behind_a_register():
    assert (
        lowered("0 < 9 ? 1 : 2 | leaf 0 | leaf 1", latency=1)
        == """\
%5 = less %2, 9 : u1  @0.0
%6 = input "in_valid" : u1  valid 0
%7 = register %5 : u1  @0.0
%8 = not %7 : u1
%9 = register %6 : u1
output "score0" = %8  score 0
output "out_valid" = %9  valid 0
"""
    )


def test_a_lone_tree_has_classes_as_leaves():
    two = lowered("0 < 9 ? 1 : 2 | 1 < 4 ? 3 : 4 | leaf 2 | leaf 0 | leaf 3", **CLASSES)
    assert (
        two
        == """\
%5 = less %3, 4 : u1  @0.1
%6 = less %2, 9 : u1  @0.0
%7 = not %5 : u1  @0.1
%8 = not %6 : u1  @0.0
%9 = or %7, %8 : u1  @0.0
output "label" = %9  label 0
"""
    )
    three = {"decision": "argmax on scores", "classes": '["no", "yes", "both"]', "bias": "0 1 0", "outputs": "0 1 2"}
    assert (
        lowered("0 < 9 ? 1 : 2 | 1 < 4 ? 3 : 4 | leaf 2 1 3 | leaf 2 1 0 | leaf 1 0 2", **three)
        == """\
%5 = less %3, 4 : u1  @0.1
%6 = less %2, 9 : u1  @0.0
%7 = const 0 : u2
%8 = const 2 : u2
%9 = mux %5, %7, %8 : u2  @0.1
%10 = mux %6, %9, %8 : u2  @0.0
output "label" = %10  label 0
"""
    )


@pytest.mark.parametrize("nodes", ["leaf 2", "0 < 9 ? 1 : 2 | leaf 2 | leaf 2"])
def test_equal_leaves_ask_nothing(nodes):
    assert lowered(nodes) == '%5 = const 2 : u2\noutput "score0" = %5  score 0\n'


def test_equal_subtrees_are_one_and_ask_nothing_above():
    nodes = "0 < 9 ? 1 : 2 | 1 < 7 ? 3 : 4 | 1 < 7 ? 5 : 6 | leaf 2 | leaf 3 | leaf 2 | leaf 3"
    assert (
        lowered(nodes)
        == """\
%5 = less %3, 7 : u1  @0.1
%6 = not %5 : u1  @0.1
%7 = const 2 : u2
%8 = add %6, %7 : u2
output "score0" = %8  score 0
"""
    )
