"""Tests what each pass does with small trees, with texts in and out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from forest_texts import head

from forestc.forest.text import parse_forest, print_forest
from forestc.passes.extract_rules.extract_rules import ExtractRules
from forestc.passes.fit_leaves.fit_leaves import FitLeaves
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.prune_trees.prune_trees import PruneTrees
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.round_leaves.round_leaves import RoundLeaves
from forestc.passes.scorer import Scorer
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds
from forestc.rows.batches import ArrayRows
from forestc.search.settle import settled

CLASSES = {"classes": '["no", "yes"]'}
FLOATS = head("a float32", "b float32", bias="0.0", decision="threshold 0.5 on scores", scale="", **CLASSES)
WORDS = head("a uint4", "b uint4", decision="threshold 2 on scores", **CLASSES)
STUMP = "0 < 4.25 ? 1 : 2 | leaf 0.0 | leaf 0.9"
GRID = np.array([[a, b] for a in range(16) for b in range(16)], dtype=np.float32)
LARGE = ArrayRows(GRID, (GRID[:, 0] >= 8).astype(np.int64))  # The class is yes if a is at least 8.


def passed(step, *trees, head=FLOATS, rows=None):
    """Returns the lines of `a`, of the decision, the scale and the trees after the pass."""
    text = head + "".join(
        "tree outputs 0\n" + "".join(f"{i}: {node}\n" for i, node in enumerate(tree.split(" | "))) for tree in trees
    )
    forest = parse_forest(text)
    scorer = Scorer(forest, LARGE) if rows is LARGE else None
    lines = print_forest(settled(step, forest, rows, scorer).forest).splitlines()
    kept = [
        line for line in lines if re.match(r'feature "a"|bias|decision|scale|words|aggregate (?!sum)|tree|\d+:', line)
    ]
    return "\n".join(re.sub(" column 0 raw float32| on scores| outputs 0", "", line) for line in kept) + "\n"


def test_share_thresholds_takes_the_threshold_of_the_fewest_bits_between_the_same_rows():
    rows = ArrayRows(np.array([[1, 0], [2, 0], [9, 0]], dtype=np.float32))
    trees = "0 < 4.0 ? 1 : 2 | leaf 0.0 | leaf 1.0", "0 < 5.25 ? 1 : 2 | leaf 0.0 | leaf 1.0"
    shared = "tree\n0: 0 < 8.0 ? 1 : 2\n1: leaf 0.0\n2: leaf 1.0\n"
    head = 'feature "a" float32\nbias 0.0\ndecision threshold 0.5\n'
    assert passed(ShareThresholds(), *trees, rows=rows) == head + 2 * shared


@pytest.mark.parametrize(
    "values, number, word",
    [
        ((1.5, 2.5, 9.5), "ap_ufixed<1,4>", 1),  # A multiple of 8 lies between them.
        ((3.5, 4.125, 4.5), "ap_ufixed<4,3>", 9),  # No multiple of 1 lies between 4.125 and 4.5.
        ((1, 4, 9), "uint3", 5),  # Integers stay exact, also if no row holds them.
    ],
)
def test_quantize_inputs_gives_a_feature_the_bits_that_its_rows_need(values, number, word):
    rows = ArrayRows(np.array([[value, 0] for value in values], dtype=np.float32))
    assert (
        passed(QuantizeInputs(), STUMP, rows=rows)
        == f"""\
feature "a" {number}
bias 0.0
decision threshold 0.5
words
tree
0: 0 < {word} ? 1 : 2
1: leaf 0.0
2: leaf 0.9
"""
    )


def test_quantize_inputs_without_rows_compares_floats_by_their_order():
    key = int(np.float32(4.25).view(np.int32))
    text = passed(QuantizeInputs(input="ordered"), STUMP)
    assert 'feature "a" ordered32' in text and f"0: 0 < {key} ? 1 : 2" in text


BETWEEN = FLOATS.replace(" float32 ", " uint4 ") + "words\n"
TWO = "0 < 8 ? 1 : 2 | leaf 0.1 | leaf 0.7", "1 < 3 ? 1 : 2 | leaf 0.0 | leaf 0.1"


@pytest.mark.parametrize(
    "step, threshold, leaves",
    [
        (RoundLeaves(), 1, ("0 1", "0 0")),  # No row needs the second tree.
        (RoundLeaves(leaf_bits=3), 6, ("0 7", "0 1")),  # The 0.1 in the first tree's leaves becomes a bias of 1.
        (FitLeaves(leaf_bits=1, tolerance=0.5), 1, ("0 1", "0 0")),
    ],
)
def test_leaves_become_integers_on_the_words_as_they_are(step, threshold, leaves):
    lines = passed(step, *TWO, head=BETWEEN, rows=LARGE).splitlines()
    assert lines[:1] == ['feature "a" uint4'] and "words" not in lines
    assert [line for line in lines if " < " in line] == ["0: 0 < 8 ? 1 : 2", "0: 1 < 3 ? 1 : 2"]
    found = [line.partition("leaf ")[2] for line in lines if "leaf" in line]
    assert (" ".join(found[:2]), " ".join(found[2:])) == leaves
    assert f"decision threshold {threshold}" in lines


PAIR = "0 < 8 ? 1 : 2 | leaf 0 | leaf 3", "1 < 3 ? 1 : 2 | leaf 0 | leaf 1"


def test_prune_trees_leaves_out_the_tree_that_decides_nothing():
    assert (
        passed(PruneTrees(), *PAIR, head=WORDS, rows=LARGE)
        == """\
feature "a" uint4
bias 1
decision threshold 2
scale 1.0
tree
0: 0 < 8 ? 1 : 2
1: leaf 0
2: leaf 3
"""
    )


@pytest.mark.parametrize("keep", ["accuracy", "decisions"])
def test_prune_splits_reads_one_condition_where_one_decides(keep):
    text = passed(PruneSplits(keep=keep), *PAIR, head=WORDS, rows=LARGE)
    assert set(re.findall(r"\d < \d+", text)) == {"0 < 8"}


def test_extract_rules_is_the_rule_that_the_labels_follow():
    assert (
        passed(ExtractRules(), *PAIR, head=WORDS, rows=LARGE)
        == """\
feature "a" uint4
aggregate max float64 bias-first
bias 0
decision threshold 1
scale 1.0
tree
0: 0 < 8 ? 1 : 2
1: leaf 0
2: leaf 1
"""
    )
