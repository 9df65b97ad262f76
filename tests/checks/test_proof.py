"""Tests that proofs hold for the compiler's netlists, and are refused if anything differs."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
from models import trained
from random_forests import random_forest, votes
from sklearn.base import clone
from thinned import only

import forestc
from forestc.backends import hdl
from forestc.backends.verilog import core as verilog
from forestc.checks.proof import prove, prove_netlist, prove_verilog
from forestc.commands.check import check
from forestc.errors import MissingToolError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import evaluate_words
from forestc.lowering.trees import LoweringOptions, lower_with_witness
from forestc.netlist.ir import Add, Const, Less, Mux, Register
from forestc.netlist.ports import OUT_VALID, Port

KINDS = ("xgboost-binary", "xgboost-multi", "forest-multi", "forest-missing", "boosting-regression")


@cache
def quantized(kind):
    model, X, y = trained(kind)
    if kind == "forest-multi":
        model = clone(model).set_params(max_depth=6).fit(X, y)
    return forestc.quantize(model, X, y)


def core_of(forest, netlist):
    return verilog.emit(netlist)[f"{hdl.module_name(netlist)}.v"]


def both(forest, netlist, witness):
    proof = prove_netlist(forest, netlist, witness)
    return prove_verilog(forest, netlist, core_of(forest, netlist).encode(), proof)


@pytest.mark.parametrize(("latency", "kind"), only([(latency, kind) for latency in (0, 3) for kind in KINDS], 0, 4, 6))
def test_compiled_models_are_proved(kind, latency):
    forest = quantized(kind)
    outputs = "both" if forest.decides else "scores"
    proof = both(forest, *lower_with_witness(forest, LoweringOptions(latency=latency, outputs=outputs)))
    assert proof.proved and not proof.refuted, [part for part in proof.parts if part.why]
    assert [part.name for part in proof.parts][:2] == ["ports", "trees"]
    assert sum(part.asked for part in proof.parts) >= len(forest.trees) + 2


@pytest.mark.long
def test_200_trees_are_proved():
    model, X, y = trained("xgboost-multi")
    forest = forestc.quantize(clone(model).set_params(n_estimators=20).fit(X, y), X, y)
    assert len(forest.trees) == 200
    assert both(forest, *lower_with_witness(forest, LoweringOptions(latency=3, outputs="both"))).proved


def test_random_forests_are_proved():
    """Covers all that the generator makes: sets, categories, missing values, several targets, votes. Every other forest
    that decides gives labels alone."""
    seen = set()
    for seed in range(100):
        forest = random_forest(seed, True)
        deciding = ("label", "both")[seed // 3 % 2]
        options = LoweringOptions(latency=seed % 3, outputs=deciding if forest.decides else "scores")
        proof = prove_netlist(forest, *lower_with_witness(forest, options))
        assert proof.proved, (seed, [part for part in proof.parts if part.why])
        seen |= {part.name for part in proof.parts} | {forest.decision.kind, forest.combine.kind}
    assert {"trees", "scores", "decision", "argmax", "threshold"} <= seen


def test_votes_are_proved():
    from sklearn.ensemble import RandomForestClassifier, VotingClassifier

    _, X, y = trained("forest-multi")
    members = [(f"m{k}", RandomForestClassifier(3, max_depth=3, random_state=k)) for k in range(3)]
    for labels, weights in ((y, [1, 2, 3]), (y % 2, [2, 1, 1])):
        forest = forestc.quantize(VotingClassifier(members, weights=weights).fit(X, labels), X)
        proof = both(forest, *lower_with_witness(forest, LoweringOptions(latency=2, outputs="both")))
        assert proof.proved, [part for part in proof.parts if part.why]
        assert "votes" in {part.name for part in proof.parts}


def test_a_forest_that_differs_in_one_leaf_is_refuted():
    """Changes one leaf of one tree by one, at many leaves in turn."""
    forest = quantized("xgboost-multi")
    netlist, witness = lower_with_witness(forest)
    random = Random(0)
    for _ in range(12):
        index = random.choice([k for k, tree in enumerate(forest.trees) if tree.size > 1])
        tree = forest.trees[index]
        values = tree.values.copy()
        used = np.unique(tree.leaf[tree.left == -1])
        values[random.choice(used.tolist()), 0] += random.choice((-1, 1))
        other = changed(
            forest, trees=(*forest.trees[:index], changed_tree(tree, values=values), *forest.trees[index + 1 :])
        )
        words = np.random.default_rng(0).integers(0, 16, (10, len(forest.features)))
        assert evaluate_words(other, words).scores.shape == (10, 10)
        assert not prove_netlist(other, netlist, witness).proved


@pytest.mark.parametrize(("trees", "most"), [(3, 3), (7, 1), (12, 1), (4, 3), (6, 3), (9, 2), (8, 7)])
def test_decisions_on_words_that_are_added_bit_by_bit_are_proved_or_refuted(trees, most):
    forest = votes(trees, most)
    netlist, witness = lower_with_witness(forest, LoweringOptions(latency=2))
    proof = both(forest, netlist, witness)
    assert proof.proved, [part for part in proof.parts if part.why]
    assert [part.name for part in proof.parts[:3]] == ["ports", "trees", "decision"]
    tree = forest.trees[1]
    values = tree.values.copy()
    values[tree.leaf[3], 0] ^= 1
    other = changed(forest, trees=(forest.trees[0], changed_tree(tree, values=values), *forest.trees[2:]))
    assert not prove_netlist(other, netlist, witness).proved


@pytest.mark.parametrize("outputs", ["label", "both", "scores"])
def test_parts_that_vote_on_bits_are_proved(outputs):
    forest = votes(21, parts=3)
    proof = prove_netlist(forest, *lower_with_witness(forest, LoweringOptions(outputs=outputs)))
    assert proof.proved, [part for part in proof.parts if part.why]


def other_netlists(netlist, random, count):
    """Yields netlists with one cell changed: a threshold, a mux's arms, a constant's bit, an operand of a sum."""
    places = [net for net, cell in enumerate(netlist.cells) if isinstance(cell, Less | Mux | Const | Add) and net > 1]
    while count:
        net = random.choice(places)
        cell, word = netlist.cells[net], netlist.types[net]
        match cell:
            case Less(a, threshold):
                kind = netlist.types[a]
                moved = threshold + random.choice((-1, 1))
                if not kind.low < moved <= kind.high:
                    continue
                other = Less(a, moved)
            case Mux(select, a, b):
                other = Mux(select, b, a)
            case Const(value, width, signed):
                other = Const(value ^ 1 << random.randrange(width - signed), width, signed)
            case Add(operands, width, signed):
                if len(set(operands)) < 2 or any(isinstance(netlist.cells[a], Const) for a in operands):
                    continue
                other = Add((operands[0], operands[0], *operands[2:]), width, signed)
        count -= 1
        assert word == netlist.types[net]
        yield net, replace(netlist, cells=(*netlist.cells[:net], other, *netlist.cells[net + 1 :]))


@pytest.mark.parametrize("count", [25, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["xgboost-binary", "xgboost-multi"])
def test_a_netlist_with_a_planted_error_is_refuted(kind, count):
    forest = quantized(kind)
    netlist, witness = lower_with_witness(forest, LoweringOptions(outputs="both", latency=2))
    for net, other in other_netlists(netlist, Random(1), count):
        proof = prove_netlist(forest, other, witness)
        assert not proof.proved, (net, netlist.cells[net], other.cells[net])


MUTATIONS = (
    (r"(\d+)'d(\d+)(?= :|;| \?)", lambda m: f"{m[1]}'d{int(m[2]) ^ 1}"),  # changes the lowest bit of a leaf or constant
    (r" ([|&]) \(", lambda m: f" {'&' if m[1] == '|' else '|'} ("),  # changes a bit of a threshold
    (r"\? (\w+(?:'d\d+)?) : (\w+(?:'d\d+)?);", lambda m: f"? {m[2]} : {m[1]};"),  # exchanges the arms of a mux
    (r"(r\d+) <= (\w+);", lambda m: f"{m[1]} <= {m[2]} ^ 1'b1;"),  # inverts a register's lowest bit
    (r"(r\d+) = (\d+)'d0;", lambda m: f"{m[1]} = {m[2]}'d1;"),  # changes a register's initial value
    (r"= ~(\w+)", lambda m: f"= {m[1]}"),  # drops an inversion
    (r"\[(\d+):(\d+)\];", lambda m: f"[{int(m[1]) + 1}:{int(m[2]) + 1}];"),  # moves a feature by one bit
)


def mutants(text, random, count):
    made = set()
    attempt = 0
    while len(made) < count:
        attempt += 1
        pattern, change = MUTATIONS[attempt % len(MUTATIONS)]
        found = list(re.finditer(pattern, text))
        assert found, pattern
        place = random.choice(found)
        other = text[: place.start()] + change(place) + text[place.end() :]
        if other != text and other not in made:
            made.add(other)
            yield other


@pytest.mark.parametrize("count", [14, pytest.param(50, marks=pytest.mark.long)])
@pytest.mark.parametrize("part", only(range(4), 0, 2))
def test_none_of_200_planted_errors_in_verilog_is_proved(part, count):
    """Plants errors in single bits of leaves, thresholds, mux arms, registers and ports: 50 in each of four parts, by
    default 14. A text that reads as a core is refuted by an input, or changes no result; any other text is not
    accepted."""
    kind, latency = (("xgboost-binary", 2), ("forest-binary", 1), ("boosting-binary", 3), ("tree-multi", 2))[part]
    forest = quantized(kind)
    netlist, _ = lower_with_witness(forest, LoweringOptions(latency=latency, outputs="both"))
    assert any(isinstance(cell, Register) for cell in netlist.cells)
    text = core_of(forest, netlist)
    assert prove_verilog(forest, netlist, text.encode()).proved
    refuted = 0
    for other in mutants(text, Random(part), count):
        proof = prove_verilog(forest, netlist, other.encode())
        assert not proof.proved and proof.parts[0].why
        outside = "is outside the Verilog that the proof reads" in proof.parts[0].why
        assert not (outside and proof.refuted)
        if proof.refuted:
            assert re.search(r"gives .* where the forest gives .* at x0=|out_valid is", proof.parts[0].why)
        refuted += proof.refuted
    assert refuted >= 0.4 * count


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model, X, y = trained("xgboost-binary")
    out = tmp_path_factory.mktemp("proof") / "design"
    forestc.compile(model, X, out, label=y, latency=1, targets=["verilog"])
    return out


def test_a_folder_is_proved_by_check(folder):
    _, X, y = trained("xgboost-binary")
    result = check(folder, X, label=y, engines=["netlist"], prove=True)
    assert result.ok and result.figures["proved"] is True
    assert {part["name"] for part in result.figures["proof"]} == {"ports", "trees", "decision", "verilog"}
    without = check(folder, prove=True)
    assert without.ok and without.figures["proved"] and without.agreement is None
    assert set(without.vectors) == {"boundary", "random"} and without.figures["agreement"] is None
    with pytest.raises(OptionError, match="give rows=FILE, or prove=True"):
        check(folder)
    plain = check(folder, X, label=y, engines=["netlist"])
    assert plain.figures["proved"] is None and plain.figures["proof"] == []


def test_an_edited_file_is_refuted(folder):
    core = folder / "verilog" / f"{forestc.open_design(folder).manifest['core']}.v"
    good = core.read_text()
    try:
        core.write_text(re.sub(r"\? (\S+) : (\S+);", r"? \2 : \1;", good, count=1))
        proof = prove(forestc.open_design(folder))
        assert not proof.proved and proof.refuted
        core.write_text("module broken")
        proof = prove(forestc.open_design(folder))
        assert (
            proof.verdict == "undecided" and "line 1 is outside the Verilog that the proof reads" in proof.parts[-1].why
        )
    finally:
        core.write_text(good)


def test_without_the_solver_there_is_one_clear_error(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "bitwuzla", None)
    with pytest.raises(MissingToolError, match="forestc\\[prove\\]"):
        prove_netlist(quantized("xgboost-binary"), *lower_with_witness(quantized("xgboost-binary")))


def test_ports_are_part_of_the_proof():
    forest = quantized("xgboost-multi")
    netlist, witness = lower_with_witness(forest, LoweringOptions(latency=2, outputs="both"))
    assert prove_netlist(forest, netlist, witness).proved
    for outputs in (
        netlist.outputs[:1],
        netlist.outputs[:-1],
        (*netlist.outputs[:-1], (OUT_VALID, 1)),
        (*netlist.outputs[:-1], (OUT_VALID, netlist.cells[dict(netlist.outputs)[OUT_VALID]].a)),
    ):
        if [port.name for port, _ in outputs] == ["label"]:
            outputs = (*outputs, (Port("extra"), outputs[0][1]))
        try:
            proof = prove_netlist(forest, replace(netlist, outputs=outputs), witness)
        except forestc.ForestcError:
            continue  # The verifier rejects this netlist.
        assert not proof.proved and proof.refuted
    deeper = replace(forest.features[0], number=type(forest.features[0].number)(9, 0, True))
    other = replace(forest, features=(deeper, *forest.features[1:]))
    assert not prove_netlist(other, netlist, witness).proved


@pytest.mark.parametrize("trees", [1, 3])
def test_small_models_whose_sums_hang_together_are_proved(trees):
    from sklearn.datasets import load_iris, load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    for data in (load_iris, load_wine):
        X, y = data(return_X_y=True)
        make = DecisionTreeClassifier if trees == 1 else lambda random_state: RandomForestClassifier(3, random_state=1)
        model = make(random_state=0).fit(X, y)
        for bits in (1, 2, 4):
            forest = forestc.quantize(model, X, y, f"simplify,round-leaves{{leaf_bits={bits},change=1}},simplify")
            proof = prove_netlist(forest, *lower_with_witness(forest))
            assert proof.proved, [part for part in proof.parts if part.why]


def test_leaves_too_wide_for_their_net_are_refuted():
    """Uses two trees that differ only in a leaf, 9 or 1; these are the same in three bits."""
    forest = quantized("xgboost-multi")
    netlist, witness = lower_with_witness(forest, LoweringOptions(outputs="both"))
    index = next(k for k, tree in enumerate(forest.trees) if tree.size > 1)
    tree = forest.trees[index]
    values = tree.values.copy()
    leaf = int(tree.leaf[tree.left == -1][values[tree.leaf[tree.left == -1], 0].argmax()])
    values[leaf, 0] += 1 << 20
    other = changed(
        forest, trees=(*forest.trees[:index], changed_tree(tree, values=values), *forest.trees[index + 1 :])
    )
    assert not prove_netlist(other, netlist, witness).proved
