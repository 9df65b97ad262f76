"""Tests that the decision among many classes is recognized from its cells, and a wrong tournament is not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from thinned import only

import forestc
from forestc.checks.proof import prove_netlist
from forestc.forest.builder import changed
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Decision
from forestc.forest.numbers import word_range
from forestc.lowering.draft import Witness
from forestc.lowering.trees import LoweringOptions, lower_with_witness
from forestc.netlist.ir import Compare, Mux


def rows(seed, classes, features=2):
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(300, features)), 1)
    s = X.sum(axis=1) + 0.3 * random.normal(size=300)
    edges = np.quantile(s, np.linspace(0, 1, classes + 1)[1:-1])
    return X, np.unique(np.digitize(s, edges), return_inverse=True)[1]


@pytest.mark.parametrize("latency", only([0, 3], 1))
@pytest.mark.parametrize(
    "model",
    [
        ExtraTreesClassifier(12, max_depth=4, random_state=0),
        GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0),
        DecisionTreeClassifier(random_state=0),
    ],
)
@pytest.mark.parametrize("ties", ["first", "last"])
def test_many_classes_are_proved_without_a_solver(model, latency, ties, monkeypatch):
    monkeypatch.setattr("forestc.checks.proof.decision._other_class", None)
    X, y = rows(1, 21)
    forest = forestc.quantize(model.fit(X, y), X, y)
    forest = changed(forest, decision=Decision("argmax", ties=ties))
    for outputs in ("label", "both"):
        proof = prove_netlist(forest, *lower_with_witness(forest, LoweringOptions(latency, outputs)))
        assert proof.proved, [(part.name, part.why) for part in proof.parts if part.why]
        assert any(part.name == "decision" for part in proof.parts)


def test_the_other_winner_of_ties_is_refuted_where_two_classes_tie():
    """Uses a netlist for the first of equal classes, and a forest for the last. A run over all inputs tells whether any
    input differs."""
    verdicts = []
    for seed in range(2, 10):
        X, y = rows(seed, 9, 1)
        forest = forestc.quantize(ExtraTreesClassifier(3, max_depth=2, random_state=0).fit(X, y), X, y)
        netlist, witness = lower_with_witness(forest)
        other = changed(forest, decision=Decision("argmax", ties="last"))
        proof = prove_netlist(other, netlist, witness)
        span = word_range(forest.features[0].number, False)
        words = np.arange(span.low, span.top + 1)[:, None]
        differ = (evaluate_words(forest, words).index != evaluate_words(other, words).index).any()
        assert proof.verdict == ("refuted" if differ else "proved")
        if differ:
            assert "where the forest gives" in proof.parts[-1].why and "at x0=" in proof.parts[-1].why
        verdicts.append(proof.verdict)
    assert set(verdicts) == {"refuted", "proved"}


def test_a_tournament_with_one_wrong_cell_is_never_proved():
    X, y = rows(3, 17)
    forest = forestc.quantize(ExtraTreesClassifier(8, max_depth=4, random_state=1).fit(X, y), X, y)
    netlist, witness = lower_with_witness(forest, LoweringOptions(outputs="label"))
    tournament = min(net for net, cell in enumerate(netlist.cells) if isinstance(cell, Compare))
    random, tried = Random(0), 0
    for net, cell in enumerate(netlist.cells[tournament:], tournament):
        if random.random() < 0.9:
            continue
        if isinstance(cell, Compare):
            other = Compare(cell.b, cell.a)
        elif isinstance(cell, Mux):
            other = Mux(cell.select, cell.b, cell.a)
        else:
            continue
        wrong = replace(netlist, cells=(*netlist.cells[:net], other, *netlist.cells[net + 1 :]))
        assert not prove_netlist(forest, wrong, witness).proved, net
        tried += 1
    assert tried > 4


def test_one_feature_whose_sums_hang_together_is_not_refuted():
    """Sums of one feature with few words may be equal by chance; the witness tells them apart."""
    for seed in (1, 4, 9, 15):
        random = np.random.default_rng(seed)
        X = np.round(random.normal(size=(150, 1)), 1)
        edges = np.quantile(X[:, 0], np.linspace(0, 1, 11)[1:-1])
        y = np.unique(np.digitize(X[:, 0] + 0.3 * random.normal(size=150), edges), return_inverse=True)[1]
        model = RandomForestClassifier(10, max_depth=3, random_state=seed).fit(X, y)
        forest = forestc.quantize(model, X, y)
        proof = prove_netlist(forest, *lower_with_witness(forest, LoweringOptions(outputs="both")))
        assert proof.proved, [(part.name, part.why) for part in proof.parts if part.why]


def test_a_thousand_registers_are_proved():
    X, y = rows(0, 2, 3)
    forest = forestc.quantize(DecisionTreeClassifier(max_depth=2).fit(X, y), X, y)
    assert prove_netlist(forest, *lower_with_witness(forest, LoweringOptions(latency=1000))).proved


def test_without_a_witness_the_results_are_asked_as_a_whole():
    """Checks that nothing depends on hints from lowering: without them a small design is proved by its cases, or by the
    solver."""
    X, y = rows(5, 3, 1)
    forest = forestc.quantize(ExtraTreesClassifier(4, max_depth=3, random_state=0).fit(X, y), X, y)
    netlist, witness = lower_with_witness(forest, LoweringOptions(outputs="both"))
    assert prove_netlist(forest, netlist, Witness({})).proved
    swapped = dict(zip(witness.trees, reversed(witness.trees.values()), strict=True))
    assert prove_netlist(forest, netlist, Witness(swapped)).proved
    X, y = rows(6, 3, 5)
    forest = forestc.quantize(ExtraTreesClassifier(4, max_depth=4, random_state=0).fit(X, y), X, y)
    netlist, _ = lower_with_witness(forest, LoweringOptions(outputs="label"))
    proof = prove_netlist(forest, netlist, Witness({}))
    assert proof.proved or proof.verdict == "undecided"
