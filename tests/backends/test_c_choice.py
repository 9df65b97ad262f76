"""Tests estimates of C by layout, budgets, and the choice of a layout."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import forestc
from forestc.backends.c import COptions, check, chosen_layout, emit, estimated
from forestc.backends.c import choice as c_choice
from forestc.backends.c.demands import reaching
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.layouts import LAYOUTS
from forestc.costs.firmware import FILE, firmware_costs, parsed
from forestc.errors import ForestcError, OptionError
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import LEAF
from forestc.rows.encode import encode
from forestc.toolchain.firmware import CPUS


@pytest.fixture(scope="module")
def forest():
    X, y = load_digits(return_X_y=True)
    return forestc.quantize(RandomForestClassifier(20, max_depth=6, random_state=0).fit(X, y), X, y)


def test_every_processor_and_layout_has_costs():
    known = firmware_costs()
    assert set(known) == set(CPUS)
    assert all(costs.layouts == set(LAYOUTS) for costs in known.values())
    assert all(
        set(costs.compilers) == ({"gcc"} if cpu == "avr" else {"gcc", "ziglang"}) for cpu, costs in known.items()
    )


@settings(deadline=None, max_examples=examples(12))
@given(st.integers(0, 10**6), st.sampled_from(sorted(LAYOUTS)))
def test_no_row_is_dearer_than_the_worst_case(seed, layout):
    forest = random_forest(seed, True)
    if not forest.adds:
        return
    try:
        demand = LAYOUTS[layout].demand(inputs_of(forest, "words"))
    except OptionError:
        return  # The layout holds no tree with this number of leaves.
    words, missing = encode(forest, troublesome_rows(forest, seed, 60)), missing_words(forest)
    fails = np.random.default_rng(seed).random((60, len(forest.conditions))) < 0.5
    reached = np.stack([leaf_nodes(forest, tree, words, missing) for tree in forest.trees], axis=1)
    of_rows = demand.of_rows(reached, fails)
    random = np.random.default_rng(seed)
    costs = dict(zip(of_rows, random.random(len(of_rows)), strict=True))
    total = sum(costs[name] * amounts for name, amounts in of_rows.items())
    assert total.max(initial=0) <= demand.worst(costs) + 1e-9
    mean = demand.mean(forest)
    assert sum(costs[name] * amount for name, amount in mean.items()) <= demand.worst(costs) + 1e-9
    for tree in forest.trees:
        share = reaching(tree)
        assert share.sum() == pytest.approx(1.0) and (share[tree.left != LEAF] == 0).all()


def test_the_counts_of_a_row_are_those_of_its_paths(forest):
    """Compares with counts on the paths themselves."""
    words, missing = encode(forest, load_digits().data[:5]), missing_words(forest)
    reached = np.stack([leaf_nodes(forest, tree, words, missing) for tree in forest.trees], axis=1)
    found = (
        LAYOUTS["branches"]
        .demand(inputs_of(forest, "words"))
        .of_rows(reached, np.zeros((5, len(forest.conditions)), dtype=bool))
    )
    for row in range(5):
        splits = adds = 0
        for index, tree in enumerate(forest.trees):
            node = 0
            while tree.left[node] != LEAF:
                splits += 1
                sides = (int(tree.left[node]), int(tree.right[node]))
                below = words[row, tree.feature[node]] < tree.threshold[node]
                node = sides[0] if below else sides[1]
            adds += int((tree.values[tree.leaf[node]] != 0).sum())
            assert node == reached[row, index]
        assert found["split"][row] + found["again"][row] == found["test"][row] == splits and found["add"][row] == adds


def test_auto_keeps_the_budgets(forest):
    cpu = "cortex-m0plus"
    known = estimated(forest, COptions(), cpu)
    assert known["nodes"].flash < known["branches"].flash
    assert known["nodes"].peak > known["branches"].peak
    assert all(estimate.peak <= estimate.worst for estimate in known.values())
    quick = min(known.values(), key=lambda estimate: estimate.peak)
    small = min((e for e in known.values() if e.peak <= 2 * quick.peak), key=lambda estimate: estimate.flash)
    assert chosen_layout(forest, COptions(cpu=cpu)) == small.layout
    least = known["nodes"].most("flash")
    assert least > known["nodes"].flash and chosen_layout(forest, COptions(cpu=cpu, flash=least)) == "nodes"
    assert chosen_layout(forest, COptions(cpu=cpu, flash=10**6)) == quick.layout
    assert chosen_layout(forest, COptions(cpu=cpu, instructions="1M")) == "nodes"
    bounded = min(known.values(), key=lambda estimate: estimate.worst)
    assert chosen_layout(forest, COptions(cpu=cpu, instructions=bounded.worst)) == bounded.layout
    ends = (
        f"nodes needs the least, {known['nodes'].ranges['flash'][0]:,} to {least:,}; c_layout; raise the budget to that"
    )
    for budget in (900, least - 1):
        with pytest.raises(
            OptionError, match=rf"flash budget of {budget:,} bytes for predict on .* for certain: {ends}"
        ):
            chosen_layout(forest, COptions(cpu=cpu, flash=budget))
    with pytest.raises(OptionError, match="ram budget of 4 bytes for predict"):
        chosen_layout(forest, COptions(cpu=cpu, ram=4))
    with pytest.raises(OptionError, match=r"instructions budget of 9 .*, at most "):
        chosen_layout(forest, COptions(cpu=cpu, instructions=9))
    for flash, most in ((least, bounded.worst), (9, 10**6)):
        listed = rf"no layout keeps all budgets \(flash {flash:,}, instructions {most:,}\) for predict on {cpu} "
        with pytest.raises(
            OptionError, match=listed + ".*: branches: .*; nodes: flash .*raise the budgets to those of one layout"
        ):
            chosen_layout(forest, COptions(cpu=cpu, flash=flash, instructions=most))
    with pytest.raises(OptionError, match=r"flash budget of 2,000 bytes .* branches needs"):
        chosen_layout(forest, COptions(c_layout="branches", cpu=cpu, flash=2000))


def test_the_upper_end_over_compilers_counts(forest, monkeypatch):
    """Checks that the known compiler with the largest figure decides, whichever compilers are installed."""
    cpu = "cortex-m0plus"
    c_choice.estimates.cache_clear()
    monkeypatch.setenv("PATH", "")
    both, costs = estimated(forest, COptions(), cpu), firmware_costs()[cpu]
    by_one = {}
    for kind in costs.compilers:
        alone = {cpu: replace(costs, compilers={kind: costs.compilers[kind]})}
        monkeypatch.setattr(c_choice, "firmware_costs", lambda alone=alone: alone)
        c_choice.estimates.cache_clear()
        by_one[kind] = estimated(forest, COptions(), cpu)
    c_choice.estimates.cache_clear()
    for layout, estimate in both.items():
        own = [found[layout] for found in by_one.values()]
        for name in ("flash", "ram", "instructions"):
            assert estimate.most(name) == max(one.most(name) for one in own)
        assert estimate.ranges["flash"][0] == min(one.ranges["flash"][0] for one in own)
        assert estimate.worst_by == {kind: found[layout].worst for kind, found in by_one.items()}


def test_a_forest_whose_like_was_never_built_has_no_estimates(forest, monkeypatch):
    """Removes the costs of a feature: the layout is left out, and a budget for it is refused."""
    table = json.loads(FILE.read_text(encoding="utf-8"))
    for layout in LAYOUTS:
        if layout != "nodes":
            for kind in table["cortex-m0plus"]["compilers"].values():
                kind["layouts"][layout]["flash"]["costs"].pop("tree", None)
                kind["layouts"][layout]["flash"]["costs"].pop("tops", None)
    monkeypatch.setattr(c_choice, "firmware_costs", lambda: parsed(json.dumps(table)))
    c_choice.estimates.cache_clear()
    assert "branches" not in estimated(forest, COptions(), "cortex-m0plus")
    assert chosen_layout(forest, COptions(cpu="cortex-m0plus", flash=10**6)) in ("nodes", "masks")
    assert chosen_layout(forest, COptions(c_layout="branches", cpu="cortex-m0plus")) == "branches"
    with pytest.raises(OptionError, match=r"no estimates of c_layout=branches for a forest like this \(tree\)"):
        chosen_layout(forest, COptions(c_layout="branches", cpu="cortex-m0plus", flash=10**6))
    c_choice.estimates.cache_clear()


def test_regressions_count_scores():
    X, y = load_diabetes(return_X_y=True)
    forest = forestc.quantize(RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y), X, y)
    with pytest.raises(OptionError, match="flash budget of 9 bytes for scores on avr can't be kept"):
        chosen_layout(forest, COptions(cpu="avr", flash=9))


@pytest.mark.parametrize(
    "options, why",
    [
        ({"cpu": "z80"}, "unknown cpu 'z80'; known: cortex-m0plus"),
        ({"flash": 1000}, "flash=1000 needs a processor; add cpu="),
        ({"cpu": "avr", "ram": 0}, "ram=0; give a number of bytes"),
        ({"cpu": "avr", "instructions": True}, "instructions=True; give a number of instructions"),
    ],
)
def test_budgets_that_make_no_sense(options, why):
    with pytest.raises(OptionError, match=why):
        check(COptions(**options))


def test_layouts_by_what_is_wanted(forest):
    known = estimated(forest, COptions(), "cortex-m4f")
    chosen = {
        goal: known[chosen_layout(forest, COptions(c_layout=goal, cpu="cortex-m4f"))]
        for goal in ("smallest", "fastest", "balanced")
    }
    fastest = min(estimate.peak for estimate in known.values())
    assert chosen["smallest"].flash == min(estimate.flash for estimate in known.values())
    assert chosen["fastest"].peak == fastest
    within = [estimate.flash for estimate in known.values() if estimate.peak <= 2 * fastest]
    assert chosen["balanced"].peak <= 2 * fastest and chosen["balanced"].flash == min(within)


def test_goals_keep_the_budgets(forest):
    known = estimated(forest, COptions(), "cortex-m4f")
    flash = min(estimate.most("flash") for estimate in known.values())
    layout = chosen_layout(forest, COptions(c_layout="fastest", cpu="cortex-m4f", flash=flash))
    assert known[layout].most("flash") <= flash


def test_large_forests_are_tables(forest, monkeypatch):
    monkeypatch.setattr(c_choice, "MOST_BRANCHES", 10)
    assert chosen_layout(forest, COptions()) == chosen_layout(forest, COptions(cpu="avr")) == "nodes"
    assert chosen_layout(forest, COptions(c_layout="branches", cpu="avr", flash=200_000)) == "branches"
    with pytest.raises(OptionError, match=r"flash budget of 10 bytes for predict on avr"):
        chosen_layout(forest, COptions(cpu="avr", flash=10))

    for layout in ("branches", "mixed"):
        assert layout in estimated(forest, COptions(c_layout=layout), "avr")
        with pytest.raises(OptionError, match=rf"flash budget of 10 bytes for predict on avr .* {layout} needs"):
            chosen_layout(forest, COptions(c_layout=layout, cpu="avr", flash=10))


def test_a_budget_of_a_layout_that_is_not_estimated_is_refused(forest):
    one = replace(forest, trees=forest.trees[:1])
    assert chosen_layout(one, COptions(c_layout="mixed", cpu="avr")) == "mixed"
    with pytest.raises(OptionError, match="c_layout=mixed is for trees of which some become branches"):
        chosen_layout(one, COptions(c_layout="mixed", cpu="avr", flash=10))


def test_compile_tells_the_estimates(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y)
    done = forestc.compile(model, X, tmp_path / "d", targets="c", cpu="cortex-m4f", flash=4000, name="m")
    output = done.figures["firmware"]
    assert output["cpu"] == "cortex-m4f" and output["layout"] in output["layouts"]
    assert output["layouts"][output["layout"]]["ranges"]["flash"][1] <= 4000 and output["entry"] == "predict"
    assert "the budgets count predict and what it calls; m_quantize and other" in " ".join(done.figures["notes"])
    assert done.design.c_options == COptions(c_layout=output["layout"], cpu="cortex-m4f", flash=4000)
    assert "C of predict alone, estimated for cortex-m4f" in (tmp_path / "d" / "report.md").read_text()
    assert done.design.path("c").read_text() == emit(done.design.forest, COptions(c_layout=output["layout"]))["m.h"]
    with pytest.raises(OptionError, match="flash budget of 100 bytes"):
        forestc.compile(model, X, tmp_path / "e", targets="c", cpu="cortex-m4f", flash=100)
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize(
    "given, ways, never",
    [
        ({"level": 1}, "-O2, -O3, prune-trees", "held"),
        ({"level": 2}, "-O3 with held_out=FILE and a larger tolerance", "-O2"),
        ({"level": 2, "held_out": 0.3}, "-O3 with a larger tolerance", "FILE"),
        ({"level": 3, "held_out": 0.3, "effort": 1}, "smaller: a larger tolerance", "-O2"),
    ],
)
def test_a_refusal_advises_what_the_level_has_left(tmp_path, given, ways, never):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    with pytest.raises(OptionError, match="flash budget of 9 bytes") as refused:
        forestc.compile(model, X, tmp_path / "d", label=y, targets="c", cpu="Cortex-M0+", flash=9, **given)
    assert ways in str(refused.value) and never not in str(refused.value)


def _gcc(table):
    return table["avr"]["compilers"]["gcc"]


def _nodes(table):
    return _gcc(table)["layouts"]["nodes"]


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda table: table.clear() or "[1", "it is not JSON"),
        (lambda table: json.dumps([table]), "it is not an object"),
        (lambda table: table["avr"].pop("prices"), "avr has no 'prices'"),
        (lambda table: table["avr"].update(compilers={}), "avr has no compiler"),
        (lambda table: table["avr"]["prices"].update(tree=-1), "avr: prices: tree costs -1"),
        (lambda table: _gcc(table).pop("tool"), "avr, gcc has no 'tool'"),
        (lambda table: _nodes(table).pop("worst"), "avr, gcc, nodes has no 'worst'"),
        (lambda table: _nodes(table)["mean"]["costs"].update(tree=-1), "avr, gcc, nodes, mean: tree costs -1"),
        (lambda table: _nodes(table)["flash"].update(ratios=[2, 1, 3]), "avr, gcc, nodes, flash: the ratios are"),
        (lambda table: _nodes(table)["flash"].update(ratios=None), "avr, gcc, nodes, flash: the ratios are None"),
        (lambda table: _nodes(table)["flash"].update(plus=-1), "avr, gcc, nodes, flash: plus is -1"),
        (lambda table: _nodes(table)["flash"].update(rare="far"), "nodes, flash: rare is not an object"),
        (lambda table: _nodes(table)["flash"].update(rare={"far": "x"}), "flash: rare: far costs 'x'"),
    ],
)
def test_damaged_costs_are_named(change, why):
    table = json.loads(FILE.read_text(encoding="utf-8"))
    text = change(table)
    with pytest.raises(ForestcError, match=why):
        parsed(text if isinstance(text, str) and why.startswith("it is") else json.dumps(table))
