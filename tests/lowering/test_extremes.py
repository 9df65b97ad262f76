"""Forests that take the largest or smallest value of their trees, in logic, in C and in proofs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from backends.test_backends import design, differences
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows

from forestc.checks.engines import CEngine, simulated
from forestc.checks.proof import prove_netlist
from forestc.checks.vectors import expected, random_words
from forestc.errors import ModelError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.builder import changed, changed_tree, make_tree
from forestc.forest.ir import Aggregate, Decision
from forestc.lowering.trees import LoweringOptions, lower, lower_with_witness
from forestc.netlist.ir import Add, Compare, Mux
from forestc.rows.encode import encode
from hw_sim import Simulator


def leaf_of(output):
    """A tree of one leaf."""
    nodes = {"feature": [-1], "threshold": [0], "left": [-1], "right": [-1]}
    return make_tree(where="", **nodes, values=[[output]], outputs=[output], quantized=True)


def extreme_forest(seed, kind, two_values):
    """A random forest of max or min. two_values: all leaves of an output are one of two."""
    answer = str(np.random.default_rng(seed).choice(["binary", "argmax", "regression", "vector"]))
    source = random_forest(seed, True, answer)
    fed = {output for tree in source.trees for output in tree.outputs}
    constant = [leaf_of(output) for output in set(range(source.n_outputs)) - fed]
    trees = list(source.trees)
    if two_values:
        high = np.random.default_rng(seed).integers(-3, 9, source.n_outputs)
        trees = [
            changed_tree(tree, values=np.where(tree.values > np.median(tree.values), high[list(tree.outputs)], 1))
            for tree in trees
        ]
    decision = source.decision
    if decision.kind == "threshold":
        decision = Decision("threshold", int(np.random.default_rng(seed).integers(-20, 20)))
    return changed(source, trees=(*trees, *constant), aggregate=Aggregate(kind), decision=decision)


def words_of(forest, seed):
    base = encode(forest, troublesome_rows(forest, seed, 50))
    random = np.random.default_rng(seed)
    return np.concatenate([base, *boundary_inputs(forest, base), random_words(forest, base, 300, random)])


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 10**6), st.sampled_from(["max", "min"]), st.booleans(), st.integers(0, 3), st.booleans())
def test_netlists_equal_the_evaluator(seed, kind, two_values, latency, both):
    forest = extreme_forest(seed, kind, two_values)
    netlist = lower(forest, LoweringOptions(latency=latency, outputs="both" if both and forest.classes else "auto"))
    words = words_of(forest, seed)
    assert np.array_equal(simulated(Simulator(netlist).run, netlist, words), expected(forest, netlist, words))


@pytest.mark.parametrize("seed", range(10))
def test_c_equals_the_evaluator(seed, tmp_path):
    forest = extreme_forest(seed, "max" if seed % 2 else "min", seed % 3 > 0)
    made = design(forest, tmp_path, targets=("c",))
    assert differences(CEngine, made, tmp_path, seed).count == 0


@pytest.mark.parametrize("seed", range(12))
def test_they_are_proved_and_wrong_ones_refuted(seed):
    kind = "max" if seed % 2 else "min"
    forest = extreme_forest(seed, kind, seed % 3 > 0)
    outputs = "both" if forest.classes else "auto"
    netlist, witness = lower_with_witness(forest, LoweringOptions(outputs=outputs))
    proof = prove_netlist(forest, netlist, witness)
    assert proof.proved, [part for part in proof.parts if part.why]
    other = changed(forest, bias=forest.bias + 1)
    assert prove_netlist(other, netlist, witness).refuted


def test_two_values_need_no_comparison_and_no_sum():
    forest = extreme_forest(3, "max", True)
    seeds = [seed for seed in range(200) if extreme_forest(seed, "max", True).decision.kind == "argmax"][:20]
    for seed in seeds:
        forest = extreme_forest(seed, "max", True)
        netlist = lower(forest)
        muxes = sum(isinstance(cell, Mux) for cell in netlist.cells)
        assert not any(isinstance(cell, Add | Compare) for cell in netlist.cells)
        assert muxes <= sum(len(tree.inner) * len(tree.outputs) for tree in forest.trees) + forest.n_outputs


def test_what_can_not_be_taken_is_refused():
    parts = random_forest(5, True, "vote")
    extremes = changed(parts, parts=tuple(replace(part, aggregate=Aggregate("max")) for part in parts.parts))
    with pytest.raises(ModelError, match="part 0 takes the max of its trees, which is not compiled for parts"):
        lower(extremes)
    source = random_forest(0, True, "argmax")
    with pytest.raises(ModelError, match="no tree feeds output 1, the min of its trees"):
        changed(source, trees=tuple(t for t in source.trees if 1 not in t.outputs), aggregate=Aggregate("min"))
