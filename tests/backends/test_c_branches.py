"""Tests which side of a split is nested in C."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from forest_texts import head

from forestc.backends.c import header as c
from forestc.forest.text import parse_forest

TREE = (
    head("a uint8", name="m")
    + """tree outputs 0
0: 0 < 50 ? 1 : 2
1: leaf 1
2: 0 < 90 ? 3 : 4
3: leaf 2
4: leaf 3
"""
)


@pytest.mark.parametrize(
    "cover, first", [(None, "< 50u"), ((100, 30, 70, 20, 50), "< 50u"), ((8, 2, 6, 1, 5), ">= 50u")]
)
def test_a_row_falls_through_to_a_side_that_most_rows_take(cover, first):
    """Checks that the smaller side is nested unless three quarters of the rows take it."""
    forest = parse_forest(TREE)
    (tree,) = forest.trees
    tree = replace(tree, cover=None if cover is None else np.array(cover, dtype=np.float64))
    text = c.emit(replace(forest, trees=(tree,)))["m.h"]
    assert re.search(r"m_tree_0\(.*\n\{\n.*\n +if \(x\[0\] (.*)\) \{", text)[1] == first
