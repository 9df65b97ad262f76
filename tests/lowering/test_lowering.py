from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from forest_kinds import extreme_forest
from random_forests import random_forest, troublesome_rows, votes

from forestc.backends.running import simulated
from forestc.backends.vectors import expected, random_words
from forestc.errors import ModelError, OptionError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.builder import changed
from forestc.forest.ir import Aggregate
from forestc.lowering.draft import Draft
from forestc.lowering.sums import added
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import Add, Compare, Less, Mux, Register, Table, WordType
from forestc.netlist.ports import Port
from forestc.netlist.verify import latencies
from forestc.rows.encode import encode
from hw_sim import Simulator


def all_words(forest, seed):
    base = encode(forest, troublesome_rows(forest, seed, 50))
    random = np.random.default_rng(seed)
    return np.concatenate([base, *boundary_inputs(forest, base), random_words(forest, base, 300, random)])


def test_comparators_are_shared_and_trees_are_muxes():
    forest = random_forest(11, True, "binary")
    netlist = lower(forest)
    comparators = [cell for cell in netlist.cells if isinstance(cell, Less)]
    assert len(set(comparators)) == len(comparators)
    conditions = sum(len(tree.inner) for tree in forest.trees)
    assert sum(isinstance(cell, Mux) for cell in netlist.cells) <= conditions


@pytest.mark.parametrize("latency", [1, 2, 3, 7, 20])
def test_every_path_passes_the_same_registers(latency):
    forest = random_forest(4, True, "vector")
    netlist = lower(forest, LoweringOptions(latency=latency, outputs="both"))
    delays = latencies(netlist.cells)
    assert {delays[net] for _, net in netlist.outputs} <= {latency, -1}
    assert any(isinstance(cell, Register) for cell in netlist.cells)
    assert {port.name for port, _ in netlist.outputs} >= {"label", "score0", "out_valid"}


def test_words_are_added_by_threes_the_narrowest_first():
    draft = Draft(random_forest(4, True, "vector"), True)
    builder, largest = draft.builder, {width: (1 << width) - 1 for width in (8, 3, 5, 2, 7, 4)}
    words = {width: builder.input(Port(f"y{width}", "word"), WordType(width, False)) for width in largest}
    net, low, high, _ = added(draft, [(words[width], most) for width, most in largest.items()])
    assert (low, high) == (0, sum(largest.values()))
    two_three = builder.add((words[2], words[3]), WordType(4, False))
    narrow = builder.add((two_three, words[4]), WordType(5, False))
    five_seven = builder.add((words[5], words[7]), WordType(8, False))
    wide = builder.add((five_seven, words[8]), WordType(9, False))
    assert net == builder.add((narrow, wide), WordType(9, False))  # An existing cell is found again.


@pytest.mark.slow
@pytest.mark.parametrize("latency", [0, 3])
@pytest.mark.parametrize(
    ("trees", "most", "tables"),
    [
        (2, 1, 1),  # The sum and its comparison are one LUT.
        (6, 1, 1),
        (3, 3, 1),
        (7, 1, 2),
        (8, 1, 2),
        (12, 1, 3),
        (20, 1, 4),
        (2, 7, 1),
        (4, 3, 3),  # The bits of each weight are counted, then the counts are added.
        (6, 3, 3),
        (9, 2, 4),
    ],
)
def test_narrow_words_of_a_decision_are_added_by_tables_where_luts_have_six_inputs(trees, most, tables, latency):
    forest = votes(trees, most)
    netlist = lower(forest, LoweringOptions(latency))
    words = all_words(forest, 1)
    assert np.array_equal(simulated(Simulator(netlist).run, netlist, words), expected(forest, netlist, words))
    assert sum(isinstance(cell, Table) for cell in netlist.cells) == tables


@pytest.mark.parametrize("outputs", ["label", "both", "scores"])
def test_nothing_but_decisions_reads_the_sums_of_parts_that_vote(outputs):
    forest = votes(21, parts=3)
    netlist = lower(forest, LoweringOptions(outputs=outputs))
    words = all_words(forest, 1)
    assert np.array_equal(simulated(Simulator(netlist).run, netlist, words), expected(forest, netlist, words))
    assert sum(isinstance(cell, Table) for cell in netlist.cells) >= 3
    other = lower(forest, LoweringOptions(family="ice40"))  # The family has narrower LUTs.
    assert not any(isinstance(cell, Table) for cell in other.cells)


def test_many_bits_of_a_score_are_counted_by_tables():
    netlist = lower(votes(20), LoweringOptions(outputs="both"))
    assert [len(cell.words) for cell in netlist.cells if isinstance(cell, Table)] == [6, 6, 6]
    few = lower(votes(8), LoweringOptions(outputs="both"))
    assert not any(isinstance(cell, Table) for cell in few.cells)


def test_what_can_not_be_lowered_is_refused():
    with pytest.raises(ModelError, match="only a quantized forest becomes logic"):
        lower(random_forest(0, False))
    with pytest.raises(OptionError, match="outputs=: label of a regression model"):
        lower(random_forest(0, True, "regression"), LoweringOptions(outputs="label"))
    with pytest.raises(OptionError, match="latency -1"):
        LoweringOptions(latency=-1)
    with pytest.raises(OptionError, match="'all' are no outputs"):
        LoweringOptions(outputs="all")


def test_the_longest_pipeline():
    netlist = lower(random_forest(7, True, "binary"), LoweringOptions(latency=1000))
    assert netlist.latency == 1000
    with pytest.raises(OptionError, match=r"latency 2\.5"):
        LoweringOptions(latency=2.5)


def test_two_values_need_no_comparison_and_no_sum():
    forests = (extreme_forest("max", seed) for seed in range(1, 200) if seed % 3)
    for forest in [forest for forest in forests if forest.decision.kind == "argmax"][:20]:
        netlist = lower(forest)
        muxes = sum(isinstance(cell, Mux) for cell in netlist.cells)
        assert not any(isinstance(cell, Add | Compare) for cell in netlist.cells)
        assert muxes <= sum(len(tree.inner) * len(tree.outputs) for tree in forest.trees) + forest.n_outputs


def test_extremes_that_can_not_be_taken_are_refused():
    parts = random_forest(5, True, "vote")
    extremes = changed(parts, parts=tuple(replace(part, aggregate=Aggregate("max")) for part in parts.parts))
    with pytest.raises(ModelError, match="part 0 takes the max of its trees, which is not compiled for parts"):
        lower(extremes)
    source = random_forest(0, True, "argmax")
    with pytest.raises(ModelError, match="no tree feeds output 1, the min of its trees"):
        changed(source, trees=tuple(t for t in source.trees if 1 not in t.outputs), aggregate=Aggregate("min"))
