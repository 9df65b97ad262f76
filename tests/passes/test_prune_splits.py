"""Tests prune-splits: there are fewer splits; with keep=decisions no given row is decided otherwise."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import xgboost
from models import trained
from random_forests import random_forest, troublesome_rows
from settled_passes import integers, run_passes
from sklearn.ensemble import RandomForestRegressor
from split_problems import loss_of
from thinned import only, thinned

from forestc import load
from forestc.errors import CheckError, ModelError, OptionError
from forestc.forest.text import print_forest
from forestc.passes import passes_from
from forestc.passes.promises import Exact, KeepsDecisions
from forestc.passes.prune_splits import core_rows, ensemble
from forestc.passes.prune_splits.ensemble import _leaves_in_order
from forestc.passes.prune_splits.prune_splits import PruneSplits, PruningLadder
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows, FitAndHeldOut
from forestc.rows.encode import evaluate
from forestc.search.settle import settled


@cache
def digits(trees=6, depth=3):
    """Returns a model, rows and labels of four classes and few trees, since every price visits all rows and splits."""
    _, X, y = trained("xgboost-multi")
    X, y = X[y < 4], y[y < 4]
    return xgboost.XGBClassifier(max_depth=depth, n_estimators=trees, random_state=0).fit(X, y), X, y


@pytest.mark.parametrize("kind", only(["xgboost-binary", "digits", "forest-binary", "forest-missing"], 0, 1))
def test_no_decision_of_the_rows_changes(kind):
    model, X, y = digits() if kind == "digits" else trained(kind)
    X, y = X[::3], y[::3]
    classes = np.unique(y)
    rows = ArrayRows(X, np.searchsorted(classes, y))
    spec = "simplify,round-leaves{leaf_bits=6,change=1},prune-splits{keep=decisions,copies=2},simplify"
    forest, steps = run_passes(load(model), passes_from(spec), rows)
    assert steps[3].guarantee == "exact-on-data" and steps[3].change == 0
    assert steps[3].report["scores"] == ("log_odds" if isinstance(model, xgboost.XGBClassifier) else "ranking")
    before, after = steps[3].report["splits"]
    assert after < before and steps[3].report["cost"][1] < steps[3].report["cost"][0]
    kept, _ = run_passes(load(model), passes_from("simplify,round-leaves{leaf_bits=6,change=1},simplify"), rows)
    assert np.array_equal(evaluate(kept, X).index, evaluate(forest, X).index)
    assert forest.n_nodes < kept.n_nodes


def test_any_forest_keeps_its_decisions():
    done = 0
    for seed in range(40):
        forest = random_forest(seed, True)
        X = troublesome_rows(forest, seed, 80)
        if not (forest.single and forest.decides):
            with pytest.raises(OptionError, match=r"decides on one class|no decisions"):
                settled(PruneSplits(keep="decisions"), forest, ArrayRows(X))
            continue
        result = settled(PruneSplits(keep="decisions", copies=1, leaf_bits=1 + seed % 4), forest, ArrayRows(X))
        assert np.array_equal(evaluate(forest, X).index, evaluate(result.forest, X).index)
        done += 1
    assert done >= 10


@pytest.mark.parametrize("kind", thinned(["xgboost-binary", "digits", "forest-missing"], keep=1))
def test_rows_outside_the_core_keep_their_decisions(kind, monkeypatch):
    """Uses a core of a third of the rows; rows that would be decided otherwise are added to it. All rows are looked at
    in batches, in memory and read anew each time."""
    model, X, y = digits() if kind == "digits" else trained(kind)
    X, y = X[::2], y[::2]
    source = run_passes(
        load(model), passes_from("simplify,round-leaves{leaf_bits=6,change=1},simplify"), ArrayRows(X, y)
    )[0]
    monkeypatch.setattr(ensemble, "MOST_FIT", len(X) // 3 * len(source.trees))
    step, texts = PruneSplits(keep="decisions", copies=1), []
    for most in (core_rows.MOST_CODES, 10):
        monkeypatch.setattr(core_rows, "MOST_CODES", most)
        result = settled(step, source, ArrayRows(X, y, size=50))
        assert np.array_equal(evaluate(source, X).index, evaluate(result.forest, X).index)
        assert result.report["cost"][1] < result.report["cost"][0]
        texts.append(print_forest(result.forest))
    assert texts[0] == texts[1]
    # The result for one number of leaf bits must not depend on earlier trials with others.
    ladder = step.ladder(source, ArrayRows(X, y))
    for branch in ladder.branches():
        rungs, alone = (made.rungs(branch.steps) for made in (ladder, step.ladder(source, ArrayRows(X, y))))
        assert [print_forest(rung.forest) for rung in rungs] == [print_forest(rung.forest) for rung in alone]


def test_at_a_price_of_0_only_splits_go_that_no_decision_needs():
    model, X, y = trained("xgboost-binary")
    forest = integers(load(model), ArrayRows(X, y))
    result = settled(PruneSplits(keep="decisions", price=0, leaf_bits="same"), forest, ArrayRows(X, y))
    assert np.array_equal(evaluate(forest, X).index, evaluate(result.forest, X).index)
    assert result.report["added_trees"] == result.report["mended"] == result.report["rewired"] == 0
    assert result.report["splits"][1] < result.report["splits"][0]
    bits = result.report["leaf_bits"]
    for count in ("same", bits):  # If leaves need no rounding, every search over prices begins with it.
        ladder = PruneSplits(keep="decisions", leaf_bits=count).ladder(forest, ArrayRows(X, y))
        first = next(ladder.rungs(ladder.branches()[0].steps))
        assert first.step.price == 0 and print_forest(first.forest) == print_forest(result.forest)
    fewer = PruneSplits(keep="decisions", leaf_bits=bits - 1).ladder(forest, ArrayRows(X, y))
    assert all(step.price for step in fewer.branches()[0].steps)


def test_accuracy_on_held_out_rows_decides():
    model, X, y = digits()
    rows = FitAndHeldOut.every(ArrayRows(X[::2], y[::2]), 3)
    spec = "simplify,round-leaves{leaf_bits=4},prune-splits{tolerance=%s,leaf_bits=1,copies=1},simplify"
    little, steps = run_passes(load(model), passes_from(spec % 0.04), *rows)
    assert steps[3].held_out is not None and steps[3].held_out["lost"] <= 0.04
    assert steps[3].report["chosen_on_held_out"] and len(little.conditions.comparators) < len(
        load(model).conditions.comparators
    )
    more, _ = run_passes(load(model), passes_from(spec % 0.1), *rows)
    assert len(more.conditions.comparators) < len(little.conditions.comparators)
    assert max(int(tree.values.max()) for tree in little.trees) <= 1


def test_a_price_is_kept_to_and_the_tolerance_refuses():
    model, X, y = digits()
    rows = FitAndHeldOut.every(ArrayRows(X, y), 4)
    costs = []
    for price in (0.05, 0.5):
        steps = run_passes(
            load(model),
            passes_from(
                f"round-leaves{{leaf_bits=4}},prune-splits{{price={price},leaf_bits=4,tolerance=inf,copies=1}}"
            ),
            *rows,
        )[1]
        assert not steps[2].report["chosen_on_held_out"] and steps[2].report["price"] == price
        costs.append(steps[2].report["cost"][1])
    assert costs[1] < costs[0]
    with pytest.raises(CheckError, match="accuracy is lost"):
        run_passes(load(model), passes_from("round-leaves{leaf_bits=4},prune-splits{price=1000,copies=0}"), *rows)


def test_the_forest_says_what_the_pruned_ensemble_said():
    """Covers sets, missing values and trees of several outputs: at every price the rebuilt forest has the ensemble's
    loss."""
    done, rewired, flipped = 0, 0, 0
    for seed in range(40):
        forest = random_forest(seed, True)
        if not (forest.single and forest.decides):
            continue
        X = troublesome_rows(forest, seed, 120)
        ladder = PruningLadder(forest, ArrayRows(X), PruneSplits(keep="decisions", copies=0))
        ensemble = ladder.own.of_bits(2)
        label = evaluate(forest, X).index
        for found in ensemble.path(np.array([0.001, 0.03, 0.5])):
            scores = evaluate(ensemble.rebuilt(found), X).scores - ensemble.zero + (0.5 if forest.n_outputs == 1 else 0)
            assert loss_of(scores * found.unit, label) == pytest.approx(found.loss, rel=1e-9, abs=1e-12)
            rewired += int((found.condition != ensemble.splits.condition).sum())
            flipped += int(found.flipped.sum())
        done += 1
    assert done >= 10 and rewired > 20 and flipped > 5


def test_rewired_splits_need_fewer_luts():
    model, X, y = digits(12, 4)
    spec = "round-leaves{leaf_bits=4},prune-splits{price=0.5,tolerance=inf,leaf_bits=1,copies=2,rewire=%s},simplify"
    rows = FitAndHeldOut.every(ArrayRows(X, y), 3)
    kept, freed = (run_passes(load(model), passes_from(spec % rewire), *rows) for rewire in ("false", "true"))
    assert kept[1][2].report["rewired"] == 0 and freed[1][2].report["rewired"] > 0
    assert freed[1][2].report["cost"][1] < kept[1][2].report["cost"][1]


def test_same_seed_same_forest():
    model, X, y = trained("xgboost-binary")
    spec = passes_from("round-leaves,prune-splits{keep=decisions,copies=3,seed=5}")
    first, second = (run_passes(load(model), spec, ArrayRows(X, y))[0] for _ in range(2))
    assert all(np.array_equal(a.values, b.values) for a, b in zip(first.trees, second.trees, strict=True))


def test_more_bits_are_tried_and_the_cheapest_result_is_taken():
    model, X, y = trained("xgboost-binary")
    forest = run_passes(load(model), passes_from("round-leaves{leaf_bits=6,change=1}"), ArrayRows(X, y))[0]
    costs = {
        bits: settled(PruneSplits(keep="decisions", copies=1, leaf_bits=bits), forest, ArrayRows(X, y)).report
        for bits in (1, 2, 3, "same", "auto")
    }
    assert costs["auto"]["cost"][1] == min(report["cost"][1] for report in costs.values())
    assert costs["auto"]["leaf_bits"] in (1, 2, 3, 6) and costs["same"]["leaf_bits"] == 6
    assert len({report["cost"][0] for report in costs.values()}) <= 4  # costs of the forest with leaves of these bits


def test_where_classes_overlap_added_trees_keep_the_decisions():
    """A quarter of the labels are noise that the model has memorized."""
    random = np.random.default_rng(0)
    X = random.integers(0, 64, (240, 6)).astype(float)
    y = ((X[:, 0] + X[:, 1] > 64) ^ (random.random(240) < 0.25)).astype(np.int64)
    model = xgboost.XGBClassifier(max_depth=4, n_estimators=12, random_state=0).fit(X, y)
    forest = run_passes(load(model), passes_from("simplify,share-thresholds,round-leaves,simplify"), ArrayRows(X, y))[0]

    def pruned(**options):
        result = settled(PruneSplits(keep="decisions", copies=2, leaf_bits=1, **options), forest, ArrayRows(X, y))
        assert np.array_equal(evaluate(forest, X).index, evaluate(result.forest, X).index)
        return result

    few, none = pruned(mended=0.1), pruned(mended=0.0)
    assert (
        few.report["added_trees"]
        and 0 < few.report["mended"] <= 24
        and few.report["cost"][1] < few.report["cost"][0] / 2
    )
    assert len(few.forest.trees) == len(forest.trees) + few.report["added_trees"]
    assert none.report["added_trees"] == none.report["mended"] == 0
    # A split goes if its removal flips no decision, even if nothing is fitted again.
    same = settled(
        PruneSplits(keep="decisions", copies=0, leaf_bits="same", price=1e-9, mended=0.0), forest, ArrayRows(X, y)
    )
    assert same.report["splits"][1] < same.report["splits"][0]


@pytest.mark.slow
@pytest.mark.parametrize("targets", [1, 2])
def test_regressions_are_judged_by_r_squared(targets):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 4))
    y = np.stack([X[:, 0] * X[:, 1], X[:, 2] + 0.3 * X[:, 3]], axis=1)[:, :targets] + random.normal(size=(500, targets))
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X[:300], y[:300].squeeze())
    rows, held = ArrayRows(X[:300], y[:300].squeeze()), ArrayRows(X[300:], y[300:].squeeze())
    spec = "simplify,round-leaves,prune-splits{tolerance=%s},simplify"
    little, steps = run_passes(load(model), passes_from(spec % 0.05), rows, held)
    assert steps[3].held_out["measure"] == "R squared" and steps[3].held_out["lost"] <= 0.05
    before, after = steps[3].report["cost"]
    assert after < before / 2 and steps[3].report["scores"] == "unchanged"
    more, _ = run_passes(load(model), passes_from(spec % 0.3), rows, held)
    assert more.n_nodes < little.n_nodes
    with pytest.raises(OptionError, match="no decisions to keep"):
        run_passes(load(model), passes_from("round-leaves,prune-splits{keep=decisions}"), rows, held)


def test_leaves_from_left_to_right():
    forest = random_forest(3, True)
    for tree in forest.trees:
        leaves, inner = _leaves_in_order(tree)
        assert sorted(leaves) == np.flatnonzero(tree.left == -1).tolist()
        assert sorted(node for node, *_ in inner) == tree.inner.tolist()

        def below(node, tree=tree):
            found, stack = [], [node]
            while stack:
                at = stack.pop()
                if tree.left[at] == -1:
                    found.append(at)
                else:
                    stack += [int(tree.right[at]), int(tree.left[at])]
            return found

        for node, first, middle, last, size in inner:
            assert below(int(tree.left[node])) == leaves[first:middle]
            assert below(int(tree.right[node])) == leaves[middle:last] and size == last - first - 1


@pytest.mark.parametrize(
    ("options", "rows", "error"),
    [
        ({}, None, OptionError),
        ({}, "plain", OptionError),
        ({"keep": "paths"}, "plain", OptionError),
        ({"price": 0}, "plain", OptionError),
        ({"leaf_bits": 17}, "plain", OptionError),
        ({"copies": 101}, "plain", OptionError),
        ({"mix": 2}, "plain", OptionError),
        ({"mended": 1.5}, "plain", OptionError),
        ({"seed": -1}, "plain", OptionError),
        ({"rewire": 1}, "plain", OptionError),
        ({"tolerance": True}, "plain", OptionError),
        ({"keep": "decisions"}, "float", ModelError),
    ],
)
def test_what_is_refused(options, rows, error):
    model, X, y = trained("xgboost-binary")
    forest = load(model)
    if rows != "float":
        forest = integers(forest, ArrayRows(X, y))
    with pytest.raises(error):
        settled(PruneSplits(**options), forest, None if rows is None else ArrayRows(X, y))


def test_leaves_of_many_bits():
    model, X, y = trained("xgboost-binary")
    spec = passes_from("round-leaves{leaf_bits=16},prune-splits{keep=decisions,copies=1},simplify")
    forest, steps = run_passes(load(model), spec, ArrayRows(X, y))
    assert steps[2].change == 0  # If no ensemble keeps all decisions, the forest stays as it is.
    assert steps[2].report["scores"] == ("unchanged" if steps[2].report["price"] is None else "log_odds")
    assert forest.scale is not None and 0 < forest.scale <= 1


def test_what_nothing_found_keeps_is_kept_in_another_way():
    """With no accuracy to lose, decisions are kept instead."""
    model, X, _ = trained("forest-text-labels")
    forest = run_passes(load(model), passes_from("none"), ArrayRows(X[::3]))[0]
    rows, scorer = ArrayRows(X[::3]), Scorer(forest, ArrayRows(np.random.default_rng(0).uniform(0, 8, (500, 4))))

    def pruned(**options):
        return settled(PruneSplits(copies=1, **options), forest, rows, scorer)

    auto = pruned(keep="decisions")
    accurate, either = (pruned(keep=keep, tolerance=0) for keep in ("accuracy", "accuracy-or-decisions"))
    assert accurate.promises == (Exact(),) and accurate.report["price"] is None
    assert either.promises == (KeepsDecisions(),) and either.report == auto.report
    with pytest.raises(OptionError, match="needs held-out rows"):
        settled(PruneSplits(keep="accuracy-or-decisions"), forest, rows)
    with pytest.raises(OptionError, match="searches the price"):
        PruneSplits(keep="accuracy-or-decisions", price=2.0)


class Known(dict):
    """A memory of arrays that may be wrong."""

    def recall(self, name):
        return self.get(name)

    def remember(self, name, arrays):
        self[name] = {key: array.copy() for key, array in arrays.items()}


@pytest.mark.parametrize(
    ("kind", "options"),
    thinned(
        [
            (kind, options)
            for kind in ("xgboost-binary", "digits", "forest-missing", "xgboost-missing", "regression")
            for options in ({}, {"rewire": False}, {"leaf_bits": 1})
        ],
        keep=3,
    ),
)
def test_a_pass_that_remembers_makes_the_same(kind, options):
    if kind == "regression":
        _, X, y = trained("xgboost-binary")
        y = X[:, 0] * 2 - X[:, 3]
        model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(X, y)
    else:
        model, X, y = digits() if kind == "digits" else trained(kind)
    classes = np.unique(y)
    truth = y if kind == "regression" else np.searchsorted(classes, y)
    rows, held_out = ArrayRows(X[::4], truth[::4]), ArrayRows(X[1::4], truth[1::4])
    source = load(model)
    forest, _ = run_passes(source, passes_from("simplify,round-leaves{leaf_bits=6,change=1}"), rows)
    scorer, memory = Scorer(source, held_out), Known()
    options = {"leaf_bits": "same", **options}

    def same(price):
        step = PruneSplits(price=price, copies=2, tolerance=math.inf, **options)
        fresh, resumed = (settled(step, forest, rows, scorer, kept) for kept in (None, memory))
        assert print_forest(resumed.forest) == print_forest(fresh.forest)
        assert (resumed.report, resumed.promises) == (fresh.report, fresh.promises)

    same(0.3)
    known = set(memory)
    assert known
    same(3.0)  # The search resumes from there.
    assert known < set(memory)
    same(0.1)  # This price comes before all others except the first.
    for name, arrays in memory.items():  # The search does not resume from damaged arrays.
        memory[name] = {**arrays, "group": arrays["group"] + 1000}
    same(2.0)
    memory.update({name: {} for name in memory})
    same(2.0)
