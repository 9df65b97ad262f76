"""Tests functions that run as plain Python on little data: they answer as their compiled form does, bit for bit."""

from __future__ import annotations

import importlib
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from random_forests import random_forest, troublesome_rows
from split_problems import outcomes_of, problem, shape_of, state_of

import forestc
from forestc.algorithms.splits.kept_decisions import Decided, MovableLeaves, collapse, mend_leaves, slacks
from forestc.algorithms.splits.leaf_fitting import integer_scores, sorted_by_leaf
from forestc.algorithms.splits.reached_leaves import leaves_on
from forestc.algorithms.thresholds.dyadic_points import narrow_points
from forestc.algorithms.thresholds.node_bounds import BoundsUpdate
from forestc.costs.bit_network import BitNetwork
from forestc.costs.devices import ECP5
from forestc.forest.builder import changed
from forestc.lowering.timing import DELAYS, Timing
from forestc.lowering.trees import LoweringOptions, lower
from forestc.passes.observation import flat_trees
from forestc.rows.encode import encode
from forestc.system import compiled as own
from forestc.system.compiled import FUNCTIONS, compiled

PACKAGE = Path(forestc.__file__).parent
SEEDS = (1, 2, 5)


def covers():
    for seed in SEEDS:
        BitNetwork(lower(random_forest(seed, True), LoweringOptions()), ()).cover(ECP5.luts)


def placements():
    for seed in SEEDS:
        timing = Timing(lower(random_forest(seed, True), LoweringOptions()), DELAYS["ecp5"])
        for length in (0.5, 1.5, 4.0):
            timing.placed(length)


def decisions():
    """Runs decision keeping: leaves that violate some rows are mended, then splits go."""
    for seed in range(9):
        random, classes = np.random.default_rng(seed), (1, 3, 4)[seed % 3]
        trees, splits = problem(random, classes, 3, 40, wide=bool(seed % 2))
        bias = random.integers(-4, 1, classes)
        scores = integer_scores(trees.leaf, trees.start, trees.value, trees.outputs, bias)
        label = (scores[:, 0] >= 0).astype(np.int64) if classes == 1 else scores.argmax(axis=1)
        shape, state = shape_of(trees, splits), state_of(trees, splits)
        leaves = MovableLeaves(state.leaf, state.value, shape.start, shape.outputs, bias, 3)
        rows, decided = sorted_by_leaf(trees), Decided(label.copy(), scores, bool(seed % 2))
        collapse(shape, state, leaves, rows, decided, np.arange(len(splits.tree))[::-1].copy())
        decided.label[::4] = random.integers(0, max(2, classes), len(label[::4]))
        slacks(decided)
        mend_leaves(leaves, rows, decided, 3000, seed)


def walks():
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        trees, splits = problem(random, 3, 4, 30, wide=True)
        leaves_on(shape_of(trees, splits), state_of(trees, splits), outcomes_of(random.integers(0, 2, (30, 6)), 6))


def points():
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        low = random.normal(size=200)
        narrow_points(low, low + random.exponential(0.1, 200))


def arrangements():
    for seed in SEEDS:
        forest = random_forest(seed, False)
        forest = changed(forest, trees=forest.trees[:1])  # with more, threads would write while arrays are copied
        BoundsUpdate(flat_trees(forest)).arrange(encode(forest, troublesome_rows(forest, seed, 50)).T)


CALLED = {
    covers: {"_priority_cuts", "_needed"},
    placements: {"_placed"},
    decisions: {"collapse", "mend_leaves", "slacks"},
    walks: {"_walk"},
    points: {"min_intset", "_roundest"},
    arrangements: {"_arrange"},
}


def same(one, other):
    """Returns True if both have the same numbers, bit for bit, in the same structure; types of scalars may differ."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return one == other


@pytest.mark.parametrize("calls", CALLED, ids=lambda calls: calls.__name__)
def test_plain_and_compiled_answer_alike(calls, monkeypatch):
    seen, differ, changed = set(), [], set()

    def both(function, *given):
        if function.microseconds is None:
            return function.dispatcher(*given)
        before, copies = deepcopy(given), deepcopy(given)
        with np.errstate(all="ignore"):
            answer = function.plain(*copies)
        result = function.dispatcher(*given)
        seen.add(function.__name__)
        changed.update([function.__name__] if not same(before, given) or result is not None else [])
        differ.extend([] if same(answer, result) and same(copies, given) else [function.__name__])
        return result

    monkeypatch.setattr(own._Compiled, "__call__", both)
    calls()
    assert not differ and seen == changed == CALLED[calls]


def test_all_functions_with_an_estimate_are_tried():
    for path in PACKAGE.rglob("*.py"):
        if "@compiled(lambda" in path.read_text():
            importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    named = [f.__name__ for f in FUNCTIONS.values() if f.microseconds and f.__module__.startswith("forestc.")]
    assert sorted(named) == sorted(set().union(*CALLED.values()))


@compiled()
def _step(word):
    return word * np.uint64(6364136223846793005) + np.uint64(1)


@compiled(lambda word, count: count)
def _walked(word, count):
    for _ in range(count):
        word = _step(word)
    return word


def test_a_function_is_compiled_once_its_calls_take_longer_than_compiling(monkeypatch):
    monkeypatch.setattr(own, "PLAIN", 100)
    compiles = []
    monkeypatch.setattr(own._Compiled, "dispatcher", property(lambda f: lambda *given: compiles.append(given)))
    function = own._Compiled(_walked.py_func, lambda word, count: count, {})
    for count, compiled_calls in ((60, 0), (40, 0), (1, 1), (1, 2)):
        function(np.uint64(0), count)
        assert len(compiles) == compiled_calls
    large = own._Compiled(_walked.py_func, lambda word, count: count, {})
    large(np.uint64(0), 101)  # This is a single large call.
    assert len(compiles) == 3


def test_plain_words_overflow_silently_and_call_plain_functions():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _walked(np.uint64(7), 3)
    expected = 7
    for _ in range(3):
        expected = (expected * 6364136223846793005 + 1) % 2**64
    assert int(found) == expected and "dispatcher" not in vars(_step)
    _walked.dispatcher  # noqa: B018 numba's dispatcher replaces the called function
    assert int(_walked.dispatcher(np.uint64(7), 3)) == expected
    with np.errstate(all="ignore"):
        assert int(own._Compiled(_walked.py_func, None, {}).plain(np.uint64(7), 3)) == expected
