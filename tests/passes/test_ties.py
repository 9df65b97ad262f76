"""Tests ties: a tie of the model is a tie of the design, or is decided as the library's rounding decides it; otherwise
the tie is reported."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tie_models
from example_counts import examples
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.tree import DecisionTreeClassifier
from thinned import thinned

import forestc
from forestc.compilation.record import leaves_note
from forestc.errors import CheckError
from forestc.forest.builder import changed, changed_tree, make_forest, make_tree
from forestc.forest.evaluate import link_values
from forestc.forest.ir import Aggregate, Decision, Feature, Link
from forestc.forest.numbers import FLOAT32
from forestc.frontends import load_object
from forestc.passes import passes_from
from forestc.passes.base import PassResult
from forestc.passes.combinations import leaf_combinations
from forestc.passes.pipeline import run_passes
from forestc.passes.promises import EveryPath, KeepsAllButTies
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.round_leaves.exact_leaves import common_steps, leaf_grid, whole_votes
from forestc.passes.round_leaves.round_leaves import RoundLeaves
from forestc.passes.round_leaves.rounding import on_steps
from forestc.passes.round_leaves.ties import near_margin, settled, tied_combinations
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import evaluate
from forestc.rows.ranges import Ranges, ValueRange, every_cell
from forestc.search.levels import LEVELS


def half_leaves():
    """Trains a tree with leaves that hold as many rows of the one class as of the other."""
    random = np.random.default_rng(0)
    X = random.normal(size=(240, 3))
    y = (X[:, 0] + random.normal(size=240) > 0).astype(int)
    return DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y), X


def broken_tie(seed=1):
    """Returns a forest with ties that the library's additions break, and its rows."""
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(60, 2)) * 2)
    return RandomForestClassifier(4, max_depth=3, random_state=1).fit(X, random.integers(0, 2, 60)), X


def stumps(*values, link="identity", on="scores", precision="float64", bias=None, divisor=1.0, decision=None):
    """Makes a forest of one split at 0.5 for each of the features x0, x1, ... values: of the two leaves of
    each tree."""
    count, classes = len(values), len(values[0][0])
    trees = [
        make_tree(
            where="a stump", feature=[index, -1, -1], threshold=[0.5, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
            values=own, outputs=range(classes),
        )
        for index, own in enumerate(values)
    ]  # fmt: skip
    return make_forest(
        name="stumps", features=[Feature(f"x{k}", FLOAT32, k) for k in range(count)], columns=count, trees=trees,
        n_outputs=classes, bias=np.zeros(classes) if bias is None else bias,
        aggregate=Aggregate(precision=precision, divisor=divisor), link=Link(link),
        decision=decision or Decision("argmax", on=on), classes=list(range(max(2, classes))),
    )  # fmt: skip


def all_rows(forest):
    return np.array(list(itertools.product([0.0, 1.0], repeat=forest.columns)))


def impossible():
    """Makes a forest with ties that no leaf values can decide as the library does. The library adds in float order; a
    linear program over the leaf values is infeasible."""
    return stumps(
        [[0.4, 0.5], [0.5, 0.6]], [[0.8, 0.4], [0.4, 0.9]], [[0.8, 0.5], [0.7, 0.6]], [[0.5, 0.0], [0.4, 0.3]],
        [[0.3, 0.6], [0.8, 0.0]], [[0.8, 0.1], [0.7, 0.0]], divisor=6.0,
    )  # fmt: skip


def quantized(forest, level, X):
    """Returns the forest after a level's passes, and the step of round-leaves."""
    result, steps = run_passes(forest, passes_from(LEVELS[level].passes), ArrayRows(X))
    return result, next(step for step in steps if step.name.startswith("round-leaves"))


@pytest.mark.parametrize("level", [None, 0, 1, 2])
@pytest.mark.parametrize("made", [half_leaves, broken_tie])
def test_ties_are_decided_as_by_the_library(made, level, tmp_path):
    model, X = made()
    done = forestc.compile(model, None if level is None else X, tmp_path / "d", level=level, targets="c", name="m")
    assert (done.design.predict(X) == model.predict(X)).all()
    promise = next(text for name, text in done.design.manifest["guarantees"].items() if "round" in name)
    assert promise.startswith("exact (paths, decisions), scores within" if not level else "exact-on-data")
    if not level:
        assert any("every input is decided as by the model" in note for note in done.figures["notes"])


@pytest.mark.parametrize("level", [1, 2])
def test_a_changed_decision_among_many_rows_is_none_of_one_percent(level):
    model, X = broken_tie()
    rows = np.concatenate([X, np.repeat(X, 3, axis=0)])
    result, _ = quantized(load_object(model), level, rows)
    assert (evaluate(result, rows).index == model.predict(rows)).all()


def test_what_no_leaves_decide_alike_is_compiled_and_named(tmp_path):
    forest = impossible()
    X = all_rows(forest)
    for level in (0, 1):
        result, step = quantized(forest, level, X)
        expected, got = evaluate(forest, X), evaluate(result, X)
        tied = np.flatnonzero(expected.index != got.index)
        ordered = np.sort(expected.scores[tied], axis=1)
        assert 0 < len(tied) <= 2 and (ordered[:, -1] - ordered[:, -2] < 1e-15).all()
        assert (expected.leaves == got.leaves).all() and step.report["tied_rows"] == tied.tolist()
        text = f"{len(tied)} of 64 given rows (rows {', '.join(map(str, tied))}, from 0)"
        assert text in (leaves_note(step) if level == 0 else step.report["note"])
        if level:
            assert step.promise == f"decisions of the rows kept but {len(tied)}"
            assert "near ties, within" in step.meaning and step.guarantee == "approximate"
    with pytest.raises(CheckError, match=r"changes 3\.12% of the decisions"):
        run_passes(forest, [QuantizeInputs(), RoundLeaves(leaf_bits=8, change=0.01)], ArrayRows(X))


def drawn(seed):
    """Draws rows of few integers, with two or three classes."""
    random = np.random.default_rng(seed)
    count, classes = int(random.integers(30, 90)), int(random.choice([2, 3]))
    X = np.round(random.normal(size=(count, 3)) * 2)
    return random, X, random.integers(0, classes, count)


@pytest.mark.parametrize("seed", range(4))
def test_without_steps_the_result_is_leaves_that_no_nudge_has_moved(seed):
    forest = load_object(broken_tie(seed)[0])
    ties = tied_combinations(forest, near_margin(forest, 4))
    assert settled(forest, ties, [4], 32)[1] == 0
    leaves, changed = settled(forest, ties, [4], 32, steps=0)
    assert changed == ties.changed(on_steps(forest, 4)[0]) == ties.changed(leaves) > 0


def test_leaves_of_one_bit_without_rows():
    forest = forestc.quantize(broken_tie()[0], None, passes="simplify,round-leaves{leaf_bits=1},simplify")
    assert {value for tree in forest.trees for value in tree.values.ravel().tolist()} == {0, 1}


@pytest.mark.parametrize("seed", [8, 12])
def test_members_that_vote_settle_their_own_ties(seed):
    _, X, y = drawn(seed)
    members = [
        ("a", RandomForestClassifier(4, max_depth=3, random_state=seed)),
        ("b", DecisionTreeClassifier(max_depth=3, random_state=seed)),
        ("c", GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed)),
    ]
    model = VotingClassifier(members, voting="hard").fit(X, y)
    for level, promise in ((0, "exact"), (1, "exact-on-data")):
        result, step = quantized(load_object(model), level, X)
        assert (evaluate(result, X).index == model.predict(X)).all()
        assert step.promise == promise


def test_targets_settle_their_own_ties():
    random, X, y = drawn(55)
    targets = np.stack([y, random.integers(0, 3, len(y))], axis=1)
    model = RandomForestClassifier(4, max_depth=3, random_state=55).fit(X, targets)
    cells = every_cell(load_object(model), Ranges(), 1 << 16).X
    cells = cells[~np.isnan(cells).any(axis=1)]
    for level, rows in ((0, cells), (1, X)):
        result, _ = quantized(load_object(model), level, X)
        assert (evaluate(result, rows).index == model.predict(rows)).all()


@pytest.mark.parametrize("first", thinned([0, 1000], keep=1))
def test_small_models_of_every_library_are_decided_as_by_it(first):
    for seed in range(first, first + examples(4) * len(tie_models.MAKERS)):
        name = list(tie_models.MAKERS)[seed % len(tie_models.MAKERS)]
        figures = tie_models.tried(name, seed)
        if figures is not None:
            assert not figures["unlike_the_reference"] + figures["changed_rows"], (name, seed)
            assert figures["every_decision"] == 1


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_decisions_after_a_link_are_exact_where_it_keeps_sums_apart(precision):
    halves = [[[0.5, 1.0, -2.0], [0.0, 0.0, 1.5]], [[1.0, 0.5, 0.5], [3.0, -1.0, 1.0]]]
    for link, exact in (("softmax", True), ("sigmoid", True), ("order", False)):
        forest = stumps(*halves, link=link, on="values", precision=precision)
        assert (leaf_grid(forest, forest) is not None) == exact
    far = [[[5e4, 0.0], [4e4, 1.0]], [[0.5, 2.0], [1.0, 3.0]]]  # The sigmoid of all large scores is 1.
    assert leaf_grid(*[stumps(*far, link="sigmoid", on="values", precision=precision)] * 2) is None
    saturated = stumps([[60.0, 61.0], [0.0, 1.0]], link="sigmoid", on="values", precision=precision)
    assert len(np.unique(link_values(np.array([60.0, 61.0]), Link("sigmoid")))) == 1
    assert leaf_grid(saturated, saturated) is None


@pytest.mark.parametrize(("divisor", "exact"), [(1.0, True), (2.0, False), (3.0, False)])
def test_a_division_leaves_fewer_digits_for_sums(divisor, exact):
    forest = stumps([[2.0**22, 0.0], [1.0, 0.0]], precision="float32", divisor=divisor)
    assert (leaf_grid(forest, forest) is not None) == exact


def test_the_fewest_common_steps():
    thirds = stumps([[1 / 3, 2 / 3], [1 / 4, 3 / 4]])
    assert common_steps(thirds, 65534.0) == (12.0, True)
    leaves, lie = on_steps(thirds, 16)
    assert lie and leaves.error < 1e-14 and leaves.decision.threshold == 7  # The threshold is more than a half of 12.
    most, lie = common_steps(stumps([[1 / 3, 2 / 3], [0.123456789, 0.876543211]]), 65534.0)
    assert not lie and most == 65532.0  # This is the largest multiple of 3 in the range.
    assert common_steps(stumps([[1 / 511, 510 / 511], [1 / 509, 508 / 509], [1 / 503, 502 / 503]]), 65534.0)[1] is False


def test_a_threshold_beside_a_start_that_does_not_lie_on_steps():
    forest = stumps([[0.05], [0.3]], [[0.05], [-0.2]], bias=[-0.1], decision=Decision("threshold", 0.0))
    result, step = quantized(forest, 0, all_rows(forest))
    assert (evaluate(result, all_rows(forest)).index == evaluate(forest, all_rows(forest)).index).all()
    assert step.promise.startswith("exact (paths, decisions)")


@pytest.mark.parametrize("weights, worth, whole, exact", [
    ((1.0, 0.5), 0.5, (2.0, 1.0), True),
    ((1.0, 0.5), 0.5, (2.0, 2.0), False),  # The second part counts for more than its weight.
    ((0.6, 0.3), 0.3, (2.0, 1.0), False),  # 0.3 is no power of two, so sums of weights round.
])  # fmt: skip
def test_weights_that_are_whole_numbers_of_votes(weights, worth, whole, exact):
    assert whole_votes(weights, worth, whole) == exact


def test_cells_hold_every_path():
    model, X = half_leaves()
    forest = load_object(model)
    cells = every_cell(forest, Ranges(), 1 << 16)
    leaves = {tuple(row) for row in evaluate(forest, cells.X).leaves}
    assert leaves == {(node,) for node in forest.trees[0].ids[forest.trees[0].left == -1].tolist()}
    assert {tuple(row) for row in evaluate(forest, X).leaves} <= leaves
    assert every_cell(forest, Ranges(), 10) is None
    steps = {
        0: ValueRange(-2.0, 2.0, 0.5, False),
        1: ValueRange(0.0, 0.0, 0.0, False),
        2: ValueRange(-1.0, missing=False),
    }
    some = every_cell(forest, Ranges(steps), 1 << 16).X
    assert set(some[:, 0]) <= set(np.arange(-2.0, 2.5, 0.5)) and not some[:, 1].any() and some[:, 2].min() == -1
    assert every_cell(forest, Ranges({0: ValueRange(step=1.0)}), 1 << 16) is None
    assert leaf_combinations(forest)[0].size <= (forest.trees[0].left == -1).sum()


def lying(promise, forest):
    """Returns a pass that gives a forest with a promise."""

    class Lying(RoundLeaves):
        def run(self, before, rows, scorer=None):
            return PassResult(forest, (promise,))

    return Lying()


def test_promises_about_ties_are_held_to():
    forest = impossible()
    X = all_rows(forest)
    words = QuantizeInputs(exact=True).run(forest, Ranges()).forest
    result = RoundLeaves(change="auto").run(words, ArrayRows(X)).forest
    for promise in (KeepsAllButTies(1, 1.0), KeepsAllButTies(2, 0.0)):
        with pytest.raises(CheckError, match=r"promised to change \d near ties and changed 2"):
            run_passes(forest, [lying(promise, result)], ArrayRows(X))
    run_passes(forest, [lying(KeepsAllButTies(2, 1e-14), result)], ArrayRows(X))
    exact = RoundLeaves(exact=True).run(words, Ranges()).forest
    kept = X[evaluate(forest, X).index == evaluate(exact, X).index]
    for promise in (EveryPath(True, 1.0, Ranges(), True), EveryPath(True, 1e-17)):
        with pytest.raises(CheckError, match="promised scores within"):
            run_passes(forest, [lying(promise, exact)], ArrayRows(kept))


def test_every_combination_of_leaves_is_tried_where_paths_are_too_many():
    """No given row reaches the changed leaf."""
    many = DecisionTreeClassifier(max_depth=9, random_state=0).fit(
        np.random.default_rng(1).normal(size=(900, 12)), np.random.default_rng(2).integers(0, 3, 900)
    )
    wide = load_object(many)
    assert every_cell(wide, Ranges(), 1 << 16) is None
    result, step = quantized(wide, 0, np.zeros((1, 12)))
    assert step.promise.startswith("exact (paths, decisions)")
    tree, leaf = result.trees[0], int(np.argmax(result.trees[0].values.max(axis=1)))
    values = tree.values.copy()
    values[leaf] = np.roll(values[leaf], 1)
    wrong = changed(result, trees=(changed_tree(tree, values=values),))
    with pytest.raises(CheckError, match="promised scores within"):
        run_passes(wide, [lying(EveryPath(True, 2.0, Ranges(), True), wrong)], ArrayRows(np.zeros((1, 12))))
