"""share-terms: fewer gates, the same function on every input, and plans that are held against the clauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.checks.engines import simulated
from forestc.checks.proof import prove_netlist
from forestc.checks.vectors import expected
from forestc.commands.check import check
from forestc.errors import ModelError, OptionError
from forestc.forest.builder import changed, make_tree
from forestc.forest.clauses import clause_of
from forestc.forest.ir import Aggregate, Decision, Forest, Link
from forestc.forest.terms import Literal, Root, SharedTerms, Term
from forestc.forest.text import parse_forest, print_forest
from forestc.lowering.trees import LoweringOptions, lower, lower_with_witness
from forestc.netlist.ir import And, Or
from forestc.passes import passes_from
from forestc.passes.base import PassResult
from forestc.passes.extract_rules.literals import Literals
from forestc.passes.extract_rules.rule_forest import Rules, rule_forest
from forestc.passes.promises import Within
from forestc.passes.share_terms.share_terms import ShareTerms
from hw_sim import Simulator

HEAD = """forest "rules"
source "hand" "1" ""
columns 4
feature "a" fixed<3,0> column 0 raw float32
feature "b" fixed<3,0> column 1 raw float32 missing
feature "c" category<3> column 2 raw float32
feature "d" fixed<2,0> column 3 raw float32
aggregate {kind} float64 bias-first
bias {bias}
link order
decision {decision} on scores
classes {classes}
scale 1.0
"""
CONDITIONS = ["0 < 0", "0 < 2", "0 < -2", "0 in [-1,2]", "1 < 0", "1 < 2", "2 in {0}", "2 in {1,2}", "3 < 0", "3 < 1"]


def chain(output, steps, ends):
    """A tree of literals, each (condition, holds, missing left), that ends in ends[1] where all hold."""
    lines = [f"tree outputs {output}"]
    for step, (condition, holds, missing) in enumerate(steps):
        inner, out, further = 2 * step, 2 * step + 1, 2 * step + 2
        sides = (further, out) if holds else (out, further)
        missing = missing and condition.startswith("1 ")
        lines += [
            f"{inner}: {condition} ? {sides[0]} : {sides[1]}{' missing left' * missing}",
            f"{out}: leaf {ends[0]}",
        ]
    return [*lines, f"{2 * len(steps)}: leaf {ends[1]}"]


def rules(clauses, kind="max", outputs=1, ends=(0, 1)):
    """A forest of chains. clauses: (output, steps)."""
    two = outputs == 1
    head = HEAD.format(
        kind=kind, bias=" ".join(["0"] * outputs), decision="threshold 1" if two else "argmax",
        classes=list(range(2 if two else outputs)),
    )  # fmt: skip
    return parse_forest(
        head + "\n".join(line for output, steps in clauses for line in chain(output, steps, ends)) + "\n"
    )


def random_rules(seed, outputs, kind):
    random = np.random.default_rng(seed)
    chosen = random.permutation(CONDITIONS)[: random.integers(3, len(CONDITIONS) + 1)]
    clauses = []
    for place in range(outputs + int(random.integers(1, 8))):
        steps = [
            (str(random.choice(chosen)), bool(random.random() < 0.7), bool(random.random() < 0.5))
            for _ in range(random.integers(1, 6))
        ]
        clauses.append((place % outputs, steps))
    return rules(clauses, kind, outputs, (1, 0) if kind == "min" else (0, 1))


def every_word(forest):
    """All inputs: 8 words of a and of b, where the highest means missing, 4 codes of c, 4 of d."""
    return np.array(list(product(range(-4, 4), range(-4, 4), range(4), range(-2, 2))), dtype=np.int64)


def gates(netlist):
    return sum(isinstance(cell, And | Or) for cell in netlist.cells)


def shared(forest, **options):
    return ShareTerms(**options).run(forest, None)


@settings(deadline=None, max_examples=examples(30))
@given(
    st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(["max", "min", "sum"]), st.booleans(), st.integers(0, 2)
)
def test_every_input_is_decided_as_before(seed, outputs, kind, factor, latency):
    forest = random_rules(seed, outputs, kind)
    result = shared(forest, factor=factor)
    after, report = result.forest, result.report
    assert report["gates"][1] <= report["gates"][0] and print_forest(shared(forest, factor=factor).forest) == (
        print_forest(after)
    )
    again = parse_forest(print_forest(after))
    assert again.shared == after.shared and print_forest(again) == print_forest(after)
    words = every_word(forest)
    for outputs_wanted in ("label", "both"):
        netlist = lower(again, LoweringOptions(latency=latency, outputs=outputs_wanted))
        assert np.array_equal(simulated(Simulator(netlist).run, netlist, words), expected(forest, netlist, words))


def ab(*holds):
    return [("0 < 0", True, False), ("1 < 0", True, False), *holds]


SHARING = [
    (0, ab(("2 in {0}", True, False), ("3 < 0", True, False))),
    (0, ab(("2 in {0}", False, False))),
    (0, [("2 in {0}", True, False), ("3 < 1", False, False)]),
]


@pytest.mark.parametrize("kind", ["max", "min"])
def test_gates_are_saved_and_counted(kind):
    forest = rules(SHARING, kind, ends=(0, 1) if kind == "max" else (1, 0))
    plain, factored = shared(forest, factor=False), shared(forest)
    assert plain.report["gates"] == [8, 7] and plain.report["and_gates"] == [6, 5]
    assert plain.report["and_gates_bound"] == 5 and plain.report["and_gates_optimal"]
    assert factored.report["gates"] == [8, 6]  # ab(cd + not c) + c(not e)
    assert [gates(lower(one)) for one in (forest, plain.forest, factored.forest)] == [8, 7, 6]
    assert not any(factored.report[name] for name in ("time_limit_reached",))


def test_implied_literals_are_dropped():
    """a < 2 says nothing beside a < 0, and b >= 0 nothing beside b >= 2."""
    steps = [("0 < 2", True, False), ("0 < 0", True, False), ("1 < 0", False, False), ("1 < 2", False, False)]
    result = shared(rules([(0, steps)]))
    assert result.report["gates"] == [3, 1] and gates(lower(result.forest)) == 1


def test_a_sum_shares_ands():
    forest = changed(rules(SHARING), aggregate=Aggregate("sum"))
    result = shared(forest)
    assert result.report["gates"] == [6, 5]
    assert all(len(root.trees) == 1 for root in result.forest.shared.roots)
    assert gates(lower(result.forest)) < gates(lower(forest))


def test_forests_without_rules_are_refused_and_constants_left_alone():
    with pytest.raises(OptionError, match="no tree is an AND of conditions"):
        source = random_forest(3, True, "argmax")
        tree = next(tree for tree in source.trees if clause_of(changed(source, trees=(tree,) * 3), 0) is None)
        shared(changed(source, trees=(tree,) * len(source.trees)))
    constant = rules([(0, [])])
    result = shared(constant)
    assert result.forest is constant and result.report["gates"] == [0, 0]
    never = rules([(0, [("0 < 0", True, False), ("0 < 0", False, False)])])
    assert shared(never).forest is never
    one = rules([(0, [("0 < 0", True, False)])])
    assert shared(one).forest is one
    floats = forestc.load(RandomForestClassifier(2, max_depth=2, random_state=0).fit(*load_iris(return_X_y=True)))
    with pytest.raises(ModelError, match="share-terms works on integer forests"):
        shared(floats)
    for options in ({"seconds": 0}, {"factor": 1}):
        with pytest.raises(OptionError, match="share-terms"):
            ShareTerms(**options)


def test_it_comes_last():
    with pytest.raises(OptionError, match="share-terms is of the forest that the last pass leaves"):
        passes_from("quantize,share-terms,simplify")
    with pytest.raises(OptionError, match="put it last, after quantize"):
        passes_from("share-terms")
    assert [step.name for step in passes_from("quantize,share-terms")] == ["quantize", "share-terms"]


# ---- wrong plans ----------------------------------------------------------------------------------------


def literal(forest, place, holds=True):
    return Literal(forest.conditions[place], holds)


def planted(forest, plan):
    """The text of the forest with that plan, unverified, read again."""
    return parse_forest(print_forest(replace(forest, shared=plan)))


def test_wrong_plans_are_refused():
    forest = rules(SHARING)
    right = shared(forest).forest.shared
    assert planted(forest, right).shared == right
    a, b = literal(forest, 0), literal(forest, 1)
    both, root = Term("and", (a, b)), right.roots[0]
    other = Literal(replace(a.condition, missing_left=True))
    wrong = {
        "does not mean what its trees do|more ANDs than": [
            SharedTerms((both,), (Root((0,), 0),)),
            SharedTerms((), (Root((1,), a),)),
            replace(right, roots=(replace(root, trees=root.trees[:2]),)),
            replace(right, terms=(replace(right.terms[0], kind="or"), *right.terms[1:])),
        ],
        "needs two operands or more": [SharedTerms((Term("and", (a, 0)),)), SharedTerms((Term("and", (a, 7)),))],
        "a condition that no tree has": [
            SharedTerms((Term("and", (a, other)),)),
            SharedTerms((), (Root((0,), other),)),
        ],
        "in two roots": [replace(right, roots=(root, root)), replace(right, roots=(Root((0, 0), 0),))],
        "has tree 9 of 3": [replace(right, roots=(Root((9,), 0),))],
        "has term 50 of": [replace(right, roots=(Root((0,), 50),))],
    }
    for message, plans in wrong.items():
        for plan in plans:
            with pytest.raises(ModelError, match=message):
                planted(forest, plan)
    with pytest.raises(ModelError, match="more ANDs than the forest's 3 trees"):
        pair = Term("or", (a, b))
        more = Term("or", (literal(forest, 2), literal(forest, 3)))
        planted(forest, SharedTerms((pair, more, Term("and", (0, 1)))))
    with pytest.raises(ModelError, match="of several outputs, or of a sum"):
        planted(replace(forest, aggregate=Aggregate("sum")), right)
    with pytest.raises(ModelError, match="can't read"):
        parse_forest(print_forest(forest).replace("scale 1.0\n", "scale 1.0\nterm 0 < 0 & b\n"))


def test_trees_that_are_no_clauses_have_no_roots():
    source = random_forest(3, True, "argmax")
    index = next(index for index in range(len(source.trees)) if clause_of(source, index) is None)
    plan = SharedTerms((), (Root((index,), literal(source, 0)),))
    with pytest.raises(ModelError, match="is not an AND of conditions"):
        planted(source, plan)


def test_the_proof_finds_wrong_gates():
    """The proof holds the netlist against the trees: it does not take the plan on trust."""
    forest = rules(SHARING)
    after = shared(forest).forest
    netlist, witness = lower_with_witness(after)
    assert prove_netlist(after, netlist, witness).proved
    trees = SHARING[:2]
    trees.append((0, [("2 in {0}", True, False), ("3 < 0", False, False)]))
    wrong = replace(rules(trees), shared=SharedTerms())
    refuted = prove_netlist(wrong, netlist, witness)
    assert refuted.refuted and not refuted.proved
    unverified = replace(forest, shared=SharedTerms((), (Root((2,), literal(forest, 0)),)))
    assert prove_netlist(forest, *lower_with_witness(unverified)).refuted


@dataclass(frozen=True)
class MadeRules:
    """Stands for extract-rules: gives rules that are at hand."""

    forest: ClassVar[Forest]
    name: ClassVar[str] = "made-rules"

    def run(self, forest, rows, judge=None):
        return PassResult(self.forest, (Within(1.0),))


@pytest.mark.parametrize("form", ["dnf", "cnf"])
def test_a_compiled_design_is_checked_and_proved(form, tmp_path, need_tool):
    need_tool("iverilog")
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, y)
    forest = forestc.quantize(model, X, y, "simplify,quantize")
    conditions = tuple(forest.conditions[place] for place in range(6))
    chosen = {1: ((0, 3, 4), (0, 3, 6), (0, 3, 9)), 2: ((1, 5, 8), (1, 5, 11))}
    made = rule_forest(forest, Rules(form, chosen, (1, 2), 0), Literals(conditions))
    MadeRules.forest = made
    passes = [*passes_from("simplify,quantize"), MadeRules(), ShareTerms()]
    design = forestc.compile(
        model, X, tmp_path / "d", label=y, passes=passes, held_out=0.4, targets=("verilog", "c"), name="rules"
    )
    step = design.steps[-1]
    assert step.promise == "exact" and step.report["gates"][1] < step.report["gates"][0]
    assert design.design.forest.shared and "term " in (tmp_path / "d" / "quantised.forest").read_text()
    result = check(design.design, X, label=y, prove=True)
    assert result.ok and result.proof is not None and result.proof.proved, result
    assert gates(design.design.netlist) < gates(lower(made))


def test_the_forest_means_the_same_with_and_without_a_plan():
    forest = rules(SHARING)
    after = shared(forest).forest
    assert (
        replace(after, shared=SharedTerms()) is not after and changed(after, link=Link("order")).shared == SharedTerms()
    )
    tree = make_tree(
        where="", feature=[-1], threshold=[0], left=[-1], right=[-1], values=[[0]], outputs=[0], quantised=True
    )
    more = changed(after, trees=(*after.trees, tree), decision=Decision("threshold", 1))
    assert not more.shared and gates(lower(more)) == gates(lower(forest))
