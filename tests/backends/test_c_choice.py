"""Tests the choice of a C layout without a compiler, and the rough costs that rank forests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.backends.c import choice as c_choice
from forestc.backends.c.choice import check, chosen_layout
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.options import COptions
from forestc.backends.c.rough import rough_costs
from forestc.costs.firmware import CPU_COSTS
from forestc.errors import OptionError
from forestc.firmware.costly import depths_of
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.layouts.masks import masks_of
from forestc.layouts.nodes import nodes_of
from forestc.rows.encode import encode
from forestc.toolchain.firmware import CPUS


@pytest.fixture(scope="module")
def forest():
    X, y = load_digits(return_X_y=True)
    return forestc.quantize(RandomForestClassifier(20, max_depth=6, random_state=0).fit(X, y), X, y)


def test_every_processor_has_costs():
    assert set(CPU_COSTS) == set(CPUS)


@settings(deadline=None, max_examples=examples(12))
@given(st.integers(0, 10**6))
def test_rough_instructions_are_those_of_paths(seed):
    """Counts the splits of rows one by one: none has more than the worst case has, nor is the mean above it."""
    forest = random_forest(seed, True)
    words, missing = encode(forest, troublesome_rows(forest, seed, 60)), missing_words(forest)
    trees = [tree for tree in forest.trees if len(tree.inner)]
    splits = np.sum([depths_of(tree)[leaf_nodes(forest, tree, words, missing)] for tree in trees] or [[0]], axis=0)
    costs = CPU_COSTS["avr"]
    for layout, own in rough_costs(forest, "avr").items():
        assert layout in LAYOUTS and own.mean_instructions <= own.instructions + 1e-9
        if layout == "branches":
            assert costs.split * splits.max() + costs.tree * len(trees) <= own.instructions + 1e-9


def test_rough_flash_holds_the_exact_bytes_of_tables(forest):
    costs, table = rough_costs(forest, "cortex-m4"), CPU_COSTS["cortex-m4"].table
    assert costs["nodes"].flash == pytest.approx(100 + table * nodes_of(forest).bytes)
    assert "masks" not in costs  # trees of depth 6 have more than 32 leaves
    small = replace(forest, trees=tuple(tree for tree in forest.trees if len(tree.inner) < 32))
    if small.trees:
        assert rough_costs(small, "avr")["masks"].flash > masks_of(small).bytes


def test_a_forest_grows_in_every_rough_figure(forest):
    half = replace(forest, trees=forest.trees[:10])
    for layout, own in rough_costs(half, "rv32imc").items():
        other = rough_costs(forest, "rv32imc")[layout]
        assert own.flash < other.flash and own.instructions < other.instructions
        assert own.mean_instructions < other.mean_instructions


@pytest.mark.parametrize(
    "options, why",
    [
        ({"cpu": "z80"}, "cpu=: unknown processor 'z80'; known: cortex-m0plus"),
        ({"flash": 1000}, "flash=: 1000 needs a processor; add cpu="),
        ({"cpu": "avr", "ram": 0}, "ram=: 0; give a number of bytes"),
        ({"cpu": "avr", "instructions": True}, "instructions=: True; give a number of instructions"),
    ],
)
def test_budgets_that_make_no_sense(options, why):
    with pytest.raises(OptionError, match=why):
        check(COptions(**options))


def test_layouts_by_the_number_of_splits(forest, monkeypatch):
    few = replace(forest, trees=forest.trees[:1])
    assert chosen_layout(forest, COptions()) == "ranked" and chosen_layout(few, COptions()) == "branches"
    goals = {goal: chosen_layout(forest, COptions(c_layout=goal)) for goal in ("smallest", "fastest", "balanced")}
    assert goals == {"smallest": "nodes", "fastest": "branches", "balanced": "ranked"}
    assert all(chosen_layout(forest, COptions(c_layout=layout)) == layout for layout in LAYOUTS)
    monkeypatch.setattr(c_choice, "MOST_BRANCHES", 10)
    assert all(chosen_layout(forest, COptions(c_layout=goal)) == "nodes" for goal in ("auto", *goals))
    assert chosen_layout(forest, COptions(c_layout="branches")) == "branches"
