"""Tests extract-rules: rules within the tolerance, as forests for every output language and the proof, and as text."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from random_forests import random_forest, troublesome_rows
from settled_passes import run_passes
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from stump import stump
from thinned import only, thinned

import forestc
from forestc import load
from forestc.algorithms.covers.boolean_rules import learn_rules
from forestc.backends.vectors import expected, random_words
from forestc.commands.check import check
from forestc.errors import ForestcError, ModelError, OptionError
from forestc.forest.conditions import Below, Condition
from forestc.forest.evaluate import evaluate_words
from forestc.forest.text import parse_forest, print_forest
from forestc.lowering.trees import lower
from forestc.netlist.ir import Add, Compare
from forestc.passes import passes_from
from forestc.passes.extract_rules import extract_rules
from forestc.passes.extract_rules.extract_rules import ExtractRules
from forestc.passes.extract_rules.literals import Literals
from forestc.passes.extract_rules.rule_forest import Rules, rule_forest
from forestc.passes.extract_rules.rules_text import is_rules, literal_text, rules_text
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.scorer import Scorer
from forestc.passes.simplify import Simplify
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode
from forestc.search.settle import settled
from hw_sim import evaluate as simulate

DATA = {"two": load_breast_cancer, "several": load_iris}


@cache
def case(kind):
    """Returns model, X, y, quantized forest, rows and scorer of a kind of model; the features of iris are named."""
    data = DATA[kind](as_frame=True)
    X, y = data.data, np.asarray(data.target_names[data.target])
    places = np.unique(y, return_inverse=True)[1].reshape(-1)
    order = np.random.default_rng(0).permutation(len(X))
    fit, held = order[: len(X) // 2], order[len(X) // 2 :]
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X.iloc[fit], y[fit])
    source = load(model)
    rows, held_out = (ArrayRows(X.iloc[part].to_numpy(), places[part]) for part in (fit, held))
    forest = run_passes(source, passes_from("simplify,round-leaves"), rows)[0]
    return model, X, y, forest, rows, Scorer(source, held_out)


def extracted(kind, **options):
    _, _, _, forest, rows, scorer = case(kind)
    return settled(
        ExtractRules(**{"tolerance": 0.1, "complexity": 8, "comparators": 40, **options}), forest, rows, scorer
    )


@pytest.mark.parametrize("form", ["dnf", "cnf"])
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("learn", only(["labels", "forest"], 0))
def test_rules_are_small_within_the_tolerance_and_the_same_every_time(kind, form, learn):
    _, _, _, forest, _, scorer = case(kind)
    result = extracted(kind, form=form, learn=learn)
    after, report = result.forest, result.report
    assert scorer.of(after).within(0.1)
    assert report["complexity"] <= 8 * (1 if kind == "two" else 3)
    assert report["clauses"] + report["rule_conditions"] == report["complexity"]
    assert report["bound"] <= report["loss"] and report["accuracy"] > 0.85 and report["fidelity"] > 0.85
    assert set(after.conditions) <= set(forest.conditions)
    assert print_forest(extracted(kind, form=form, learn=learn).forest) == print_forest(after)
    netlist = lower(after)
    assert not any(isinstance(cell, Add | Compare) for cell in netlist.cells)
    words = random_words(after, np.zeros((1, len(after.features)), dtype=np.int64), 500, np.random.default_rng(0))
    assert np.array_equal(simulate(netlist, words), expected(after, netlist, words))


def test_the_complexity_is_the_least_that_is_within_the_tolerance():
    few = extracted("two", complexity="auto", tolerance=0.15)
    assert few.report["complexity"] <= 4 and few.report["chosen_on_held_out"]
    with pytest.raises(OptionError, match=r"extract-rules: of accuracy .* is lost on held-out rows by \d+ clauses"):
        extracted("two", complexity=2, tolerance=0.0)


@pytest.mark.parametrize(
    ("kind", "form"), thinned([("two", "dnf"), ("two", "cnf"), ("several", "cnf"), ("several", "dnf")], keep=1)
)
def test_compiled_rules_are_checked_and_proved(kind, form, tmp_path, need_tool):
    need_tool("iverilog")
    model, X, y, *_ = case(kind)
    passes = f"simplify,round-leaves,extract-rules{{tolerance=0.15,complexity=8,comparators=40,form={form}}},simplify"
    made = forestc.compile(
        model, X, tmp_path / "d", label=y, passes=passes, held_out=0.4, targets=("verilog", "c"), name="rules"
    )
    result = check(made.design, X, label=y, prove=True)
    assert result.ok and result.proof is not None and result.proof.proved, result
    report = (tmp_path / "d" / "report.md").read_text()
    assert "## rules" in report and "    IF " in report and "    ELSE " in report
    text = rules_text(made.design.forest)
    assert all(f"    {line}" in report for line in text.splitlines())


class Reader:
    """A reader that applies rules in text form to rows, without the forest."""

    def __init__(self, text):
        *self.rules, last = text.splitlines()
        self.default = last.removeprefix("ELSE ")

    @staticmethod
    def holds(text, row):
        words = text.strip("() ").split(" ")
        if "<=" in words:
            low, _, *name, _, high = words
            return float(low) <= row[" ".join(name)] < float(high)
        *name, sign, number = words
        return (row[" ".join(name)] < float(number)) == (sign == "<")

    def decide(self, row):
        for rule in self.rules:
            condition, label = rule.removeprefix("IF ").split(" THEN ")
            if all(any(self.holds(one, row) for one in part.split(" OR ")) for part in condition.split(" AND ")):
                return label
        return self.default


@pytest.mark.parametrize(("kind", "form"), [("two", "dnf"), ("two", "cnf"), ("several", "dnf"), ("several", "cnf")])
def test_the_text_says_what_the_forest_decides(kind, form):
    _, X, _, _, rows, _ = case(kind)
    after = extracted(kind, form=form).forest
    after = Simplify().run(after, rows).forest
    again = parse_forest(print_forest(after))
    text = rules_text(again)
    assert text == rules_text(after)
    reader = Reader(text)
    float32 = X.astype(np.float32).astype(np.float64)
    read = [reader.decide(row) for _, row in float32.iterrows()]
    assert read == evaluate_words(after, encode(after, X.to_numpy())).decision.tolist()


def random_clause(random, literals):
    drawn = random.integers(0, 2 * len(literals.conditions), int(random.integers(1, 4)))
    return tuple(sorted(set(drawn.tolist())))


def test_rules_of_all_kinds_of_conditions_give_what_they_say():
    """Compares with the definition: OR of ANDs, AND of ORs, priorities, a default, on random literals with missing
    values."""
    for seed in range(30):
        source = random_forest(seed, True, "binary" if seed % 2 else "argmax")
        if not len(source.conditions):
            continue
        random = np.random.default_rng(seed)
        literals = Literals(tuple(source.conditions))
        classes = [1] if len(source.classes) == 2 else list(range(len(source.classes) - 1))

        clauses = {
            kind: tuple(random_clause(random, literals) for _ in range(random.integers(0, 4))) for kind in classes
        }
        rules = Rules("cnf" if seed % 3 else "dnf", clauses, tuple(random.permutation(classes).tolist()), 0)
        after = rule_forest(source, rules, literals.signed)
        assert is_rules(after) and rules_text(after).splitlines()[-1].startswith("ELSE ")
        words = encode(source, troublesome_rows(source, seed, 100))
        bits = literals.bits(source, words)
        wanted = np.zeros(len(words), dtype=np.int64)
        for kind in reversed(rules.order):
            if rules.form == "dnf":
                held = np.any([bits[:, list(one)].all(axis=1) for one in clauses[kind]] or [[False]], axis=0)
            else:
                held = np.all([bits[:, list(one)].any(axis=1) for one in clauses[kind]] or [[True]], axis=0)
            wanted[np.broadcast_to(held, len(words))] = kind
        assert evaluate_words(after, words).index.tolist() == wanted.tolist(), seed


def test_literals_are_conditions_and_their_negations():
    forest = case("two")[3]
    literals = Literals((Condition(0, Below(5)), Condition(0, Below(9)), Condition(1, Below(5))))
    words = np.zeros((3, len(forest.features)), dtype=np.int64)
    words[:, 0] = [4, 5, 9]
    assert literals.bits(forest, words)[:, :4].astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
    assert literals.groups.tolist() == [0, 0, 0, 0, 1, 1]


def test_random_forests_give_rules_or_are_refused():
    done = 0
    for seed in range(16):
        forest = random_forest(seed, True, "binary" if seed % 2 else "argmax")
        X = troublesome_rows(forest, seed, 120)
        try:
            rows = ArrayRows(X)
            step = ExtractRules(learn="forest", tolerance=math.inf, complexity=6)
            after = run_passes(forest, [step, Simplify()], rows, rows)[0]
        except ForestcError as error:
            assert "extract-rules" in str(error) or "held-out" in str(error), error
            continue
        assert is_rules(after)
        done += 1
    assert done >= 4


def test_refusals():
    _, _, _, forest, rows, scorer = case("two")
    with pytest.raises(OptionError, match="extract-rules: needs a model that decides on one class"):
        ExtractRules().refuse(random_forest(0, True, "regression"), rows, scorer)
    with pytest.raises(OptionError, match="extract-rules: learns from rows"):
        ExtractRules().refuse(forest, None, scorer)
    with pytest.raises(OptionError, match="extract-rules: needs held-out rows"):
        settled(ExtractRules(), forest, rows, None)
    with pytest.raises(ModelError, match="extract-rules: works on integer forests"):
        settled(ExtractRules(), scorer.model, rows, scorer)
    some = next(rows.batches()).X[:50]
    with pytest.raises(OptionError, match="extract-rules: on all rows the labels are of one class"):
        settled(ExtractRules(), forest, ArrayRows(some, np.ones(50, dtype=np.int64)), scorer)
    with pytest.raises(OptionError, match="extract-rules: complexity=1"):
        ExtractRules(complexity=1)
    with pytest.raises(OptionError, match="use labels or forest"):
        ExtractRules(learn="trees")
    with pytest.raises(ModelError, match="the forest is not a set of rules"):
        rules_text(forest)
    with pytest.raises(OptionError, match="prune-splits: needs a sum of trees"):
        settled(PruneSplits(), extracted("two").forest, rows, scorer)


@pytest.mark.parametrize("missing_left, positive, text", [
    (True, True, "a < 4 or missing"), (True, False, "a >= 4 and not missing"),
    (False, True, "a < 4 and not missing"), (False, False, "a >= 4 or missing"),
])  # fmt: skip
def test_a_literal_says_on_which_side_missing_values_are(missing_left, positive, text):
    forest = stump("uint4", 4, missing_left)
    assert literal_text(forest, forest.conditions[0], positive) == text


def test_after_an_interrupt_the_best_rules_are_used_if_they_are_good_enough(monkeypatch):
    def stopped(*given, **asked):
        return replace(learn_rules(*given, **asked), interrupted=True)

    monkeypatch.setattr(extract_rules, "learn_rules", stopped)
    report = extracted("two", complexity="auto", tolerance=0.3).report
    assert report["interrupted"] is True and "was interrupted" in report["note"]
    with pytest.raises(KeyboardInterrupt):
        extracted("two", complexity="auto", tolerance=0.0)


def test_balanced_rules_find_more_of_a_rare_class():
    _, _, _, forest, rows, scorer = case("two")
    rare = np.flatnonzero(rows.truth == 1)[::6]  # One in six of these rows gets a class of its own.
    few = ArrayRows(rows.X, np.isin(np.arange(len(rows.truth)), rare).astype(int))
    plain, balanced = (
        settled(
            ExtractRules(tolerance=math.inf, complexity=2, comparators=40, balanced=each), forest, few, scorer
        ).forest
        for each in (False, True)
    )
    found = [int((evaluate_words(each, encode(each, few.X)).index[rare] == 1).sum()) for each in (plain, balanced)]
    assert found[0] == 0 and found[1] > len(rare) / 2
