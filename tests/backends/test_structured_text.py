"""Tests the target st: a reader and interpreter that shares no code with forestc runs its function blocks."""

from __future__ import annotations

import numpy as np
import pytest
from forest_designs import design, hard_vectors
from forest_kinds import FORESTS, HARD, LARGE, typed_sums
from random_forests import random_forest
from structured_text import Block

from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import LEAF
from forestc.forest.numbers import Category, Fixed

NARROW = [Fixed(8), Fixed(6, 2, True), Category(11)]


def differences(forest, folder, truth=None, rows=40):
    """Returns how many rows of a design's function block differ from the evaluator, of a forest, the design's by
    default."""
    made = design(forest, folder, targets=("st",))
    blocks = [Block(made.path(role).read_text()) for role in ("st", "scl")]
    words = hard_vectors(forest, 5, rows).words
    words = words[:: 1 + len(words) // 150]
    answers = evaluate_words(truth or forest, words)
    index = answers.index.reshape(len(words), -1)
    wrong = 0
    for row, scores, labels in zip(words.tolist(), answers.scores.tolist(), index.tolist(), strict=True):
        expected = {"scores": scores} | ({"labels": labels} if forest.decides else {})
        wrong += any(block.run(x=row or [0]) != expected for block in blocks)
    return wrong


@pytest.mark.parametrize("types", [NARROW, HARD], ids=["narrow", "hard"])
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in LARGE)) for kind in FORESTS])
def test_it_answers_as_the_evaluator(kind, types, tmp_path):
    for seed in range(3, 6):
        assert not differences(FORESTS[kind](seed, types), tmp_path)


@pytest.mark.parametrize("order", ["sequential", "tree"])
@pytest.mark.parametrize("overflow", ["AP_SAT", "AP_WRAP"])
def test_sums_in_a_number_type(order, overflow, tmp_path):
    for forest in typed_sums(order, overflow):
        assert not differences(forest, tmp_path)


def test_a_wrong_threshold_is_noticed(tmp_path):
    forest = random_forest(8, True, "regression", [Fixed(8)])
    above = tuple(
        changed_tree(tree, threshold=np.where(tree.left != LEAF, tree.threshold + 1, tree.threshold))
        for tree in forest.trees
    )
    assert differences(changed(forest, trees=above), tmp_path, forest)


def test_a_parser_of_the_language_reads_it(tmp_path, need_tool):
    need_tool("blark")
    from blark.parse import parse_source_code

    forest = random_forest(8, True, "argmax", [Fixed(4)])  # a small one, as the parser takes long for tables
    made = design(changed(forest, trees=forest.trees[:1]), tmp_path, targets=("st",))
    assert parse_source_code(made.path("st").read_text()).exception is None
