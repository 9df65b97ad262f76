"""Tests tables of nodes against the evaluator, walked by the tables' own rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from thinned import only

import forestc
from forestc import load
from forestc.backends.c.mixed import unrolled
from forestc.backends.vectors import random_words
from forestc.commands.check import check
from forestc.errors import OptionError
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Aggregate, Decision, Feature, Link
from forestc.forest.numbers import Fixed, word_range
from forestc.layouts import nodes as nodes_module
from forestc.layouts.leaves import leaves_of
from forestc.layouts.masks import Masks, hashed, masks_of
from forestc.layouts.nodes import _coded, nodes_of
from forestc.layouts.slots import slots_of
from forestc.layouts.subtrees import subtrees_of
from forestc.passes import passes_from
from forestc.passes.pipeline import run_passes
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode


def slot_values(forest, made, row):
    """Returns the values of the slots for one row of words: (slots,)."""
    values = []
    for slot in made.slots.slots:
        feature = forest.features[slot.feature]
        span, word = word_range(feature.number, feature.missing), int(row[slot.feature])
        absent = np.array([word == span.missing])
        if slot.condition is not None:
            values.append(1 - int(forest.conditions[slot.condition].sends_left(np.array([word]), absent)[0]))
        elif made.slots.ranked:
            values.append(0 if slot.missing_low and absent[0] else int(np.searchsorted(slot.cuts, word, side="right")))
        else:
            values.append(span.low if slot.missing_low and absent[0] else word)
    return np.array(values, dtype=np.int64)


def leaf_in_nodes(made, tree, values):
    """Returns the number of the leaf that a row reaches in a table of nodes. values: (slots,)."""
    stream, at, far = made.stream, int(made.starts[tree]), len(made.starts) - made.jumps
    while True:
        while (symbol := int(stream[at])) < made.symbols:
            if made.code == "split":
                slot = symbol
                threshold = stream[at + 1] + (stream[at + 2] << 8 if made.threshold_bytes == 2 else 0)
            else:
                place = made.conditions[symbol]
                slot, threshold = made.slots.slot[place], made.slots.threshold[place]
            at += made.head + (0 if values[slot] < threshold else int(stream[at + made.head - 1]))
        number = symbol - made.symbols
        if number >= made.single:
            number = made.single + ((number - made.single) << 8 * made.unit | int(stream[at + 1]))
        if number < made.leaves.count:
            return number
        at = int(made.starts[far + number - made.leaves.count])


def leaf_in_masks(made, tree, values):
    """Returns the number of the leaf that a row reaches in a table of masks."""
    mask, start = (1 << made.width) - 1, 0
    for value, end, entry in zip(values.tolist(), made.ends.tolist(), made.firsts.tolist(), strict=True):
        for threshold in made.thresholds[start:end].tolist():
            if value < threshold:
                break
            more = True
            while more:
                mask &= int(made.kept[entry]) if made.trees[entry] == tree else mask
                more = not made.last[entry]
                entry += 1
        start = end
    return int(made.reached[tree, hashed(mask & -mask, made.width)])


def scores(forest, made, row):
    leaves, values = made.leaves, slot_values(forest, made, row)
    found, reached = leaves.starts.copy(), leaf_in_masks if isinstance(made, Masks) else leaf_in_nodes
    for place, index in enumerate(leaves.trees):
        number, outputs = reached(made, place, values), list(forest.trees[index].outputs)
        if leaves.kind == "pairs":
            for output, value in leaves.pairs[number]:
                found[output] += value
        elif leaves.kind == "bits":
            found[outputs] += leaves.table[number, 0] >> np.arange(len(outputs)) & 1
        elif leaves.kind == "rows":
            found[outputs] += leaves.table[number]
        else:
            found[outputs] += leaves.table[number, 0] if len(leaves.table) else number
    return found


def words_of(forest, count, seed):
    """Returns words of rows on thresholds and beside them, and random words."""
    random = np.random.default_rng(seed)
    return random_words(forest, encode(forest, troublesome_rows(forest, seed, count)), count, random)


def assert_same(forest, made, rows):
    expected = evaluate_words(forest, rows).scores
    for row, own in zip(rows, expected, strict=True):
        assert np.array_equal(scores(forest, made, row), own)


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(nodes_module.CODES))
def test_every_code_gives_the_evaluators_scores(seed, ranked, code):
    forest = random_forest(seed, True)
    if not (forest.single and forest.adds):
        return
    slots, leaves = slots_of(forest, ranked=ranked), leaves_of(forest)
    subtrees = subtrees_of(forest, slots, leaves)
    for shares in (False, True):
        if (made := _coded(subtrees, slots, leaves, code, shares=shares)) is not None:
            assert_same(forest, made, words_of(forest, 40, seed))


def test_equal_subtrees_and_trees_are_stored_once():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(60, max_depth=4, random_state=0).fit(X, y)
    passes = passes_from("simplify,share-thresholds,round-leaves{leaf_bits=1,change=1}")
    forest = run_passes(load(model), passes, ArrayRows(X, y))[0]
    made, twice = nodes_of(forest), nodes_of(replace(forest, trees=forest.trees * 2))
    subtrees = subtrees_of(forest, made.slots, made.leaves)
    plain = _coded(subtrees, made.slots, made.leaves, made.code, shares=False)
    assert made.jumps > plain.jumps == 0 and made.bytes < 0.98 * plain.bytes
    assert np.array_equal(twice.stream, made.stream)
    assert_same(forest, made, words_of(forest, 60, 0))


@pytest.mark.parametrize("trees, depth", [(3, 3), (12, 14)])
def test_a_forest_of_many_classes_is_small_and_exact(trees, depth):
    """Deep trees jump to subtrees that are too long to be skipped."""
    X, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(X, y)
    forest = run_passes(load(model), passes_from("simplify,round-leaves"), ArrayRows(X, y))[0]
    made = nodes_of(forest)
    assert (made.jumps > 0) == (depth > 10)
    assert made.bytes < 5 * sum(len(tree.inner) for tree in forest.trees) + 1000
    assert_same(forest, made, words_of(forest, 30, 0))


@settings(deadline=None, max_examples=examples(20))
@given(st.integers(0, 10**6), st.booleans())
def test_masks_give_the_evaluators_scores(seed, ranked):
    forest = random_forest(seed, True)
    if forest.single and forest.adds:
        assert_same(forest, masks_of(forest, float_bytes=4 * ranked), words_of(forest, 40, seed))


def test_masks_are_as_wide_as_the_largest_tree():
    X, y = load_digits(return_X_y=True)
    for leaves, width in ((4, 4), (7, 8), (16, 16), (32, 32), (33, None)):
        model = RandomForestClassifier(3, max_leaf_nodes=leaves, random_state=0).fit(X, y)
        forest = run_passes(load(model), passes_from("simplify,round-leaves"), ArrayRows(X, y))[0]
        if width is None:
            with pytest.raises(OptionError, match=r"tree 0.*layout=masks is for trees of up to 32 leaves, not 33"):
                masks_of(forest)
            continue
        assert masks_of(forest).width == width
        assert len({hashed(1 << bit, width) for bit in range(width)} & set(range(width))) == width
        assert_same(forest, masks_of(forest), words_of(forest, 30, 0))


def test_a_mix_unrolls_the_smallest_trees():
    forest = random_forest(8, True)
    splits = [len(tree.inner) for tree in forest.trees]
    few, half, most = (unrolled(forest, share) for share in (0, 0.5, 1))
    assert few == [] and most == [index for index, count in enumerate(splits) if count]
    assert 0 < sum(splits[index] for index in half) <= sum(splits) / 2
    assert max(splits[index] for index in half) <= min(splits[index] for index in set(most) - set(half))


@pytest.mark.parametrize(
    ("kind", "bits", "inputs"),
    only(
        [
            (kind, bits, inputs)
            for kind, bits in (("bits", 1), ("rows", 6), ("pairs", 8))
            for inputs in ("words", "float")
        ],
        *(0, 3, 4),
    ),
)
def test_the_c_of_every_kind_of_leaf_is_checked(tmp_path, kind, bits, inputs):
    X, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(12, max_depth=2 if kind == "rows" else 8, random_state=0).fit(X, y)
    passes = f"simplify,round-leaves{{leaf_bits={bits},change=1}}"
    made = forestc.compile(
        model, X, tmp_path / "d", passes=passes, targets="c", c_layout="nodes", c_inputs=inputs, name="m"
    ).design
    assert leaves_of(made.forest).kind == kind
    ran = check(made, X, engines=["c"]).engines["c"]
    assert ran.differences == 0 and ran.vectors > len(X)


@pytest.mark.parametrize("inputs", only(["words", "struct", "raw"], 0, 2))
def test_ranks_of_integers_are_checked(inputs, tmp_path, monkeypatch):
    """Uses many splits on few distinct thresholds of 12 bits, ranked whatever ranks save."""
    monkeypatch.setattr(nodes_module, "RANKED", 1e9)
    X, y = load_breast_cancer(return_X_y=True)
    X = np.round(X * 4095 / X.max(axis=0))
    X[::50, 3] = np.nan
    model = RandomForestClassifier(30, max_depth=7, random_state=0).fit(X[:, :8], y)
    types = {"c_inputs": "raw", "c_types": "*=int16,4=float"} if inputs == "raw" else {"c_inputs": inputs}
    made = forestc.compile(
        model, X[:, :8], tmp_path / "d", label=y, passes="simplify,share-thresholds,round-leaves,simplify", targets="c",
        c_layout="nodes", name="m", **types,
    )  # fmt: skip
    assert "m_rank_" in made.design.path("c").read_text()
    assert forestc.check(made.design, X[:, :8], engines=["c"], random_rows=2000).ok


def test_more_leaves_than_two_bytes_tell():
    """Uses 70,000 distinct leaves, so that the code of some has two units of two bytes."""
    random = np.random.default_rng(0)
    split = [node % 2 == 0 and node < 198 for node in range(199)]  # a chain: each split has a leaf on its left
    trees = [
        make_tree(
            where=f"tree {number}",
            feature=[node % 3 if own else -1 for node, own in enumerate(split)],
            threshold=[int(random.integers(1, 255)) if own else 0 for own in split],
            left=[node + 1 if own else -1 for node, own in enumerate(split)],
            right=[node + 2 if own else -1 for node, own in enumerate(split)],
            values=random.integers(0, 1 << 40, (100, 1)).tolist(),
            outputs=[0],
            quantized=True,
        )
        for number in range(700)
    ]
    features = [Feature(name, Fixed(8), place) for place, name in enumerate("abc")]
    forest = make_forest(
        name="wide", features=features, columns=3, trees=trees, n_outputs=1, bias=[0], aggregate=Aggregate(),
        link=Link(), decision=Decision("none"), classes=(), scale=1.0,
    )  # fmt: skip
    made = nodes_of(forest)
    assert made.code == "wide" and made.single < made.leaves.count > 65_536
    assert_same(forest, made, random.integers(0, 256, (3, 3)))
