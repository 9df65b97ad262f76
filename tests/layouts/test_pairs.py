"""Tests the layout of sibling pairs against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from random_forests import random_forest
from walkers import KINDS, NARROW

from forestc.backends.vectors import vectors
from forestc.errors import OptionError
from forestc.forest.evaluate import evaluate_words
from forestc.layouts.pairs import JUMP, LEAF, MASK, Layout, to_raised
from forestc.rows.batches import ArrayRows

WORD_BITS = 11


def walked(layout, blocks, row, outputs):
    """Evaluates a tree by the table in the module's docstring, one node at a time. Returns what it adds to each output,
    and the steps."""
    bits, top, steps, added = layout.mask_bits, (1 << layout.word_bits) - 1, 0, [0] * outputs
    at = 0  # This index counts members.
    while blocks.kind[node := int(blocks.members[at])] != LEAF:
        x, operand = int(row[blocks.feature[node]]), int(blocks.operand[node])
        if blocks.kind[node] == JUMP:
            offset = x // bits
        elif blocks.kind[node] == MASK:
            offset = 1 - (operand >> x % bits & 1)
        else:
            offset = 0 if (blocks.flag[node] if x == top else x < operand) else 1
        at = int(blocks.starts[blocks.block[node]] + blocks.shift[node]) + offset
        steps += 1
    while True:
        added[int(blocks.feature[node])] += int(blocks.operand[node])
        if not blocks.flag[node]:
            return added, steps
        at += 1
        node = int(blocks.members[at])


@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_over_the_blocks_adds_what_the_evaluator_adds(kind):
    for seed in range(25):
        forest = random_forest(seed, True, kind, NARROW)
        layout = Layout.of(forest, WORD_BITS)
        blocks = [layout.blocks(tree) for tree in forest.trees]
        some = vectors(forest, ArrayRows(np.empty((0, forest.columns))), 40, boundary=60)
        words = np.concatenate([each.words for each in some])[:60]
        scores = evaluate_words(forest, words).scores
        for row, expected in zip(to_raised(forest, words, WORD_BITS), scores.tolist(), strict=True):
            total = forest.bias.tolist()
            for tree in blocks:
                added, steps = walked(layout, tree, row, forest.n_outputs)
                total = [a + b for a, b in zip(total, added, strict=True)]
                assert steps <= tree.steps
            assert total == expected, seed


def test_a_plain_tree_takes_a_word_a_node():
    for seed in range(30):
        forest = random_forest(seed, True, "binary", NARROW[2:3])
        if any(feature.missing for feature in forest.features):
            continue
        layout = Layout.of(forest, 8)
        for tree in forest.trees:
            if not tree.sets:
                blocks = layout.blocks(tree)
                assert blocks.steps <= tree.depth and blocks.size <= tree.size


def test_words_that_are_too_wide_are_refused():
    forest = random_forest(0, True, "binary", NARROW[7:8])
    with pytest.raises(OptionError, match=r"feature 'feature 0'.*words have 4 bits, and 11 are needed"):
        Layout.of(forest, 4)
