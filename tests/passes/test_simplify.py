from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from forest_texts import head
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows

from forestc.forest.text import parse_forest, print_forest
from forestc.passes.simplify import Simplify
from forestc.rows.encode import evaluate


def simplified(nodes, missing=""):
    trees = "tree outputs 0\n" + "".join(f"{i}: {node}\n" for i, node in enumerate(nodes))
    text = head(f"a uint8{missing}", "b uint8", "c category<4>") + trees
    result = Simplify().run(parse_forest(text), None).forest
    return print_forest(result).split("tree outputs 0\n")[1].splitlines(), [f.name for f in result.features]


@pytest.mark.parametrize(
    ("nodes", "expected", "features"),
    [
        (
            "0 < 9 ? 1 : 2 | 0 < 12 ? 3 : 4 | leaf 1 | leaf 2 | leaf 3",
            "0: 0 < 9 ? 1 : 2 | 1: leaf 2 id 3 | 2: leaf 1",
            ["a"],
        ),
        (
            "0 < 9 ? 1 : 2 | leaf 1 | 0 < 9 ? 3 : 4 | leaf 2 | leaf 3",
            "0: 0 < 9 ? 1 : 2 | 1: leaf 1 | 2: leaf 3 id 4",
            ["a"],
        ),
        (
            "0 < 9 ? 1 : 2 | leaf 5 | leaf 5",
            "0: leaf 5 id 1",
            [],
        ),
        (
            "1 < 9 ? 1 : 2 | 0 < 3 ? 3 : 4 | 0 < 3 ? 5 : 6 | leaf 1 | leaf 2 | leaf 1 | leaf 2",
            "0: 0 < 3 ? 1 : 2 id 1 | 1: leaf 1 id 3 | 2: leaf 2 id 4",
            ["a"],
        ),
        (
            "0 < 0 ? 1 : 2 | leaf 1 | leaf 2",
            "0: leaf 2 id 2",
            [],
        ),
        (
            "0 < 256 ? 1 : 2 | leaf 1 | leaf 2",
            "0: leaf 1 id 1",
            [],
        ),
        (
            "2 in {1,2} ? 1 : 2 | 2 in {1,2,3} ? 3 : 4 | leaf 1 | leaf 2 | leaf 3",
            "0: 0 in {1,2} ? 1 : 2 | 1: leaf 2 id 3 | 2: leaf 1",
            ["c"],
        ),
        (
            "2 in {1} ? 1 : 2 | leaf 1 | 2 in {1} ? 3 : 4 | leaf 2 | leaf 3",
            "0: 0 in {1} ? 1 : 2 | 1: leaf 1 | 2: leaf 3 id 4",
            ["c"],
        ),
    ],
)
def test_text_in_text_out(nodes, expected, features):
    assert simplified(nodes.split(" | ")) == (expected.split(" | "), features)


def test_a_condition_that_still_tells_missing_from_present_stays():
    nodes = ["0 < 9 ? 1 : 2 missing left", "0 < 12 ? 3 : 4", "leaf 1", "leaf 2", "leaf 3"]
    assert len(simplified(nodes, missing=" missing")[0]) == 5
    same_way = ["0 < 9 ? 1 : 2 missing left", "0 < 12 ? 3 : 4 missing left", "leaf 1", "leaf 2", "leaf 3"]
    assert len(simplified(same_way, missing=" missing")[0]) == 3


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 10**6), st.booleans())
def test_no_score_changes_and_nothing_more_can_go(seed, quantized):
    forest = random_forest(seed, quantized)
    result = Simplify().run(forest, None)
    rows = troublesome_rows(forest, seed, 150)
    before, after = evaluate(forest, rows), evaluate(result.forest, rows)
    assert before.scores.tobytes() == after.scores.tobytes()
    assert np.array_equal(before.index, after.index)
    assert result.forest.n_nodes <= forest.n_nodes
    assert len(result.forest.features_used()) == len(result.forest.features)
    again = Simplify().run(result.forest, None).forest
    assert print_forest(again) == print_forest(result.forest)
